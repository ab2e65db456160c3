"""Alerts: which events an operator should be notified of, their text, and how often they are sent. Pure."""

from collections import deque
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
#: Restarts of a watch for these reasons are alerts; the others are routine or have an alert of their own.
ALERTING_RESTARTS = frozenset({"errors"})
#: Traces contain paths and values: they stay in the log.
_LOG_ONLY = frozenset({"stack_trace", "stacks"})

#: The same condition is not sent again within these seconds, …
QUIET_SECONDS = 600.0
#: … nor within these after its end was sent.
QUIET_AFTER_END = 60.0
#: Conditions to remember; the oldest is forgotten first and may be sent again.
MAX_CONDITIONS = 10_000
#: After this number of alerts of one name within a minute, one more stands for all that follow: a site that is down
#: is one problem, not one for each of its matches.
CROWD = 10
CROWD_SECONDS = 60.0


class Alert(Struct, frozen=True, kw_only=True):
    """A problem that an operator should know, or its end."""

    #: The condition: alerts with the same key are about the same problem.
    key: str
    severity: Severity
    title: str
    text: str
    fields: Mapping[str, Any]
    is_resolved: bool = False
    #: Whether it stands for many alerts of the same name.
    is_for_all: bool = False

    @property
    def name(self) -> str:
        """The name of the event that it comes from."""
        return self.key.partition(" ")[0]


def alert_of(event: Telemetry) -> Alert | None:
    """Return the alert for an event; `None` for most."""
    return _site_problem(event) or _own_problem(event) or _resolution(event)


def _site_problem(event: Telemetry) -> Alert | None:
    match event:
        case MatchStale():
            title = f"Data of {event.ref} is {event.age_seconds:.0f} s old"
            return _alert(event, event.ref, title, f"Last successful poll: {event.last_update or 'none'}.")
        case ErrorRateHigh():
            kinds = ", ".join(f"{count} {name}" for name, count in _commonest(event.types))
            return _alert(event, event.ref, f"{event.ref} had {event.errors} errors within a minute", f"{kinds}.")
        case CircuitOpened():
            title = f"Circuit open for {event.scope} {event.subject} ({event.seconds:.0f} s)"
            return _alert(event, f"{event.scope} {event.subject}", title, event.reason)
        case LayoutBroken():
            title = f"Pages of {event.source} ({event.resource}) cannot be parsed"
            saved = f" The page is saved at {event.page}." if event.page else ""
            text = f"{event.failures} failures in a row; the last one: {event.error_message}.{saved}"
            return _alert(event, f"{event.source} {event.resource}", title, text)
        case ChallengeServed():
            saved = f" The page is saved at {event.page}." if event.page else ""
            text = f"Polling of this source is paused for increasing times; Longstop does not solve CAPTCHAs.{saved}"
            return _alert(event, event.source, f"{event.source} served a CAPTCHA", text)
        case SourceFrozen():
            title = f"{event.ref}: the {event.frozen} page has not changed for {event.seconds:.0f} s"
            return _alert(event, event.ref, title, f"The {event.witness} page shows that play continues.")
        case MatchGone():
            text = f"Its pages were not found {event.confirmations} times, and no listing contains it."
            return _alert(event, event.ref, f"{event.ref} disappeared from its site and is archived", text)
        case WatchRestarted() if event.reason in ALERTING_RESTARTS:
            text = f"Reason: {event.reason}. It had been polled for {event.age_seconds:.0f} s."
            return _alert(event, event.ref, f"Restarted polling of {event.ref}", text)
        case _:
            return None


def _own_problem(event: Telemetry) -> Alert | None:
    """Return an alert about our own processes and machine."""
    match event:
        case TaskFailed():
            text = f"{event.error_type}: {event.error_message}. This is a bug; the trace is in the log. Work continues."
            return _alert(event, f"{event.task} {event.error_type}", f"Unexpected error in {event.task}", text)
        case TaskEnded():
            return _alert(
                event, event.task, f"Task ended unexpectedly: {event.task}", "This is a bug; it is restarted."
            )
        case HealthFailing():
            return _alert(event, "", "Matches in play are not polled", event.reason)
        case RecoveryFailed():
            return _alert(event, event.subject, f"Recovery failed: {event.kind} of {event.subject}", event.observed)
        case LoopStalled():
            text = "Nothing is polled meanwhile; the stacks are in the log."
            return _alert(event, "", f"The event loop has been blocked for {event.seconds:.0f} s", text)
        case OutOfResources():
            text = "Polling is paused until it recovers; breakers are unaffected. Free some, or raise the limit."
            return _alert(event, event.resource, f"Out of {event.resource}", text)
        case ClockJumped():
            text = "Displayed times are affected; ages, waits and limits are not."
            return _alert(event, "", f"The system clock jumped by {event.seconds:+.0f} s", text)
        case HotViewFailed():
            return _alert(event, "", "The hot view cannot be written", event.error_message)
        case StoreFailed():
            return _alert(event, event.ref, f"The store failed for {event.ref}", event.error_message)
        case RecordsFailed():
            return _alert(event, event.records, f"Cannot write the {event.records}", event.error_message)
        case _:
            return _process_problem(event)


def _process_problem(event: Telemetry) -> Alert | None:
    match event:
        # Exit code 0 means that it was asked to stop: routine.
        case ChildDied() if event.exit_code != 0:
            text = f"Exit code {event.exit_code}: {event.reason}. It is restarted in {event.restart_in_seconds:.0f} s."
            return _alert(event, event.process, f"Process {event.process} died", text)
        case ChildUnresponsive():
            text = f"Process {event.pid} sent no heartbeat for {event.silent_seconds:.0f} s; it is restarted."
            return _alert(event, event.process, f"Process {event.process} is unresponsive", text)
        case MemoryHigh():
            title = f"Process {event.process} uses {event.rss_bytes >> 20} MB"
            text = f"It is restarted above {event.soft_limit_bytes >> 20} MB. It has {event.processes} processes."
            return _alert(event, event.process, title, text)
        case MemoryExceeded():
            title = f"Process {event.process} used {event.rss_bytes >> 20} MB and is restarted"
            text = f"The {event.limit} limit is {event.limit_bytes >> 20} MB. It had {event.processes} processes."
            return _alert(event, f"{event.process} {event.limit}", title, text)
        case _:
            return None


def _resolution(event: Telemetry) -> Alert | None:
    """Return the end of a condition, with the key of that condition."""
    match event:
        case PollSucceeded():
            return _end_of(MatchStale, event, event.ref, f"{event.ref} is polled again", "")
        case CircuitClosed():
            subject, text = f"{event.scope} {event.subject}", f"{event.rejected} requests were rejected."
            return _end_of(CircuitOpened, event, subject, f"Circuit closed for {subject}", text)
        case LayoutRecovered():
            title, text = f"Pages of {event.source} ({event.resource}) are parsed again", f"{event.failures} failed."
            return _end_of(LayoutBroken, event, f"{event.source} {event.resource}", title, text)
        case ChallengeCleared():
            title, text = f"{event.source} serves data again", f"After {event.challenges} CAPTCHAs."
            return _end_of(ChallengeServed, event, event.source, title, text)
        case HealthRecovered() | HealthDegraded():
            return _end_of(HealthFailing, event, "", "Matches in play are polled again", "")
        case LoopResumed():
            return _end_of(LoopStalled, event, "", "The event loop runs again", f"After {event.seconds:.0f} s.")
        case ResourcesRecovered():
            return _end_of(OutOfResources, event, event.resource, f"Recovered: {event.resource}", "")
        case SourceResumed():
            return _end_of(
                SourceFrozen, event, event.ref, f"{event.ref} changes again", f"After {event.seconds:.0f} s."
            )
        case MemoryRecovered():
            title = f"Process {event.process} is down to {event.held_bytes >> 20} MB"
            return _end_of(MemoryHigh, event, event.process, title, "")
        case _:
            return None


def _alert(event: Telemetry, subject: str, title: str, text: str) -> Alert:
    return Alert(
        key=_key(type(event), subject),
        severity=event.severity,
        title=_clean(title),
        text=_clean(text),
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
    return {
        name: _clean(value) if isinstance(value, str) else value
        for name, value in msgspec.structs.asdict(event).items()
        if name not in _LOG_ONLY
    }


def _clean(text: str) -> str:
    """Return text of bounded length without lone surrogates, which JSON cannot encode."""
    return text[:MAX_TEXT_CHARACTERS].encode(errors="replace").decode()


def _commonest(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


class Notification(Struct, frozen=True, kw_only=True):
    """An alert to send, and how many were suppressed before it."""

    alert: Alert
    suppressed: int = 0


class _Condition(Struct):
    quiet_until: float
    #: Whether the last notification reported the problem, not its end.
    is_active: bool = True
    suppressed: int = 0
    #: The newest suppressed alert: it is sent after the quiet time, unless the problem ends before.
    delayed: Alert | None = None


class AlertFilter:
    """Sends each condition at most once in a while, and its end only if the condition was sent.

    Times are monotonic and passed by the caller.
    """

    def __init__(self, quiet_seconds: float = QUIET_SECONDS) -> None:
        self._quiet_seconds = quiet_seconds
        self._known: dict[str, _Condition] = {}
        #: Keys of conditions with a delayed alert.
        self._delayed: set[str] = set()
        #: When the latest alerts of each name were sent.
        self._latest: dict[str, deque[float]] = {}
        #: By name, the keys that one alert stands for, each with the alert that is still unsent.
        self._folded: dict[str, dict[str, Alert | None]] = {}
        #: Ends that follow another end at the same time.
        self._ends: list[Notification] = []

    def admit(self, alert: Alert, now: float) -> Notification | None:
        """Return what to send now, if anything."""
        known = self._known.get(alert.key)
        if alert.is_resolved:
            return self._end(alert, now)
        if known is None and self._is_crowded(alert, now):
            return self._fold(alert, now)
        if known is None or now >= known.quiet_until:
            return self._send(alert, known.suppressed if known else 0, now)
        known.suppressed += 1
        known.delayed = alert
        self._delayed.add(alert.key)
        return None

    def overdue(self, now: float) -> list[Notification]:
        """Return delayed alerts whose quiet time is over."""
        ends, self._ends = self._ends, []
        due = [each for each in map(self._known.__getitem__, self._delayed) if now >= each.quiet_until]
        # The alert that is sent now was counted as suppressed.
        return ends + [self._send(each.delayed, each.suppressed - 1, now) for each in due if each.delayed is not None]

    def next_due(self) -> float | None:
        """Return when the next delayed alert is due."""
        return min((self._known[key].quiet_until for key in self._delayed), default=None)

    def forget(self, key: str) -> None:
        """Treat a condition as never sent, because its notification was not delivered."""
        self._known.pop(key, None)
        self._delayed.discard(key)

    def _is_crowded(self, alert: Alert, now: float) -> bool:
        latest = self._latest.get(alert.name, deque())
        return not alert.is_for_all and len(latest) == CROWD and now - latest[0] < CROWD_SECONDS

    def _send(self, alert: Alert, suppressed: int, now: float) -> Notification:
        self.forget(alert.key)
        self._latest.setdefault(alert.name, deque(maxlen=CROWD)).append(now)
        if len(self._known) >= MAX_CONDITIONS:
            self.forget(next(iter(self._known)))
        self._known[alert.key] = _Condition(quiet_until=now + self._quiet_seconds)
        if alert.is_for_all:
            self._folded[alert.name] = dict.fromkeys(self._folded.get(alert.name, ()))
        return Notification(alert=alert, suppressed=suppressed)

    def _fold(self, alert: Alert, now: float) -> Notification | None:
        """Let one alert stand for this one and all like it."""
        notification = self.admit(_for_all(alert), now)
        folded = self._folded.setdefault(alert.name, {})
        folded.pop(alert.key, None)
        folded[alert.key] = None if notification else _for_all(alert)
        if len(folded) > MAX_CONDITIONS:
            del folded[next(iter(folded))]
        return notification

    def _end(self, alert: Alert, now: float) -> Notification | None:
        own, of_all = self._resolve(alert, now), self._unfold(alert, now)
        if own is not None and of_all is not None:
            self._ends.append(of_all)
        return own or of_all

    def _unfold(self, alert: Alert, now: float) -> Notification | None:
        """Return the end of an alert that stood for many, if this was the last of them."""
        folded = self._folded.get(alert.name, {})
        if alert.key not in folded:
            return None
        del folded[alert.key]
        if not folded:
            return self._resolve(_for_all(alert), now)
        self._delay_another(_many(alert), folded)
        return None

    def _delay_another(self, key: str, folded: dict[str, Alert | None]) -> None:
        """Delay the newest alert that is still active and unsent instead."""
        if key not in self._delayed:
            return
        newest = next((each for each in reversed(folded.values()) if each is not None), None)
        self._known[key].delayed = newest
        if newest is None:
            self._delayed.discard(key)

    def _resolve(self, alert: Alert, now: float) -> Notification | None:
        known = self._known.get(alert.key)
        if known is None:
            return None
        known.delayed = None
        self._delayed.discard(alert.key)
        was_active, known.is_active = known.is_active, False
        if not was_active:
            return None
        # The receiver now believes that the problem is solved: if it comes back, say so soon.
        known.quiet_until = min(known.quiet_until, now + QUIET_AFTER_END)
        return Notification(alert=alert)


def _many(alert: Alert) -> str:
    """Return the key of the alert that stands for all of this name."""
    return f"{alert.name} (many)"


def _for_all(alert: Alert) -> Alert:
    title = f"{alert.title}, and {'all' if alert.is_resolved else 'more'} like it"
    return msgspec.structs.replace(alert, key=_many(alert), title=title, is_for_all=True)
