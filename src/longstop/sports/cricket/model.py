"""Cricket's records: stored contents, views that a source parses, and the state of a match."""

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Self, TypeVar

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from longstop.model.event import Event, EventKey
from longstop.model.source_queries_and_answers import Keys, ListingEntry
from longstop.sports.base import MatchState
from longstop.storage.base import MatchBase

Count = Annotated[int, Meta(ge=0)]
BALLS_PER_OVER = 6
MAX_WICKETS = 10

#: Resources of a cricket source, in addition to list, live state and rendered page.
BALLS, SCORECARD, NAMES = "balls", "scorecard", "names"


class CricketKind(StrEnum):
    """The kinds of event; a wicket or boundary is part of its delivery."""

    DELIVERY = "delivery"
    #: The sum of balls of an over that were never shown.
    INFERRED = "inferred"
    OVER = "over"
    INNINGS = "innings"
    RESULT = "result"


def innings_of(key: EventKey) -> int:
    """Return the innings, from 1; every key except that of the result starts with it."""
    return key.numbers[0]


def over_of(key: EventKey) -> int:
    """Return the over, from 0."""
    return key.numbers[1]


# --- stored contents -----------------------------------------------------------------------------------------


class Overs(Struct, frozen=True, order=True):
    """Overs bowled, as two integers: complete overs, and legal balls of the current one. Never a float."""

    over: Count
    ball: Count

    @property
    def balls(self) -> int:
        """Return the number of balls: 9.6 and 10.0 are equal, and sources use both."""
        return self.over * BALLS_PER_OVER + self.ball

    def __str__(self) -> str:
        return f"{self.over}.{self.ball}"


class Runs(Struct, frozen=True, kw_only=True):
    """The runs of one delivery, by kind."""

    batter: Count = 0
    wides: Count = 0
    noballs: Count = 0
    byes: Count = 0
    legbyes: Count = 0
    penalty: Count = 0

    @property
    def total(self) -> int:
        return self.batter + self.wides + self.noballs + self.byes + self.legbyes + self.penalty

    @property
    def is_legal(self) -> bool:
        """Return whether the delivery counts towards the over."""
        return not (self.wides or self.noballs)


class Dismissal(StrEnum):
    """How a batter was dismissed, as far as the sources distinguish it."""

    BOWLED = "bowled"
    CAUGHT = "caught"
    LBW = "lbw"
    RUN_OUT = "run out"
    STUMPED = "stumped"
    HIT_WICKET = "hit wicket"
    #: Hurt, out or not out: the source does not say which, so the scoreboard may or may not count it.
    RETIRED = "retired"
    OBSTRUCTING = "obstructing the field"
    OTHER = "other"


class Wicket(Struct, frozen=True, kw_only=True):
    """One dismissed batter."""

    kind: Dismissal
    #: The name as the source wrote it.
    player_out: str
    #: The source's key of that player; `None` when it gave none.
    player_key: str | None = None


class Delivery(Struct, frozen=True, kw_only=True, tag="delivery", tag_field="kind"):
    """One ball bowled."""

    #: The legal-ball label as shown; a wide has the label of the next ball.
    label: Overs
    runs: Runs
    #: 4 or 6 for a boundary, else `None`; four all-run are four runs and no boundary.
    boundary: int | None = None
    #: Source keys; names are in the match's `players`.
    batter: str | None = None
    bowler: str | None = None
    wickets: tuple[Wicket, ...] = ()


class Score(Struct, frozen=True, kw_only=True):
    runs: Count
    wickets: Count


class OverSummary(Struct, frozen=True, kw_only=True, tag="over", tag_field="kind"):
    """The source's summary of a completed over."""

    runs: Count
    score: Score
    bowler: str | None = None
    #: Legal balls: not always six, because umpires miscount. `None` if the source does not say.
    balls: Count | None = None


class InferredBalls(Struct, frozen=True, kw_only=True, tag="inferred", tag_field="kind"):
    """The sum of balls of an over that were never shown."""

    runs: Count
    wickets: Count
    #: Legal balls that were not shown.
    balls: Count


class InningsSummary(Struct, frozen=True, kw_only=True, tag="innings", tag_field="kind"):
    """A closed innings."""

    #: The batting side's key; `None` while it is unknown.
    team: str | None
    runs: Count
    wickets: Count
    overs: Overs


class ResultKind(StrEnum):
    """How a match ended."""

    WON = "won"
    DRAW = "draw"
    TIE = "tie"
    NO_RESULT = "no result"
    ABANDONED = "abandoned"
    CANCELLED = "cancelled"
    WALKOVER = "walkover"


class Result(Struct, frozen=True, kw_only=True, tag="result", tag_field="kind"):
    """The end of a match, in the source's words."""

    outcome: ResultKind
    text: str


#: The words of sites for the end of a match; breaks such as "Tea" are not results.
#: The order matters: a tie decided by a super over also contains "won".
_RESULTS: tuple[tuple[re.Pattern[str], ResultKind], ...] = (
    (re.compile(r"^match tied\b", re.IGNORECASE), ResultKind.TIE),
    (re.compile(r"^(match )?drawn?\b", re.IGNORECASE), ResultKind.DRAW),
    (re.compile(r"^no result\b", re.IGNORECASE), ResultKind.NO_RESULT),
    (re.compile(r"^(match )?abandoned\b", re.IGNORECASE), ResultKind.ABANDONED),
    (re.compile(r"^(match )?cancell?ed\b", re.IGNORECASE), ResultKind.CANCELLED),
    (re.compile(r"\b(walkover|conceded)\b", re.IGNORECASE), ResultKind.WALKOVER),
    # Without a margin too: "Reds won", "Reds won (Awarded method)".
    (re.compile(r"(?<!toss )\bwon(?: by\b| \(|\s*$)", re.IGNORECASE), ResultKind.WON),
)
_INNINGS_OVER = re.compile(r"^(innings break|super over)\b", re.IGNORECASE)


def result_in(text: str) -> Result | None:
    """Return the result that a text states; `None` for any other text."""
    for pattern, outcome in _RESULTS:
        if pattern.search(text):
            return Result(outcome=outcome, text=text)
    return None


def ends_innings(headline: str, result: Result | None) -> bool:
    """Return whether the current innings is over, by the site's text about a break, or by a result."""
    return result is not None or _INNINGS_OVER.search(headline) is not None


CricketContent = Delivery | InferredBalls | OverSummary | InningsSummary | Result
_KINDS: Mapping[type, CricketKind] = {
    Delivery: CricketKind.DELIVERY,
    InferredBalls: CricketKind.INFERRED,
    OverSummary: CricketKind.OVER,
    InningsSummary: CricketKind.INNINGS,
    Result: CricketKind.RESULT,
}
Content = TypeVar("Content", bound=CricketContent)


def live(
    events: Mapping[EventKey, Event], kind: type[Content], innings: int | None = None
) -> list[tuple[Event, Content]]:
    """Return the live events with this kind of content in the order of play; of all innings, or of one."""
    found = [
        (event, event.content)
        for event in events.values()
        if isinstance(event.content, kind) and event.is_live and innings in (None, innings_of(event.key))
    ]
    return sorted(found, key=lambda pair: (innings_of(pair[0].key), pair[0].position or over_of(pair[0].key)))


class InningsScore(Struct, frozen=True, kw_only=True):
    """What a scoreboard shows of one innings."""

    runs: Count
    wickets: Annotated[int, Meta(ge=0, le=MAX_WICKETS)]
    overs: Overs

    @property
    def is_blank(self) -> bool:
        """Return whether all values are zero; sites also show that for an innings that has not started."""
        return self.runs == 0 and self.wickets == 0 and self.overs == Overs(0, 0)


class RunTarget(Struct, frozen=True, kw_only=True):
    """Runs and overs for the side batting second, including revisions for lost time."""

    runs: Count
    overs: Overs


# --- views: what `parse` of a source returns -----------------------------------------------------------------


class Batter(Struct, frozen=True, kw_only=True):
    key: str
    runs: Count
    balls: Count
    on_strike: bool


class Bowler(Struct, frozen=True, kw_only=True):
    key: str
    runs: Count
    balls: Count
    wickets: Count


class Board(ListingEntry, frozen=True, kw_only=True):
    """A scoreboard: the live state of a match, or its entry in a listing."""

    #: Keys of the two sides; empty if the site does not say.
    batting: str = ""
    bowling: str = ""
    #: False if the site only lists the two sides: then `batting` is the one that it lists first.
    is_batting_known: bool = True
    #: The two innings of the current pair, in order of play; `None` if not shown.
    first: InningsScore | None = None
    second: InningsScore | None = None
    result: Result | None = None
    #: Whether the site says that the current innings has ended.
    is_innings_over: bool = False
    #: Runs to win, and the overs available; `None` if the site shows none.
    target: RunTarget | None = None
    match_format: str | None = None
    #: Empty in a listing entry, and at breaks.
    batters: tuple[Batter, ...] = ()
    bowler: Bowler | None = None

    @property
    def teams(self) -> tuple[str, ...]:
        return tuple(sorted(self.team_keys)) if len(self.team_keys) == 2 else ()

    @property
    def team_keys(self) -> set[str]:
        return {key for key in (self.batting, self.bowling) if key}

    def shows_less_than(self, other: ListingEntry) -> bool:
        if super().shows_less_than(other) or not isinstance(other, Board):
            return super().shows_less_than(other)
        has_lost_result = other.result is not None and self.result is None
        return has_lost_result or is_less(self.first, other.first) or is_less(self.second, other.second)


def is_less(new: InningsScore | None, old: InningsScore | None) -> bool:
    """Return whether an innings shows less than before."""
    if old is None or old.is_blank:
        return False
    if new is None:
        return True
    balls = [score.overs.over * BALLS_PER_OVER + score.overs.ball for score in (old, new)]
    return new.runs < old.runs or new.wickets < old.wickets or balls[1] < balls[0]


class DomBoard(Board, frozen=True, kw_only=True):
    """The scoreboard of a rendered page: it has names of the sides, and no keys."""

    #: The batting side, then the other one; empty if the page shows no name.
    names: tuple[str, str] = ("", "")
    #: By field, the index of the selector that was used; above 0 the page has changed.
    selectors: Mapping[str, int] = {}


class SeenEvent(Struct, frozen=True, kw_only=True):
    """An event as a source shows it, before it is matched with stored ones."""

    innings: int
    over: int
    #: In an event list with pages: a number that increases with time.
    source_event_id: str
    content: CricketContent
    #: Its number in the over, from 1; `None` if the source does not number deliveries.
    nth: int | None = None

    @property
    def kind(self) -> CricketKind:
        return _KINDS[type(self.content)]


class SeenWicket(Struct, frozen=True, kw_only=True):
    """A wicket in the event list; it belongs to the ball with the same innings and label."""

    innings: int
    label: Overs
    source_event_id: str
    wicket: Wicket


ListItem = SeenEvent | SeenWicket


class EventListPage(Struct, frozen=True, kw_only=True):
    """One page of the event list, newest first."""

    items: tuple[ListItem, ...]
    #: The cursor of the next page; `None` if this is the last one.
    next_before: str | None
    #: Whether the list shows only its newest items, so its end is not the beginning of the match.
    is_window: bool = False
    #: Items shown outside the list; items between them and the list are unknown.
    detached: tuple[SeenEvent, ...] = ()
    #: Names of teams by key, if the page has them.
    teams: Mapping[str, str] = {}


class ScorecardInnings(Struct, frozen=True, kw_only=True):
    number: int
    team: str
    score: InningsScore


class Scorecard(Struct, frozen=True, kw_only=True):
    innings: tuple[ScorecardInnings, ...]


class Names(Keys, frozen=True, kw_only=True):
    """Names by key. A key that the site did not resolve is absent, not empty."""


class SeenEvents(Struct, frozen=True, kw_only=True):
    """The events of one pass through the event list."""

    #: Oldest first.
    events: tuple[SeenEvent, ...]
    #: Whether the list was read to the beginning; else events before the oldest one are unknown.
    is_whole: bool
    #: How many wickets have no ball yet: a reason to read on.
    orphans: int = 0
    #: If the list shows only its newest items, the (innings, over, nth) from which it is complete; else `None`.
    window_from: tuple[int, int, int] | None = None

    @property
    def is_window(self) -> bool:
        return self.window_from is not None


class CricketView(Struct, frozen=True, kw_only=True):
    """The result of one poll."""

    board: Board
    listed: SeenEvents
    #: By innings, how far scoreboard and events disagree if everything shown is accepted.
    differences: Mapping[int, "Difference"]
    #: The latest innings with a delivery, stored or shown.
    newest_innings: int
    #: Whether the list was read to its end: the beginning of the match, or of the window.
    is_exhausted: bool
    #: As read in this poll, or the previous one.
    scorecard: Scorecard | None = None
    #: New names; all names when they are due to be checked.
    names: Names = Names()
    names_due_at: float | None = None
    #: Names of teams by key, as the pages of the event list have them.
    listed_teams: Mapping[str, str] = {}


# --- state ---------------------------------------------------------------------------------------------------


class Difference(Struct, frozen=True):
    """How much more a scoreboard shows than the events; all zero when they agree."""

    runs: int = 0
    wickets: int = 0
    balls: int = 0

    def __bool__(self) -> bool:
        return bool(self.runs or self.wickets or self.balls)

    def __str__(self) -> str:
        return f"the scoreboard shows {self.runs:+d} runs, {self.wickets:+d} wickets, {self.balls:+d} balls"


class CricketState(MatchState, frozen=True, kw_only=True):
    """The durable base of a cricket match, and what this run has learnt since."""

    board: Board | None = None
    scorecard: Scorecard | None = None
    #: By innings, the recorded differences between scoreboard and events.
    differences: Mapping[int, Difference] = {}
    #: The batting side of each innings.
    sides: Mapping[int, str] = {}
    #: When all names are asked for again (monotonic): one wrong answer would be kept for the whole match. `None` before
    #: the first poll.
    names_due_at: float | None = None

    @classmethod
    def from_base(cls, base: MatchBase) -> Self:
        served = msgspec.json.decode(base.snapshot.payload)["innings"] if base.snapshot else ()
        sides = {innings["number"]: innings["team"] for innings in served if "team" in innings}
        return replace(super().from_base(base), sides=sides)

    @property
    def newest_innings(self) -> int:
        """Return the latest innings with a delivery; 0 if there is none."""
        return max((innings_of(event.key) for event, _ in live(self.events, Delivery)), default=0)

    def is_check_due(self, now: float) -> bool:
        return self.ref is None and self.names_due_at is not None and now >= self.names_due_at

    @property
    def known_teams(self) -> tuple[str, ...]:
        return super().known_teams or tuple(sorted(self.served_teams.values()))

    @property
    def is_contradicted(self) -> bool:
        return bool(self.differences)

    @property
    def has_unnamed(self) -> bool:
        keys = {key for _, ball in live(self.events, Delivery) for key in (ball.batter, ball.bowler)}
        teams = self.board.team_keys if self.board else set()
        return bool((keys - {None}) - self.players.keys() or teams - self.teams.keys())


# --- keys of players and teams ---------------------------------------------------------------------------------

#: The fields that hold them, by record.
PLAYER_KEYS: Mapping[type, tuple[str, ...]] = {
    Batter: ("key",),
    Bowler: ("key",),
    Delivery: ("batter", "bowler"),
    Wicket: ("player_key",),
    OverSummary: ("bowler",),
    Names: ("players",),
}
TEAM_KEYS: Mapping[type, tuple[str, ...]] = {
    Board: ("batting", "bowling"),
    EventListPage: ("teams",),
    ScorecardInnings: ("team",),
    Names: ("teams",),
}
