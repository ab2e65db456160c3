"""The verb that looks after the machine: doctor."""

import os

import msgspec
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from longstop.cli.options import Data, Json
from longstop.doctor.base import Check, Verdict, is_well

_COLOURS = {Verdict.OK: "green", Verdict.MISSING: "yellow", Verdict.WRONG: "red"}


def doctor(data: Data = None, as_json: Json = False) -> None:
    """Say what is missing on this machine, and how to get it."""
    from longstop.doctor.checkup import examine

    environ = dict(os.environ) if data is None else {**os.environ, "LONGSTOP_DATA": str(data)}
    checks = examine(environ)
    if as_json:
        print(msgspec.json.encode({"ok": is_well(checks), "checks": checks}).decode())
    else:
        Console().print(_table(checks))
        print(_verdict(checks))
    raise typer.Exit(0 if is_well(checks) else 1)


VERBS = (doctor,)


def _table(checks: list[Check]) -> Table:
    table = Table("what", "", "found", "what to do")
    for check in checks:
        verdict = Text(check.verdict.value, style=_colour(check))
        table.add_row(check.name, verdict, Text(check.found), Text(check.advice))
    return table


def _colour(check: Check) -> str:
    return _COLOURS[check.verdict] if check.is_needed else "green" if check.verdict is Verdict.OK else "dim"


def _verdict(checks: list[Check]) -> str:
    wrong = [check.name for check in checks if check.is_in_the_way]
    if wrong:
        return f"In the way: {', '.join(wrong)}."
    return "Everything that Longstop needs is there."
