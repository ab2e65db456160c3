"""When a long run is ok."""

from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

from bench.soak import WAL_MB, report, trend_of, trends_by_part
from bench.soak_sample import Sample, Served
from bench.soak_trend import Course
from longstop_lab.simulator.judge import TruthComparison

SECONDS = 3600.0
WHOLE = TruthComparison(
    matches=9, events_truth=5, events_stored=5, lost=0, duplicated=0, ghost=0, declared=0, witnessed=6, details=()
)
CALM = {"deaths": 0}


def samples(**grows_by: float) -> list[Sample]:
    """Return an hour of samples, of which some figures grow by so much."""
    calm = Sample(
        seconds=0,
        rss_mb=900.0,
        pss_mb=500.0,
        processes=11,
        zombies=0,
        descriptors=300,
        threads=110,
        contexts=1,
        pages=3,
        wal_mb=4.0,
        rss_mb_by_part={"scraper": 100.0, "browser": 700.0},
        served=Served(is_up=True, ages_s=(1.5, 2.5)),
    )
    return [_later(calm, nth * 2.0, grows_by) for nth in range(round(SECONDS / 2))]


def _later(sample: Sample, seconds: float, grows_by: dict[str, float]) -> Sample:
    grown: dict[str, Any] = {name: getattr(sample, name) + by * seconds / SECONDS for name, by in grows_by.items()}
    return replace(sample, seconds=seconds, **grown)


def test_it_is_ok_when_nothing_grows_nothing_is_lost_and_no_process_died() -> None:
    assert report(samples(), SECONDS, WHOLE, CALM).is_ok


@pytest.mark.parametrize(
    "name", ["rss_mb", "pss_mb", "processes", "zombies", "descriptors", "threads", "contexts", "pages"]
)
def test_one_figure_that_grows_is_enough(name: str) -> None:
    said = report(samples(**{name: 200.0}), SECONDS, WHOLE, CALM)

    assert not said.is_ok
    assert said.details == [f"{name} grows"]


def test_a_run_that_was_too_short_to_exclude_growth_is_open_and_not_ok() -> None:
    dice = Random(3)
    short = [replace(each, descriptors=300 + dice.randint(-40, 40)) for each in samples()[:60]]

    said = report(short, 120.0, WHOLE, CALM)

    assert said.figures["descriptors"]["course"] is Course.OPEN
    assert not said.is_ok
    assert [sentence.partition(":")[0] for sentence in said.details] == ["descriptors is open"]


def test_what_falls_is_ok() -> None:
    assert report(samples(pss_mb=-200.0), SECONDS, WHOLE, CALM).is_ok


def test_a_loss_or_a_death_is_not_ok() -> None:
    assert not report(samples(), SECONDS, replace(WHOLE, lost=1), CALM).is_ok
    assert not report(samples(), SECONDS, replace(WHOLE, wrong=1), CALM).is_ok
    assert not report(samples(), SECONDS, replace(WHOLE, forgotten=1), CALM).is_ok
    assert not report(samples(), SECONDS, WHOLE, {"deaths": 1}).is_ok


@pytest.mark.parametrize("changes", [{"events_truth": 0, "events_stored": 0}, {"events_stored": 4}, {"witnessed": 0}])
def test_a_run_in_which_no_loss_could_be_seen_is_not_ok(changes: dict[str, int]) -> None:
    said = report(samples(), SECONDS, replace(WHOLE, **changes), CALM)

    assert not said.is_ok
    assert "events were published" in said.details[0]


@pytest.mark.req("NFR-007")
@pytest.mark.parametrize(("every", "is_ok"), [(100, False), (250, True)])
def test_it_is_up_for_all_but_half_a_percent_of_the_time(every: int, is_ok: bool) -> None:
    away = Served(is_up=False)
    broken = [each if nth % every else replace(each, served=away) for nth, each in enumerate(samples())]

    assert report(broken, SECONDS, WHOLE, CALM).is_ok is is_ok


@pytest.mark.req("NFR-011")
@pytest.mark.parametrize(("every", "is_ok"), [(40, False), (60, True)])
def test_all_but_one_percent_of_what_is_served_is_young(every: int, is_ok: bool) -> None:
    old = Served(is_up=True, ages_s=(1.5, 11.0))
    late = [each if nth % every else replace(each, served=old) for nth, each in enumerate(samples())]

    assert report(late, SECONDS, WHOLE, CALM).is_ok is is_ok


@pytest.mark.req("NFR-007")
def test_a_hang_counts_for_its_whole_duration_even_if_sampled_once() -> None:
    hour = samples()
    hung = [each for each in hour if not 600 < each.seconds < 660]
    hung = [replace(each, served=Served(is_up=False)) if each.seconds == 600 else each for each in hung]

    said = report(hung, SECONDS, WHOLE, CALM)

    assert said.figures["up_share"] == pytest.approx(1 - 60 / 3600, abs=0.0001)
    assert not said.is_ok


def test_what_never_served_a_match_in_play_was_not_fresh() -> None:
    empty = [replace(each, served=Served(is_up=True)) for each in samples()]

    assert not report(empty, SECONDS, WHOLE, CALM).is_ok


def test_a_write_ahead_log_may_grow_up_to_its_limit() -> None:
    assert report(samples(wal_mb=WAL_MB - 5), SECONDS, WHOLE, CALM).is_ok
    assert not report(samples(wal_mb=WAL_MB + 5), SECONDS, WHOLE, CALM).is_ok


def test_what_grows_while_it_warms_up_does_not_count() -> None:
    growing = [replace(each, rss_mb=min(900.0, 300.0 + each.seconds)) for each in samples()]

    assert report(growing, SECONDS, WHOLE, CALM).is_ok


def test_what_was_hardly_ever_read_has_no_trend_and_is_not_ok() -> None:
    blind = [replace(each, pages=None) if nth % 3 else each for nth, each in enumerate(samples())]

    assert trend_of(blind, "pages") is None
    assert trend_of(blind, "contexts") is not None
    assert report(blind, SECONDS, WHOLE, CALM).details == ["pages could not be measured"]


def test_it_says_which_part_grows() -> None:
    growing = [
        replace(each, rss_mb_by_part={"scraper": 100.0, "browser": 700.0 + each.seconds / 10}) for each in samples()
    ]

    found = trends_by_part(growing)

    assert {part: each.course for part, each in found.items()} == {"scraper": Course.FLAT, "browser": Course.GROWS}
