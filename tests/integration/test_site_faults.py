"""A site that serves wrong data: how it looks on the wire, and that the pipeline neither stores it nor stops."""

import asyncio
import gzip
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from curl_cffi import CurlOpt
from curl_cffi.requests import AsyncSession

from longstop.api.match_documents import event_entry
from longstop.clock import SystemClock
from longstop.fetching.guarded_and_replaceable_fetcher import FetchPolicy, GuardedFetcher, GuardPolicy
from longstop.fetching.http import HttpFetcher
from longstop.matches.live_match_and_feeds import LiveMatches
from longstop.matches.pipeline import Pipeline
from longstop.matches.source_client_and_poll_attempt import SourceClient
from longstop.model.polling_status import SyncState
from longstop.resilience.breaker import match_policy
from longstop.resilience.retry_policy import RetryPolicy
from longstop.sources.base import SourceConfig
from longstop.sources.crex.source import CrexSource
from longstop.sports.cricket.sport import Cricket
from longstop.supervision.memory_for_new_matches import MemoryCheck
from longstop.telemetry.bus import Bus
from longstop.watching.feed_polling import WatchContext
from longstop.watching.poll_dispatcher import Dispatcher
from longstop.watching.poll_intervals_and_frozen_pages import Cadence, WatchRules
from longstop.watching.source_scheduler import Scheduler
from longstop_lab.simulator.faults import Fault, FaultKind
from longstop_lab.simulator.judge import TruthComparison, judge
from longstop_lab.simulator.service import RunningSimulator, SimulatorOptions, running_simulator
from longstop_lab.simulator.truth import read_truth
from tests.memory import MemoryHot, MemorySink, MemoryStore

LIST = "/api/v3/getLiveMatches"
STATE = "/api/v3/getSV3"
CARD = "/api/v3/getSC4"
FEED = "/commentary/v1/getBallFeeds"
NAMES = "/mapping/getHomeMapData"
SPEED = 200.0
# The site's event loop counts in whole milliseconds, so each of its pauses may end that much early.
TIMER_GRAIN = 0.001


# --- on the wire ----------------------------------------------------------------------------------------------------


class Visitor:
    """Asks a running site, and sets what is wrong with it."""

    def __init__(self, site: RunningSimulator, session: AsyncSession[Any]) -> None:
        self.site = site
        self._session = session
        board = next(board for board in site.world.boards.values() if board.begun and not board.result)
        self.key = board.game.key
        self.teams = tuple(side.key for side in board.game.sides)

    def suffer(self, kind: FaultKind, **more: Any) -> None:
        self.site.faults.add(Fault(kind=kind, **more), SystemClock().now())

    async def get(self, path: str) -> Any:
        """Return the answer to a question about the match."""
        if path in (FEED, NAMES):
            players = [player.key for player in self.site.world.boards[self.key].game.sides[0].players]
            question = {"matchKey": self.key, "p": players, "t": self.teams}
            return await self._session.post(self.site.base_url + path, data=msgspec.json.encode(question))
        return await self._session.get(f"{self.site.base_url}{path}?key={self.key}")

    async def json(self, path: str) -> Any:
        return msgspec.json.decode((await self.get(path)).content)


@pytest.fixture
async def visitor() -> AsyncIterator[Visitor]:
    options = SimulatorOptions(matches=3, seed=3, speed=SPEED)
    async with running_simulator(options) as site, AsyncSession(trust_env=False, timeout=10) as session:
        site.world.advance(SystemClock().now())
        yield Visitor(site, session)


async def test_a_frozen_feed_repeats_its_bytes_while_the_match_goes_on(visitor: Visitor) -> None:
    visitor.suffer(FaultKind.FROZEN, path=STATE)

    first = await visitor.get(STATE)
    version = visitor.site.world.boards[visitor.key].version
    await until(lambda: visitor.site.world.boards[visitor.key].version > version + 1)
    second = await visitor.get(STATE)
    visitor.site.faults.clear()
    healed = await visitor.get(STATE)

    assert first.content == second.content != healed.content


async def test_an_older_copy_shows_what_was_shown_then(visitor: Visitor) -> None:
    before = await visitor.json(FEED)
    then = visitor.site.world.seconds
    await until(lambda: visitor.site.world.seconds > then + 150)
    visitor.site.world.freeze(SystemClock().now())
    visitor.suffer(FaultKind.OLDER, seconds=visitor.site.world.seconds - then)

    older = await visitor.json(FEED)
    visitor.site.faults.clear()
    now = await visitor.json(FEED)

    assert [item["id"] for item in older] == [item["id"] for item in before]
    assert now[0]["id"] > older[0]["id"]


async def test_a_slow_drip_sends_byte_by_byte(visitor: Visitor) -> None:
    whole = await visitor.get(CARD + "Unknown")
    visitor.suffer(FaultKind.DRIP, seconds=0.02)
    begun = time.monotonic()

    dripped = await visitor.get(CARD + "Unknown")

    assert dripped.content == whole.content
    assert time.monotonic() - begun >= (0.02 - TIMER_GRAIN) * len(whole.content)


async def test_a_gzip_bomb_is_small_on_the_wire_and_two_hundred_megabytes_behind_it(visitor: Visitor) -> None:
    visitor.suffer(FaultKind.BOMB)

    async with AsyncSession(curl_options={CurlOpt.HTTP_CONTENT_DECODING: 0}, trust_env=False) as raw:
        answer = await raw.get(visitor.site.base_url + LIST)

    assert answer.headers["Content-Encoding"] == "gzip"
    assert len(answer.content) < 300_000
    assert len(gzip.decompress(answer.content)) == 200_000_000


async def test_a_renamed_field_is_gone_everywhere(visitor: Visitor) -> None:
    visitor.suffer(FaultKind.RENAMED, field="j")

    state, listing = await visitor.json(STATE), await visitor.json(LIST)

    assert ("j" in state, "jNew" in state) == (False, True)
    assert all("j" not in entry and "jNew" in entry for entry in listing.values())


async def test_a_moved_endpoint_is_unknown_at_its_old_path(visitor: Visitor) -> None:
    visitor.suffer(FaultKind.MOVED, path=STATE)

    state, card = await visitor.get(STATE), await visitor.get(CARD)

    assert (state.status_code, card.status_code) == (404, 200)
    assert msgspec.json.decode(state.content) == {"error": "Not a valid Request"}


async def test_swapped_keys_are_swapped_in_state_list_feed_and_card_but_names_are_not(visitor: Visitor) -> None:
    visitor.site.world.freeze(SystemClock().now())
    good = {path: await visitor.json(path) for path in (STATE, LIST, FEED, CARD)}
    visitor.suffer(FaultKind.SWAPPED)

    bad = {path: await visitor.json(path) for path in (STATE, LIST, FEED, CARD)}

    other = dict(zip(visitor.teams, reversed(visitor.teams), strict=True))
    assert bad[STATE]["a"] == ".".join(reversed(good[STATE]["a"].split(".")))
    assert bad[LIST][visitor.key]["a"] == bad[STATE]["a"]
    assert [each["bt"] for each in bad[STATE]["rb"]] == [other[each["bt"]] for each in good[STATE]["rb"]]
    assert [each["c"] for each in bad[CARD]] == [other[each["c"]] for each in good[CARD]]
    ends = [(item, was) for item, was in zip(bad[FEED], good[FEED], strict=True) if item["type"] == "o"]
    assert ends
    assert all(item["tfkey"] == other[was["tfkey"]] and item["team"] == was["team"] for item, was in ends)


async def test_zero_filled_innings_stand_in_state_list_and_card(visitor: Visitor) -> None:
    visitor.suffer(FaultKind.ZEROED)

    state, listing, card = await visitor.json(STATE), await visitor.json(LIST), await visitor.json(CARD)

    assert {state["j"], state["k"], listing[visitor.key]["j"]} == {"0/0(0.0"}
    assert {innings["d"] for innings in card} == {"0/0(0"}


async def test_late_names_leave_every_key_unresolved(visitor: Visitor) -> None:
    good = await visitor.json(NAMES)
    visitor.suffer(FaultKind.NAMELESS)

    bad = await visitor.json(NAMES)

    assert len(good["t"]) == 2
    assert bad == {"p": [], "t": []}


async def test_a_challenge_is_a_captcha_with_status_200(visitor: Visitor) -> None:
    visitor.suffer(FaultKind.CHALLENGE)

    answer = await visitor.get(STATE)

    assert (answer.status_code, answer.headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    assert b"captcha" in answer.content


async def test_a_match_is_missing_from_the_list_and_still_answers_by_itself(visitor: Visitor) -> None:
    visitor.suffer(FaultKind.UNLISTED, match=visitor.key)

    listing, state = await visitor.json(LIST), await visitor.get(STATE)

    assert visitor.key not in listing
    assert len(listing) == 2
    assert state.status_code == 200


async def test_the_status_counts_requests_by_path(visitor: Visitor) -> None:
    for path in (LIST, STATE, STATE):
        await visitor.get(path)

    status = await visitor.json("/_sim/status")

    assert status["requests"] == {LIST: 1, STATE: 2}


# --- through the pipeline -------------------------------------------------------------------------------------------


class Watching:
    """The product's own scheduler, source and fetcher, on a running site; only the store is in memory."""

    def __init__(self, site: RunningSimulator, truth: Path) -> None:
        self.site = site
        self.store = MemoryStore()
        self.sink = MemorySink()
        self._truth = truth
        self._hot = MemoryHot()
        config = _config(site)
        policy = FetchPolicy(hosts=config.hosts, allow_private_addresses=True, deadline_seconds=0.5)
        clock, bus = SystemClock(), Bus([self.sink])
        guards = GuardPolicy(retry=RetryPolicy(attempts=1), canary_seconds=0.1)
        self.fetcher = GuardedFetcher(HttpFetcher(policy, clock), policy, clock=clock, bus=bus, guards=guards)
        client = SourceClient(CrexSource(config), self.fetcher)
        # A missing or unreadable resource is paused for a while; a test need not wait as long as production.
        cadence = Cadence(live=0.1, busy=0.1, in_break=0.1, discovery=0.1, imminent=0.1, completed=0.1, not_found=0.5)
        context = WatchContext(
            pipeline=Pipeline(Cricket(), client=client, store=self.store, bus=bus, clock=clock, scraper_id="node"),
            matches=LiveMatches(self.store, "node-a"),
            hot=self._hot,
            bus=bus,
            clock=clock,
            rules=WatchRules(cadence=cadence, breaker=match_policy(open_seconds=0.5)),
        )
        self.dispatcher = Dispatcher(clock=clock, bus=bus, cap=8)
        self.scheduler = Scheduler(
            "crex", client=client, context=context, dispatcher=self.dispatcher, memory_check=MemoryCheck(0)
        )

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self.dispatcher.run())
            await self.scheduler.run()

    async def restart_all(self) -> None:
        """Forget everything that is not stored: the next poll of each match reads its whole list."""
        for watcher in list(self.scheduler._watches.values()):
            await watcher.match.restart(watcher.feed)

    def verdict(self) -> TruthComparison:
        stored = {
            row.ref.source_id: [event_entry(each, row) for each in self.store.history.get(row.match_id, [])]
            for row in self.store.rows.values()
        }
        return judge(read_truth(self._truth), stored)

    async def until_in_sync(self) -> None:
        """Wait until every match was polled from now on and is in sync."""
        since = SystemClock().now()

        def is_done() -> bool:
            records = [row.record for row in self._hot.rows.values()]
            return len(records) == len(self.site.world.boards) and all(
                record.sync is SyncState.IN_SYNC and record.last_poll_at is not None and record.last_poll_at > since
                for record in records
            )

        await until(is_done)


def _config(site: RunningSimulator) -> SourceConfig:
    urls = dict.fromkeys(("api_url", "content_url", "names_url"), site.base_url)
    return SourceConfig(
        domain_id="crex",
        enabled=True,
        precedence_weight=100,
        adapter_class="crex",
        hosts=(f"127.0.0.1:{site.port}",),
        allow_private_addresses=True,
        permission="our own simulator",
        metadata=urls,
    )


@asynccontextmanager
async def watching(truth: Path) -> AsyncIterator[Watching]:
    options = SimulatorOptions(matches=4, seed=5, speed=SPEED, truth=truth)
    async with running_simulator(options) as site:
        running = Watching(site, truth)
        task = asyncio.create_task(running.run())
        try:
            await running.until_in_sync()
            yield running
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await running.fetcher.aclose()


@pytest.mark.req("EC3", "FLD-5")
@pytest.mark.parametrize(
    "fault",
    [
        Fault(kind=FaultKind.FROZEN),
        Fault(kind=FaultKind.FROZEN, path=FEED),
        Fault(kind=FaultKind.OLDER, seconds=2000),
        Fault(kind=FaultKind.OLDER, seconds=60, share=0.5),
        Fault(kind=FaultKind.DRIP, seconds=0.1),
        Fault(kind=FaultKind.BOMB),
        Fault(kind=FaultKind.RENAMED, field="j"),
        Fault(kind=FaultKind.RENAMED, field="bf"),
        Fault(kind=FaultKind.RENAMED, field="fv"),
        Fault(kind=FaultKind.MOVED, path=FEED),
        Fault(kind=FaultKind.SWAPPED),
        Fault(kind=FaultKind.ZEROED),
        Fault(kind=FaultKind.NAMELESS),
        Fault(kind=FaultKind.CHALLENGE),
        Fault(kind=FaultKind.UNLISTED, path=LIST),
    ],
    ids=lambda fault: "-".join(filter(None, (fault.kind, fault.field, fault.path.rpartition("/")[2]))),
)
async def test_nothing_wrong_is_stored_while_the_fault_lasts_and_the_next_good_poll_goes_on(
    tmp_path: Path, fault: Fault
) -> None:
    async with watching(tmp_path / "truth.jsonl") as running:
        running.site.faults.add(fault, SystemClock().now())
        await asyncio.sleep(1.2)
        meanwhile = running.verdict()
        running.site.faults.clear()
        await running.until_in_sync()
        running.site.world.freeze(SystemClock().now())
        await running.restart_all()
        await running.until_in_sync()
        await running.until_in_sync()  # a step back and a result need a second poll

        after = running.verdict()

    assert (meanwhile.duplicated, meanwhile.ghost) == (0, 0), meanwhile.details
    assert (after.lost, after.duplicated, after.ghost) == (0, 0, 0), after.details
    assert after.events_stored > meanwhile.events_stored > 100
    assert not running.sink.named("task.failed")


async def until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not is_so():  # noqa: ASYNC110 - the site and the loop under test have no event for it
            await asyncio.sleep(0.02)
