"""A third-party source on the command line: `parse`, and what `up` refuses before it starts."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
SOURCES = (EXAMPLES / "sources.yaml").read_text(encoding="utf-8")
#: An operator may enable it: it is no real site.
ENABLED = SOURCES.replace("enabled: false", "enabled: true").replace("permission: null", "permission: our own example")


def longstop(tmp_path: Path, *arguments: str, sources: str = SOURCES) -> subprocess.CompletedProcess[str]:
    file = tmp_path / "sources.yaml"
    file.write_text(sources, encoding="utf-8")
    environ = os.environ | {
        "PYTHONPATH": f"{tmp_path}{os.pathsep}{EXAMPLES}",
        "LONGSTOP_SOURCES": str(file),
        "LONGSTOP_DATA": str(tmp_path / "data"),
    }
    command = [sys.executable, "-m", "longstop", *arguments]
    return subprocess.run(command, env=environ, cwd=tmp_path, capture_output=True, text=True, timeout=50, check=False)


def page(name: str) -> str:
    return str(EXAMPLES / "pages" / f"{name}.json")


def test_parse_uses_the_configured_source(tmp_path: Path) -> None:
    live = longstop(tmp_path, "parse", "kickoff", "live", page("live"))
    goals = longstop(tmp_path, "parse", "kickoff", "incidents", page("incidents"))

    assert (live.returncode, live.stderr) == (0, "")
    assert json.loads(live.stdout)["score"] == {"home": 1, "away": 0}
    assert json.loads(goals.stdout)["items"][0]["content"]["scorer"] == "p9"


def test_parse_says_that_a_source_or_a_kind_of_body_does_not_exist(tmp_path: Path) -> None:
    source = longstop(tmp_path, "parse", "kickof", "live", page("live"))
    kind = longstop(tmp_path, "parse", "kickoff", "lineups", page("live"))

    assert (source.returncode, kind.returncode) == (64, 64)
    assert source.stderr.startswith("longstop: unknown source kickof; known: ")
    assert kind.stderr.startswith("longstop: kickoff has no lineups resource")


@pytest.mark.parametrize(
    ("code", "stderr"),
    [
        ("raise KeyError('main')", "importing broken:Source raised KeyError('main') ("),
        (
            "class Source:\n    def __init__(self, config): self.name = {}['x']",
            "raised KeyError('x') in its constructor (",
        ),
        (
            "from kickoff import *\nclass Source(KickoffSource):\n    def parse(self, query, body): return {}['x']",
            ": KeyError in ",
        ),
        (
            "from kickoff import *\nclass Source(KickoffSource):\n    def parse(self, query, body): return object()",
            "returned a view",
        ),
    ],
)
def test_an_error_in_a_plug_in_is_one_sentence_without_a_traceback(tmp_path: Path, code: str, stderr: str) -> None:
    (tmp_path / "broken.py").write_text(code, encoding="utf-8")
    sources = SOURCES.replace("kickoff:KickoffSource", "broken:Source")
    if "kickoff" not in code:
        sources = sources.partition("    metadata")[0]

    done = longstop(tmp_path, "parse", "kickoff", "live", page("live"), sources=sources)

    assert done.returncode != 0
    assert stderr in done.stderr
    assert "Traceback" not in done.stderr
    assert "returned a view" in stderr or "broken.py, line " in done.stderr


def test_a_kind_that_does_not_exist_lists_those_that_the_source_offers(tmp_path: Path) -> None:
    done = longstop(tmp_path, "parse", "kickoff", "lve", page("live"))

    assert done.returncode == 64
    assert done.stderr.endswith("the kinds are list, live, incidents\n")


@pytest.mark.parametrize(
    ("wrong", "right", "stderr"),
    [
        ("kickoff:KickofSource", "kickoff:KickoffSource", "source kickoff: cannot load kickoff:KickofSource"),
        ("kickoff.KickoffSource", "kickoff:KickoffSource", "nor of the form package.module:Class: "),
        ("api_ur:", "api_url:", "unknown metadata key api_ur, did you mean api_url? Valid keys: api_url"),
    ],
)
def test_up_does_not_start_with_a_source_that_cannot_work(tmp_path: Path, wrong: str, right: str, stderr: str) -> None:
    done = longstop(tmp_path, "up", sources=ENABLED.replace(right, wrong))

    assert done.returncode == 78
    assert stderr in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "data").exists()
