"""Mutants: the product with one thing broken on purpose. A test suite that lets one live does not guard that thing.

Each is a small patch that must fit exactly once, applied to a copy of the package. Those of the road that data takes
meet the model test first (`tests/model`), and the tests of their neighbourhood if it lets them live; those of football,
of the rules for bad times and of watching (`bench/mutants_football.py`, `…_resilience.py`, `…_watching.py`) meet the
unit tests of these.
"""

import argparse
import asyncio
import os
import shutil
import sys
import tempfile
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Sequence
from pathlib import Path

from bench.frame import Report, run, say
from bench.mutant import SOURCE, Mutant, mutated
from bench.mutants_football import FOOTBALL
from bench.mutants_resilience import RESILIENCE
from bench.mutants_watching import WATCHING
from longstop.errors import UsageError

ROOT = Path(__file__).parents[1]
AT_ONCE = 2
RUN_WITHIN = 240.0

_PIPELINE, _CLIENT, _VERSIONS = "matches/pipeline.py", "matches/client.py", "matches/versions.py"
_ALIGN, _READ = "sports/cricket/align.py", "sports/cricket/read.py"
_TOTALS, _SPORT, _STATE = "sports/cricket/totals.py", "sports/cricket/sport.py", "sports/base.py"
_UPDATE, _WATCHER = "storage/sqlite/matches.py", "watching/feed_watch.py"
_SAME = "SELECT * FROM event_versions WHERE match_id = :match_id AND key = :key AND content_hash = :content_hash"
_COMMIT = "receipt = await self._committer.commit(state, draft, observation)"
_HELD = "            case Held(known) | Vanished(known):\n"

_DATA = (
    Mutant(
        name="the base moves on though the commit failed",
        file=_PIPELINE,
        old=f"        {_COMMIT}\n",
        new=(
            f"        try:\n            {_COMMIT}\n"
            "        except Exception:\n            return Polled(state=draft.state, receipt=None)\n"
        ),
    ),
    Mutant(
        name="the base is a cache that forgets",
        file=_STATE,
        old="events={**self.events, **{stored.event.key: stored.event for stored in receipt.events}},",
        new="events=dict([*self.events.items(), *((s.event.key, s.event) for s in receipt.events)][-4:]),",
    ),
    Mutant(
        name="a commit of unknown outcome counts as failed",
        file="matches/live_match.py",
        old="                    self.is_base_known = False\n                raise",
        new="                    self.is_base_known = True\n                raise",
    ),
    Mutant(
        name="only the newest of a large diff are kept",
        file=_ALIGN,
        old="    versions.events.sort(key=order_of_play)\n",
        new="    versions.events = sorted(versions.events, key=order_of_play)[-3:]\n",
    ),
    Mutant(
        name="versions are told apart by their content alone",
        file=_UPDATE,
        old="        stored = _stored_before(connection, columns, before.sport)\n",
        new=(
            f'        same = rows(connection, "{_SAME}", columns)\n'
            "        stored = stored_event(same[0], before.sport) if same else None\n"
        ),
    ),
    Mutant(name="no fence", file=_UPDATE, old="    if update.epoch != match.epoch:", new="    if False:"),
    Mutant(
        name="every correction is taken for an older copy",
        file=_VERSIONS,
        old="            self.put(old.key, content, source_event_id, position)",
        new="            self.put(old.key, old.content, old.source_event_id, position)",
    ),
    Mutant(
        name="a step back counts at the first look",
        file=_VERSIONS,
        old="        if token in self._confirmed:",
        new="        if token:",
    ),
    Mutant(
        name="the newest ball is void without the scoreboard's word",
        file=_ALIGN,
        old="    return (is_settled or not slot.is_tail) and versions",
        new="    return versions",
    ),
    Mutant(
        name="nothing is ever void",
        file=_ALIGN,
        old='    return (is_settled or not slot.is_tail) and versions.may_step_back(slot.known.key, "void")',
        new="    return False",
    ),
    Mutant(
        name="a key is used again after a void",
        file=_VERSIONS,
        old="            for key in self.known:\n",
        new="            for key in [key for key, event in self.known.items() if event.is_live]:\n",
    ),
    Mutant(
        name="positions are not counted anew",
        file=_ALIGN,
        old=f"{_HELD}                versions.put(known.key, known.content, known.source_event_id, position)",
        new=f"{_HELD}                versions.put(known.key, known.content, known.source_event_id, known.position)",
    ),
    Mutant(
        name="a result counts at the first look",
        file=_ALIGN,
        old="    is_grave = seen.kind == Kind.RESULT or (",
        new="    is_grave = (",
    ),
    Mutant(
        name="the walk stops at the first known ball, whatever the totals say",
        file=_READ,
        old="        agrees = not _news(seen.differences, state.differences)",
        new="        agrees = True",
    ),
    Mutant(
        name="a start is no full sync",
        file=_READ,
        old="        return Depth(is_whole=True)\n    if (",
        new="        return Depth()\n    if (",
    ),
    Mutant(
        name="sequence numbers have holes", file=_UPDATE, old="            seq += 1\n", new="            seq += 2\n"
    ),
    Mutant(
        name="the snapshot is stored and the events are not",
        file=_UPDATE,
        old="    events, seq = _save_events(connection, update, before)",
        new="    events, seq = (), before.seq",
    ),
    Mutant(
        name="totals that disagree are not told",
        file=_TOTALS,
        old="    return (*_mismatches(differences), *_gaps(state))",
        new="    return tuple(_gaps(state))",
    ),
    Mutant(
        name="a gap is silent",
        file=_TOTALS,
        old="    return (*_mismatches(differences), *_gaps(state))",
        new="    return tuple(_mismatches(differences))",
    ),
    Mutant(
        name="what fell out of a window is not summed up",
        file=_TOTALS,
        old="    if not sighting.is_window:\n        return {}",
        new="    if sighting:\n        return {}",
    ),
    Mutant(
        name="a sum stays when its balls turn up",
        file=_SPORT,
        old="withdrawn=(*reached.withdrawn, *gone)",
        new="withdrawn=reached.withdrawn",
    ),
    Mutant(
        name="an older board is served at once",
        file=_SPORT,
        old="    if before is None or is_further or",
        new="    if True or before is None or is_further or",
    ),
    Mutant(
        name="unchanged pages end a poll that should confirm a step back",
        file=_PIPELINE,
        old="state.sync is SyncState.IN_SYNC and not state.suspects",
        new="state.sync is SyncState.IN_SYNC",
    ),
    Mutant(
        name="unchanged pages end a full poll",
        file=_PIPELINE,
        old="if _is_settled(state) and not is_full else {}",
        new="if _is_settled(state) else {}",
    ),
    Mutant(
        name="pages that a poll did not go by are remembered",
        file=_CLIENT,
        old="        self.digests.clear()\n",
        new="",
    ),
    Mutant(
        name="one unchanged page speaks for all",
        file=_CLIENT,
        old="        return all(outcome is _Outcome.UNCHANGED",
        new="        return any(outcome is _Outcome.UNCHANGED",
    ),
)
MUTANTS = (*_DATA, *FOOTBALL, *RESILIENCE, *WATCHING)


async def fate(mutant: Mutant) -> str | None:
    """Return who caught a mutant; `None` when nobody did."""
    with tempfile.TemporaryDirectory(prefix="longstop-mutant-") as home:
        _breed(mutant, Path(home))
        for name, command in mutant.hunters:
            if await _fails(command, Path(home)):
                return name
    return None


def _breed(mutant: Mutant, home: Path) -> None:
    shutil.copytree(SOURCE, home / "longstop", ignore=shutil.ignore_patterns("__pycache__"))
    (home / "longstop" / mutant.file).write_text(mutated(mutant))


async def _fails(command: Sequence[str], home: Path) -> bool:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *command,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(home), "PYTHONDONTWRITEBYTECODE": "1"},
        stdin=DEVNULL,
        stdout=PIPE,
        stderr=PIPE,
    )
    try:
        async with asyncio.timeout(RUN_WITHIN):
            await process.communicate()
    except TimeoutError:
        return True  # a product that hangs has been caught too
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return process.returncode != 0


async def mutants(chosen: Sequence[Mutant]) -> Report:
    gate = asyncio.Semaphore(AT_ONCE)

    async def judged(mutant: Mutant) -> str | None:
        async with gate:
            caught_by = await fate(mutant)
        say(f"{f'caught by the {caught_by}' if caught_by else 'LIVES'}: {mutant.name}")
        return caught_by

    for mutant in chosen:
        mutated(mutant)
    for name, command in {hunter for mutant in chosen for hunter in mutant.hunters}:
        if await _fails(command, ROOT / "src"):
            raise UsageError(f"the tests of the {name} fail without any mutant: mend that first")
    fates = await asyncio.gather(*(judged(mutant) for mutant in chosen))
    living = [mutant.name for mutant, caught_by in zip(chosen, fates, strict=True) if caught_by is None]
    figures = {"caught": len(chosen) - len(living), "total": len(chosen), "by_model": fates.count("model")}
    return Report(suite="mutants", is_ok=not living, figures=figures, details=living)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="scripts/mutants", description="Break one thing at a time and see who notices."
    )
    parser.add_argument("words", nargs="*", help="only mutants whose name has one of these words")
    words = parser.parse_args().words
    chosen = [mutant for mutant in MUTANTS if not words or any(word in mutant.name for word in words)]
    return run("mutants", mutants(chosen))


if __name__ == "__main__":
    sys.exit(main())
