"""Which processes are orphans, for how long, and which write the store."""

import os
from pathlib import Path

from bench.chaos.process_observer import Abandoned, is_owner, without_owner
from longstop.process.processes import Identity, Process
from tests.process_tree import writes

UP = 5
BROWSER = Identity(8, 1)


def process(pid: int, parent: int, state: str = "S") -> Process:
    return Process(
        identity=Identity(pid, 1), name="x", state=state, parent=parent, session=pid, cpu_seconds=0.0, rss_bytes=1
    )


def test_reading_a_file_is_not_writing_it(tmp_path: Path) -> None:
    file = tmp_path / "matches.db"
    file.touch()

    with file.open("rb"):
        assert not writes(os.getpid(), file)
    with file.open("r+b"):
        assert writes(os.getpid(), file)
    assert not writes(os.getpid(), file)


def test_the_simulator_and_the_children_of_the_supervisor_that_runs_now_own_what_is_below_them() -> None:
    assert is_owner(process(6, UP), ("python", "-m", "longstop", "scraper"), UP)
    assert is_owner(process(7, UP), ("python", "-m", "longstop", "api"), UP)
    assert is_owner(process(4, 1), ("python", "-m", "longstop", "simulate"), UP)

    assert not is_owner(process(6, 1), ("python", "-m", "longstop", "scraper"), UP)
    assert not is_owner(process(8, UP), ("chromium", "--headless"), UP)


def test_a_browser_below_its_scraper_belongs_to_it() -> None:
    people = [process(UP, 1), process(6, UP), process(7, 6), process(8, 7)]

    assert without_owner(people, {6}, UP) == set()


def test_a_browser_that_the_supervisor_has_adopted_is_an_orphan() -> None:
    people = [process(UP, 1), process(6, UP), process(8, UP), process(9, 8)]

    assert without_owner(people, {6}, UP) == {BROWSER, Identity(9, 1)}


def test_the_dead_are_not_abandoned() -> None:
    assert without_owner([process(UP, 1), process(8, 1, state="Z")], (), UP) == set()


def test_the_longest_time_without_an_owner_counts_from_the_first_sample_that_shows_it() -> None:
    abandoned = Abandoned()

    abandoned.take([], 100.0, is_up=True)
    abandoned.take([BROWSER], 101.0, is_up=True)
    abandoned.take([BROWSER], 104.0, is_up=True)
    abandoned.take([], 105.0, is_up=True)

    assert abandoned.longest == 3.0


def test_without_a_supervisor_no_orphan_counts() -> None:
    abandoned = Abandoned()

    abandoned.take([BROWSER], 100.0, is_up=False)
    abandoned.take([BROWSER], 150.0, is_up=False)
    abandoned.take([BROWSER], 151.0, is_up=True)
    abandoned.take([BROWSER], 153.0, is_up=True)

    assert abandoned.longest == 2.0


def test_who_outlives_several_supervisors_is_blamed_on_all_of_them() -> None:
    abandoned = Abandoned()

    for at, is_up in ((0.0, True), (8.0, True), (9.0, False), (20.0, True), (28.0, True)):
        abandoned.take([BROWSER], at, is_up=is_up)

    assert abandoned.longest == 16.0


def test_a_process_with_an_owner_again_counts_from_zero() -> None:
    abandoned = Abandoned()

    for at, who in ((0.0, [BROWSER]), (5.0, [BROWSER]), (6.0, []), (7.0, [BROWSER]), (9.0, [BROWSER])):
        abandoned.take(who, at, is_up=True)

    assert abandoned.longest == 5.0
