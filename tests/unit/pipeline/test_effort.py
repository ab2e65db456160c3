"""What one look costs."""

import msgspec
import pytest

from longstop.errors import (
    CircuitOpen,
    EmptyBody,
    FetchTimeout,
    ImpossibleObservation,
    LayoutChanged,
    SourceError,
)
from longstop.fetching.base import FetchRequest, Page
from longstop.pipeline.effort import Effort
from longstop.testing import page

REQUEST = FetchRequest(source="crex", url="https://api.test/live")


def _page(retries: int = 0) -> Page:
    return msgspec.structs.replace(page(b"{}", request=REQUEST), retries=retries)


def _failed(error: SourceError, retries: int = 0, *, is_canary: bool = False) -> SourceError:
    error.retries, error.is_canary = retries, is_canary
    return error


def test_answers_that_came_at_once_are_no_errors() -> None:
    effort = Effort()

    effort.answered(_page())
    effort.answered(_page())

    assert (effort.answers, effort.errors, effort.error_count) == (2, {}, 0)


def test_what_a_second_try_made_good_counts_all_the_same() -> None:
    effort = Effort()

    effort.answered(_page(retries=2))
    effort.answered(_page(retries=1))

    assert (effort.answers, effort.errors) == (2, {"Retried": 3})


def test_an_error_counts_with_every_try_before_it_and_under_its_own_name() -> None:
    effort = Effort()

    effort.answered(_page(retries=1))
    effort.failed(_failed(FetchTimeout("30 s"), retries=2))
    effort.failed(_failed(EmptyBody("nothing")))
    effort.failed(_failed(LayoutChanged("no score")))

    assert effort.errors == {"Retried": 1, "FetchTimeout": 3, "EmptyBody": 1, "LayoutChanged": 1}
    assert effort.error_count == 6


@pytest.mark.parametrize(
    "error", [_failed(CircuitOpen("held"), retries=2), _failed(FetchTimeout("30 s"), is_canary=True)]
)
def test_who_was_not_asked_and_a_canary_have_not_failed(error: SourceError) -> None:
    effort = Effort()

    effort.failed(error)

    assert effort.error_count == 0


def test_an_error_that_comes_by_twice_is_counted_once() -> None:
    effort, error = Effort(), ImpossibleObservation("11 wickets")

    effort.failed(error)
    effort.failed(error)

    assert effort.errors == {"ImpossibleObservation": 1}
