"""Reads fields from a rendered page. A field is the first of its selectors that yields a parseable text.

A redesigned page usually still shows the same words. So each field has several selectors, the most specific first,
and a text counts only if it parses as that field. If one selector yields two different values, it is skipped: a guess
could serve a wrong number.
"""

from collections.abc import Callable, Iterable
from typing import Generic, NamedTuple, TypeVar

from msgspec import Struct
from selectolax.lexbor import LexborHTMLParser, LexborNode

from longstop.errors import LayoutChanged, SourceChallenged, SourceError
from longstop.sources.bodies_and_urls import is_challenge

Value = TypeVar("Value")

#: A selector that finds more is too general.
MAX_NODES = 500
#: Selects the node that is searched, not its descendants.
ITSELF = ""


class Selector(NamedTuple, Generic[Value]):
    """A CSS selector, and a function that parses the text found there; it returns `None` for any other text."""

    css: str
    read: Callable[[str], Value | None]


class Field(Struct, Generic[Value], frozen=True, kw_only=True):
    """One value on a page, and its selectors, the most specific first."""

    name: str
    selectors: tuple[Selector[Value], ...]


def at_any(read: Callable[[str], Value | None], *selectors: str) -> tuple[Selector[Value], ...]:
    """Return selectors that share one parse function."""
    return tuple(Selector(css, read) for css in selectors)


class RenderedPage:
    """A rendered page. It records which selectors were used."""

    def __init__(self, body: bytes) -> None:
        self._body = body
        self._root = LexborHTMLParser(body)
        #: By field, the index of the selector that was used.
        self.served: dict[str, int] = {}

    def blocks(self, name: str, selectors: tuple[str, ...], count: int) -> list[LexborNode]:
        """Return the nodes of the first selector that finds exactly `count`, in document order."""
        for nth, css in enumerate(selectors):
            found = self._root.css(css)
            if len(found) == count:
                self._note(name, nth)
                return found
        raise self._unreadable(f"the rendered page does not have {count} elements for {name}")

    def need(self, field: Field[Value], within: LexborNode | None = None) -> Value:
        """Return the value of a required field, or raise."""
        value = self.find(field, within)
        if value is None:
            raise self._unreadable(f"the rendered page shows no readable {field.name}")
        return value

    def find(self, field: Field[Value], within: LexborNode | None = None) -> Value | None:
        """Return the value of a field; `None` if no selector yields a parseable text."""
        for nth, selector in enumerate(field.selectors):
            nodes = self._nodes(selector.css, within)
            # Nested nodes share their text: the time to read them all could grow with the square of the page.
            value = _agreed(selector.read(_text(node)) for node in nodes) if len(nodes) <= MAX_NODES else None
            if value is not None:
                self._note(field.name, nth)
                return value
        return None

    def _nodes(self, css: str, within: LexborNode | None) -> list[LexborNode]:
        if within is None:
            return self._root.css(css)
        return [within] if css == ITSELF else within.css(css)

    def _unreadable(self, reason: str) -> SourceError:
        """Return why the page is unreadable. Checked only on failure: a page with scores may mention CAPTCHAs too."""
        if is_challenge(self._body):
            return SourceChallenged("the site served a CAPTCHA page instead of scores")
        return LayoutChanged(reason)

    def _note(self, name: str, nth: int) -> None:
        self.served[name] = max(nth, self.served.get(name, 0))


def _agreed(values: Iterable[Value | None]) -> Value | None:
    """Return the value that all parseable texts share; `None` if there is none, or they differ."""
    first: Value | None = None
    for value in values:
        if first is not None and value is not None and value != first:
            return None
        first = value if first is None else first
    return first


def _text(node: LexborNode) -> str:
    """Return the text of a node with single spaces between words; adjacent elements are separate words."""
    return " ".join(node.text(separator=" ").split())
