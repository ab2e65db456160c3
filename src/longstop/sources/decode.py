"""Reading JSON of unknown origin into a shape: the result is the shape, or a typed error."""

from typing import TypeVar

import msgspec

from longstop.errors import LayoutChanged, MalformedBody, SourceChallenged
from longstop.sources.challenge import is_challenge

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
