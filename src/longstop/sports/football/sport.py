"""The football plug-in: turns what a poll showed into what is stored."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, ClassVar

from msgspec.structs import replace

from longstop.errors import WrongMatch
from longstop.matches.event_versions_and_confirmation import advance, awaited, confirm_board, settle
from longstop.model.event import Event, EventKey
from longstop.model.polling_status import SyncState
from longstop.model.snapshot import canonical
from longstop.model.source_queries_and_answers import LIVE, Keys, Observation, Query
from longstop.sports.base import Client, Draft, EventKind, Sport, is_name_of, stored_payload, with_dom_gap
from longstop.sports.football.align import align
from longstop.sports.football.model import (
    INCIDENTS,
    LINEUPS,
    PLAYER_KEYS,
    STATISTICS,
    TEAM_KEYS,
    Card,
    Doubt,
    FootballBoard,
    FootballDomBoard,
    FootballKind,
    FootballResult,
    FootballState,
    FootballView,
    Goal,
    GoalKind,
    Goals,
    Incidents,
    Kick,
    MissedPenalty,
    PeriodEnd,
    Side,
    Substitution,
    Timed,
    VarDecision,
    names_in,
    order_of_play,
)
from longstop.sports.football.page_validation import (
    POLLS_AGAINST,
    are_mostly_unknown,
    polls_needed,
    validate_board,
)
from longstop.sports.football.payload import FootballEventV1, normalise, status_of, title_of
from longstop.sports.football.poll_requests import read
from longstop.sports.football.totals import differences, disagreement, mismatches

#: Line-ups count as a witness once they have been known for this long.
SQUAD_KNOWN_AFTER = timedelta(seconds=30)
#: The suspect token of a doubted list of incidents.
DOUBTED_LIST = "list"


class Football(Sport[FootballState]):
    name = "football"
    kinds: ClassVar[Mapping[str, EventKind]] = {
        FootballKind.GOAL: EventKind(content=Goal, fields=("nth",)),
        FootballKind.CARD: EventKind(content=Card, fields=("nth",)),
        FootballKind.SUBSTITUTION: EventKind(content=Substitution, fields=("nth",), is_critical=False),
        FootballKind.VAR: EventKind(content=VarDecision, fields=("nth",), is_critical=False),
        FootballKind.MISSED_PENALTY: EventKind(content=MissedPenalty, fields=("nth",), is_critical=False),
        FootballKind.PERIOD: EventKind(content=PeriodEnd, fields=("nth",)),
        FootballKind.KICK: EventKind(content=Kick, fields=("nth",)),
        FootballKind.RESULT: EventKind(content=FootballResult),
    }
    place = ("side", "nth")
    resources = (INCIDENTS, LINEUPS, STATISTICS)
    example = Event(
        key=EventKey(FootballKind.GOAL, (1,), Side.HOME),
        content=Goal(minute=45, added=2, scorer="800012", how=GoalKind.REGULAR, home=1, away=0),
        source_event_id="118000070",
        source="sofascore",
    )
    state = FootballState
    dom_board = FootballDomBoard
    player_keys = PLAYER_KEYS
    team_keys = TEAM_KEYS
    read = staticmethod(read)
    order = staticmethod(order_of_play)

    def diff(self, state: FootballState, observation: Observation) -> Draft:
        """Compare a view with the stored state: return new versions, findings, and the next state."""
        seen: FootballView = observation.view
        state, doubted_squad = _with_parts(state, seen, observation.captured_at)
        off = disagreement(state, seen)
        agree = None if seen.incidents is None or seen.board.score is None else not off
        board, doubted_board = confirm_board(seen.board, state.board, state.suspects, is_backed=agree is True)
        incidents, doubt = _believed_list(state, seen, observation.captured_at)
        if observation.contradiction is not None:  # several polls decide about it as a whole
            incidents, doubt = seen.incidents, None
        versions = align(
            state.events,
            incidents.items if incidents else None,
            seen.board.result,
            confirmed=state.suspects,
            settled=set() if seen.board.score is None else set(Side) - {side for side, _, _ in off},
        )
        state = _without_unknown_lineups(state, incidents)
        names = names_in(seen.board, incidents, state.lineups)
        after = advance(state, versions, names, board=board, differences=off, doubt=doubt)
        after = settle(
            state,
            after,
            mismatches(differences(after.goals, board.score)),
            {*versions.suspects, *doubted_board, *doubted_squad, *([DOUBTED_LIST] if doubt else ())},
            # Where neither site nor store has a list, there is nothing to compare.
            is_compared=seen.incidents is not None or not state.incidents,
        )
        return _draft(after, board, events=tuple(versions.events), ids=versions.ids, agree=agree)

    def teams(self, view: FootballView) -> tuple[str, ...]:
        return view.board.teams

    def shown(self, view: FootballView) -> frozenset[object]:
        return frozenset(view.incidents.items) if view.incidents else frozenset()

    def extent(self, view: FootballView) -> Mapping[str, int]:
        return {"events": len(view.incidents.items) if view.incidents else 0}

    def diff_dom(self, state: FootballState, rendered: FootballDomBoard) -> Draft:
        """Return the match with score, status and headline of the rendered page, and unchanged events.

        A lower score may be a disallowed goal: it counts when a second poll shows it again. The page has no list of
        incidents, so a doubted list is no longer "in a row".
        """
        served = _served(state)
        board = _board(served, rendered)
        validate_board(state, board)
        # The page shows nothing of a shoot-out.
        comparable = replace(served, penalties=board.penalties)
        _, doubted_board = confirm_board(board, comparable, state.suspects)
        believed = (state.board or served) if doubted_board else board
        suspects = frozenset(each for each in state.suspects - {DOUBTED_LIST} if not each.startswith("board "))
        after = replace(
            state,
            board=believed,
            findings=with_dom_gap(state),
            suspects=suspects | doubted_board,
            doubt=None,
            sync=SyncState.RECOVERING,
        )
        return _draft(after, believed)

    async def introduce(self, client: Client, state: FootballState) -> Keys:
        board = await client.ask(Query(resource=LIVE, source_id=state.feed.source_id), FootballBoard)
        return names_in(board, None, None)

    def names(self, view: FootballView) -> Keys:
        return names_in(view.board, view.incidents, view.lineups)

    def describe(self, event: Event) -> str:
        match event.content:
            case FootballResult(text=text):
                return text
            case Kick(sequence=sequence, is_scored=is_scored, home=home, away=away):
                return f"kick {sequence}: {'scored' if is_scored else 'missed'}, {home}-{away}"
            case PeriodEnd(period=period, home=home, away=away):
                return f"{period}: {home}-{away}"
            case Timed() as timed:
                minute = "-" if timed.minute is None else f"{timed.minute}'"
                return f"{minute}{f'+{timed.added}' if timed.added else ''}: {_what(timed)}"
            case other:
                raise TypeError(f"{type(other).__name__} is not a football event")


def _what(content: Timed) -> str:
    match content:
        case Goal(how=how, home=home, away=away):
            return f"{how} goal, {home}-{away}"
        case Card(card=card):
            return f"{card} card"
        case VarDecision(decision=decision):
            return decision
        case Substitution():
            return "substitution"
        case MissedPenalty():
            return "penalty missed"
        case other:
            raise TypeError(f"{type(other).__name__} is not a football event")


def _draft(state: FootballState, board: FootballBoard, **changes: Any) -> Draft:
    return Draft(
        state=state,
        status=status_of(state, board),
        title=title_of(board),
        start_at=board.start_at or state.row.start_at,
        payload=canonical(normalise(state, board)),
        **changes,
    )


def _with_parts(state: FootballState, seen: FootballView, now: datetime) -> tuple[FootballState, frozenset[str]]:
    """Return the state with line-ups and statistics, and the token of line-ups that await further polls.

    Line-ups do not name their match. Other players replace those that are known only after enough polls in a row.
    """
    shown, known = seen.lineups, state.squad_keys
    are_new = shown is not None and are_mostly_unknown(shown.keys, known)
    suspect = None
    if shown is not None and are_new and known:
        suspect = awaited(f"squad {min(shown.keys)}", state.suspects, POLLS_AGAINST)
    asked_at = state.parts_asked_at if seen.parts_asked_at is None else seen.parts_asked_at
    after = replace(
        state,
        statistics=seen.statistics or state.statistics,
        parts_asked_at=None if suspect else asked_at,
    )
    if suspect is None:
        after = replace(after, lineups=shown or state.lineups, squad_since=now if are_new else state.squad_since)
    return after, frozenset([suspect] if suspect else [])


def _believed_list(state: FootballState, seen: FootballView, now: datetime) -> tuple[Incidents | None, Doubt | None]:
    """Return the list to use, or the doubt about it.

    A list that shares nothing with what is known may be of another match. It is accepted after enough polls in a row;
    a list that has grown since counts as the same.
    """
    shown, before = seen.incidents, state.doubt
    if shown is None:
        return None, None
    items = frozenset(shown.items)
    polls = before.polls + 1 if before and before.items <= items else 1
    is_squad_known = state.squad_since is None or now - state.squad_since >= SQUAD_KNOWN_AFTER
    if polls >= polls_needed(state, seen.board, shown, is_squad_known=is_squad_known):
        return shown, None
    return None, Doubt(items=items, polls=polls)


def _without_unknown_lineups(state: FootballState, incidents: Incidents | None) -> FootballState:
    """Return the state without line-ups that an accepted list contradicts; they are read again at once."""
    named = incidents.keys if incidents else set()
    if state.lineups is None or not are_mostly_unknown(named, state.squad_keys):
        return state
    return replace(state, lineups=None, parts_asked_at=None)


# --- the rendered page ---------------------------------------------------------------------------------------------


def _board(served: FootballBoard, rendered: FootballDomBoard) -> FootballBoard:
    """Return the board of the page; fields that it does not show are kept while they are still true."""
    for known, shown in ((served.home, rendered.home), (served.away, rendered.away)):
        if not is_name_of(known.name, shown.name):
            raise WrongMatch(f"the rendered page shows {shown.name!r} where this match has {known.name!r}")
    is_same = (rendered.score, rendered.headline) == (served.score, served.headline)
    return replace(
        served,
        status=rendered.status,
        headline=rendered.headline,
        fingerprint=rendered.fingerprint,
        shows_every_change=rendered.shows_every_change,
        score=rendered.score,
        periods=served.periods if is_same else (),
        penalties=served.penalties if is_same else None,
    )


def _served(state: FootballState) -> FootballBoard:
    """Return the board that is served now, rebuilt from its payload."""
    served = stored_payload(state, FootballEventV1)
    score, about = served.score, served.metadata
    return FootballBoard(
        source_id=state.feed.source_id,
        status=served.status,
        headline=served.headline or "",
        start_at=state.row.start_at,
        home=served.teams.home,
        away=served.teams.away,
        score=Goals(home=score.home, away=score.away) if score else None,
        periods=score.periods if score else (),
        penalties=score.penalties if score else None,
        tournament=about.tournament,
        season=about.season,
        round=about.round,
        details=about,
    )
