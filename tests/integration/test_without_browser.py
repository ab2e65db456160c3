"""An installation without the extra `browser`: everything works but a browser, and what is missing is said at once."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from longstop.supervision.exit_codes import Exit
from tests.chaos.unreachable_site import unreachable_site

ROOT = Path(__file__).parents[2]
INSTALL = "pip install 'longstop[browser]'"
#: Python runs this in each process that it starts: to that process the packages are not installed.
BLOCKED = "import sys\nsys.modules.update(dict.fromkeys(('greenlet', 'playwright', 'playwright_stealth')))\n"
IMPORT_ALL = """\
import importlib, pkgutil, longstop.app, longstop.cli, longstop.doctor, longstop_lab
for package in (longstop.app, longstop.cli, longstop.doctor, longstop_lab):
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        importlib.import_module(module.name)
        print(module.name)
"""


@pytest.fixture
def without_browser(tmp_path: Path) -> dict[str, str]:
    """The environment of an installation without the extra, whose only source needs no browser."""
    (tmp_path / "sitecustomize.py").write_text(BLOCKED)
    return {**unreachable_site(tmp_path), "PYTHONPATH": str(tmp_path)}


def run(environ: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], env=environ, capture_output=True, text=True, timeout=50, check=False
    )


def read_by_browser(environ: dict[str, str]) -> None:
    """Let the source be read by a browser from now on."""
    file = Path(environ["LONGSTOP_SOURCES"])
    file.write_text(f"{file.read_text()}    browser: shell\n")


def test_every_module_behind_the_command_line_can_be_imported(without_browser: dict[str, str]) -> None:
    ended = run(without_browser, "-c", IMPORT_ALL)

    assert ended.returncode == 0, ended.stderr
    assert {"longstop.app.scraper", "longstop.cli.main", "longstop_lab.demo"} <= set(ended.stdout.splitlines())


@pytest.mark.parametrize("verb", ["up", "scraper"])
def test_a_source_that_needs_a_browser_stops_the_start_and_says_what_to_do(
    without_browser: dict[str, str], verb: str
) -> None:
    read_by_browser(without_browser)

    ended = run(without_browser, "-m", "longstop", verb)

    assert ended.returncode == Exit.SETTINGS
    assert ended.stderr.startswith("longstop: source crex of ")
    assert "needs a browser, but packages are missing: playwright, playwright_stealth. " in ended.stderr
    assert f"Run {INSTALL}" in ended.stderr
    assert len(ended.stderr.splitlines()) == 1


def test_a_demo_with_a_browser_says_what_to_do(without_browser: dict[str, str]) -> None:
    ended = run(without_browser, "-m", "longstop", "demo", "--browser", "shell", "--for", "1")

    assert ended.returncode == Exit.USAGE
    assert f"run {sys.executable} -m {INSTALL}, or omit --browser" in ended.stderr


@pytest.mark.parametrize("is_browsed", [True, False])
def test_doctor_says_what_to_do_and_whether_it_is_needed(without_browser: dict[str, str], is_browsed: bool) -> None:
    if is_browsed:
        read_by_browser(without_browser)

    ended = run({**without_browser, "BROWSER_EXECUTABLE": "/bin/true"}, "-m", "longstop", "doctor", "--json")

    checks = {check["name"]: check for check in json.loads(ended.stdout)["checks"]}
    packages = checks["browser, packages"]
    assert (packages["verdict"], packages["is_needed"]) == ("missing", is_browsed)
    assert packages["advice"] == f"run {sys.executable} -m {INSTALL}"


def test_what_the_product_needs_is_locked_without_a_browser_and_what_developers_need_with_one() -> None:
    product, developers = (
        {line.partition("==")[0] for line in (ROOT / f"requirements/{name}.txt").read_text().splitlines()}
        for name in ("run", "dev")
    )

    assert {"playwright", "playwright-stealth", "greenlet"} <= developers - product
