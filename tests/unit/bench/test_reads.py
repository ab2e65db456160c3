from typing import Any

from bench.reads import POINTS, Trial, better_in_a_thread, measured


async def test_every_read_is_measured_on_the_loop_and_in_a_thread() -> None:
    report = await measured(Trial(matches=2, times=3))

    ways = {name: set(figure) for name, figure in report.figures.items() if isinstance(figure, dict)}
    assert set(ways) >= {*POINTS, "matches_100", "records_100", "events_120"}
    assert all(way == {"inline", "thread"} for way in ways.values())


def test_a_point_read_that_is_slower_on_the_loop_is_named() -> None:
    figures: dict[str, Any] = {name: {"inline": {"p50_us": 10}, "thread": {"p50_us": 80}} for name in POINTS}
    figures["match"]["inline"]["p50_us"] = 90

    assert better_in_a_thread(figures) == ["match is faster in a thread"]
