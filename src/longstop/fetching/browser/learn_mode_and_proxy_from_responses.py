"""Which mode a source is read in, which proxy sessions are used, and which responses are suspicious.

    navigate → passive → page → http

The cheapest mode that works is used. Good responses promote a source to the next cheaper mode. A refusal demotes it by
one step, and bars the refused mode for a while, longer each time.
"""

import re
from collections import deque
from statistics import median
from urllib.parse import urlsplit

import msgspec

from longstop import errors
from longstop.fetching.base import FetchRequest
from longstop.fetching.browser.browser_policy_and_stats import LADDER, Mode
from longstop.fetching.browser.proxy_sessions import ProxyRing
from longstop.telemetry.bus import Bus
from longstop.telemetry.events.browsers import ModeChanged, ProxyQuarantined, ProxyRotated

#: Consecutive good responses before a cheaper mode is tried.
PROMOTE_AFTER = 3
#: Consecutive failures, other than refusals, after which a mode counts as broken.
DEMOTE_AFTER = 2
BAR_SECONDS = 60.0
MAX_BAR_SECONDS = 900.0

#: How many sizes are kept for a path, and how many are needed to know what is usual.
KEPT, NEEDED = 20, 5
#: How many times smaller or larger than usual is odd.
ODD_FACTOR = 10
#: Where responses are smaller than this, size means nothing: an empty list is a response, too.
LEAST_USUAL_BYTES = 2_000
_MAX_PATHS = 256
#: A part of a path that names one match or player.
_ID = re.compile(r"\d\w*|[0-9A-Z]*\d[0-9A-Z]*")
#: Errors that do not count against a mode.
_NEUTRAL = errors.PageNotFound | errors.ForbiddenTarget | errors.BrowserLost | errors.CircuitOpen


class ModeState(msgspec.Struct, frozen=True, kw_only=True):
    """The mode of a source, and what led to it."""

    mode: Mode = Mode.NAVIGATE
    #: The modes that the source allows, the most expensive first; navigation is always one.
    allowed: tuple[Mode, ...] = LADDER
    successes: int = 0
    failures: int = 0
    #: Until when a mode is barred, and for how long it was the last time.
    barred_until: dict[Mode, float] = {}
    bar_seconds: dict[Mode, float] = {}


def initial_state(modes: tuple[Mode, ...]) -> ModeState:
    """Return the state of a source that allows these modes."""
    return ModeState(allowed=tuple(mode for mode in LADDER if mode in modes or mode is Mode.NAVIGATE))


def after_success(state: ModeState, now: float) -> ModeState:
    """Return the state after a good response: after enough of them, one step cheaper."""
    bars = {mode: seconds for mode, seconds in state.bar_seconds.items() if mode is not state.mode}
    state = msgspec.structs.replace(state, successes=state.successes + 1, failures=0, bar_seconds=bars)
    cheaper = _cheaper(state, now)
    if state.successes < PROMOTE_AFTER or cheaper is None:
        return state
    return _in_mode(state, cheaper)


def after_refusal(state: ModeState, now: float) -> ModeState:
    """Return the state after a refusal: one step more expensive, with the refused mode barred."""
    below = state.allowed[: state.allowed.index(state.mode)]
    if not below:
        return msgspec.structs.replace(state, successes=0, failures=0)
    seconds = min(2 * state.bar_seconds.get(state.mode, BAR_SECONDS / 2), MAX_BAR_SECONDS)
    barred = msgspec.structs.replace(
        state,
        barred_until={**state.barred_until, state.mode: now + seconds},
        bar_seconds={**state.bar_seconds, state.mode: seconds},
    )
    return _in_mode(barred, below[-1])


def after_failure(state: ModeState, now: float) -> ModeState:
    """Return the state after another failure: one is ignored, two in a row count as a refusal."""
    if state.failures + 1 >= DEMOTE_AFTER:
        return after_refusal(state, now)
    return msgspec.structs.replace(state, successes=0, failures=state.failures + 1)


def _in_mode(state: ModeState, mode: Mode) -> ModeState:
    return msgspec.structs.replace(state, mode=mode, successes=0, failures=0)


def _cheaper(state: ModeState, now: float) -> Mode | None:
    """Return the next cheaper mode. A barred one is not skipped: sites refuse the cheaper ones even sooner."""
    above = state.allowed[state.allowed.index(state.mode) + 1 :]
    return above[0] if above and state.barred_until.get(above[0], now) <= now else None


class ResponseSizes:
    """The usual sizes of one source's responses, by path without ids.

    A block page with status 200 is far smaller than the data; an HTML page in its place is far larger. The site may
    also change, so only the first odd response in a row costs a proxy session: what another session gets as well is
    the site's doing, and becomes usual.
    """

    def __init__(self) -> None:
        self._sizes: dict[str, deque[int]] = {}
        #: Paths whose latest response was odd.
        self._odd: set[str] = set()

    def is_odd(self, url: str, size: int) -> bool:
        """Add the size of a good response; return whether it is the first odd one in a row."""
        path = without_ids(url)
        sizes = self._sizes.get(path)
        if sizes is None:
            if len(self._sizes) >= _MAX_PATHS:
                return False
            sizes = self._sizes[path] = deque(maxlen=KEPT)
        is_odd = len(sizes) >= NEEDED and _is_far_from(median(sizes), size)
        is_first = is_odd and path not in self._odd
        if is_odd:
            self._odd.add(path)
        else:
            self._odd.discard(path)
        sizes.append(size)
        return is_first


def without_ids(url: str) -> str:
    """Return host and path of a URL, with a star for each part that is an id."""
    parts = urlsplit(url)
    return parts.netloc + "/".join("*" if _ID.fullmatch(part) else part for part in parts.path.split("/"))


def _is_far_from(usual: float, size: int) -> bool:
    return usual >= LEAST_USUAL_BYTES and not usual / ODD_FACTOR <= size <= usual * ODD_FACTOR


class ModePolicy:
    """Learns from a source's responses and errors: its mode, and which proxy sessions are good. Emits each change."""

    def __init__(self, source: str, modes: tuple[Mode, ...], proxies: ProxyRing | None, bus: Bus) -> None:
        self._source = source
        self._state = initial_state(modes)
        self._proxies = proxies
        self._bus = bus
        self._sizes = ResponseSizes()

    @property
    def mode(self) -> Mode:
        return self._state.mode

    def succeeded(self, request: FetchRequest, session: str, size: int, now: float) -> bool:
        """Learn from a good response; return whether its size is so odd that the session is given up.

        A rendered page is read in any mode, and has no usual size.
        """
        if not request.is_rendered:
            self._change(after_success(self._state, now), "success")
        if self._proxies is None:
            return False
        self._proxies.succeeded(session)
        is_odd = not request.is_rendered and self._sizes.is_odd(request.url, size)
        if not is_odd or not self._proxies.refused(session, now):
            return False
        self._bus.emit(ProxyRotated(source=self._source, session=session, reason=f"unusual size of {size} bytes"))
        return True

    def distrust(self, now: float) -> None:
        """Learn that a response in this mode may have been altered, as sites do to clients that they take for bots."""
        self._change(after_refusal(self._state, now), "suspect")

    def failed(self, error: errors.FetchError, session: str, now: float) -> None:
        """Learn from an error. A refusal counts against mode and session; a lost browser counts against neither."""
        reason = type(error).__name__
        if isinstance(error, errors.SourceRefused):
            self._change(after_refusal(self._state, now), reason)
        elif not isinstance(error, _NEUTRAL):
            self._change(after_failure(self._state, now), reason)
        proxies, is_rotated = self._proxies, False
        if proxies is None:
            return
        if isinstance(error, errors.SourceRefused):
            is_rotated = proxies.refused(session, now)
        elif isinstance(error, errors.FetchTimeout):
            is_rotated = proxies.timed_out(session, now)
        elif isinstance(error, errors.ProxyFailed) and (seconds := proxies.failed(session, now)):
            self._bus.emit(ProxyQuarantined(source=self._source, session=session, reason=reason, seconds=seconds))
        if is_rotated:
            self._bus.emit(ProxyRotated(source=self._source, session=session, reason=reason))

    def _change(self, state: ModeState, reason: str) -> None:
        before, self._state = self._state, state
        if state.mode is not before.mode:
            self._bus.emit(ModeChanged(source=self._source, before=before.mode, after=state.mode, reason=reason))
