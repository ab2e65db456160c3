"""One open page, without a browser."""

import asyncio
from typing import Any
from unittest.mock import MagicMock

from longstop.fetching.browser.profile_and_stealth_script import choose_profile
from longstop.fetching.browser.tab import Tab
from longstop.testing import run_virtual


def test_a_screenshot_that_takes_too_long_leaves_the_page_at_its_small_scale() -> None:
    scales: list[float] = []

    async def send(_method: str, parameters: dict[str, Any]) -> None:
        scales.append(parameters["scale"])

    async def hang(timeout: float) -> bytes:
        await asyncio.sleep(3600)
        return b""

    page, cdp = MagicMock(screenshot=hang), MagicMock(send=send)
    tab = Tab(page, cdp, MagicMock(), choose_profile("156.0.8078.79", ""), MagicMock(), MagicMock())

    assert run_virtual(tab.screenshot(0.5)) is None
    assert scales == [1, 0.02]
