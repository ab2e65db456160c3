"""A command: what a person asks of a running scraper, and what came of it. A standing order is what stays in force."""

from datetime import datetime
from enum import StrEnum

from msgspec import Struct

from longstop.clock import Moment
from longstop.errors import IllegalTransition


class CommandKind(StrEnum):
    """What can be asked for."""

    #: By the address of a match's page at its site.
    WATCH = "watch"
    UNWATCH = "unwatch"
    PAUSE_MATCH = "pause_match"
    RESUME_MATCH = "resume_match"
    PAUSE_SOURCE = "pause_source"
    RESUME_SOURCE = "resume_source"
    #: Everything that is asked with is made afresh: connections and browsers.
    RECYCLE = "recycle"


class CommandState(StrEnum):
    """How far a command has come."""

    PENDING = "pending"
    #: A scraper is about it; no other one will do it.
    TAKEN = "taken"
    DONE = "done"
    #: It cannot be done, and nothing was.
    REFUSED = "refused"
    #: It was begun, and how far it came is not known.
    FAILED = "failed"
    #: Nobody took it in time; nothing was done.
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
    """Raise where a command is answered twice, or before it was taken."""
    if after not in TRANSITIONS[before]:
        raise IllegalTransition(f"a command cannot go from {before} to {after}")


class Refusal(StrEnum):
    """Why a command was refused."""

    #: There is no such match, site or source.
    NOT_KNOWN = "not_known"
    #: It does not fit how things are.
    CONFLICT = "conflict"
    #: There is no room for more.
    MEMORY = "memory"


class Reply(Struct, frozen=True, kw_only=True):
    """What comes of a command: its last state, and a sentence."""

    state: CommandState
    answer: str
    refusal: Refusal | None = None


class Command(Struct, frozen=True, kw_only=True):
    """One command as it is written down."""

    id: int
    kind: CommandKind
    #: An address for WATCH, a match as its source calls it, a source; empty for RECYCLE.
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
    """What stays in force until it is taken back, whatever is started anew."""

    #: A match that is left alone, although its listing shows it.
    UNWATCHED = "unwatched"
    PAUSED_MATCH = "paused_match"
    PAUSED_SOURCE = "paused_source"


class StandingOrder(Struct, frozen=True, kw_only=True):
    """One order in force."""

    kind: StandingKind
    #: A match as its source calls it, or a source.
    subject: str
    since: datetime
    asked_by: str


#: The time to live: a command that no scraper takes within it is not carried out, since its caller has gone on.
EXPIRES_AFTER_SECONDS = 60.0
#: A scraper gives up doing a command after this long.
DONE_WITHIN_SECONDS = 20.0
#: One that was taken and is not answered by then never will be.
LOST_AFTER_SECONDS = EXPIRES_AFTER_SECONDS + 2 * DONE_WITHIN_SECONDS

EXPIRED = Reply(
    state=CommandState.EXPIRED,
    answer=f"No scraper took this within {EXPIRES_AFTER_SECONDS:.0f} s: start one and ask again.",
)
LOST = Reply(state=CommandState.FAILED, answer="The scraper died while doing this: look how things are, and ask again.")


def age_of(asked: Moment, now: Moment, *, is_one_boot: bool) -> float:
    """Return how many seconds ago a command was placed.

    Within one boot of one machine its monotonic clock tells, wherever the wall clock was set since. After a reboot and
    between two machines only the wall clock can. There a moment in the future is as far away as one in the past: a
    clock that was set back does not keep an old command fresh.
    """
    seconds = now.monotonic - asked.monotonic
    # Below zero it was another boot after all, on a machine that does not name its boots.
    if is_one_boot and seconds >= 0:
        return seconds
    return abs((now.wall - asked.wall).total_seconds())


def overdue(state: CommandState, age_seconds: float) -> Reply | None:
    """Return what to answer to a command that waits too long; `None` while it may wait."""
    if state is CommandState.PENDING and age_seconds > EXPIRES_AFTER_SECONDS:
        return EXPIRED
    if state is CommandState.TAKEN and age_seconds > LOST_AFTER_SECONDS:
        return LOST
    return None
