"""Exit codes: each says one thing, and each has words."""

import errno

import pytest

from longstop.errors import (
    DataDirectoryInUse,
    LongstopError,
    ResourcesExhausted,
    RestartNeeded,
    SettingsError,
    StorageError,
    StoreTooNew,
    UsageError,
)
from longstop.exhaustion import MachineResource
from longstop.supervision.exits import Exit, describe, exit_of


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (SettingsError("x"), 78),
        (UsageError("x"), 64),
        (DataDirectoryInUse("x"), 75),  # though it is a StorageError too
        (StoreTooNew("x"), 74),
        (StorageError("x"), 74),
        (RestartNeeded("x"), 80),
        (LongstopError("x"), 1),
        (MemoryError(), 82),
        (OSError(errno.ENOMEM, "x"), 82),
        (OSError(errno.EMFILE, "x"), 71),
        (OSError(errno.EAGAIN, "x"), 71),
        (OSError(errno.ENOSPC, "x"), 74),
        (OSError(errno.EPERM, "x"), 1),
        (OSError("without a number"), 1),
        (OSError(errno.EROFS, "x"), 74),
        (RuntimeError("can't start new thread"), 71),
        (RuntimeError("x"), 1),
        (ResourcesExhausted(MachineResource.DESCRIPTORS), 71),  # though it is a StorageError too
        (ResourcesExhausted(MachineResource.MEMORY), 82),
    ],
)
def test_an_error_ends_a_process_with_its_own_number(error: Exception, code: int) -> None:
    assert exit_of(error) == code


@pytest.mark.parametrize("code", Exit)
def test_every_number_has_words_of_its_own(code: Exit) -> None:
    others = {describe(other) for other in Exit if other is not code}

    assert describe(code) not in others


def test_a_signal_is_called_by_its_name() -> None:
    assert describe(-9) == "it was killed by SIGKILL"
    assert describe(-40) == "it was killed by signal 40"


def test_a_number_that_nobody_gave_is_told_as_it_is() -> None:
    assert describe(3) == "it ended with 3"
