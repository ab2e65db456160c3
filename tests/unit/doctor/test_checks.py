import errno
import os
import sys
from pathlib import Path

import pytest

from longstop.doctor.checks import (
    BROWSER_PACKAGES,
    EARLIEST_SECONDS,
    Check,
    CheckStatus,
    browsers_wanted,
    check_browser_packages,
    check_chromium,
    check_clock,
    check_data_directory,
    check_display,
    check_fetching,
    check_memory,
    check_open_files,
    check_port,
    check_settings,
    check_sources,
    check_space,
    is_ready,
)
from longstop.doctor.holders import Holder
from longstop.fetching.browser.browser_policy_and_stats import BrowserKind
from longstop.settings import load_settings

CHROMIUM = Path("/usr/bin/chromium")


@pytest.mark.parametrize(
    ("check", "verdict"),
    [
        (check_fetching(""), CheckStatus.OK),
        (check_fetching("curl_cffi fails: no libcurl"), CheckStatus.WRONG),
        (check_clock(EARLIEST_SECONDS), CheckStatus.OK),
        (check_clock(0.0), CheckStatus.WRONG),
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


@pytest.mark.parametrize(("uid", "command"), [(0, "run apt-get install"), (1000, "run sudo apt-get install")])
def test_the_advice_is_a_command_for_this_user(uid: int, command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: uid)
    browser = check_chromium(BrowserKind.HEADLESS, None, "", is_needed=True)

    assert check_display(None, is_needed=True).advice == f"{command} xvfb"
    assert browser.advice == f"{command} chromium, or {sys.executable} -m playwright install chromium"


def test_a_missing_display_names_its_package_and_is_in_the_way_if_a_site_needs_it() -> None:
    optional, needed = (check_display(None, is_needed=is_needed) for is_needed in (False, True))

    assert optional.advice.endswith("apt-get install xvfb")
    assert is_ready([optional])
    assert needed.is_problem
    assert check_display("/usr/bin/Xvfb", is_needed=True).verdict is CheckStatus.OK


def test_the_browsers_that_the_test_script_installs_are_those_of_the_advice() -> None:
    script = (Path(__file__).parents[3] / "scripts" / "test").read_text()
    browsers = script.partition("\nBROWSERS=(")[2].partition(")")[0].split()

    assert browsers == [f"{kind}={package}" for kind, package in BROWSER_PACKAGES.items()]


def test_one_needed_thing_that_is_wrong_is_enough() -> None:
    assert is_ready([check_memory(10**9), check_display(None, is_needed=False)])
    assert not is_ready([check_memory(10**9), check_memory(1)])


@pytest.mark.parametrize(
    ("path", "problem", "verdict"),
    [
        (CHROMIUM, "", CheckStatus.OK),
        (CHROMIUM, "No usable sandbox!", CheckStatus.WRONG),
        (None, "no such program", CheckStatus.MISSING),
    ],
)
@pytest.mark.parametrize("is_needed", [True, False])
def test_a_browser_starts_or_not_and_is_in_the_way_if_a_site_needs_it(
    path: Path | None, problem: str, verdict: CheckStatus, is_needed: bool
) -> None:
    check = check_chromium(BrowserKind.HEADLESS, path, problem, is_needed=is_needed)

    assert check.verdict is verdict
    assert check.is_problem == (is_needed and verdict is not CheckStatus.OK)
    assert ("apt-get install chromium" in check.advice) is (path is None)
    assert bool(check.advice) == (verdict is not CheckStatus.OK)


def test_a_browser_as_root_runs_without_its_sandbox_and_that_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    check = check_chromium(BrowserKind.SHELL, CHROMIUM, "", is_needed=False)

    assert check.found == "/usr/bin/chromium starts, as root without its sandbox"


@pytest.mark.parametrize("is_needed", [True, False])
def test_a_missing_extra_is_in_the_way_if_a_site_is_read_by_a_browser(is_needed: bool) -> None:
    there = check_browser_packages([], is_needed=is_needed)
    missing = check_browser_packages(["playwright"], is_needed=is_needed)

    assert (there.verdict, there.advice) == (CheckStatus.OK, "")
    assert missing.verdict is CheckStatus.MISSING
    assert missing.is_problem is is_needed
    assert missing.found.startswith("playwright missing")
    assert missing.advice == f"run {sys.executable} -m pip install 'longstop[browser]'"


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
DEMO = Holder("longstop", 4714, Path("/srv/demo"), is_demo=True)
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
    assert (check.verdict, check.found) == (CheckStatus.MISSING, f"{tmp_path / 'nowhere.yaml'} not found")
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

    for path in (tmp_path / "data", tmp_path / "data" / "below"):
        check = check_data_directory(path, None)

        assert check.is_problem
        assert check.found == f"{tmp_path / 'data'} is a file, not a directory"
        assert check.advice == "choose another directory with --data or LONGSTOP_DATA"


def test_a_directory_of_other_files_that_others_can_read_is_refused_as_by_up(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("")
    tmp_path.chmod(0o755)

    check = check_data_directory(tmp_path, None)

    assert check.is_problem
    assert "chmod 700" in check.advice


@pytest.mark.parametrize("name", ["matches.db", "ops.db"])
def test_a_file_that_is_no_database_is_in_the_way(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("no database at all, but long enough to be read as one" * 100)

    check = check_data_directory(tmp_path, None)

    assert check.is_problem
    assert f"{tmp_path / name}: not an SQLite file" in check.advice


def test_a_database_of_another_user_is_in_the_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "matches.db").touch(mode=0o000)
    monkeypatch.setattr(
        os, "access", lambda path, mode: mode == os.F_OK or path.name != "matches.db"
    )  # root may read everything

    check = check_data_directory(tmp_path, None)

    assert check.is_problem
    assert check.found == f"{tmp_path / 'matches.db'} is not readable and writable"


def test_a_directory_below_one_of_another_user_is_in_the_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    closed, access, stat = tmp_path / "closed", os.access, Path.stat
    closed.mkdir()

    def denied_stat(self: Path, *, follow_symlinks: bool = True) -> os.stat_result:
        if closed in self.parents:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(self))
        return stat(self, follow_symlinks=follow_symlinks)

    monkeypatch.setattr(Path, "stat", denied_stat)  # root may read everything
    may = {closed: os.F_OK, closed / "sub": -1}
    monkeypatch.setattr(os, "access", lambda path, mode: access(path, mode) and mode == may.get(path, mode))

    check = check_data_directory(closed / "sub", None)

    assert check.is_problem
    assert check.found == f"{closed} is not readable and writable"


@pytest.mark.parametrize(
    ("holder", "verdict", "found"),
    [
        (None, CheckStatus.OK, "8700 is free"),
        (
            OURS,
            CheckStatus.OK,
            "8700 is in use by longstop, pid 4712, data directory /srv/longstop: this node is running",
        ),
        (DEMO, CheckStatus.OK, "8700 is in use by the running demo (pid 4714), which frees it when it ends"),
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
