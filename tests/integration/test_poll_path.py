"""How many files somebody reads to follow one cricket poll from the listing to the JSON of the API."""

from bench.poll_path import poll_path

#: What a poll took before Part 6, which brings it down to 45.
MAX_FILES = 89
#: Each stage of a poll runs something here; without it, the trace has missed the poll.
STAGES = ("watching/", "fetching/", "sources/crex/", "storage/", "api/")


def test_a_poll_runs_through_few_files() -> None:
    files = poll_path()

    assert all(any(name.startswith(stage) for name in files) for stage in STAGES), sorted(files)
    assert not [name for name in files if name.startswith(("simulator/", "trial/"))]
    assert len(files) <= MAX_FILES, "\n".join(files)
