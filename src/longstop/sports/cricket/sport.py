"""The cricket plug-in: turns what a poll showed into what is stored."""

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import msgspec

from longstop.errors import ImpossibleObservation, WrongMatch
from longstop.matches.versions import confirm, confirm_board, learnt
from longstop.model.event import Event
from longstop.model.match import MatchStatus, SyncState
from longstop.model.observation import Keys, ListingEntry, Observation
from longstop.model.snapshot import canonical
from longstop.sports.base import Client, Draft, EventKind, Sport, is_dom_only, is_name_of, stored_payload, with_dom_gap
from longstop.sports.cricket.align import Milestones, align, order_of_play
from longstop.sports.cricket.model import (
    BALLS,
    NAMES,
    SCORECARD,
    Board,
    CricketKind,
    CricketState,
    CricketView,
    Delivery,
    DomBoard,
    InferredBalls,
    InningsScore,
    InningsSummary,
    Overs,
    OverSummary,
    Result,
    Runs,
    SeenEvent,
    innings_of,
    is_less,
    over_of,
    rekey,
)
from longstop.sports.cricket.payload import newest_shown, normalise, status_of, title_of
from longstop.sports.cricket.read import introduce, read
from longstop.sports.cricket.totals import find, inferred, milestones, pair_of, score_of, sides
from longstop.sports.cricket.validate import validate_board


class Cricket(Sport[CricketState]):
    name = "cricket"
    kinds: ClassVar[Mapping[str, EventKind]] = {
        CricketKind.DELIVERY: EventKind(content=Delivery, fields=("innings", "over", "nth")),
        CricketKind.INFERRED: EventKind(content=InferredBalls, fields=("innings", "over")),
        CricketKind.OVER: EventKind(content=OverSummary, fields=("innings", "over")),
        CricketKind.INNINGS: EventKind(content=InningsSummary, fields=("innings",)),
        CricketKind.RESULT: EventKind(content=Result),
    }
    place = ("innings", "over", "nth", "position")
    resources = (BALLS, SCORECARD, NAMES)
    example: ClassVar[Mapping[str, Any]] = {
        "matchId": 1,
        "match_id": "crex_11HD",
        "events": [
            {
                "seq": 41,
                "key": "delivery:1:5:2",
                "kind": "delivery",
                "rev": 1,
                "op": "insert",
                "innings": 1,
                "over": 5,
                "nth": 2,
                "position": 32,
                "critical": True,
                "source": "crex",
                "source_event_id": "1730",
                "captured_at": "2026-11-12T10:30:45.120Z",
                "data": {
                    "label": {"over": 5, "ball": 2},
                    "runs": {"batter": 4, "wides": 0, "noballs": 0, "byes": 0, "legbyes": 0, "penalty": 0},
                    "boundary": 4,
                    "batter": "P1",
                    "bowler": "P2",
                    "wickets": [],
                },
            }
        ],
        "next_after": 41,
        "has_more": False,
    }
    state = CricketState
    dom_board = DomBoard

    async def read(
        self, client: Client, state: CricketState, *, is_full: bool = False, stand_in: ListingEntry | None = None
    ) -> Observation:
        return await read(client, state, is_full=is_full, stand_in=stand_in if isinstance(stand_in, Board) else None)

    def diff(self, state: CricketState, observation: Observation) -> Draft:
        return diff(state, observation.view)

    def diff_dom(self, state: CricketState, board: DomBoard) -> Draft:
        return diff_dom(state, board)

    async def introduce(self, client: Client, state: CricketState) -> Keys:
        return await introduce(client, state)

    def names(self, view: CricketView) -> Keys:
        return Keys(players=view.names.players, teams=view.names.teams)

    def rekey(self, view: object, keys: Keys) -> object:
        return rekey(view, keys)

    def order(self, event: Event) -> tuple[float, ...]:
        return order_of_play(event)

    def describe(self, event: Event) -> str:
        match event.content:
            case Delivery(label=label, runs=runs, wickets=wickets):
                fallen = "".join(f", {wicket.player_out} {wicket.kind}" for wicket in wickets)
                return f"{label}: {_runs_text(runs)}{fallen}"
            case InferredBalls() as unseen:
                return f"not shown: {unseen.balls} balls, {unseen.runs} runs, {unseen.wickets} wickets"
            case OverSummary(runs=over_runs, score=score):
                return f"over: {over_runs} runs, {score.runs}/{score.wickets}"
            case InningsSummary(runs=total, wickets=gone, overs=overs):
                return f"innings: {total}/{gone} in {overs}"
            case Result(text=text):
                return text
            case other:
                raise TypeError(f"{type(other).__name__} is not a cricket event")

    def stand_in(self, state: CricketState) -> Board:
        """Return the last scoreboard, or an empty one; never one of a rendered page, because it creates events."""
        if state.board is not None and not is_dom_only(state):
            return state.board
        return Board(source_id=state.feed.source_id, status=state.row.status, headline="")


_EXTRAS = {"wides": "wide", "noballs": "no-ball", "byes": "bye", "legbyes": "leg bye", "penalty": "penalty run"}


def _runs_text(runs: Runs) -> str:
    """Return the runs of a delivery; extras by name, since a wide or no-ball shares its label with the next ball."""
    parts = [f"{runs.batter}"] if runs.batter else []
    for field, name in _EXTRAS.items():
        if count := getattr(runs, field):
            parts.append(f"{count} {name}" if count == 1 else f"{count} {name}s")
    return " + ".join(parts) or "0"


def diff(state: CricketState, seen: CricketView) -> Draft:
    """Compare a view with the stored state: return new versions, findings, and the next state."""
    settled = {innings for innings, difference in seen.differences.items() if not difference}
    # A new innings starts a new pair on the board, with lower numbers: that is not a step back.
    before = None if seen.newest_innings > state.newest_innings else state.board
    board, doubted_board = confirm_board(seen.board, before, state.suspects)
    batting, doubted_sides = sides(state, newest_shown(seen.newest_innings, board), board, seen.scorecard)
    reached = milestones(state.events, seen.newest_innings, seen.board, seen.scorecard, seen.listed.events, batting)
    found = align(
        state.events,
        seen.listed,
        _with_inferred(reached, state, seen),
        confirmed=state.suspects,
        settled=settled | _off_the_board(seen),
    )
    after = msgspec.structs.replace(
        state,
        events={**state.events, **{event.key: event for event in found.events}},
        board=board,
        scorecard=seen.scorecard,
        players={**state.players, **seen.names.players},
        teams={**state.teams, **seen.names.teams},
        differences={innings: difference for innings, difference in seen.differences.items() if difference},
        sides=batting,
    )
    findings, doubts = confirm(find(after, seen.differences), state.suspects, state.findings)
    suspects = frozenset(found.suspects) | doubts | doubted_board | doubted_sides
    after = msgspec.structs.replace(
        after,
        suspects=suspects,
        findings=findings,
        has_unnamed=_has_unnamed(after),
        sync=_sync(state.sync, seen, is_in_doubt=bool(suspects)),
    )
    return _draft(
        after,
        board,
        events=tuple(found.events),
        ids=found.ids,
        players=learnt(seen.names.players, state.players),
        teams=learnt(seen.names.teams, state.teams),
    )


def _has_unnamed(state: CricketState) -> bool:
    contents = (event.content for event in state.events.values() if event.is_live)
    keys = {key for each in contents if isinstance(each, Delivery) for key in (each.batter, each.bowler)}
    teams = {state.board.batting, state.board.bowling} if state.board else set()
    return bool((keys - {None}) - state.players.keys() or (teams - {""}) - state.teams.keys())


def _draft(state: CricketState, board: Board, **changes: Any) -> Draft:
    # A blank scoreboard must not overwrite the served payload.
    is_blank = board.first is None and not (board.headline or board.fingerprint)
    return Draft(
        state=state,
        status=status_of(state, board),
        title=title_of(state, board),
        start_at=board.start_at or state.row.start_at,
        payload=None if is_blank else canonical(normalise(state, board).model_dump(mode="json", exclude_unset=True)),
        **changes,
    )


def _with_inferred(reached: Milestones, state: CricketState, seen: CricketView) -> Milestones:
    """Add sums for balls that a window did not show, and withdraw sums whose balls appeared later."""
    if not seen.listed.is_window:
        return reached
    sums: list[SeenEvent] = []
    # Include innings without any ball or complete over on the page: only their total is known.
    for innings in range(1, seen.newest_innings + 1):
        score = score_of(innings, seen.newest_innings, seen.board, seen.scorecard)
        unseen = inferred(state.events, seen.listed, innings, score)
        sums += [_sum_of(innings, over, content) for over, content in unseen.items()]
    places = {(each.innings, each.over) for each in sums}
    gone = [
        key
        for key in state.events
        if key.kind == CricketKind.INFERRED and (innings_of(key), over_of(key)) not in places
    ]
    return Milestones(reached=(*reached.reached, *sums), withdrawn=(*reached.withdrawn, *gone))


def _sum_of(innings: int, over: int, content: InferredBalls) -> SeenEvent:
    name = f"inferred-{innings}-{over}"
    return SeenEvent(kind=CricketKind.INFERRED, innings=innings, over=over, source_event_id=name, content=content)


def _off_the_board(seen: CricketView) -> set[int]:
    """Return innings that the scoreboard no longer shows. The event list decides there, once it has a later one."""
    shown = {event.innings for event in seen.listed.events}
    return shown - set(seen.differences) - {max(shown, default=0)}


def _sync(before: SyncState, seen: CricketView, *, is_in_doubt: bool) -> SyncState:
    """Return IN_SYNC after the whole list was compared and nothing awaits a second poll."""
    if before is SyncState.IN_SYNC:
        return before
    return SyncState.IN_SYNC if seen.is_exhausted and not is_in_doubt else SyncState.RECOVERING


# --- the rendered page ---------------------------------------------------------------------------------------------


def diff_dom(state: CricketState, rendered: DomBoard) -> Draft:
    """Return the match with score, status and headline of the rendered page, and unchanged events.

    The page has no key of the match, so it is accepted only if it names both sides.
    """
    payload = stored_payload(state)
    batting, bowling = _keys(state.teams, rendered.names)
    board = Board(
        source_id=state.feed.source_id,
        status=rendered.status,
        headline=rendered.headline,
        fingerprint=rendered.fingerprint,
        start_at=state.row.start_at,
        batting=batting,
        bowling=bowling,
        first=rendered.first,
        second=rendered.second,
        result=rendered.result,
        is_innings_over=rendered.is_innings_over,
        match_format=payload["metadata"].get("match_type"),
    )
    validate_board(state, board)
    _check_progress(payload["innings"], board)
    at_bat, _ = sides(state, newest_shown(state.newest_innings, board), board, state.scorecard)
    after = msgspec.structs.replace(
        state, board=board, sides=at_bat, findings=with_dom_gap(state), sync=SyncState.RECOVERING
    )
    return _draft(after, board)


def _keys(teams: Mapping[str, str], names: tuple[str, str]) -> tuple[str, str]:
    """Return the keys of both sides by name; any other name means another match."""
    match [_called(teams, shown) for shown in names]:
        case [[one], [two]] if one != two:
            return one, two
    raise WrongMatch(f"the rendered page shows {' and '.join(names)}, this match is {sorted(teams.values())}")


def _called(teams: Mapping[str, str], shown: str) -> list[str]:
    """Return the keys that a name may mean. An exact name wins: it may be the beginning of the other side's name."""
    exactly = [key for key, name in teams.items() if name.casefold() == shown.casefold()]
    return exactly or [key for key, name in teams.items() if is_name_of(name, shown)]


def _check_progress(served: Iterable[Mapping[str, Any]], board: Board) -> None:
    """Raise if the page shows less than is served: a correction or another pair of innings, which is unknown."""
    known = {innings["number"]: _score(innings) for innings in served}
    first, second = pair_of(max(known, default=0))
    is_upcoming = board.status is MatchStatus.UPCOMING and bool(known)
    if is_upcoming or is_less(board.first, known.get(first)) or is_less(board.second, known.get(second)):
        raise ImpossibleObservation("the rendered page shows less than is already stored")


def _score(innings: Mapping[str, Any]) -> InningsScore:
    overs = innings["overs"]
    return InningsScore(runs=innings["runs"], wickets=innings["wickets"], overs=Overs(overs["over"], overs["ball"]))
