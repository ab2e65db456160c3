"""What a page costs on the network."""

from longstop.fetching.browser.traffic import NetworkCount, Traffic, request_bytes

CAP = 1000


def metered() -> tuple[Traffic, list[int]]:
    flows, told = Traffic(CAP), list[int]()
    flows.on_bytes = told.append
    return flows, told


def test_what_one_attempt_cost_is_the_difference() -> None:
    earlier = NetworkCount(requests_total=2, requests_blocked=1, bytes_in_est=100, captured=1)
    later = NetworkCount(requests_total=7, requests_blocked=3, bytes_in_est=900, captured=2)

    assert later.since(earlier) == NetworkCount(requests_total=5, requests_blocked=2, bytes_in_est=800, captured=1)


def test_a_question_is_its_line_its_headers_and_what_the_browser_adds() -> None:
    assert request_bytes("GET", "https://a.example/", {"Accept": "*/*"}) == 3 + 18 + (6 + 3 + 4) + 250


def test_a_whole_answer_is_told_once_however_its_parts_were() -> None:
    flows, told = metered()

    flows.received("1", size=300, wire_bytes=0)
    flows.received("1", size=300, wire_bytes=250)
    flows.finished("1", wire_bytes=400)

    assert sum(told) == flows.count.bytes_in_est == 400
    assert (flows.responses, flows.decoded_bytes) == (1, 600)


def test_of_an_answer_that_breaks_off_what_came_is_told() -> None:
    flows, told = metered()

    flows.received("1", size=300, wire_bytes=0)
    flows.failed("1")

    assert told == [300]


def test_an_answer_without_an_end_is_told_as_it_comes() -> None:
    flows, told = metered()

    flows.received("1", size=CAP, wire_bytes=0)
    before = list(told)
    flows.received("1", size=1, wire_bytes=0)

    assert (before, told) == ([], [CAP + 1])


def test_what_is_settled_is_not_told_again() -> None:
    flows, told = metered()
    flows.received("1", size=300, wire_bytes=0)

    flows.settle()
    flows.finished("1", wire_bytes=300)

    assert sum(told) == 300


def test_another_load_begins_at_nothing_and_what_is_under_way_is_told() -> None:
    flows, told = metered()
    flows.received("1", size=300, wire_bytes=0)
    flows.finished("2", wire_bytes=0)

    flows.reset()

    assert sum(told) == 300
    assert (flows.responses, flows.decoded_bytes) == (0, 0)
