"""When each match was last read, by the clock that never jumps. Pure: records and moments come in.

A record's own `last_poll_at` is on the wall, where an hour may be missing at any time; that it *changed* is enough.
"""

from collections.abc import Collection, Iterable
from datetime import datetime

from msgspec import Struct

from longstop.model.match import MonitoringRecord, Phase
from longstop.supervision.grades import IN_PLAY, STALL_SECONDS, Age, Sample


class _Seen(Struct):
    ref: str
    polled_at: datetime | None
    #: The last good look, or when it was first seen to be active: nobody can be late before that.
    since: float
    read_at: float | None = None
    is_held: bool = False
    lacking: str | None = None
    #: Whether it is in play, and nobody has paused it.
    is_wanted: bool = False
    #: Whether it is wanted and does not rest: only then it has an age.
    is_active: bool = False


class Freshness:
    """Remembers every match that is watched, and how old those in play are that do not rest."""

    def __init__(self, stall_after: float = STALL_SECONDS) -> None:
        self._stall_after = stall_after
        self._seen: dict[int, _Seen] = {}

    def observe(self, records: Iterable[MonitoringRecord], now: float) -> None:
        """Take note of how the watching goes; moments are monotonic."""
        self._seen = {record.match_id: self._noted(record, now) for record in records}

    def sample(self, now: float) -> Sample:
        ages = (
            Age(round(max(0.0, now - seen.since), 3), match_id, seen.ref, seen.is_held)
            for match_id, seen in self._seen.items()
            if seen.is_active
        )
        lacks = {seen.lacking for seen in self._seen.values() if seen.is_active and seen.lacking}
        paused = sum(seen.is_wanted and not seen.is_active for seen in self._seen.values())
        return Sample(ages=tuple(ages), paused=paused, stall_after=self._stall_after, lacks=tuple(sorted(lacks)))

    def read_since(self, match_ids: Collection[int], moment: float) -> tuple[str, ...]:
        """Return which of these matches had a good look since a moment; it may have shown that they are over."""
        return tuple(
            seen.ref
            for match_id, seen in self._seen.items()
            if match_id in match_ids and seen.read_at is not None and seen.read_at > moment
        )

    def is_any_wanted(self, match_ids: Collection[int]) -> bool:
        """Return whether one of these matches is still in play and watched, and nobody has paused it."""
        return any(seen.is_wanted for match_id, seen in self._seen.items() if match_id in match_ids)

    def _noted(self, record: MonitoringRecord, now: float) -> _Seen:
        seen = self._seen.get(record.match_id)
        if seen is None:
            seen = _Seen(str(record.ref), record.last_poll_at, now)
        if record.last_poll_at != seen.polled_at:
            seen.polled_at, seen.since, seen.read_at = record.last_poll_at, now, now
        was_active = seen.is_active
        # What somebody has paused is as it should be.
        seen.is_wanted = record.status in IN_PLAY and not record.is_on_hold
        seen.is_active = seen.is_wanted and record.phase is not Phase.PAUSED
        # What we lack ourselves is nobody's wish to be left alone.
        seen.is_held, seen.lacking = record.is_held and record.lacking is None, record.lacking
        if not was_active:
            seen.since = now
        return seen
