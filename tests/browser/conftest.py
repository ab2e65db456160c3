"""What tests with a real browser share."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from longstop.fetching.browser.base import BrowserKind
from longstop.fetching.browser.chromium import find_chromium
from tests.browser.laboratory import Laboratory, laboratory
from tests.browser.site import Site, serving
from tests.needs import lack


@pytest.fixture(autouse=True)
def _chromium() -> None:
    if find_chromium(BrowserKind.SHELL) is None:
        lack("there is no Chromium on this machine: longstop doctor says how to get one")


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with serving() as served:
        yield served


@pytest.fixture
async def lab(tmp_path: Path, site: Site) -> AsyncIterator[Laboratory]:
    async with laboratory(tmp_path, site) as opened:
        yield opened
