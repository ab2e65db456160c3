"""Helpers for sources: decode JSON, detect CAPTCHA pages, compute digests, split match addresses. Pure."""

import re
import traceback
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from hashlib import blake2b
from typing import Annotated, Any, TypeVar
from unicodedata import normalize
from urllib.parse import SplitResult, urlsplit

import msgspec
from msgspec import Meta

from longstop.errors import LayoutChanged, LongstopError, MalformedBody, ParseError, SourceChallenged, SourceError
from longstop.model.source_queries_and_answers import Listing, ListingEntry, Query
from longstop.sources.base import Source

#: Bounds that no match reaches: a number beyond them belongs to another field or another site.
Small = Annotated[int, Meta(ge=0, le=9_999)]
Id = Annotated[int, Meta(ge=0, le=2**53)]

MAX_URL_CHARACTERS = 2_000
MAX_NAME_CHARACTERS = 2_000

#: Words and class names of CAPTCHA pages; no page of data has them near its top. Pages of data load Google's
#: `recaptcha` script, though: only its visible element counts.
_CHALLENGE_MARKS = re.compile(
    rb"(?<!re)captcha|g-recaptcha|challenge-form|challenge-platform|cf-chl|turnstile|datadome|px-block|"
    rb"verify (?:that )?you are (?:a )?human|are you a robot|unusual traffic|just a moment\.\.\.|access denied",
    re.IGNORECASE,
)
_CHALLENGE_SEARCH_BYTES = 16_384
#: An error body of an API, whatever the status of its response.
_JSON_CHALLENGE = re.compile(rb'\s*\{\s*"error"\s*:\s*\{[^{}]*"reason"\s*:\s*"challenge"', re.IGNORECASE)
_HTML = re.compile(rb"\s*<(?:!doctype html|html|head|body|script|title)", re.IGNORECASE)

Shape = TypeVar("Shape")


def decode(body: bytes | memoryview, shape: type[Shape]) -> Shape:
    """Return the body as `shape`; keys that the shape does not declare are skipped."""
    try:
        return msgspec.json.decode(body, type=shape)
    except msgspec.ValidationError as error:
        if is_challenge(body):
            raise SourceChallenged("the site answered with a challenge instead of data") from error
        raise LayoutChanged(f"unexpected JSON: {error}") from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        if is_challenge(body):
            raise SourceChallenged("the site served a CAPTCHA page instead of JSON") from error
        start = bytes(body[:40]).decode("utf-8", "replace")
        raise MalformedBody(f"the body is not valid JSON ({error}); it starts with {start!r}") from error


def is_challenge(body: bytes | memoryview) -> bool:
    """Return whether the body is an HTML page with a CAPTCHA or bot check, or an API's error that names one."""
    top = bytes(body[:_CHALLENGE_SEARCH_BYTES])
    if _JSON_CHALLENGE.match(top):
        return True
    return _HTML.match(top) is not None and _CHALLENGE_MARKS.search(top) is not None


def digest_of(content: object) -> bytes:
    """Return a digest of a body, or of the part of it that is read."""
    encoded = content if isinstance(content, bytes) else msgspec.json.encode(content)
    return blake2b(encoded, digest_size=16).digest()


def clean_name(name: str) -> str:
    """Return a name without surrounding whitespace, in Unicode NFC; one that is too long for a name only stripped.

    The time to normalise grows with the square of the number of combining characters.
    """
    name = name.strip()
    return normalize("NFC", name) if len(name) <= MAX_NAME_CHARACTERS else name


def read_body(source: Source, query: Query, body: bytes) -> Any:
    """Return the view that a source parses from a body, or raise a `SourceError` that names source and resource.

    An unexpected error in a source, such as a `KeyError`, most likely means that the site has changed. It becomes a
    `LayoutChanged` with the file and line in the source, so other matches continue and the page is saved.
    """
    try:
        return source.parse(query, body)
    except SourceError as error:
        error.name(source.name, str(query))
        raise
    except (LongstopError, OSError, MemoryError):
        raise
    except (Exception, SystemExit) as error:
        changed = LayoutChanged(f"{type(error).__name__} in {location_of(error)}: {error}")
        changed.name(source.name, str(query))
        raise changed from error


@contextmanager
def mapping_errors(wanted: type[Exception], what: str) -> Iterator[None]:
    """Raise a `wanted` error, with file and line, for anything else that plug-in code raises, such as `SystemExit`."""
    try:
        yield
    except wanted:
        raise
    except (Exception, SystemExit) as error:
        raise wanted(f"{what}: {error!r} in {location_of(error)}") from error


def location_of(error: BaseException) -> str:
    """Return the file and line where an error was raised, with the last folder of the path."""
    if isinstance(error, SyntaxError) and error.filename:
        filename, line = error.filename, error.lineno
    else:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        filename, line = frame.filename, frame.lineno
    return f"{'/'.join(filename.split('/')[-2:])}, line {line}"


def read_listing(entries: Iterable[tuple[str, bytes]], read: Callable[[str, bytes], ListingEntry]) -> Listing:
    """Read the entries of a list one by one; raise if none can be parsed."""
    boards: list[ListingEntry] = []
    unreadable: list[str] = []
    for source_id, entry in entries:
        try:
            boards.append(read(source_id, entry))
        except ParseError:
            unreadable.append(source_id[:80])
    if unreadable and not boards:
        raise LayoutChanged(f"none of the {len(unreadable)} entries of the list could be parsed")
    return Listing(boards=tuple(boards), unreadable=tuple(unreadable))


# --- addresses of match pages --------------------------------------------------------------------------------------


def host_of(url: str) -> str:
    """Return the host of a URL, with its port if there is one; empty if the text is not a URL."""
    parts = _split(url)
    return parts.netloc.lower() if parts else ""


def split_site_url(url: str, sites: Collection[str]) -> SplitResult | None:
    """Return the parts of a URL whose host is one of `sites`; `None` for any other text."""
    parts = _split(url)
    return parts if parts and parts.netloc.lower() in sites else None


def _split(url: str) -> SplitResult | None:
    try:
        parts = urlsplit(url.strip()) if len(url) <= MAX_URL_CHARACTERS else None
    except ValueError:  # unbalanced brackets, characters that normalise to others
        return None
    return parts if parts and parts.scheme in ("http", "https") and parts.netloc else None
