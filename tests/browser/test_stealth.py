"""What a page can see of its browser: nothing that an ordinary browser does not show."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from longstop.fetching.browser.browser_policy_and_stats import BrowserKind
from longstop.fetching.browser.chromium_path_and_arguments import find_chromium
from longstop.fetching.browser.session import Session
from tests.browser.harness import BrowserHarness, browser_harness
from tests.browser.site import Site
from tests.prerequisites import unavailable

_LOOK = """(() => {
  const look = (seen) => ({
    webdriver: seen.navigator.webdriver,
    languages: [...seen.navigator.languages].join(),
    platform: seen.navigator.platform,
    plugins: seen.navigator.plugins.length > 0,
    chrome: typeof seen.chrome,
    drawnBy: (() => {
      const canvas = seen.document.createElement('canvas').getContext('webgl');
      return canvas && canvas.getExtension('WEBGL_debug_renderer_info') && canvas.getParameter(37446);
    })(),
  });
  const frame = document.createElement('iframe');
  document.body.append(frame);
  const found = {page: look(window), frame: look(frame.contentWindow)};
  frame.remove();
  return JSON.stringify({...found, sizes: [innerWidth, innerHeight, screen.width, devicePixelRatio]});
})()"""


@pytest.fixture(params=[(BrowserKind.SHELL, False), (BrowserKind.SHELL, True), (BrowserKind.HEADLESS, False)])
async def seen(request: pytest.FixtureRequest, tmp_path: Path, site: Site) -> AsyncIterator[tuple[Session, Any]]:
    """A session, and what a page in it sees."""
    kind, is_cdp = request.param
    if find_chromium(kind) is None:
        unavailable(f"there is no Chromium for {kind}")
    async with browser_harness(tmp_path, site, is_cdp=is_cdp) as harness:
        fetcher = harness.fetcher(kind=kind)
        await fetcher.fetch(harness.state("plain"))
        session = fetcher.sessions[0]
        yield session, await evaluated(session, _LOOK)


async def evaluated(session: Session, expression: str) -> Any:
    said = await session.tabs[0].cdp.send("Runtime.evaluate", {"expression": expression})
    return json.loads(said["result"]["value"])


@pytest.mark.req("CAP-3")
async def test_a_page_and_an_empty_frame_in_it_see_an_ordinary_browser(seen: tuple[Session, Any]) -> None:
    session, found = seen
    profile = session.profile

    ordinary = {
        "webdriver": False,
        "languages": ",".join(profile.country.languages),
        "platform": profile.platform,
        "plugins": True,
        "chrome": "object",
        "drawnBy": found["page"]["drawnBy"],
    }
    assert found["page"] == ordinary
    assert found["frame"] == ordinary
    assert "SwiftShader" not in (found["page"]["drawnBy"] or "")
    assert found["sizes"] == [profile.width, profile.height, profile.width, 1]


@pytest.mark.req("CAP-2")
async def test_a_frame_that_is_refused_leaves_a_page_that_is_whole(harness: BrowserHarness) -> None:
    fetcher = harness.fetcher()
    await fetcher.fetch(harness.state("polling"))

    state = """new Promise((done) => {
      const report = () => done(JSON.stringify([document.readyState, frames[0].location.href]));
      if (document.readyState === 'complete') report(); else addEventListener('load', () => setTimeout(report));
    })"""
    said = (
        await fetcher.sessions[0]
        .tabs[0]
        .cdp.send("Runtime.evaluate", {"expression": state, "awaitPromise": True, "timeout": 5000})
    )

    assert said["result"]["value"] == '["complete","about:blank"]'
    assert "/frame" not in harness.site.asked
