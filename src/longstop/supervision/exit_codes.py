"""Exit codes of all commands but `health`, and what each means. Pure."""

import errno
from enum import IntEnum

from longstop import errors
from longstop.exhaustion import MachineResource, exhausted_resource


class Exit(IntEnum):
    """Why `up`, a scraper or an API has ended. Codes 64 to 78 are those of `sysexits.h`."""

    DONE = 0
    FAILED = 1
    USAGE = 64
    RESOURCES = 71
    STORAGE = 74
    LOCKED = 75
    SETTINGS = 78
    RESTART = 80
    FORCED = 81
    MEMORY = 82
    #: As a shell reports it.
    NOT_STARTED = 127


_DESCRIPTIONS = {
    Exit.DONE: "it stopped as requested",
    Exit.FAILED: "it failed",
    Exit.USAGE: "its command line is wrong, or its port is in use",
    Exit.RESOURCES: "it was out of file descriptors or processes",
    Exit.STORAGE: "the data directory cannot be used",
    Exit.LOCKED: "another process has locked the data directory",
    Exit.SETTINGS: "a setting is wrong: fix it, then restart",
    Exit.RESTART: "it asked for a restart",
    Exit.FORCED: "it was killed because it did not stop in time, or by a second signal",
    Exit.MEMORY: "it was out of memory",
    Exit.NOT_STARTED: "it could not be started",
}
#: Signals that end processes in practice; `signal.Signals` would be an import that acts.
_SIGNALS = {1: "SIGHUP", 2: "SIGINT", 6: "SIGABRT", 7: "SIGBUS", 9: "SIGKILL", 11: "SIGSEGV", 15: "SIGTERM"}
_BY_RESOURCE = {
    MachineResource.DESCRIPTORS: Exit.RESOURCES,
    MachineResource.PROCESSES: Exit.RESOURCES,
    MachineResource.MEMORY: Exit.MEMORY,
    MachineResource.TEMPORARY_SPACE: Exit.STORAGE,
}
#: The first match counts.
_BY_ERROR: tuple[tuple[type[errors.LongstopError], Exit], ...] = (
    (errors.DataDirectoryInUse, Exit.LOCKED),
    (errors.StorageError, Exit.STORAGE),
    (errors.SettingsError, Exit.SETTINGS),
    (errors.UsageError, Exit.USAGE),
    (errors.RestartNeeded, Exit.RESTART),
)


def exit_of(error: BaseException) -> Exit:
    resource = error.resource if isinstance(error, errors.ResourcesExhausted) else exhausted_resource(error)
    if resource is not None:
        return _BY_RESOURCE[MachineResource(resource)]
    if isinstance(error, OSError):
        return Exit.STORAGE if error.errno == errno.EROFS else Exit.FAILED
    return next((code for kind, code in _BY_ERROR if isinstance(error, kind)), Exit.FAILED)


def exit_of_failed_start(error: OSError) -> Exit:
    """Return the exit code for a program that could not be started at all."""
    code = exit_of(error)
    return code if code in (Exit.RESOURCES, Exit.MEMORY) else Exit.NOT_STARTED


def describe_exit(exit_code: int) -> str:
    """Return why a child ended; negative codes are signals."""
    if exit_code < 0:
        return f"it was killed by {_SIGNALS.get(-exit_code, f'signal {-exit_code}')}"
    try:
        return _DESCRIPTIONS[Exit(exit_code)]
    except ValueError:
        return f"it ended with exit code {exit_code}"
