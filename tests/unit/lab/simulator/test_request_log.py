"""The site's book of requests."""

from datetime import timedelta

from longstop_lab.simulator.faults import Choice, Fault, FaultKind, FaultRule
from longstop_lab.simulator.http import Request
from longstop_lab.simulator.request_log import PAGE, RequestLog
from tests.builders import NOW

REQUEST = Request(method="GET", path="/x", query={"key": "11AB"})


def test_a_request_is_noted_with_its_moment_its_match_and_what_befell_it() -> None:
    book = RequestLog()
    banned = Fault(kind=FaultKind.STATUS, status=429, retry_after_seconds=3)

    book.note(REQUEST, Choice(), NOW)
    book.note(
        REQUEST, Choice(delay_seconds=0.5, rule=FaultRule(id=1, fault=banned, since=NOW, until=None, seed=1)), NOW
    )

    good, bad = book.after(0)
    assert (good.number, good.at, good.path, good.match) == (1, NOW, "/x", "11AB")
    assert (good.fault, good.retry_after_seconds, good.delay_seconds) == (None, None, 0.0)
    assert (bad.number, bad.fault, bad.retry_after_seconds, bad.delay_seconds) == (2, "status", 3, 0.5)


def test_the_newest_notes_are_kept_and_all_are_counted() -> None:
    book = RequestLog(kept=3)

    for nth in range(5):
        book.note(REQUEST, Choice(), NOW + timedelta(seconds=nth))

    assert book.counts == {"/x": 5}
    assert [note.number for note in book.after(0)] == [3, 4, 5]


def test_who_follows_gets_what_is_new() -> None:
    book = RequestLog(kept=10)
    for _ in range(12):
        book.note(REQUEST, Choice(), NOW)

    assert [note.number for note in book.after(10)] == [11, 12]
    assert book.after(12) == []
    assert book.after(99) == []


def test_one_answer_holds_no_more_than_a_page() -> None:
    book = RequestLog()
    for _ in range(PAGE + 2):
        book.note(REQUEST, Choice(), NOW)

    first = book.after(0)

    assert (len(first), first[-1].number) == (PAGE, PAGE)
    assert [note.number for note in book.after(PAGE)] == [PAGE + 1, PAGE + 2]
