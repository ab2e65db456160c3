"""The last word of `up` on a real data directory, and what the command line makes of it."""

import asyncio
from contextlib import aclosing

import pytest
from typer.testing import CliRunner, Result

from longstop.app.up import close_heartbeat
from longstop.cli.main import command_line
from longstop.clock import SystemClock
from longstop.model.scraper_report import NodeBeat
from longstop.storage.directory import DataDirectory
from longstop.storage.sqlite.hot_view_and_heartbeats import SqliteHotReader, SqliteHotWriter
from longstop.telemetry.bus import Bus
from tests.integration.test_cli_operating import beat, node
from tests.memory import MemorySink

__all__ = ["node"]


def run(directory: DataDirectory, *words: str) -> Result:
    return CliRunner().invoke(command_line(), [*words, "--data", str(directory.path)], env={"COLUMNS": "120"})


async def beats(directory: DataDirectory) -> list[NodeBeat]:
    async with aclosing(SqliteHotReader(directory.hot_db)) as reader:
        return list(await reader.beats())


@pytest.fixture
def sink() -> MemorySink:
    return MemorySink()


@pytest.mark.req("FR-012")
def test_after_an_orderly_end_health_is_down_and_orders_are_refused_at_once(
    node: DataDirectory, sink: MemorySink
) -> None:
    beat(node)

    asyncio.run(close_heartbeat(node, Bus([sink])))
    health, order = run(node, "health"), run(node, "pause", "crex")

    assert health.exit_code == 2
    assert health.stdout.startswith("down\n  the last scraper stopped ")
    assert health.stdout.endswith(" s ago, as requested\n")
    assert order.exit_code == 3
    assert order.stderr.startswith("longstop: no scraper is running")
    assert not sink.events


def test_heartbeats_of_another_node_and_of_a_running_scraper_stay_unchanged(
    node: DataDirectory, sink: MemorySink
) -> None:
    beat(node)
    now = SystemClock().now()
    hot = SqliteHotWriter(node.hot_db, on_failure=lambda error: pytest.fail(str(error)))
    hot.beat(NodeBeat(node="z", pid=7, started_at=now, beat_at=now, rss_bytes=1, errors_last_minute=0))
    asyncio.run(hot.aclose())

    with node.lock():
        asyncio.run(close_heartbeat(node, Bus([sink])))
        during = {each.node: each.is_over for each in asyncio.run(beats(node))}
    asyncio.run(close_heartbeat(node, Bus([sink])))
    after = {each.node: each.is_over for each in asyncio.run(beats(node))}

    assert during == {node.node_id: False, "z": False}
    assert after == {node.node_id: True, "z": False}


def test_where_no_scraper_ever_was_no_live_view_is_made(node: DataDirectory, sink: MemorySink) -> None:
    asyncio.run(close_heartbeat(node, Bus([sink])))

    assert not node.hot_db.exists()
    assert not sink.events


def test_an_unreadable_live_view_is_reported_and_ends_nothing(node: DataDirectory, sink: MemorySink) -> None:
    node.hot_db.write_text("no database at all, but long enough to be taken for one" * 100)

    asyncio.run(close_heartbeat(node, Bus([sink])))

    assert [event.name for event in sink.events] == ["hot_view.failed"]
