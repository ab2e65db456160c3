"""A slice of the exact-kill sweep; `scripts/sweep` goes through every point."""

import shutil

import pytest

from bench.sweep import kill_at
from tests.prerequisites import unavailable

POINTS = [
    *(("fdatasync", nth) for nth in (1, 2, 3, 5, 7, 9)),
    *(("pwrite64", nth) for nth in (1, 8, 20, 33, 47, 60, 75)),
    ("ftruncate", 1),
    ("unlink", 1),
]


@pytest.fixture(autouse=True)
def _strace() -> None:
    if shutil.which("strace") is None:
        unavailable("strace is missing: apt-get install strace")


@pytest.mark.req("NFR-009")
@pytest.mark.parametrize(("call", "nth"), POINTS)
async def test_a_writer_killed_at_this_call_loses_nothing_and_leaves_nothing_by_halves(call: str, nth: int) -> None:
    point = await kill_at(call, nth)

    assert point.was_killed
    assert point.fault is None
    assert point.lost == 0
