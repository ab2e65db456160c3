"""Several feeds of one match: which one leads, and how ids and keys map onto those stored."""

from math import inf
from typing import cast
from unittest.mock import Mock

import pytest
from msgspec.structs import replace

from longstop.matches.live_match_and_feeds import Feed, LiveMatch
from longstop.matches.map_ids_and_keys_between_feeds import as_seen, as_stored, learn_keys
from longstop.matches.pipeline import Pipeline
from longstop.model.event import Op
from longstop.model.match import MatchRef
from longstop.model.source_queries_and_answers import Keys
from longstop.sports.base import MatchState
from longstop.storage.base import MatchBase, MatchStore
from tests.builders import delivery, event, fold

NOW = 100.0
ONE, TWO, THREE = (MatchRef(source, "7") for source in ("one", "two", "three"))
FIRST, SECOND = "delivery:1:0:1", "delivery:1:0:2"


def feed(ref: MatchRef, precedence: int = 0, fresh_until: float = inf) -> Feed:
    made = Feed(ref, cast(Pipeline, None), precedence, cast(MatchState, None))
    made.fresh_until = fresh_until
    return made


def leaders(*feeds: Feed, leader: MatchRef | None = None) -> set[MatchRef]:
    """Return the feeds that lead, or may take the lead."""
    match = LiveMatch(cast(MatchBase, Mock()), cast(MatchStore, None), "node")
    match.leader = leader
    match._feeds = {each.ref: each for each in feeds}
    return {each.ref for each in feeds if match.leads(each, NOW)}


# --- who leads -------------------------------------------------------------------------------------------------------


def test_a_single_feed_leads_fresh_or_not() -> None:
    assert leaders(feed(ONE)) == leaders(feed(ONE, fresh_until=-inf)) == {ONE}


def test_the_fresh_feed_of_the_highest_precedence_leads() -> None:
    assert leaders(feed(ONE, 50), feed(TWO, 100), feed(THREE, 70), leader=ONE) == {TWO}


def test_a_feed_that_was_never_good_may_lead_by_its_precedence_and_blocks_no_other() -> None:
    assert leaders(feed(ONE, 50), feed(TWO, 100, -inf)) == {ONE, TWO}
    assert leaders(feed(ONE, 100), feed(TWO, 50, -inf)) == {ONE}


def test_a_leader_that_fell_silent_gives_way_at_the_moment_its_last_poll_no_longer_counts() -> None:
    for fresh_until, expected in ((NOW + 0.1, {ONE}), (NOW, {ONE, TWO})):
        assert leaders(feed(ONE, 100, fresh_until), feed(TWO, 50), leader=ONE) == expected


def test_among_equals_the_one_that_leads_keeps_the_lead_and_without_one_exactly_one_leads() -> None:
    feeds = feed(ONE), feed(TWO), feed(THREE)

    for leader in (ONE, TWO, THREE):
        assert leaders(*feeds, leader=leader) == {leader}
    assert len(leaders(*feeds)) == 1
    assert leaders(*feeds) == leaders(*feeds[::-1])


# --- stored events under a feed's ids --------------------------------------------------------------------------------


def test_with_one_feed_the_events_are_seen_and_stored_as_they_are() -> None:
    stored = fold(event(FIRST, "a1"), event(SECOND, "a2"))

    assert as_seen(stored, "one", "one", {}) is stored
    assert as_stored(stored.values(), {}, "one", "one") == tuple(stored.values())


def test_a_feed_sees_its_own_events_unmarked_and_others_under_its_own_ids() -> None:
    own, other = event(FIRST, "a1"), event(SECOND, "b2", source="two")
    stored = fold(own, other)

    by_one = as_seen(stored, "one", "one", {other.key: "a2"})
    by_two = as_seen(stored, "two", "one", {own.key: "b1"})

    assert by_one == fold(own, event(SECOND, "a2", source="two"))
    assert by_two == fold(event(FIRST, "b1", source="one"), event(SECOND, "b2"))


def test_an_event_whose_id_the_feed_has_not_shown_yet_has_one_that_no_source_uses() -> None:
    stored = fold(event(FIRST, "a1"), event(SECOND, "a2"))

    seen = as_seen(stored, "two", "one", {})

    assert {each.source_event_id for each in seen.values()} == {f"?{FIRST}", f"?{SECOND}"}


@pytest.mark.parametrize("known_id", [None, "b1"], ids=["not shown yet", "shown"])
@pytest.mark.parametrize(("own", "marked"), [("one", ""), ("two", "one")], ids=["named after it", "named after us"])
@pytest.mark.parametrize(
    "changes", [{"op": Op.UPDATE, "position": 9}, {"op": Op.VOID, "position": None}], ids=["moved", "void"]
)
def test_moving_or_voiding_another_feeds_event_keeps_its_id_and_source(
    known_id: str | None, own: str, marked: str, changes: dict[str, object]
) -> None:
    before = event(FIRST, "a1", source=marked)
    stored = fold(before)
    [seen] = as_seen(stored, "two", own, {before.key: known_id} if known_id else {}).values()

    [after] = as_stored([replace(seen, rev=2, **changes)], stored, "two", own)

    assert after == replace(before, rev=2, **changes)


def test_a_new_content_is_stored_under_the_id_and_source_of_the_feed_that_showed_it() -> None:
    stored = fold(event(FIRST, "a1"))
    corrected = event(FIRST, "b1", delivery(batter_runs=4), rev=2, op=Op.UPDATE)

    [by_two] = as_stored([corrected], stored, "two", "one")
    [by_one] = as_stored([corrected], fold(event(FIRST, "b9", source="two")), "one", "one")

    assert (by_two.source, by_two.source_event_id) == ("two", "b1")
    assert (by_one.source, by_one.source_event_id) == ("", "b1")


def test_a_new_event_says_which_feed_it_came_from_unless_the_match_is_named_after_it() -> None:
    new = event(SECOND, "x2")

    assert [each.source for each in as_stored([new], {}, "two", "one")] == ["two"]
    assert [each.source for each in as_stored([new], {}, "one", "one")] == [""]


# --- keys of players and teams ---------------------------------------------------------------------------------------

STORED = Keys(players={"A1": "Ann Alpha", "B1": "Bea Beta"}, teams={"T1": "Reds", "T2": "Blues"})


def test_equal_names_are_the_same_player_or_team_whatever_their_case() -> None:
    shown = Keys(players={"501": "ANN ALPHA", "502": "Bea Beta"}, teams={"9": "reds"})

    learnt = learn_keys(Keys(), shown, "two", STORED)

    assert learnt == Keys(players={"501": "A1", "502": "B1"}, teams={"9": "T1"})


def test_who_has_no_equal_stays_as_the_source_calls_them() -> None:
    assert learn_keys(Keys(), Keys(players={"503": "Cat Gamma"}), "two", STORED) == Keys()


def test_a_player_is_no_team_of_the_same_name() -> None:
    assert learn_keys(Keys(), Keys(players={"9": "Reds"}), "two", STORED) == Keys()


def test_two_players_of_one_name_are_not_guessed() -> None:
    stored = Keys(players={"A1": "Ann Alpha", "A2": "Ann Alpha"})

    assert learn_keys(Keys(), Keys(players={"501": "Ann Alpha"}), "two", stored) == Keys()


def test_only_the_first_of_two_keys_of_one_name_is_the_stored_player() -> None:
    shown = Keys(players={"501": "Ann Alpha", "502": "Ann Alpha"})

    assert learn_keys(Keys(), shown, "two", STORED) == Keys(players={"501": "A1"})


def test_a_key_that_stands_for_another_person_gets_the_sources_prefix() -> None:
    assert learn_keys(Keys(), Keys(players={"A1": "Cat Gamma"}), "two", STORED) == Keys(players={"A1": "two:A1"})


@pytest.mark.parametrize("shown", [{"501": "Ann Alpha", "A1": "Cat Gamma"}, {"A1": "Cat Gamma", "501": "Ann Alpha"}])
def test_two_persons_never_share_a_key_in_whichever_order_they_are_shown(shown: dict[str, str]) -> None:
    learnt = learn_keys(Keys(), Keys(players=shown), "two", STORED)

    assert learnt == Keys(players={"501": "A1", "A1": "two:A1"})


def test_two_sources_may_use_the_same_keys_the_other_way_round() -> None:
    shown = Keys(players={"A1": "Bea Beta", "B1": "Ann Alpha"})

    assert learn_keys(Keys(), shown, "two", STORED) == Keys(players={"A1": "B1", "B1": "A1"})


def test_what_is_known_stays_and_is_not_learnt_again_under_the_stored_keys() -> None:
    known = Keys(players={"501": "A1", "A1": "two:A1"})
    # Once keys are known, the source's views are read in them.
    shown = Keys(players={"A1": "Ann Alpha", "two:A1": "Cat Gamma", "502": "Bea Beta", "501": "Bea Beta"})

    assert learn_keys(known, shown, "two", STORED) == Keys(players={**known.players, "502": "B1"})
