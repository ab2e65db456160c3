"""Sentences of a verdict on who is silent, and on who is left alone. Pure."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from longstop.model.breaker import BreakerNote
from longstop.storage.base import NodeBeat

_NAMED = 5
#: What concerns a whole site first: where few are named, these are.
_BY_WEIGHT = ("rest", "source", "target", "layout", "match")
_STATES = {"half_open": "is being tried again", "open": "is left alone"}
#: Up to how many of a unit a duration is told in it.
_UNITS = ((120, 1, "s"), (120 * 60, 60, "min"), (48 * 3600, 3600, "h"))


def silence(beats: Sequence[NodeBeat], now: datetime) -> str:
    """Return since when no scraper is heard, where none is."""
    if not beats:
        return "no scraper has run here yet"
    past = [beat.beat_at for beat in beats if beat.beat_at <= now]
    if not past:
        return "the last scraper was heard at a time still to come: a clock was set back"
    return f"the last scraper was heard {_duration(now - max(past))} ago"


def left_alone(beats: Sequence[NodeBeat], now: datetime) -> Iterator[str]:
    """Yield who is not asked at present, and for how long; why, only those hear who may see errors."""
    notes = sorted((note for beat in beats for note in beat.breakers), key=_weight)
    for note in notes[:_NAMED]:
        yield _told(note, now)
    if len(notes) > _NAMED:
        yield f"and {len(notes) - _NAMED} more are left alone"


def _weight(note: BreakerNote) -> tuple[int, str]:
    known = _BY_WEIGHT.index(note.scope) if note.scope in _BY_WEIGHT else len(_BY_WEIGHT)
    return known, note.subject


def _told(note: BreakerNote, now: datetime) -> str:
    left = note.until - now if note.until else timedelta(0)
    term = f" for another {_duration(left)}" if left > timedelta(0) else ""
    if note.scope == "rest":
        return f"{note.subject} rests{term}, as the site has asked"
    return f"{note.scope} {note.subject} {_STATES.get(note.state, note.state)}{term}"


def _duration(length: timedelta) -> str:
    seconds = length.total_seconds()
    for limit, unit, name in _UNITS:
        if seconds < limit:
            return f"{seconds / unit:.0f} {name}"
    return f"{length.days} days"
