import errno

import pytest

from longstop.resilience.lacks import DESCRIPTORS, MEMORY, PROCESSES, ROOM, lack_in, lack_named_in, names_a_reason


@pytest.mark.parametrize(
    ("error", "lack"),
    [
        (OSError(errno.EMFILE, "x"), DESCRIPTORS),
        (MemoryError(), MEMORY),
        (RuntimeError("can't start new thread"), PROCESSES),
        (RuntimeError("the worker can't start new threads yet"), None),
        (OSError(errno.ECONNREFUSED, "x"), None),
        (OSError("without a number"), None),
        (ValueError("can't start new thread"), None),
    ],
)
def test_only_the_system_says_what_it_does_not_give(error: Exception, lack: str | None) -> None:
    assert lack_in(error) == lack


@pytest.mark.parametrize(
    ("text", "lack"),
    [
        ("[Errno 11] whatever the language", PROCESSES),
        ("[Errno 2] first, [Errno 28] then", ROOM),
        ("[Errno 2] No such file or directory", None),
        ("EMFILE: too many open files", DESCRIPTORS),
        ("XEMFILEX", None),
        ("", None),
    ],
)
def test_a_text_names_a_lack_by_word_or_number(text: str, lack: str | None) -> None:
    assert lack_named_in(text) == lack


def test_what_stands_in_every_log_of_a_browser_is_no_reason() -> None:
    log = "the browser has been closed\n<launching> x --no-sandbox\nno bus: No such file or directory"

    assert not names_a_reason(log)
    assert names_a_reason(f"Executable doesn't exist at x\n{log}")
