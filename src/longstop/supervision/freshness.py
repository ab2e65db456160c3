"""When each match in play was last read, by the clock that never jumps. Pure: records and moments come in.

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
    #: The last good look, or when it was first seen in play: nobody can be late before that.
    since: float
    read_at: float | None = None
    is_held: bool = False


class Freshness:
    """Remembers the matches in play that do not rest."""

    def __init__(self, stall_after: float = STALL_SECONDS) -> None:
        self._stall_after = stall_after
        self._seen: dict[int, _Seen] = {}
        self._paused = 0

    def observe(self, records: Iterable[MonitoringRecord], now: float) -> None:
        """Take note of how the watching goes; moments are monotonic."""
        # What somebody has paused is as it should be.
        in_play = [record for record in records if record.status in IN_PLAY and not record.is_on_hold]
        active = {record.match_id: record for record in in_play if record.phase is not Phase.PAUSED}
        self._paused = len(in_play) - len(active)
        self._seen = {match_id: self._noted(record, now) for match_id, record in active.items()}

    def sample(self, now: float) -> Sample:
        ages = (
            Age(round(max(0.0, now - seen.since), 3), match_id, seen.ref, seen.is_held)
            for match_id, seen in self._seen.items()
        )
        return Sample(ages=tuple(ages), paused=self._paused, stall_after=self._stall_after)

    def read_since(self, match_ids: Collection[int], moment: float) -> tuple[str, ...]:
        """Return which of these matches had a good look since a moment."""
        return tuple(
            seen.ref
            for match_id, seen in self._seen.items()
            if match_id in match_ids and seen.read_at is not None and seen.read_at > moment
        )

    def _noted(self, record: MonitoringRecord, now: float) -> _Seen:
        seen = self._seen.get(record.match_id)
        if seen is None:
            return _Seen(str(record.ref), record.last_poll_at, now, is_held=record.is_held)
        if record.last_poll_at != seen.polled_at:
            seen.polled_at, seen.since, seen.read_at = record.last_poll_at, now, now
        seen.is_held = record.is_held
        return seen
