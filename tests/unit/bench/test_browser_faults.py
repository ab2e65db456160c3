"""Faults of browser processes: when, which, and when they were noticed."""

import signal
from datetime import UTC, datetime, timedelta
from itertools import product

import pytest

from bench.chaos.browser_faults import browser_faults, noticed_at, tree_of
from longstop.clock import to_iso
from longstop.process.processes import Identity, Process
from tests.process_tree import Role, role_of

NOW = datetime(2026, 5, 1, tzinfo=UTC)
SOURCES = ("crex", "sofascore")


def process(pid: int, parent: int) -> Process:
    return Process(
        identity=Identity(pid, 1), name="x", state="S", parent=parent, session=pid, cpu_seconds=0.0, rss_bytes=1
    )


def test_the_seed_and_the_length_fix_the_blows() -> None:
    assert browser_faults(7, 60, SOURCES) == browser_faults(7, 60, SOURCES)
    assert browser_faults(7, 60, SOURCES) != browser_faults(8, 60, SOURCES)
    assert browser_faults(7, 120, SOURCES)[: len(browser_faults(7, 60, SOURCES))] == browser_faults(7, 60, SOURCES)


@pytest.mark.parametrize("seed", range(20))
def test_a_minute_kills_and_halts_every_role(seed: int) -> None:
    fallen = browser_faults(seed, 60, SOURCES)

    assert {(fault.role, fault.signal) for fault in fallen} == set(product(Role, (signal.SIGKILL, signal.SIGSTOP)))
    assert [fault.at for fault in fallen] == sorted(fault.at for fault in fallen)
    assert fallen[-1].at < 60


@pytest.mark.parametrize(
    ("arguments", "role"),
    [
        (("node", "cli.js", "run-driver"), Role.DRIVER),
        (("chromium-headless-shell", "--no-sandbox", "--user-data-dir=x"), Role.BROWSER),
        (("chromium-headless-shell", "--type=renderer"), Role.RENDERER),
        (("chrome", "--type=utility", "--utility-sub-type=network.mojom.NetworkService"), Role.NETWORK),
        (("chrome", "--type=gpu-process"), None),
        (("chrome_crashpad_handler", "--monitor-self"), None),
        (("python", "-m", "longstop", "scraper"), None),
    ],
)
def test_the_role_of_a_process_follows_from_its_command_line(arguments: tuple[str, ...], role: Role | None) -> None:
    assert role_of(arguments) is role


def test_a_browser_is_its_driver_itself_and_all_below_and_no_other_browser() -> None:
    processes = [
        process(1, 0),
        process(5, 1),
        process(6, 5),
        process(7, 6),
        process(8, 7),
        process(15, 1),
        process(16, 15),
    ]

    assert [each.pid for each in tree_of(6, processes)] == [5, 6, 7, 8]


def test_a_browser_that_has_ended_has_no_processes() -> None:
    assert tree_of(6, [process(1, 0)]) == []


def test_a_blow_is_noticed_when_the_product_first_speaks_of_that_source_and_after_the_blow() -> None:
    events = [
        {"source": source, "timestamp": to_iso(NOW + timedelta(seconds=seconds))}
        for source, seconds in [("crex", -5), ("sofascore", 1), ("crex", 3), ("crex", 4)]
    ]

    assert noticed_at(events, "crex", NOW, NOW + timedelta(seconds=10)) == NOW + timedelta(seconds=3)
    assert noticed_at(events, "crex", NOW, NOW + timedelta(seconds=2)) is None
