"""Three ways to watch the same matches: what each must keep."""

from typing import Any

import pytest

from bench.modes import is_good
from longstop.fetching.browser.browser_policy_and_stats import Mode

FRESH = {"freshness_p99_s": 4.0, "lost": 0, "duplicated": 0, "ghost": 0, "pss_mb": 900.0}
MODES: dict[str, Any] = {Mode.PASSIVE: FRESH, Mode.PAGE: FRESH, Mode.HTTP: FRESH}


def test_every_way_fresh_and_whole_with_little_memory_is_good() -> None:
    assert is_good(MODES)


@pytest.mark.parametrize(
    ("mode", "name", "value"),
    [
        (Mode.PASSIVE, "pss_mb", 2600.0),
        (Mode.PASSIVE, "pss_mb", None),
        (Mode.PAGE, "freshness_p99_s", 10.5),
        (Mode.HTTP, "freshness_p99_s", None),
        (Mode.HTTP, "lost", 1),
    ],
)
def test_one_way_that_fails_is_enough(mode: Mode, name: str, value: Any) -> None:
    assert not is_good({**MODES, mode: {**FRESH, name: value}})
