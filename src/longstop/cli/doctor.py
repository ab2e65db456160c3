"""The verb that looks after the machine: doctor."""

import os

import msgspec
import typer
from rich.console import Console
from rich.text import Text

from longstop.cli.options import Data, Json
from longstop.doctor.base import Check, Verdict, is_well, lacks_a_site

_COLOURS = {Verdict.OK: "green", Verdict.MISSING: "yellow", Verdict.WRONG: "red", Verdict.SKIPPED: "dim"}


def doctor(data: Data = None, as_json: Json = False) -> None:
    """Say what is missing on this machine, and how to get it."""
    from longstop.doctor.checkup import examine

    environ = dict(os.environ) if data is None else {**os.environ, "LONGSTOP_DATA": str(data)}
    checks = examine(environ)
    if as_json:
        print(msgspec.json.encode({"ok": is_well(checks), "checks": checks}).decode())
    else:
        # Long lines are left to the terminal: a command that it folds by itself can still be copied whole.
        Console(soft_wrap=True).print(_list(checks))
        print(_verdict(checks))
    raise typer.Exit(0 if is_well(checks) else 1)


VERBS = (doctor,)


def _list(checks: list[Check]) -> Text:
    """Return a line for each check, and below it what to do."""
    width = max(len(check.name) for check in checks)
    lines = Text()
    for check in checks:
        lines.append(f"{check.verdict.value:8}", style=_colour(check)).append(f"{check.name:{width}}  {check.found}\n")
        if check.advice:
            lines.append(f"{'':8}{'':{width}}  → {check.advice}\n", style="bold")
    return lines


def _colour(check: Check) -> str:
    return _COLOURS[check.verdict] if check.is_needed else "green" if check.verdict is Verdict.OK else "dim"


def _verdict(checks: list[Check]) -> str:
    wrong = [check.name for check in checks if check.is_in_the_way]
    if wrong:
        return f"In the way: {', '.join(wrong)}."
    is_all = all(check.verdict is Verdict.OK for check in checks)
    rest = "" if is_all else " The rest is for tests, or a choice."
    if lacks_a_site(checks):
        # Nothing is wrong with the machine: that is what the exit code is about.
        missing = "`longstop up` lacks an enabled site (exit 0 all the same: the machine is ready)"
        return f"Everything that `longstop demo` needs is there; {missing}.{rest}"
    return f"Everything that Longstop needs is there.{rest}"
