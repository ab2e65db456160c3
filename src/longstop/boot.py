"""Boot ids: monotonic times are valid within one boot only, and our files outlive it."""

from functools import cache
from pathlib import Path

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


@cache
def this_boot() -> str | None:
    """Return the kernel's id of the current boot; `None` if there is none."""
    try:
        return _BOOT_ID.read_text(encoding="ascii").strip()
    except OSError:
        return None


def is_another(boot: str | None, present: str | None) -> bool:
    """Return whether two boot ids are known to differ."""
    return None not in (boot, present) and boot != present
