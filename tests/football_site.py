"""A small sofascore in memory: one match whose pages a test writes as it likes."""

from typing import Any, cast
from urllib.parse import urlsplit

import msgspec

from longstop.errors import FetchError, PageNotFound
from longstop.fetching.base import FetchRequest
from longstop.matches.pipeline import Pipeline, PollResult
from longstop.matches.source_client_and_poll_attempt import SourceClient
from longstop.model.match import MatchRef
from longstop.sources.base import SourceConfig
from longstop.sources.sofascore.source import SofascoreSource
from longstop.sports.football.model import FootballState
from longstop.sports.football.sport import Football
from longstop.telemetry.bus import Bus
from longstop.testing import ScriptedFetcher
from tests.builders import NOW
from tests.live import poll, take
from tests.memory import MemorySink, MemoryStore
from tests.readers import ManualClock

SOFASCORE_CONFIG = SourceConfig(
    domain_id="sofascore",
    enabled=True,
    precedence_weight=100,
    adapter_class="sofascore",
    hosts=("football.test",),
    allow_private_addresses=False,
    permission=None,
    metadata={"api_url": "https://football.test"},
)

STATUSES = {
    "Not started": (0, "notstarted"),
    "1st half": (6, "inprogress"),
    "2nd half": (7, "inprogress"),
    "Started": (20, "inprogress"),
    "Halftime": (31, "inprogress"),
    "Awaiting extra time": (32, "inprogress"),
    "Penalties": (50, "inprogress"),
    "Postponed": (60, "postponed"),
    "Start delayed": (61, "delayed"),
    "Canceled": (70, "canceled"),
    "Interrupted": (80, "interrupted"),
    "Suspended": (81, "suspended"),
    "Abandoned": (90, "canceled"),
    "Walkover": (91, "finished"),
    "Retired": (92, "finished"),
    "Ended": (100, "finished"),
    "AET": (110, "finished"),
    "AP": (120, "finished"),
    "Will continue": (140, "willcontinue"),
}


def player(key: int, name: str = "") -> dict[str, Any]:
    return {"id": key, "name": name or f"Player {key}", "slug": f"player-{key}", "userCount": 3}


def status(name: str) -> dict[str, Any]:
    code, kind = STATUSES[name]
    return {"code": code, "description": name, "type": kind}


def event(name: str = "1st half", home: Any = 0, away: Any = 0, **changes: Any) -> dict[str, Any]:
    """Return an event; a score is a number of goals, or the whole object."""
    scores = [score if isinstance(score, dict) else {"current": score, "display": score} for score in (home, away)]
    return {
        "id": 77,
        "status": status(name),
        "homeTeam": {"id": 1, "name": "Fennick FC", "country": {}},
        "awayTeam": {"id": 2, "name": "Port Élan United", "userCount": 9},
        "homeScore": scores[0],
        "awayScore": scores[1],
        "startTimestamp": int(NOW.timestamp()),
        "tournament": {"name": "Harbour League"},
        "season": {"year": "26/27"},
        "roundInfo": {"round": 14},
        **changes,
    }


def goal(
    key: int, home: int, away: int, *, is_home: bool = True, time: int = 10, scorer: int = 11, how: str = "regular"
) -> dict[str, Any]:
    return {
        "incidentType": "goal",
        "id": key,
        "homeScore": home,
        "awayScore": away,
        "isHome": is_home,
        "time": time,
        "player": player(scorer),
        "incidentClass": how,
    }


def card(key: int, *, kind: str = "yellow", is_home: bool = True, time: int = 20, who: int = 12) -> dict[str, Any]:
    shown = {"incidentType": "card", "id": key, "isHome": is_home, "time": time, "incidentClass": kind}
    return {**shown, "player": player(who), "reason": "Foul"}


def substitution(key: int, *, is_home: bool = True, time: int = 60, came: int = 25, out: int = 13) -> dict[str, Any]:
    change = {"incidentType": "substitution", "id": key, "isHome": is_home, "time": time}
    return {**change, "playerIn": player(came), "playerOut": player(out)}


def decision(key: int, kind: str = "goalNotAwarded", *, is_home: bool = True, time: int = 11) -> dict[str, Any]:
    found = {"incidentType": "varDecision", "id": key, "isHome": is_home, "time": time, "incidentClass": kind}
    return {**found, "confirmed": True, "player": player(11)}


def period(text: str, home: int, away: int, time: int, *, is_live: bool = False) -> dict[str, Any]:
    mark = {"incidentType": "period", "text": text, "homeScore": home, "awayScore": away}
    return {**mark, "time": time, "addedTime": 999, "isLive": is_live}


def squad(first: int, **changes: Any) -> dict[str, Any]:
    """Return eleven players from a number on, and nine on the bench."""
    entries = [
        {
            "player": player(first + nth),
            "teamId": 4711,
            "shirtNumber": nth + 1,
            "jerseyNumber": str(nth + 1),
            "position": "G" if nth % 11 == 0 else "M",
            "substitute": nth >= 11,
        }
        for nth in range(20)
    ]
    return {"players": entries, "supportStaff": [], "formation": "4-4-2", "missingPlayers": [], **changes}


def lineups(*, confirmed: bool = True, home: int = 11, away: int = 41) -> dict[str, Any]:
    return {"confirmed": confirmed, "home": squad(home), "away": squad(away)}


def statistics(home: float = 60, away: float = 40) -> dict[str, Any]:
    item = {"name": "Ball possession", "key": "ballPossession", "home": f"{home}%", "away": f"{away}%"}
    group = {"groupName": "Match overview", "statisticsItems": [{**item, "homeValue": home, "awayValue": away}]}
    return {"statistics": [{"period": "ALL", "groups": [group]}]}


Page = dict[str, Any] | FetchError | None


class FootballPages:
    """The pages of one match, to be changed by the test; `None` is a page that is not there."""

    def __init__(self) -> None:
        self.event: Page = event()
        #: Oldest first, for the reader's sake; the page turns them round.
        self.incidents: list[dict[str, Any]] | FetchError | None = []
        self.lineups: Page = lineups()
        #: Line-ups that are shown before these, each of them once.
        self.lineups_before: list[Page] = []
        self.statistics: Page = None
        self.listed: list[dict[str, Any]] | None = None
        #: The last part of each path that was asked for.
        self.asked: list[str] = []

    def __call__(self, request: FetchRequest) -> bytes | FetchError:
        name = urlsplit(request.url).path.rpartition("/")[2]
        self.asked.append(name)
        answer = self._body(name)
        if answer is None:
            return PageNotFound("404")
        return answer if isinstance(answer, FetchError) else msgspec.json.encode(answer)

    def _body(self, name: str) -> Page:
        match name:
            case "live":
                listed = [self.event] if self.listed is None else self.listed
                return {"events": listed}
            case "incidents":
                return {"incidents": self.incidents[::-1]} if isinstance(self.incidents, list) else self.incidents
            case "lineups":
                return self.lineups_before.pop(0) if self.lineups_before else self.lineups
            case "statistics":
                return self.statistics
        return {"event": self.event} if isinstance(self.event, dict) else self.event


class LookingAtFootball:
    """A match, its pages, its store, and the state after the last poll."""

    def __init__(self) -> None:
        self.pages = FootballPages()
        self.store = MemoryStore()
        self.sink = MemorySink()
        self.clock = ManualClock(NOW)
        self.client = SourceClient(SofascoreSource(SOFASCORE_CONFIG), ScriptedFetcher(self.pages))
        self.pipeline = Pipeline(
            Football(),
            client=self.client,
            store=self.store,
            bus=Bus([self.sink]),
            clock=self.clock,
            scraper_id="node-a",
        )
        self.state: FootballState

    async def start(self) -> "LookingAtFootball":
        row = await self.store.register(MatchRef("sofascore", "77"), "a match", None, NOW, sport="football")
        self.state = cast(FootballState, await take(self.store, row.match_id, "node-a"))
        return self

    async def restart(self) -> None:
        """Forget everything that is not stored."""
        self.state = cast(FootballState, await take(self.store, self.state.row.match_id, "node-b"))

    async def poll(self, times: int = 1, *, is_whole: bool = False) -> PollResult:
        """Look and go on from the result."""
        for _ in range(times):
            self.clock.advance(2.5)
            outcome = await poll(self.pipeline, self.state, is_full=is_whole)
            self.state = cast(FootballState, outcome.state)
        return outcome

    def versions(self) -> list[str]:
        """Return what was stored so far, in order, as in `goal:home:1 1 insert`."""
        stored = (each.event for each in self.store.history.get(1, []))
        return [f"{event.key} {event.rev} {event.op}" for event in stored]

    def payload(self) -> Any:
        assert self.state.snapshot is not None
        return msgspec.json.decode(self.state.snapshot.payload)
