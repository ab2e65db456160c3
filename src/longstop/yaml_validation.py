"""Reads YAML files into validated values, or raises sentences that say what to write instead."""

import errno
import re
import stat
from collections.abc import Hashable, Mapping, Sequence
from difflib import get_close_matches
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import yaml
from annotated_types import Ge, Le
from pydantic import BaseModel, BeforeValidator, ConfigDict, SecretStr, ValidationError, model_validator
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from longstop.errors import SettingsError
from longstop.text import printable

#: Longer wrong values are shortened in messages.
_QUOTED_CHARACTERS = 80
#: Longer YAML scalars are text: numbers of thousands of digits take minutes to convert, or raise.
_NUMBER_CHARACTERS = 50
#: Larger files are refused; a hundred sites need a quarter of it.
_MAX_FILE_BYTES = 200_000
#: Fields of these types, as passwords and metadata, are not quoted in messages.
_SECRET_TYPES = (SecretStr, dict[str, str])
#: What may precede the host of an address: a user name and password. They may contain any character.
_USER_INFO = re.compile(r"^(['\"]?(?:\w+://)?).*@", re.DOTALL)


class Wanted(NamedTuple):
    """What to write into a field, where type and range are not enough."""

    text: str


class Group(BaseModel):
    """A group of settings: fixed names, immutable."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    @model_validator(mode="before")
    @classmethod
    def _leave_out_empty_groups(cls, values: Any) -> Any:
        """Use the defaults of a group whose lines are all commented out, which YAML reads as null."""
        if not isinstance(values, Mapping):
            return values
        groups = {name for name, field in cls.model_fields.items() if is_group(field)}
        return {name: value for name, value in values.items() if value is not None or name not in groups}


def _refuse_boolean(value: object) -> object:
    """Reject booleans as numbers: Python would read `yes` as 1."""
    if isinstance(value, bool):
        raise ValueError("a boolean is not a number")
    return value


def _refuse_bad_path(value: object) -> object:
    """Reject paths that the system cannot open, and empty ones: they would mean the working directory."""
    if isinstance(value, str) and (not value.strip() or b"\0" in value.encode()):
        raise ValueError("this text is not a path")
    return value


Whole = Annotated[int, BeforeValidator(_refuse_boolean)]
Number = Annotated[float, BeforeValidator(_refuse_boolean)]
PathText = Annotated[Path, BeforeValidator(_refuse_bad_path), Wanted("a path")]


class _StrictLoader(yaml.SafeLoader):
    """The safe loader without tags and aliases, which can crash it or expand for ever, and without duplicate keys."""

    def _refuse(self) -> None:
        raise yaml.scanner.ScannerError(None, None, "quote texts that begin with &, * or !", self.get_mark())

    fetch_alias = fetch_anchor = fetch_tag = _refuse

    def compose_scalar_node(self, anchor: Any) -> yaml.ScalarNode:
        node = super().compose_scalar_node(anchor)
        if len(node.value) > _NUMBER_CHARACTERS:
            node.tag = self.DEFAULT_SCALAR_TAG
        return node

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value in seen:
                # One of the two values would be lost silently.
                problem = f"{quote(key.value)} is given twice"
                raise yaml.constructor.ConstructorError(None, None, problem, key.start_mark)
            seen.add(str(key.value))
        return super().construct_mapping(node, deep)


def read_file(path: Path, max_bytes: int) -> bytes:
    """Return the content of a regular file, or raise an `OSError`: reading a device may never end."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise OSError(errno.EINVAL, "it is not a regular file")
    with path.open("rb") as file:
        content = file.read(max_bytes + 1)
    if len(content) > max_bytes:
        raise OSError(errno.EFBIG, f"it is larger than {max_bytes:,} bytes")
    return content


def read_text(path: Path, advice: str) -> str:
    """Return the text of a file; `advice` is what to do if it cannot be read."""
    try:
        return read_file(path, _MAX_FILE_BYTES).decode()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise SettingsError(f"cannot read {path} ({reason}): {advice}") from error


def parse_yaml(text: str, file: str) -> Mapping[str, Any]:
    """Return the top level of a YAML file; empty for an empty file."""
    try:
        tree = yaml.load(text, _StrictLoader)  # noqa: S506 - a stricter subclass of the safe loader
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise SettingsError(f"{file}, line {line}, is not valid YAML: {error.problem}") from error
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise SettingsError(f"{file} is not valid YAML: write plain `name: value` lines") from error
    if tree is None:
        return {}
    if not isinstance(tree, Mapping):
        raise SettingsError(f"{file} is a list or a single value: write `name: value` lines")
    return tree


def describe_problems(model: type[Group], error: ValidationError, names: Mapping[str, str], file: str) -> list[str]:
    """Return one sentence per problem; `names` has the variables of the paths that the file did not set."""
    return [_sentence(model, details, names, file) for details in error.errors()]


def suggest(name: str, known: Sequence[str]) -> str:
    near = get_close_matches(name, known, n=1)
    return f"did you mean {near[0]}?" if near else "remove it, or use one of " + ", ".join(known)


def quote(value: object) -> str:
    """Return a wrong value for a message: shortened, without the user name and password of an address."""
    text = _USER_INFO.sub(r"\1***@", repr(value))
    return text if len(text) <= _QUOTED_CHARACTERS else f"{text[:_QUOTED_CHARACTERS]}…"


def is_group(field: FieldInfo) -> type[Group] | None:
    """Return the group of a field; `None` for a single setting."""
    kind = field.annotation
    return kind if isinstance(kind, type) and issubclass(kind, Group) else None


def _sentence(model: type[Group], details: ErrorDetails, names: Mapping[str, str], file: str) -> str:
    path = printable(".".join(map(str, details["loc"]))[:_QUOTED_CHARACTERS])
    name = names.get(path, f"{path} in {file}")
    group, field = _find(model, details["loc"])
    if details["type"] in ("extra_forbidden", "invalid_key"):
        return f"{name} is unknown: {suggest(str(details['loc'][-1]), list(group.model_fields))}"
    advice = _advice_for(field) if field else "a group of " + ", ".join(group.model_fields)
    if details["type"] == "missing":
        return f"{name} is missing: write {advice}"
    shown = "not valid" if _is_secret(field.annotation if field else group) else quote(details["input"])
    return f"{name} is {shown}: write {advice}"


def _is_secret(kind: Any) -> bool:
    """Return whether a type is secret, or a group with a secret field."""
    fields = kind.model_fields.values() if isinstance(kind, type) and issubclass(kind, Group) else ()
    return kind in _SECRET_TYPES or any(_is_secret(field.annotation) for field in fields)


def _find(model: type[Group], path: tuple[int | str, ...]) -> tuple[type[Group], FieldInfo | None]:
    """Return the innermost group on a path, and the field in it; `None` for the group itself or an unknown name."""
    for part in path:
        field = model.model_fields.get(str(part))
        branch = is_group(field) if field else None
        if branch is None:
            return model, field
        model = branch
    return model, None


def _advice_for(field: FieldInfo) -> str:
    wanted = [note.text for note in field.metadata if isinstance(note, Wanted)]
    if wanted:
        return wanted[0]
    kind = field.annotation
    if isinstance(kind, type) and issubclass(kind, Enum):
        return "one of " + ", ".join(str(member.value) for member in kind)
    if kind is bool:
        return "true or false"
    if kind is int or kind is float:
        return f"{'a whole number' if kind is int else 'a number'}{_range(field)}"
    return "text"


def _range(field: FieldInfo) -> str:
    low = next((note.ge for note in field.metadata if isinstance(note, Ge)), None)
    high = next((note.le for note in field.metadata if isinstance(note, Le)), None)
    return f" from {low} to {high}"
