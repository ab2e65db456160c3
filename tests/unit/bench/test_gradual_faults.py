"""Faults that grow and fade."""

from random import Random

import pytest
from msgspec.structs import replace

from bench.chaos.gradual_faults import LEVEL_SECONDS, GradualFault, acts_of, errors
from longstop_lab.simulator.faults import FaultKind, FaultRule, choose
from longstop_lab.simulator.http import Request
from tests.builders import NOW

SLOPE = GradualFault(seconds=20, foot_seconds=0.1, top_seconds=3.0, top_errors=0.2)


def test_a_slope_goes_from_foot_to_top_and_back() -> None:
    assert [SLOPE.latency(after) for after in (0, 10, 20)] == pytest.approx([0.1, 3.0, 0.1])
    assert [SLOPE.errors(after) for after in (0, 5, 10, 15, 20)] == pytest.approx([0, 0.1, 0.2, 0.1, 0])
    assert SLOPE.latency(25) == pytest.approx(0.1)


def test_latency_and_errors_may_have_their_own_time() -> None:
    apart = replace(SLOPE, late_from_to=(0.0, 0.6), failing_from_to=(0.4, 1.0))

    assert [apart.latency(after) for after in (0, 6, 12, 14)] == pytest.approx([0.1, 3.0, 0.1, 0.1])
    assert [apart.errors(after) for after in (6, 8, 14, 20)] == pytest.approx([0, 0, 0.2, 0])


def test_every_level_lasts_until_the_next_one_and_no_longer() -> None:
    late = [action for action in acts_of(SLOPE, at=5) if action.fault and action.fault.kind is FaultKind.LATENCY]

    assert [action.at for action in late] == [5 + nth * LEVEL_SECONDS for nth in range(40)]
    assert {action.fault.valid_seconds for action in late if action.fault} == {LEVEL_SECONDS}


def test_latency_is_spread_around_its_level() -> None:
    middle = next(action.fault for action in acts_of(SLOPE) if action.at == 10 and action.fault)

    assert middle.seconds + middle.jitter_seconds / 2 == pytest.approx(SLOPE.latency(10.25), abs=0.001)
    assert middle.jitter_seconds > 0


def test_two_kinds_of_error_strike_the_share_together_and_each_as_often_as_the_other() -> None:
    rules = [FaultRule(id=nth, fault=fault, since=NOW, until=None, seed=1) for nth, fault in enumerate(errors(0.2, 1))]
    dice = Random(1)

    struck = [choose(rules, Request(method="GET", path="/x"), NOW, dice).fault for _ in range(20_000)]

    kinds = [fault.kind for fault in struck if fault]
    assert len(kinds) / 20_000 == pytest.approx(0.2, abs=0.01)
    assert kinds.count(FaultKind.RESET) / len(kinds) == pytest.approx(0.5, abs=0.03)
