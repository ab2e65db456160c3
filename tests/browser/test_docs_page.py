"""The page `/docs` in a browser."""

from importlib.resources import files

from playwright.async_api import Route, async_playwright

from longstop.fetching.browser.browser_policy_and_stats import BrowserKind
from longstop.fetching.browser.chromium_path_and_arguments import find_chromium

_ADDRESS = "http://127.0.0.1:1"
_PARAMETER = {"name": "after", "in": "query", "description": "A `seq`."}
_OPERATION = {
    "description": "Return events after `seq`.",
    "parameters": [_PARAMETER],
    "responses": {"304": {"description": "The `ETag` matches."}},
}


async def _answer(route: Route) -> None:
    if route.request.url.endswith("/openapi.json"):
        await route.fulfill(json={"info": {"version": "1"}, "paths": {"/events": {"get": _OPERATION}}})
    else:
        page = (files("longstop.api") / "docs.html").read_text(encoding="utf-8")
        await route.fulfill(body=page, content_type="text/html")


async def test_names_between_backticks_are_shown_as_code() -> None:
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=find_chromium(BrowserKind.SHELL), args=["--no-sandbox"]
        )
        page = await browser.new_page()
        await page.route("**/*", _answer)
        await page.goto(f"{_ADDRESS}/docs")
        main = page.locator("main")
        await main.locator("details").wait_for()

        assert await main.locator("code").all_text_contents() == ["/events", "seq", "seq", "after", "seq", "ETag"]
        assert "Return events after seq." in (await main.text_content() or "")
        await browser.close()
