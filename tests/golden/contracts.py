"""Builds each golden document from the current code, by the name of its file."""

import asyncio
import json
import shutil
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from tests.golden import product
from tests.golden.files import DIRECTORIES
from tests.golden.product import Plan
from tests.golden.shape import shape
from tests.golden.tables import Tables, dump

#: All kinds of event of both sports, from all sources, with corrections.
MATCHES = {
    "crex": Plan(source="crex", seed=7, index=5, every=6),
    "espncricinfo": Plan(source="espncricinfo", seed=7, index=3, every=6),
    "sofascore_league": Plan(source="sofascore", seed=9, index=6),
    "sofascore_shoot_out": Plan(source="sofascore", seed=9, index=1),
}
#: Objects in responses whose keys are data: players, periods, statistics, sources.
MAPS = frozenset(
    f"{prefix}{name}"
    for prefix in ("", ".snapshots[].payload")
    for name in (".players", ".statistics", ".statistics{}", ".processes[].listings")
)
#: Parts of the OpenAPI document that are prose or change with every release.
_PROSE = frozenset({"description", "summary", "version"})


def openapi() -> Any:
    return _without_prose(product.openapi())


def _without_prose(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_prose(each) for each in value]
    if not isinstance(value, dict):
        return value
    # A property may have this name as well; then its value is not text.
    kept = {name: each for name, each in value.items() if not (name in _PROSE and isinstance(each, str))}
    return {name: shape(each) if name == "example" else _without_prose(each) for name, each in kept.items()}


def match(plan: Plan) -> dict[str, Any]:
    return asyncio.run(_match(plan))


async def _match(plan: Plan) -> dict[str, Any]:
    """Return what is stored of a match in sync."""
    with TemporaryDirectory(prefix="longstop-golden-") as home:
        await product.poll(Path(home), plan)
        tables = dump(Path(home))
        [stored] = tables["matches"]
        async with product.client(Path(home), product.START) as client:
            answer = await client.get(f"/{stored['sport']}-data/match-info/1")
    findings = [each for each in tables["findings"] if each["closed_at"] is None]
    return {
        "match": {name: stored[name] for name in ("source", "source_id", "sport", "phase", "status", "title")},
        "events": live_events(tables),
        "findings": [{"kind": each["kind"], "place": each["place"]} for each in findings],
        "names": [{name: each[name] for name in ("kind", "key", "name")} for each in tables["names"]],
        "payload": {name: value for name, value in answer.json().items() if name != "_metadata"},
        "payload_checksum": tables["snapshots"][-1]["checksum"],
    }


def live_events(tables: Tables, match_id: int = 1) -> list[dict[str, Any]]:
    """Return the current version of each event without void ones; earlier versions are not golden."""
    current = {(each["key"], each["rev"]) for each in tables["events"] if each["match_id"] == match_id}
    shown = ("key", "position", "source_event_id", "content", "content_hash")
    live = [
        {name: each[name] for name in shown}
        for each in tables["event_versions"]
        if each["match_id"] == match_id and (each["key"], each["rev"]) in current and each["op"] != "void"
    ]
    return sorted(live, key=lambda each: [(len(part), part) for part in each["key"].split(":")])


def metrics() -> dict[str, Any]:
    """Return all metric families with their labels, and the series that exist at start."""
    families = {
        family.name: {
            "type": family.type,
            "labels": sorted({label for sample in family.samples for label in sample.labels}),
            "samples": sorted({sample.name for sample in family.samples}),
        }
        for family in text_string_to_metric_families(product.metrics())
    }
    first = {
        f"{sample.name} {' '.join(f'{name}={value}' for name, value in sorted(sample.labels.items()))}".rstrip()
        for family in text_string_to_metric_families(product.first_metrics())
        for sample in family.samples
    }
    return {"families": families, "from_the_start": sorted(first)}


def log_events() -> dict[str, Any]:
    events = [{"name": name, "severity": said, "fields": sorted(fields)} for name, said, fields in product.log_events()]
    return {"events": sorted(events, key=lambda each: str(each["name"])), "every_line": sorted(product.log_line())}


def command_line() -> dict[str, Any]:
    return {"verbs": product.verbs(), "exit_codes": product.exit_codes()}


#: One address of every GET route of the API; 1 is a match from crex, 2 from espncricinfo, 3 from sofascore.
ANSWERED = (
    "/health",
    "/live",
    "/ready",
    "/recoveries",
    "/status",
    "/status/history",
    "/admin/commands/1",
    "/cricket-data/matches",
    "/cricket-data/match-info/1",
    "/cricket-data/match-info/1/events",
    "/cricket-data/match-info/1/events?current=true",
    "/cricket-data/match-info/1/history",
    "/cricket-data/match-info/1/delta",
    "/cricket-data/match-info/1/delta?since=44",
    "/cricket-data/match-info/1/findings",
    "/cricket-data/match-info/2",
    "/cricket-data/match-info/2/events",
    "/cricket-data/match-info/2/findings",
    "/cricket-data/match-info/999",
    "/football-data/matches",
    "/football-data/match-info/3",
    "/football-data/match-info/3/events",
    "/football-data/match-info/3/events?current=true",
    "/football-data/match-info/3/history",
    "/football-data/match-info/3/delta",
    "/football-data/match-info/3/findings",
)


def answers() -> dict[str, Any]:
    """Return the shapes of the API's responses for a data directory."""
    with TemporaryDirectory(prefix="longstop-golden-") as home:
        name = directory_names()[-1]
        return asyncio.run(_answers(copied(name, Path(home)), moment_of(name)))


async def _answers(directory: Path, now: datetime) -> dict[str, Any]:
    await product.migrate(directory)
    found = {}
    async with product.client(directory, now) as client:
        for path in ANSWERED:
            answer = await client.get(path)
            headers, body = sorted(answer.headers.keys()), shape(answer.json(), MAPS)
            found[path] = {"status": answer.status_code, "headers": headers, "body": body}
    return found


def directory_names() -> list[str]:
    """Return the recorded data directories, oldest first."""
    return sorted(path.stem for path in DIRECTORIES.glob("*.json"))


def copied(name: str, home: Path) -> Path:
    """Return a writable copy of a recorded data directory."""
    return Path(shutil.copytree(DIRECTORIES / name, home / name))


def moment_of(name: str) -> datetime:
    """Return when a data directory was recorded."""
    return datetime.fromisoformat(json.loads((DIRECTORIES / f"{name}.json").read_text(encoding="utf-8"))["now"])


DOCUMENTS: Mapping[str, Callable[[], Any]] = {
    "openapi.json": openapi,
    "answers.json": answers,
    "metrics.json": metrics,
    "log_events.json": log_events,
    "settings.json": product.settings,
    "command_line.json": command_line,
    **{f"matches/{name}.json": partial(match, plan) for name, plan in MATCHES.items()},
}
