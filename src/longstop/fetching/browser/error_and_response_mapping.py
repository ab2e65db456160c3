"""Maps what Playwright raises, and what a browser received, to our errors.

Of a foreign message only Chromium's network error code is kept: the rest may contain secrets.
"""

import re
from collections.abc import Mapping
from datetime import datetime

from playwright.async_api import Error as PlaywrightError

from longstop import errors
from longstop.exhaustion import first_line
from longstop.fetching.http_error_mapping import status_error
from longstop.sources.bodies_and_urls import is_challenge

_NETWORK_CODE = re.compile(r"net::(ERR_[A-Z0-9_]+)")
_BY_CODE: dict[str, type[errors.FetchError]] = {
    "ERR_CONTENT_LENGTH_MISMATCH": errors.BodyTruncated,
    "ERR_INCOMPLETE_CHUNKED_ENCODING": errors.BodyTruncated,
    "ERR_CONTENT_DECODING_FAILED": errors.BodyTruncated,
    "ERR_TIMED_OUT": errors.FetchTimeout,
    "ERR_CONNECTION_TIMED_OUT": errors.FetchTimeout,
    "ERR_BLOCKED_BY_CLIENT": errors.ForbiddenTarget,
    "ERR_BLOCKED_BY_ADMINISTRATOR": errors.ForbiddenTarget,
    "ERR_UNSAFE_PORT": errors.ForbiddenTarget,
    # The site responded, but not with something that a page can show.
    "ERR_ABORTED": errors.SourceFailed,
    "ERR_INVALID_RESPONSE": errors.SourceFailed,
    "ERR_TOO_MANY_REDIRECTS": errors.SourceFailed,
    "ERR_INVALID_AUTH_CREDENTIALS": errors.ProxyRefused,
    "ERR_UNEXPECTED_PROXY_AUTH": errors.ProxyRefused,
    "ERR_PROXY_AUTH_REQUESTED": errors.ProxyRefused,
}
#: Playwright's messages for a browser or page that is gone.
_CLOSED = re.compile(r"Target .*closed|Target crashed|Page crashed|Connection closed|Browser .*closed|has been closed")
_PAGE_FETCH_FAILED = re.compile(r"TypeError: (?:Failed to fetch|network error)")
_PROXY_AUTHENTICATION_REQUIRED = 407


def map_playwright_error(error: PlaywrightError) -> errors.FetchError:
    text = str(error)
    code = _NETWORK_CODE.search(text)
    if code:
        return _by_code(code[1])
    if "Download is starting" in text:
        return errors.SourceFailed("the site sent a download instead of a page")
    if _PAGE_FETCH_FAILED.search(text):
        return errors.SourceUnreachable("a request from inside the page failed")
    if _CLOSED.search(text):
        return errors.BrowserLost("the browser or the page was closed during the request")
    return errors.BrowserLost(f"the browser reported: {first_line(text)}")


def map_network_error(text: str) -> errors.FetchError:
    """Return our error for a response that is incomplete, by Chromium's network error."""
    code = _NETWORK_CODE.search(text)
    return _by_code(code[1]) if code else errors.SourceUnreachable("the response was interrupted")


def response_error(
    status: int, headers: Mapping[str, str], body: bytes | None, now: datetime
) -> errors.FetchError | None:
    """Return what is wrong with a response; `None` if it is good. A 407 comes from the proxy, not from the site."""
    if status == _PROXY_AUTHENTICATION_REQUIRED:
        return errors.ProxyRefused("the proxy does not accept our credential")
    if body is not None and is_challenge(body):
        return errors.SourceChallenged("the site served a CAPTCHA")
    return status_error(status, headers, now)


def _by_code(code: str) -> errors.FetchError:
    is_proxy = "PROXY" in code or "TUNNEL" in code
    error = _BY_CODE.get(code, errors.ProxyFailed if is_proxy else errors.SourceUnreachable)
    return error(f"the browser reported {code}")
