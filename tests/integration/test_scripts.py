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
"-m pytest"* | "-m tests"* | "-m bench"* | *install*) echo "${0##*/} $*" >>"$SAID" ;;
"- "*) echo "$MISSING" ;;
"-u") echo 0 ;;
esac
case "$*" in
*"$INTERRUPTED"*)
    trap 'exit 2' INT
    kill -INT 0
    ;;
esac
case "$*" in
"-m tests"*"$FAILING"*)
    echo "$FAILING" >>"$3"
    exit 1
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


def run(
    clone: Path,
    script: str,
    *words: str,
    missing: str = "",
    interrupted: str = "never",
    failing: str = "never",
) -> tuple[int, list[str], str]:
    """Return a script's exit code, what it has started, and what it printed."""
    said = clone / "said"
    environ = {
        "PATH": f"{clone}/bin:{os.environ['PATH']}",
        "SAID": str(said),
        "MISSING": missing,
        "INTERRUPTED": interrupted,
        "FAILING": failing,
    }
    ended = subprocess.run(
        [clone / "scripts" / script, *words],
        env=environ,
        start_new_session=True,
        # A background job of a shell ignores SIGINT, and so would its children.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        timeout=50,
        stdout=subprocess.PIPE,
        text=True,
    )
    lines = said.read_text().splitlines() if said.exists() else []
    return ended.returncode, [line for line in lines if "-m pip" not in line], ended.stdout


def test_all_tests_are_three_suites(clone: Path) -> None:
    code, said, _ = run(clone, "test")

    assert code == 0
    assert [line.split()[2] for line in said] == ["pytest", "tests.repeat_failed", "tests.repeat_failed"]


def test_a_failed_suite_fails_the_run_after_the_others_and_flaky_tests_are_listed_last(clone: Path) -> None:
    code, said, printed = run(clone, "test", failing="tests/chaos")

    assert (code, len(said)) == (1, 3)
    assert printed.splitlines()[-2:] == ["flaky: tests/chaos", "flaky: tests/chaos"]


def test_named_tests_are_never_repeated(clone: Path) -> None:
    _, said, _ = run(clone, "test", "tests/chaos", "-k", "kill")

    assert said == ["python -m pytest tests/chaos -k kill"]


@pytest.mark.parametrize("missing", ["", "chromium"])
def test_ctrl_c_ends_a_script_and_starts_nothing_more(clone: Path, missing: str) -> None:
    code, said, _ = run(clone, "test", missing=missing, interrupted="-q -y" if missing else "--dist worksteal")

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
    code, said, _ = run(clone, script, *words, missing="chromium-headless-shell")

    assert code == 0
    assert [line.split()[-1] for line in said[:-1]] == ["chromium-headless-shell"] * is_brought
    assert said[-1].startswith("python -m bench")
