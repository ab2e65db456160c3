"""What Playwright raises, as one of our errors. Only the network's own word for it is kept: the rest may be secret."""

import re

from playwright.async_api import Error as PlaywrightError

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

_NETWORK_WORD = re.compile(r"net::(ERR_[A-Z0-9_]+)")
_TIMEOUTS = frozenset({"ERR_TIMED_OUT", "ERR_CONNECTION_TIMED_OUT"})
_FORBIDDEN = frozenset({"ERR_BLOCKED_BY_CLIENT", "ERR_BLOCKED_BY_ADMINISTRATOR", "ERR_UNSAFE_PORT"})
_CUT = frozenset({"ERR_CONTENT_LENGTH_MISMATCH", "ERR_INCOMPLETE_CHUNKED_ENCODING", "ERR_CONTENT_DECODING_FAILED"})
#: The site answered, and not with something that can be shown.
_ANSWERS = frozenset({"ERR_ABORTED", "ERR_INVALID_RESPONSE", "ERR_TOO_MANY_REDIRECTS"})
_NOT_KNOWN_TO_THE_PROXY = frozenset(
    {"ERR_INVALID_AUTH_CREDENTIALS", "ERR_UNEXPECTED_PROXY_AUTH", "ERR_PROXY_AUTH_REQUESTED"}
)
#: The words with which a browser that is gone is told.
_GONE = re.compile(r"Target .*closed|Target crashed|Page crashed|Connection closed|Browser .*closed|has been closed")
_PAGE_FETCH = re.compile(r"TypeError: (?:Failed to fetch|network error)")


def translated(error: PlaywrightError) -> FetchError:
    """Return what an error of Playwright means."""
    text = str(error)
    found = _NETWORK_WORD.search(text)
    if found:
        return _by_word(found[1])
    if "Download is starting" in text:
        return SourceFailed("answered with a download")
    if _PAGE_FETCH.search(text):
        return SourceUnreachable("the page could not reach it")
    if _GONE.search(text):
        return BrowserLost("the browser or the page was closed under way")
    return BrowserLost(f"the browser says: {_first_words(text)}")


def broken_off(word: str) -> FetchError:
    """Return what it means that an answer was not whole, by the network's word for it."""
    found = _NETWORK_WORD.search(word)
    return _by_word(found[1]) if found else SourceUnreachable("the answer broke off")


def _by_word(word: str) -> FetchError:
    if word in _CUT:
        return BodyTruncated(f"the browser says {word}")
    if word in _TIMEOUTS:
        return FetchTimeout(f"the browser says {word}")
    if word in _FORBIDDEN:
        return ForbiddenTarget(f"the browser says {word}")
    if word in _ANSWERS:
        return SourceFailed(f"the browser says {word}")
    if word in _NOT_KNOWN_TO_THE_PROXY:
        return ProxyRefused(f"the browser says {word}")
    if "PROXY" in word or "TUNNEL" in word:
        return ProxyFailed(f"the browser says {word}")
    return SourceUnreachable(f"the browser says {word}")


def _first_words(text: str) -> str:
    """Return the beginning of a foreign text, without any address in it."""
    line = text.splitlines()[0] if text else ""
    return re.sub(r"\w+://\S+", "(an address)", line)[:120]
