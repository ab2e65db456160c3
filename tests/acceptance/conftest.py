"""Runs `longstop` as a user does, and finds recorded matches."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Longstop = Callable[..., subprocess.CompletedProcess[str]]
ROOT = Path(__file__).parents[2]


@pytest.fixture
def longstop(tmp_path: Path) -> Longstop:
    """Run a verb in an empty working directory and return what it said."""

    def run(*arguments: str | Path, within: float = 110) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "longstop", *map(str, arguments)],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=within,
            check=False,
        )

    return run


@pytest.fixture
def recorded() -> Path:
    """The folder of recorded bodies; they are not ours to ship, so their absence is no failure."""
    folder = Path(os.environ.get("LONGSTOP_RECORDED", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no recorded bodies in {folder}: set LONGSTOP_RECORDED")
    return folder
