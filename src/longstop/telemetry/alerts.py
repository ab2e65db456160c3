"""Alerts: which events an operator should be notified of, their text, and how often they are sent. Pure."""

from collections import deque
from collections.abc import Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from longstop.telemetry.events import Severity, Telemetry, clean, matches, processes, sources
from longstop.text import change_texts, printable

MAX_TEXT_CHARACTERS = 1_000
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
    #: How many alerts with this key were not sent before it.
    suppressed: int = 0

    @property
    def name(self) -> str:
        """The name of the event that it comes from."""
        return self.key.partition(" ")[0]


def alert_of(event: Telemetry) -> Alert | None:
    """Return the alert for an event; `None` for most."""
    return _site_problem(event) or _own_problem(event) or _resolution(event)


def _site_problem(event: Telemetry) -> Alert | None:
    match event:
        case matches.MatchStale():
            title = f"Data of {event.ref} is {event.age_seconds:.0f} s old"
            return _alert(event, event.ref, title, f"Last successful poll: {event.last_update or 'none'}.")
        case matches.ErrorRateHigh():
            commonest = sorted(event.types.items(), key=lambda item: (-item[1], item[0]))
            kinds = ", ".join(f"{count} {name}" for name, count in commonest)
            return _alert(event, event.ref, f"{event.ref} had {event.errors} errors within a minute", f"{kinds}.")
        case sources.CircuitOpened():
            title = f"Circuit open for {event.scope} {event.subject} ({event.seconds:.0f} s)"
            return _alert(event, f"{event.scope} {event.subject}", title, event.reason)
        case sources.LayoutBroken():
            title = f"Pages of {event.source} ({event.resource}) cannot be parsed"
            saved = f" The page is saved at {event.page}." if event.page else ""
            text = f"{event.failures} failures in a row; the last one: {event.error_message}.{saved}"
            return _alert(event, event.subject, title, text)
        case sources.ChallengeServed():
            saved = f" The page is saved at {event.page}." if event.page else ""
            text = f"Polling of this source is paused for increasing times; Longstop does not solve CAPTCHAs.{saved}"
            return _alert(event, event.source, f"{event.source} served a CAPTCHA", text)
        case matches.SourceFrozen():
            title = f"{event.ref}: the {event.frozen} page has not changed for {event.seconds:.0f} s"
            return _alert(event, event.ref, title, f"The {event.witness} page shows that play continues.")
        case matches.MatchDoubted():
            text = f"{event.reason}. Nothing of it is stored; the match is polled again within 20 s."
            return _alert(event, event.ref, f"Answers about {event.ref} are not believed", text)
        case matches.FindingOpened(kind="rebuilt"):
            return _alert(event, event.ref, f"{event.ref} was replaced by what its source shows", event.detail)
        case matches.MatchGone():
            text = f"Its pages were not found {event.confirmations} times, and no listing contains it."
            return _alert(event, event.ref, f"{event.ref} disappeared from its site and is archived", text)
        # Restarts for other reasons are routine or have an alert of their own.
        case matches.WatchRestarted(reason="errors"):
            text = f"Reason: {event.reason}. It had been polled for {event.age_seconds:.0f} s."
            return _alert(event, event.ref, f"Restarted polling of {event.ref}", text)
        case _:
            return None


def _own_problem(event: Telemetry) -> Alert | None:
    """Return an alert about our own processes and machine."""
    match event:
        case processes.TaskFailed():
            text = f"{event.error_type}: {event.error_message}. This is a bug; the trace is in the log. Work continues."
            return _alert(event, f"{event.task} {event.error_type}", f"Unexpected error in {event.task}", text)
        case processes.TaskEnded():
            title = f"Task ended unexpectedly: {event.task}"
            return _alert(event, event.task, title, "This is a bug; it is restarted.")
        case processes.HealthFailing():
            return _alert(event, "", "Matches in play are not polled", event.reason)
        case processes.RecoveryFailed():
            return _alert(event, event.subject, f"Recovery failed: {event.kind} of {event.subject}", event.observed)
        case processes.LoopStalled():
            text = "Nothing is polled meanwhile; the stacks are in the log."
            return _alert(event, "", f"The event loop has been blocked for {event.seconds:.0f} s", text)
        case processes.OutOfResources():
            text = "Polling is paused until it recovers; breakers are unaffected. Free some, or raise the limit."
            return _alert(event, event.resource, f"Out of {event.resource}", text)
        case processes.ClockJumped():
            text = "Displayed times are affected; ages, waits and limits are not."
            return _alert(event, "", f"The system clock jumped by {event.seconds:+.0f} s", text)
        case processes.HotViewFailed():
            return _alert(event, "", "The hot view cannot be written", event.error_message)
        case processes.StoreFailed():
            return _alert(event, event.ref, f"The store failed for {event.ref}", event.error_message)
        case processes.StoreUnusable():
            return _alert(event, "", "Nothing can be stored", event.error_message)
        case processes.HotViewRebuilt():
            saved = f" The damaged file is {event.moved_to}." if event.moved_to else ""
            return _alert(event, "", "The hot view was rebuilt", f"{event.error_message}.{saved}")
        case processes.RecordsFailed():
            return _alert(event, event.records, f"Cannot write the {event.records}", event.error_message)
        # Exit code 0 means that it was asked to stop: routine.
        case processes.ChildDied() if event.exit_code != 0:
            text = f"Exit code {event.exit_code}: {event.reason}. It is restarted in {event.restart_in_seconds:.0f} s."
            return _alert(event, event.process, f"Process {event.process} died", text)
        case processes.ChildUnresponsive():
            text = f"Process {event.pid} sent no heartbeat for {event.silent_seconds:.0f} s; it is restarted."
            return _alert(event, event.process, f"Process {event.process} is unresponsive", text)
        case processes.MemoryHigh():
            title = f"Process {event.process} uses {event.rss_bytes >> 20} MB"
            text = f"It is restarted above {event.soft_limit_bytes >> 20} MB. It has {event.processes} processes."
            return _alert(event, event.process, title, text)
        case processes.MemoryExceeded():
            title = f"Process {event.process} used {event.rss_bytes >> 20} MB and is restarted"
            text = f"The {event.limit} limit is {event.limit_bytes >> 20} MB. It had {event.processes} processes."
            return _alert(event, f"{event.process} {event.limit}", title, text)
        case _:
            return None


def _resolution(event: Telemetry) -> Alert | None:
    """Return the end of a condition, with the key of that condition."""
    match event:
        case matches.PollSucceeded():
            return _alert(event, event.ref, f"{event.ref} is polled again", "", ends=matches.MatchStale)
        case sources.CircuitClosed():
            subject, text = f"{event.scope} {event.subject}", f"{event.rejected} requests were rejected."
            return _alert(event, subject, f"Circuit closed for {subject}", text, ends=sources.CircuitOpened)
        case sources.LayoutRecovered():
            title, text = f"Pages of {event.source} ({event.resource}) are parsed again", f"{event.failures} failed."
            return _alert(event, event.subject, title, text, ends=sources.LayoutBroken)
        case sources.ChallengeCleared():
            title, text = f"{event.source} serves data again", f"After {event.challenges} CAPTCHAs."
            return _alert(event, event.source, title, text, ends=sources.ChallengeServed)
        case processes.HealthRecovered() | processes.HealthDegraded():
            return _alert(event, "", "Matches in play are polled again", "", ends=processes.HealthFailing)
        case processes.LoopResumed():
            title, text = "The event loop runs again", f"After {event.seconds:.0f} s."
            return _alert(event, "", title, text, ends=processes.LoopStalled)
        case processes.ResourcesRecovered():
            return _alert(event, event.resource, f"Recovered: {event.resource}", "", ends=processes.OutOfResources)
        case processes.StoreRecovered():
            return _alert(event, "", "The store can be written again", "", ends=processes.StoreUnusable)
        case matches.MatchBelieved():
            title, text = f"Answers about {event.ref} are believed again", f"After {event.seconds:.0f} s."
            return _alert(event, event.ref, title, text, ends=matches.MatchDoubted)
        case matches.SourceResumed():
            title, text = f"{event.ref} changes again", f"After {event.seconds:.0f} s."
            return _alert(event, event.ref, title, text, ends=matches.SourceFrozen)
        case processes.MemoryRecovered():
            title = f"Process {event.process} is down to {event.held_bytes >> 20} MB"
            return _alert(event, event.process, title, "", ends=processes.MemoryHigh)
        case _:
            return None


def _alert(event: Telemetry, subject: str, title: str, text: str, *, ends: type[Telemetry] | None = None) -> Alert:
    """Return the alert for an event, or for the end of the condition that another event began."""
    fields = event.fields(MAX_TEXT_CHARACTERS)
    return Alert(
        key=_shown(f"{(ends or type(event)).name} {subject}".strip()),
        severity=event.severity,
        title=_shown(title),
        text=_shown(text),
        fields={name: change_texts(value, _shown) for name, value in fields.items() if name not in _LOG_ONLY},
        is_resolved=ends is not None,
    )


def _shown(text: str) -> str:
    """Return a text for a chat or a phone, which acts on control characters as a terminal does."""
    return printable(clean(text, MAX_TEXT_CHARACTERS))


class _Condition(Struct):
    quiet_until: float
    #: Whether the last alert reported the problem, not its end.
    is_active: bool = True
    suppressed: int = 0


class AlertFilter:
    """Sends each condition at most once in a while, and its end only if the condition was sent.

    Times are monotonic and passed by the caller.
    """

    def __init__(self) -> None:
        self._known: dict[str, _Condition] = {}
        #: By key, the newest suppressed alert: it is sent after the quiet time, unless the problem ends before.
        self._delayed: dict[str, Alert] = {}
        #: When the latest alerts of each name were sent.
        self._latest: dict[str, deque[float]] = {}
        #: By name, the conditions that one alert stands for, by key, oldest first.
        self._crowds: dict[str, dict[str, Alert]] = {}

    def admit(self, alert: Alert, now: float) -> list[Alert]:
        """Return what to send now, if anything."""
        if alert.is_resolved:
            return self._end(alert, now)
        if alert.key not in self._known and self._is_crowded(alert.name, now):
            alert = self._join_crowd(alert)
        known = self._known.get(alert.key)
        if known is None or now >= known.quiet_until:
            return [self._send(alert, known.suppressed if known else 0, now)]
        known.suppressed += 1
        self._delayed[alert.key] = alert
        return []

    def overdue(self, now: float) -> list[Alert]:
        """Return delayed alerts whose quiet time is over."""
        due = [alert for key, alert in self._delayed.items() if now >= self._known[key].quiet_until]
        # The alert that is sent now was counted as suppressed.
        return [self._send(alert, self._known[alert.key].suppressed - 1, now) for alert in due]

    def forget(self, key: str) -> None:
        """Treat a condition as never sent, because its alert was not delivered."""
        self._known.pop(key, None)
        self._delayed.pop(key, None)

    def _is_crowded(self, name: str, now: float) -> bool:
        latest = self._latest.get(name, deque())
        return len(latest) == CROWD and now - latest[0] < CROWD_SECONDS

    def _join_crowd(self, alert: Alert) -> Alert:
        """Return the alert that stands for this one and all like it."""
        crowd = self._crowds.setdefault(alert.name, {})
        crowd[alert.key] = alert
        if len(crowd) > MAX_CONDITIONS:
            del crowd[next(iter(crowd))]
        return _for_all(alert)

    def _send(self, alert: Alert, suppressed: int, now: float) -> Alert:
        self.forget(alert.key)
        self._latest.setdefault(alert.name, deque(maxlen=CROWD)).append(now)
        if len(self._known) >= MAX_CONDITIONS:
            self.forget(next(iter(self._known)))
        self._known[alert.key] = _Condition(quiet_until=now + QUIET_SECONDS)
        return replace(alert, suppressed=suppressed)

    def _end(self, alert: Alert, now: float) -> list[Alert]:
        """Return the end of a condition, and that of its crowd if it was the last of it, if they were sent."""
        ends, crowd = [alert], self._crowds.get(alert.name, {})
        if alert.key in crowd:
            del crowd[alert.key]
            if not crowd:
                ends.append(_for_all(alert))
            elif _for_all(alert).key in self._delayed:  # what is sent later must still be true
                newest = _for_all(next(reversed(crowd.values())))
                self._delayed[newest.key] = newest
        return [each for each in ends if self._resolve(each.key, now)]

    def _resolve(self, key: str, now: float) -> bool:
        """Mark a condition as over; return whether the receiver believes that it is active."""
        self._delayed.pop(key, None)
        known = self._known.get(key)
        if known is None or not known.is_active:
            return False
        known.is_active = False
        # The receiver now believes that the problem is solved: if it comes back, say so soon.
        known.quiet_until = min(known.quiet_until, now + QUIET_AFTER_END)
        return True


def _for_all(alert: Alert) -> Alert:
    title = f"{alert.title}, and {'all' if alert.is_resolved else 'more'} like it"
    return replace(alert, key=f"{alert.name} (many)", title=title)
