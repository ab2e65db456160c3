"""How the watching of one match goes: counted here, decided by pure rules, acted on by the watcher."""

from datetime import datetime

from longstop.clock import Moment
from longstop.errors import SourceError
from longstop.model.match import IN_PLAY, MatchStatus, MonitoringRecord, Phase
from longstop.pipeline.effort import Effort
from longstop.pipeline.held import HeldMatch
from longstop.resilience.breaker import Breaker, BreakerState
from longstop.sources.base import Line
from longstop.storage.base import MatchRow
from longstop.watching.cadence import (
    Course,
    Tempo,
    hurried_at,
    is_due,
    is_due_for_news,
    may_be_archived,
    must_reread,
    revisit_after,
    tempo_of,
)
from longstop.watching.lag import CHECK_AFTER, CHECK_IN_BREAK_AFTER
from longstop.watching.pulse import Obstacle, Pulse
from longstop.watching.restarts import Life, RestartPolicy, RestartReason, restart_reason
from longstop.watching.rules import WatchRules

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
