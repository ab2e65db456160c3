"""Golden files: JSON with sorted keys, one item a line."""

import difflib
import json
from pathlib import Path
from typing import Any

RECORDED = Path(__file__).parent / "recorded"
#: Data directories written by former versions, each with a file that lists its contents.
DIRECTORIES = RECORDED / "data_directories"
#: Values up to this width are written on one line.
WIDTH = 500
SHOWN_LINES = 60


def render(value: Any, indent: int = 0) -> str:
    """Return the canonical text of a document."""
    flat = json.dumps(value, sort_keys=True, ensure_ascii=False)
    is_short = indent > 0 and indent + len(flat) <= WIDTH
    if is_short or not value or not isinstance(value, dict | list):
        return flat
    if isinstance(value, dict):
        items = [f"{json.dumps(key)}: {render(value[key], indent + 1)}" for key in sorted(value)]
    else:
        items = [render(item, indent + 1) for item in value]
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    inner = "\n" + " " * (indent + 1)
    return f"{opening}{inner}{f',{inner}'.join(items)}\n{' ' * indent}{closing}"


def write(path: Path, document: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(render(document) + "\n", encoding="utf-8")


def differences(path: Path, document: Any) -> str:
    """Return how a document differs from its golden file, as the first lines of a diff; empty when it does not."""
    recorded, fresh = path.read_text(encoding="utf-8").splitlines(), render(document).splitlines()
    lines = difflib.unified_diff(recorded, fresh, f"golden {path.name}", "now", lineterm="", n=1)
    return "\n".join(line[:WIDTH] for line, _ in zip(lines, range(SHOWN_LINES), strict=False))
