"""The recorded bodies beside the project, where they are present."""

import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

_FOLDER = Path(os.environ.get("LONGSTOP_RECORDED", Path(__file__).parents[3].parent / "shared" / "data"))

needs_recorded = pytest.mark.skipif(not _FOLDER.is_dir(), reason="the recorded bodies (LONGSTOP_RECORDED) are not here")


def recorded_json(name: str) -> Any:
    return msgspec.json.decode((_FOLDER / name).read_bytes())


def cricsheet_files() -> list[Path]:
    return sorted((_FOLDER / "cricsheet").rglob("*.json"))


def shape(value: Any) -> Any:
    """Return the types of a JSON value: keys and all, lists by their first item."""
    if isinstance(value, dict):
        return {key: shape(item) for key, item in value.items()}
    if isinstance(value, list):
        return [shape(value[0])] if value else []
    return type(value).__name__
