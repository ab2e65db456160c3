"""A third sport as a plug-in: tennis, from a site that Longstop knows nothing of, with no edit under `src/`.

The package in `tests/plugins` is only put on the path. Real processes discover its match, poll it, store corrections,
go on after a SIGKILL, and serve it. The match is played once; each test checks one part of the recording.
"""

import asyncio
import json
import os
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import psutil
import pytest
from msgspec import Struct

from longstop.settings import OUR_PREFIXES
from longstop.storage.directory import DataDirectory
from longstop_lab.deployment import reserve_port
from tests.acceptance.harness import Event, logged, read_log
from tests.tennis_site import AWAY, HOME, Court, TennisSite, serving

ROOT = Path(__file__).parents[2]
PLUGINS = ROOT / "tests" / "plugins"
MAX_LINES = 250
SETTINGS = {
    "LOG_LEVEL": "DEBUG",
    "POLLING_INTERVAL_SECONDS": "0.2",
    "BUSY_INTERVAL_SECONDS": "0.2",
    "DISCOVERY_INTERVAL_SECONDS": "0.2",
    "LONGSTOP_SETTLED_SECONDS": "0",
    "PROMETHEUS_PORT": "0",
}
PATIENCE_SECONDS = 30.0
REF = "courtside_final"
MATCH = f"/tennis-data/match-info/{REF}"

pytestmark = pytest.mark.timeout(120)


# --- what runs --------------------------------------------------------------------------------------------------------


class CommandOutput(Struct, frozen=True, kw_only=True):
    """What a command printed, and its exit code."""

    code: int
    out: str
    error: str


class Longstop:
    """A `longstop up` on one data directory, its API, and the verbs beside it."""

    def __init__(self, home: Path, port: int, plugins: Path | None) -> None:
        self.home = home
        self.log = home / f"longstop-{'with' if plugins else 'without'}-plugin.log"
        foreign = {name: value for name, value in os.environ.items() if not name.startswith(OUR_PREFIXES)}
        self._env = {
            **foreign,
            **SETTINGS,
            "LONGSTOP_DATA": str(home / "data"),
            "LONGSTOP_SOURCES": str(home / "sources.yaml"),
            "LONGSTOP_API_PORT": str(port),
            "PYTHONPATH": str(plugins or ""),
            "COLUMNS": "160",
        }
        self._api = httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=10, trust_env=False)
        self._pid = 0

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        DataDirectory.open(self.home / "data")  # `longstop token` does not create it
        token = await self.run("token")
        self._api.headers["Authorization"] = f"Bearer {token.out.strip()}"
        with self.log.open("wb") as out:
            up = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "longstop", "up"), env=self._env, stdin=DEVNULL, stdout=out, stderr=out
            )
        self._pid = up.pid
        try:
            await self.until(self._is_ready, "ready")
            yield
        except BaseException:
            print(self.log.read_text(errors="replace"))
            raise
        finally:
            up.send_signal(signal.SIGTERM)
            await up.wait()
            await self._api.aclose()

    async def run(self, *verb: str | Path) -> CommandOutput:
        """Run another verb to its end."""
        arguments = (sys.executable, "-m", "longstop", *map(str, verb))
        process = await asyncio.create_subprocess_exec(
            *arguments, env=self._env, stdin=DEVNULL, stdout=PIPE, stderr=PIPE
        )
        out, error = await asyncio.wait_for(process.communicate(), PATIENCE_SECONDS)
        return CommandOutput(code=process.returncode or 0, out=out.decode(), error=error.decode())

    async def get(self, path: str, **headers: str) -> httpx.Response:
        return await self._api.get(path, headers=headers)

    async def metrics(self) -> str:
        port = logged(read_log(self.log), "metrics.served")[-1]["port"]
        async with httpx.AsyncClient(trust_env=False) as client:
            return (await client.get(f"http://127.0.0.1:{port}/metrics")).text

    async def versions(self) -> list[Event]:
        """Return every version of every event, page by page; nothing before the match is known."""
        found: list[Event] = []
        while True:
            answer = await self.get(f"{MATCH}/events?limit=20&after={len(found)}")
            if answer.status_code != 200:
                return []
            found += answer.json()["events"]
            if not answer.json()["has_more"]:
                return found

    def scraper(self) -> psutil.Process | None:
        children = psutil.Process(self._pid).children()
        return next((child for child in children if child.cmdline()[-1:] == ["scraper"]), None)

    async def until(self, happens: Callable[[], Awaitable[bool]], what: str) -> None:
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                while not await happens():  # noqa: ASYNC110 - it happens in other processes
                    await asyncio.sleep(0.05)
        except TimeoutError:
            pytest.fail(f"not within {PATIENCE_SECONDS:g} s: {what}")

    async def until_stored(self, play_id: str, op: str = "insert") -> None:
        """Wait for a version of an event, by the site's id of it."""

        async def is_stored() -> bool:
            return any((each["source_event_id"], each["op"]) == (play_id, op) for each in await self.versions())

        await self.until(is_stored, f"{op} of {play_id}")

    async def _is_ready(self) -> bool:
        try:
            return (await self.get("/ready")).status_code == 200
        except httpx.TransportError:
            return False


# --- the play ---------------------------------------------------------------------------------------------------------


class Recording(Struct, frozen=True, kw_only=True):
    """What the play left behind."""

    home: Path
    site: TennisSite
    #: The site's ids of points, by what happened to them.
    ids: dict[str, str]
    #: Every version of every event, as the API serves them; those that were stored when the scraper was killed.
    events: list[Event]
    events_at_kill: list[Event]
    scrapers: tuple[int, int]
    answers: dict[str, httpx.Response]
    metrics: str
    outputs: dict[str, CommandOutput]
    log: list[Event]

    @property
    def court(self) -> Court:
        return self.site.courts["final"]

    def versions(self, play: str) -> list[Event]:
        return [event for event in self.events if event["source_event_id"] == self.ids[play]]


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    """Return the recording of a match that is read with the plug-in on the path."""
    return asyncio.run(record_match(tmp_path_factory.mktemp("courtside")))


async def record_match(home: Path) -> Recording:
    final, tomorrow = Court("final"), Court("tomorrow", "Cleo", "Dora")
    tomorrow.status = "upcoming"
    site = TennisSite(final, tomorrow)
    async with serving(site):
        with reserve_port() as held:
            longstop = Longstop(home, held.getsockname()[1], PLUGINS)
            (home / "sources.yaml").write_text(site.described())
            async with longstop.running():
                ids = await play_first_games(longstop, final)
                events_at_kill, scrapers = await kill_scraper(longstop, final)
                await play_to_the_end(longstop, final)
                events, answers, metrics = (
                    await longstop.versions(),
                    await answers_of(longstop),
                    await longstop.metrics(),
                )
                outputs = await command_outputs(longstop, site)
    return Recording(
        home=home,
        site=site,
        ids=ids,
        events=events,
        events_at_kill=events_at_kill,
        scrapers=scrapers,
        answers=answers,
        metrics=metrics,
        outputs=outputs,
        log=read_log(longstop.log),
    )


async def play_first_games(longstop: Longstop, court: Court) -> dict[str, str]:
    """Play a game; then correct a point that went to the wrong side, take one back, and play it again."""
    court.win_game(HOME)
    court.point(HOME, "15-0")
    ids = {"corrected": court.point(HOME, "30-0")}
    await longstop.until_stored(ids["corrected"])
    court.correct(AWAY, "15-15")
    await longstop.until_stored(ids["corrected"], "update")
    ids["taken back"] = court.point(AWAY, "15-30")
    await longstop.until_stored(ids["taken back"])
    court.take_back()
    await longstop.until_stored(ids["taken back"], "void")
    ids["replayed"] = court.point(HOME, "30-15")
    await longstop.until_stored(ids["replayed"])
    return ids


async def kill_scraper(longstop: Longstop, court: Court) -> tuple[list[Event], tuple[int, int]]:
    """Kill the scraper, and let the match go on while it is dead; return what was stored, and both scrapers."""
    before = longstop.scraper()
    assert before is not None
    before.kill()
    events = await longstop.versions()
    court.point(HOME, "40-15")
    court.point(HOME, "game")
    court.end_game(HOME)
    await longstop.until_stored(court.plays[-1]["id"])
    after = longstop.scraper()
    assert after is not None
    return events, (before.pid, after.pid)


async def play_to_the_end(longstop: Longstop, court: Court) -> None:
    win_set(court)
    court.begin_set()
    await longstop.until_stored(court.plays[-1]["id"])
    win_set(court)
    court.end(HOME)

    async def is_over() -> bool:
        return bool((await longstop.get(MATCH)).json()["status"] == "completed")

    await longstop.until(is_over, "the match is completed")


def win_set(court: Court) -> None:
    while court.sets[-1][0] < 6:
        court.win_game(HOME)
    court.end_set(HOME)


async def answers_of(longstop: Longstop) -> dict[str, httpx.Response]:
    paths = {
        "match": MATCH,
        "current events": f"{MATCH}/events?current=true",
        "delta": f"{MATCH}/delta?since=1",
        "other match": "/tennis-data/match-info/courtside_tomorrow",
        "as football": f"/football-data/match-info/{REF}",
        "matches": "/tennis-data/matches",
        "openapi": "/openapi.json",
        "health": "/health",
    }
    answers = {name: await longstop.get(path) for name, path in paths.items()}
    tag = answers["match"].headers["ETag"]
    return answers | {"unchanged match": await longstop.get(MATCH, **{"If-None-Match": tag})}


async def command_outputs(longstop: Longstop, site: TennisSite) -> dict[str, CommandOutput]:
    outputs = {"matches": await longstop.run("matches"), "events": await longstop.run("events", REF)}
    bodies = {"list": "/matches", "live": "/matches/final", "points": "/matches/final/points"}
    for resource, path in bodies.items():
        body = longstop.home / f"{resource}.json"
        body.write_bytes(site.body(path))
        outputs[f"parse {resource}"] = await longstop.run("parse", "courtside", resource, body)
    return outputs


class WithoutPlugin(Struct, frozen=True, kw_only=True):
    """What a Longstop without the plug-in makes of the same data directory."""

    answers: dict[str, httpx.Response]
    outputs: dict[str, CommandOutput]
    log: list[Event]


@pytest.fixture(scope="module")
def without_plugin(recording: Recording) -> WithoutPlugin:
    """Return what is left once the plug-in is gone, and a source of another sport has the name of its source."""
    return asyncio.run(restart_without_plugin(recording))


async def restart_without_plugin(recording: Recording) -> WithoutPlugin:
    async with serving(recording.site):
        with reserve_port() as held:
            (recording.home / "sources.yaml").write_text(recording.site.described(adapter="sofascore"))
            longstop = Longstop(recording.home, held.getsockname()[1], None)
            async with longstop.running():
                paths = ("/health", "/football-data/matches", f"/football-data/match-info/{REF}", MATCH)
                answers = {path: await longstop.get(path) for path in paths}
                outputs = {"matches": await longstop.run("matches"), "events": await longstop.run("events", REF)}

                async def is_listing() -> bool:
                    return bool(logged(read_log(longstop.log), "listing.failed"))

                await longstop.until(is_listing, "the scraper goes on to its listing")
    return WithoutPlugin(answers=answers, outputs=outputs, log=read_log(longstop.log))


# --- what came of it --------------------------------------------------------------------------------------------------


def test_the_plug_in_is_small_and_the_product_does_not_know_it() -> None:
    files = [*PLUGINS.glob("longstop_tennis/*.py"), *PLUGINS.glob("*.dist-info/entry_points.txt")]
    lines = {file.name: len(file.read_text().splitlines()) for file in files}
    product = [*(ROOT / "src").rglob("*.py"), *(ROOT / "src").rglob("*.sql"), ROOT / "pyproject.toml"]

    assert {"sport.py", "source.py", "entry_points.txt"} < lines.keys()
    assert sum(lines.values()) < MAX_LINES, lines
    assert not [file for file in product if "tennis" in file.read_text().lower()]


def test_a_match_is_discovered_and_polled_to_its_end(recording: Recording) -> None:
    discovered = {event["ref"] for event in logged(recording.log, "match.discovered")}
    finished = logged(recording.log, "match.finished", ref=REF)

    assert discovered == {REF, "courtside_tomorrow"}
    assert [event["result"] for event in finished] == ["home won 6-0 6-0"]
    assert not logged(recording.log, "task.failed")
    assert not logged(recording.log, "poll.failed")


def test_everything_that_was_played_is_stored_once(recording: Recording) -> None:
    last = {event["source_event_id"]: event for event in recording.events}
    live = {name: event for name, event in last.items() if event["op"] != "void"}
    result = live.pop("result")
    stored = [(name, event["kind"], event["data"]) for name, event in live.items()]

    assert sorted(stored) == sorted((each["id"], each["type"], each["won"]) for each in recording.court.plays)
    assert result["data"] == {"winner": "home", "sets": [[6, 0], [6, 0]]}
    assert len({event["key"] for event in recording.events}) == len(last)
    assert [event["seq"] for event in recording.events] == list(range(1, len(recording.events) + 1))
    assert {event["op"]: event["rev"] for event in recording.events} == {"insert": 1, "update": 2, "void": 2}


def test_a_correction_is_a_new_version_of_the_same_event(recording: Recording) -> None:
    wrong, right = recording.versions("corrected")

    assert (wrong["key"], wrong["op"], wrong["data"]) == ("point:1:2:2", "insert", {"winner": "home", "score": "30-0"})
    assert (right["key"], right["op"], right["data"]) == ("point:1:2:2", "update", {"winner": "away", "score": "15-15"})


def test_a_point_that_is_taken_back_is_void_and_its_key_is_not_used_again(recording: Recording) -> None:
    played, gone = recording.versions("taken back")
    [again] = recording.versions("replayed")

    assert (played["key"], gone["key"], gone["op"]) == ("point:1:2:3", "point:1:2:3", "void")
    assert (again["key"], again["set"], again["game"], again["nth"]) == ("point:1:2:4", 1, 2, 4)


def test_a_killed_scraper_goes_on_where_it_was(recording: Recording) -> None:
    before, after = recording.scrapers
    epochs = [event["epoch"] for event in logged(recording.log, "match.claimed", ref=REF)]

    assert before != after
    assert epochs == [1, 2]
    assert recording.events[: len(recording.events_at_kill)] == recording.events_at_kill


def test_the_match_is_served_with_its_age(recording: Recording) -> None:
    match, unchanged = recording.answers["match"], recording.answers["unchanged match"]
    served = match.json()
    about = served.pop("_metadata")

    assert served == {
        "matchId": about_number(recording),
        "status": "completed",
        "title": "Ada v Bea",
        "sets": [[6, 0], [6, 0]],
        "result": "home won 6-0 6-0",
    }
    assert (about["phase"], about["sync"], about["open_findings"]) == ("completed", "in_sync", 0)
    assert float(match.headers["X-Data-Age-Seconds"]) < PATIENCE_SECONDS
    assert match.headers["X-Data-Sync"] == "in_sync"
    assert unchanged.status_code == 304
    assert "result" in recording.answers["delta"].json()
    assert recording.answers["other match"].json()["title"] == "Cleo v Dora"


def test_the_current_events_are_in_the_order_of_play(recording: Recording) -> None:
    keys = [event["key"] for event in recording.answers["current events"].json()["events"]]

    assert keys[:6] == [*(f"point:1:1:{nth}" for nth in (1, 2, 3, 4)), "game:1:1", "point:1:2:1"]
    assert keys[-3:] == ["game:2:6", "set:2", "result"]


def test_the_sport_has_routes_and_its_matches_are_no_other_sports(recording: Recording) -> None:
    paths = recording.answers["openapi"].json()["paths"]
    ours = {path.removeprefix("/tennis-data") for path in paths if path.startswith("/tennis-data")}
    others = {path.removeprefix("/football-data") for path in paths if path.startswith("/football-data")}
    events = paths["/tennis-data/match-info/{match_id}/events"]["get"]["responses"]["200"]
    as_football = recording.answers["as football"]

    assert ours == others > set()
    assert events["content"]["application/json"]["example"]["events"][0]["key"] == "point:1:3:2"
    assert (as_football.status_code, as_football.json()) == (
        404,
        {"error": f"Match {REF} is tennis: ask /tennis-data/match-info/{about_number(recording)}."},
    )


def test_health_and_metrics_know_the_match(recording: Recording) -> None:
    health = recording.answers["health"].json()
    entries = {entry["match_id"]: entry for entry in health["per_match_status"]}
    listed = {entry["match_id"]: entry for entry in recording.answers["matches"].json()["matches"]}

    assert health["status"] == "healthy"
    assert entries[REF]["url"] == listed[REF]["url"] == f"/tennis-data/match-info/{about_number(recording)}"
    assert (entries[REF]["health_status"], entries[REF]["error_count"]) == ("healthy", 0)
    assert (listed[REF]["status"], listed["courtside_tomorrow"]["status"]) == ("completed", "upcoming")
    assert f'match_id="{REF}"' in recording.metrics


def test_the_command_line_shows_the_match_and_its_events(recording: Recording) -> None:
    matches, events = recording.outputs["matches"], recording.outputs["events"]

    assert (matches.code, events.code) == (0, 0)
    assert REF in matches.out
    assert "Ada v Bea" in matches.out
    assert len([line for line in events.out.splitlines() if "│" in line]) == len(recording.events)
    assert "point to away, 15-15" in events.out
    assert "home won 6-0 6-0" in events.out


def test_recorded_bodies_are_read_offline(recording: Recording) -> None:
    read = {name: json.loads(recording.outputs[f"parse {name}"].out) for name in ("list", "live", "points")}

    assert [board["source_id"] for board in read["list"]["boards"]] == ["final", "tomorrow"]
    assert (read["live"]["home"], read["live"]["sets"]) == ("Ada", [[6, 0], [6, 0]])
    assert [each["source_event_id"] for each in read["points"]] == [each["id"] for each in recording.court.plays]


def test_without_the_plug_in_only_its_own_matches_cannot_be_read(without_plugin: WithoutPlugin) -> None:
    failed = logged(without_plugin.log, "store.failed", ref=REF)
    answers, sentence = without_plugin.answers, "sport 'tennis' is not installed"

    assert failed
    assert sentence in failed[0]["error_message"]
    assert not logged(without_plugin.log, "process.died")
    assert not logged(without_plugin.log, "task.failed")
    assert (answers["/health"].status_code, answers["/football-data/matches"].json()["matches"]) == (200, [])
    assert answers[f"/football-data/match-info/{REF}"].status_code == answers[MATCH].status_code == 404
    assert "no package for that sport is installed" in answers[f"/football-data/match-info/{REF}"].text
    assert (without_plugin.outputs["matches"].code, REF in without_plugin.outputs["matches"].out) == (0, True)
    assert (without_plugin.outputs["events"].code, without_plugin.outputs["events"].out) == (74, "")
    assert sentence in without_plugin.outputs["events"].error


def about_number(recording: Recording) -> int:
    """Return our number of the match."""
    number: int = recording.answers["current events"].json()["matchId"]
    return number
