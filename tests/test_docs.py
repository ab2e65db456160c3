"""The papers keep up with the code: what a user can name is documented, and what the papers name exists."""

import asyncio
import os
import re
import shlex
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages

import pytest
import typer.main
from fastapi.routing import APIRoute
from typer.core import TyperGroup

import longstop
from longstop import errors
from longstop.api.server import build_app
from longstop.api.tokens import Secret
from longstop.cli.main import command_line
from longstop.settings import Leaf, Settings, known_variables, leaves
from longstop.supervision.exit_codes import Exit
from longstop.telemetry.events import Telemetry
from longstop_lab.simulator.faults import FaultKind
from tests import demo_svg
from tests.readers import ManualClock, MemoryHot, MemoryReader, a_health_cache, a_node_of

ROOT = Path(__file__).parents[1]
PAPERS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("scripts/*.md")])
README_LINES = 150

_LINK = re.compile(r"\]\(([^)\s]+)\)")
_FENCE = re.compile(r"^ *```(\w*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"(?<![\w./-])(longstop|scripts/\w+)((?: [^\n|>)#]*)?)")
_VERSION = re.compile(r"\d+\.\d+\.\d+")


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def by_name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def row_with(name: str, text: str) -> str:
    """Return the table row that begins with this name; empty when there is none."""
    return next((line for line in text.splitlines() if line.startswith(f"| `{name}` |")), "")


def options_of_verbs() -> dict[str, set[str]]:
    """Return every verb of the command line with its long options."""
    group = typer.main.get_command(command_line())
    assert isinstance(group, TyperGroup)
    return {
        name: {option for parameter in command.params for option in parameter.opts if option.startswith("--")}
        for name, command in group.commands.items()
    }


OPTIONS = options_of_verbs()


def section(text: str, heading: str) -> str:
    """Return what stands below a heading that begins so, up to the next heading of any depth."""
    _, _, below = text.partition(f"\n### `{heading}")
    return re.split(r"^#+ ", below, maxsplit=1, flags=re.MULTILINE)[0]


def default_of(leaf: Leaf) -> str:
    value: object = Settings()
    for part in leaf.path:
        value = getattr(value, part)
    return str(value).lower() if isinstance(value, bool) else str(value)


def telemetry_names() -> list[str]:
    for module in walk_packages(longstop.__path__, "longstop."):
        if not module.name.endswith("__main__"):
            import_module(module.name)
    bases = Telemetry.__subclasses__()
    kinds = [*bases, *(kind for base in bases for kind in base.__subclasses__())]
    return sorted(kind.name for kind in kinds if kind.__module__.startswith("longstop.") and hasattr(kind, "name"))


def error_names() -> list[str]:
    return [
        name for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, errors.LongstopError)
    ]


def routes() -> list[str]:
    reader, hot, clock = MemoryReader(), MemoryHot(), ManualClock()
    health_cache = asyncio.run(a_health_cache(reader, hot, clock))
    secret = Secret(bytes(32))
    built = build_app(a_node_of(reader, hot, clock), secret=secret, clock=clock, health=health_cache)
    found = [route for route in built.routes if isinstance(route, APIRoute)]
    return [f"{method} {route.path}" for route in found for method in sorted(route.methods or ())]


def commands(text: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the program and the words of every command of ours in the plain fenced blocks of a paper."""
    for language, block in _FENCE.findall(text):
        if not language:
            for program, words in _COMMAND.findall(block):
                yield program, shlex.split(words)


def complaints(program: str, words: list[str]) -> Iterator[str]:
    if program != "longstop" and not os.access(ROOT / program, os.X_OK):
        yield f"{program} is no script"
    elif program == "longstop" and words[0] not in OPTIONS:
        yield f"longstop {words[0]} is no verb"
    elif program in ("longstop", "scripts/run"):
        known = OPTIONS["demo" if program == "scripts/run" else words[0]]
        yield from (f"{program} {words[0]} has no {word}" for word in words if word[:2] == "--" and word not in known)


def anchors(paper: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", paper.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("leaf", list(leaves()), ids=lambda leaf: leaf.variable)
def test_every_setting_is_documented_with_its_place_and_default(leaf: Leaf) -> None:
    row = row_with(leaf.variable, read("docs/reference/settings.md"))

    assert f"| `{'.'.join(leaf.path)}` |" in row
    assert default_of(leaf) in row.replace("`", "")


@pytest.mark.parametrize("variable", known_variables())
def test_every_environment_variable_is_documented(variable: str) -> None:
    assert row_with(variable, read("docs/reference/settings.md"))


@pytest.mark.parametrize("verb", OPTIONS)
def test_every_verb_is_documented_with_its_options(verb: str) -> None:
    text = section(read("docs/reference/cli.md"), f"longstop {verb}")

    missing = [option for option in OPTIONS[verb] - {"--help"} if f"`{option}" not in text]
    assert text
    assert not missing


@pytest.mark.parametrize("verb", OPTIONS)
def test_the_readme_lists_every_verb(verb: str) -> None:
    assert row_with(f"longstop {verb}", read("README.md"))


@pytest.mark.parametrize("route", routes())
def test_every_route_is_documented(route: str) -> None:
    assert row_with(route, read("docs/reference/api.md"))


@pytest.mark.parametrize("name", error_names())
def test_every_error_is_documented(name: str) -> None:
    assert row_with(name, read("docs/reference/errors.md"))


@pytest.mark.parametrize("name", telemetry_names())
def test_every_telemetry_event_is_documented(name: str) -> None:
    assert row_with(name, read("docs/reference/events.md"))


@pytest.mark.parametrize("code", Exit)
def test_every_exit_code_is_documented(code: Exit) -> None:
    assert f"\n| {code.value} | " in read("docs/howto/run-in-production.md")


@pytest.mark.parametrize("kind", FaultKind)
def test_every_fault_is_documented(kind: FaultKind) -> None:
    assert f"`{kind}`" in row_with("kind", read("docs/reference/simulator.md"))


@pytest.mark.parametrize("paper", PAPERS, ids=by_name)
def test_every_link_leads_somewhere(paper: Path) -> None:
    links = [link for link in _LINK.findall(paper.read_text(encoding="utf-8")) if "://" not in link]

    broken = []
    for link in links:
        name, _, anchor = link.partition("#")
        target = paper.parent / name if name else paper
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(link)
    assert not broken


@pytest.mark.parametrize("paper", PAPERS, ids=by_name)
def test_every_command_in_the_papers_exists(paper: Path) -> None:
    found = [each for command in commands(paper.read_text(encoding="utf-8")) for each in complaints(*command)]

    assert not found


@pytest.mark.parametrize(
    ("block", "complaint"),
    [
        ("longstop dance", "longstop dance is no verb"),
        ("longstop demo --dance", "longstop demo has no --dance"),
        ("TOKEN=$(longstop token --dance x)", "longstop token has no --dance"),
        ("scripts/run --dance", "scripts/run --dance has no --dance"),
        ("scripts/dance", "scripts/dance is no script"),
    ],
)
def test_a_command_that_does_not_exist_is_noticed(block: str, complaint: str) -> None:
    found = [each for command in commands(f"```\n{block}\n```\n") for each in complaints(*command)]

    assert found == [complaint]


def test_the_readme_stays_short() -> None:
    assert len(read("README.md").splitlines()) < README_LINES


def test_project_package_and_changelog_name_the_same_version() -> None:
    project = re.search(r'^version = "(.+)"$', read("pyproject.toml"), re.MULTILINE)
    newest = read("CHANGELOG.md").partition("\n## ")[2]
    changelog = _VERSION.search(newest)

    assert project
    assert changelog
    assert project[1] == longstop.__version__ == changelog[0]


def test_the_picture_of_the_demo_is_current_and_loads_nothing_from_other_hosts() -> None:
    picture = read("docs/demo.svg")
    hosts = set(re.findall(r"https?://([^/\"' )]+)", picture))

    assert picture == demo_svg.render(), "run python -m tests.demo_svg"
    assert hosts <= {"www.w3.org"}  # the name of the format, which is not loaded


def test_the_how_to_shows_the_whole_test_of_the_example() -> None:
    (shown,) = [code for language, code in _FENCE.findall(read("docs/howto/add-a-source.md")) if language == "python"]

    assert read("examples/test_kickoff.py").endswith(f'"""\n\n{shown}')
