"""Sentences of a verdict on who is silent, and on who is left alone. Pure."""

from collections.abc import Iterator, Sequence

from longstop.clock import Moment
from longstop.model.breaker import BreakerNote
from longstop.storage.base import NodeBeat

_NAMED = 5
#: What concerns a whole site first: where few are named, these are.
_BY_WEIGHT = ("rest", "source", "target", "layout", "match")
_STATES = {"half_open": "is being tried again", "open": "is left alone"}
#: Up to how many of a unit a duration is told in it.
_UNITS = ((120, 1, "s"), (120 * 60, 60, "min"), (48 * 3600, 3600, "h"))


def silence(beats: Sequence[NodeBeat], now: Moment) -> str:
    """Return since when no scraper is heard, where none is."""
    if not beats:
        return "no scraper has run here yet"
    past = [(seconds, beat.is_over) for beat in beats if (seconds := beat.silence_at(now)) >= 0]
    if not past:
        return "the last scraper was heard at a time still to come: a clock was set back"
    seconds, is_over = min(past)
    if is_over:
        return f"the last scraper stopped {_duration(seconds)} ago, as it was asked to"
    return f"the last scraper was heard {_duration(seconds)} ago"


def left_alone(beats: Sequence[NodeBeat], now: Moment) -> Iterator[str]:
    """Yield who is not asked at present, and for how long; why, only those hear who may see errors."""
    notes = sorted(((note, beat.silence_at(now)) for beat in beats for note in beat.breakers), key=_weight)
    for note, told_ago in notes[:_NAMED]:
        yield _told(note, told_ago)
    if len(notes) > _NAMED:
        yield f"and {len(notes) - _NAMED} more are left alone"


def _weight(told: tuple[BreakerNote, float]) -> tuple[int, str]:
    note, _ = told
    known = _BY_WEIGHT.index(note.scope) if note.scope in _BY_WEIGHT else len(_BY_WEIGHT)
    return known, note.subject


def _told(note: BreakerNote, told_ago: float) -> str:
    left = (note.left_seconds or 0.0) - told_ago
    term = f" for another {_duration(left)}" if left > 0 else ""
    if note.scope == "rest":
        return f"{note.subject} rests{term}, as the site has asked"
    return f"{note.scope} {note.subject} {_STATES.get(note.state, note.state)}{term}"


def _duration(seconds: float) -> str:
    for limit, unit, name in _UNITS:
        if seconds < limit:
            return f"{seconds / unit:.0f} {name}"
    return f"{int(seconds // 86400)} days"
