"""What a page costs on the network."""

from longstop.fetching.browser.traffic import NetworkCount, Traffic, request_bytes

CAP = 1000


def metered() -> tuple[Traffic, list[int]]:
    traffic, counted = Traffic(CAP), list[int]()
    traffic.on_bytes = counted.append
    return traffic, counted


def test_what_one_attempt_cost_is_the_difference() -> None:
    earlier = NetworkCount(requests_total=2, requests_blocked=1, bytes_in_est=100, captured=1)
    later = NetworkCount(requests_total=7, requests_blocked=3, bytes_in_est=900, captured=2)

    assert later.since(earlier) == NetworkCount(requests_total=5, requests_blocked=2, bytes_in_est=800, captured=1)


def test_a_question_is_its_line_its_headers_and_what_the_browser_adds() -> None:
    assert request_bytes("GET", "https://a.example/", {"Accept": "*/*"}) == 3 + 18 + (6 + 3 + 4) + 250


def test_a_complete_response_is_counted_once_whatever_its_parts_were() -> None:
    traffic, counted = metered()

    traffic.received("1", size=300, wire_bytes=0)
    traffic.received("1", size=300, wire_bytes=250)
    traffic.finished("1", wire_bytes=400)

    assert sum(counted) == traffic.count.bytes_in_est == 400
    assert (traffic.responses, traffic.decoded_bytes) == (1, 600)


def test_what_was_received_of_an_interrupted_response_is_counted() -> None:
    traffic, counted = metered()

    traffic.received("1", size=300, wire_bytes=0)
    traffic.failed("1")

    assert counted == [300]


def test_an_endless_response_is_counted_as_it_comes() -> None:
    traffic, counted = metered()

    traffic.received("1", size=CAP, wire_bytes=0)
    before = list(counted)
    traffic.received("1", size=1, wire_bytes=0)

    assert (before, counted) == ([], [CAP + 1])


def test_what_is_settled_is_not_counted_again() -> None:
    traffic, counted = metered()
    traffic.received("1", size=300, wire_bytes=0)

    traffic.settle()
    traffic.finished("1", wire_bytes=300)

    assert sum(counted) == 300


def test_another_load_starts_at_zero_and_counts_what_was_in_transit() -> None:
    traffic, counted = metered()
    traffic.received("1", size=300, wire_bytes=0)
    traffic.finished("2", wire_bytes=0)

    traffic.reset()

    assert sum(counted) == 300
    assert (traffic.responses, traffic.decoded_bytes) == (0, 0)
