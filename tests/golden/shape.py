"""The shape of JSON: its fields and their types."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

_TYPES = {dict: "object", list: "array", str: "string", bool: "boolean", int: "number", float: "number"}


def shape(document: Any, maps: frozenset[str] = frozenset()) -> dict[str, str]:
    """Return the types at each path, such as `.matches[].title`; all items of an array share a path.

    So do all values of `maps`, the objects whose keys are data: `.players{}`. A field that only some of the objects at
    its path have is `optional`.
    """
    types: dict[str, set[str]] = {}
    #: The number of objects at each path, and of those that have the field of each path.
    objects: Counter[str] = Counter()
    holders: Counter[tuple[str, str]] = Counter()
    for path, value in _walk("", document, maps):
        types.setdefault(path, set()).add("null" if value is None else _TYPES[type(value)])
        if isinstance(value, dict):
            objects[path] += 1
            holders.update((path, f"{path}.{name}") for name in value)
    optional = {field for (path, field), count in holders.items() if count < objects[path]}
    return {path or ".": " | ".join([*(["optional"] * (path in optional)), *sorted(types[path])]) for path in types}


def _walk(path: str, value: Any, maps: frozenset[str]) -> Iterator[tuple[str, Any]]:
    yield path, value
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _walk(f"{path}{{}}" if path in maps else f"{path}.{name}", inner, maps)
    elif isinstance(value, list):
        for inner in value:
            yield from _walk(f"{path}[]", inner, maps)
