"""The SQL of the stores: read from the `.sql` files beside this module, answered in rows with names."""

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from types import MappingProxyType
from typing import Any

import apsw

Row = dict[str, Any]

_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)


def sql_folder() -> Traversable:
    return files("longstop.storage") / "sql"


@cache
def queries(path: str) -> Mapping[str, str]:
    """Return the statements of a file, by the names that stand above them."""
    _before, *parts = _NAME.split((sql_folder() / path).read_text(encoding="utf-8"))
    return MappingProxyType(dict(zip(parts[::2], map(str.strip, parts[1::2]), strict=True)))


def rows(connection: apsw.Connection, statement: str, bindings: Mapping[str, Any] | None = None) -> list[Row]:
    """Return everything a statement gives, each row under its column names."""
    cursor = connection.cursor()
    cursor.row_trace = _by_name
    found: list[Any] = cursor.execute(statement, bindings).fetchall()
    return found


def row(connection: apsw.Connection, statement: str, bindings: Mapping[str, Any] | None = None) -> Row | None:
    """Return the only row a statement gives, or `None`."""
    found = rows(connection, statement, bindings)
    return found[0] if found else None


def _by_name(cursor: apsw.Cursor, values: tuple[Any, ...]) -> Row:
    return {column[0]: value for column, value in zip(cursor.get_description(), values, strict=True)}
