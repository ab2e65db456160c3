"""The figures of browser faults: time to notice, time to recover, and effects on other sources."""

import signal
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest

from bench.chaos.browser import Struck, Watch, figures_of, is_in_time
from bench.chaos.browser_faults import BrowserFault
from longstop.clock import to_iso
from longstop_lab.deployment import Deployment
from tests.process_tree import Role

NOW = datetime(2026, 5, 1, tzinfo=UTC)
IN_TIME = {
    "detect_max_s": 5.0,
    "recover_p95_s": 4.0,
    "spared_age_max_s": 4.0,
    "gone_s": 0.0,
    "never_recovered": 0,
    "browser_orphans": 0,
}


def later(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def struck(sent: signal.Signals, *, ended: float | None = None, overcome: float | None = None) -> Struck:
    return Struck(
        fault=BrowserFault(at=0, role=Role.BROWSER, signal=sent, source="crex"),
        at=NOW,
        targets=(),
        ended_at=None if ended is None else later(ended),
        recovered_at=None if overcome is None else later(overcome),
    )


def figures(*fallen: Struck, said: float | None = None) -> dict[str, Any]:
    watch = Watch(cast(Deployment, None))
    watch.struck += fallen
    return figures_of(watch, [] if said is None else [{"source": "crex", "timestamp": to_iso(later(said))}])


def test_a_halted_process_is_noticed_when_it_is_ended() -> None:
    measured = figures(struck(signal.SIGSTOP, ended=6, overcome=9))

    assert (measured["detect_max_s"], measured["recover_max_s"]) == (6, 3)


def test_a_killed_process_is_noticed_when_the_product_says_so() -> None:
    measured = figures(struck(signal.SIGKILL, ended=0, overcome=9), said=2)

    assert (measured["detect_max_s"], measured["recover_max_s"]) == (2, 7)


def test_what_was_never_spoken_of_was_noticed_at_the_latest_when_it_was_overcome() -> None:
    measured = figures(struck(signal.SIGKILL, ended=0, overcome=3))

    assert (measured["detect_max_s"], measured["recover_max_s"]) == (3, 0)


def test_a_blow_that_was_not_overcome_is_counted() -> None:
    measured = figures(struck(signal.SIGKILL), struck(signal.SIGKILL, overcome=1))

    assert (measured["blows"], measured["never_recovered"]) == (2, 1)


def test_blows_that_are_noticed_and_overcome_soon_are_in_time() -> None:
    assert is_in_time(IN_TIME)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("detect_max_s", 31.0),
        ("detect_max_s", None),
        ("recover_p95_s", 10.5),
        ("spared_age_max_s", 10.5),
        ("gone_s", 10.2),
        ("never_recovered", 1),
        ("browser_orphans", 1),
    ],
)
def test_one_limit_that_is_not_kept_is_enough(name: str, value: Any) -> None:
    assert not is_in_time({**IN_TIME, name: value})
