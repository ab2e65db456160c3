"""The demo without the extra `browser`: it reads by HTTP, and misses nothing."""

import json
from pathlib import Path

import pytest

from tests.acceptance.conftest import Longstop
from tests.integration.test_without_browser import BLOCKED

pytestmark = pytest.mark.timeout(120)


def test_the_demo_runs_without_the_packages_of_a_browser(
    longstop: Longstop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sitecustomize.py").write_text(BLOCKED)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    run = longstop("demo", "--for", "5", "--matches", "2", "--json", "--port", "0")

    assert run.returncode == 0, run.stderr
    report = json.loads(run.stdout.splitlines()[-1])
    assert report["matches"] == 2
    assert [report[name] for name in ("lost", "duplicated", "ghost", "wrong")] == [0, 0, 0, 0]
