"""The recorded bodies beside the project, where they are present."""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

_FOLDER = Path(os.environ.get("LONGSTOP_RECORDED", Path(__file__).parents[4].parent / "shared" / "data"))

needs_recorded = pytest.mark.skipif(not _FOLDER.is_dir(), reason="the recorded bodies (LONGSTOP_RECORDED) are not here")


def recorded_json(name: str) -> Any:
    return msgspec.json.decode((_FOLDER / name).read_bytes())


def cricsheet_files() -> list[Path]:
    return sorted(file for folder in ("cricsheet", "extra/cricsheet") for file in (_FOLDER / folder).rglob("*.json"))


def shape(value: Any) -> Any:
    """Return the types of a JSON value: keys and all, lists by their first item."""
    if isinstance(value, dict):
        return {key: shape(item) for key, item in value.items()}
    if isinstance(value, list):
        return [shape(value[0])] if value else []
    return type(value).__name__


def recorded_next_data(name: str) -> Any:
    """Return the data of a recorded page: what stands at `props.appPageProps.data.data`."""
    return next_data((_FOLDER / name).read_bytes())["data"]


def next_data(page: bytes) -> Any:
    """Return what a page's script holds at `props.appPageProps.data`, found as plainly as can be."""
    script = re.search(rb'<script id="__NEXT_DATA__" type="application/json">(.*?)</script>', page, re.DOTALL)
    assert script is not None
    return msgspec.json.decode(script[1])["props"]["appPageProps"]["data"]


def disagreements(ours: Any, recorded: list[Any], path: str = "") -> Iterator[str]:
    """Yield where a value has a key or type that none of the recorded ones has; numbers are one type."""
    if isinstance(ours, dict):
        seen = [value for value in recorded if isinstance(value, dict)]
        for key, value in ours.items():
            there = [other[key] for other in seen if key in other]
            yield from disagreements(value, there, f"{path}.{key}") if there else [f"{path}.{key} is not recorded"]
    elif isinstance(ours, list):
        items = [item for value in recorded if isinstance(value, list) for item in value]
        for item in ours if items else ():
            yield from disagreements(item, items, f"{path}[]")
    elif _type(ours) not in {_type(value) for value in recorded}:
        yield f"{path} is {_type(ours)}"


def _type(value: Any) -> str:
    return "number" if isinstance(value, int | float) and not isinstance(value, bool) else type(value).__name__
