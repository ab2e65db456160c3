"""What a family of processes holds, as far as the kernel says."""

import pytest

from longstop.process import processes
from longstop.process.processes import Identity, Process


def process(pid: int, rss_bytes: int) -> Process:
    return Process(
        identity=Identity(pid, 1), name="x", state="S", parent=1, session=1, cpu_seconds=0.5, rss_bytes=rss_bytes
    )


@pytest.mark.req("FR-006")
@pytest.mark.parametrize(
    ("shares", "pss", "held"),
    [
        ({1: 40, 2: 250}, 290, 290),
        ({1: 40}, 340, 340),  # the second shows nothing: it counts whole
        ({}, None, 350),
    ],
    ids=["all", "some", "none"],
)
def test_a_process_that_shows_no_share_counts_with_all_that_it_holds(
    shares: dict[int, int], pss: int | None, held: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "_pss", shares.get)

    usage = processes.measure([process(1, 50), process(2, 300)])

    assert (usage.pss_bytes, usage.rss_bytes, usage.held_bytes) == (pss, 350, held)


def test_no_process_uses_an_unknown_amount() -> None:
    usage = processes.measure([])

    assert (usage.processes, usage.pss_bytes, usage.rss_bytes) == (0, None, None)
