"""What is read from a page of metrics, and whose memory is whose."""

import pytest

from bench.soak_sample import part_of, read_gauges

PAGE = """\
# HELP longstop_browser_contexts Open contexts.
# TYPE longstop_browser_contexts gauge
longstop_browser_contexts{source="crex"} 1.0
longstop_browser_contexts{source="sofascore"} 2.0
# TYPE longstop_browser_pages gauge
longstop_browser_pages{source="sofascore"} 3.0
# TYPE scraper_memory_bytes gauge
scraper_memory_bytes{node="n"} 5.0
"""


def test_contexts_and_pages_are_added_up_over_sources() -> None:
    assert read_gauges(PAGE) == {"contexts": 3, "pages": 3}


def test_a_missing_metric_is_not_taken_for_zero() -> None:
    assert read_gauges("") == {}


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (("python", "-m", "longstop", "up"), "up"),
        (("python", "-m", "longstop", "scraper"), "scraper"),
        (("python", "-m", "longstop", "api"), "api"),
        (("node", "cli.js", "run-driver"), "driver"),
        (("chromium-headless-shell", "--type=renderer"), "browser"),
        ((), "browser"),
    ],
)
def test_the_part_of_a_process_follows_from_its_command_line(arguments: tuple[str, ...], part: str) -> None:
    assert part_of(arguments) == part
