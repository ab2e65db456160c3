"""How the watching of one match goes: a frozen record that each cycle makes anew. Pure; moments are monotonic."""

import msgspec
from msgspec import Struct

from longstop.errors import CircuitOpen, ResourcesExhausted
from longstop.sources.base import Line
from longstop.watching.absence import Absence
from longstop.watching.lag import FROZEN_INTERVALS, Behind, Lag, who_is_behind
from longstop.watching.pace import Pace
from longstop.watching.restarts import Life
from longstop.watching.rhythm import Rhythm

#: So often the one page must have moved while the other stood still.
MOVES = 2


#: How often a match is looked at by itself while the listing's lag turns out to be a frozen one.
CHECKS_OF_A_LAG = 3


class Obstacle(Struct, frozen=True, kw_only=True):
    """Why nobody could be asked."""

    #: Whether the site is left alone, or refuses us: that is so for all of its matches.
    is_shut_out: bool = False
    #: What this machine lacked.
    lacking: str | None = None

    @classmethod
    def of(cls, error: Exception) -> "Obstacle":
        """Return what an error says of it; the special kinds of an open circuit are queues and savings of our own."""
        return cls(
            is_shut_out=type(error) is CircuitOpen,
            lacking=error.resource if isinstance(error, ResourcesExhausted) else None,
        )


SHUT_OUT = Obstacle(is_shut_out=True)


class Pulse(Struct, frozen=True, kw_only=True):
    """What the next decisions about a match are made on; a restart begins it anew."""

    began: float
    rhythm: Rhythm
    #: The last accepted poll.
    good_at: float
    #: The last look at the match's own pages, good or not; `None` before the first.
    looked_at: float | None = None
    #: The last look or accepted line.
    tried_at: float | None = None
    #: Failed looks in a row.
    failures: int = 0
    pace: Pace = Pace()
    absence: Absence = Absence()
    lag: Lag = Lag()
    #: Why nobody could be asked last time, or only one for all, to see whether the way is open again.
    obstacle: Obstacle | None = None
    #: How long a disagreement of list and match must last to be a frozen feed.
    frozen_after: float = 30.0
    #: How often the listing's line has moved since the match's own pages brought news, and the other way round.
    list_moves: int = 0
    own_moves: int = 0

    @classmethod
    def at(cls, now: float, *, interval: float = 2.5) -> "Pulse":
        """Return the pulse of a watch that begins, of a match that is looked at so often."""
        frozen_after = FROZEN_INTERVALS * interval
        return cls(began=now, good_at=now, rhythm=Rhythm(changed_at=now), frozen_after=frozen_after)

    def anew(self, now: float) -> "Pulse":
        """Return the pulse of a watch begun anew: what is known of the game and of the errors stays."""
        return msgspec.structs.replace(self, began=now, looked_at=None, tried_at=None, failures=0)

    def after_line(self, now: float, own: Line | None, listed: Line) -> "Pulse":
        """Return the pulse after an unchanged line of the listing."""
        rhythm = self.rhythm.after(now, is_news=False)
        pulse = msgspec.structs.replace(self, tried_at=now, obstacle=None, rhythm=rhythm).compared(now, own, listed)
        return pulse if pulse.is_blind(now) else msgspec.structs.replace(pulse, good_at=now)

    def after_look(
        self, now: float, *, is_news: bool, errors: int, calm_after: float, own: Line | None, listed: Line | None
    ) -> "Pulse":
        """Return the pulse after a good look that began `now`."""
        pulse = msgspec.structs.replace(
            self,
            looked_at=now,
            tried_at=now,
            obstacle=None,
            failures=0,
            absence=Absence(),
            rhythm=self.rhythm.after(now, is_news=is_news),
            pace=self.pace.after(now, errors=errors, calm_after=calm_after),
            list_moves=0 if is_news else self.list_moves,
            own_moves=self.own_moves + is_news,
        ).compared(now, own, listed)
        return pulse if pulse.is_blind(now) else msgspec.structs.replace(pulse, good_at=now)

    def after_failure(self, now: float, *, errors: int, calm_after: float, is_expected: bool = False) -> "Pulse":
        """Return the pulse after a failed look; one that met no error of the site's is no good look for the pace."""
        return msgspec.structs.replace(
            self,
            looked_at=now,
            tried_at=now,
            obstacle=SHUT_OUT if is_expected else None,
            failures=self.failures + 1,
            pace=self.pace.after(now, errors=errors, calm_after=calm_after) if errors else self.pace,
        )

    def after_missing(self, now: float, *, apart: float) -> "Pulse":
        return msgspec.structs.replace(self, absence=self.absence.after_missing(now, apart=apart))

    def held(self, now: float, obstacle: Obstacle) -> "Pulse":
        """Return the pulse after a look for which nobody was asked: it says nothing about the match."""
        return msgspec.structs.replace(self, tried_at=now, obstacle=obstacle)

    def hung(self) -> "Pulse":
        """Return the pulse during a look that hangs: whatever was in the way before it is not what it waits for."""
        return msgspec.structs.replace(self, obstacle=None)

    def compared(self, now: float, own: Line | None, listed: Line | None) -> "Pulse":
        behind = who_is_behind(own, listed, now - self.rhythm.changed_at)
        return msgspec.structs.replace(self, lag=self.lag.after(now, behind))

    def after_list_moved(self) -> "Pulse":
        """Return the pulse after a line of the listing that differs from the one before it."""
        return msgspec.structs.replace(self, list_moves=self.list_moves + 1, own_moves=0)

    def frozen(self, now: float) -> Lag | None:
        """Return who stands still while play goes on, if anybody does.

        Two pages may differ for good; only one that stands still while the other *moves* is frozen.
        """
        moves = {Behind.MATCH: self.list_moves, Behind.LIST: self.own_moves}.get(self.lag.behind, MOVES)
        return self.lag if moves >= MOVES and self.lag.has_lasted(now, self.frozen_after) else None

    def is_blind(self, now: float) -> bool:
        """Return whether what the match's own pages show is known to be old."""
        frozen = self.frozen(now)
        return frozen is not None and frozen.behind is Behind.MATCH

    def wants_check(self, now: float, check_after: float) -> bool:
        """Return whether the match's own pages must say for themselves that nothing happens."""
        if self.lag.behind is Behind.LIST:
            check_after = self.frozen_after / CHECKS_OF_A_LAG
        quiet_since = max(self.rhythm.changed_at, self.looked_at or self.began)
        return now - quiet_since >= check_after

    def life(self, *, progress_at: float | None, is_in_play: bool, is_first: bool = True) -> Life:
        """Return what a restart is decided on; `progress_at` is the last answer within a look that is under way."""
        return Life(
            began=self.began,
            good_at=self.good_at if progress_at is None else max(self.good_at, progress_at),
            failures=self.failures,
            is_in_play=is_in_play,
            is_quiet=self.rhythm.is_quiet,
            is_held=self.obstacle is not None,
            is_first=is_first,
        )
