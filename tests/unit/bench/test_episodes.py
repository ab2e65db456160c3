"""Episodes of trouble: the same for the same seed, and everything gets its turn."""

from bench.chaos.cuts import CUT_SECONDS, EVERY, cuts_in_turn
from bench.chaos.episodes import CUT, episodes, until_return
from longstop_lab.simulator.faults import FaultKind


def test_the_seed_and_the_length_fix_the_episodes() -> None:
    assert episodes(7, 60) == episodes(7, 60)
    assert episodes(7, 60) != episodes(8, 60)


def test_a_longer_run_begins_as_a_shorter_one() -> None:
    short, long = episodes(7, 30), episodes(7, 60)

    assert long[: len(short)] == short
    assert len(long) > len(short)


def test_acts_stand_in_the_order_of_time_and_within_the_length() -> None:
    for seed in range(20):
        times = [act.at for act in episodes(seed, 45)]

        assert times == sorted(times)
        assert times[0] > 0
        assert times[-1] < 45


def test_a_minute_holds_every_kind_of_trouble() -> None:
    for seed in range(50):
        acts = episodes(seed, 60)
        kinds = {act.fault.kind for act in acts if act.fault and not act.is_cut}

        assert kinds >= {FaultKind.LATENCY, FaultKind.STATUS, FaultKind.CHALLENGE, FaultKind.FROZEN, FaultKind.OLDER}
        assert any(act.is_cut for act in acts)
        assert any(act.fault and act.fault.retry_after_seconds for act in acts)


def test_a_cut_reaches_every_path_and_every_request_and_ends_by_itself() -> None:
    cuts = [act.fault for seed in range(20) for act in episodes(seed, 60) if act.is_cut and act.fault]

    assert {(fault.path, fault.match, fault.share) for fault in cuts} == {("/", None, 1.0)}
    assert all(CUT[0] <= (fault.valid_seconds or 0) <= CUT[1] for fault in cuts)
    assert {fault.kind for fault in cuts} == {FaultKind.DROP, FaultKind.RESET, FaultKind.LATENCY}
    # A line that swallows everything answers nobody who waits less than a minute.
    assert all(fault.seconds >= 60 for fault in cuts if fault.kind is FaultKind.LATENCY)


def test_cuts_come_every_fifteen_seconds_and_the_last_one_returns_in_time() -> None:
    acts = cuts_in_turn(60)

    assert [act.at for act in acts] == [0, 15, 30, 45]
    assert all(act.is_cut and act.fault and act.fault.valid_seconds == CUT_SECONDS < EVERY for act in acts)
    assert len({act.fault.kind for act in acts if act.fault}) == 3


def test_while_the_network_is_gone_the_return_is_so_many_seconds_away() -> None:
    acts = cuts_in_turn(30)

    assert [until_return(acts, after) for after in (0, 4, 10, 12, 15, 24, 29)] == [10, 6, 0, 0, 10, 1, 0]


def test_only_cuts_keep_a_client_away() -> None:
    others = tuple(act for act in episodes(7, 60) if not act.is_cut)

    assert {until_return(others, after) for after in range(60)} == {0.0}
