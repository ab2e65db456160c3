"""Real balls through everything: file → simulator → scraper → store → API, and back."""

import json
from pathlib import Path

import pytest

from longstop.supervision.exit_codes import Exit
from tests.acceptance.conftest import Longstop
from tests.acceptance.cricsheet_files import write_match, write_test_match

pytestmark = pytest.mark.timeout(180)

#: A super over, a revised target, an obstruction; a Test with a follow-on, penalty runs and an innings win.
#: docs/explanation/benchmarks.md covers more files.
RECORDED = (
    "cricsheet/t20_ipl/1082625",
    "cricsheet/t20_ipl/1136566",
    "cricsheet/t20_ipl/1181766",
    "extra/cricsheet/test/1453294",
)


def test_every_ball_of_a_match_comes_back(longstop: Longstop, tmp_path: Path) -> None:
    file = tmp_path / "match.json"
    deliveries = write_match(file)

    run = longstop("verify", file, "--json")

    report = json.loads(run.stdout)
    assert run.returncode == 0, run.stdout + run.stderr
    assert (report["deliveries"], report["equal"]) == (deliveries, deliveries)
    assert (report["wrong"], report["missing"], report["extra"]) == (0, 0, 0)


@pytest.mark.parametrize(
    "outcome",
    [{"winner": "Ashford", "method": "Awarded"}, {"winner": "Ashford", "by": {"innings": 1, "runs": 22}}],
    ids=["awarded", "an innings"],
)
def test_a_match_of_several_days_ends_with_its_totals_and_its_outcome(
    longstop: Longstop, tmp_path: Path, outcome: dict[str, object]
) -> None:
    file = tmp_path / "match.json"
    deliveries = write_test_match(file, outcome)

    run = longstop("verify", file, "--json")

    report = json.loads(run.stdout)
    assert run.returncode == 0, run.stdout + run.stderr
    assert (report["equal"], report["wrong_totals"], report["wrong_outcome"]) == (deliveries, 0, False)


@pytest.mark.req("NFR-005", "NFR-009", "US1.2")
def test_every_ball_comes_back_though_the_scraper_is_killed_again_and_again(longstop: Longstop, tmp_path: Path) -> None:
    file = tmp_path / "match.json"
    deliveries = write_match(file)

    run = longstop("verify", file, "--kill-every", "2", "--json")

    report = json.loads(run.stdout)
    assert run.returncode == 0, run.stdout + run.stderr
    assert report["kills"] >= 3
    assert report["equal"] == deliveries


@pytest.mark.req("NFR-008")
@pytest.mark.parametrize("name", RECORDED)
def test_real_matches_come_back_ball_by_ball(longstop: Longstop, recorded: Path, name: str) -> None:
    run = longstop("verify", recorded / f"{name}.json", "--json")

    assert run.returncode == 0, run.stdout + run.stderr
    report = json.loads(run.stdout)
    assert report["equal"] == report["deliveries"] > 100


@pytest.mark.req("NFR-005", "NFR-009")
def test_a_real_match_comes_back_though_the_scraper_is_killed_again_and_again(
    longstop: Longstop, recorded: Path
) -> None:
    run = longstop("verify", recorded / "cricsheet" / "t20_ipl" / "1082625.json", "--kill-every", "2", "--json")

    assert run.returncode == 0, run.stdout + run.stderr
    report = json.loads(run.stdout)
    assert report["kills"] >= 3
    assert report["equal"] == report["deliveries"]


def test_a_file_that_is_no_match_is_one_sentence_and_no_traceback(longstop: Longstop, tmp_path: Path) -> None:
    file = tmp_path / "match.json"
    file.write_text('{"info": 1}')

    run = longstop("verify", file)

    assert run.returncode == Exit.USAGE
    assert run.stderr.strip() == f"longstop: {file} is not a Cricsheet JSON file"
