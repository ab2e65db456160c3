"""Reading a page as its script has drawn it: a field is what the first of its selectors gives that can be read.

A page that is drawn otherwise than it was still shows the same words. So each field has several selectors, the most
particular first, and a text only counts when it reads as that field. Where one selector gives two readable values
that differ, it gives none: a guess would be a wrong number.
"""

from collections.abc import Callable, Iterable
from typing import Generic, NamedTuple, TypeVar

from msgspec import Struct
from selectolax.lexbor import LexborHTMLParser, LexborNode

from longstop.errors import LayoutChanged, SourceChallenged, SourceError
from longstop.sources.challenge import is_challenge

Value = TypeVar("Value")

#: Selects the place itself that is looked into, not what is below it.
ITSELF = ""


class Selector(NamedTuple, Generic[Value]):
    """A place to look at, in CSS, and how to read a text that stands there: `None` when it says something else."""

    css: str
    read: Callable[[str], Value | None]


class Field(Struct, Generic[Value], frozen=True, kw_only=True):
    """One thing that a page shows, and where it may stand, the most particular place first."""

    name: str
    selectors: tuple[Selector[Value], ...]


def at_any(read: Callable[[str], Value | None], *places: str) -> tuple[Selector[Value], ...]:
    """Return selectors of which each text is read alike."""
    return tuple(Selector(css, read) for css in places)


class RenderedPage:
    """A drawn page that remembers which selectors served."""

    def __init__(self, body: bytes) -> None:
        self._body = body
        self._root = LexborHTMLParser(body)
        #: By field, which selector served, counted from 0.
        self.served: dict[str, int] = {}

    def blocks(self, name: str, selectors: tuple[str, ...], count: int) -> list[LexborNode]:
        """Return the places that the first selector gives which finds exactly so many, in the page's order."""
        for nth, css in enumerate(selectors):
            found = self._root.css(css)
            if len(found) == count:
                self._note(name, nth)
                return found
        raise self._unreadable(f"the drawn page has not {count} places for {name}")

    def need(self, field: Field[Value], within: LexborNode | None = None) -> Value:
        """Return what the page shows, or raise: without it the page says nothing."""
        value = self.find(field, within)
        if value is None:
            raise self._unreadable(f"the drawn page shows no {field.name} that can be read")
        return value

    def find(self, field: Field[Value], within: LexborNode | None = None) -> Value | None:
        """Return what the page shows; `None` when none of the selectors gives a readable text."""
        for nth, selector in enumerate(field.selectors):
            value = _agreed(selector.read(_text(node)) for node in self._nodes(selector.css, within))
            if value is not None:
                self._note(field.name, nth)
                return value
        return None

    def _nodes(self, css: str, within: LexborNode | None) -> list[LexborNode]:
        if within is None:
            return self._root.css(css)
        return [within] if css == ITSELF else within.css(css)

    def _unreadable(self, reason: str) -> SourceError:
        """Return why the page says nothing. One that shows scores may well speak of people and robots too."""
        if is_challenge(self._body):
            return SourceChallenged("a page that wants proof of a person, where scores should be")
        return LayoutChanged(reason)

    def _note(self, name: str, nth: int) -> None:
        self.served[name] = max(nth, self.served.get(name, 0))


def _agreed(values: Iterable[Value | None]) -> Value | None:
    """Return the one value that all readable ones are; `None` when there is none, or they differ."""
    first: Value | None = None
    for value in values:
        if first is not None and value is not None and value != first:
            return None
        first = value if first is None else first
    return first


def _text(node: LexborNode) -> str:
    """Return a place's words with single spaces between them: elements beside each other are words of their own."""
    return " ".join(node.text(separator=" ").split())
