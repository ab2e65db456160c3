"""`python -m tests.demo_svg`: write docs/demo.svg, the demo's table with example matches.

`tests/test_docs.py` compares the file with what this module renders.
"""

import re
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console

from longstop_lab.table import table

PATH = Path(__file__).parents[1] / "docs" / "demo.svg"
COLUMNS = 132

_LABEL = "The live table of longstop demo: match, score, last event, status and age of each simulated match"
_MATCHES: tuple[tuple[str, str, list[str], str, str, float], ...] = (
    ("crex", "Harrowgate End Millers vs Norbeck Rooks - T20", ["91/5 12.1"], "Milo Whitlock caught", "live", 1.1),
    ("crex", "Jökulsdal Herons vs Calder Vale Lanterns - T20", ["177/6 20.0", "148/4 16.3"], "1", "live", 2.3),
    ("crex", "Inverlea Millers vs Port Élan Wanderers - T20", ["193/6 20.0", "17/3 4.0"], "5 runs, 17/3", "live", 0.4),
    ("crex", "Mâcon Park Otters vs Norbeck Lanterns - T20", ["174/7 20.0", "180/9 19.0"], "", "completed", 31.0),
    ("crex", "Inverlea Otters vs Lingmoor Otters - T20", ["177/6 20.0"], "177/6 in 20.0 overs", "break", 4.0),
    ("crex", "Norbeck Foxes vs Dunmoor Otters - T20", [], "", "upcoming", 12.6),
    ("sofascore", "Brackenshaw United vs Port Élan Athletic", ["2-1"], "goal 67", "live", 1.9),
    ("sofascore", "Göransby FC vs Eastmere City", ["0-0"], "HT 45", "break", 2.2),
)


def render() -> str:
    """Return the picture as SVG text."""
    entries, payloads = [], {}
    for number, (site, title, scores, last, status, age) in enumerate(_MATCHES, start=1):
        entry = {"matchId": number, "match_id": f"{site}_{number}", "title": title, "status": status}
        entries.append({**entry, "sync": "in_sync", "data_age_seconds": age})
        payloads[f"{site}_{number}"] = _football(scores, last) if site == "sofascore" else _cricket(scores, last)
    console = Console(record=True, width=COLUMNS, file=StringIO(), force_terminal=True)
    console.print(table(entries, payloads))
    return console.export_svg(title="longstop demo", code_format=_svg_format(), unique_id="longstop-demo")


def _cricket(scores: list[str], last: str) -> dict[str, Any]:
    return {"innings": list(_innings(scores)), "last_event": {"description": last}}


def _innings(scores: list[str]) -> Iterator[dict[str, Any]]:
    for score in scores:
        runs, wickets, over, ball = map(int, re.split(r"[/ .]", score))
        yield {"runs": runs, "wickets": wickets, "overs": {"over": over, "ball": ball}}


def _football(scores: list[str], last: str) -> dict[str, Any]:
    home, away = map(int, scores[0].split("-"))
    kind, minute = last.split()
    return {"incidents": [{"kind": kind, "minute": int(minute)}], "score": {"home": home, "away": away}}


def _svg_format() -> str:
    """Return Rich's format without fonts from other hosts, and with a label for screen readers."""
    without_fonts = re.sub(r"@font-face \{\{.*?\}\}\n", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
    without_note = re.sub(r" *<!--.*?-->\n", "", without_fonts)
    plain = without_note.replace("Fira Code, monospace", "ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace")
    return plain.replace("<svg ", f'<svg role="img" aria-label="{_LABEL}" ', 1)


if __name__ == "__main__":
    PATH.write_text(render(), encoding="utf-8")
