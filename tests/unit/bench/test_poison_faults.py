"""Wrong answers: the same for the same seed, and every kind occurs."""

from datetime import timedelta
from random import Random

import pytest

from bench.chaos.poison_faults import FIRST_SHARE, LENGTH, first_contact, later_faults, together
from longstop_lab.simulator.faults import Fault, FaultKind, FaultRules, choose
from longstop_lab.simulator.http import Request
from tests.builders import NOW

KINDS = {FaultKind.OTHER_MATCH, FaultKind.POISONED, FaultKind.SWAPPED, FaultKind.OLDER}
LISTS = [Request(method="GET", path=path) for path in ("/api/v3/getLiveMatches", "/api/v1/sport/football/events/live")]


def test_the_seed_and_the_length_fix_the_episodes() -> None:
    assert later_faults(7, 60) == later_faults(7, 60) != later_faults(8, 60)


def test_a_minute_holds_every_kind_by_itself_and_all_together_and_one_wrong_match_for_page_and_event_list() -> None:
    for seed in range(50):
        episodes: dict[float, list[Fault]] = {}
        for action in later_faults(seed, 60):
            assert action.fault is not None
            episodes.setdefault(action.at, []).append(action.fault)

        alone = {faults[0].kind for faults in episodes.values() if len(faults) == 1}
        assert alone == KINDS
        assert any({fault.kind for fault in faults} == KINDS for faults in episodes.values())
        assert any(faults[0].window_seconds for faults in episodes.values() if len(faults) == 1)


def test_no_episode_lasts_long_enough_to_be_what_the_site_says() -> None:
    for seed in range(20):
        actions = later_faults(seed, 60)

        assert all(action.fault and (action.fault.valid_seconds or 99) <= LENGTH[1] < 10 for action in actions)
        assert all(action.at + (action.fault.valid_seconds or 99) <= 60.01 for action in actions if action.fault)


def test_faults_together_hit_their_share_and_each_as_often_as_the_others() -> None:
    book = FaultRules(seed=1)
    faults = together([Fault(kind=kind) for kind in (FaultKind.DROP, FaultKind.RESET, FaultKind.HTML)], 0.6)
    rules = [book.add(fault, NOW) for fault in faults]
    dice = Random(1)

    struck = [choose(rules, Request(method="GET", path="/x"), NOW, dice).fault for _ in range(20_000)]

    kinds = [fault.kind for fault in struck if fault]
    assert len(kinds) / 20_000 == pytest.approx(0.6, abs=0.02)
    assert [kinds.count(fault.kind) / 20_000 for fault in faults] == pytest.approx([0.2] * 3, abs=0.02)


def test_at_the_first_contact_half_of_the_answers_about_a_match_are_wrong() -> None:
    book = FaultRules(seed=7)
    for fault in first_contact():
        book.add(fault, NOW)
    state = [Request(method="GET", path="/api/v3/getSV3", query={"key": f"11{nth:02}"}) for nth in range(100)]

    struck = [
        book.choose(request, NOW + timedelta(seconds=second)).fault for request in state for second in range(0, 60, 3)
    ]

    kinds = [fault.kind for fault in struck if fault]
    assert len(kinds) / len(struck) == pytest.approx(FIRST_SHARE, abs=0.05)
    assert set(kinds) == KINDS


def test_at_the_first_contact_no_list_swaps_teams() -> None:
    rules = FaultRules(seed=7)
    for fault in first_contact():
        rules.add(fault, NOW)

    kinds = {
        choice.fault.kind
        for request in LISTS
        for _ in range(500)
        if (choice := rules.choose(request, NOW)).fault is not None
    }

    assert FaultKind.POISONED in kinds
    assert FaultKind.SWAPPED not in kinds
