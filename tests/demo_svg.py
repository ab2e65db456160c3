"""`python -m tests.demo_svg`: write docs/demo.svg, the demo's table with example matches.

`tests/test_docs.py` compares the file with what this module renders.
"""

import re
from io import StringIO
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console, ConsoleDimensions

from longstop_lab.table import table

PATH = Path(__file__).parents[1] / "docs" / "demo.svg"
#: As `scripts/run` shows them.
MATCHES = 20
TERMINAL = ConsoleDimensions(80, 24)

_LABEL = "The live table of longstop demo: match, score, last event, status and age of each simulated match"
_SIDES = (
    *("Harrowgate End Millers", "Norbeck Rooks", "Jökulsdal Herons", "Calder Vale Lanterns", "Inverlea Millers"),
    *("Port Élan Wanderers", "Mâcon Park Otters", "Norbeck Lanterns", "Lingmoor Otters", "Dunmoor Rovers"),
)
#: Runs, wickets, overs and balls of the current innings, then the last event.
_SCORES = (
    ((91, 5, 12, 1), "Milo Whitlock caught"),
    ((148, 4, 16, 3), "1"),
    ((17, 3, 4, 0), "5 runs, 17/3"),
    ((174, 7, 19, 5), "4"),
    ((0, 0, 0, 2), "0"),
)


def render() -> str:
    """Return the picture as SVG text."""
    entries, payloads = [], {}
    for number in range(1, MATCHES + 1):
        title = f"{_SIDES[number % 10]} vs {_SIDES[number * 3 % 10 - 1]} - T20"
        status = "upcoming" if number > MATCHES - 2 else "live"
        entry = {"matchId": number, "match_id": f"crex_{number}", "title": title, "status": status}
        entries.append({**entry, "sync": "in_sync", "data_age_seconds": number * 7 % 25 / 10})
        (runs, wickets, over, ball), last = _SCORES[number % 5]
        innings = {"runs": runs, "wickets": wickets, "overs": {"over": over, "ball": ball}}
        payloads[f"crex_{number}"] = {"innings": [innings], "last_event": {"description": last}}
    console = Console(record=True, width=TERMINAL.width, file=StringIO(), force_terminal=True)
    console.print(table(entries, payloads, TERMINAL))
    return console.export_svg(title="longstop demo", code_format=_svg_format(), unique_id="longstop-demo")


def _svg_format() -> str:
    """Return Rich's format without fonts from other hosts, and with a label for screen readers."""
    without_fonts = re.sub(r"@font-face \{\{.*?\}\}\n", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
    without_note = re.sub(r" *<!--.*?-->\n", "", without_fonts)
    plain = without_note.replace("Fira Code, monospace", "ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace")
    return plain.replace("<svg ", f'<svg role="img" aria-label="{_LABEL}" ', 1)


if __name__ == "__main__":
    PATH.write_text(render(), encoding="utf-8")
