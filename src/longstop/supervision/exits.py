"""How our long-running processes end: one number for each reason, and a sentence for each number."""

import errno
from enum import IntEnum

from longstop.errors import (
    DataDirectoryInUse,
    LongstopError,
    ResourcesExhausted,
    RestartNeeded,
    SettingsError,
    StorageError,
    UsageError,
)
from longstop.exhaustion import MachineResource, exhausted_resource


class Exit(IntEnum):
    """Why `up`, a scraper or an API has ended. Where the old `sysexits` have a number for it, it is theirs."""

    #: It was asked to stop, and has.
    DONE = 0
    #: A bug, or anything else without a number of its own.
    FAILED = 1
    #: The command line or a port asks for what cannot be had.
    USAGE = 64
    #: The system gave no file or process.
    RESOURCES = 71
    #: The data directory or a file in it cannot be used.
    STORAGE = 74
    #: Another process holds the data directory.
    LOCKED = 75
    #: A setting is wrong, unknown or missing.
    SETTINGS = 78
    #: It asks to be started again.
    RESTART = 80
    #: It was asked to stop and something had to be killed: its time was over, or it was asked twice.
    FORCED = 81
    #: The system gave no memory.
    MEMORY = 82
    #: The program could not be started at all: what a shell says.
    NOT_STARTED = 127


_SENTENCES = {
    Exit.DONE: "it stopped as it was asked to",
    Exit.FAILED: "it failed, and said why in the log",
    Exit.USAGE: "it was asked for what cannot be had, such as a port in use",
    Exit.RESOURCES: "the system gave it no file or process",
    Exit.STORAGE: "the data directory cannot be used",
    Exit.LOCKED: "another process holds the data directory",
    Exit.SETTINGS: "a setting is wrong: it stays down until that is mended",
    Exit.RESTART: "it asked to be started again",
    Exit.FORCED: "it had to be killed while it stopped",
    Exit.MEMORY: "the system gave it no memory",
    Exit.NOT_STARTED: "it could not be started",
}
#: Those that end processes in practice.
_SIGNALS = {1: "SIGHUP", 2: "SIGINT", 6: "SIGABRT", 7: "SIGBUS", 9: "SIGKILL", 11: "SIGSEGV", 15: "SIGTERM"}
_BY_RESOURCE = {
    MachineResource.DESCRIPTORS: Exit.RESOURCES,
    MachineResource.PROCESSES: Exit.RESOURCES,
    MachineResource.MEMORY: Exit.MEMORY,
    MachineResource.TEMPORARY_SPACE: Exit.STORAGE,
}
#: The first that fits counts.
_BY_KIND: tuple[tuple[type[LongstopError], Exit], ...] = (
    (DataDirectoryInUse, Exit.LOCKED),
    (StorageError, Exit.STORAGE),
    (SettingsError, Exit.SETTINGS),
    (UsageError, Exit.USAGE),
    (RestartNeeded, Exit.RESTART),
)


def exit_of(error: BaseException) -> Exit:
    """Return the number with which a process ends that met this error."""
    resource = error.resource if isinstance(error, ResourcesExhausted) else exhausted_resource(error)
    if resource is not None:
        return _BY_RESOURCE[MachineResource(resource)]
    if isinstance(error, OSError):
        return Exit.STORAGE if error.errno == errno.EROFS else Exit.FAILED
    return next((code for kind, code in _BY_KIND if isinstance(error, kind)), Exit.FAILED)


def of_failed_start(error: OSError) -> Exit:
    """Return the number for a program that could not be started at all."""
    code = exit_of(error)
    return code if code in (Exit.RESOURCES, Exit.MEMORY) else Exit.NOT_STARTED


def describe(exit_code: int) -> str:
    """Say why a child has ended, by the number that the system gives; below zero it is a signal's."""
    if exit_code < 0:
        return f"it was killed by {_SIGNALS.get(-exit_code, f'signal {-exit_code}')}"
    try:
        return _SENTENCES[Exit(exit_code)]
    except ValueError:
        return f"it ended with {exit_code}"
