from pathlib import Path

import pytest

from longstop.doctor.base import Check, Verdict, is_well
from longstop.doctor.machine import (
    BROWSER_PACKAGES,
    EARLIEST_SECONDS,
    PROGRAMS,
    BrowserStart,
    Moment,
    Program,
    Remedy,
    check_browser_packages,
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
from longstop.fetching.browser.base import BrowserKind

ARRAYS = ("\nPROGRAMS", "\nBROWSERS")
PYTHON = "/venv/bin/python"
ROOT, USER = (Remedy(is_root=is_root, has_apt=True, python=PYTHON) for is_root in (True, False))
ELSEWHERE = Remedy(is_root=False, has_apt=False, python=PYTHON)
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


@pytest.mark.parametrize(
    ("remedy", "program", "browser"),
    [
        (ROOT, "run apt-get install xvfb", "run apt-get install chromium"),
        (
            USER,
            "run sudo apt-get install xvfb",
            "run sudo apt-get install chromium; without sudo: /venv/bin/python -m playwright install chromium",
        ),
        (
            ELSEWHERE,
            "install xvfb as this system does it",
            "run /venv/bin/python -m playwright install chromium",
        ),
    ],
)
def test_the_advice_is_what_this_person_can_type_on_this_machine(remedy: Remedy, program: str, browser: str) -> None:
    assert (remedy.for_program("xvfb"), remedy.for_browser("chromium")) == (program, browser)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_a_missing_program_names_its_package_and_is_in_nobodys_way(program: Program) -> None:
    missing, there = check_program(program, None, USER), check_program(program, "/usr/bin/it", USER)

    assert missing.advice == f"run sudo apt-get install {program.package}"
    assert is_well([missing])
    assert there.verdict is Verdict.OK


def test_a_program_that_an_enabled_site_needs_is_in_the_way() -> None:
    assert check_program(PROGRAMS[0], None, USER, is_needed=True).is_in_the_way


def test_every_program_that_the_test_script_installs_is_checked() -> None:
    script = (Path(__file__).parents[3] / "scripts" / "test").read_text()
    programs, browsers = (script.partition(f"{name}=(")[2].partition(")")[0].split() for name in ARRAYS)

    assert programs
    assert set(programs) <= {f"{program.name}={program.package}" for program in PROGRAMS}
    assert browsers == [f"{kind}={package}" for kind, package in BROWSER_PACKAGES.items()]


def test_one_needed_thing_that_is_wrong_is_enough() -> None:
    assert is_well([check_memory(10**9), check_program(PROGRAMS[0], None, USER)])
    assert not is_well([check_memory(10**9), check_memory(1)])


@pytest.mark.parametrize(
    ("start", "verdict"),
    [
        (BrowserStart("/usr/bin/chromium"), Verdict.OK),
        (BrowserStart("/usr/bin/chromium", "No usable sandbox!"), Verdict.WRONG),
        (None, Verdict.MISSING),
    ],
)
@pytest.mark.parametrize("is_needed", [True, False])
def test_a_browser_starts_or_not_and_is_in_the_way_if_a_site_needs_it(
    start: BrowserStart | None, verdict: Verdict, is_needed: bool
) -> None:
    check = check_chromium(BrowserKind.HEADLESS, start, USER, is_needed=is_needed, is_root=False)

    assert check.verdict is verdict
    assert check.is_in_the_way == (is_needed and verdict is not Verdict.OK)
    assert ("apt-get install chromium" in check.advice) is (start is None)
    assert bool(check.advice) == (verdict is not Verdict.OK)


def test_who_starts_a_browser_as_root_is_told_that_its_sandbox_is_off() -> None:
    start = BrowserStart("/usr/bin/chromium")

    check = check_chromium(BrowserKind.SHELL, start, ROOT, is_needed=False, is_root=True)

    assert check.found == "/usr/bin/chromium starts, as root without its sandbox"


@pytest.mark.parametrize("is_needed", [True, False])
def test_a_missing_extra_is_in_the_way_if_a_site_is_read_by_a_browser(is_needed: bool) -> None:
    there = check_browser_packages([], USER, is_needed=is_needed)
    missing = check_browser_packages(["playwright"], USER, is_needed=is_needed)

    assert (there.verdict, there.advice) == (Verdict.OK, "")
    assert missing.verdict is Verdict.MISSING
    assert missing.is_in_the_way is is_needed
    assert missing.found.startswith("playwright missing")
    assert missing.advice == "run /venv/bin/python -m pip install 'longstop[browser]'"
