"""Groups failures into episodes: the type and subject of an error, and what resolves it.

Pure: the time is passed in, and changes are collected for the caller to write.
"""

import re
from collections.abc import Iterable
from datetime import datetime
from hashlib import sha256

from msgspec import Struct, field

from longstop import errors
from longstop.model.episode import Episode, EpisodeChange, ErrorSeen, ErrorType, Resolution, ResolutionMethod, merged
from longstop.resilience.taxonomy import MEANINGS, FailureKind
from longstop.telemetry.events import Telemetry, clean, matches, processes, sources

MAX_MESSAGE_CHARACTERS = 2_000
MAX_TRACE_CHARACTERS = 8_000
MAX_URL_CHARACTERS = 500
MAX_NAME_CHARACTERS = 100
#: Changes that wait to be written; while a disk fails, further ones are only counted.
MAX_PENDING = 10_000

_TYPES = {
    FailureKind.CONNECTION: ErrorType.NETWORK,
    FailureKind.REFUSAL: ErrorType.AUTH,
    FailureKind.CONTENT: ErrorType.PARSING,
    FailureKind.UNTRUSTED: ErrorType.PARSING,
    FailureKind.EXCESS: ErrorType.PARSING,
    FailureKind.GONE: ErrorType.NOT_FOUND,
}
_KINDS = {kind.__name__: meaning.kind for kind, meaning in MEANINGS.items()}
_STORAGE = frozenset(
    name for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, errors.StorageError)
)
_WORD = re.compile(r"[\w-]+")
_DIGIT = re.compile(r"\d")
_URL = re.compile(r"https?://[^\s:?#]+(?::\d+)?[^\s?#:]*")

Failure = matches.PollFailed | sources.ListingFailed | matches.ResourceFailed | processes.TaskFailed


def error_type_of(error_class: str) -> ErrorType | None:
    """Return the type of an error by the name of its class; `None` if no request was sent."""
    if error_class in _STORAGE:
        return ErrorType.DATABASE
    if error_class == errors.BrowserLost.__name__:
        return ErrorType.BROWSER
    kind = _KINDS.get(error_class, FailureKind.OURS)
    return None if kind is FailureKind.NOT_SENT else _TYPES.get(kind, ErrorType.INTERNAL)


def signature_of(source: str, error_class: str, message: str, source_id: str = "") -> str:
    """Return a hash that is equal for errors that differ only in numbers and ids."""
    plain = message.replace(source_id, "#") if source_id else message
    plain = _WORD.sub(lambda word: "#" if _DIGIT.search(word[0]) else word[0], plain)
    return sha256("\n".join((source, error_class, plain)).encode()).hexdigest()[:16]


def error_seen(event: Failure, now: datetime, scraper_id: str) -> ErrorSeen | None:
    """Return the error that an event reports; `None` if no request was sent."""
    error_type = error_type_of(event.error_type)
    if error_type is None:
        return None
    ref, operation = _subject_and_operation(event)
    is_of_source = not isinstance(event, processes.TaskFailed) or ref != operation
    source, _, source_id = ref.partition("_") if is_of_source else ("", "", "")
    message = clean(event.error_message, MAX_MESSAGE_CHARACTERS)
    return ErrorSeen(
        episode=Episode(ref, signature_of(source, event.error_type, message, source_id)),
        scraper_id=scraper_id,
        match_id=getattr(event, "match_id", None),
        timestamp=now,
        error_type=error_type,
        error_class=event.error_type,
        error_message=message,
        source=source,
        operation=operation,
        stack_trace=clean(event.stack_trace[-MAX_TRACE_CHARACTERS:], MAX_TRACE_CHARACTERS)
        if isinstance(event, processes.TaskFailed)
        else None,
        url=_url(event, message),
        retry_attempt=event.retries if isinstance(event, matches.PollFailed) else 0,
        snapshot=None if isinstance(event, processes.TaskFailed) else event.page,
    )


class _Subject(Struct):
    """The unresolved errors of a match, a listing or a task."""

    #: By signature, whether the error belongs to the current poll, so that its success does not resolve it.
    open: dict[str, bool] = field(default_factory=dict)
    hosts: set[str] = field(default_factory=set)
    #: What happened since the error.
    method: ResolutionMethod = ResolutionMethod.AUTO_RETRY


class Episodes:
    """Remembers unresolved errors, and collects changes to write."""

    def __init__(self, scraper_id: str) -> None:
        self._scraper_id = scraper_id
        self._subjects: dict[str, _Subject] = {}
        self._pending: dict[Episode, EpisodeChange] = {}
        #: Open breakers by scope and subject.
        self._breakers: set[tuple[str, str]] = set()
        self._dropped = 0

    def take(self, event: Telemetry, now: datetime) -> None:
        match event:
            case matches.PollSucceeded():
                self._resolve(event.ref, now)
            case sources.ListingRead():
                self._resolve(event.source, now)
            case matches.PollFailed() | sources.ListingFailed() | matches.ResourceFailed() | processes.TaskFailed():
                self._open(event, now)
            case sources.CircuitOpened() | sources.LayoutBroken():
                self._breakers.add((event.scope, event.subject))
                self._set_method(ResolutionMethod.CIRCUIT_BREAKER, event.scope, event.subject)
            case sources.CircuitClosed() | sources.LayoutRecovered():
                self._breakers.discard((event.scope, event.subject))
            case matches.MatchPhaseChanged(after="archived"):
                self._resolve(event.ref, now, is_final=True)
            case matches.WatchRestarted():
                self._set_method(ResolutionMethod.RESTART, "match", event.ref)

    def load(self, episodes: Iterable[Episode]) -> None:
        """Continue with the unresolved episodes of an earlier run."""
        for episode in episodes:
            self._subjects.setdefault(episode.ref, _Subject()).open.setdefault(episode.signature, False)

    def take_pending(self) -> dict[Episode, EpisodeChange]:
        """Return and clear the changes to write."""
        pending, self._pending = self._pending, {}
        return pending

    def take_dropped(self) -> int:
        """Return and reset the number of dropped changes."""
        dropped, self._dropped = self._dropped, 0
        return dropped

    def give_back(self, changes: dict[Episode, EpisodeChange]) -> None:
        """Put back changes that could not be written, merged with newer ones."""
        newer, self._pending = self._pending, changes
        for episode, change in newer.items():
            self._put(episode, change)

    def _put(self, episode: Episode, change: EpisodeChange) -> None:
        known = self._pending.get(episode)
        if known is None and len(self._pending) >= MAX_PENDING:
            self._dropped += 1
            return
        self._pending[episode] = merged(known, change)

    def _open(self, event: Failure, now: datetime) -> None:
        error = error_seen(event, now, self._scraper_id)
        if error is None:
            return
        subject = self._subjects.setdefault(error.episode.ref, _Subject())
        if error.url is not None:
            subject.hosts.add(error.url.split("/")[2].lower())
        if any(_concerns(scope, name, error.episode.ref, subject) for scope, name in self._breakers):
            subject.method = ResolutionMethod.CIRCUIT_BREAKER
        # A bug is reported twice, as a failed poll and with its trace.
        is_repeated = isinstance(event, processes.TaskFailed) and error.episode.signature in subject.open
        subject.open[error.episode.signature] = isinstance(event, matches.ResourceFailed)
        self._put(error.episode, EpisodeChange(error=error, count=0 if is_repeated else 1, last_seen=now))

    def _resolve(self, ref: str, now: datetime, *, is_final: bool = False) -> None:
        """Resolve the errors of a subject; finally also those of its current poll, as no later success will."""
        subject = self._subjects.get(ref)
        if subject is None:
            return
        over = Resolution(at=now, method=subject.method)
        for signature in [name for name, is_current in subject.open.items() if is_final or not is_current]:
            del subject.open[signature]
            self._put(Episode(ref, signature), EpisodeChange(resolution=over))
        # An optional page that failed in this poll is resolved by the next success.
        subject.open = dict.fromkeys(subject.open, False)
        if not subject.open:
            del self._subjects[ref]

    def _set_method(self, method: ResolutionMethod, scope: str, name: str) -> None:
        for ref, each in self._subjects.items():
            if _concerns(scope, name, ref, each):
                each.method = method


def _concerns(scope: str, name: str, ref: str, subject: _Subject) -> bool:
    """Return whether a breaker applies to a subject."""
    match scope:
        case "match":
            return ref == name
        case "source" | "layout":
            return ref.partition("_")[0] == name.partition(" ")[0]
        case _:
            return any(name in (host, host.rpartition(":")[0]) for host in subject.hosts)


def _subject_and_operation(event: Failure) -> tuple[str, str]:
    """Return what the failure belongs to, a match, a source or a task, and what was attempted."""
    match event:
        case matches.PollFailed():
            return event.ref, f"poll, {event.reached}" if event.reached else "poll"
        case sources.ListingFailed():
            return event.source, "listing"
        case matches.ResourceFailed():
            return event.ref, event.resource
        case processes.TaskFailed():
            task = clean(event.task, MAX_NAME_CHARACTERS)
            # The tasks `watch crex_11HD` and `scheduler crex` belong to a match and a source, others to themselves.
            return task.removeprefix("watch ").removeprefix("scheduler "), task


def _url(event: Failure, message: str) -> str | None:
    """Return the URL of the request without its query; errors of a request contain it in their message."""
    request = event.request if isinstance(event, matches.PollFailed) else ""
    found = _URL.search(request or message)
    return found[0][:MAX_URL_CHARACTERS] if found else None
