import errno

import pytest

from longstop.exhaustion import MachineResource as Out
from longstop.exhaustion import exhausted_resource, resource_named_in


@pytest.mark.parametrize(
    ("error", "resource"),
    [
        (OSError(errno.EMFILE, "x"), Out.DESCRIPTORS),
        (MemoryError(), Out.MEMORY),
        (RuntimeError("can't start new thread"), Out.PROCESSES),
        (RuntimeError("the worker can't start new threads yet"), None),
        (OSError(errno.ECONNREFUSED, "x"), None),
        (OSError("without a number"), None),
        (ValueError("can't start new thread"), None),
    ],
)
def test_only_system_errors_report_exhaustion(error: Exception, resource: str | None) -> None:
    assert exhausted_resource(error) == resource


@pytest.mark.parametrize(
    ("text", "resource"),
    [
        ("[Errno 11] whatever the language", Out.PROCESSES),
        ("[Errno 2] first, [Errno 28] then", Out.TEMPORARY_SPACE),
        ("[Errno 2] No such file or directory", None),
        ("EMFILE: too many open files", Out.DESCRIPTORS),
        ("XEMFILEX", None),
        ("", None),
    ],
)
def test_output_reports_exhaustion_by_name_text_or_number(text: str, resource: str | None) -> None:
    assert resource_named_in(text) == resource
