"""What an HTTP answer means: a page, another place to look, or one of our errors. All of it is pure."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from urllib.parse import quote, urljoin, urlsplit

import msgspec

from longstop.errors import BodyTruncated, FetchError, ForbiddenTarget, PageNotFound, SourceFailed, SourceRefused
from longstop.fetching.base import FetchRequest

REDIRECTS = frozenset({301, 302, 303, 307, 308})
#: A site may ask for silence, but not for ever.
MAX_RETRY_AFTER_SECONDS = 900.0

_KEEPS_METHOD = frozenset({307, 308})
#: All that a redirect to another host takes along: any other header might be a credential.
_HEADERS_FOR_ANYONE = frozenset({"accept", "accept-language", "content-type", "user-agent"})
_URL_CHARACTERS = "!#$%&'()*+,/:;=?@[]~"
_WHOLE_SECONDS = re.compile(r"-?[0-9]+")


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
