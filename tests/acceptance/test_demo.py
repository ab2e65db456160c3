"""The demo, from outside: it runs, it is fresh, and it accounts for every event."""

import json
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from longstop_lab.simulator.judge import judge
from longstop_lab.simulator.truth import read_truth
from tests.acceptance.conftest import Longstop

pytestmark = pytest.mark.timeout(180)

KEYS = {
    "matches",
    "events_truth",
    "events_stored",
    "lost",
    "duplicated",
    "ghost",
    "freshness_p50_s",
    "freshness_p99_s",
    "rss_mb",
    "api_p95_ms",
}


@pytest.mark.req("NFR-001", "NFR-002", "NFR-003", "NFR-009", "NFR-011")
def test_twenty_live_matches_stay_fresh_and_lose_nothing(longstop: Longstop, tmp_path: Path) -> None:
    truth, data = tmp_path / "truth.jsonl", tmp_path / "kept"

    run = longstop(
        "demo", "--for", "12", "--matches", "20", "--speed", "20", "--json", "--truth", truth, "--keep", data
    )

    assert run.returncode == 0, run.stderr
    report = json.loads(run.stdout.splitlines()[-1])
    assert report.keys() >= KEYS
    assert report["matches"] == 20
    assert report["events_truth"] == report["events_stored"] > 1000
    faults = [report[name] for name in ("lost", "duplicated", "ghost", "wrong")]
    assert faults == [0, 0, 0, 0], report["details"]
    assert report["freshness_p99_s"] < 10
    assert report["rss_mb"] < 1000
    assert report["api_p95_ms"] < 500
    _anyone_can_check_it(longstop, truth, data)
    _the_kept_data_are_served(longstop, data)


@pytest.mark.req("NFR-001", "NFR-009")
def test_cricket_and_football_are_read_side_by_side_and_told_apart(longstop: Longstop) -> None:
    run = longstop("demo", "--site", "all", "--for", "8", "--matches", "6", "--speed", "20", "--json", "--port", "0")

    assert run.returncode == 0, run.stderr
    report = json.loads(run.stdout.splitlines()[-1])
    by_sport = {each["sport"]: each for each in report["sports"]}
    assert by_sport.keys() == {"cricket", "football"}
    assert sum(each["matches"] for each in by_sport.values()) == report["matches"]
    for each in by_sport.values():
        assert (each["lost"], each["duplicated"], each["ghost"]) == (0, 0, 0), report["details"]
        assert each["events_stored"] > 0
        assert each["freshness_p99_s"] < 10


def _anyone_can_check_it(longstop: Longstop, truth: Path, data: Path) -> None:
    matches = json.loads(longstop("matches", "--data", data, "--json").stdout)
    stored = {
        match["match_id"].removeprefix("crex_"): [
            json.loads(line)
            for line in longstop("events", match["match_id"], "--data", data, "--json").stdout.splitlines()
        ]
        for match in matches[:3]
    }
    published = [line for line in read_truth(truth) if line.match in stored]

    verdict = judge(published, stored)

    assert verdict.events_truth == verdict.events_stored > 0
    assert (verdict.lost, verdict.duplicated, verdict.ghost) == (0, 0, 0), verdict.details


def _the_kept_data_are_served(longstop: Longstop, data: Path) -> None:
    token = longstop("token", "--data", data).stdout.strip()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    api = subprocess.Popen(
        [sys.executable, "-m", "longstop", "api", "--data", str(data), "--port", str(port)],
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert api.stderr is not None
        while "API on" not in api.stderr.readline():
            assert api.poll() is None
        request = urllib.request.Request(
            f"http://127.0.0.1:{port}/cricket-data/match-info/1", headers={"Authorization": f"Bearer {token}"}
        )
        with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310
            body = json.load(answer)
            age = float(answer.headers["X-Data-Age-Seconds"])
    finally:
        api.terminate()
        api.communicate(timeout=20)

    assert body["matchId"] == 1
    assert body["_metadata"]["data_age_seconds"] >= 0
    assert age > 0
