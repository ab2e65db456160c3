"""When each match was last read, by the clock that never jumps. Pure: records and moments come in.

A record's own `last_poll_at` is on the wall, where an hour may be missing at any time; that it *changed* is enough.
"""

from collections.abc import Collection, Iterable
from datetime import datetime

from msgspec import Struct

from longstop.model.match import IN_PLAY, MatchRef, MonitoringRecord, Phase
from longstop.supervision.grades import STALL_SECONDS, Age, Sample


class _Seen(Struct):
    ref: MatchRef
    polled_at: datetime | None
    #: The last good look, or when it was first seen to be active: nobody can be late before that.
    since: float
    read_at: float | None = None
    is_held: bool = False
    is_shut_out: bool = False
    lacking: str | None = None
    #: Whether it is in play, and nobody has paused it.
    is_wanted: bool = False
    #: Whether it is wanted and does not rest: only then it has an age.
    is_active: bool = False


class Freshness:
    """Remembers every match that is watched, how old those in play are that do not rest, and the last good look."""

    def __init__(self, stall_after: float = STALL_SECONDS) -> None:
        self._stall_after = stall_after
        self._seen: dict[int, _Seen] = {}
        #: Since when something is wanted; `None` while nothing is.
        self._wanted_since: float | None = None
        #: The last good look at a match in play, whichever.
        self._read_at: float | None = None

    @property
    def has_read(self) -> bool:
        """Return whether any match in play was read so far."""
        return self._read_at is not None

    def observe(self, records: Iterable[MonitoringRecord], now: float) -> None:
        """Take note of how the watching goes; moments are monotonic."""
        self._seen = {record.match_id: self._noted(record, now) for record in records}
        if not any(seen.is_wanted for seen in self._seen.values()):
            self._wanted_since = None
        elif self._wanted_since is None:
            self._wanted_since = now

    def sample(self, now: float) -> Sample:
        stall_seconds = self._stall_seconds(now)
        closed = self._closed() if stall_seconds >= self._stall_after else frozenset()
        ages = (
            Age(
                seconds=round(max(0.0, now - seen.since), 3),
                match_id=match_id,
                ref=str(seen.ref),
                is_held=seen.is_held or seen.ref.source in closed,
            )
            for match_id, seen in self._seen.items()
            if seen.is_active
        )
        lacks = {seen.lacking for seen in self._seen.values() if seen.is_active and seen.lacking}
        paused = (match_id for match_id, seen in self._seen.items() if seen.is_wanted and not seen.is_active)
        return Sample(
            ages=tuple(ages),
            paused=frozenset(paused),
            stall_seconds=stall_seconds,
            stall_after=self._stall_after,
            lacks=tuple(sorted(lacks)),
        )

    def _stall_seconds(self, now: float) -> float:
        """Return for how long nothing that is wanted was read; who has just joined, or rests, does not shorten it."""
        if self._wanted_since is None:
            return 0.0
        return round(max(0.0, now - max(self._wanted_since, self._read_at or 0.0)), 3)

    def _closed(self) -> frozenset[str]:
        """Return the sources that left somebody before a closed door: who was the canary last knocked at the same."""
        return frozenset(seen.ref.source for seen in self._seen.values() if seen.is_active and seen.is_shut_out)

    def read_since(self, match_ids: Collection[int], moment: float) -> tuple[str, ...]:
        """Return which of these matches had a good look since a moment; it may have shown that they are over."""
        return tuple(
            str(seen.ref)
            for match_id, seen in self._seen.items()
            if match_id in match_ids and seen.read_at is not None and seen.read_at > moment
        )

    def is_any_wanted(self, match_ids: Collection[int]) -> bool:
        """Return whether one of these matches is still in play and watched, and nobody has paused it."""
        return any(seen.is_wanted for match_id, seen in self._seen.items() if match_id in match_ids)

    def _noted(self, record: MonitoringRecord, now: float) -> _Seen:
        seen = self._seen.get(record.match_id)
        if seen is None:
            seen = _Seen(record.ref, record.last_poll_at, now)
        if record.last_poll_at != seen.polled_at:
            seen.polled_at, seen.since, seen.read_at = record.last_poll_at, now, now
        was_active, was_wanted = seen.is_active, seen.is_wanted
        # What somebody has paused is as it should be.
        seen.is_wanted = record.status in IN_PLAY and not record.is_on_hold
        # A look that shows the end of a match is a good one.
        if seen.read_at == now and (was_wanted or seen.is_wanted):
            self._read_at = now
        seen.is_active = seen.is_wanted and record.phase is not Phase.PAUSED
        # What we lack ourselves is nobody's wish to be left alone.
        seen.is_held, seen.lacking = record.is_held and record.lacking is None, record.lacking
        seen.is_shut_out = record.is_shut_out
        if not was_active:
            seen.since = now
        return seen
