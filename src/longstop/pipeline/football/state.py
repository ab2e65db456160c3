"""What we hold true of a football match: the base that every look is compared with."""

from collections.abc import Iterable

import msgspec
from msgspec import Struct

from longstop.model.event import Event, EventKind, order_of_play
from longstop.model.football import Card, Goal, Goals, Kick, MissedPenalty, Side, Substitution, VarDecision
from longstop.pipeline.held import HeldMatch
from longstop.sources.base import FootballBoard, Incidents, Lineups, SeenIncident, Squad, Statistics

INCIDENT_KINDS = frozenset(
    {
        EventKind.GOAL,
        EventKind.CARD,
        EventKind.SUBSTITUTION,
        EventKind.VAR,
        EventKind.MISSED_PENALTY,
        EventKind.PERIOD,
        EventKind.KICK,
    }
)


class Doubt(Struct, frozen=True, kw_only=True):
    """A list of incidents that is not believed yet."""

    items: frozenset[SeenIncident]
    #: In how many looks in a row it was shown.
    looks: int


class FootballState(HeldMatch, frozen=True, kw_only=True):
    """The durable base of a football match, and what this run has learnt about it since."""

    board: FootballBoard | None = None
    #: As last read by this run; what a run before it read is in the snapshot.
    lineups: Lineups | None = None
    statistics: Statistics | None = None
    #: When these two were last asked for, on the clock that never jumps.
    parts_asked_at: float | None = None
    #: How far the board is known to be off, by side, after both were asked twice.
    differences: frozenset["Difference"] = frozenset()
    doubt: Doubt | None = None

    @property
    def incidents(self) -> list[Event]:
        """Return the live ones in the order of play."""
        live = (event for key, event in self.events.items() if key.kind in INCIDENT_KINDS and event.is_live)
        return sorted(live, key=order_of_play)

    @property
    def goals(self) -> Goals:
        """Return the score by the events."""
        sides = [event.key.side for event in self.incidents if event.key.kind is EventKind.GOAL]
        return Goals(home=sides.count(Side.HOME), away=sides.count(Side.AWAY))

    @property
    def people(self) -> set[str]:
        """Return who is named in the events that we hold."""
        return people_in(event.content for event in self.incidents)

    @property
    def squad_keys(self) -> set[str]:
        """Return who may play: by the line-ups as last read, by this run or by one before it."""
        if self.lineups is not None:
            return squad_keys(self.lineups)
        stored = msgspec.json.decode(self.snapshot.payload).get("lineups", {}) if self.snapshot else {}
        squads_stored = [stored[side] for side in Side if side in stored]
        return {player["key"] for squad in squads_stored for part in _PARTS for player in squad[part]}


#: Where a stored squad has its players.
_PARTS = ("starters", "bench")

#: A side, the goals that the events list, the goals that the board shows.
Difference = tuple[Side, int, int]


def differences(listed: Goals, shown: Goals | None) -> frozenset[Difference]:
    """Return where events and board disagree; a board without a score disagrees with nobody."""
    if shown is None:
        return frozenset()
    pairs = ((side, listed.of(side), shown.of(side)) for side in Side)
    return frozenset(pair for pair in pairs if pair[1] != pair[2])


def goals_in(incidents: Incidents) -> Goals:
    sides = [item.side for item in incidents.items if isinstance(item.content, Goal)]
    return Goals(home=sides.count(Side.HOME), away=sides.count(Side.AWAY))


def squads(lineups: Lineups | None) -> tuple[Squad, ...]:
    return tuple(squad for squad in (lineups.home, lineups.away) if squad) if lineups else ()


def squad_keys(lineups: Lineups) -> set[str]:
    return {player.key for squad in squads(lineups) for player in squad.players}


def people_in(contents: Iterable[object]) -> set[str]:
    """Return the keys of all players that these events name."""
    named: set[str | None] = set()
    for content in contents:
        match content:
            case Goal():
                named |= {content.scorer, content.assist}
            case Card() | VarDecision() | MissedPenalty() | Kick():
                named.add(content.player)
            case Substitution():
                named |= {content.player_in, content.player_out}
    return {key for key in named if key is not None}
