"""A data directory of a former version opens, and nothing in it is lost or changed."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.golden import product
from tests.golden.contracts import copied, directory_names, live_events, moment_of
from tests.golden.files import DIRECTORIES
from tests.golden.make_data_directory import MATCHES, make, served
from tests.golden.tables import dump

#: Values that identify the machine that recorded a file.
MACHINE = (b"/tmp/", b"/home/", f"{Path.home()}/".encode())


@pytest.fixture(params=directory_names())
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def recorded(name: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((DIRECTORIES / f"{name}.json").read_text(encoding="utf-8"))
    return document


async def test_every_row_is_kept(name: str, tmp_path: Path) -> None:
    directory = copied(name, tmp_path)

    await product.migrate(directory)

    found, wanted = dump(directory), recorded(name)["tables"]
    assert found.keys() == wanted.keys()
    for table, rows in wanted.items():
        assert found[table] == rows, table


#: Fields of answers that the recorded version did not have yet.
NEW_FIELDS = ("reliable", "reliability_reasons")


def without_new(answer: Any) -> Any:
    """Return an answer without the fields that were added since."""
    if isinstance(answer, dict):
        return {name: without_new(value) for name, value in answer.items() if name not in NEW_FIELDS}
    return [without_new(each) for each in answer] if isinstance(answer, list) else answer


async def test_every_answer_is_as_before(name: str, tmp_path: Path) -> None:
    directory = copied(name, tmp_path)

    await product.migrate(directory)

    found, wanted = await served(directory, moment_of(name)), recorded(name)["answers"]
    assert found.keys() == wanted.keys()
    for path, answer in wanted.items():
        assert without_new(found[path]) == answer, path


async def test_a_match_goes_on_where_the_former_version_left_it(name: str, tmp_path: Path) -> None:
    directory, plan = copied(name, tmp_path), MATCHES[0]
    whole = tmp_path / "whole"

    await product.migrate(directory)
    await product.poll(directory, product.rest_of(plan))
    await product.poll(whole, product.whole_of(plan))

    continued = live_events(dump(directory))
    assert len(continued) > len(live_events(recorded(name)["tables"]))
    assert continued == live_events(dump(whole))


def test_such_a_directory_can_still_be_made(name: str, tmp_path: Path) -> None:
    directory = tmp_path / "made"

    make(directory)

    made, wanted = dump(directory), recorded(name)["tables"]
    for table in ("scraper_errors", "recoveries", "scraper_health_log", "commands", "standing_orders"):
        assert made[table] == wanted[table], table
    # The version that wrote it did not learn the names of espncricinfo.
    assert [name for name in wanted["names"] if name not in made["names"]] == []
    for match in wanted["matches"]:
        found, former = (live_events(each, match["match_id"]) for each in (made, wanted))
        assert [_shared(now, then) for now, then in zip(found, former, strict=True)] == former, match


def _shared(now: dict[str, Any], then: dict[str, Any]) -> dict[str, Any]:
    """Return an event without the optional fields that its content has only now, and which change its hash."""
    content = {name: value for name, value in now["content"].items() if name in then["content"]}
    is_extended = len(content) < len(now["content"])
    return {**now, "content": content, "content_hash": then["content_hash"] if is_extended else now["content_hash"]}


def test_a_recorded_directory_holds_corrections_and_nothing_about_its_machine(name: str) -> None:
    versions = recorded(name)["tables"]["event_versions"]
    files = [path for path in (DIRECTORIES / name).rglob("*") if path.is_file()]

    assert {each["op"] for each in versions} == {"insert", "update", "void"}
    assert sum(path.stat().st_size for path in files) < 400_000
    assert not [path for path in files for sign in MACHINE if sign in path.read_bytes()]
