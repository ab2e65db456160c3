"""What tests with a real browser share."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from longstop.fetching.browser.browser_policy_and_stats import BrowserKind
from longstop.fetching.browser.chromium_path_and_arguments import find_chromium
from tests.browser.harness import BrowserHarness, browser_harness
from tests.browser.site import Site, serving
from tests.prerequisites import unavailable


@pytest.fixture(autouse=True)
def _chromium() -> None:
    if find_chromium(BrowserKind.SHELL) is None:
        unavailable("there is no Chromium on this machine: longstop doctor says how to get one")


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with serving() as served:
        yield served


@pytest.fixture
async def harness(tmp_path: Path, site: Site) -> AsyncIterator[BrowserHarness]:
    async with browser_harness(tmp_path, site) as opened:
        yield opened
