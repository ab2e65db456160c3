"""The football plug-in: turns what a poll showed into what is stored."""

from collections.abc import Mapping
from typing import Any, ClassVar

import msgspec

from longstop.errors import WrongMatch
from longstop.matches.versions import confirm, confirm_board, learnt
from longstop.model.event import Event
from longstop.model.match import MatchStatus, SyncState
from longstop.model.observation import LIVE, Keys, ListingEntry, Observation, Query
from longstop.model.snapshot import canonical
from longstop.sports.base import Client, Draft, EventKind, Sport, is_name_of, stored_payload, with_dom_gap
from longstop.sports.football.align import align
from longstop.sports.football.model import (
    INCIDENTS,
    LINEUPS,
    STATISTICS,
    Card,
    Doubt,
    FootballBoard,
    FootballDomBoard,
    FootballKind,
    FootballResult,
    FootballState,
    FootballTeam,
    FootballView,
    Goal,
    Goals,
    Incidents,
    Kick,
    MissedPenalty,
    PeriodEnd,
    PeriodScore,
    Side,
    Substitution,
    VarDecision,
    names_in,
    order_of_play,
    players_in,
    rekey,
    squads,
)
from longstop.sports.football.payload import normalise, status_of, title_of
from longstop.sports.football.read import read
from longstop.sports.football.totals import differences, disagreement, mismatches
from longstop.sports.football.validate import are_strangers, polls_needed, validate_board

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
    example: ClassVar[Mapping[str, Any]] = {
        "matchId": 2,
        "match_id": "sofascore_11400000",
        "events": [
            {
                "seq": 7,
                "key": "goal:home:1",
                "kind": "goal",
                "rev": 1,
                "op": "insert",
                "side": "home",
                "nth": 1,
                "critical": True,
                "source": "sofascore",
                "source_event_id": "118000070",
                "captured_at": "2026-11-12T10:30:45.120Z",
                "data": {
                    "minute": 45,
                    "added": 2,
                    "scorer": "800012",
                    "assist": None,
                    "how": "regular",
                    "home": 1,
                    "away": 0,
                },
            }
        ],
        "next_after": 7,
        "has_more": False,
    }
    state = FootballState
    dom_board = FootballDomBoard

    async def read(
        self, client: Client, state: FootballState, *, is_full: bool = False, stand_in: ListingEntry | None = None
    ) -> Observation:
        board = stand_in if isinstance(stand_in, FootballBoard) else None
        return await read(client, state, is_full=is_full, stand_in=board)

    def diff(self, state: FootballState, observation: Observation) -> Draft:
        return diff(state, observation.view)

    def diff_dom(self, state: FootballState, board: FootballDomBoard) -> Draft:
        return diff_dom(state, board)

    async def introduce(self, client: Client, state: FootballState) -> Keys:
        board = await client.ask(Query(resource=LIVE, source_id=state.feed.source_id), FootballBoard)
        return names_in(FootballView(board=board, incidents=None))

    def names(self, view: FootballView) -> Keys:
        return names_in(view)

    def rekey(self, view: object, keys: Keys) -> object:
        return rekey(view, keys)

    def order(self, event: Event) -> tuple[float, ...]:
        return order_of_play(event)

    def describe(self, event: Event) -> str:
        match event.content:
            case FootballResult(text=text):
                return text
            case Kick(sequence=sequence, is_scored=is_scored, home=home, away=away):
                return f"kick {sequence}: {'scored' if is_scored else 'missed'}, {home}-{away}"
            case PeriodEnd(period=period, home=home, away=away):
                return f"{period}: {home}-{away}"
            case Goal() | Card() | Substitution() | VarDecision() | MissedPenalty() as timed:
                minute = "-" if timed.minute is None else f"{timed.minute}'"
                return f"{minute}{f'+{timed.added}' if timed.added else ''}: {_what(timed)}"
            case other:
                raise TypeError(f"{type(other).__name__} is not a football event")


def _what(content: Goal | Card | Substitution | VarDecision | MissedPenalty) -> str:
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


def diff(state: FootballState, seen: FootballView) -> Draft:
    """Compare a view with the stored state: return new versions, findings, and the next state."""
    state = _with_parts(state, seen)
    board, doubted_board = confirm_board(seen.board, state.board, state.suspects)
    off = disagreement(state, seen)
    incidents, doubt = _believed_list(state, seen)
    found = align(
        state.events,
        incidents.items if incidents else None,
        seen.board.result,
        confirmed=state.suspects,
        settled=set() if seen.board.score is None else set(Side) - {side for side, _, _ in off},
    )
    state = _without_strangers(state, incidents)
    players, teams = _names(state, incidents, seen.board)
    after = msgspec.structs.replace(
        state,
        events={**state.events, **{event.key: event for event in found.events}},
        board=board,
        players={**state.players, **players},
        teams={**state.teams, **teams},
        differences=off,
        doubt=doubt,
    )
    wrong = mismatches(differences(after.goals, board.score))
    findings, doubts = confirm(wrong, state.suspects, state.findings)
    doubted_list = frozenset({DOUBTED_LIST} if doubt else ())
    suspects = frozenset(found.suspects) | doubts | doubted_board | doubted_list
    after = msgspec.structs.replace(
        after,
        suspects=suspects,
        findings=findings,
        sync=_sync(state, seen, is_in_doubt=bool(suspects)),
    )
    return _draft(
        after,
        board,
        events=tuple(found.events),
        ids=found.ids,
        players=learnt(players, state.players),
        teams=learnt(teams, state.teams),
    )


def _draft(state: FootballState, board: FootballBoard, **changes: Any) -> Draft:
    return Draft(
        state=state,
        status=status_of(state, board),
        title=title_of(board),
        start_at=board.start_at or state.row.start_at,
        payload=canonical(normalise(state, board).model_dump(mode="json", exclude_unset=True)),
        **changes,
    )


def _with_parts(state: FootballState, seen: FootballView) -> FootballState:
    return msgspec.structs.replace(
        state,
        lineups=seen.lineups or state.lineups,
        statistics=seen.statistics or state.statistics,
        parts_asked_at=state.parts_asked_at if seen.parts_asked_at is None else seen.parts_asked_at,
    )


def _believed_list(state: FootballState, seen: FootballView) -> tuple[Incidents | None, Doubt | None]:
    """Return the list to use, or the doubt about it.

    A list that shares nothing with what is known may be of another match. It is accepted after enough polls in a row;
    a list that has grown since counts as the same.
    """
    shown, before = seen.incidents, state.doubt
    if shown is None:
        return None, None
    items = frozenset(shown.items)
    polls = before.polls + 1 if before and before.items <= items else 1
    if polls >= polls_needed(state, seen.board, shown):
        return shown, None
    return None, Doubt(items=items, polls=polls)


def _without_strangers(state: FootballState, incidents: Incidents | None) -> FootballState:
    """Return the state without line-ups that an accepted list contradicts; they are read again at once."""
    named = players_in(item.content for item in incidents.items) if incidents else set()
    if state.lineups is None or not are_strangers(named, state.squad_keys):
        return state
    return msgspec.structs.replace(state, lineups=None, parts_asked_at=None)


def _sync(state: FootballState, seen: FootballView, *, is_in_doubt: bool) -> SyncState:
    """Return IN_SYNC after the whole list was compared, or if neither site nor store has one, and no doubt is open."""
    is_compared = seen.incidents is not None or not state.incidents
    if state.sync is SyncState.IN_SYNC or (is_compared and not is_in_doubt):
        return SyncState.IN_SYNC
    return SyncState.RECOVERING


def _names(
    state: FootballState, incidents: Incidents | None, board: FootballBoard
) -> tuple[dict[str, str], dict[str, str]]:
    shown = squads(state.lineups)
    listed = {player.key: player.name for squad in shown for player in squad.players if player.name}
    absent = {player.key: player.name for squad in shown for player in squad.missing or () if player.name}
    mentioned = incidents.players if incidents else {}
    teams = {team.key: team.name for team in (board.home, board.away) if team.name}
    return {**absent, **mentioned, **listed}, teams


# --- the rendered page ---------------------------------------------------------------------------------------------


def diff_dom(state: FootballState, rendered: FootballDomBoard) -> Draft:
    """Return the match with score, status and headline of the rendered page, and unchanged events.

    A lower score may be a disallowed goal: it counts when a second poll shows it again. The page has no list of
    incidents, so a doubted list is no longer "in a row".
    """
    served = _served(state, stored_payload(state))
    board = _board(served, rendered)
    validate_board(state, board)
    # The page shows nothing of a shoot-out.
    comparable = msgspec.structs.replace(served, penalties=board.penalties)
    _, doubted_board = confirm_board(board, comparable, state.suspects)
    believed = (state.board or served) if doubted_board else board
    suspects = frozenset(each for each in state.suspects - {DOUBTED_LIST} if not each.startswith("board "))
    after = msgspec.structs.replace(
        state,
        board=believed,
        findings=with_dom_gap(state),
        suspects=suspects | doubted_board,
        doubt=None,
        sync=SyncState.RECOVERING,
    )
    return _draft(after, believed)


def _board(served: FootballBoard, rendered: FootballDomBoard) -> FootballBoard:
    """Return the board of the page; fields that it does not show are kept while they are still true."""
    for known, shown in ((served.home, rendered.home), (served.away, rendered.away)):
        if not is_name_of(known.name, shown.name):
            raise WrongMatch(f"the rendered page shows {shown.name!r} where this match has {known.name!r}")
    is_same = (rendered.score, rendered.headline) == (served.score, served.headline)
    return msgspec.structs.replace(
        served,
        status=rendered.status,
        headline=rendered.headline,
        fingerprint=rendered.fingerprint,
        shows_every_change=rendered.shows_every_change,
        score=rendered.score,
        periods=served.periods if is_same else (),
        penalties=served.penalties if is_same else None,
    )


def _served(state: FootballState, payload: Mapping[str, Any]) -> FootballBoard:
    """Return the board that is served now, rebuilt from its payload."""
    teams, score, about = payload["teams"], payload.get("score", {}), payload["metadata"]
    return FootballBoard(
        source_id=state.feed.source_id,
        status=MatchStatus(payload["status"]),
        headline=payload.get("headline", ""),
        start_at=state.row.start_at,
        home=FootballTeam(**teams["home"]),
        away=FootballTeam(**teams["away"]),
        score=_goals(score),
        periods=tuple(
            PeriodScore(name=part["period"], home=part["home"], away=part["away"]) for part in score.get("periods", ())
        ),
        penalties=_goals(score.get("penalties", {})),
        tournament=about.get("tournament"),
        season=about.get("season"),
        round=about.get("round"),
    )


def _goals(score: Mapping[str, Any]) -> Goals | None:
    return Goals(home=score["home"], away=score["away"]) if score else None
