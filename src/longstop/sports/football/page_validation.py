"""Validates pages: they must be of the requested match, and their values possible. Also compares totals."""

from longstop.errors import ImpossibleObservation, WrongMatch
from longstop.sports.football.model import (
    Card,
    CardKind,
    FootballBoard,
    FootballState,
    Goal,
    GoalKind,
    Goals,
    Incidents,
    Lineups,
    PeriodEnd,
    Side,
    Statistic,
    Statistics,
)
from longstop.sports.football.totals import goals_in

#: Per side; no real match has more.
MAX_GOALS = 60
STARTERS = 11
#: The source's keys of figures, and of the period of the whole match.
POSSESSION, YELLOW_CARDS, ON_TARGET, WHOLE_MATCH = "ballPossession", "yellowCards", "shotsOnGoal", "ALL"
#: Statistics and list are fetched one after the other, so either may be this many events ahead.
STATISTICS_TOLERANCE = 1
#: A list must name this many players before it can be identified as another match's.
ENOUGH_PLAYERS = 3
#: Polls in a row that an unknown list needs, and one that contradicts what is known.
POLLS_UNKNOWN, POLLS_AGAINST = 2, 5
#: The name of a period on the board, by the name of its end.
_PART_OF = {"HT": "period1", "FT": "period2"}


def validate_board(state: FootballState, board: FootballBoard) -> None:
    """Raise if the event cannot be of this match. Before kick-off its sides may still change."""
    if state.incidents:
        for shown, known in zip(board.teams, state.known_teams, strict=False):
            if shown != known:
                raise WrongMatch(f"the event has team {shown} where this match has {known}")
    if board.home.key == board.away.key:
        raise ImpossibleObservation(f"team {board.home.key} plays against itself")
    for side in Side:
        if board.score is not None and not 0 <= board.score.of(side) <= MAX_GOALS:
            raise ImpossibleObservation(f"{board.score.of(side)} goals by one side")


def validate_incidents(state: FootballState, incidents: Incidents) -> None:
    """Raise if the list is of another match. It does not name its match, but it names players.

    That is certain only if the line-ups agree with stored events. Otherwise `polls_needed` decides.
    """
    playing, named = state.squad_keys, incidents.keys
    if state.event_players & playing and len(named) >= ENOUGH_PLAYERS and are_mostly_unknown(named, playing):
        raise WrongMatch(f"the incidents are of another match: {len(named - playing)} players are not in the line-ups")


def has_stored_event(state: FootballState, incidents: Incidents) -> bool:
    """Return whether a list has a stored event, equal in every field. An id alone proves nothing: sites may use the
    same ids in every match."""
    held = {(event.key.side, event.source_event_id, event.content) for event in state.incidents}
    # Period ends are excluded: every match has a half-time.
    shown = {(item.side, item.source_event_id, item.content) for item in incidents.items if item.side is not None}
    return bool(held & shown)


def has_known_players(state: FootballState, incidents: Incidents) -> bool:
    """Return whether a list names a player of a stored event, or mostly players of the line-ups."""
    named = incidents.keys
    return bool(named & state.event_players) or (bool(named) and not are_mostly_unknown(named, state.squad_keys))


def polls_needed(
    state: FootballState, board: FootballBoard, incidents: Incidents, *, is_squad_known: bool = True
) -> int:
    """Return how many polls in a row must show a list before it is accepted.

    The board names its match, so a list that contradicts it needs more polls. Line-ups of the same moment may be of the
    same wrong match: they count once they have been known for a while (`is_squad_known`). The same players play in
    other matches, such as the other leg of a tie: if only players match, the score must match, too.
    """
    if not incidents.items or has_stored_event(state, incidents):
        return 1
    if not is_squad_known and not incidents.keys & state.event_players:
        return POLLS_AGAINST
    if has_known_players(state, incidents):
        return 1 if board.score is not None and fits(board, incidents) else POLLS_UNKNOWN
    known, named = state.squad_keys | state.event_players, incidents.keys
    is_against = (bool(known) and are_mostly_unknown(named, known)) or not fits(board, incidents)
    # Many matches are without a goal: then the board says nothing about the list.
    has_goals = board.score is not None and board.score != Goals(home=0, away=0)
    return POLLS_UNKNOWN if has_goals and not is_against else POLLS_AGAINST


def fits(board: FootballBoard, incidents: Incidents) -> bool:
    """Return whether a list has the goals of the board, in total and at the end of each half."""
    if board.score is not None and goals_in(incidents) != board.score:
        return False
    ends = (item.content for item in incidents.items if isinstance(item.content, PeriodEnd))
    return all(_score_after(board, end.period) in (None, Goals(home=end.home, away=end.away)) for end in ends)


def _score_after(board: FootballBoard, end: str) -> Goals | None:
    """Return the score at the end of a half; `None` if the board does not show it."""
    names = [part.name for part in board.periods]
    if _PART_OF.get(end) not in names:
        return None
    played = board.periods[: names.index(_PART_OF[end]) + 1]
    return Goals(home=sum(part.home for part in played), away=sum(part.away for part in played))


def needs_lineups(state: FootballState, incidents: Incidents | None) -> bool:
    """Return whether line-ups are needed to decide if a list is of this match."""
    if incidents is None or has_stored_event(state, incidents) or has_known_players(state, incidents):
        return False
    return bool(incidents.keys)


def are_mostly_unknown(named: set[str], playing: set[str]) -> bool:
    """Return whether most named players do not play. A single one may be missing in the line-ups."""
    return 2 * len(named & playing) < len(named)


def validate_lineups(state: FootballState, lineups: Lineups) -> None:
    """Raise if these line-ups cannot be of this match."""
    keys = [player.key for squad in lineups.squads for player in squad.players]
    if len(keys) != len(set(keys)):
        raise ImpossibleObservation("the line-ups contain a player twice")
    for squad in lineups.squads:
        starters = len(squad.starters)
        if starters > STARTERS or (lineups.is_confirmed and starters != STARTERS):
            raise ImpossibleObservation(f"{starters} starters on one side")
    named = state.event_players
    if lineups.squads and are_mostly_unknown(named, set(keys)):
        raise WrongMatch(f"the line-ups are of another match: {len(named - set(keys))} players of this one are missing")


def is_known_squad(state: FootballState, lineups: Lineups) -> bool:
    """Return whether stored events or earlier line-ups confirm these line-ups."""
    return not lineups.keys or bool(state.event_players) or not are_mostly_unknown(lineups.keys, state.squad_keys)


def validate_again(first: Lineups, second: Lineups) -> None:
    """Raise unless a second response names most players of the first; an empty one names none."""
    if are_mostly_unknown(first.keys, second.keys):
        raise WrongMatch("two responses have different line-ups: one of them is of another match")


def validate_statistics(incidents: Incidents | None, statistics: Statistics) -> None:
    """Raise if the figures are impossible, or contradict the list of incidents."""
    for period, figures in statistics.periods.items():
        for key, figure in figures.items():
            if figure.home < 0 or figure.away < 0:
                raise ImpossibleObservation(f"{key} of {period} is negative")
            if key == POSSESSION and abs(figure.home + figure.away - 100) > 1:
                raise ImpossibleObservation(f"ball possession of {figure.home} and {figure.away} per cent")
            if period == WHOLE_MATCH and incidents is not None:
                _check_against(incidents, key, figure)


def _check_against(incidents: Incidents, key: str, figure: Statistic) -> None:
    """Raise if a figure contradicts the list: statistics do not name their match."""
    for side, counted in ((Side.HOME, figure.home), (Side.AWAY, figure.away)):
        shown = [item.content for item in incidents.items if item.side is side]
        # Cards of coaches have no player and are not counted.
        cards = sum(isinstance(it, Card) and it.player is not None and it.card is not CardKind.RED for it in shown)
        goals = sum(isinstance(it, Goal) and it.how is not GoalKind.OWN_GOAL for it in shown)
        if key == YELLOW_CARDS and abs(counted - cards) > STATISTICS_TOLERANCE:
            raise WrongMatch(f"the statistics are of another match: {counted:g} cards, but {cards} in the list")
        if key == ON_TARGET and counted < goals - STATISTICS_TOLERANCE:
            raise WrongMatch(f"the statistics are of another match: {counted:g} shots on target, but {goals} goals")
