"""Which way a source is read: the cheapest that works. A pure state machine.

    navigate → passive → page → http

Success promotes one step towards the cheaper; a refusal demotes one step, and bars the way that was refused for a
while, longer each time.
"""

import msgspec

from longstop.fetching.browser.base import LADDER, Mode

#: Good answers in a row before a cheaper way is tried.
PROMOTE_AFTER = 3
#: Failures in a row, other than refusals, that make a way look broken.
DEMOTE_AFTER = 2
BAR_SECONDS = 60.0
MAX_BAR_SECONDS = 900.0


class ModeState(msgspec.Struct, frozen=True, kw_only=True):
    """Where a source stands."""

    mode: Mode = Mode.NAVIGATE
    #: The ways that the source allows, dearest first; navigation is always one.
    allowed: tuple[Mode, ...] = LADDER
    successes: int = 0
    failures: int = 0
    #: Until when a way is barred, and for how long it was the last time.
    barred_until: dict[Mode, float] = {}
    bar_seconds: dict[Mode, float] = {}


def allowing(modes: tuple[Mode, ...]) -> ModeState:
    """Return the state to begin with."""
    return ModeState(allowed=tuple(mode for mode in LADDER if mode in modes or mode is Mode.NAVIGATE))


def after_success(state: ModeState, now: float) -> ModeState:
    """Return the state after a good answer: once there were enough, one step cheaper."""
    bars = {mode: seconds for mode, seconds in state.bar_seconds.items() if mode is not state.mode}
    state = msgspec.structs.replace(state, successes=state.successes + 1, failures=0, bar_seconds=bars)
    cheaper = _cheaper(state, now)
    if state.successes < PROMOTE_AFTER or cheaper is None:
        return state
    return _at(state, cheaper)


def after_refusal(state: ModeState, now: float) -> ModeState:
    """Return the state after a refusal: one step dearer, and the refused way is barred."""
    dearer = _dearer(state)
    if dearer is None:
        return msgspec.structs.replace(state, successes=0, failures=0)
    seconds = min(2 * state.bar_seconds.get(state.mode, BAR_SECONDS / 2), MAX_BAR_SECONDS)
    barred = msgspec.structs.replace(
        state,
        barred_until={**state.barred_until, state.mode: now + seconds},
        bar_seconds={**state.bar_seconds, state.mode: seconds},
    )
    return _at(barred, dearer)


def after_failure(state: ModeState, now: float) -> ModeState:
    """Return the state after another failure: one is nobody's fault, two in a row are the way's."""
    if state.failures + 1 >= DEMOTE_AFTER:
        return after_refusal(state, now)
    return msgspec.structs.replace(state, successes=0, failures=state.failures + 1)


def _at(state: ModeState, mode: Mode) -> ModeState:
    return msgspec.structs.replace(state, mode=mode, successes=0, failures=0)


def _cheaper(state: ModeState, now: float) -> Mode | None:
    """Return the next cheaper way; a barred one is not stepped over: what is cheaper still is refused even sooner."""
    above = state.allowed[state.allowed.index(state.mode) + 1 :]
    return above[0] if above and state.barred_until.get(above[0], now) <= now else None


def _dearer(state: ModeState) -> Mode | None:
    below = state.allowed[: state.allowed.index(state.mode)]
    return below[-1] if below else None
