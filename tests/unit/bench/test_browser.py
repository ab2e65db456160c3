"""Ours against crawlee: what a round says, and when the aims are reached."""

import sys
from typing import Any

import pytest

from bench.browser import bytes_down, compared, is_good
from bench.measured_process import Cost, measured_process
from longstop.errors import UsageError
from longstop_lab.simulator.forward_proxy import ForwardProxy, Usage

GOOD = {"ratio_crawlee": 3.5, "ratio_crawlee_warm": 80.0, "bytes_saved": 0.8, "contexts_left": 0, "processes_left": 0}
#: A process that works for a moment and prints its input.
ECHO = """
import json, sys
for line in sys.stdin:
    sum(range(3_000_000))
    print(json.dumps({"captures": json.loads(line)["captures"]}), flush=True)
"""


def cost(captures: int, cpu_seconds: float) -> Cost:
    return Cost(captures=captures, seconds=1.0, cpu_seconds=cpu_seconds)


def test_a_ratio_is_the_median_of_the_rounds_own_ratios() -> None:
    ours = [cost(12, 2.0), cost(12, 4.0), cost(12, 3.0)]
    theirs = [cost(12, 6.0), cost(12, 24.0), cost(12, 6.0)]

    figures = compared(ours, theirs, replays=[cost(600, 1.0)] * 3)

    assert figures["ratio_crawlee"] == 3.0
    assert figures["ratio_crawlee_warm"] == 300.0
    assert figures["captures_per_cpu_s"] == 4.0


def test_reached_aims_with_nothing_left_behind_are_good() -> None:
    assert is_good(GOOD)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ratio_crawlee", 2.9),
        ("ratio_crawlee_warm", 49.0),
        ("bytes_saved", 0.69),
        ("bytes_saved", None),
        ("contexts_left", 1),
        ("processes_left", 1),
    ],
)
def test_one_aim_that_is_missed_is_enough(name: str, value: Any) -> None:
    assert not is_good({**GOOD, name: value})


def test_bytes_are_counted_for_a_user_whatever_the_sessions_are_called() -> None:
    proxy = ForwardProxy()
    proxy.usage = {
        "blocked:password_session-ab12": Usage(bytes_down=5),
        "blocked:password_session-cd34": Usage(bytes_down=7),
        "all:password": Usage(bytes_down=100),
    }

    assert (bytes_down(proxy, "blocked"), bytes_down(proxy, "all")) == (12, 100)


async def test_a_measured_process_reads_commands_and_its_cost_is_measured() -> None:
    async with measured_process("echo", (sys.executable, "-c", ECHO)) as echo:
        measured = await echo.measured({"captures": 3})
        held = echo.usage()

    assert measured.captures == 3
    assert measured.cpu_seconds > 0
    assert held.pss_bytes
    assert await echo.processes_left() == 0


async def test_a_measured_process_that_ends_before_it_answers_is_an_error() -> None:
    async with measured_process("mute", (sys.executable, "-c", "input()")) as mute:
        with pytest.raises(UsageError, match="mute ended"):
            await mute.do({"captures": 1})
