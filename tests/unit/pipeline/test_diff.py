"""What is new, changed or gone."""

from collections.abc import Mapping

import pytest

from longstop.errors import LayoutSuspected
from longstop.model.cricket import InningsSummary, Overs, Result, ResultKind
from longstop.model.event import Event, EventKey, EventKind, Op
from longstop.pipeline.assemble import SeenEvent, Sighting
from longstop.pipeline.diff import MAX_VANISHED, diff, suspected
from longstop.pipeline.milestones import Milestones
from tests.builders import applied, delivery, event, fold, over_summary, seen, sighting, wicket

BALLS = [event(f"delivery:1:0:{nth}", str(nth * 10), delivery(f"0.{nth}", nth)) for nth in (1, 2, 3, 4)]
KNOWN = fold(*BALLS)
SEEN = [seen(each.source_event_id, each.content) for each in BALLS]
RESULT = EventKey(EventKind.RESULT)


def told(events: tuple[Event, ...]) -> list[tuple[str, int, str]]:
    return [(str(each.key), each.rev, each.op.value) for each in events]


def look_twice(known: Mapping[EventKey, Event], shown: Sighting, settled: tuple[int, ...] = ()) -> tuple[Event, ...]:
    """Return what the second of two equal looks brings, after a first one that brings nothing."""
    first = diff(known, shown, settled=settled)
    assert first.events == ()
    return diff(known, shown, confirmed=first.suspects, settled=settled).events


def reached(kind: EventKind, content: Result | InningsSummary, innings: int = 0) -> Milestones:
    return Milestones(
        reached=(SeenEvent(kind=kind, innings=innings, over=0, source_event_id=str(kind), content=content),)
    )


# --- balls ---


def test_the_same_again_is_nothing() -> None:
    found = diff(KNOWN, sighting(*SEEN))

    assert (found.events, found.suspects) == ((), frozenset())


def test_a_new_ball_gets_the_next_key_and_place() -> None:
    [event_] = diff(KNOWN, sighting(*SEEN, seen("50", delivery("0.5")))).events

    assert (str(event_.key), event_.rev, event_.op, event_.position) == ("delivery:1:0:5", 1, Op.INSERT, 5)


def test_a_ball_inserted_in_the_past_takes_the_next_key_and_moves_only_places() -> None:
    found = diff(KNOWN, sighting(SEEN[0], seen("15", delivery("0.2", 6)), *SEEN[1:])).events

    assert [(str(each.key), each.rev, each.position) for each in found] == [
        ("delivery:1:0:5", 1, 2),
        ("delivery:1:0:2", 2, 3),
        ("delivery:1:0:3", 2, 4),
        ("delivery:1:0:4", 2, 5),
    ]


def test_more_runs_count_at_once() -> None:
    more = seen("20", delivery("0.2", 6))

    [event_] = diff(KNOWN, sighting(SEEN[0], more, *SEEN[2:])).events

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
def test_a_step_back_needs_two_equal_looks(held: object, shown: object) -> None:
    known = applied(KNOWN, [event("delivery:1:0:2", "20", held)])  # type: ignore[arg-type]

    [event_] = look_twice(known, sighting(SEEN[0], seen("20", shown), *SEEN[2:]))  # type: ignore[arg-type]

    assert (event_.rev, event_.op, event_.content) == (2, Op.UPDATE, shown)


def test_two_different_steps_back_do_not_confirm_each_other() -> None:
    first = diff(KNOWN, sighting(*SEEN[:3], seen("40", delivery("0.4", 3))))

    second = diff(KNOWN, sighting(*SEEN[:3], seen("40", delivery("0.4", 2))), confirmed=first.suspects)

    assert second.events == ()
    assert second.suspects != first.suspects


def test_there_and_back_is_three_versions() -> None:
    up = diff(KNOWN, sighting(*SEEN[:3], seen("40", delivery("0.4", 6)))).events
    known = applied(KNOWN, up)

    [event_] = look_twice(known, sighting(*SEEN))

    assert (event_.rev, event_.content) == (3, BALLS[3].content)


def test_a_ball_gone_from_the_middle_is_void_after_two_looks() -> None:
    found = look_twice(KNOWN, sighting(SEEN[0], *SEEN[2:]))

    assert told(found) == [
        ("delivery:1:0:2", 2, "void"),
        ("delivery:1:0:3", 2, "update"),
        ("delivery:1:0:4", 2, "update"),
    ]
    assert [each.position for each in found] == [None, 2, 3]


def test_the_newest_ball_gone_is_void_only_if_the_scoreboard_agrees() -> None:
    shown = sighting(*SEEN[:3])
    first = diff(KNOWN, shown)

    assert diff(KNOWN, shown, confirmed=first.suspects).events == ()
    assert told(look_twice(KNOWN, shown, settled=(1,))) == [("delivery:1:0:4", 2, "void")]


def test_a_ball_that_comes_back_takes_up_its_old_key() -> None:
    void = event("delivery:1:0:2", "20", BALLS[1].content, rev=2, op=Op.VOID, position=None)
    known = applied(KNOWN, [void])

    found = diff(known, sighting(*SEEN)).events

    assert told(found) == [("delivery:1:0:2", 3, "update")]
    assert found[0].position == 2


def test_a_void_key_is_never_given_to_another_ball() -> None:
    void = event("delivery:1:0:4", "40", BALLS[3].content, rev=2, op=Op.VOID, position=None)

    [event_] = diff(applied(KNOWN, [void]), sighting(*SEEN[:3], seen("45", delivery("0.4")))).events

    assert (str(event_.key), event_.rev) == ("delivery:1:0:5", 1)


def test_the_same_ball_under_a_new_id_is_one_ball() -> None:
    found = diff(KNOWN, sighting(SEEN[0], seen("25", BALLS[1].content), *SEEN[2:])).events

    assert told(found) == [("delivery:1:0:2", 2, "update")]
    assert found[0].source_event_id == "25"


def test_balls_before_the_walk_are_left_alone() -> None:
    assert diff(KNOWN, sighting(*SEEN[2:], is_whole=False)).events == ()


@pytest.mark.parametrize(("gone", "is_refused"), [(MAX_VANISHED, False), (MAX_VANISHED + 1, True)])
def test_more_balls_gone_than_an_over_holds_are_refused(gone: int, is_refused: bool) -> None:
    known = fold(*(event(f"delivery:1:{nth}:1", str(nth), delivery(f"{nth}.1"), position=nth) for nth in range(1, 30)))
    left = [seen(each.source_event_id, each.content) for each in known.values()][gone:]

    if is_refused:
        with pytest.raises(LayoutSuspected):
            diff(known, sighting(*left))
    else:
        assert len(diff(known, sighting(*left)).suspects) == gone


def test_suspects_say_which_events_they_are_about() -> None:
    found = diff(applied(KNOWN, [event("over:1:0", "45", over_summary(9))]), sighting(*SEEN[:1], *SEEN[2:]))

    assert {str(key) for key in suspected(found.suspects)} == {"delivery:1:0:2", "over:1:0"}
    assert suspected(["result abc", "innings:1 void", "finding gap 1:0 x"]) == []


# --- overs ---


def test_an_over_end_is_kept_changed_and_taken_back() -> None:
    [new] = diff(KNOWN, sighting(*SEEN, seen("45", over_summary(10)))).events
    known = applied(KNOWN, [new])
    [more] = diff(known, sighting(*SEEN, seen("45", over_summary(12)))).events
    [less] = look_twice(known, sighting(*SEEN, seen("45", over_summary(8))))
    [gone] = look_twice(known, sighting(*SEEN))

    assert told((new, more, less, gone)) == [
        ("over:1:0", 1, "insert"),
        ("over:1:0", 2, "update"),
        ("over:1:0", 2, "update"),
        ("over:1:0", 2, "void"),
    ]


def test_an_over_end_beyond_a_lagging_feed_is_not_taken_back() -> None:
    known = applied(KNOWN, [event("over:1:0", "45", over_summary()), event("over:1:1", "99", over_summary())])

    assert diff(known, sighting()).suspects == frozenset()
    assert diff(known, sighting(*SEEN, seen("45", over_summary()))).suspects == frozenset()


def test_an_over_end_before_the_walk_is_left_alone() -> None:
    known = applied(KNOWN, [event("over:1:0", "45", over_summary())])
    later = seen("60", delivery("1.1"))

    assert diff(known, sighting(later, is_whole=False)).suspects == frozenset()


# --- milestones ---


def test_a_first_result_needs_two_looks() -> None:
    result = reached(EventKind.RESULT, Result(outcome=ResultKind.TIE, text="Match tied"))
    first = diff(KNOWN, sighting(*SEEN), result)

    second = diff(KNOWN, sighting(*SEEN), result, confirmed=first.suspects)

    assert first.events == ()
    assert told(second.events) == [("result", 1, "insert")]


def test_a_withdrawn_result_is_void_after_two_looks() -> None:
    known = fold(event("result", "result", Result(outcome=ResultKind.TIE, text="Match tied")))
    withdrawn = Milestones(withdrawn=(RESULT,))
    first = diff(known, sighting(), withdrawn)

    second = diff(known, sighting(), withdrawn, confirmed=first.suspects)

    assert first.events == ()
    assert told(second.events) == [("result", 2, "void")]


def test_an_innings_closes_at_once_and_shrinks_only_after_two_looks() -> None:
    closed = InningsSummary(team="T1", runs=50, wickets=3, overs=Overs(10, 0))
    smaller = InningsSummary(team="T1", runs=5, wickets=0, overs=Overs(0, 2))
    [new] = diff({}, sighting(), reached(EventKind.INNINGS, closed, 1), settled=(1,)).events
    first = diff(fold(new), sighting(), reached(EventKind.INNINGS, smaller, 1))

    second = diff(fold(new), sighting(), reached(EventKind.INNINGS, smaller, 1), confirmed=first.suspects)

    assert (str(new.key), first.events) == ("innings:1", ())
    assert told(second.events) == [("innings:1", 2, "update")]


def test_an_innings_whose_score_the_events_contradict_closes_after_two_looks() -> None:
    """A cached board of the first innings, served in the third, says that an innings is over too."""
    closed = reached(EventKind.INNINGS, InningsSummary(team="T1", runs=50, wickets=3, overs=Overs(10, 0)), 3)

    first = diff({}, sighting(), closed)
    second = diff({}, sighting(), closed, confirmed=first.suspects)

    assert first.events == ()
    assert told(second.events) == [("innings:3", 1, "insert")]


def test_changes_come_in_the_order_of_play() -> None:
    closed = InningsSummary(team="T1", runs=50, wickets=3, overs=Overs(10, 0))
    shown = sighting(seen("10", delivery("0.1")), seen("15", over_summary()), seen("20", delivery("1.1")))

    found = diff({}, shown, reached(EventKind.INNINGS, closed, 1), settled=(1,)).events

    assert [str(each.key) for each in found] == ["delivery:1:0:1", "over:1:0", "delivery:1:1:1", "innings:1"]


def test_the_wicket_of_the_newest_ball_goes_only_when_the_scoreboard_agrees() -> None:
    """A feed that lags may end between a ball and its wicket."""
    out = event("delivery:1:0:5", "50", delivery("0.5", 0, wicket()))
    known, shown = fold(*BALLS, out), sighting(*SEEN, seen("50", delivery("0.5")))

    held = diff(known, shown, confirmed=diff(known, shown, settled=(1,)).suspects)
    overturned = look_twice(known, shown, settled=(1,))

    assert held.events == ()
    assert told(overturned) == [("delivery:1:0:5", 2, "update")]
