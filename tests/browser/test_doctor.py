"""The check-up with the browsers of this machine."""

import os

from longstop.doctor.base import Verdict
from longstop.doctor.checkup import examine
from tests.browser.laboratory import descendants


def test_each_browser_is_started_once_as_we_would_and_nothing_is_left() -> None:
    before = {each.identity for each in descendants()}

    checks = {check.name: check for check in examine(dict(os.environ))}

    shell = checks["browser, shell"]
    assert shell.verdict is Verdict.OK
    assert " starts" in shell.found
    assert ("without its sandbox" in shell.found) is (os.geteuid() == 0)
    assert {each.identity for each in descendants()} <= before
