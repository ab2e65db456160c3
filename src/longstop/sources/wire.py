"""What the bodies of several sites have in common: reading JSON of unknown origin, digests, bounds, names."""

import traceback
from hashlib import blake2b
from typing import Annotated, Any, TypeVar
from unicodedata import normalize

import msgspec
from msgspec import Meta

from longstop.errors import LayoutChanged, LongstopError, MalformedBody, SourceChallenged, SourceError
from longstop.model.observation import Query
from longstop.sources.base import Source
from longstop.sources.challenge import is_challenge

#: Bounds that no match reaches: a number beyond them is another field or another site.
Small = Annotated[int, Meta(ge=0, le=9_999)]
Id = Annotated[int, Meta(ge=0, le=2**53)]

Shape = TypeVar("Shape")


def decode(body: bytes | memoryview, shape: type[Shape]) -> Shape:
    """Return the body as `shape`; keys that the shape does not name are skipped."""
    try:
        return msgspec.json.decode(body, type=shape)
    except msgspec.ValidationError as error:
        raise LayoutChanged(f"the body has another shape: {error}") from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        if is_challenge(body):
            raise SourceChallenged("a page that wants proof of a person, where data should be") from error
        start = bytes(body[:40]).decode("utf-8", "replace")
        raise MalformedBody(f"the body is no readable JSON ({error}); it starts {start!r}") from error


def digest_of(said: object) -> bytes:
    """Return a digest of what a body says: the body itself, or what is left of it once the rest is masked."""
    said = said if isinstance(said, bytes) else msgspec.json.encode(said)
    return blake2b(said, digest_size=16).digest()


def tidy(name: str) -> str:
    """Return a name without blanks around it, in one spelling of its letters."""
    return normalize("NFC", name.strip())


def read_body(source: Source, query: Query, body: bytes) -> Any:
    """Return what a source reads in a body, or raise a `SourceError` that names source and resource.

    A source may be a third party's: a `KeyError` in its code most likely means that the site has changed. It must not
    stop the matches that can be read, and its page is kept for the one who repairs the source.
    """
    try:
        return source.parse(query, body)
    except SourceError as error:
        error.name(source.name, str(query))
        raise
    except (LongstopError, OSError, MemoryError):
        raise
    except Exception as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{'/'.join(frame.filename.split('/')[-2:])}, line {frame.lineno}"
        changed = LayoutChanged(f"{type(error).__name__} in {where}: {error}")
        changed.name(source.name, str(query))
        raise changed from error
