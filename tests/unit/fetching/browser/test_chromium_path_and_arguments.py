"""Which Chromium is started, and with which arguments."""

import os
from pathlib import Path

import pytest

from longstop.fetching.browser import chromium_path_and_arguments
from longstop.fetching.browser.browser_policy_and_stats import BrowserKind
from longstop.fetching.browser.chromium_path_and_arguments import find_chromium, launch_arguments


def test_every_start_is_quiet() -> None:
    wanted = {
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--no-first-run",
        "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    }

    assert wanted <= set(launch_arguments())


@pytest.mark.parametrize("is_root", [True, False])
def test_the_sandbox_is_left_out_as_root_and_only_then(is_root: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0 if is_root else 1000)

    assert ("--no-sandbox" in launch_arguments()) is is_root


def test_nothing_says_that_a_program_steers_it() -> None:
    assert "--disable-blink-features=AutomationControlled" in launch_arguments()


def test_pages_share_a_process_only_if_asked_to() -> None:
    assert "--process-per-site" not in launch_arguments()
    assert "--process-per-site" in launch_arguments(is_process_per_site=True)


@pytest.mark.req("CAP-4")
def test_only_hosts_that_are_reachable_are_found() -> None:
    arguments = launch_arguments(reachable=("example.org", "127.0.0.1:8701", "127.0.0.1:8702"))

    assert "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE example.org" in arguments
    assert not any("host-resolver-rules" in each for each in launch_arguments())


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without any Chromium; its home."""
    monkeypatch.setattr(chromium_path_and_arguments, "_WRAPPED_PROGRAMS", tmp_path / "lib")
    return tmp_path


def _find(bare: Path, configured: str = "", **environment: str) -> Path | None:
    return find_chromium(BrowserKind.SHELL, configured, {"HOME": str(bare), "PATH": str(bare / "bin"), **environment})


def _put(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(mode=0o755)
    return path


def test_where_there_is_none_none_is_found(bare: Path) -> None:
    assert _find(bare) is None


def test_the_program_behind_a_script_comes_first_then_the_path_then_playwrights_own(bare: Path) -> None:
    own = _put(bare / ".cache/ms-playwright/chromium_headless_shell-1200/chrome-linux/headless_shell")
    found = [_find(bare)]
    path = _put(bare / "bin/chromium-headless-shell")
    found.append(_find(bare))
    behind = _put(bare / "lib/chromium-headless-shell")
    found.append(_find(bare))

    assert found == [own, path, behind]


def test_a_configured_one_counts_alone_even_if_it_is_missing(bare: Path) -> None:
    mine = _put(bare / "mine")
    _put(bare / "lib/chromium-headless-shell")

    assert _find(bare, str(mine)) == mine
    assert _find(bare, str(bare / "nowhere")) is None


def test_of_playwrights_own_the_newest_by_number_is_taken(bare: Path) -> None:
    for revision in ("999", "1200", "1187"):
        _put(bare / f".cache/ms-playwright/chromium_headless_shell-{revision}/chrome-linux/headless_shell")

    found = _find(bare)

    assert found is not None
    assert found.parts[-3] == "chromium_headless_shell-1200"


def test_playwrights_own_are_looked_for_where_its_variables_say(bare: Path) -> None:
    inside = "chromium_headless_shell-1200/chrome-linux/headless_shell"
    home = _put(bare / ".cache/ms-playwright" / inside)
    cache = _put(bare / "cache/ms-playwright" / inside)
    named = _put(bare / "browsers" / inside)
    is_cached = {"XDG_CACHE_HOME": str(bare / "cache")}

    assert _find(bare) == home
    assert _find(bare, **is_cached) == cache
    assert _find(bare, PLAYWRIGHT_BROWSERS_PATH=str(bare / "browsers"), **is_cached) == named
