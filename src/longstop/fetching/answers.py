"""What an answer, or an error of curl, means: a page, a redirect, or one of our errors. All of it is pure."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import cast
from urllib.parse import quote, urljoin, urlsplit

import msgspec
from curl_cffi import CurlError
from curl_cffi.const import CurlECode
from curl_cffi.requests import exceptions as curl

from longstop.errors import (
    BodyTruncated,
    FetchError,
    FetchTimeout,
    ForbiddenTarget,
    PageNotFound,
    SourceFailed,
    SourceRefused,
    SourceUnreachable,
)
from longstop.fetching.base import FetchRequest

REDIRECTS = frozenset({301, 302, 303, 307, 308})
#: A site may ask for silence, but not for ever.
MAX_RETRY_AFTER_SECONDS = 900.0

_KEEPS_METHOD = frozenset({307, 308})
#: All that a redirect to another host takes along: any other header might be a credential.
_HEADERS_FOR_ANYONE = frozenset({"accept", "accept-language", "content-type", "user-agent"})
_URL_CHARACTERS = "!#$%&'()*+,/:;=?@[]~"
_WHOLE_SECONDS = re.compile(r"-?[0-9]+")
_CURLS_OWN_WORDS = re.compile(r"curl: \(\d+\) (.*?)\.? See https://", re.DOTALL)

#: From curl's errors to ours. Every error class of the library stands here, so that a test notices a new one.
CURL_ERRORS: dict[type[CurlError], type[FetchError]] = {
    curl.Timeout: FetchTimeout,
    curl.ConnectTimeout: FetchTimeout,
    curl.ReadTimeout: FetchTimeout,
    curl.IncompleteRead: BodyTruncated,
    curl.ChunkedEncodingError: BodyTruncated,
    curl.ContentDecodingError: BodyTruncated,
    curl.TooManyRedirects: ForbiddenTarget,
    curl.InvalidURL: ForbiddenTarget,
    curl.MissingSchema: ForbiddenTarget,
    curl.URLRequired: ForbiddenTarget,
    curl.InvalidProxyURL: ForbiddenTarget,
    # The scheme has been checked long before; what is left under this name is a reply that is no HTTP.
    curl.InvalidSchema: SourceUnreachable,
    curl.ConnectionError: SourceUnreachable,
    curl.DNSError: SourceUnreachable,
    curl.SSLError: SourceUnreachable,
    curl.CertificateVerifyError: SourceUnreachable,
    curl.ProxyError: SourceUnreachable,
    curl.InterfaceError: SourceUnreachable,
    curl.HTTPError: SourceUnreachable,
    curl.SessionClosed: SourceUnreachable,
    curl.ImpersonateError: SourceUnreachable,
    curl.CookieConflict: SourceUnreachable,
    curl.InvalidHeader: SourceUnreachable,
    curl.InvalidJSONError: SourceUnreachable,
    curl.JSONDecodeError: SourceUnreachable,
    curl.StreamConsumedError: SourceUnreachable,
    curl.RetryError: SourceUnreachable,
    curl.UnrewindableBodyError: SourceUnreachable,
    curl.RequestException: SourceUnreachable,
    CurlError: SourceUnreachable,
}
#: Codes that the library files under a class that says less than the code does.
CURL_CODES: dict[int, type[FetchError]] = {CurlECode.BAD_CONTENT_ENCODING: BodyTruncated}


def error_of(status: int, headers: Mapping[str, str], now: datetime) -> FetchError | None:
    """Return what is wrong with an answer that is no redirect; `None` for a good one."""
    if status == 206:
        return BodyTruncated("answered 206: a part, where the whole was asked for")
    if 200 <= status < 300:
        return None
    if status in (404, 410):
        return PageNotFound(f"answered {status}")
    kind = SourceRefused if 400 <= status < 500 else SourceFailed
    return kind(f"answered {status}", retry_after_seconds=retry_after_seconds(headers.get("retry-after"), now))


def retry_after_seconds(value: str | None, now: datetime) -> float | None:
    """Read Retry-After, in seconds or as a date, clamped to 15 minutes; `None` when it says nothing sensible."""
    text = (value or "").strip()
    seconds = float(text) if _WHOLE_SECONDS.fullmatch(text) else _seconds_until(text, now)
    return None if seconds is None else min(max(seconds, 0.0), MAX_RETRY_AFTER_SECONDS)


def _seconds_until(date: str, now: datetime) -> float | None:
    try:
        moment = parsedate_to_datetime(date)
        # RFC 5322 writes "-0000" for a time whose zone is not told; HTTP dates are always UTC.
        aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return (aware - now).total_seconds()
    except (TypeError, ValueError, IndexError, OverflowError):
        return None


def redirected(request: FetchRequest, status: int, headers: Mapping[str, str]) -> FetchRequest:
    """Return the request that a redirect asks for; whether it may be sent is decided where all targets are."""
    location = headers.get("location", "").strip()
    if not location:
        raise SourceFailed(f"answered {status} without saying where to")
    try:
        url = urljoin(request.url, quote(location, safe=_URL_CHARACTERS))
        is_same_host = urlsplit(url)[:2] == urlsplit(request.url)[:2]
    except ValueError as error:
        raise ForbiddenTarget(f"redirected to a URL that cannot be read: {error}") from error
    carried = {name: value for name, value in request.headers.items() if is_same_host or _is_for_anyone(name)}
    if status in _KEEPS_METHOD:
        return msgspec.structs.replace(request, url=url, headers=carried)
    about_the_body = {"content-type", "content-length"}
    without_body = {name: value for name, value in carried.items() if name.lower() not in about_the_body}
    return msgspec.structs.replace(request, url=url, headers=without_body, method="GET", body=None)


def _is_for_anyone(header: str) -> bool:
    return header.lower() in _HEADERS_FOR_ANYONE


def translated(error: CurlError) -> FetchError:
    """Return our error for one of curl's, in curl's words without the library's advice around them."""
    meaning = CURL_CODES.get(error.code) or CURL_ERRORS[_known_class(error)]
    found = _CURLS_OWN_WORDS.search(str(error))
    return meaning(f"{found[1] if found else error} (curl {int(error.code)})")


def _known_class(error: CurlError) -> type[CurlError]:
    # What curl itself reports has no class yet, only a code.
    reported = curl.code2error(cast(CurlECode, error.code), str(error)) if type(error) is CurlError else type(error)
    return next(kind for kind in reported.__mro__ if kind in CURL_ERRORS)
