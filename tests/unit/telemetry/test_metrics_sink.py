"""The metrics sink: counts events, by match while it is polled, with bounds."""

from longstop.model.match import MatchStatus
from longstop.telemetry.events import Telemetry
from longstop.telemetry.events.matches import MatchClaimed, PollFailed, PollSucceeded, UpdateStored, WatchRestarted
from longstop.telemetry.events.processes import ProcessStopped
from longstop.telemetry.events.sources import CircuitClosed, CircuitOpened, ListingFailed, ListingRead, RequestRetried
from longstop.telemetry.metrics_sink import MAX_ERROR_TYPES, OTHER, MatchReading, Metrics, MetricsReading, ScraperState
from longstop.watching.cadence import RestartReason
from tests.readers import MOMENT, a_record


def metrics_after(*events: Telemetry, max_matches: int = 10) -> Metrics:
    metrics = Metrics(max_matches=max_matches)
    for event in events:
        metrics.take(event)
    return metrics


def read(metrics: Metrics, **watched: object) -> MetricsReading:
    taken = {"node": "node-1", "records": [], "waiting": [], "findings": [], "rss_bytes": 1} | watched
    return metrics.read(ScraperState(**taken), MOMENT)  # type: ignore[arg-type]


def of_match(reading: MetricsReading, name: str) -> MatchReading:
    return next(match for match in reading.matches if match.match_id == name)


def claimed(ref: str) -> MatchClaimed:
    return MatchClaimed(match_id=1, ref=ref, epoch=1)


def stored(ref: str = "crex_M1", latency_ms: int | None = 200) -> UpdateStored:
    return UpdateStored(match_id=1, ref=ref, inserted=3, updated=1, voided=0, seq=4, latency_ms=latency_ms)


def failed(ref: str = "crex_M1", error_type: str = "FetchTimeout") -> PollFailed:
    return PollFailed(match_id=1, ref=ref, error_type=error_type, error_message="too slow")


def succeeded(ref: str = "crex_M1", seconds: float = 0.3) -> PollSucceeded:
    return PollSucceeded(match_id=1, ref=ref, seconds=seconds)


def test_updates_are_counted_by_match_with_what_they_stored() -> None:
    reading = read(metrics_after(stored(), stored(), stored("crex_M2")))

    assert of_match(reading, "crex_M1").updates == 2
    assert of_match(reading, "crex_M2").updates == 1
    assert reading.events_stored == {"insert": 9, "update": 3, "void": 0}


def test_what_was_done_about_trouble_is_counted_and_begins_at_zero() -> None:
    opened = CircuitOpened(scope="match", subject="crex_M1", reason="refused", seconds=300.0)
    retried = RequestRetried(
        source="crex", request="GET /", attempt=2, error_type="FetchTimeout", error_message="", wait_seconds=1.0
    )
    restarted = WatchRestarted(match_id=1, ref="crex_M1", reason="cool_down", age_seconds=9.0, epoch=2)

    before = read(metrics_after())
    after = read(
        metrics_after(
            opened,
            opened,
            CircuitClosed(scope="target", subject="crex.example", rejected=4),
            CircuitClosed(scope="target", subject="crex.example", rejected=3),
            retried,
            restarted,
        )
    )

    assert before.breakers_opened == before.requests_rejected == {"target": 0, "match": 0, "source": 0}
    assert after.breakers_opened == {"target": 0, "match": 2, "source": 0}
    assert after.requests_rejected == {"target": 7, "match": 0, "source": 0}
    assert (before.requests_retried, after.requests_retried) == ({}, {"crex": 1})
    assert after.watches_restarted == dict.fromkeys(RestartReason, 0) | {"cool_down": 1}


def test_a_latency_counts_below_every_bound_that_it_does_not_exceed() -> None:
    latency = of_match(
        read(metrics_after(stored(latency_ms=100), stored(latency_ms=101), stored(latency_ms=9000))), "crex_M1"
    )

    assert latency.latency.buckets() == [("0.1", 1), ("0.5", 2), ("1", 2), ("2", 2), ("5", 2), ("+Inf", 3)]
    assert round(latency.latency.total, 3) == 9.201


def test_an_update_without_a_new_payload_has_no_latency_rather_than_zero() -> None:
    reading = of_match(read(metrics_after(stored(latency_ms=None))), "crex_M1")

    assert (reading.updates, reading.latency.count) == (1, 0)


def test_failures_are_counted_by_type_and_polls_by_site() -> None:
    reading = read(
        metrics_after(
            failed(),
            failed(),
            failed(error_type="LayoutChanged"),
            succeeded(),
            ListingRead(source="crex", matches=1, changed=1, unreadable=0),
            ListingFailed(source="crex", error_type="FetchTimeout", error_message="too slow"),
            ListingFailed(source="other", error_type="FetchTimeout", error_message="too slow"),
        )
    )

    assert of_match(reading, "crex_M1").errors == {"FetchTimeout": 2, "LayoutChanged": 1}
    assert reading.scrapes == {("crex", "failure"): 4, ("crex", "success"): 2, ("other", "failure"): 1}
    assert reading.listings_failed == {"crex": 1, "other": 1}
    assert reading.durations["crex"].count == 1


def test_what_is_no_matter_of_metrics_is_ignored() -> None:
    assert read(metrics_after(ProcessStopped(process="api", pid=7, reported_by="api"))) == read(Metrics())


def test_only_matches_in_play_have_an_age() -> None:
    records = [
        a_record(1, polled=2.5),
        a_record(2, polled=4, status=MatchStatus.BREAK),
        a_record(3, polled=400, status=MatchStatus.COMPLETED),
        a_record(4, polled=900, status=MatchStatus.UPCOMING),
        a_record(5, polled=None),
        a_record(6, polled=-3),
    ]
    metrics = metrics_after(*(claimed(f"crex_M{number}") for number in range(1, 7)))

    assert read(metrics, records=records).staleness == {"crex_M1": 2.5, "crex_M2": 4, "crex_M6": 0}


def test_each_sample_adds_the_age_of_every_match_in_play() -> None:
    metrics = Metrics()

    for _ in range(3):
        metrics.sample([a_record(1, polled=2), a_record(2, polled=20)], MOMENT)

    reading = read(metrics)
    assert dict(reading.freshness.buckets()) == {"1": 0, "2.5": 3, "5": 3, "10": 3, "30": 6, "60": 6, "+Inf": 6}
    assert (reading.freshness.total, reading.ages) == (66, (2, 20))


def test_the_series_of_a_match_end_with_its_polling() -> None:
    metrics = metrics_after(stored("crex_M1"), failed("crex_M2"))

    metrics.sample([a_record(1)], MOMENT)

    assert [match.match_id for match in read(metrics).matches] == ["crex_M1"]


def test_ten_thousand_matches_make_no_more_series_than_the_bound() -> None:
    metrics = metrics_after(*(failed(f"crex_M{number}") for number in range(10_000)), max_matches=2_000)
    records = [a_record(number, polled=number / 100) for number in range(10_000)]

    reading = read(metrics, records=records)

    assert len(reading.matches) == 2_001
    assert of_match(reading, OTHER).errors == {"FetchTimeout": 8_000}
    assert len(reading.staleness) == 2_001
    assert reading.staleness[OTHER] == 99.99


def test_a_place_that_became_free_is_given_to_the_next_match() -> None:
    metrics = metrics_after(claimed("crex_M1"), claimed("crex_M2"), max_matches=2)

    metrics.sample([a_record(2)], MOMENT)
    metrics.take(stored("crex_M3"))

    assert of_match(read(metrics), "crex_M3").updates == 1


def test_a_match_has_a_bounded_number_of_error_types() -> None:
    metrics = metrics_after(*(failed(error_type=f"Strange{number}") for number in range(100)))

    errors = of_match(read(metrics), "crex_M1").errors

    assert len(errors) == MAX_ERROR_TYPES + 1
    assert sum(errors.values()) == 100


def test_long_and_malformed_names_are_cut_and_cleaned() -> None:
    reading = read(metrics_after(failed(error_type="x" * 5000 + "\ud800"), failed(error_type="\ud800")))

    assert set(of_match(reading, "crex_M1").errors) == {"x" * 100, "?"}


def test_queued_polls_and_findings_are_counted_by_kind() -> None:
    reading = read(Metrics(), waiting=[0, 0, 2, 3], findings=["gap", "gap", "mismatch"])

    assert reading.waiting == {"live": 2, "imminent": 0, "completed": 1, "upcoming": 1}
    assert reading.open_findings == {"gap": 2, "mismatch": 1}
