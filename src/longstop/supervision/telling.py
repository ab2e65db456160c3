"""Sentences of a verdict on who is silent, who is left alone, and who does not come up. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta

from longstop.clock import Moment
from longstop.model.breaker import BreakerNote
from longstop.model.recovery import Recovery, RecoveryKind, RecoveryOutcome
from longstop.storage.base import NodeBeat

_NAMED = 5
#: Who keeps dying is started again after a minute at most, and is then seen to have died within another.
_STILL_DYING = timedelta(seconds=150)
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


def not_coming_up(recoveries: Iterable[Recovery], now: datetime) -> str | None:
    """Return a sentence when the API has died again and again until just now; the newest recovery comes first.

    A scraper that does not come up gives no sign of life, and that tells. Who cannot be asked tells nothing.
    """
    starts = [each for each in recoveries if each.kind is RecoveryKind.RESTART and each.subject == "api"]
    latest = [each for each in starts if abs(now - each.began_at) < _STILL_DYING]
    if not any(each.outcome is RecoveryOutcome.NOT_RECOVERED for each in latest[:2]):
        return None
    if latest[0].outcome is RecoveryOutcome.RECOVERED:
        return None
    return f"the API does not come up: {latest[0].trigger} (its log says more)"


def _weight(told: tuple[BreakerNote, float]) -> tuple[int, str]:
    note, _ = told
    known = _BY_WEIGHT.index(note.scope) if note.scope in _BY_WEIGHT else len(_BY_WEIGHT)
    return known, note.subject


def _told(note: BreakerNote, told_ago: float) -> str:
    left = (note.left_seconds or 0.0) - told_ago
    if note.scope == "rest":
        term = f" for another {_duration(left)}" if left > 0 else ""
        return f"{note.subject} rests{term}, as the site has asked"
    # One for all tries it sooner now and then.
    term = f" for up to {_duration(left)} more" if left > 0 else ""
    return f"{note.scope} {note.subject} {_STATES.get(note.state, note.state)}{term}"


def _duration(seconds: float) -> str:
    for limit, unit, name in _UNITS:
        if seconds < limit:
            return f"{seconds / unit:.0f} {name}"
    return f"{int(seconds // 86400)} days"
