"""The meter, on real processes."""

import asyncio
import os
import subprocess
import sys
from time import monotonic

import pytest

from longstop.supervision.resource_use_and_match_costs import ResourceMeter

_PARENT = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "block = bytearray(60_000_000); print(1, flush=True); input()"],
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE)
child.stdout.readline()
print(child.pid, flush=True)
sys.stdin.readline()
child.communicate(b"\\n")
"""


@pytest.mark.req("FLD-10")
def test_a_process_is_measured_with_all_that_it_has_started() -> None:
    with subprocess.Popen([sys.executable, "-c", _PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())

        measured = ResourceMeter(monotonic, parent.pid).measure()

        parent.communicate(b"\n")
    assert measured is not None
    assert measured.pids == tuple(sorted((parent.pid, child)))
    assert measured.rss_bytes is not None
    assert measured.pss_bytes is not None
    assert 60_000_000 < measured.pss_bytes <= measured.rss_bytes == measured.peak_rss_bytes
    assert measured.own_pss_bytes is not None
    assert 0 < measured.own_pss_bytes < measured.pss_bytes - 60_000_000
    assert measured.cpu_percent is None


def test_cpu_is_what_was_spent_since_the_time_before() -> None:
    meter = ResourceMeter(monotonic)
    meter.measure()

    until = monotonic() + 0.5
    while monotonic() < until:
        sum(range(1000))
    measured = meter.measure()

    assert measured is not None
    assert measured.cpu_percent is not None
    assert 5 < measured.cpu_percent < 1000
    assert measured.own_cpu_percent is not None
    assert 5 < measured.own_cpu_percent <= measured.cpu_percent


def test_the_peak_stays_when_the_memory_is_given_back() -> None:
    meter = ResourceMeter(monotonic)
    block = bytearray(80_000_000)
    high = meter.measure()

    del block
    low = meter.measure()

    assert high is not None
    assert low is not None
    assert low.peak_rss_bytes == high.rss_bytes
    assert (low.rss_bytes or 0) < (high.rss_bytes or 0)


def test_of_a_process_that_is_gone_nothing_is_known() -> None:
    with subprocess.Popen(["true"]) as child:
        child.wait()

    assert ResourceMeter(monotonic, child.pid).measure() is None


async def test_it_measures_in_a_thread_until_it_is_stopped() -> None:
    meter = ResourceMeter(monotonic)

    ending = meter.start(0.01)
    async with asyncio.timeout(20):
        while meter.newest is None:  # noqa: ASYNC110 -- a thread measures
            await asyncio.sleep(0.01)
    ending.set()

    assert os.getpid() in meter.newest.pids
