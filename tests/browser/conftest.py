"""What tests with a real browser share."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from longstop.fetching.browser.chromium import BrowserKind, find_chromium
from tests.browser.laboratory import Laboratory, laboratory
from tests.browser.site import Site, serving

if find_chromium(BrowserKind.SHELL) is None:
    pytest.skip("there is no Chromium on this machine: longstop doctor says how to get one", allow_module_level=True)


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with serving() as served:
        yield served


@pytest.fixture
async def lab(tmp_path: Path, site: Site) -> AsyncIterator[Laboratory]:
    async with laboratory(tmp_path, site) as opened:
        yield opened
