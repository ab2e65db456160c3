"""Which boot of the machine this is: monotonic times are of one boot, and our files outlive it."""

from functools import cache
from pathlib import Path

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


@cache
def this_boot() -> str | None:
    """Return the name that the kernel has given to its present run; `None` where it gives none."""
    try:
        return _BOOT_ID.read_text(encoding="ascii").strip()
    except OSError:
        return None


def is_another(boot: str | None, present: str | None) -> bool:
    """Return whether the one is known not to be the other."""
    return None not in (boot, present) and boot != present
