"""The frames from outside: a suite runs by its script and ends in one JSON line."""

import json
import subprocess
import sys

import pytest

from tests.acceptance.conftest import ROOT

pytestmark = pytest.mark.timeout(240)


def chaos(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "bench.chaos", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )


@pytest.mark.req("NFR-005", "NFR-009")
def test_a_short_chaos_loses_nothing_and_says_so_in_one_line() -> None:
    run = chaos("capture", "--seed", "7", "--minutes", "0.15")

    assert run.returncode == 0, run.stdout + run.stderr
    [line] = run.stdout.splitlines()
    figures = json.loads(line)
    assert figures["ok"] is True
    assert (figures["lost"], figures["duplicated"], figures["ghost"], figures["orphans"]) == (0, 0, 0, 0)
    assert figures["events_truth"] == figures["events_stored"] > 1000
    assert (figures["matches"], figures["seed"]) == (20, 7)
    assert figures["kills"] >= 1
    assert figures["recover_max_s"] <= 60
    assert figures["amplification"] > 1


def test_a_suite_that_does_not_exist_is_a_sentence_and_no_line() -> None:
    run = chaos("dance")

    assert run.returncode == 2
    assert run.stdout == ""
    assert "invalid choice: 'dance'" in run.stderr
