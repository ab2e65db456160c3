"""Alerts: which events somebody should be woken for, in words, and which events say that all is well again."""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from longstop.telemetry.events import Severity, Telemetry
from longstop.telemetry.events.matches import (
    ErrorRateHigh,
    MatchGone,
    MatchStale,
    PollSucceeded,
    SourceFrozen,
    SourceResumed,
    WatchRestarted,
)
from longstop.telemetry.events.processes import (
    ChildDied,
    ChildUnresponsive,
    ClockJumped,
    HealthDegraded,
    HealthFailing,
    HealthRecovered,
    HotViewFailed,
    LoopResumed,
    LoopStalled,
    MemoryExceeded,
    MemoryHigh,
    MemoryRecovered,
    OutOfResources,
    RecordsFailed,
    RecoveryFailed,
    ResourcesRecovered,
    StoreFailed,
    TaskEnded,
    TaskFailed,
)
from longstop.telemetry.events.sources import (
    ChallengeCleared,
    ChallengeServed,
    CircuitClosed,
    CircuitOpened,
    LayoutBroken,
    LayoutRecovered,
)

MAX_TEXT_CHARACTERS = 1_000
#: A watch that begins anew for this reason was in trouble; the others are routine, or told by an alert of their own.
TROUBLED = frozenset({"errors"})
#: Traces name files and show values: they stay in the log.
_UNTOLD = frozenset({"stack_trace", "stacks"})


class Alert(Struct, frozen=True, kw_only=True):
    """Something that somebody should know."""

    #: The condition that it is about: news with the same key is about the same trouble.
    key: str
    severity: Severity
    title: str
    text: str
    fields: Mapping[str, Any]
    #: Whether the condition is over.
    is_resolved: bool = False
    #: Whether it stands for many alike.
    is_for_all: bool = False

    @property
    def name(self) -> str:
        """The event that it comes from."""
        return self.key.partition(" ")[0]


def alert_of(event: Telemetry) -> Alert | None:
    """Return the alert that an event gives; `None` for most."""
    return _trouble(event) or _relief(event)


def _trouble(event: Telemetry) -> Alert | None:
    match event:
        case MatchStale():
            title = f"{event.ref} has not been read for {event.age_seconds:.0f} s"
            return _alert(event, event.ref, title, f"The last good reading was at {event.last_update or 'no time'}.")
        case ErrorRateHigh():
            kinds = ", ".join(f"{count} {name}" for name, count in _commonest(event.types))
            return _alert(event, event.ref, f"{event.ref} had {event.errors} errors within a minute", f"{kinds}.")
        case CircuitOpened():
            title = f"{event.scope} {event.subject} is left alone for {event.seconds:.0f} s"
            return _alert(event, f"{event.scope} {event.subject}", title, event.reason)
        case LayoutBroken():
            title = f"pages of {event.source} ({event.resource}) cannot be read any more"
            kept = f" The page is kept at {event.page}." if event.page else ""
            text = f"{event.failures} failures in a row; the last one: {event.error_message}.{kept}"
            return _alert(event, f"{event.source} {event.resource}", title, text)
        case ChallengeServed():
            kept = f" The page is kept at {event.page}." if event.page else ""
            text = f"It is left alone more and more; nobody tries to solve it.{kept}"
            return _alert(event, event.source, f"{event.source} wants proof of a person", text)
        case SourceFrozen():
            title = f"{event.ref}: the pages of the {event.frozen} have stood still for {event.seconds:.0f} s"
            return _alert(event, event.ref, title, f"By the {event.witness}, play goes on.")
        case MatchGone():
            text = f"Not found {event.confirmations} times, and no list shows it."
            return _alert(event, event.ref, f"{event.ref} is gone from its site and taken for over", text)
        case WatchRestarted() if event.reason in TROUBLED:
            text = f"It had lasted {event.age_seconds:.0f} s. Reason: {event.reason}."
            return _alert(event, event.ref, f"the watch of {event.ref} has begun anew", text)
        case _:
            return _own_trouble(event)


def _own_trouble(event: Telemetry) -> Alert | None:
    """Return an alert about ourselves rather than a site."""
    match event:
        case TaskFailed():
            text = f"{event.error_type}: {event.error_message}. A bug; the trace is in the log, and the work goes on."
            return _alert(event, f"{event.task} {event.error_type}", f"an unexpected error in {event.task}", text)
        case HealthFailing():
            return _alert(event, "", "matches in play are not read", event.reason)
        case RecoveryFailed():
            return _alert(event, event.subject, f"a {event.kind} of {event.subject} did not help", event.observed)
        case LoopStalled():
            text = "Nothing is done meanwhile; the stacks are in the log."
            return _alert(event, "", f"the event loop has stood still for {event.seconds:.0f} s", text)
        case OutOfResources():
            text = "No site is blamed for it, and all goes on as soon as there is enough again."
            return _alert(event, event.resource, f"this machine has no {event.resource} left", text)
        case ClockJumped():
            text = "Only the times that we show go by it; ages, waits and limits do not."
            return _alert(event, "", f"the clock of this machine leapt by {event.seconds:+.0f} s", text)
        case HotViewFailed():
            return _alert(event, "", "the live view cannot be written", event.error_message)
        case StoreFailed():
            return _alert(event, event.ref, f"the store failed for {event.ref}", event.error_message)
        case RecordsFailed():
            return _alert(event, event.records, f"the {event.records} cannot be written", event.error_message)
        # One that stopped as somebody asked it to is started again, and nobody has to be woken for it.
        case ChildDied() if event.exit_code != 0:
            text = f"Exit code {event.exit_code}: {event.reason}; started again in {event.restart_in_seconds:.0f} s."
            return _alert(event, event.process, f"the process {event.process} died", text)
        case ChildUnresponsive():
            text = f"Process {event.pid} gave no sign of life for {event.silent_seconds:.0f} s; it is started again."
            return _alert(event, event.process, f"the process {event.process} stands still", text)
        case MemoryHigh():
            title = f"the process {event.process} takes {event.rss_bytes >> 20} MB"
            text = f"Above {event.soft_limit_bytes >> 20} MB it begins anew; it has {event.processes} processes."
            return _alert(event, event.process, title, text)
        case MemoryExceeded():
            title = f"the process {event.process} took {event.rss_bytes >> 20} MB and is started again"
            text = f"The {event.limit} limit is {event.limit_bytes >> 20} MB; it had {event.processes} processes."
            return _alert(event, f"{event.process} {event.limit}", title, text)
        case TaskEnded():
            text = "A bug; it is started again."
            return _alert(event, event.task, f"{event.task} has ended, and never should", text)
        case _:
            return None


def _relief(event: Telemetry) -> Alert | None:
    """Return what ends a condition, under the key of that condition."""
    match event:
        case PollSucceeded():
            return _end_of(MatchStale, event, event.ref, f"{event.ref} is read again", "")
        case CircuitClosed():
            subject = f"{event.scope} {event.subject}"
            return _end_of(CircuitOpened, event, subject, f"{subject} is asked again", f"{event.rejected} had to wait.")
        case LayoutRecovered():
            subject, title = f"{event.source} {event.resource}", f"pages of {event.source} ({event.resource}) are read"
            return _end_of(LayoutBroken, event, subject, f"{title} again", f"After {event.failures} failures.")
        case ChallengeCleared():
            title, text = f"{event.source} gives data again", f"After {event.challenges} challenges."
            return _end_of(ChallengeServed, event, event.source, title, text)
        case HealthRecovered() | HealthDegraded():
            return _end_of(HealthFailing, event, "", "matches in play are read again", "")
        case LoopResumed():
            return _end_of(LoopStalled, event, "", "the event loop turns again", f"After {event.seconds:.0f} s.")
        case ResourcesRecovered():
            return _end_of(OutOfResources, event, event.resource, f"this machine has {event.resource} again", "")
        case SourceResumed():
            return _end_of(SourceFrozen, event, event.ref, f"{event.ref} moves again", f"After {event.seconds:.0f} s.")
        case MemoryRecovered():
            title = f"the process {event.process} takes {event.held_bytes >> 20} MB again"
            return _end_of(MemoryHigh, event, event.process, title, "")
        case _:
            return None


def _alert(event: Telemetry, subject: str, title: str, text: str) -> Alert:
    return Alert(
        key=_key(type(event), subject),
        severity=event.severity,
        title=_text(title),
        text=_text(text),
        fields=_fields(event),
    )


def _end_of(condition: type[Telemetry], event: Telemetry, subject: str, title: str, text: str) -> Alert:
    return Alert(
        key=_key(condition, subject),
        severity=event.severity,
        title=title,
        text=text,
        fields=_fields(event),
        is_resolved=True,
    )


def _key(condition: type[Telemetry], subject: str) -> str:
    return f"{condition.name} {subject}".strip()


def _fields(event: Telemetry) -> dict[str, Any]:
    """Return what the event says, fit for a message."""
    return {
        name: _text(value) if isinstance(value, str) else value
        for name, value in msgspec.structs.asdict(event).items()
        if name not in _UNTOLD
    }


def _text(text: str) -> str:
    """Return what JSON takes, at a length that people read: a site's broken halves of characters are none."""
    return text[:MAX_TEXT_CHARACTERS].encode(errors="replace").decode()


def _commonest(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))
