from pathlib import Path

import pytest

from longstop.doctor.checks import (
    BROWSER_PACKAGES,
    EARLIEST_SECONDS,
    PROGRAMS,
    BrowserStart,
    Check,
    CheckStatus,
    ClockPair,
    InstallAdvice,
    Program,
    browsers_wanted,
    check_browser_packages,
    check_chromium,
    check_clock,
    check_data_directory,
    check_fetching,
    check_memory,
    check_open_files,
    check_port,
    check_program,
    check_python,
    check_settings,
    check_sources,
    check_space,
    check_sqlite,
    is_ready,
)
from longstop.doctor.holders import Holder
from longstop.fetching.browser.base import BrowserKind
from longstop.settings import load_settings

ARRAYS = ("\nPROGRAMS", "\nBROWSERS")
PYTHON = "/venv/bin/python"
ROOT, USER = (InstallAdvice(is_root=is_root, has_apt=True, python=PYTHON) for is_root in (True, False))
ELSEWHERE = InstallAdvice(is_root=False, has_apt=False, python=PYTHON)
NOON = EARLIEST_SECONDS + 43_200
CHROME = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/136.0.0.0 Safari/537.36"


@pytest.mark.parametrize(
    ("check", "verdict"),
    [
        (check_python((3, 11, 0)), CheckStatus.OK),
        (check_python((3, 10, 14)), CheckStatus.WRONG),
        (check_sqlite("3.51.3", True), CheckStatus.OK),
        (check_sqlite("3.40.1", False), CheckStatus.WRONG),
        (check_sqlite(None, False), CheckStatus.MISSING),
        (check_fetching(CHROME, ""), CheckStatus.OK),
        (check_fetching("curl/8.5.0", ""), CheckStatus.WRONG),
        (check_fetching(None, "curl_cffi fails: no libcurl"), CheckStatus.MISSING),
        (check_clock(ClockPair(NOON, 7.0), ClockPair(NOON + 0.101, 7.1)), CheckStatus.OK),
        (check_clock(ClockPair(NOON, 7.0), ClockPair(NOON - 3599.9, 7.1)), CheckStatus.WRONG),
        (check_clock(ClockPair(0, 7.0), ClockPair(0.1, 7.1)), CheckStatus.WRONG),
        (check_memory(500_000_000), CheckStatus.OK),
        (check_memory(499_000_000), CheckStatus.WRONG),
        (check_open_files(264, concurrency_cap=32), CheckStatus.OK),
        (check_open_files(1024, concurrency_cap=1000), CheckStatus.WRONG),
        (check_space("/srv", 1_000_000_000), CheckStatus.OK),
        (check_space("/srv", 999_999_999), CheckStatus.WRONG),
    ],
)
def test_what_was_measured_gets_its_verdict_and_advice_where_it_is_needed(check: Check, verdict: CheckStatus) -> None:
    assert check.verdict is verdict
    assert check.found
    assert bool(check.advice) == (verdict is not CheckStatus.OK)
    assert check.is_problem == (verdict is not CheckStatus.OK)


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
            "install xvfb with the package manager of this system",
            "run /venv/bin/python -m playwright install chromium",
        ),
    ],
)
def test_the_advice_is_a_command_that_works_on_this_machine(remedy: InstallAdvice, program: str, browser: str) -> None:
    assert (remedy.for_program("xvfb"), remedy.for_browser("chromium")) == (program, browser)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_a_missing_program_names_its_package_and_is_not_a_problem(program: Program) -> None:
    missing, there = check_program(program, None, USER), check_program(program, "/usr/bin/it", USER)

    assert missing.advice == f"run sudo apt-get install {program.package}"
    assert is_ready([missing])
    assert there.verdict is CheckStatus.OK


def test_a_program_that_an_enabled_site_needs_is_in_the_way() -> None:
    assert check_program(PROGRAMS[0], None, USER, is_needed=True).is_problem


def test_every_program_that_the_test_script_installs_is_checked() -> None:
    script = (Path(__file__).parents[3] / "scripts" / "test").read_text()
    programs, browsers = (script.partition(f"{name}=(")[2].partition(")")[0].split() for name in ARRAYS)

    assert programs
    assert set(programs) <= {f"{program.name}={program.package}" for program in PROGRAMS}
    assert browsers == [f"{kind}={package}" for kind, package in BROWSER_PACKAGES.items()]


def test_one_needed_thing_that_is_wrong_is_enough() -> None:
    assert is_ready([check_memory(10**9), check_program(PROGRAMS[0], None, USER)])
    assert not is_ready([check_memory(10**9), check_memory(1)])


@pytest.mark.parametrize(
    ("start", "verdict"),
    [
        (BrowserStart("/usr/bin/chromium"), CheckStatus.OK),
        (BrowserStart("/usr/bin/chromium", "No usable sandbox!"), CheckStatus.WRONG),
        (None, CheckStatus.MISSING),
    ],
)
@pytest.mark.parametrize("is_needed", [True, False])
def test_a_browser_starts_or_not_and_is_in_the_way_if_a_site_needs_it(
    start: BrowserStart | None, verdict: CheckStatus, is_needed: bool
) -> None:
    check = check_chromium(BrowserKind.HEADLESS, start, USER, is_needed=is_needed, is_root=False)

    assert check.verdict is verdict
    assert check.is_problem == (is_needed and verdict is not CheckStatus.OK)
    assert ("apt-get install chromium" in check.advice) is (start is None)
    assert bool(check.advice) == (verdict is not CheckStatus.OK)


def test_a_browser_as_root_runs_without_its_sandbox_and_that_is_reported() -> None:
    start = BrowserStart("/usr/bin/chromium")

    check = check_chromium(BrowserKind.SHELL, start, ROOT, is_needed=False, is_root=True)

    assert check.found == "/usr/bin/chromium starts, as root without its sandbox"


@pytest.mark.parametrize("is_needed", [True, False])
def test_a_missing_extra_is_in_the_way_if_a_site_is_read_by_a_browser(is_needed: bool) -> None:
    there = check_browser_packages([], USER, is_needed=is_needed)
    missing = check_browser_packages(["playwright"], USER, is_needed=is_needed)

    assert (there.verdict, there.advice) == (CheckStatus.OK, "")
    assert missing.verdict is CheckStatus.MISSING
    assert missing.is_problem is is_needed
    assert missing.found.startswith("playwright missing")
    assert missing.advice == "run /venv/bin/python -m pip install 'longstop[browser]'"


SITE = """\
sources:
  - domain_id: crex
    enabled: {enabled}
    precedence_weight: 100
    adapter_class: {adapter}
    hosts: [example.org]
    permission: {permission}
    metadata: {{api_url: "https://example.org", content_url: "https://example.org", names_url: "https://example.org"}}
"""
DATA = Path("/srv/longstop")
STRANGER = Holder("nginx", 4711)
OURS = Holder("longstop", 4712, DATA)
ANOTHER = Holder("longstop", 4713, Path("/srv/another"))


def sources_file(
    folder: Path, *, enabled: str = "true", adapter: str = "crex", permission: str = "Jane, by mail"
) -> Path:
    file = folder / "sources.yaml"
    file.write_text(SITE.format(enabled=enabled, adapter=adapter, permission=permission))
    return file


def test_valid_settings_are_used_and_wrong_ones_named_and_not_replaced_by_others() -> None:
    chosen, good = check_settings({"LONGSTOP_API_PORT": "9000"})
    fallen, bad = check_settings({"LONGSTOP_API_PORT": "x", "RETRY_OFTEN": "1"})

    assert chosen is not None
    assert (chosen.api.port, good.verdict) == (9000, CheckStatus.OK)
    assert (fallen, bad.verdict) == (None, CheckStatus.WRONG)
    assert "LONGSTOP_API_PORT is 'x'" in bad.advice
    assert "RETRY_OFTEN is unknown" in bad.advice


def test_an_enabled_site_shows_its_permission(tmp_path: Path) -> None:
    (check,) = check_sources(sources_file(tmp_path))

    assert (check.name, check.verdict) == ("source crex", CheckStatus.OK)
    assert "Jane, by mail" in check.found


@pytest.mark.parametrize(
    ("browser", "headless", "kinds"),
    [
        ("null", "true", set()),
        ("shell", "true", {BrowserKind.SHELL}),
        ("headless", "true", {BrowserKind.HEADLESS}),
        ("headless", "false", {BrowserKind.HEADLESS, BrowserKind.HEADED}),
        ("headed", "true", {BrowserKind.HEADLESS, BrowserKind.HEADED}),
    ],
)
def test_the_browsers_that_are_wanted_are_those_of_enabled_sites(
    tmp_path: Path, browser: str, headless: str, kinds: set[BrowserKind]
) -> None:
    wanted = []
    for enabled in ("true", "false"):
        file = sources_file(tmp_path, enabled=enabled)
        file.write_text(f"{file.read_text()}    browser: {browser}\n")
        environ = {"LONGSTOP_SOURCES": str(file), "BROWSER_HEADLESS": headless}
        wanted.append(browsers_wanted(load_settings(environ, {})))

    assert wanted == [kinds, set()]


def test_a_file_that_cannot_be_read_wants_no_browser(tmp_path: Path) -> None:
    assert browsers_wanted(load_settings({"LONGSTOP_SOURCES": str(tmp_path / "none.yaml")}, {})) == set()


def test_no_enabled_site_is_a_choice_and_not_in_the_way(tmp_path: Path) -> None:
    (check,) = check_sources(sources_file(tmp_path, enabled="false"))

    assert check.verdict is CheckStatus.MISSING
    assert "longstop demo" in check.advice
    assert is_ready([check])


@pytest.mark.parametrize(
    ("changed", "advice"),
    [
        ({"permission": "null"}, "enabled without permission"),
        ({"adapter": "krex"}, "did you mean crex?"),
        ({"enabled": "perhaps"}, "write true or false"),
    ],
)
def test_a_site_that_cannot_be_read_is_in_the_way(tmp_path: Path, changed: dict[str, str], advice: str) -> None:
    (check,) = check_sources(sources_file(tmp_path, **changed))

    assert check.is_problem
    assert advice in check.advice


def test_a_file_that_is_not_there_is_in_the_way(tmp_path: Path) -> None:
    (check,) = check_sources(tmp_path / "nowhere.yaml")

    assert check.is_problem
    assert "LONGSTOP_SOURCES" in check.advice


def test_a_data_directory_may_exist_or_not_and_is_never_created(tmp_path: Path) -> None:
    there = check_data_directory(tmp_path, OURS)
    to_be = check_data_directory(tmp_path / "a" / "b", None)

    assert there.verdict is to_be.verdict is CheckStatus.OK
    assert there.found.endswith("in use by the scraper longstop, pid 4712, data directory /srv/longstop")
    assert to_be.found.endswith("will be created")
    assert not (tmp_path / "a").exists()


def test_a_file_in_the_place_of_the_directory_is_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("")

    assert check_data_directory(tmp_path / "data", None).is_problem


@pytest.mark.parametrize(
    ("holder", "verdict", "found"),
    [
        (None, CheckStatus.OK, "8700 is free"),
        (OURS, CheckStatus.OK, "8700 is in use by longstop, pid 4712, data directory /srv/longstop"),
        (ANOTHER, CheckStatus.WRONG, "8700 is in use by longstop, pid 4713, data directory /srv/another"),
        (STRANGER, CheckStatus.WRONG, "8700 is in use by nginx, pid 4711"),
    ],
)
def test_a_port_is_free_ours_or_used_by_a_named_process(
    holder: Holder | None, verdict: CheckStatus, found: str
) -> None:
    check = check_port("API port", 8700, "LONGSTOP_API_PORT", holder, DATA, is_needed=True)

    assert (check.verdict, check.found) == (verdict, found)
    assert ("LONGSTOP_API_PORT" in check.advice) == check.is_problem


def test_port_zero_is_always_free() -> None:
    assert check_port("API port", 0, "LONGSTOP_API_PORT", None, DATA, is_needed=True).verdict is CheckStatus.OK
