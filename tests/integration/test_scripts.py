"""The scripts, with everything that they start replaced: what they start, and what ends them."""

import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
#: Programs that are there, so that no script brings them.
PROGRAMS = ("openssl", "strace", "promtool", "Xvfb", "faketime")
#: Writes down which suite or installation it is to do, and does as a real one does when Ctrl-C reaches everybody.
STUB = """\
#!/bin/bash
case "$*" in
"-m pytest"* | "-m bench"* | *install*) echo "${0##*/} $*" >>"$SAID" ;;
"- "*) echo "$MISSING" ;;
"-u") echo 0 ;;
esac
case "$*" in
*"$INTERRUPTED"*)
    trap 'exit 2' INT
    kill -INT 0
    ;;
esac
"""


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A project of root's whose Python and package manager only say what they were asked for."""
    shutil.copytree(ROOT / "scripts", tmp_path / "scripts")
    shutil.copytree(ROOT / "requirements", tmp_path / "requirements")
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for stub in (".venv/bin/python", "bin/apt-get", "bin/id", *(f"bin/{name}" for name in PROGRAMS)):
        path = tmp_path / stub
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(STUB)
        path.chmod(0o755)
    return tmp_path


def run(clone: Path, script: str, *words: str, missing: str = "", interrupted: str = "never") -> tuple[int, list[str]]:
    """Return a script's exit code, and what it has started."""
    said = clone / "said"
    environ = {
        "PATH": f"{clone}/bin:{os.environ['PATH']}",
        "SAID": str(said),
        "MISSING": missing,
        "INTERRUPTED": interrupted,
    }
    ended = subprocess.run(
        [clone / "scripts" / script, *words], env=environ, start_new_session=True, timeout=50, capture_output=True
    )
    lines = said.read_text().splitlines() if said.exists() else []
    return ended.returncode, [line for line in lines if "-m pip" not in line]


def test_all_tests_are_three_suites(clone: Path) -> None:
    code, said = run(clone, "test")

    assert (code, len(said)) == (0, 3)
    assert all(line.startswith("python -m pytest") for line in said)


@pytest.mark.parametrize("missing", ["", "chromium"])
def test_ctrl_c_ends_a_script_and_starts_nothing_more(clone: Path, missing: str) -> None:
    code, said = run(clone, "test", missing=missing, interrupted="-q -y" if missing else "-n auto")

    assert code == 128 + signal.SIGINT
    assert len(said) == 1


@pytest.mark.parametrize(
    ("script", "words", "is_brought"),
    [
        ("chaos", ("processes", "--seed", "7"), True),
        ("chaos", ("cuts", "stubborn"), True),
        ("chaos", ("cuts",), False),
        ("bench", ("health", "--quick"), True),
        ("bench", ("live",), False),
        ("soak", ("--minutes", "1"), True),
        ("pages", (), True),
    ],
)
def test_a_script_brings_the_browser_that_it_needs(
    clone: Path, script: str, words: tuple[str, ...], is_brought: bool
) -> None:
    code, said = run(clone, script, *words, missing="chromium-headless-shell")

    assert code == 0
    assert [line.split()[-1] for line in said[:-1]] == ["chromium-headless-shell"] * is_brought
    assert said[-1].startswith("python -m bench")
