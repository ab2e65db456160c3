"""From failures to episodes: what is one error, what ends it, and what is said of it."""

from datetime import datetime, timedelta

import pytest

from longstop.model.episode import Episode, EpisodeChange, ErrorSeen, ErrorType, Resolution, ResolutionMethod
from longstop.telemetry import episodes as module
from longstop.telemetry.episodes import Episodes, error_seen, error_type_of, signature_of
from longstop.telemetry.events import Telemetry
from longstop.telemetry.events.matches import (
    MatchPhaseChanged,
    PollFailed,
    PollSucceeded,
    ResourceFailed,
    WatchRestarted,
)
from longstop.telemetry.events.processes import TaskFailed
from longstop.telemetry.events.sources import (
    CircuitClosed,
    CircuitOpened,
    LayoutBroken,
    LayoutRecovered,
    ListingFailed,
    ListingRead,
)
from tests.readers import NOW

LISTED = ListingRead(source="crex", matches=3, changed=0, unreadable=0)
RESTARTED = WatchRestarted(match_id=1, ref="crex_11HD", reason="stale", age_seconds=9.0, epoch=2)


def failed(
    ref: str = "crex_11HD",
    error: str = "FetchTimeout",
    message: str = "late",
    request: str = "",
    page: str | None = None,
) -> PollFailed:
    return PollFailed(match_id=1, ref=ref, error_type=error, error_message=message, request=request, page=page)


def good(ref: str = "crex_11HD") -> PollSucceeded:
    return PollSucceeded(match_id=1, ref=ref, seconds=0.1)


def moved(after: str) -> MatchPhaseChanged:
    return MatchPhaseChanged(match_id=1, ref="crex_11HD", before="completed", after=after)


def opened(scope: str, subject: str) -> CircuitOpened:
    return CircuitOpened(scope=scope, subject=subject, reason="5 in a row", seconds=60.0)


def heard(*events: Telemetry) -> Episodes:
    episodes = Episodes("node-1")
    for number, event in enumerate(events):
        episodes.take(event, at(number))
    return episodes


def changes(*events: Telemetry) -> list[EpisodeChange]:
    return list(heard(*events).take_pending().values())


def method(*events: Telemetry) -> ResolutionMethod | None:
    """Return how the only episode of these events ended."""
    [change] = changes(*events)
    return change.resolution.method if change.resolution else None


def at(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def seen(event: PollFailed | ListingFailed | ResourceFailed | TaskFailed) -> ErrorSeen:
    error = error_seen(event, NOW, "node-1")
    assert error is not None
    return error


@pytest.mark.parametrize(
    ("error_class", "error_type"),
    [
        ("FetchTimeout", ErrorType.NETWORK),
        ("SourceFailed", ErrorType.NETWORK),
        ("SourceRefused", ErrorType.AUTH),
        ("SourceChallenged", ErrorType.AUTH),
        ("LayoutChanged", ErrorType.PARSING),
        ("ImpossibleObservation", ErrorType.PARSING),
        ("PageNotFound", ErrorType.NOT_FOUND),
        ("BrowserLost", ErrorType.BROWSER),
        ("StorageError", ErrorType.DATABASE),
        ("EpochLost", ErrorType.DATABASE),
        ("KeyError", ErrorType.INTERNAL),
        ("CircuitOpen", None),
    ],
)
def test_every_error_has_a_type_unless_no_request_was_sent(error_class: str, error_type: ErrorType | None) -> None:
    assert error_type_of(error_class) is error_type


def test_errors_that_differ_in_numbers_and_ids_have_one_signature() -> None:
    first = signature_of("crex", "LayoutChanged", "GET /match/11HD/live: innings[2].over 17 is missing", "11HD")

    assert first == signature_of("crex", "LayoutChanged", "GET /match/XY/live: innings[1].over 3 is missing", "XY")
    assert first != signature_of("crex", "LayoutChanged", "GET /match/11HD/live: innings[2].ball 17 is missing", "11HD")
    assert first != signature_of("crex", "MalformedBody", "GET /match/11HD/live: innings[2].over 17 is missing", "11HD")
    assert first != signature_of("espn", "LayoutChanged", "GET /match/11HD/live: innings[2].over 17 is missing", "11HD")


def test_the_first_error_of_an_episode_holds_all_details() -> None:
    event = PollFailed(
        match_id=1,
        ref="crex_11HD",
        error_type="MalformedBody",
        error_message="crex GET https://crex.example:8443/match/11HD: no JSON",
        request="GET https://crex.example:8443/match/11HD",
        reached="captured",
        retries=2,
        page="storage/error_pages/x.html",
    )

    error = seen(event)

    assert (error.source, error.match_id, error.operation) == ("crex", 1, "poll, captured")
    assert error.url == "https://crex.example:8443/match/11HD"
    assert (error.retry_attempt, error.snapshot) == (2, "storage/error_pages/x.html")


def test_an_error_without_its_request_takes_the_address_from_its_message() -> None:
    message = "crex GET http://127.0.0.1:8701/list: answered 500"

    error = seen(ListingFailed(source="crex", error_type="SourceFailed", error_message=message))

    assert error.url == "http://127.0.0.1:8701/list"
    assert (error.episode.ref, error.match_id, error.operation) == ("crex", None, "listing")


@pytest.mark.parametrize(
    ("task", "ref", "source"),
    [("watch crex_11HD", "crex_11HD", "crex"), ("scheduler crex", "crex", "crex"), ("metrics", "metrics", "")],
)
def test_a_failed_task_belongs_to_its_match_its_source_or_itself(task: str, ref: str, source: str) -> None:
    error = seen(TaskFailed(task=task, error_type="KeyError", error_message="'x'", stack_trace="Traceback"))

    assert (error.episode.ref, error.source, error.stack_trace) == (ref, source, "Traceback")


def test_a_sites_words_are_cut_and_cleaned() -> None:
    error = seen(failed(message="\ud800" + "x" * 100_000))

    assert error.error_message == "?" + "x" * (module.MAX_MESSAGE_CHARACTERS - 1)


def test_the_same_error_again_is_counted_and_keeps_its_first() -> None:
    [change] = changes(failed(message="late by 3 s"), failed(message="late by 4 s"), failed(message="late by 5 s"))

    assert change.error is not None
    assert (change.error.error_message, change.error.timestamp) == ("late by 3 s", at(0))
    assert (change.count, change.last_seen, change.resolution) == (3, at(2), None)


def test_another_error_or_another_match_is_another_episode() -> None:
    assert len(changes(failed(), failed(error="SourceFailed"), failed(ref="crex_12"))) == 3


def test_without_a_request_there_is_no_error() -> None:
    assert changes(failed(error="CircuitOpen")) == []


@pytest.mark.parametrize(
    ("between", "expected"),
    [
        ([], ResolutionMethod.AUTO_RETRY),
        ([opened("match", "crex_11HD")], ResolutionMethod.CIRCUIT_BREAKER),
        ([opened("source", "crex")], ResolutionMethod.CIRCUIT_BREAKER),
        ([opened("target", "crex.example")], ResolutionMethod.CIRCUIT_BREAKER),
        ([opened("target", "crex.example:8443")], ResolutionMethod.CIRCUIT_BREAKER),
        ([opened("match", "crex_99")], ResolutionMethod.AUTO_RETRY),
        ([opened("source", "espncricinfo")], ResolutionMethod.AUTO_RETRY),
        ([opened("target", "example")], ResolutionMethod.AUTO_RETRY),
        ([RESTARTED], ResolutionMethod.RESTART),
        ([opened("match", "crex_11HD"), RESTARTED], ResolutionMethod.RESTART),
    ],
)
def test_a_successful_poll_resolves_by_what_happened_since(
    between: list[Telemetry], expected: ResolutionMethod
) -> None:
    error = failed(request="GET https://CREX.example:8443/live")

    assert method(error, *between, good()) is expected


def test_an_error_that_itself_opened_the_breaker_is_resolved_by_it() -> None:
    assert method(opened("source", "crex"), failed(), good()) is ResolutionMethod.CIRCUIT_BREAKER


def test_a_breaker_that_closed_before_the_error_had_no_part_in_it() -> None:
    closed = CircuitClosed(scope="source", subject="crex", rejected=0)

    assert method(opened("source", "crex"), closed, failed(), good()) is ResolutionMethod.AUTO_RETRY


def test_a_broken_layout_resolves_like_a_breaker() -> None:
    broken = LayoutBroken(
        source="crex", resource="live", failures=11, error_message="", page=None, retry_in_seconds=300.0
    )
    recovered = LayoutRecovered(source="crex", resource="live", failures=12)

    assert method(failed(), broken, good()) is ResolutionMethod.CIRCUIT_BREAKER
    assert method(broken, failed(), recovered, good()) is ResolutionMethod.CIRCUIT_BREAKER
    assert method(broken, recovered, failed(), good()) is ResolutionMethod.AUTO_RETRY
    assert method(failed(ref="espn_1"), broken, good("espn_1")) is ResolutionMethod.AUTO_RETRY


def test_what_helped_once_does_not_count_for_the_next_time() -> None:
    events = (failed(), RESTARTED, good(), failed(error="SourceFailed"), good())

    _first, second = changes(*events)

    assert second.resolution == Resolution(at=at(4), method=ResolutionMethod.AUTO_RETRY)


def test_a_successful_poll_resolves_neither_another_match_nor_the_listing() -> None:
    listing = ListingFailed(source="crex", error_type="SourceFailed", error_message="answered 500")

    assert method(failed(), good("crex_12")) is None
    assert method(failed(), LISTED) is None
    assert method(listing, good()) is None
    assert method(listing, LISTED) is ResolutionMethod.AUTO_RETRY


def test_an_optional_page_is_resolved_by_the_next_poll_not_by_its_own() -> None:
    resource = ResourceFailed(
        match_id=1, ref="crex_11HD", resource="scorecard", error_type="SourceFailed", error_message="answered 500"
    )

    assert method(resource, good()) is None
    assert method(resource, good(), resource, good()) is None
    assert method(resource, good(), good()) is ResolutionMethod.AUTO_RETRY


def test_an_error_that_comes_back_before_it_was_written_down_as_resolved_goes_on() -> None:
    [change] = changes(failed(), good(), failed())

    assert (change.count, change.resolution) == (2, None)


def test_a_bug_reported_twice_counts_once_and_keeps_its_trace() -> None:
    reported = failed(error="KeyError", message="'x'")
    traced = TaskFailed(task="watch crex_11HD", error_type="KeyError", error_message="'x'", stack_trace="Traceback")

    [change] = changes(reported, traced)

    assert change.error is not None
    assert (change.count, change.error.stack_trace) == (1, "Traceback")


def test_what_an_earlier_run_left_open_is_resolved_too() -> None:
    episodes = Episodes("node-1")
    left = Episode("crex_11HD", "abc")

    episodes.load([left])
    episodes.take(good(), NOW)

    assert episodes.take_pending() == {
        left: EpisodeChange(resolution=Resolution(at=NOW, method=ResolutionMethod.AUTO_RETRY))
    }


def test_what_is_open_about_a_match_is_resolved_when_it_is_archived() -> None:
    resource = ResourceFailed(
        match_id=1, ref="crex_11HD", resource="scorecard", error_type="SourceFailed", error_message="answered 500"
    )

    ends = [change.resolution for change in changes(failed(), resource, failed(ref="crex_12"), moved("archived"))]

    over = Resolution(at=at(3), method=ResolutionMethod.AUTO_RETRY)
    assert ends == [over, over, None]
    assert method(failed(), moved("completed")) is None


def test_what_could_not_be_written_is_kept_and_joined_with_what_came_since() -> None:
    episodes = heard(failed(), failed())
    taken = episodes.take_pending()

    episodes.take(failed(), at(9))
    episodes.give_back(taken)

    [change] = episodes.take_pending().values()
    assert change.error is not None
    assert (change.count, change.error.timestamp, change.last_seen) == (3, at(0), at(9))
    assert episodes.take_pending() == {}


def test_what_waits_for_a_disk_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_PENDING", 2)

    episodes = heard(*(failed(ref=f"crex_{number}") for number in range(5)), failed(ref="crex_0"))

    assert [change.count for change in episodes.take_pending().values()] == [2, 1]
    assert episodes.take_dropped() == 3
    assert episodes.take_dropped() == 0
