"""What Playwright raises becomes one of our errors, without the address."""

import pytest
from playwright.async_api import Error

from longstop.errors import (
    BodyTruncated,
    BrowserLost,
    FetchError,
    FetchTimeout,
    ForbiddenTarget,
    ProxyFailed,
    ProxyRefused,
    SourceFailed,
    SourceUnreachable,
)
from longstop.fetching.browser.error_and_response_mapping import map_playwright_error

SECRET = "https://us:canary@site.example/?key=canary"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"Page.goto: net::ERR_CONNECTION_REFUSED at {SECRET}", SourceUnreachable),
        (f"Page.goto: net::ERR_NAME_NOT_RESOLVED at {SECRET}", SourceUnreachable),
        (f"Page.goto: net::ERR_CONNECTION_TIMED_OUT at {SECRET}", FetchTimeout),
        (f"Page.goto: net::ERR_PROXY_CONNECTION_FAILED at {SECRET}", ProxyFailed),
        (f"Page.goto: net::ERR_TUNNEL_CONNECTION_FAILED at {SECRET}", ProxyFailed),
        (f"Page.goto: net::ERR_INVALID_AUTH_CREDENTIALS at {SECRET}", ProxyRefused),
        (f"Page.goto: net::ERR_BLOCKED_BY_CLIENT at {SECRET}", ForbiddenTarget),
        (f"Page.goto: net::ERR_TOO_MANY_REDIRECTS at {SECRET}", SourceFailed),
        (f"Page.goto: net::ERR_INCOMPLETE_CHUNKED_ENCODING at {SECRET}", BodyTruncated),
        (f"Page.goto: Download is starting {SECRET}", SourceFailed),
        ("Page.evaluate: TypeError: Failed to fetch\n at x", SourceUnreachable),
        ("Target page, context or browser has been closed", BrowserLost),
        ("Connection closed while reading from the driver", BrowserLost),
        (f"Something new about {SECRET}", BrowserLost),
        ("", BrowserLost),
    ],
)
def test_every_word_has_a_meaning_and_no_address_is_kept(text: str, expected: type[FetchError]) -> None:
    error = map_playwright_error(Error(text))

    assert type(error) is expected
    assert "canary" not in str(error)
    assert error.reason
