"""Verbs that maintain a node: backup, restore, doctor."""

import os
import sys
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.text import Text

from longstop.cli.options_and_data_access import Data, Json, existing_data, settings_for
from longstop.cli.output import TextConsole, say, say_json, wrapped
from longstop.clock import SystemClock, to_iso
from longstop.doctor.checks import Check, CheckStatus, has_no_site, is_ready
from longstop.model.command_and_standing_order import StandingKind
from longstop.text import printable

_STYLES = {CheckStatus.OK: "green", CheckStatus.MISSING: "yellow", CheckStatus.WRONG: "red", CheckStatus.SKIPPED: "dim"}


def backup(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A directory that does not exist yet.")],
    data: Data = None,
) -> None:
    """Copy everything that cannot be rebuilt, while the node runs."""
    from longstop.storage.backup import back_up
    from longstop.storage.directory import DataDirectory

    manifest = back_up(DataDirectory.open(existing_data(data)), folder, SystemClock())
    size = sum(kept.size for kept in manifest.files)
    say(f"Saved {len(manifest.files)} files of {manifest.node} ({size / 1e6:.1f} MB) to {folder}.")


def restore(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The backup.")],
    data: Data = None,
    force: Annotated[bool, typer.Option("--force", help="Move the files of the data directory aside.")] = False,
) -> None:
    """Restore a backup into a data directory that no process uses."""
    from longstop.storage.restore import restore as restore_backup

    path = settings_for(data).data
    done = restore_backup(folder, path, SystemClock(), force=force)
    say(f"Restored {path} to the state of {done.manifest.node} at {to_iso(done.manifest.created_at)}.")
    if done.aside is not None:
        say(f"Its previous files are in {done.aside}.")
    if not done.manifest.has_all_databases:
        say("The backup has no ops.db: nothing is paused or unwatched now.")
    for line in _changed_orders(done.orders_before, done.orders_after):
        say(line)


def _changed_orders(
    before: Collection[tuple[StandingKind, str]] | None, after: Collection[tuple[StandingKind, str]] | None
) -> Iterator[str]:
    """Yield what a restore changes of the orders of operators."""
    if before is None:
        yield "Which pauses were in force before could not be read: its ops.db is damaged or missing."
    if after is None:
        yield "Which pauses are in force now could not be read: longstop up will say why."
    for what, kinds in (
        ("paused", (StandingKind.PAUSED_SOURCE, StandingKind.PAUSED_MATCH)),
        ("unwatched", (StandingKind.UNWATCHED,)),
    ):
        was = {subject for kind, subject in before or () if kind in kinds}
        is_now = {subject for kind, subject in after or () if kind in kinds}
        if again := sorted(is_now - was):
            yield f"{what.capitalize()} again: {', '.join(again)}."
        if no_longer := sorted(was - is_now):
            yield f"No longer {what}: {', '.join(no_longer)}."


def doctor(data: Data = None, as_json: Json = False) -> None:
    """Check this machine, and print how to fix what is missing."""
    from longstop.doctor.measure_and_check import examine

    environ = dict(os.environ) if data is None else {**os.environ, "LONGSTOP_DATA": str(data)}
    checks = examine(environ)
    if as_json:
        say_json(msgspec.json.encode({"ok": is_ready(checks), "checks": checks}).decode())
    else:
        TextConsole(soft_wrap=True).print(_list(checks))
        say(_summary(checks))
    raise typer.Exit(0 if is_ready(checks) else 1)


VERBS = (backup, restore, doctor)


def _list(checks: list[Check]) -> Text:
    """Return a line for each check, with the advice below it."""
    width = max(len(check.name) for check in checks)
    lines, indent = Text(), 8 + width + 2
    for check in checks:
        line = wrapped(printable(f"{check.verdict.value:8}{check.name:{width}}  {check.found}"), sys.stdout, indent)
        lines.append(line[:8], style=_style(check)).append(f"{line[8:]}\n")
        if check.advice:
            advice = wrapped(printable(f"{'':{indent}}→ {check.advice}"), sys.stdout, indent + 2)
            lines.append(f"{advice}\n", style="bold")
    return lines


def _style(check: Check) -> str:
    return _STYLES[check.verdict] if check.is_needed else "green" if check.verdict is CheckStatus.OK else "dim"


def _summary(checks: list[Check]) -> str:
    problems = [check.name for check in checks if check.is_problem]
    if problems:
        return f"Must be fixed: {', '.join(problems)}."
    is_all = all(check.verdict is CheckStatus.OK for check in checks)
    rest = "" if is_all else " Everything else is optional."
    if has_no_site(checks):
        # The exit code is about the machine, and nothing is wrong with that.
        return (
            "This machine is ready, so the exit code is 0: `longstop demo` can run now. Before `longstop up`, enable a "
            f"site in the sources file.{rest}"
        )
    return f"Longstop has everything it needs.{rest}"
