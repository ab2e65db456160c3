"""How many files a reader opens to follow one cricket poll from the listing to the JSON of the API."""

from bench.poll_path import poll_path

#: 45 before polls were judged by `matches/trust.py`, limited by `matches/limits.py`, and stored only in the files that
#: were opened (`storage/sqlite/files_and_errors.py`).
MAX_FILES = 48
#: Each stage of a poll runs something here; without it, the trace has missed the poll.
STAGES = ("watching/", "fetching/", "sources/crex/", "matches/", "sports/cricket/", "storage/", "api/")


def test_a_poll_runs_through_few_files() -> None:
    files = poll_path()

    assert all(any(name.startswith(stage) for name in files) for stage in STAGES), sorted(files)
    assert len(files) <= MAX_FILES, "\n".join(files)
