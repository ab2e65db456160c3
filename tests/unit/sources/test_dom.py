"""A field of a rendered page: the first selector that gives a readable value, and never a guess."""

import pytest

from longstop.errors import LayoutChanged, SourceChallenged
from longstop.sources.dom import ITSELF, Field, RenderedPage, Selector, at_any


def number(text: str) -> int | None:
    return int(text) if text.isdecimal() else None


GOALS = Field(name="goals", selectors=at_any(number, ".goals", "[data-goals]", "p"))


def page(body: str) -> RenderedPage:
    return RenderedPage(f"<main>{body}</main>".encode())


@pytest.mark.req("FR-019")
@pytest.mark.parametrize(
    ("body", "served"),
    [
        ("<b class=goals>3</b><i data-goals>5</i>", 0),
        ("<b class=goals>soon</b><i data-goals=''>3</i>", 1),
        ("<b class=scored> 3 </b><p>3</p><p>half</p>", 2),
    ],
)
def test_the_first_selector_with_a_readable_text_serves_and_is_reported(body: str, served: int) -> None:
    drawn = page(body)

    assert drawn.need(GOALS) == 3
    assert drawn.served == {"goals": served}


def test_a_selector_whose_texts_differ_gives_nothing() -> None:
    assert page("<p>3</p><p>4</p>").find(GOALS) is None
    assert page("<p>3</p><p>3</p>").find(GOALS) == 3


def test_a_field_that_no_selector_gives_is_another_layout() -> None:
    with pytest.raises(LayoutChanged, match="no readable goals"):
        page("<p>nil</p>").need(GOALS)


def test_zero_is_a_value() -> None:
    assert page("<b class=goals>0</b><p>7</p>").find(GOALS) == 0


def test_a_place_can_be_read_itself_and_what_is_beside_it_is_not() -> None:
    drawn = page("<div data-side>1<i>2</i></div><div data-side>7</div>")
    first, second = drawn.blocks("sides", (".side", "[data-side]"), 2)
    words = Field(name="words", selectors=(Selector(".none", str), Selector(ITSELF, str)))

    assert (drawn.find(words, first), drawn.find(words, second)) == ("1 2", "7")
    assert drawn.served == {"sides": 1, "words": 1}


def test_the_wrong_number_of_places_is_another_layout() -> None:
    with pytest.raises(LayoutChanged, match="2 elements for sides"):
        page("<div data-side>1</div>").blocks("sides", (".side", "[data-side]"), 2)


@pytest.mark.parametrize("body", [b"", b"\xff\x00<", b"<main>" * 5_000, b"{}"])
def test_whatever_a_page_is_it_shows_the_field_or_it_does_not(body: bytes) -> None:
    assert RenderedPage(body).find(GOALS) is None


def test_a_captcha_page_is_a_refusal() -> None:
    with pytest.raises(SourceChallenged):
        RenderedPage(b"<html><title>Just a moment...</title></html>").need(GOALS)


def test_a_page_that_shows_what_is_wanted_may_load_what_it_likes() -> None:
    assert RenderedPage(b"<html><script src=/recaptcha.js></script><b class=goals>3</b></html>").need(GOALS) == 3
