from pathlib import Path

import pytest

from longstop.doctor.base import Verdict, is_well
from longstop.doctor.holders import Holder
from longstop.doctor.place import (
    browsers_wanted,
    check_data_directory,
    check_port,
    check_settings,
    check_sources,
)
from longstop.fetching.browser.base import BrowserKind
from longstop.settings import load_settings

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
    assert (chosen.api.port, good.verdict) == (9000, Verdict.OK)
    assert (fallen, bad.verdict) == (None, Verdict.WRONG)
    assert "LONGSTOP_API_PORT is 'x'" in bad.advice
    assert "RETRY_OFTEN is unknown" in bad.advice


def test_an_enabled_site_is_told_with_the_leave_that_was_given(tmp_path: Path) -> None:
    (check,) = check_sources(sources_file(tmp_path))

    assert (check.name, check.verdict) == ("source crex", Verdict.OK)
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

    assert check.verdict is Verdict.MISSING
    assert "longstop demo" in check.advice
    assert is_well([check])


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

    assert check.is_in_the_way
    assert advice in check.advice


def test_a_file_that_is_not_there_is_in_the_way(tmp_path: Path) -> None:
    (check,) = check_sources(tmp_path / "nowhere.yaml")

    assert check.is_in_the_way
    assert "LONGSTOP_SOURCES" in check.advice


def test_a_data_directory_may_be_there_or_still_to_be_made_and_is_left_alone(tmp_path: Path) -> None:
    there = check_data_directory(tmp_path, OURS)
    to_be = check_data_directory(tmp_path / "a" / "b", None)

    assert there.verdict is to_be.verdict is Verdict.OK
    assert there.found.endswith("in use by the scraper longstop, pid 4712, at work on /srv/longstop")
    assert to_be.found.endswith("will be made")
    assert not (tmp_path / "a").exists()


def test_a_file_in_the_place_of_the_directory_is_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("")

    assert check_data_directory(tmp_path / "data", None).is_in_the_way


@pytest.mark.parametrize(
    ("holder", "verdict", "found"),
    [
        (None, Verdict.OK, "8700 is free"),
        (OURS, Verdict.OK, "8700 is taken by longstop, pid 4712, at work on /srv/longstop"),
        (ANOTHER, Verdict.WRONG, "8700 is taken by longstop, pid 4713, at work on /srv/another"),
        (STRANGER, Verdict.WRONG, "8700 is taken by nginx, pid 4711"),
    ],
)
def test_a_port_is_free_ours_or_taken_by_somebody_with_a_name(
    holder: Holder | None, verdict: Verdict, found: str
) -> None:
    check = check_port("API port", 8700, "LONGSTOP_API_PORT", holder, DATA, is_needed=True)

    assert (check.verdict, check.found) == (verdict, found)
    assert ("LONGSTOP_API_PORT" in check.advice) == check.is_in_the_way


def test_port_zero_is_always_free() -> None:
    assert check_port("API port", 0, "LONGSTOP_API_PORT", None, DATA, is_needed=True).verdict is Verdict.OK
