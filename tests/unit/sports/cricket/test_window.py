"""A list that shows its newest balls only: what falls out of it unseen is declared, summed up, and never invented."""

from typing import cast

import pytest

from longstop.matches.pipeline import Pipeline, PollResult
from longstop.matches.source_client_and_poll_attempt import SourceClient
from longstop.model.data_finding import Finding, FindingKind
from longstop.model.event import EventKey, Op
from longstop.model.match import MatchRef
from longstop.model.polling_status import SyncState
from longstop.sources.espncricinfo.source import EspncricinfoSource
from longstop.sports.cricket.model import CricketKind, CricketState, Delivery, InferredBalls, live
from longstop.sports.cricket.sport import Cricket
from longstop.telemetry.bus import Bus
from longstop.testing import ScriptedFetcher
from tests.builders import NOW
from tests.espn_page import ball, innings, match_page, over
from tests.live import poll, take
from tests.memory import MemoryStore
from tests.readers import ManualClock
from tests.unit.sources.espncricinfo.test_source import CONFIG

WINDOW = 20


class Site:
    """A match of overs of six balls with a run each; the page shows the last twenty balls."""

    def __init__(self) -> None:
        self.bowled = 0
        self.is_first_over_shown = False
        #: Shown instead of what was bowled.
        self.page: bytes | None = None

    def body(self) -> bytes:
        if self.page is not None:
            return self.page
        shown = [self.ball(number) for number in range(self.bowled, max(0, self.bowled - WINDOW), -1)]
        done, balls = divmod(self.bowled, 6)
        overs = [over(number, 6, number * 6) for number in range(1, done + 1)]
        if overs and self.is_first_over_shown:
            overs[0]["balls"] = [self.ball(number) for number in range(1, 7)]
        played = innings(1, self.bowled, 0, float(f"{done}.{balls}"), *overs)
        return match_page([played], shown, liveOvers=float(f"{done}.0{balls}"))

    @staticmethod
    def ball(number: int, innings: int = 1) -> dict[str, object]:
        over_index, place = divmod(number - 1, 6)
        return ball(innings * 1000 + number, f"{over_index}.{place + 1}", place + 1, 1, innings=innings)


class Polling:
    """One match, polled repeatedly."""

    def __init__(self, bowled: int) -> None:
        self.site = Site()
        self.site.bowled = bowled
        self.store = MemoryStore()
        self.fetcher = ScriptedFetcher(lambda _request: self.site.body())
        client = SourceClient(EspncricinfoSource(CONFIG), self.fetcher)
        self.pipeline = Pipeline(
            Cricket(), client=client, store=self.store, bus=Bus(), clock=ManualClock(NOW), scraper_id="node"
        )
        self.state: CricketState

    async def start(self) -> None:
        row = await self.store.register(MatchRef("espncricinfo", "77"), "a match", None, NOW, sport="cricket")
        self.state = cast(CricketState, await take(self.store, row.match_id, "node"))

    async def poll(self, times: int = 1) -> PollResult:
        for _ in range(times):
            outcome = await poll(self.pipeline, self.state)
            self.state = cast(CricketState, outcome.state)
        return outcome

    @property
    def shown(self) -> list[int]:
        """The numbers of the balls that are held, in the order of play."""
        return [int(event.source_event_id) - 1000 for event, _ in live(self.state.events, Delivery)]

    @property
    def unseen(self) -> dict[int, InferredBalls]:
        return {event.key.numbers[1]: balls for event, balls in live(self.state.events, InferredBalls)}


@pytest.fixture
async def early() -> Polling:
    """A match that was found while its first balls were still in the window."""
    polling = Polling(bowled=10)
    await polling.start()
    await polling.poll()
    return polling


async def test_a_window_that_reaches_the_beginning_leaves_no_hole(early: Polling) -> None:
    assert early.shown == list(range(1, 11))
    assert early.unseen == {}
    assert early.state.findings == ()
    assert early.state.sync is SyncState.IN_SYNC


async def test_balls_that_slide_out_of_the_window_are_kept(early: Polling) -> None:
    for bowled in (20, 35, 50):
        early.site.bowled = bowled
        await early.poll()

    assert early.shown == list(range(1, 51))
    assert early.unseen == {}
    assert [stored.event.op for stored in early.store.history[1] if stored.event.op is Op.VOID] == []


@pytest.mark.req("NFR-009")
async def test_what_fell_out_unseen_becomes_a_sum_and_a_declared_gap(early: Polling) -> None:
    """Ball 10 was the last one seen; at ball 40 the window begins with ball 21."""
    early.site.bowled = 40

    await early.poll(times=2)

    assert early.shown == [*range(1, 11), *range(21, 41)]
    assert early.unseen == {
        1: InferredBalls(runs=2, wickets=0, balls=2),
        2: InferredBalls(runs=6, wickets=0, balls=6),
        3: InferredBalls(runs=2, wickets=0, balls=2),
    }
    assert [(finding.kind, finding.place) for finding in early.state.findings] == [
        (FindingKind.GAP, "1:1"),
        (FindingKind.GAP, "1:2"),
        (FindingKind.GAP, "1:3"),
    ]


async def test_sums_and_balls_together_agree_with_the_scoreboard(early: Polling) -> None:
    early.site.bowled = 40

    await early.poll(times=2)

    assert all(not difference for difference in early.state.differences.values())
    assert early.state.sync is SyncState.IN_SYNC


async def test_a_declared_gap_is_declared_once(early: Polling) -> None:
    early.site.bowled = 40
    await early.poll(times=2)
    before = len(early.store.history[1])

    outcome = await early.poll()

    assert outcome.receipt is None
    assert len(early.store.history[1]) == before


async def test_balls_that_turn_up_after_all_take_the_place_of_their_sum() -> None:
    polling = Polling(bowled=40)
    await polling.start()
    await polling.poll(times=2)
    assert polling.unseen[0] == InferredBalls(runs=6, wickets=0, balls=6)

    polling.site.is_first_over_shown = True
    await polling.poll(times=2)

    assert polling.shown[:6] == [1, 2, 3, 4, 5, 6]
    assert 0 not in polling.unseen
    assert Finding(kind=FindingKind.GAP, place="1:0", detail="not shown: 6 balls, 6 runs, 0 wickets") not in (
        polling.state.findings
    )


async def test_a_ball_keeps_the_number_that_the_source_gives_it(early: Polling) -> None:
    early.site.bowled = 40

    await early.poll()

    numbered = [event.key for event, _ in live(early.state.events, Delivery) if event.key.numbers[1] == 3]
    assert numbered == [EventKey(CricketKind.DELIVERY, (1, 3, nth)) for nth in (3, 4, 5, 6)]


async def test_one_poll_fetches_the_page_once(early: Polling) -> None:
    early.site.bowled = 12
    before = len(early.fetcher.requests)

    await early.poll()

    assert len(early.fetcher.requests) == before + 1


async def test_a_restart_declares_the_same_gaps_and_stores_nothing_again(early: Polling) -> None:
    early.site.bowled = 40
    await early.poll(times=2)
    before = len(early.store.history[1])

    early.state = cast(CricketState, await take(early.store, 1, "other node"))
    await early.poll(times=2)

    assert len(early.store.history[1]) == before
    assert len(early.state.findings) == 3
    assert early.state.sync is SyncState.IN_SYNC


async def test_the_over_in_which_an_innings_ended_unseen_is_summed_up_too() -> None:
    """All out at 6.4, two balls after the last poll: no over's end sums those up, but the total does."""
    polling = Polling(bowled=38)
    await polling.start()
    await polling.poll(times=2)
    rest = [over(number, 6, number * 6) for number in range(1, 7)]
    closed = innings(1, 40, 10, 6.4, *rest, over(7, 4, 40, 10, balls=4, isComplete=False), isCurrent=False)
    chase = innings(2, 20, 0, 3.2, *(over(number, 6, number * 6) for number in range(1, 4)))
    shown = [Site.ball(number, innings=2) for number in range(20, 0, -1)]

    polling.site.page = match_page([closed, chase], shown, liveInning=2)
    await polling.poll(times=2)

    assert polling.unseen[6] == InferredBalls(runs=2, wickets=10, balls=2)
    assert (FindingKind.GAP, "1:6") in [(finding.kind, finding.place) for finding in polling.state.findings]
    assert all(not difference for difference in polling.state.differences.values())


async def test_balls_behind_the_window_keep_their_order() -> None:
    """The source numbers a late ball into its place; once the over is out of sight, our numbers must not undo that."""
    polling = Polling(bowled=3)
    await polling.start()
    await polling.poll()
    balls = [Site.ball(number) for number in (3, 2, 1)]
    balls[0] |= {"ballNumber": 4, "oversActual": 0.4}
    late = Site.ball(7) | {"ballNumber": 3, "oversActual": 0.3, "overNumber": 1, "id": 1050}
    polling.site.page = match_page([innings(1, 4, 0, 0.4)], [balls[0], late, balls[1], balls[2]])
    await polling.poll()
    assert polling.shown == [1, 2, 50, 3]

    rest = [Site.ball(number) for number in range(32, 12, -1)]
    polling.site.page = match_page([innings(1, 33, 0, 5.2, *(over(n, 6, n * 6) for n in range(1, 6)))], rest)
    await polling.poll(times=2)

    assert polling.shown[:4] == [1, 2, 50, 3]


async def test_names_come_from_the_page_of_the_match(early: Polling) -> None:
    """The site has one page per match: a query for names without the match would ask for a page of no match."""
    await early.poll()

    assert {request.url for request in early.fetcher.requests} == {
        "https://site.test/series/series-0/match-77/full-scorecard"
    }
    assert early.state.players == {"11": "A Batter", "22": "B Bowler"}
    assert early.state.teams == {"501": "Ashford", "502": "Bexley"}


@pytest.mark.req("NFR-009")
async def test_an_over_after_a_withdrawn_wicket_is_declared_though_the_totals_go_back() -> None:
    polling = Polling(bowled=0)
    overs = [over(1, 6, 6, wickets=1), over(2, 6, 12), over(3, 6, 18)]
    polling.site.page = match_page([innings(1, 18, 0, 3.0, *overs)], [], liveOvers=3.0)
    await polling.start()

    await polling.poll(times=2)

    assert polling.unseen[1] == InferredBalls(runs=6, wickets=0, balls=6)


@pytest.mark.req("NFR-009")
async def test_balls_of_the_last_over_are_declared_though_a_run_was_taken_back() -> None:
    polling = Polling(bowled=0)
    polling.site.page = match_page([innings(1, 5, 1, 1.2, over(1, 6, 6))], [], liveOvers=1.02)
    await polling.start()

    await polling.poll(times=2)

    assert polling.unseen[1] == InferredBalls(runs=0, wickets=1, balls=2)
