"""Who belongs to a stage, and who writes its store."""

import os
from pathlib import Path

from bench.chaos.processes_census import with_descendants, writes
from longstop.fetching.browser.processes import Identity, Process


def process(pid: int, parent: int) -> Process:
    return Process(
        identity=Identity(pid, 1), name="x", state="S", parent=parent, session=pid, cpu_seconds=0.0, rss_bytes=1
    )


def test_whoever_was_started_by_one_of_ours_is_ours() -> None:
    people = [process(1, 0), process(5, 1), process(6, 5), process(7, 6), process(9, 1)]

    assert [each.pid for each in with_descendants([people[1]], people)] == [5, 6, 7]


def test_reading_a_file_is_not_writing_it(tmp_path: Path) -> None:
    file = tmp_path / "matches.db"
    file.touch()

    with file.open("rb"):
        assert not writes(os.getpid(), file)
    with file.open("r+b"):
        assert writes(os.getpid(), file)
    assert not writes(os.getpid(), file)
