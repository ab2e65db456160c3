"""What a listing says of the matches it shows and of those it does not."""

import pytest

from longstop.sources.base import Listing
from longstop.watching.discovery import Plan, sort_out
from tests.builders import board

NEW, CHANGED, SAME, OLD = (board(source_id=key) for key in ("new", "changed", "same", "old"))


def plan(listing: Listing) -> Plan:
    return sort_out(
        listing,
        watched=("changed", "same", "gone"),
        ignored=("old",),
        is_news=lambda shown: shown.source_id == "changed",
    )


def test_a_listing_is_sorted_into_new_changed_unchanged_and_missing() -> None:
    found = plan(Listing(boards=(NEW, CHANGED, SAME, OLD)))

    assert found == Plan(new=(NEW,), changed=(CHANGED,), unchanged=(SAME,), missing=("gone",))


@pytest.mark.req("FLD-5")
def test_an_empty_listing_makes_every_match_missing_and_none_finished() -> None:
    assert plan(Listing(boards=())) == Plan(new=(), changed=(), unchanged=(), missing=("changed", "gone", "same"))


def test_an_unreadable_entry_is_looked_at_like_a_missing_one() -> None:
    found = plan(Listing(boards=(CHANGED, SAME), unreadable=("gone",)))

    assert found.missing == ("gone",)
