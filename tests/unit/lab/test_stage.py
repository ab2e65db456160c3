"""What a stage refuses before anything is started."""

from pathlib import Path

import pytest

from longstop.errors import UsageError
from longstop_lab.stage import StageOptions, check

NO_CHROMIUM = "there is no Chromium for a browser of the kind shell: ask longstop doctor"


def stage_with(browser: str, *, by_http: tuple[str, ...] = (), executable: str = "/nowhere/chromium") -> StageOptions:
    return StageOptions(
        simulate=(),
        sites=("crex", "sofascore"),
        browser=browser,
        by_http=by_http,
        settings={"BROWSER_EXECUTABLE": executable},
    )


@pytest.mark.parametrize("by_http", [(), ("crex",)])
def test_a_browser_that_is_not_there_is_missed_before_anything_starts(by_http: tuple[str, ...]) -> None:
    with pytest.raises(UsageError, match=NO_CHROMIUM):
        check(stage_with("shell", by_http=by_http))


def test_a_browser_of_the_environment_is_looked_for_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BROWSER_EXECUTABLE", "/nowhere/chromium")

    with pytest.raises(UsageError, match=NO_CHROMIUM):
        check(StageOptions(simulate=(), browser="shell", settings={}))


def test_a_browser_that_is_there_is_taken(tmp_path: Path) -> None:
    (tmp_path / "chromium").touch()

    check(stage_with("shell", executable=str(tmp_path / "chromium")))


@pytest.mark.parametrize(("browser", "by_http"), [("none", ()), ("shell", ("crex", "sofascore"))])
def test_who_reads_by_http_needs_no_browser(browser: str, by_http: tuple[str, ...]) -> None:
    check(stage_with(browser, by_http=by_http))


def test_a_directory_with_matches_is_used_once(tmp_path: Path) -> None:
    (tmp_path / "matches.db").touch()

    with pytest.raises(UsageError, match="holds matches already"):
        check(StageOptions(simulate=(), keep=tmp_path, settings={}))
