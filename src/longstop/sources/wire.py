"""What the bodies of several sites have in common."""

from typing import Annotated
from unicodedata import normalize

from msgspec import Meta

#: Bounds that no match reaches: a number beyond them is another field or another site.
Small = Annotated[int, Meta(ge=0, le=9_999)]
Id = Annotated[int, Meta(ge=0, le=2**53)]


def tidy(name: str) -> str:
    """Return a name without blanks around it, in one spelling of its letters."""
    return normalize("NFC", name.strip())
