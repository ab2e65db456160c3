"""Maps HTTP responses and curl's errors to our errors. Pure."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import cast

from curl_cffi import CurlError
from curl_cffi.const import CurlECode
from curl_cffi.requests import exceptions as curl

from longstop import errors

REDIRECTS = frozenset({301, 302, 303, 307, 308})
#: A longer Retry-After is cut to this.
MAX_RETRY_AFTER_SECONDS = 900.0

_WHOLE_SECONDS = re.compile(r"-?[0-9]+")
_CURL_MESSAGE = re.compile(r"curl: \(\d+\) (.*?)\.? See https://", re.DOTALL)

#: Curl's errors and ours; any other means that the site is unreachable. A test fails when the library has a new one.
CURL_ERRORS: dict[type[CurlError], type[errors.FetchError]] = {
    curl.Timeout: errors.FetchTimeout,
    curl.ConnectTimeout: errors.FetchTimeout,
    curl.ReadTimeout: errors.FetchTimeout,
    curl.IncompleteRead: errors.BodyTruncated,
    curl.ChunkedEncodingError: errors.BodyTruncated,
    curl.ContentDecodingError: errors.BodyTruncated,
    curl.TooManyRedirects: errors.ForbiddenTarget,
    curl.InvalidURL: errors.ForbiddenTarget,
    curl.MissingSchema: errors.ForbiddenTarget,
    curl.URLRequired: errors.ForbiddenTarget,
    curl.InvalidProxyURL: errors.ForbiddenTarget,
    # The scheme was checked before; curl also raises this for a reply that is not HTTP.
    curl.InvalidSchema: errors.SourceUnreachable,
}
#: Codes for which the library raises a less specific class.
CURL_CODES: dict[int, type[errors.FetchError]] = {CurlECode.BAD_CONTENT_ENCODING: errors.BodyTruncated}


def status_error(status: int, headers: Mapping[str, str], now: datetime) -> errors.FetchError | None:
    """Return the error of a response other than a redirect; `None` for a good one."""
    if status == 206:
        return errors.BodyTruncated("answered 206 (partial content) to a request for the whole")
    if 200 <= status < 300:
        return None
    if status in (404, 410):
        return errors.PageNotFound(f"answered {status}")
    kind = errors.SourceRefused if 400 <= status < 500 else errors.SourceFailed
    return kind(f"answered {status}", retry_after_seconds=retry_after_seconds(headers.get("retry-after"), now))


def retry_after_seconds(value: str | None, now: datetime) -> float | None:
    """Parse Retry-After, in seconds or as a date, limited to 15 minutes; `None` if it is invalid."""
    text = (value or "").strip()
    seconds = float(text) if _WHOLE_SECONDS.fullmatch(text) else _seconds_until(text, now)
    return None if seconds is None else min(max(seconds, 0.0), MAX_RETRY_AFTER_SECONDS)


def _seconds_until(date: str, now: datetime) -> float | None:
    try:
        moment = parsedate_to_datetime(date)
        # "-0000" means an unknown time zone in RFC 5322; HTTP dates are always UTC.
        aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return (aware - now).total_seconds()
    except (TypeError, ValueError, IndexError, OverflowError):
        return None


def map_curl_error(error: CurlError) -> errors.FetchError:
    """Return our error for one of curl's, with curl's message but without the library's advice around it."""
    # Curl's own errors have only a code, and no class yet.
    reported = curl.code2error(cast(CurlECode, error.code), str(error)) if type(error) is CurlError else type(error)
    by_class = (CURL_ERRORS[kind] for kind in reported.__mro__ if kind in CURL_ERRORS)
    mapped = CURL_CODES.get(error.code) or next(by_class, errors.SourceUnreachable)
    found = _CURL_MESSAGE.search(str(error))
    return mapped(f"{found[1] if found else error} (curl {int(error.code)})")
