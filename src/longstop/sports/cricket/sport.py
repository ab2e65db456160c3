"""The cricket plug-in: turns what a poll showed into what is stored."""

from collections.abc import Mapping
from typing import Any, ClassVar

from msgspec.structs import replace

from longstop.errors import ImpossibleObservation, WrongMatch
from longstop.matches.event_versions_and_confirmation import advance, confirm_board, settle
from longstop.model.event import Event, EventKey
from longstop.model.match import MatchStatus
from longstop.model.polling_status import SyncState
from longstop.model.snapshot import canonical
from longstop.model.source_queries_and_answers import Keys, Observation
from longstop.sports.base import Draft, EventKind, Sport, is_dom_only, is_name_of, stored_payload, with_dom_gap
from longstop.sports.cricket.align import Milestones, align, order_of_play
from longstop.sports.cricket.model import (
    BALLS,
    NAMES,
    PLAYER_KEYS,
    SCORECARD,
    TEAM_KEYS,
    Board,
    CricketKind,
    CricketState,
    CricketView,
    Delivery,
    DomBoard,
    InferredBalls,
    InningsSummary,
    Overs,
    OverSummary,
    Result,
    Runs,
    SeenEvent,
    innings_of,
    is_less,
    over_of,
)
from longstop.sports.cricket.page_validation import validate_board
from longstop.sports.cricket.payload import CricketMatchV1, newest_shown, normalise, status_of, title_of
from longstop.sports.cricket.poll_requests import introduce, read
from longstop.sports.cricket.totals_gaps_and_derived_events import find, inferred, milestones, pair_of, score_of, sides


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
    example = Event(
        key=EventKey(CricketKind.DELIVERY, (1, 5, 2)),
        content=Delivery(label=Overs(5, 2), runs=Runs(batter=4), boundary=4, batter="P1", bowler="P2"),
        source_event_id="1730",
        source="crex",
        position=32,
    )
    state = CricketState
    dom_board = DomBoard
    player_keys = PLAYER_KEYS
    team_keys = TEAM_KEYS
    read = staticmethod(read)
    introduce = staticmethod(introduce)
    order = staticmethod(order_of_play)

    def diff(self, state: CricketState, observation: Observation) -> Draft:
        """Compare a view with the stored state: return new versions, findings, and the next state."""
        seen: CricketView = observation.view
        settled = {innings for innings, difference in seen.differences.items() if not difference}
        # A new innings starts a new pair on the board, with lower numbers: that is not a step back.
        before = None if seen.newest_innings > state.newest_innings else state.board
        agree = not any(seen.differences.values()) if seen.differences else None
        board, doubted_board = confirm_board(seen.board, before, state.suspects, is_backed=agree is True)
        batting, doubted_sides = sides(state, newest_shown(seen.newest_innings, board), board, seen.scorecard)
        reached = milestones(state.events, seen.newest_innings, seen.board, seen.scorecard, seen.listed.events, batting)
        versions = align(
            state.events,
            seen.listed,
            _with_inferred(reached, state, seen),
            confirmed=state.suspects,
            settled=settled | _off_the_board(seen),
            contradicted={innings for innings in set(seen.differences) - settled if not _is_witnessed(seen, innings)},
        )
        after = advance(
            state,
            versions,
            seen.names,
            board=board,
            scorecard=seen.scorecard,
            differences={innings: difference for innings, difference in seen.differences.items() if difference},
            sides=batting,
            names_due_at=seen.names_due_at,
        )
        after = settle(
            state,
            after,
            find(after, seen.differences),
            {*versions.suspects, *doubted_board, *doubted_sides},
            is_compared=seen.is_exhausted,
        )
        return _draft(after, board, events=tuple(versions.events), ids=versions.ids, agree=agree)

    def teams(self, view: CricketView) -> tuple[str, ...]:
        return view.board.teams

    def shown(self, view: CricketView) -> frozenset[object]:
        return frozenset(view.listed.events)

    def extent(self, view: CricketView) -> Mapping[str, int]:
        events = view.listed.events
        return {
            "events": len(events),
            "innings": view.newest_innings,
            "overs": max((event.over + 1 for event in events), default=0),
        }

    def diff_dom(self, state: CricketState, rendered: DomBoard) -> Draft:
        """Return the match with score, status and headline of the rendered page, and unchanged events.

        The page has no key of the match, so it is accepted only if it names both sides.
        """
        served = stored_payload(state, CricketMatchV1)
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
            match_format=served.metadata.match_type,
        )
        validate_board(state, board)
        _check_progress(served, board)
        at_bat, _ = sides(state, newest_shown(state.newest_innings, board), board, state.scorecard)
        after = replace(state, board=board, sides=at_bat, findings=with_dom_gap(state), sync=SyncState.RECOVERING)
        return _draft(after, board)

    def names(self, view: CricketView) -> Keys:
        return view.names

    def describe(self, event: Event) -> str:
        match event.content:
            case Delivery(label=label, runs=runs, wickets=wickets):
                fallen = "".join(f", {wicket.player_out} {wicket.kind}" for wicket in wickets)
                return f"{label}: {_runs_text(runs)}{fallen}"
            case InferredBalls() as unseen:
                return f"not shown: {unseen.balls} balls, {unseen.runs} runs, {unseen.wickets} wickets"
            case OverSummary(runs=over_runs, score=score):
                return f"over: {over_runs} runs, {score.runs}/{score.wickets}"
            case InningsSummary(team=team, runs=total, wickets=gone, overs=overs):
                return f"innings{f' of {team}' if team else ''}: {total}/{gone} in {overs}"
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


def _draft(state: CricketState, board: Board, **changes: Any) -> Draft:
    # A blank scoreboard must not overwrite the served payload.
    is_blank = board.first is None and not (board.headline or board.fingerprint)
    return Draft(
        state=state,
        status=status_of(state, board),
        title=title_of(state, board),
        start_at=board.start_at or state.row.start_at,
        payload=None if is_blank else canonical(normalise(state, board)),
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
    return SeenEvent(innings=innings, over=over, source_event_id=name, content=content)


def _is_witnessed(seen: CricketView, innings: int) -> bool:
    """Return whether the scorecard has the scoreboard's total of an innings: penalty runs belong to no ball."""
    total = score_of(innings, seen.newest_innings, seen.board, None)
    cards = seen.scorecard.innings if seen.scorecard else ()
    return total is not None and any(card.number == innings and card.score == total for card in cards)


def _off_the_board(seen: CricketView) -> set[int]:
    """Return innings that the scoreboard no longer shows. The event list decides there, once it has a later one."""
    shown = {event.innings for event in seen.listed.events}
    return shown - set(seen.differences) - {max(shown, default=0)}


# --- the rendered page ---------------------------------------------------------------------------------------------


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


def _check_progress(served: CricketMatchV1, board: Board) -> None:
    """Raise if the page shows less than is served: a correction or another pair of innings, which is unknown."""
    known = {innings.number: innings for innings in served.innings}
    first, second = pair_of(max(known, default=0))
    is_upcoming = board.status is MatchStatus.UPCOMING and bool(known)
    if is_upcoming or is_less(board.first, known.get(first)) or is_less(board.second, known.get(second)):
        raise ImpossibleObservation("the rendered page shows less than is already stored")
