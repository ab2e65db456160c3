"""Commands of an operator to a running scraper, and standing orders, which stay in force until they are lifted."""

from datetime import datetime
from enum import StrEnum

from msgspec import Struct

from longstop.clock import Moment
from longstop.errors import IllegalTransition


class CommandKind(StrEnum):
    #: By the URL of a match's page.
    WATCH = "watch"
    UNWATCH = "unwatch"
    PAUSE_MATCH = "pause_match"
    RESUME_MATCH = "resume_match"
    PAUSE_SOURCE = "pause_source"
    RESUME_SOURCE = "resume_source"
    #: Restarts connections and browsers.
    RECYCLE = "recycle"


class CommandState(StrEnum):
    PENDING = "pending"
    #: A scraper executes it; no other one will.
    TAKEN = "taken"
    DONE = "done"
    #: It cannot be executed; nothing was changed.
    REFUSED = "refused"
    #: It was started, and its effect is unknown.
    FAILED = "failed"
    #: No scraper took it in time; nothing was changed.
    EXPIRED = "expired"


TRANSITIONS: dict[CommandState, frozenset[CommandState]] = {
    CommandState.PENDING: frozenset({CommandState.TAKEN, CommandState.EXPIRED}),
    CommandState.TAKEN: frozenset({CommandState.DONE, CommandState.REFUSED, CommandState.FAILED}),
    CommandState.DONE: frozenset(),
    CommandState.REFUSED: frozenset(),
    CommandState.FAILED: frozenset(),
    CommandState.EXPIRED: frozenset(),
}


def check_move(before: CommandState, after: CommandState) -> None:
    """Raise when a command is answered twice, or before it was taken."""
    if after not in TRANSITIONS[before]:
        raise IllegalTransition(f"a command cannot move from {before} to {after}")


class Refusal(StrEnum):
    #: There is no such match, site or source.
    NOT_KNOWN = "not_known"
    #: It conflicts with the current state.
    CONFLICT = "conflict"
    #: Memory is low.
    MEMORY = "memory"


class Reply(Struct, frozen=True, kw_only=True):
    """The result of a command: its final state, and a message."""

    state: CommandState
    answer: str
    refusal: Refusal | None = None


class Command(Struct, frozen=True, kw_only=True):
    id: int
    kind: CommandKind
    #: A URL for WATCH, a match ref, or a source; empty for RECYCLE.
    argument: str
    asked_by: str
    asked_at: datetime
    state: CommandState = CommandState.PENDING
    refusal: Refusal | None = None
    answer: str | None = None
    answered_at: datetime | None = None

    @property
    def is_answered(self) -> bool:
        return not TRANSITIONS[self.state]


class StandingKind(StrEnum):
    """What stays in force across restarts until it is lifted."""

    #: A match that is not watched although the listing shows it.
    UNWATCHED = "unwatched"
    PAUSED_MATCH = "paused_match"
    PAUSED_SOURCE = "paused_source"


class StandingOrder(Struct, frozen=True, kw_only=True):
    """One persistent setting of an operator."""

    kind: StandingKind
    #: A match ref, or a source.
    subject: str
    since: datetime
    asked_by: str


#: Time to live: a command that no scraper takes within it is not executed, because its caller has given up.
EXPIRES_AFTER_SECONDS = 60.0
#: Time limit of the execution.
DONE_WITHIN_SECONDS = 20.0
#: A taken command without an answer by then was lost.
LOST_AFTER_SECONDS = EXPIRES_AFTER_SECONDS + 2 * DONE_WITHIN_SECONDS

EXPIRED = Reply(
    state=CommandState.EXPIRED,
    answer=f"No scraper took this command within {EXPIRES_AFTER_SECONDS:.0f} s. Start one, and retry.",
)
LOST = Reply(
    state=CommandState.FAILED, answer="The scraper died during this command. Check the status before retrying."
)


def age_of(asked: Moment, now: Moment, *, is_one_boot: bool) -> float:
    """Return the age of a command in seconds.

    Within one boot of one machine, the monotonic clock decides, whatever happened to the wall clock. After a reboot and
    between machines, only the wall clock can. A time in the future then counts like one in the past: a clock that was
    set back does not keep an old command fresh.
    """
    seconds = now.monotonic - asked.monotonic
    # Negative after a reboot of a machine without boot ids.
    if is_one_boot and seconds >= 0:
        return seconds
    return abs((now.wall - asked.wall).total_seconds())


def overdue(state: CommandState, age_seconds: float) -> Reply | None:
    """Return the reply to a command that has waited too long; `None` while it may wait."""
    if state is CommandState.PENDING and age_seconds > EXPIRES_AFTER_SECONDS:
        return EXPIRED
    if state is CommandState.TAKEN and age_seconds > LOST_AFTER_SECONDS:
        return LOST
    return None
