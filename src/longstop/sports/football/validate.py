"""Whether to believe a page: it speaks of the match we asked for, and its values can be true."""

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
    people_in,
    squad_keys,
    squads,
)
from longstop.sports.football.totals import goals_in

#: No match has ever had more.
MAX_GOALS = 60
ELEVEN = 11
#: The source's names of figures, and of the period that they are for.
POSSESSION, YELLOW_CARDS, ON_TARGET, WHOLE_MATCH = "ballPossession", "yellowCards", "shotsOnGoal", "ALL"
#: So many people must be named before a list can be told to be of another match.
ENOUGH_PEOPLE = 3
#: In so many polls in a row a list must be shown of which nothing is known; and one that something speaks against.
POLLS_UNKNOWN, POLLS_AGAINST = 2, 5
#: What a board calls the part of a match that ends so.
_PART_OF = {"HT": "period1", "FT": "period2"}


def validate_board(state: FootballState, board: FootballBoard) -> None:
    """Raise unless the event can be the one of this match. Before the kick-off its sides may still be open."""
    before = state.board
    if before is not None and state.incidents:
        for shown, known in ((board.home, before.home), (board.away, before.away)):
            if shown.key != known.key:
                raise WrongMatch(f"the event has team {shown.key}, this match has {known.key} there")
    if board.home.key == board.away.key:
        raise ImpossibleObservation(f"team {board.home.key} plays against itself")
    for side in Side:
        if board.score is not None and board.score.of(side) > MAX_GOALS:
            raise ImpossibleObservation(f"{board.score.of(side)} goals of one side")


def validate_incidents(state: FootballState, incidents: Incidents) -> None:
    """Raise when the list is of another match: it does not say which one it is of, but it names people.

    That is certain only where the line-ups agree with what we hold; else it is a doubt, and `polls_needed` tells.
    """
    playing, named = state.squad_keys, people_in(item.content for item in incidents.items)
    if state.people & playing and len(named) >= ENOUGH_PEOPLE and are_strangers(named, playing):
        raise WrongMatch(f"the incidents are of another match: {len(named - playing)} people do not play here")


def is_vouched_for(state: FootballState, incidents: Incidents) -> bool:
    """Return whether something that we know speaks for a list: an event, or people."""
    return has_held_event(state, incidents) or has_our_people(state, incidents)


def has_held_event(state: FootballState, incidents: Incidents) -> bool:
    """Return whether a list has an event that we hold, equal in everything. An id alone says nothing: sites may number
    every match alike."""
    held = {(event.key.side, event.source_event_id, event.content) for event in state.incidents}
    # Every match has a half-time.
    shown = {(item.side, item.source_event_id, item.content) for item in incidents.items if item.side is not None}
    return bool(held & shown)


def has_our_people(state: FootballState, incidents: Incidents) -> bool:
    """Return whether a list names somebody who is named in an event that we hold, or mostly people who play here."""
    named = people_in(item.content for item in incidents.items)
    return bool(named & state.people) or (bool(named) and not are_strangers(named, state.squad_keys))


def polls_needed(state: FootballState, board: FootballBoard, incidents: Incidents) -> int:
    """Return in how many polls in a row a list must be shown before it is believed.

    The board is of this match, since it says so itself: what contradicts it needs more than to be shown again. People
    play in other matches too, those of a tie in its other leg: for them alone a list is believed when its score fits.
    """
    if not incidents.items or has_held_event(state, incidents):
        return 1
    if has_our_people(state, incidents):
        return 1 if board.score is not None and fits(board, incidents) else POLLS_UNKNOWN
    known, named = state.squad_keys | state.people, people_in(item.content for item in incidents.items)
    is_spoken_against = (bool(known) and are_strangers(named, known)) or not fits(board, incidents)
    return POLLS_AGAINST if is_spoken_against else POLLS_UNKNOWN


def fits(board: FootballBoard, incidents: Incidents) -> bool:
    """Return whether a list has the goals that a board shows, altogether and by the end of each half."""
    if board.score is not None and goals_in(incidents) != board.score:
        return False
    ends = (item.content for item in incidents.items if isinstance(item.content, PeriodEnd))
    return all(_score_after(board, end.period) in (None, Goals(home=end.home, away=end.away)) for end in ends)


def _score_after(board: FootballBoard, end: str) -> Goals | None:
    """Return the score when a half ended; `None` when the board does not show it."""
    names = [part.name for part in board.periods]
    if _PART_OF.get(end) not in names:
        return None
    played = board.periods[: names.index(_PART_OF[end]) + 1]
    return Goals(home=sum(part.home for part in played), away=sum(part.away for part in played))


def wants_witness(state: FootballState, incidents: Incidents | None) -> bool:
    """Return whether line-ups could tell of a list whether it is of this match, and nothing else does."""
    if incidents is None or is_vouched_for(state, incidents):
        return False
    return bool(people_in(item.content for item in incidents.items))


def are_strangers(named: set[str], playing: set[str]) -> bool:
    """Return whether most of the people named do not play. A single one may be somebody whom the site did not list."""
    return 2 * len(named & playing) < len(named)


def validate_lineups(state: FootballState, lineups: Lineups) -> None:
    """Raise unless these people can play this match."""
    shown = squads(lineups)
    keys = [player.key for squad in shown for player in squad.players]
    if len(keys) != len(set(keys)):
        raise ImpossibleObservation("the line-ups name a player twice")
    for squad in shown:
        starters = sum(player.is_starter for player in squad.players)
        if starters > ELEVEN or (lineups.is_confirmed and starters != ELEVEN):
            raise ImpossibleObservation(f"{starters} players of one side begin")
    named = state.people
    if shown and are_strangers(named, set(keys)):
        raise WrongMatch(
            f"the line-ups are of another match: {len(named - set(keys))} people of this one are not there"
        )


def is_known_squad(state: FootballState, lineups: Lineups) -> bool:
    """Return whether line-ups that can be this match's are so by what we know: by events, or by line-ups before."""
    shown = squad_keys(lineups)
    return not shown or bool(state.people) or not are_strangers(shown, state.squad_keys)


def validate_again(first: Lineups, second: Lineups) -> None:
    """Raise unless a second reading of line-ups names most people of the first again; an empty one names nobody."""
    if are_strangers(squad_keys(first), squad_keys(second)):
        raise WrongMatch("the line-ups do not name the people of a moment ago: one of the two is of another match")


def validate_statistics(incidents: Incidents | None, statistics: Statistics) -> None:
    """Raise unless these figures can be true, and can be of the match whose list was just read."""
    for period, figures in statistics.periods.items():
        for figure in figures:
            if figure.home < 0 or figure.away < 0:
                raise ImpossibleObservation(f"{figure.key} of {period} is negative")
            if figure.key == POSSESSION and abs(figure.home + figure.away - 100) > 1:
                raise ImpossibleObservation(f"the ball is possessed to {figure.home} and {figure.away} per cent")
            if period == WHOLE_MATCH and incidents is not None:
                _check_against(incidents, figure)


def _check_against(incidents: Incidents, figure: Statistic) -> None:
    """Raise when a figure contradicts the list: nothing in the figures says which match they are of.

    The two pages are not of the same moment, so each side may be one ahead.
    """
    for side, counted in ((Side.HOME, figure.home), (Side.AWAY, figure.away)):
        shown = [item.content for item in incidents.items if item.side is side]
        # Coaches are shown cards too, and are no players.
        cards = sum(isinstance(it, Card) and it.player is not None and it.card is not CardKind.RED for it in shown)
        goals = sum(isinstance(it, Goal) and it.how is not GoalKind.OWN_GOAL for it in shown)
        if figure.key == YELLOW_CARDS and abs(counted - cards) > 1:
            raise WrongMatch(f"the statistics are of another match: {counted:g} cards, and {cards} in the list")
        if figure.key == ON_TARGET and counted < goals - 1:
            raise WrongMatch(f"the statistics are of another match: {counted:g} shots on target, and {goals} goals")
