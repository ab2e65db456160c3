"""What is wrong with an answer that a browser got, if anything."""

from collections.abc import Mapping
from datetime import datetime

from longstop.errors import FetchError, ProxyRefused, SourceChallenged
from longstop.fetching.answers import error_of
from longstop.sources.parsing import is_challenge

_NOT_KNOWN_TO_THE_PROXY = 407


def wrong_with(status: int, headers: Mapping[str, str], body: bytes | None, now: datetime) -> FetchError | None:
    """Return why an answer is none; `None` when it is one. What the proxy says is not the site's word."""
    if status == _NOT_KNOWN_TO_THE_PROXY:
        return ProxyRefused("the proxy does not know us")
    if body is not None and is_challenge(body):
        return SourceChallenged("the page wants proof of a person")
    return error_of(status, headers, now)
