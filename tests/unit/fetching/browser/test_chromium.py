"""Which Chromium is started, and with which arguments."""

from pathlib import Path

import pytest

from longstop.fetching.browser import chromium
from longstop.fetching.browser.chromium import BrowserKind, find_chromium, launch_arguments


@pytest.mark.parametrize("kind", BrowserKind)
def test_every_start_is_quiet(kind: BrowserKind) -> None:
    wanted = {
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--no-first-run",
        "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    }

    assert wanted <= set(launch_arguments(kind, is_root=False))


@pytest.mark.parametrize("is_root", [True, False])
def test_the_sandbox_is_left_out_as_root_and_only_then(is_root: bool) -> None:
    assert ("--no-sandbox" in launch_arguments(BrowserKind.SHELL, is_root=is_root)) is is_root


def test_pages_share_a_process_only_if_asked_to() -> None:
    assert "--process-per-site" not in launch_arguments(BrowserKind.SHELL, is_root=False)
    assert "--process-per-site" in launch_arguments(BrowserKind.SHELL, is_root=False, is_process_per_site=True)


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without any Chromium; its home."""
    monkeypatch.setattr(chromium, "_BEHIND_SCRIPTS", tmp_path / "lib")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    return tmp_path


def _put(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(mode=0o755)
    return path


def test_where_there_is_none_none_is_found(bare: Path) -> None:
    assert find_chromium(BrowserKind.SHELL, home=bare) is None


def test_the_program_behind_a_script_comes_first_then_the_path_then_playwrights_own(bare: Path) -> None:
    own = _put(bare / ".cache/ms-playwright/chromium_headless_shell-1200/chrome-linux/headless_shell")
    found = [find_chromium(BrowserKind.SHELL, home=bare)]
    path = _put(bare / "bin/chromium-headless-shell")
    found.append(find_chromium(BrowserKind.SHELL, home=bare))
    behind = _put(bare / "lib/chromium-headless-shell")
    found.append(find_chromium(BrowserKind.SHELL, home=bare))

    assert found == [own, path, behind]


def test_a_configured_one_counts_alone_even_if_it_is_missing(bare: Path) -> None:
    mine = _put(bare / "mine")
    _put(bare / "lib/chromium-headless-shell")

    assert find_chromium(BrowserKind.SHELL, str(mine), bare) == mine
    assert find_chromium(BrowserKind.SHELL, str(bare / "nowhere"), bare) is None
