from collections.abc import Sequence
from datetime import timedelta
from random import Random

import pytest

from longstop.errors import UsageError
from longstop_lab.simulator.faults import Choice, Fault, FaultKind, FaultRule, FaultRules, choose, read_faults
from longstop_lab.simulator.http import Request
from tests.unit.lab.simulator.games import NOON

STATE = Request(method="GET", path="/api/v3/getSV3", query={"key": "11AB"})
FEED = Request(method="POST", path="/commentary/v1/getBallFeeds", body=b'{"matchKey":"11AB"}')


def rules(*faults: Fault) -> Sequence[FaultRule]:
    return [FaultRule(id=nth, fault=fault, since=NOON, until=None, seed=1) for nth, fault in enumerate(faults)]


def chosen(faults: Sequence[FaultRule], request: Request = STATE) -> FaultKind | None:
    fault = choose(faults, request, NOON, Random(1)).fault
    return fault.kind if fault else None


def test_without_rules_nothing_befalls_a_request() -> None:
    assert choose((), STATE, NOON, Random(1)) == Choice()


def test_a_rule_holds_for_its_path_only() -> None:
    only_feed = rules(Fault(kind=FaultKind.DROP, path="/commentary/"))

    assert chosen(only_feed, FEED) is FaultKind.DROP
    assert chosen(only_feed, STATE) is None


def test_a_rule_holds_for_its_match_only_by_query_or_body() -> None:
    this, other = rules(Fault(kind=FaultKind.DROP, match="11AB")), rules(Fault(kind=FaultKind.DROP, match="11CD"))

    assert [chosen(this, request) for request in (STATE, FEED)] == [FaultKind.DROP, FaultKind.DROP]
    assert [chosen(other, request) for request in (STATE, FEED)] == [None, None]


def test_what_is_left_out_of_the_list_befalls_the_list_alone() -> None:
    lists = [
        Request(method="GET", path=path) for path in ("/api/v3/getLiveMatches", "/api/v1/sport/football/events/live")
    ]
    names = Request(method="POST", path="/mapping/getHomeMapData", body=b'{"p":[]}')

    for unlisted in (rules(Fault(kind=FaultKind.UNLISTED, match="11AB")), rules(Fault(kind=FaultKind.UNLISTED))):
        assert [chosen(unlisted, request) for request in lists] == [FaultKind.UNLISTED] * 2
        assert [chosen(unlisted, request) for request in (STATE, FEED, names)] == [None] * 3


def test_a_rule_hits_its_share_of_requests() -> None:
    third = rules(Fault(kind=FaultKind.RESET, share=0.3))
    dice = Random(1)

    hits = sum(choose(third, STATE, NOON, dice).fault is not None for _ in range(2000))

    assert 500 < hits < 700


def test_a_rule_ends_when_its_time_is_over() -> None:
    book = FaultRules(seed=1)
    book.add(Fault(kind=FaultKind.HTML, valid_seconds=5), NOON)

    assert book.choose(STATE, NOON + timedelta(seconds=4.9)).fault is not None
    assert book.choose(STATE, NOON + timedelta(seconds=5)).fault is None


def test_delays_add_up_and_the_first_other_fault_wins() -> None:
    choice = choose(
        rules(
            Fault(kind=FaultKind.LATENCY, seconds=1),
            Fault(kind=FaultKind.STATUS, status=429),
            Fault(kind=FaultKind.LATENCY, seconds=0.5, jitter_seconds=0.5),
            Fault(kind=FaultKind.DROP),
        ),
        STATE,
        NOON,
        Random(1),
    )

    assert 1.5 <= choice.delay_seconds <= 2
    assert choice.fault == Fault(kind=FaultKind.STATUS, status=429)


def test_rules_can_be_taken_away() -> None:
    book = FaultRules(seed=1)
    first = book.add(Fault(kind=FaultKind.DROP), NOON)
    second = book.add(Fault(kind=FaultKind.RESET), NOON)

    book.remove(first.id)
    kept = book.rules
    book.clear()

    assert (kept, book.rules) == ([second], [])


def test_taking_away_a_rule_that_is_not_there_says_which_are() -> None:
    book = FaultRules(seed=1)

    with pytest.raises(UsageError, match="there is no fault 7: none is active"):
        book.remove(7)
    book.add(Fault(kind=FaultKind.DROP), NOON)
    with pytest.raises(UsageError, match="there is no fault 7: active are 1"):
        book.remove(7)

    assert len(book.rules) == 1


def test_faults_are_read_one_or_many() -> None:
    drop = Fault(kind=FaultKind.DROP, share=0.5)

    assert read_faults(b'{"kind":"drop","share":0.5}') == [drop]
    assert read_faults(b'[{"kind":"drop","share":0.5}]') == [drop]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b'{"kind":"flood"}',
        b'{"kind":"drop","share":2}',
        b'{"kind":"drop","shre":1}',
        b"7",
        b'[{"kind":"drop"},{"kind":"renamed"}]',
    ],
)
def test_an_invalid_fault_is_an_error(body: bytes) -> None:
    with pytest.raises(UsageError, match="this is not a valid fault"):
        read_faults(body)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b'{"kind":"drop","valid_seconds":"5"}', "valid_seconds: expected a number, got a text"),
        (b'[{"kind":"drop","share":2}]', "share: expected a number <= 1.0"),
        (b'{"kind":"drop","shre":1}', "there is no field shre"),
        (b'{"share":1}', "it needs the field kind. Kinds: latency, "),
        (b"7", "expected an object, got a whole number"),
        (b"{", "it is not JSON ("),
        (b'{"kind":"older"}', "older needs seconds, the age of the copy"),
    ],
)
def test_an_invalid_fault_is_explained_in_words(body: bytes, reason: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_faults(body)

    assert str(caught.value).startswith(f"this is not a valid fault: {reason}")
    assert "$" not in str(caught.value)


def test_an_unknown_kind_of_fault_is_an_error_that_lists_the_valid_ones() -> None:
    with pytest.raises(UsageError, match=r"Kinds: latency, drop, .*, late-calls, no-calls$"):
        read_faults(b'{"kind":"flood"}')


def about(match: str, path: str = "/api/v3/getSV3") -> Request:
    return Request(method="GET", path=path, query={"key": match})


def test_within_a_window_one_roll_decides_about_all_resources_of_a_match() -> None:
    book = FaultRules(seed=1)
    book.add(Fault(kind=FaultKind.OTHER_MATCH, share=0.5, window_seconds=4), NOON)
    keys = [f"11{nth:02}" for nth in range(50)]

    def struck(path: str, second: float) -> list[bool]:
        return [book.choose(about(key, path), NOON + timedelta(seconds=second)).fault is not None for key in keys]

    page, feed = struck("/api/v3/getSV3", 0.1), struck("/commentary/v1/getBallFeeds", 3.9)

    assert page == feed
    assert 15 < sum(page) < 35
    assert struck("/api/v3/getSV3", 4.1) != page


def test_windows_are_the_same_for_the_same_seed_and_others_for_another() -> None:
    def rolls(seed: int) -> list[bool]:
        book = FaultRules(seed=seed)
        book.add(Fault(kind=FaultKind.OTHER_MATCH, share=0.5, window_seconds=1), NOON)
        return [book.choose(STATE, NOON + timedelta(seconds=second)).fault is not None for second in range(40)]

    assert rolls(1) == rolls(1) != rolls(2)


def test_answers_that_a_fault_changes_are_counted_for_each_match() -> None:
    book = FaultRules(seed=1)
    book.choose(STATE, NOON)
    book.add(Fault(kind=FaultKind.LATENCY, seconds=1), NOON)
    book.choose(STATE, NOON)
    book.add(Fault(kind=FaultKind.POISONED, path="/api/"), NOON)

    for request in (STATE, FEED, about("11CD"), about("11CD")):
        book.choose(request, NOON)

    assert book.faulty_answers == {"11AB": 1, "11CD": 2}
