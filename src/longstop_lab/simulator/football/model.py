"""The data of a simulated football match. Sides are `home` and `away`; players are keys."""

from msgspec import Struct

HOME, AWAY = "home", "away"
SIDES = (HOME, AWAY)


class FootballPlayer(Struct, frozen=True, kw_only=True):
    key: str
    name: str
    shirt: int
    #: G, D, M or F.
    position: str


class Team(Struct, frozen=True, kw_only=True):
    key: str
    name: str
    #: As in 4-3-3; the goalkeeper is not counted.
    formation: str
    eleven: tuple[FootballPlayer, ...]
    bench: tuple[FootballPlayer, ...]


class StatusTruth(Struct, frozen=True, kw_only=True):
    """The status of the match; one row that changes."""

    status: str
    #: How much later than first planned it starts.
    shift_seconds: float


class LineupTruth(Struct, frozen=True, kw_only=True):
    """The players of a side: predicted until they are confirmed."""

    side: str
    is_confirmed: bool
    formation: str
    eleven: tuple[str, ...]
    bench: tuple[str, ...]


class GoalTruth(Struct, frozen=True, kw_only=True):
    #: The side that the goal counts for, also when a player of the other one scored it.
    side: str
    minute: int
    added: int
    scorer: str
    assist: str | None
    #: `regular`, `penalty` or `own goal`.
    how: str
    #: The score after it.
    home: int
    away: int


class CardTruth(Struct, frozen=True, kw_only=True):
    side: str
    minute: int
    added: int
    player: str
    #: `yellow`, `second yellow` or `red`.
    card: str


class SubstitutionTruth(Struct, frozen=True, kw_only=True):
    side: str
    minute: int
    added: int
    player_in: str
    player_out: str
    is_injury: bool


class VarTruth(Struct, frozen=True, kw_only=True):
    side: str
    minute: int
    added: int
    #: `goal not awarded`, `goal awarded` or `card upgrade`.
    decision: str
    player: str


class MissedPenaltyTruth(Struct, frozen=True, kw_only=True):
    """A penalty in play that gave no goal."""

    side: str
    minute: int
    added: int
    player: str


class PeriodTruth(Struct, frozen=True, kw_only=True):
    """A part of the match that has ended."""

    #: `HT`, `FT`, `ET HT`, `AET` or `PEN`.
    period: str
    minute: int
    #: How many minutes were added to it.
    added: int
    #: The score then; of `PEN`, the shoot-out's own.
    home: int
    away: int


class KickTruth(Struct, frozen=True, kw_only=True):
    """One kick of a shoot-out."""

    side: str
    #: From 1, both sides counted together.
    sequence: int
    player: str
    is_scored: bool
    #: The shoot-out's score after it.
    home: int
    away: int


class FootballResultTruth(Struct, frozen=True, kw_only=True):
    #: `home`, `away`, `draw` or `abandoned`.
    outcome: str
    #: How it ended: `FT`, `AET`, `AP` (after penalties) or `abandoned`.
    after: str
    home: int
    away: int
    #: The shoot-out's score; `None` when there was none.
    home_penalties: int | None = None
    away_penalties: int | None = None


FootballContent = (
    StatusTruth
    | LineupTruth
    | GoalTruth
    | CardTruth
    | SubstitutionTruth
    | VarTruth
    | MissedPenaltyTruth
    | PeriodTruth
    | KickTruth
    | FootballResultTruth
)

KIND_NAMES: dict[type, str] = {
    StatusTruth: "status",
    LineupTruth: "lineup",
    GoalTruth: "goal",
    CardTruth: "card",
    SubstitutionTruth: "substitution",
    VarTruth: "var",
    MissedPenaltyTruth: "missed_penalty",
    PeriodTruth: "period",
    KickTruth: "kick",
    FootballResultTruth: "result",
}


class FootballEntry(Struct, frozen=True, kw_only=True):
    """Something that happened, and its final content."""

    #: Seconds from the kick-off as first planned.
    at: float
    id: str
    #: The final content; `None` when it was withdrawn.
    content: FootballContent | None
    #: What was shown before the final content, and when that followed.
    shown_first: FootballContent | None = None
    settled_at: float = 0.0


class FootballMatch(Struct, frozen=True, kw_only=True):
    """A whole match: everything that happened, in its order."""

    key: str
    home: Team
    away: Team
    #: Whether a draw is not enough.
    is_cup: bool
    entries: tuple[FootballEntry, ...]

    @property
    def truth(self) -> dict[str, FootballContent]:
        """Return the final content of every event, by id."""
        final: dict[str, FootballContent] = {}
        for entry in self.entries:
            if entry.content is not None:
                final[entry.id] = entry.content
        return final

    @property
    def final_shift(self) -> float:
        """Return how much later than first planned it starts in the end."""
        return max(entry.content.shift_seconds for entry in self.entries if isinstance(entry.content, StatusTruth))

    @property
    def ends_at(self) -> float:
        """Return when the last thing happened, in seconds from the kick-off as first planned."""
        return max(entry.at for entry in self.entries)

    def team(self, side: str) -> Team:
        return self.home if side == HOME else self.away
