from pathlib import Path

import pytest

from longstop.doctor.base import Check, Verdict, is_well
from longstop.doctor.machine import (
    EARLIEST_SECONDS,
    PROGRAMS,
    Moment,
    Program,
    check_chromium,
    check_clock,
    check_fetching,
    check_memory,
    check_open_files,
    check_program,
    check_python,
    check_space,
    check_sqlite,
)

NOON = EARLIEST_SECONDS + 43_200
CHROME = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/136.0.0.0 Safari/537.36"


@pytest.mark.parametrize(
    ("check", "verdict"),
    [
        (check_python((3, 11, 0)), Verdict.OK),
        (check_python((3, 10, 14)), Verdict.WRONG),
        (check_sqlite("3.51.3", True), Verdict.OK),
        (check_sqlite("3.40.1", False), Verdict.WRONG),
        (check_sqlite(None, False), Verdict.MISSING),
        (check_fetching(CHROME, ""), Verdict.OK),
        (check_fetching("curl/8.5.0", ""), Verdict.WRONG),
        (check_fetching(None, "curl_cffi fails: no libcurl"), Verdict.MISSING),
        (check_clock(Moment(NOON, 7.0), Moment(NOON + 0.101, 7.1)), Verdict.OK),
        (check_clock(Moment(NOON, 7.0), Moment(NOON - 3599.9, 7.1)), Verdict.WRONG),
        (check_clock(Moment(0, 7.0), Moment(0.1, 7.1)), Verdict.WRONG),
        (check_memory(500_000_000), Verdict.OK),
        (check_memory(499_000_000), Verdict.WRONG),
        (check_open_files(264, concurrency_cap=32), Verdict.OK),
        (check_open_files(1024, concurrency_cap=1000), Verdict.WRONG),
        (check_space("/srv", 1_000_000_000), Verdict.OK),
        (check_space("/srv", 999_999_999), Verdict.WRONG),
    ],
)
def test_what_was_measured_gets_its_verdict_and_advice_where_it_is_needed(check: Check, verdict: Verdict) -> None:
    assert check.verdict is verdict
    assert check.found
    assert bool(check.advice) == (verdict is not Verdict.OK)
    assert check.is_in_the_way == (verdict is not Verdict.OK)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_a_missing_program_names_its_package_and_is_in_nobodys_way(program: Program) -> None:
    missing, there = check_program(program, None), check_program(program, "/usr/bin/it")

    assert missing.advice == f"run sudo apt-get install {program.package}"
    assert is_well([missing])
    assert there.verdict is Verdict.OK


def test_every_program_that_the_test_script_installs_is_checked() -> None:
    script = (Path(__file__).parents[3] / "scripts" / "test").read_text()
    pairs = script.partition("PROGRAMS=(")[2].partition(")")[0].split()

    known = {f"{program.name}={program.package}" for program in PROGRAMS}

    assert pairs
    assert set(pairs) <= known


def test_one_needed_thing_that_is_wrong_is_enough() -> None:
    assert is_well([check_memory(10**9), check_program(PROGRAMS[0], None)])
    assert not is_well([check_memory(10**9), check_memory(1)])


@pytest.mark.parametrize(("path", "verdict"), [("/usr/bin/chromium", Verdict.OK), (None, Verdict.MISSING)])
def test_a_missing_browser_names_its_package_and_is_in_nobodys_way(path: str | None, verdict: Verdict) -> None:
    check = check_chromium("headless", path, "chromium")

    assert check.verdict is verdict
    assert is_well([check])
    assert ("apt-get install chromium" in check.advice) is (path is None)
