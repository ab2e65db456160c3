"""What we hold and what we see, laid beside each other."""

from longstop.pipeline.slots import Held, New, Shown, Slot, Vanished
from longstop.pipeline.timeline import lay_out, proposed
from tests.builders import delivery, event, fold, seen, sighting

A, B, C = (event(f"delivery:1:0:{nth}", str(nth * 10), delivery(f"0.{nth}", nth)) for nth in (1, 2, 3))
KNOWN = fold(A, B, C)
SEEN_A, SEEN_B, SEEN_C = (seen(each.source_event_id, each.content) for each in (A, B, C))


def kinds(slots: tuple[Slot, ...]) -> list[str]:
    return [type(slot).__name__ for slot in slots]


def test_a_whole_sighting_pairs_everything() -> None:
    slots = lay_out(KNOWN, sighting(SEEN_A, SEEN_B, SEEN_C), 1)

    assert slots == (Shown(A, SEEN_A), Shown(B, SEEN_B), Shown(C, SEEN_C))


def test_what_a_partial_walk_did_not_reach_is_held() -> None:
    slots = lay_out(KNOWN, sighting(SEEN_C, is_whole=False), 1)

    assert slots == (Held(A), Held(B), Shown(C, SEEN_C))


def test_a_partial_walk_that_met_an_older_innings_has_seen_all_of_this_one() -> None:
    older = seen("5", innings=0)

    slots = lay_out(KNOWN, sighting(older, SEEN_B, SEEN_C, is_whole=False), 1)

    assert slots == (Vanished(A, is_tail=False), Shown(B, SEEN_B), Shown(C, SEEN_C))


def test_a_ball_missing_between_two_others_has_vanished() -> None:
    slots = lay_out(KNOWN, sighting(SEEN_A, SEEN_C), 1)

    assert slots == (Shown(A, SEEN_A), Vanished(B, is_tail=False), Shown(C, SEEN_C))


def test_the_newest_ball_missing_is_marked_as_the_tail() -> None:
    assert lay_out(KNOWN, sighting(SEEN_A, SEEN_B), 1)[-1] == Vanished(C, is_tail=True)


def test_a_new_ball_stands_where_the_source_shows_it() -> None:
    fresh = seen("15", delivery("0.2"))

    slots = lay_out(KNOWN, sighting(SEEN_A, fresh, SEEN_B, SEEN_C), 1)

    assert slots[1] == New(fresh)


def test_the_same_ball_under_a_new_id_is_one_ball() -> None:
    renamed = seen("25", delivery("0.2", 2))

    slots = lay_out(KNOWN, sighting(SEEN_A, renamed, SEEN_C), 1)

    assert slots == (Shown(A, SEEN_A), Shown(B, renamed), Shown(C, SEEN_C))


def test_a_ball_of_another_over_is_not_taken_for_the_vanished_one() -> None:
    next_over = seen("40", delivery("1.1"))

    slots = lay_out(KNOWN, sighting(SEEN_A, SEEN_B, next_over), 1)

    assert slots[2:] == (Vanished(C, is_tail=True), New(next_over))


def test_a_void_ball_that_is_shown_again_is_the_old_one() -> None:
    void = event("delivery:1:0:2", "20", B.content, rev=2, op="void", position=None)

    slots = lay_out(fold(A, void, C), sighting(SEEN_A, SEEN_B, SEEN_C), 1)

    assert slots[1] == Shown(void, SEEN_B)


def test_other_innings_are_left_out() -> None:
    assert kinds(lay_out(KNOWN, sighting(seen("90", innings=2)), 2)) == ["New"]


def test_the_proposal_takes_the_source_at_its_word() -> None:
    changed = seen("30", delivery("0.3", 6))

    slots = lay_out(KNOWN, sighting(SEEN_B, changed, is_whole=False), 1)

    assert [ball.runs.total for ball in proposed(slots)] == [1, 2, 6]
    assert [ball.runs.total for ball in proposed(lay_out(KNOWN, sighting(SEEN_A, SEEN_C), 1))] == [1, 3]
