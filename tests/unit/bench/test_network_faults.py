"""Network faults: the same for the same seed, and every kind occurs."""

from bench.chaos.cuts import CUT_SECONDS, EVERY, cuts_in_turn
from bench.chaos.network_faults import CUT, network_faults, until_return
from longstop_lab.simulator.faults import FaultKind


def test_the_seed_and_the_length_fix_the_episodes() -> None:
    assert network_faults(7, 60) == network_faults(7, 60)
    assert network_faults(7, 60) != network_faults(8, 60)


def test_a_longer_run_begins_as_a_shorter_one() -> None:
    short, long = network_faults(7, 30), network_faults(7, 60)

    assert long[: len(short)] == short
    assert len(long) > len(short)


def test_acts_stand_in_the_order_of_time_and_within_the_length() -> None:
    for seed in range(20):
        times = [action.at for action in network_faults(seed, 45)]

        assert times == sorted(times)
        assert times[0] > 0
        assert times[-1] < 45


def test_a_minute_holds_every_kind_of_trouble() -> None:
    for seed in range(50):
        actions = network_faults(seed, 60)
        kinds = {action.fault.kind for action in actions if action.fault and not action.is_cut}

        assert kinds >= {FaultKind.LATENCY, FaultKind.STATUS, FaultKind.CHALLENGE, FaultKind.FROZEN, FaultKind.OLDER}
        assert any(action.is_cut for action in actions)
        assert any(action.fault and action.fault.retry_after_seconds for action in actions)


def test_a_cut_reaches_every_path_and_every_request_and_ends_by_itself() -> None:
    cuts = [action.fault for seed in range(20) for action in network_faults(seed, 60) if action.is_cut and action.fault]

    assert {(fault.path, fault.match, fault.share) for fault in cuts} == {("/", None, 1.0)}
    assert all(CUT[0] <= (fault.valid_seconds or 0) <= CUT[1] for fault in cuts)
    assert {fault.kind for fault in cuts} == {FaultKind.DROP, FaultKind.RESET, FaultKind.LATENCY}
    # A connection that swallows everything does not answer within a minute.
    assert all(fault.seconds >= 60 for fault in cuts if fault.kind is FaultKind.LATENCY)


def test_cuts_come_every_fifteen_seconds_and_the_last_one_returns_in_time() -> None:
    actions = cuts_in_turn(60)

    assert [action.at for action in actions] == [0, 15, 30, 45]
    assert all(
        action.is_cut and action.fault and action.fault.valid_seconds == CUT_SECONDS < EVERY for action in actions
    )
    assert len({action.fault.kind for action in actions if action.fault}) == 3


def test_during_an_outage_the_seconds_until_the_return_are_known() -> None:
    actions = cuts_in_turn(30)

    assert [until_return(actions, after) for after in (0, 4, 10, 12, 15, 24, 29)] == [10, 6, 0, 0, 10, 1, 0]


def test_only_cuts_keep_a_client_away() -> None:
    others = tuple(action for action in network_faults(7, 60) if not action.is_cut)

    assert {until_return(others, after) for after in range(60)} == {0.0}
