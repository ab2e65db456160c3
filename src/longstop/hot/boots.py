"""What the live view says of another boot: its file outlives one, and monotonic times do not."""

from msgspec.structs import replace

from longstop.model.match import MonitoringRecord
from longstop.storage.base import NodeBeat


def record_of_boot(record: MonitoringRecord, boot: str | None, present: str | None) -> MonitoringRecord:
    """Return a record without its monotonic time, unless that is of the present boot."""
    return record if _is_present(boot, present) else replace(record, last_poll_monotonic=None)


def beat_of_boot(beat: NodeBeat, boot: str | None, present: str | None) -> NodeBeat:
    """Return a beat without its monotonic time, unless that is of the present boot."""
    return beat if _is_present(boot, present) else replace(beat, beat_monotonic=None)


def _is_present(boot: str | None, present: str | None) -> bool:
    return boot is not None and boot == present
