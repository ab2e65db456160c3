"""Pages with something missing."""

from collections.abc import Iterator
from itertools import combinations

from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser, LexborNode


def each_without_two(page: bytes) -> Iterator[bytes]:
    """Yield a page without each of its elements, and without each two of them."""
    count = len(_elements(LexborHTMLParser(page)))
    for missing in (*((one,) for one in range(count)), *combinations(range(count), 2)):
        parser = LexborHTMLParser(page)
        elements = _elements(parser)
        # The later one first: it may be inside the earlier one.
        for nth in reversed(missing):
            elements[nth].decompose()
        yield (parser.html or "").encode()


def pruned(page: bytes, data: st.DataObject) -> bytes:
    """Return a page from which some elements, with all that is in them, are gone."""
    for _ in range(data.draw(st.integers(1, 4), label="times")):
        parser = LexborHTMLParser(page)
        elements = _elements(parser)
        if not elements:
            break
        elements[data.draw(st.integers(0, len(elements) - 1), label="which")].decompose()
        page = (parser.html or "").encode()
    return page


def _elements(parser: LexborHTMLParser) -> list[LexborNode]:
    """Return what may be missing, in the page's order."""
    return parser.css("title, body *")
