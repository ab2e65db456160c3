"""A small crex in memory: whole pages in their wire shape, that a test can edit between two looks."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

import msgspec

from longstop.errors import SourceFailed
from longstop.fetching.base import FetchRequest
from longstop.sources.crex.event_list_and_names import read_ball_value
from longstop.testing import ScriptedReply
from tests.builders import body

PAGE_SIZE = 10
RETIRED = 7
#: Room between two balls for an inserted one, their wickets and an over's end.
ID_STEP = 100


@dataclass
class SiteBall:
    id: int
    innings: int
    over: int
    value: str
    #: (dismissal number, player's name, player's key) of each batter out.
    outs: list[tuple[int, str, str]] = field(default_factory=list)
    batter: str = "A1"
    bowler: str = "B1"

    @property
    def is_legal(self) -> bool:
        return read_ball_value(self.value).is_legal


@dataclass
class SiteMatch:
    """One match as the site knows it. The scoreboard follows the balls, unless a test sets `j` or `k`."""

    key: str = "M1"
    balls: list[SiteBall] = field(default_factory=list)
    #: (innings, over) → id of the over's end.
    ends: dict[tuple[int, int], int] = field(default_factory=dict)
    headline: str = "B"
    sides: tuple[str, str] = ("T1", "T2")
    match_format: str = "T20"
    odds: int = 0
    #: How many of the newest feed items the feed does not show yet.
    feed_lag: int = 0
    j: str | None = None
    k: str | None = None
    #: Added to the shown runs of every innings: a scoreboard that is off.
    extra_runs: int = 0
    is_listed: bool = True
    #: Added to every item of the event list.
    item_fields: dict[str, str] = field(default_factory=dict)

    def bowl(self, *values: str, innings: int | None = None) -> list[SiteBall]:
        """Bowl balls at the end of an innings (the newest by default); six legal ones end an over."""
        number = innings or max((ball.innings for ball in self.balls), default=1)
        return [self._bowl(value, number) for value in values]

    def insert(self, after: SiteBall, value: str) -> SiteBall:
        """Put a ball between an earlier one and its successor, in the same over."""
        taken = {ball.id for ball in self.balls}
        place = next(after.id + step for step in range(10, ID_STEP, 10) if after.id + step not in taken)
        ball = SiteBall(id=place, innings=after.innings, over=after.over, value=value)
        self.balls.append(ball)
        self.balls.sort(key=lambda each: each.id)
        return ball

    def remove(self, ball: SiteBall) -> None:
        self.balls.remove(ball)

    def _bowl(self, value: str, innings: int) -> SiteBall:
        mine = [ball for ball in self.balls if ball.innings == innings]
        over = mine[-1].over if mine else 0
        if (innings, over) in self.ends:
            over += 1
        last = max([0, *(ball.id for ball in self.balls), *self.ends.values()])
        ball = SiteBall(id=(last // ID_STEP + 1) * ID_STEP, innings=innings, over=over, value=value)
        self.balls.append(ball)
        if sum(each.is_legal for each in mine if each.over == over) + ball.is_legal >= 6:
            self.ends[innings, over] = ball.id + ID_STEP - 1
        return ball

    # --- the pages ---

    def entry(self) -> dict[str, Any]:
        newest = max((ball.innings for ball in self.balls), default=1)
        first = newest - 1 + newest % 2
        return {
            "a": ".".join(self.sides),
            "B": self.headline,
            "j": self.j if self.j is not None else self._score(first),
            "k": self.k if self.k is not None else self._score(first + 1),
            "fo": self.match_format,
            "mt": 1_772_892_000_000,
            "R": f"{self.odds}+1",
        }

    def state(self) -> dict[str, Any]:
        if not self.balls:
            return self.entry()
        newest = max(ball.innings for ball in self.balls)
        overs = [{"bt": self.sides[(newest - 1) % 2], "i": newest - 1, "o": 1}]
        play = {"p": "A1.A2", "q": "3.4*", "s": "1.2", "b": "B1", "c": "4.6.0.3", "rb": overs}
        return {**self.entry(), **play}

    def feed(self, before: int | None) -> list[dict[str, Any]]:
        items = sorted(self._items(), key=lambda item: item["id"], reverse=True)[self.feed_lag :]
        older = [item for item in items if before is None or item["id"] < before]
        return older[:PAGE_SIZE]

    def scorecard(self) -> list[dict[str, str]]:
        numbers = sorted({ball.innings for ball in self.balls})
        return [{"c": self.sides[(number - 1) % 2], "d": self._card(number)} for number in numbers]

    def _items(self) -> Iterator[dict[str, Any]]:
        for ball in self.balls:
            label = self._label(ball)
            common = {**self.item_fields, "mfkey": self.key, "inning": ball.innings - 1, "on": ball.over, "o": label}
            yield {
                **common,
                "type": "b",
                "id": ball.id,
                "b": ball.value,
                "fv": 2,
                "bf": ball.bowler,
                "pf": ball.batter,
            }
            for nth, (how, name, key) in enumerate(ball.outs, start=1):
                wicket = {"type": "w", "id": ball.id + nth, "fv": 64, "player": name, "pf_out": key, "dismissal": how}
                yield {**common, **wicket}
        for (innings, over), id_ in self.ends.items():
            runs = sum(_runs(ball) for ball in self.balls if (ball.innings, ball.over) == (innings, over))
            yield {
                "type": "o",
                "id": id_,
                "mfkey": self.key,
                "inning": innings - 1,
                "on": over,
                "o": over + 1,
                "runs": runs,
                "s": "0/0",
                "bf": "B1",
            }

    def _label(self, ball: SiteBall) -> str:
        before = [each for each in self.balls if (each.innings, each.over) == (ball.innings, ball.over)]
        legal = sum(each.is_legal for each in before if each.id < ball.id)
        return f"{ball.over}.{legal + 1}"

    def _figures(self, innings: int) -> tuple[int, int, int, int]:
        mine = [ball for ball in self.balls if ball.innings == innings]
        if not mine:
            return 0, 0, 0, 0
        runs = sum(map(_runs, mine)) + self.extra_runs
        wickets = sum(how != RETIRED for ball in mine for how, _, _ in ball.outs)
        over = mine[-1].over
        if (innings, over) in self.ends:
            return runs, wickets, over + 1, 0
        return runs, wickets, over, sum(ball.is_legal for ball in mine if ball.over == over)

    def _score(self, innings: int) -> str:
        runs, wickets, over, ball = self._figures(innings)
        return f"{runs}/{wickets}({over}.{ball}"

    def _card(self, innings: int) -> str:
        runs, wickets, over, ball = self._figures(innings)
        return f"{runs}/{wickets}({over * 6 + ball}"


def _runs(ball: SiteBall) -> int:
    return read_ball_value(ball.value).total


class Site:
    """Answers a `ScriptedFetcher`. `faults` replaces the answer of a resource, e.g. `{"getSC4": b"<html>"}`."""

    def __init__(self, *matches: SiteMatch) -> None:
        self.matches = {match.key: match for match in matches}
        self.names = {"A1": "Ann Alpha", "A2": "Amy Alpha", "B1": "Bea Beta", "T1": "Reds", "T2": "Blues"}
        self.faults: dict[str, ScriptedReply] = {}
        #: The same for the feed of one match.
        self.feed_faults: dict[str, ScriptedReply] = {}
        #: What the list shows while it is frozen.
        self.frozen_list: dict[str, object] | None = None
        self.asked: list[str] = []
        #: Called before each answer, with the name of the resource: the world moves while we read.
        self.before_answer: Callable[[str], None] = lambda _resource: None

    def __call__(self, request: FetchRequest) -> ScriptedReply:
        resource = urlsplit(request.url).path.rpartition("/")[2]
        self.before_answer(resource)
        self.asked.append(resource)
        if resource in self.faults:
            return self.faults[resource]
        if resource == "getBallFeeds" and request.body:
            key = msgspec.json.decode(request.body)["matchKey"]
            if key in self.feed_faults:
                return self.feed_faults[key]
        return body(self._answer(resource, request))

    def list_now(self) -> dict[str, object]:
        return {key: match.entry() for key, match in self.matches.items() if match.is_listed}

    def count(self, resource: str) -> int:
        return self.asked.count(resource)

    def _answer(self, resource: str, request: FetchRequest) -> object:
        question: dict[str, Any] = msgspec.json.decode(request.body) if request.body else {}
        match resource:
            case "getLiveMatches":
                return self.frozen_list or self.list_now()
            case "getSV3":
                return self._match(request).state()
            case "getSC4":
                return self._match(request).scorecard()
            case "getBallFeeds":
                before = question["lastDocId"]
                return self.matches[question["matchKey"]].feed(None if before is None else int(before))
            case _:
                return {part: self._named(question[part]) for part in ("p", "t")}

    def _match(self, request: FetchRequest) -> SiteMatch:
        [key] = parse_qs(urlsplit(request.url).query)["key"]
        return self.matches[key]

    def _named(self, keys: list[str]) -> list[dict[str, str]]:
        return [{"f_key": key, "n": self.names[key]} for key in keys if key in self.names]


OUT_OF_ORDER = SourceFailed("the site answered 503")
