"""What a deployment rejects before it starts any process."""

import sys
from pathlib import Path

import pytest

from longstop.errors import StorageError, UsageError
from longstop_lab.deployment import DeploymentOptions, check

NO_CHROMIUM = "no Chromium was found for browser kind shell: run longstop doctor"


def options_with(
    browser: str, *, by_http: tuple[str, ...] = (), executable: str = "/nowhere/chromium"
) -> DeploymentOptions:
    return DeploymentOptions(
        simulate=(),
        sites=("crex", "sofascore"),
        browser=browser,
        by_http=by_http,
        settings={"BROWSER_EXECUTABLE": executable},
    )


@pytest.mark.parametrize("by_http", [(), ("crex",)])
def test_a_missing_browser_is_an_error_before_anything_starts(by_http: tuple[str, ...]) -> None:
    with pytest.raises(UsageError, match=NO_CHROMIUM):
        check(options_with("shell", by_http=by_http))


def test_the_browser_of_the_environment_is_checked_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BROWSER_EXECUTABLE", "/nowhere/chromium")

    with pytest.raises(UsageError, match=NO_CHROMIUM):
        check(DeploymentOptions(simulate=(), browser="shell", settings={}))


def test_an_existing_browser_is_accepted(tmp_path: Path) -> None:
    (tmp_path / "chromium").touch()

    check(options_with("shell", executable=str(tmp_path / "chromium")))


@pytest.mark.parametrize(("browser", "by_http"), [("none", ()), ("shell", ("crex", "sofascore"))])
def test_reading_by_http_needs_no_browser(browser: str, by_http: tuple[str, ...]) -> None:
    check(options_with(browser, by_http=by_http))


def test_a_directory_that_contains_matches_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "matches.db").touch()

    with pytest.raises(UsageError, match="contains matches already"):
        check(DeploymentOptions(simulate=(), keep=tmp_path, settings={}))


def test_a_directory_that_cannot_be_kept_is_an_error_that_names_the_option_of_the_demo(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(StorageError, match=r"cannot use .* as data directory: .* choose another with --keep$"):
        check(DeploymentOptions(simulate=(), keep=tmp_path / "file" / "data", settings={}))


def test_missing_packages_are_installed_with_the_python_that_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("longstop_lab.deployment.missing_packages", lambda: ["playwright"])

    with pytest.raises(UsageError) as error:
        check(options_with("shell"))

    assert f"run {sys.executable} -m pip install 'longstop[browser]', or omit --browser" in str(error.value)
