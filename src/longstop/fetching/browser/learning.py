"""What a source's answers teach: which way is due next, and which sessions with the proxy are good."""

from longstop.errors import (
    BrowserLost,
    CircuitOpen,
    FetchError,
    FetchTimeout,
    ForbiddenTarget,
    PageNotFound,
    ProxyFailed,
    SourceRefused,
)
from longstop.fetching.browser.base import Mode
from longstop.fetching.browser.events import ModeChanged, ProxyQuarantined, ProxyRotated
from longstop.fetching.browser.modes import ModeState, after_failure, after_refusal, after_success, allowing
from longstop.fetching.browser.proxies import ProxyRing
from longstop.fetching.browser.sizes import Sizes
from longstop.telemetry.bus import Bus


class Learning:
    """Keeps the state of the ladder and of the proxy's sessions, and tells every change."""

    def __init__(self, source: str, modes: tuple[Mode, ...], proxies: ProxyRing | None, bus: Bus) -> None:
        self._source = source
        self._state = allowing(modes)
        self._proxies = proxies
        self._bus = bus
        self._sizes = Sizes()

    @property
    def mode(self) -> Mode:
        return self._state.mode

    def succeeded(self, session: str, now: float) -> None:
        """Learn from an answer that was brought in the way that was due."""
        self._move(after_success(self._state, now), "success")
        self.answered(session)

    def answered(self, session: str) -> None:
        """Learn from a good answer that says nothing about the way."""
        if self._proxies is not None:
            self._proxies.succeeded(session)

    def is_distrusted(self, session: str, url: str, size: int, now: float) -> bool:
        """Return whether a session is given up since its answer, good as it looks, has an odd size."""
        if self._proxies is None or not self._sizes.is_odd(url, size) or not self._proxies.refused(session, now):
            return False
        self._bus.emit(ProxyRotated(source=self._source, session=session, reason=f"an odd answer of {size} bytes"))
        return True

    def failed(self, error: FetchError, session: str, now: float) -> None:
        """Learn from an error: a refusal is the way's fault or the session's, our own browser's death is nobody's."""
        if isinstance(error, SourceRefused):
            self._move(after_refusal(self._state, now), type(error).__name__)
        elif not isinstance(error, PageNotFound | ForbiddenTarget | BrowserLost | CircuitOpen):
            self._move(after_failure(self._state, now), type(error).__name__)
        if self._proxies is not None:
            self._blame(self._proxies, error, session, now)

    def _blame(self, proxies: ProxyRing, error: FetchError, session: str, now: float) -> None:
        reason = type(error).__name__
        is_rotated = False
        if isinstance(error, SourceRefused):
            is_rotated = proxies.refused(session, now)
        elif isinstance(error, FetchTimeout):
            is_rotated = proxies.timed_out(session, now)
        elif isinstance(error, ProxyFailed):
            rest = proxies.failed(session, now)
            if rest is not None:
                self._bus.emit(ProxyQuarantined(source=self._source, session=session, reason=reason, seconds=rest))
        if is_rotated:
            self._bus.emit(ProxyRotated(source=self._source, session=session, reason=reason))

    def _move(self, state: ModeState, reason: str) -> None:
        before, self._state = self._state, state
        if state.mode is not before.mode:
            self._bus.emit(ModeChanged(source=self._source, before=before.mode, after=state.mode, reason=reason))
