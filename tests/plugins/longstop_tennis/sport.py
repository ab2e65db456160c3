"""Tennis: points make games, games make sets, sets make a match."""

from collections.abc import Iterator, Mapping
from math import inf
from typing import Any, ClassVar, Literal

from msgspec import Struct

from longstop.matches.event_versions_and_confirmation import Versions, advance, settle
from longstop.model.data_finding import Finding, FindingKind
from longstop.model.event import RESULT, Event, EventKey, content_hash
from longstop.model.match import MatchStatus
from longstop.model.snapshot import canonical
from longstop.model.source_queries_and_answers import LIVE, Keys, ListingEntry, Observation, Query
from longstop.sports.base import Client, Draft, EventKind, MatchState, Sport

#: What a source is asked for, beside the list of matches and the live state of one: everything that was played.
POINTS = "points"
Side = Literal["home", "away"]


# --- contents: what is stored of an event -----------------------------------------------------------------------------
class Won(Struct, frozen=True, kw_only=True):
    """A point, a game or a set: who won it, and the score after it, such as `30-15` or `6-4`."""

    winner: Side
    score: str


class Result(Struct, frozen=True, kw_only=True):
    """The end of the match. Every sport has a kind `result`, whose content has a `text`."""

    winner: Side
    sets: tuple[tuple[int, int], ...]

    @property
    def text(self) -> str:
        return f"{self.winner} won {' '.join(f'{home}-{away}' for home, away in self.sets)}"


# --- views: what a source shows ---------------------------------------------------------------------------------------
class Board(ListingEntry, frozen=True, kw_only=True):
    """The live state. A listing shows the same: while its fingerprint stays equal, the match need not be polled."""

    home: str
    away: str
    #: The games of each set.
    sets: tuple[tuple[int, int], ...]
    winner: Side | None


class Play(Struct, frozen=True, kw_only=True):
    """Something that was played, under the site's id and the site's numbers, which `Tennis.kinds` names."""

    source_event_id: str
    kind: str
    numbers: tuple[int, ...]
    content: Won | Result


class Tennis(Sport[MatchState]):
    name = "tennis"
    kinds: ClassVar[Mapping[str, EventKind]] = {
        "point": EventKind(content=Won, fields=("set", "game", "nth"), is_critical=False),
        "game": EventKind(content=Won, fields=("set", "nth")),
        "set": EventKind(content=Won, fields=("nth",)),
        "result": EventKind(content=Result),
    }
    place = ("set", "game", "nth")
    resources = (POINTS,)
    example = Event(key=EventKey("point", (1, 3, 2)), content=Won(winner="home", score="30-0"), source_event_id="7")
    state = MatchState

    async def read(
        self, client: Client, state: MatchState, *, is_full: bool = False, stand_in: ListingEntry | None = None
    ) -> Observation:
        """Ask for the list, which is always whole, before the board, so that the board never shows less."""
        points = Query(resource=POINTS, source_id=state.feed.source_id)
        live = Query(resource=LIVE, source_id=state.feed.source_id)
        if stand_in is None and await client.are_unchanged(points, live):
            view = None
        else:
            plays = await client.ask(points, tuple)
            view = (stand_in or await client.ask(live, Board), plays)
        return Observation(captured_at=client.now(), view=view)

    def diff(self, state: MatchState, observation: Observation) -> Draft:
        board, plays = observation.view
        versions = Versions(state.events, confirmed=state.suspects)
        _align(versions, (*plays, *_result(board)))
        after = advance(state, versions, Keys(), board=board)
        after = settle(state, after, _mismatches(after, board), versions.suspects, is_compared=True)
        # A result counts once it is stored: until then the match is polled as a live one.
        status = MatchStatus.COMPLETED if after.result else MatchStatus.LIVE if board.winner else board.status
        title = f"{board.home} v {board.away}"
        shown = {"title": title, "sets": board.sets, "result": after.result and after.result.text}
        return Draft(
            state=after,
            status=status,
            title=title,
            start_at=board.start_at or state.row.start_at,
            # While something awaits a second poll, the stored payload stands.
            payload=None if after.suspects else canonical({"matchId": state.row.match_id, "status": status, **shown}),
            events=tuple(versions.events),
        )

    def order(self, event: Event) -> tuple[float, ...]:
        return (*event.key.numbers, inf)  # a game comes after its points, a set after its games, the result last

    def describe(self, event: Event) -> str:
        content: Any = event.content
        return content.text if event.key == RESULT else f"{event.key.kind} to {content.winner}, {content.score}"


def _result(board: Board) -> Iterator[Play]:
    if board.winner:
        result = Result(winner=board.winner, sets=board.sets)
        yield Play(source_event_id="result", kind="result", numbers=(), content=result)


def _align(versions: Versions, plays: tuple[Play, ...]) -> None:
    """Compare by the site's ids. What changes or disappears, and a result, counts once two polls in a row show it."""
    known = {(event.key.kind, event.source_event_id): event for event in versions.known.values()}
    for play in plays:
        old = known.pop((play.kind, play.source_event_id), None)
        if old is not None:
            versions.replace(old, play.content, play.source_event_id, is_back=old.content != play.content)
        elif play.kind != "result":
            key = versions.allot(play.kind, play.numbers[:-1], wanted=play.numbers[-1])
            versions.put(key, play.content, play.source_event_id)
        elif versions.may_step_back(RESULT, content_hash(play.content, None)):
            versions.put(RESULT, play.content, play.source_event_id)
    for gone in known.values():
        if gone.is_live and versions.may_step_back(gone.key, "void"):
            versions.void(gone)


def _mismatches(state: MatchState, board: Board) -> Iterator[Finding]:
    games = [event.key.numbers[0] for event in state.events.values() if event.is_live and event.key.kind == "game"]
    for number, shown in enumerate(map(sum, board.sets), start=1):
        if games.count(number) != shown:
            detail = f"{games.count(number)} games are listed, the board shows {shown}"
            yield Finding(kind=FindingKind.MISMATCH, place=f"set {number}", detail=detail)
