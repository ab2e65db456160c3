"""Which boot of the machine this is: monotonic times are of one boot, and the live view's file outlives it."""

from functools import cache
from pathlib import Path

from msgspec.structs import replace

from longstop.model.match import MonitoringRecord
from longstop.storage.base import NodeBeat

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


@cache
def this_boot() -> str | None:
    """Return the name that the kernel has given to its present run; `None` where it gives none."""
    try:
        return _BOOT_ID.read_text(encoding="ascii").strip()
    except OSError:
        return None


def record_of_boot(record: MonitoringRecord, boot: str | None, present: str | None) -> MonitoringRecord:
    """Return a record without its monotonic time, unless that is of the present boot."""
    return record if _is_present(boot, present) else replace(record, last_poll_monotonic=None)


def beat_of_boot(beat: NodeBeat, boot: str | None, present: str | None) -> NodeBeat:
    """Return a beat without its monotonic time, unless that is of the present boot."""
    return beat if _is_present(boot, present) else replace(beat, beat_monotonic=None)


def _is_present(boot: str | None, present: str | None) -> bool:
    return boot is not None and boot == present
