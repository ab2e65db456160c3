"""The frames from outside: a suite runs by its script and ends in one JSON line."""

import json
import subprocess
import sys

import pytest

from tests.acceptance.conftest import ROOT

pytestmark = pytest.mark.timeout(340)


def chaos(*arguments: str, timeout: float = 200) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "bench.chaos", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=timeout,
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


@pytest.mark.req("JOB-6", "NFR-005")
def test_a_short_poison_reaches_both_sports_and_every_match_recovers() -> None:
    run = chaos("poison", "--seed", "7", "--minutes", "0.1", timeout=300)

    [line] = run.stdout.splitlines()
    figures = json.loads(line)
    assert (figures["suite"], figures["seed"], figures["orphans"]) == ("chaos poison", 7, 0), run.stdout + run.stderr
    assert figures.keys() >= {"ok", "first_recover_s", "later_recover_s", "never_recovered", "wrong_reliable"}
    assert (run.returncode, figures["ok"]) == (0, True), run.stdout
    assert figures["faulty_answers"]["cricket"] > 0
    assert figures["faulty_answers"]["football"] > 0
    assert figures["answers_read"] > 100
    assert figures["reliable_share"] > 0


@pytest.mark.req("NFR-005")
def test_a_short_hostile_strikes_from_three_sides_and_the_healthy_site_notices_nothing() -> None:
    phases = ("drip", "control-characters", "matches-cut")

    run = chaos("hostile", "--seed", "7", "--only", *phases, timeout=300)

    [line] = run.stdout.splitlines()
    figures = json.loads(line)
    assert (run.returncode, figures["ok"]) == (0, True), run.stdout + run.stderr
    assert figures["phases"] == dict.fromkeys(phases, 1)
    assert (figures["restores"], figures["requests_while_paused"], figures["tracebacks"]) == (1, 0, 0)
    assert figures["events_truth"] == figures["events_stored"] > 1000
    assert figures["live_probes"] > 50


def test_a_suite_that_does_not_exist_is_a_sentence_and_no_line() -> None:
    run = chaos("dance")

    assert run.returncode == 2
    assert run.stdout == ""
    assert "invalid choice: 'dance'" in run.stderr
