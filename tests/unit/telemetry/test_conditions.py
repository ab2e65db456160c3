"""What is told, what is held back, and what nobody needs to hear."""

import pytest

from longstop.telemetry import conditions
from longstop.telemetry.alerts import Alert
from longstop.telemetry.conditions import Conditions, Told
from longstop.telemetry.events import Severity


def trouble(key: str = "circuit_opened crex", title: str = "trouble") -> Alert:
    return Alert(key=key, severity=Severity.WARN, title=title, text="", fields={})


def relief(key: str = "circuit_opened crex") -> Alert:
    return Alert(key=key, severity=Severity.INFO, title="well again", text="", fields={}, is_resolved=True)


def test_the_same_condition_is_told_again_after_ten_minutes_with_the_number_held_back() -> None:
    known = Conditions()

    assert known.admit(trouble(), 0.0) == Told(alert=trouble())
    assert known.admit(trouble(), 1.0) is None
    assert known.admit(trouble(), 599.9) is None
    assert known.admit(trouble(), 600.0) == Told(alert=trouble(), suppressed=2)
    assert known.admit(trouble(), 600.1) is None


def test_conditions_do_not_silence_each_other() -> None:
    known = Conditions()
    known.admit(trouble("a"), 0.0)

    assert known.admit(trouble("b"), 0.0) == Told(alert=trouble("b"))


def test_a_crowd_of_conditions_is_told_as_one() -> None:
    known = Conditions()

    told = [known.admit(trouble(f"match.stale crex_{number}"), float(number)) for number in range(50)]

    sent = [each.alert.key for each in told if each]
    assert sent == [*(f"match.stale crex_{number}" for number in range(10)), "match.stale (many)"]
    assert known.admit(trouble("circuit_opened crex"), 50.0) == Told(alert=trouble("circuit_opened crex"))


def crowd(known: Conditions, size: int = 13) -> None:
    """Tell of so many breakers at once: ten by themselves, the eleventh for all that follow."""
    for number in range(size):
        known.admit(trouble(f"circuit_opened {number}", f"{number} rests"), float(number))


def test_what_stood_for_many_ends_with_the_last_of_them_and_does_not_come_back() -> None:
    known = Conditions()
    crowd(known)

    told = [known.admit(relief(f"circuit_opened {number}"), 100.0) for number in range(13)]

    ends = [(each.alert.key, each.alert.title) for each in told if each]
    assert ends[:-1] == [(f"circuit_opened {number}", "well again") for number in range(10)]
    assert ends[-1] == ("circuit_opened (many)", "well again, and all like it")
    assert told[10:12] == [None, None]
    assert known.next_due() is None
    assert known.overdue(610.0) == []


def test_what_stood_for_many_is_told_again_with_one_that_is_still_true() -> None:
    known = Conditions()
    crowd(known)
    known.admit(relief("circuit_opened 12"), 100.0)

    [again] = known.overdue(610.0)

    assert again.alert.title == "11 rests, and more like it"


def test_what_stood_for_many_is_not_told_again_for_the_one_it_was_told_with() -> None:
    known = Conditions()
    crowd(known)
    for number in (11, 12):
        known.admit(relief(f"circuit_opened {number}"), 100.0)

    assert known.overdue(610.0) == []
    end = known.admit(relief("circuit_opened 10"), 700.0)
    assert end is not None
    assert end.alert.key == "circuit_opened (many)"


def test_a_crowd_that_nobody_heard_of_ends_unheard() -> None:
    known = Conditions()
    crowd(known, 11)
    known.forget("circuit_opened (many)")

    assert known.admit(relief("circuit_opened 10"), 100.0) is None


def test_one_of_many_that_was_told_by_itself_later_ends_twice() -> None:
    known = Conditions()
    crowd(known, 11)
    known.admit(trouble("circuit_opened 10"), 200.0)

    own = known.admit(relief("circuit_opened 10"), 300.0)
    ends = known.overdue(300.0)

    assert own == Told(alert=relief("circuit_opened 10"))
    assert [(each.alert.key, each.alert.is_resolved) for each in ends] == [("circuit_opened (many)", True)]
    assert known.overdue(300.0) == []


def test_those_that_one_alert_stands_for_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conditions, "MAX_CONDITIONS", 12)
    known = Conditions()
    crowd(known, 24)

    ends = [known.admit(relief(f"circuit_opened {number}"), 100.0) for number in range(12, 24)]

    assert [each.alert.key for each in ends if each] == ["circuit_opened (many)"]


def test_conditions_that_come_one_by_one_are_no_crowd() -> None:
    known = Conditions()

    told = [known.admit(trouble(f"match.stale crex_{number}"), number * 7.0) for number in range(50)]

    assert all(told)


def test_the_end_is_told_once_and_only_after_the_beginning() -> None:
    known = Conditions()

    assert known.admit(relief(), 0.0) is None
    known.admit(trouble(), 1.0)
    assert known.admit(relief(), 2.0) == Told(alert=relief())
    assert known.admit(relief(), 3.0) is None


def test_a_condition_that_flaps_is_told_once_a_minute() -> None:
    known = Conditions()
    known.admit(trouble(), 0.0)
    known.admit(relief(), 1.0)

    told = [known.admit(alert, now) for now in range(10, 310, 20) for alert in (trouble(), relief())]

    assert [each.alert.is_resolved for each in told if each] == [False, True] * 4


def test_trouble_that_comes_back_after_its_end_was_told_is_told_again_soon() -> None:
    known = Conditions()
    known.admit(trouble(), 0.0)
    known.admit(relief(), 30.0)

    assert known.admit(trouble(), 89.9) is None
    assert [each.alert for each in known.overdue(90.0)] == [trouble()]


def test_what_was_held_back_goes_out_when_its_time_has_come() -> None:
    known = Conditions()
    known.admit(trouble(), 0.0)
    known.admit(trouble(title="second"), 100.0)
    known.admit(trouble(title="third"), 200.0)

    assert known.next_due() == 600.0
    assert known.overdue(599.0) == []
    assert known.overdue(600.0) == [Told(alert=trouble(title="third"), suppressed=1)]
    assert known.overdue(601.0) == []
    assert known.admit(trouble(), 700.0) is None  # told at 600, so quiet until 1,200


def test_trouble_that_was_not_delivered_is_told_again_at_once() -> None:
    known = Conditions()
    known.admit(trouble(), 0.0)

    known.forget(trouble().key)

    assert known.admit(relief(), 1.0) is None
    assert known.admit(trouble(), 2.0) == Told(alert=trouble())


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conditions, "MAX_CONDITIONS", 3)
    known = Conditions()

    for name in "abcd":
        known.admit(trouble(name), 0.0)

    assert known.admit(trouble("d"), 1.0) is None
    assert known.admit(trouble("a"), 1.0) == Told(alert=trouble("a"))
