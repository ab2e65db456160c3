"""What is new, changed or gone."""

from collections.abc import Mapping

import pytest

from longstop.errors import LayoutSuspected
from longstop.model.event import Event, EventKey, Op
from longstop.sports.cricket.align import (
    MAX_VANISHED,
    Matched,
    Milestones,
    New,
    Slot,
    Unreached,
    Vanished,
    align,
    lay_out,
    order_of_play,
    proposed,
    suspected,
)
from longstop.sports.cricket.model import (
    CricketKind,
    Delivery,
    InningsSummary,
    Overs,
    Result,
    ResultKind,
    SeenEvent,
    SeenEvents,
)
from tests.builders import applied, delivery, event, fold, listed, over_summary, seen, wicket

BALLS = [event(f"delivery:1:0:{nth}", str(nth * 10), delivery(f"0.{nth}", nth)) for nth in (1, 2, 3, 4)]
KNOWN = fold(*BALLS)
SEEN = [seen(each.source_event_id, each.content) for each in BALLS]
RESULT = EventKey("result")


def reported(events: list[Event]) -> list[tuple[str, int, str]]:
    return [(str(each.key), each.rev, each.op.value) for each in events]


def look_twice(known: Mapping[EventKey, Event], shown: SeenEvents, settled: tuple[int, ...] = ()) -> list[Event]:
    """Return what the second of two equal looks brings, after a first one that brings nothing."""
    first = align(known, shown, settled=settled)
    assert first.events == []
    return align(known, shown, confirmed=first.suspects, settled=settled).events


def reached(kind: CricketKind, content: Result | InningsSummary, innings: int = 0) -> Milestones:
    return Milestones(reached=(SeenEvent(innings=innings, over=0, source_event_id=str(kind), content=content),))


# --- balls ---


def test_the_same_again_is_nothing() -> None:
    found = align(KNOWN, listed(*SEEN))

    assert (found.events, found.suspects) == ([], set())


def test_a_new_ball_gets_the_next_key_and_place() -> None:
    [event_] = align(KNOWN, listed(*SEEN, seen("50", delivery("0.5")))).events

    assert (str(event_.key), event_.rev, event_.op, event_.position) == ("delivery:1:0:5", 1, Op.INSERT, 5)


def test_a_ball_inserted_in_the_past_takes_the_next_key_and_moves_only_places() -> None:
    found = align(KNOWN, listed(SEEN[0], seen("15", delivery("0.2", 6)), *SEEN[1:])).events

    assert [(str(each.key), each.rev, each.position) for each in found] == [
        ("delivery:1:0:5", 1, 2),
        ("delivery:1:0:2", 2, 3),
        ("delivery:1:0:3", 2, 4),
        ("delivery:1:0:4", 2, 5),
    ]


def test_more_runs_count_at_once() -> None:
    more = seen("20", delivery("0.2", 6))

    [event_] = align(KNOWN, listed(SEEN[0], more, *SEEN[2:])).events

    assert (event_.rev, event_.op, event_.content) == (2, Op.UPDATE, more.content)


@pytest.mark.parametrize(
    ("held", "shown"),
    [
        (delivery("0.2", 2), delivery("0.2", 1)),
        (delivery("0.2", 2, wicket()), delivery("0.2", 2)),
        (delivery("0.2", 2, wicket()), delivery("0.2", 6)),
    ],
    ids=["fewer runs", "a wicket less", "more runs and a wicket less"],
)
def test_a_step_back_needs_two_equal_polls(held: Delivery, shown: Delivery) -> None:
    known = applied(KNOWN, [event("delivery:1:0:2", "20", held)])

    [event_] = look_twice(known, listed(SEEN[0], seen("20", shown), *SEEN[2:]))

    assert (event_.rev, event_.op, event_.content) == (2, Op.UPDATE, shown)


def test_two_different_steps_back_do_not_confirm_each_other() -> None:
    first = align(KNOWN, listed(*SEEN[:3], seen("40", delivery("0.4", 3))))

    second = align(KNOWN, listed(*SEEN[:3], seen("40", delivery("0.4", 2))), confirmed=first.suspects)

    assert second.events == []
    assert second.suspects != first.suspects


def test_there_and_back_is_three_versions() -> None:
    up = align(KNOWN, listed(*SEEN[:3], seen("40", delivery("0.4", 6)))).events
    known = applied(KNOWN, up)

    [event_] = look_twice(known, listed(*SEEN))

    assert (event_.rev, event_.content) == (3, BALLS[3].content)


def test_a_ball_gone_from_the_middle_is_void_after_two_polls() -> None:
    found = look_twice(KNOWN, listed(SEEN[0], *SEEN[2:]))

    assert reported(found) == [
        ("delivery:1:0:2", 2, "void"),
        ("delivery:1:0:3", 2, "update"),
        ("delivery:1:0:4", 2, "update"),
    ]
    assert [each.position for each in found] == [None, 2, 3]


def test_the_newest_ball_gone_is_void_only_if_the_scoreboard_agrees() -> None:
    shown = listed(*SEEN[:3])
    first = align(KNOWN, shown)

    assert align(KNOWN, shown, confirmed=first.suspects).events == []
    assert reported(look_twice(KNOWN, shown, settled=(1,))) == [("delivery:1:0:4", 2, "void")]


def test_a_ball_that_comes_back_takes_up_its_old_key() -> None:
    void = event("delivery:1:0:2", "20", BALLS[1].content, rev=2, op=Op.VOID, position=None)
    known = applied(KNOWN, [void])

    found = align(known, listed(*SEEN)).events

    assert reported(found) == [("delivery:1:0:2", 3, "update")]
    assert found[0].position == 2


def test_a_void_key_is_never_given_to_another_ball() -> None:
    void = event("delivery:1:0:4", "40", BALLS[3].content, rev=2, op=Op.VOID, position=None)

    [event_] = align(applied(KNOWN, [void]), listed(*SEEN[:3], seen("45", delivery("0.4")))).events

    assert (str(event_.key), event_.rev) == ("delivery:1:0:5", 1)


def test_the_same_ball_under_a_new_id_is_one_ball() -> None:
    found = align(KNOWN, listed(SEEN[0], seen("25", BALLS[1].content), *SEEN[2:])).events

    assert reported(found) == [("delivery:1:0:2", 2, "update")]
    assert found[0].source_event_id == "25"


def test_balls_before_the_walk_stay_unchanged() -> None:
    assert align(KNOWN, listed(*SEEN[2:], is_whole=False)).events == []


@pytest.mark.parametrize(("gone", "is_refused"), [(MAX_VANISHED, False), (MAX_VANISHED + 1, True)])
def test_more_balls_gone_than_an_over_holds_are_refused(gone: int, is_refused: bool) -> None:
    known = fold(*(event(f"delivery:1:{nth}:1", str(nth), delivery(f"{nth}.1"), position=nth) for nth in range(1, 30)))
    left = [seen(each.source_event_id, each.content) for each in known.values()][gone:]

    if is_refused:
        with pytest.raises(LayoutSuspected):
            align(known, listed(*left))
    else:
        assert len(align(known, listed(*left)).suspects) == gone


def test_suspects_say_which_events_they_are_about() -> None:
    found = align(applied(KNOWN, [event("over:1:0", "45", over_summary(9))]), listed(*SEEN[:1], *SEEN[2:]))

    assert {str(key) for key in suspected(found.suspects)} == {"delivery:1:0:2", "over:1:0"}
    assert suspected(["result abc", "innings:1 void", "finding gap 1:0 x"]) == []


# --- overs ---


def test_an_over_end_is_kept_changed_and_taken_back() -> None:
    [new] = align(KNOWN, listed(*SEEN, seen("45", over_summary(10)))).events
    known = applied(KNOWN, [new])
    [more] = align(known, listed(*SEEN, seen("45", over_summary(12)))).events
    [less] = look_twice(known, listed(*SEEN, seen("45", over_summary(8))))
    [gone] = look_twice(known, listed(*SEEN))

    assert reported([new, more, less, gone]) == [
        ("over:1:0", 1, "insert"),
        ("over:1:0", 2, "update"),
        ("over:1:0", 2, "update"),
        ("over:1:0", 2, "void"),
    ]


def test_an_over_end_beyond_a_lagging_feed_is_not_taken_back() -> None:
    known = applied(KNOWN, [event("over:1:0", "45", over_summary()), event("over:1:1", "99", over_summary())])

    assert align(known, listed()).suspects == frozenset()
    assert align(known, listed(*SEEN, seen("45", over_summary()))).suspects == frozenset()


def test_an_over_end_before_the_walk_stays_unchanged() -> None:
    known = applied(KNOWN, [event("over:1:0", "45", over_summary())])
    later = seen("60", delivery("1.1"))

    assert align(known, listed(later, is_whole=False)).suspects == frozenset()


# --- milestones ---


def test_a_first_result_needs_two_polls() -> None:
    result = reached(CricketKind.RESULT, Result(outcome=ResultKind.TIE, text="Match tied"))
    first = align(KNOWN, listed(*SEEN), result)

    second = align(KNOWN, listed(*SEEN), result, confirmed=first.suspects)

    assert first.events == []
    assert reported(second.events) == [("result", 1, "insert")]


def test_a_withdrawn_result_is_void_after_two_polls() -> None:
    known = fold(event("result", "result", Result(outcome=ResultKind.TIE, text="Match tied")))
    withdrawn = Milestones(withdrawn=(RESULT,))
    first = align(known, listed(), withdrawn)

    second = align(known, listed(), withdrawn, confirmed=first.suspects)

    assert first.events == []
    assert reported(second.events) == [("result", 2, "void")]


def test_an_innings_closes_at_once_and_shrinks_only_after_two_polls() -> None:
    closed = InningsSummary(team="T1", runs=50, wickets=3, overs=Overs(10, 0))
    smaller = InningsSummary(team="T1", runs=5, wickets=0, overs=Overs(0, 2))
    [new] = align({}, listed(), reached(CricketKind.INNINGS, closed, 1), settled=(1,)).events
    shrunk = reached(CricketKind.INNINGS, smaller, 1)
    first = align(fold(new), listed(), shrunk, settled=(1,))

    second = align(fold(new), listed(), shrunk, confirmed=first.suspects, settled=(1,))

    assert (str(new.key), first.events) == ("innings:1", [])
    assert reported(second.events) == [("innings:1", 2, "update")]


def test_an_innings_whose_score_the_events_contradict_closes_after_five_polls() -> None:
    """A cached board of the first innings, served in the third, says that an innings is over too."""
    closed = reached(CricketKind.INNINGS, InningsSummary(team="T1", runs=50, wickets=3, overs=Overs(10, 0)), 3)

    polls = [align({}, listed(), closed, contradicted=(3,))]
    for _ in range(4):
        polls.append(align({}, listed(), closed, confirmed=polls[-1].suspects, contradicted=(3,)))

    assert [reported(each.events) for each in polls] == [[], [], [], [], [("innings:3", 1, "insert")]]


def test_an_innings_that_no_events_can_be_compared_with_closes_after_two_polls() -> None:
    closed = reached(CricketKind.INNINGS, InningsSummary(team="T1", runs=50, wickets=3, overs=Overs(10, 0)), 3)

    first = align({}, listed(), closed)
    second = align({}, listed(), closed, confirmed=first.suspects)

    assert first.events == []
    assert reported(second.events) == [("innings:3", 1, "insert")]


def test_an_innings_that_the_events_contradict_is_counted_again_after_another_score() -> None:
    one, other = (
        reached(CricketKind.INNINGS, InningsSummary(team="T1", runs=runs, wickets=3, overs=Overs(10, 0)), 3)
        for runs in (50, 51)
    )

    poll = align({}, listed(), one, contradicted=(3,))
    for shown in (one, one, other, one, one, one, one):
        poll = align({}, listed(), shown, confirmed=poll.suspects, contradicted=(3,))
        assert poll.events == []


def test_changes_come_in_the_order_of_play() -> None:
    closed = InningsSummary(team="T1", runs=50, wickets=3, overs=Overs(10, 0))
    shown = listed(seen("10", delivery("0.1")), seen("15", over_summary()), seen("20", delivery("1.1")))

    found = align({}, shown, reached(CricketKind.INNINGS, closed, 1), settled=(1,)).events

    assert [str(each.key) for each in found] == ["delivery:1:0:1", "over:1:0", "delivery:1:1:1", "innings:1"]


def test_the_wicket_of_the_newest_ball_goes_only_when_the_scoreboard_agrees() -> None:
    """A feed that lags may end between a ball and its wicket."""
    out = event("delivery:1:0:5", "50", delivery("0.5", 0, wicket()))
    known, shown = fold(*BALLS, out), listed(*SEEN, seen("50", delivery("0.5")))

    held = align(known, shown, confirmed=align(known, shown, settled=(1,)).suspects)
    overturned = look_twice(known, shown, settled=(1,))

    assert held.events == []
    assert reported(overturned) == [("delivery:1:0:5", 2, "update")]


# --- one innings as a line -------------------------------------------------------------------------------------------


A, B, C = (event(f"delivery:1:0:{nth}", str(nth * 10), delivery(f"0.{nth}", nth)) for nth in (1, 2, 3))
THREE = fold(A, B, C)
SEEN_A, SEEN_B, SEEN_C = (seen(each.source_event_id, each.content) for each in (A, B, C))


def kinds(slots: tuple[Slot, ...]) -> list[str]:
    return [type(slot).__name__ for slot in slots]


def test_a_whole_sighting_pairs_everything() -> None:
    slots = lay_out(THREE, listed(SEEN_A, SEEN_B, SEEN_C), 1)

    assert slots == (Matched(A, SEEN_A), Matched(B, SEEN_B), Matched(C, SEEN_C))


def test_what_a_partial_walk_did_not_reach_is_held() -> None:
    slots = lay_out(THREE, listed(SEEN_C, is_whole=False), 1)

    assert slots == (Unreached(A), Unreached(B), Matched(C, SEEN_C))


def test_a_partial_walk_that_met_an_older_innings_has_seen_all_of_this_one() -> None:
    older = seen("5", innings=0)

    slots = lay_out(THREE, listed(older, SEEN_B, SEEN_C, is_whole=False), 1)

    assert slots == (Vanished(A, is_tail=False), Matched(B, SEEN_B), Matched(C, SEEN_C))


def test_a_ball_missing_between_two_others_has_vanished() -> None:
    slots = lay_out(THREE, listed(SEEN_A, SEEN_C), 1)

    assert slots == (Matched(A, SEEN_A), Vanished(B, is_tail=False), Matched(C, SEEN_C))


def test_the_newest_ball_missing_is_marked_as_the_tail() -> None:
    assert lay_out(THREE, listed(SEEN_A, SEEN_B), 1)[-1] == Vanished(C, is_tail=True)


def test_a_new_ball_stands_where_the_source_shows_it() -> None:
    fresh = seen("15", delivery("0.2"))

    slots = lay_out(THREE, listed(SEEN_A, fresh, SEEN_B, SEEN_C), 1)

    assert slots[1] == New(fresh)


def test_a_ball_under_a_new_id_keeps_its_place_in_the_line() -> None:
    renamed = seen("25", delivery("0.2", 2))

    slots = lay_out(THREE, listed(SEEN_A, renamed, SEEN_C), 1)

    assert slots == (Matched(A, SEEN_A), Matched(B, renamed), Matched(C, SEEN_C))


def test_a_ball_of_another_over_is_not_taken_for_the_vanished_one() -> None:
    next_over = seen("40", delivery("1.1"))

    slots = lay_out(THREE, listed(SEEN_A, SEEN_B, next_over), 1)

    assert slots[2:] == (Vanished(C, is_tail=True), New(next_over))


def test_a_void_ball_that_is_shown_again_is_the_old_one() -> None:
    void = event("delivery:1:0:2", "20", B.content, rev=2, op="void", position=None)

    slots = lay_out(fold(A, void, C), listed(SEEN_A, SEEN_B, SEEN_C), 1)

    assert slots[1] == Matched(void, SEEN_B)


def test_other_innings_are_left_out() -> None:
    assert kinds(lay_out(THREE, listed(seen("90", innings=2)), 2)) == ["New"]


def test_the_proposal_takes_the_source_at_its_word() -> None:
    changed = seen("30", delivery("0.3", 6))

    slots = lay_out(THREE, listed(SEEN_B, changed, is_whole=False), 1)

    assert [ball.runs.total for ball in proposed(slots)] == [1, 2, 6]
    assert [ball.runs.total for ball in proposed(lay_out(THREE, listed(SEEN_A, SEEN_C), 1))] == [1, 3]


# --- the order of play -----------------------------------------------------------------------------------------


def test_events_sort_in_the_order_of_play() -> None:
    events = [
        event("delivery:1:0:2", "1", position=1),
        event("delivery:1:0:1", "2", position=2),
        event("over:1:0", "3"),
        event("delivery:1:1:1", "4", position=3),
        event("innings:1", "5"),
        event("delivery:2:0:1", "6", position=1),
        event("result", "7"),
    ]

    mixed = [*events[3:], *reversed(events[:3])]

    assert [each.source_event_id for each in sorted(mixed, key=order_of_play)] == list("1234567")
