"""What is known about how the polling of one match goes, and what follows from it. Pure."""

from collections import deque
from datetime import datetime
from enum import StrEnum

import msgspec
from msgspec import Struct

from longstop.clock import Moment
from longstop.errors import CircuitOpen, ResourcesExhausted, SourceError
from longstop.model.match import IN_PLAY, MatchStatus, MonitoringRecord, Phase
from longstop.pipeline.boards import steps_back
from longstop.pipeline.effort import Effort
from longstop.pipeline.held import HeldMatch
from longstop.resilience.breaker import Breaker, BreakerState
from longstop.sources.base import Line
from longstop.storage.base import MatchRow
from longstop.watching.cadence import (
    MINUTE,
    Course,
    Pace,
    Rhythm,
    Tempo,
    WatchRules,
    hurried_at,
    is_due,
    is_due_for_news,
    may_be_archived,
    must_reread,
    revisit_after,
    tempo_of,
)
from longstop.watching.restarts import Life, RestartPolicy, RestartReason, restart_reason

#: A disagreement that lasts for so many usual intervals is no cache: 30 s.
FROZEN_INTERVALS = 12
#: A match in play whose line has not moved for this long is looked at by itself.
CHECK_AFTER = 60.0
#: The same for one of which no play is expected now: in a break, or past its start and not begun.
CHECK_IN_BREAK_AFTER = 300.0
#: Without a break being announced, no game stands still for this long: then even two witnesses are not believed.
SILENT_AFTER = 600.0


class Behind(StrEnum):
    """Who shows less than is known to have been played."""

    NOBODY = "nobody"
    MATCH = "match"
    LIST = "list"
    #: Nobody moves, and only the clock says that somebody should.
    BOTH = "both"


WITNESS = {Behind.MATCH: "list", Behind.LIST: "match", Behind.BOTH: "clock"}


class Lag(Struct, frozen=True, kw_only=True):
    """Who is behind, and since when."""

    behind: Behind = Behind.NOBODY
    since: float = 0.0

    def after(self, now: float, behind: Behind) -> "Lag":
        return self if behind is self.behind else Lag(behind=behind, since=now)

    def has_lasted(self, now: float, frozen_after: float) -> bool:
        if self.behind is Behind.BOTH:
            return True
        return self.behind is not Behind.NOBODY and now - self.since >= frozen_after


def who_is_behind(own: Line | None, listed: Line | None, unchanged_seconds: float) -> Behind:
    """Return which of two scoreboards of the same match shows less than the other."""
    if own is None or listed is None:
        return Behind.NOBODY
    if steps_back(listed, own):
        return Behind.MATCH
    if steps_back(own, listed):
        return Behind.LIST
    # Where much of the play changes nothing that is shown, standing still is usual.
    is_silent = own.tells_all and own.status is MatchStatus.LIVE and unchanged_seconds >= SILENT_AFTER
    return Behind.BOTH if is_silent else Behind.NOBODY


#: So many times a page must be missing, each time long enough after the last.
CONFIRMATIONS = 3


class Absence(Struct, frozen=True, kw_only=True):
    """How often in a row a match's page was not found."""

    times: int = 0
    #: When it was counted last.
    counted_at: float = 0.0

    def after_missing(self, now: float, *, apart: float) -> "Absence":
        """Count one more, unless it is so soon after the last that it says nothing new."""
        if self.times and now - self.counted_at < apart:
            return self
        return msgspec.structs.replace(self, times=self.times + 1, counted_at=now)

    def is_gone(self, *, is_listed: bool) -> bool:
        return self.times >= CONFIRMATIONS and not is_listed


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


#: An important match counts as stale in half the time.
IMPORTANT_SHARE = 0.5


class Vitals:
    """The memory of one watch. Everything in it can be lost without losing data."""

    def __init__(self, row: MatchRow, rules: WatchRules, now: Moment, former: Moment | None = None) -> None:
        self.pulse = Pulse.at(now.monotonic, interval=rules.cadence.live)
        self.breaker = Breaker(rules.breaker)
        #: The listing's last line about the match; `None` while the listing does not show it.
        self.listed: Line | None = None
        #: Listings read since the page was first missing that do not show the match.
        self._lists_without = 0
        self.read_whole_at: datetime | None = None
        self._rules = rules
        # Until the first look of this run, the last one of a run before it, or the last stored change, is the youngest
        # moment that we can vouch for.
        self.last_poll_at = row.updated_at
        self._last_poll_monotonic: float | None = None
        if former is not None and (row.updated_at is None or former.wall >= row.updated_at):
            self.last_poll_at, self._last_poll_monotonic = former.wall, former.monotonic
        self._last_attempt_at: datetime | None = None
        self._changed_at = row.updated_at
        #: Not looked at before this moment, since the page was not found.
        self._rest_until = now.monotonic
        self._progress_at, self._answers = now.monotonic, 0
        #: When to look into what is open about the match; such a look reads everything.
        self._revisit_at: float | None = None
        self._visits = 0
        self._is_paused = False
        self._restarts = 0
        self._total_polls = 0
        self._total_failures = 0
        self._last_error: str | None = None

    # --- what happens ----------------------------------------------------------------------------------------

    def heard_of(self, line: Line | None) -> None:
        """Take note of what the listing says of the match, or that it says nothing."""
        if line is not None and self.listed is not None and line.fingerprint != self.listed.fingerprint:
            self.pulse = self.pulse.after_list_moved()
        self.listed = line
        self._lists_without = 0 if line is not None else self._lists_without + 1

    def heard_nothing(self) -> None:
        """Forget the listing's last line: a list that was not read is no witness."""
        self.listed = None

    def saw_line(self, own: Line | None, at: Moment, now: Moment) -> None:
        """Count a listing's unchanged line as a good look."""
        if self.listed is not None:
            self.pulse = self.pulse.after_line(now.monotonic, own, self.listed)
        self._count_good(at, now)

    def begin_look(self, now: Moment) -> None:
        self._last_attempt_at, self._progress_at, self._answers = now.wall, now.monotonic, 0

    def looked(self, state: HeldMatch, effort: Effort, began: Moment, now: Moment, *, is_news: bool) -> None:
        """Count a good look that began at a moment."""
        self.pulse = self.pulse.after_look(
            began.monotonic,
            is_news=is_news,
            errors=effort.error_count,
            calm_after=self._rules.cadence.calm_after,
            own=state.board,
            listed=self.listed,
        )
        self._last_error, self._rest_until = None, now.monotonic
        self._changed_at = began.wall if is_news else self._changed_at
        self._plan_revisit(state, began.monotonic)
        self._count_good(began, now)

    def failed(self, error: Exception, effort: Effort, now: Moment) -> None:
        self.pulse = self.pulse.after_failure(
            now.monotonic,
            errors=effort.error_count,
            calm_after=self._rules.cadence.calm_after,
            is_expected=isinstance(error, SourceError) and error.is_canary,
        )
        self._total_failures += 1
        self._last_error = f"{type(error).__name__}: {error}"

    def missing(self, now: Moment) -> None:
        """Count that the page was not found, and let it rest."""
        apart = self._rules.cadence.not_found
        if not self.pulse.absence.times:
            self._lists_without = 0
        self.pulse = self.pulse.after_missing(now.monotonic, apart=apart)
        self._rest_until = now.monotonic + apart

    def paused(self) -> None:
        """Take note that the match rests; when it has rested, the watch begins anew."""
        self._is_paused = True

    def held(self, obstacle: Obstacle, now: Moment) -> None:
        self.pulse = self.pulse.held(now.monotonic, obstacle)

    def restarted(self, now: Moment) -> None:
        self.pulse = self.pulse.anew(now.monotonic)
        self._progress_at, self._rest_until = now.monotonic, now.monotonic
        self._is_paused = False
        self._restarts += 1

    def progressed(self, answers: int, row: MatchRow, now: Moment) -> None:
        """Take note of how far the look under way has come: a long one is not a dead one, a dead one is not held."""
        if answers != self._answers:
            self._answers, self._progress_at = answers, now.monotonic
        elif now.monotonic - self._progress_at > self._restart_policy(row).stale_seconds:
            self.pulse = self.pulse.hung()

    def _count_good(self, at: Moment, now: Moment) -> None:
        self._total_polls += 1
        if not self.pulse.is_blind(now.monotonic):
            self.last_poll_at, self._last_poll_monotonic = at.wall, at.monotonic

    def _plan_revisit(self, state: HeldMatch, now: float) -> None:
        """Come back to a match with something open: a feed that lagged, or names that were late, may have caught up."""
        if not (state.findings or state.has_unnamed):
            self._revisit_at, self._visits = None, 0
        elif self._revisit_at is None or now >= self._revisit_at:
            self._revisit_at = now + revisit_after(self._visits)
            self._visits += 1

    # --- what follows from it --------------------------------------------------------------------------------

    def tempo(self, state: HeldMatch, now: Moment) -> Tempo:
        row = state.row
        course = Course(
            status=row.status,
            start_at=row.start_at,
            sync=state.sync,
            rhythm=self.pulse.rhythm,
            pace=self.pulse.pace,
            failures=self.pulse.failures,
            is_important=self._rules.is_important(row.title),
            is_silence_a_break=state.board is None or state.board.tells_all,
        )
        return tempo_of(course, now.wall, now.monotonic, self._rules.cadence)

    def is_due(self, state: HeldMatch, now: Moment, *, is_news: bool, at_least: float) -> bool:
        """Return whether the match may and should be looked at now, so many seconds after the last time at least."""
        if now.monotonic < self._rest_until or self.breaker.state(now.monotonic) is BreakerState.OPEN:
            return False
        if self.pulse.tried_at is not None and now.monotonic - self.pulse.tried_at < at_least:
            return False
        decide = is_due_for_news if is_news else is_due
        return decide(self.pulse.tried_at, self.tempo(state, now), now.monotonic, self._rules.cadence)

    def hurried_at(self, state: HeldMatch, now: Moment) -> float | None:
        """Return the moment, monotonic, from which a sign of change may be followed; `None` after errors."""
        if now.monotonic < self._rest_until or self.breaker.state(now.monotonic) is BreakerState.OPEN:
            return None
        return hurried_at(self.pulse.tried_at, self.tempo(state, now), now.monotonic)

    def is_gone(self) -> bool:
        """Return whether the match is gone for good: its page, again and again, and its line in a list read since."""
        return self.pulse.absence.is_gone(is_listed=not self._lists_without)

    def wants_whole(self, state: HeldMatch, now: Moment) -> bool:
        """Return whether the next look must read everything."""
        is_revisit = self._revisit_at is not None and now.monotonic >= self._revisit_at
        return is_revisit or must_reread(state.row.completed_at, self.read_whole_at, now.wall)

    def wants_check(self, state: HeldMatch, now: Moment) -> bool:
        """Return whether the listing's word that nothing happened needs a second witness."""
        if state.board is None:
            return False
        match state.board.status:
            case MatchStatus.LIVE:
                return self.pulse.wants_check(now.monotonic, CHECK_AFTER)
            case MatchStatus.BREAK:
                return self.pulse.wants_check(now.monotonic, CHECK_IN_BREAK_AFTER)
            case MatchStatus.UPCOMING:
                has_begun = state.row.start_at is not None and state.row.start_at <= now.wall
                return has_begun and self.pulse.wants_check(now.monotonic, CHECK_IN_BREAK_AFTER)
            case MatchStatus.COMPLETED:
                return False

    def age_at(self, now: Moment) -> float:
        """Return the seconds since the last accepted poll; 0 before the first."""
        if self.last_poll_at is None:
            return 0.0
        return max(0.0, now.seconds_since(self.last_poll_at, self._last_poll_monotonic))

    def is_stale(self, row: MatchRow, now: Moment) -> bool:
        """Return whether the match should have been read and was not, whoever is to blame."""
        return self._life(row, is_looking=False).is_stale(now.monotonic, self._restart_policy(row))

    def restart_reason(self, row: MatchRow, now: Moment, *, is_looking: bool) -> RestartReason | None:
        """Return why the watch should be begun anew; `None` while it should not."""
        if row.phase is Phase.PAUSED:
            is_rested = self.breaker.state(now.monotonic) is not BreakerState.OPEN
            return RestartReason.COOL_DOWN if self._is_paused and is_rested else None
        return restart_reason(self._life(row, is_looking=is_looking), now.monotonic, self._restart_policy(row))

    def _life(self, row: MatchRow, *, is_looking: bool) -> Life:
        is_in_play = row.status in IN_PLAY and row.phase is Phase.ACTIVE
        progress_at = self._progress_at if is_looking else None
        return self.pulse.life(progress_at=progress_at, is_in_play=is_in_play, is_first=not self._restarts)

    def _restart_policy(self, row: MatchRow) -> RestartPolicy:
        policy = self._rules.restarts
        if not self._rules.is_important(row.title):
            return policy
        return RestartPolicy(
            lifetime_seconds=policy.lifetime_seconds, stale_seconds=policy.stale_seconds * IMPORTANT_SHARE
        )

    def may_be_archived(self, row: MatchRow, now: Moment) -> bool:
        return may_be_archived(row.phase, row.completed_at, self.read_whole_at, now.wall)

    def record(self, state: HeldMatch, now: Moment) -> MonitoringRecord:
        row, pulse, tempo = state.row, self.pulse, self.tempo(state, now)
        obstacle = pulse.obstacle
        frozen = pulse.frozen(now.monotonic)
        rest_until = max(self._rest_until, now.monotonic + self.breaker.remaining(now.monotonic))
        return MonitoringRecord(
            match_id=row.match_id,
            ref=row.ref,
            phase=row.phase,
            status=row.status,
            sync=state.sync,
            last_poll_at=self.last_poll_at,
            last_poll_monotonic=self._last_poll_monotonic,
            start_at=row.start_at,
            last_attempt_at=self._last_attempt_at,
            not_before=now.on_the_wall(rest_until) if rest_until > now.monotonic else None,
            changed_at=self._changed_at,
            frozen_since=now.on_the_wall(frozen.since) if frozen else None,
            interval_seconds=tempo.seconds,
            tempo=tempo.why.value,
            is_important=self._rules.is_important(row.title),
            restarts=self._restarts,
            consecutive_failures=pulse.failures,
            total_polls=self._total_polls,
            total_failures=self._total_failures,
            last_error=self._last_error,
            sport=row.sport,
            is_held=obstacle is not None,
            is_shut_out=obstacle is not None and obstacle.is_shut_out,
            lacking=obstacle.lacking if obstacle else None,
        )


#: More than these a minute need no exact count.
MAX_COUNTED = 200


class Crowd(Struct, frozen=True, kw_only=True):
    """More errors within a minute than allowed."""

    errors: int
    types: dict[str, int]


class ErrorWindow:
    """A sliding minute; it tells once when the threshold is passed, and again only after it was calm."""

    def __init__(self, threshold: int) -> None:
        self._threshold = threshold
        self._seen: deque[tuple[float, str]] = deque(maxlen=MAX_COUNTED)
        self._is_told = False

    def add(self, now: float, types: dict[str, int]) -> Crowd | None:
        """Count the errors of one look; return what to tell when they have become too many."""
        self._seen.extend((now, name) for name, times in types.items() for _ in range(times))
        while self._seen and now - self._seen[0][0] >= MINUTE:
            self._seen.popleft()
        is_crowded = len(self._seen) > self._threshold
        is_news, self._is_told = is_crowded and not self._is_told, is_crowded
        return Crowd(errors=len(self._seen), types=self._counts()) if is_news else None

    def _counts(self) -> dict[str, int]:
        counts: dict[str, int] = {}
        for _, name in self._seen:
            counts[name] = counts.get(name, 0) + 1
        return dict(sorted(counts.items()))
