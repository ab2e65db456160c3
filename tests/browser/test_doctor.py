"""The check-up with the browsers of this machine."""

import asyncio
import os

from longstop.doctor.checks import CheckStatus
from longstop.doctor.measure_and_check import examine
from tests.browser.harness import descendants, until


async def test_each_browser_is_started_once_as_we_would_and_nothing_is_left() -> None:
    before = {each.identity for each in descendants()}

    checks = {check.name: check for check in await asyncio.to_thread(examine, dict(os.environ))}

    shell = checks["browser, shell"]
    assert shell.verdict is CheckStatus.OK
    assert " starts" in shell.found
    assert ("without its sandbox" in shell.found) is (os.geteuid() == 0)
    # Dead processes are reaped by the process that adopted them: this one, if a pool ran here before.
    await until(lambda: {each.identity for each in descendants() if each.state != "Z"} <= before, 10)
