"""The simulated sofascore over real sockets, beside the sites of cricket."""

import asyncio
import base64
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from longstop.clock import SystemClock
from longstop.errors import UsageError
from longstop_lab.simulator.faults import Fault, FaultKind
from longstop_lab.simulator.service import RunningSimulator, SimulatorOptions, running_simulator
from longstop_lab.simulator.sites.sofascore.site import LIST
from longstop_lab.simulator.truth import read_truth
from tests.integration.test_simulator import LIST as CREX_LIST
from tests.integration.test_simulator import Client, client_of

UPGRADE = (
    "GET /push/{key} HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)


@pytest.fixture
async def simulator() -> AsyncIterator[RunningSimulator]:
    async with running_simulator(SimulatorOptions(sites="sofascore", matches=12, seed=3, speed=100)) as running:
        yield running


@pytest.fixture
async def client(simulator: RunningSimulator) -> AsyncIterator[Client]:
    async with client_of(simulator.sofascore_port) as connected:
        yield connected


def befall(simulator: RunningSimulator, kind: FaultKind, **more: Any) -> None:
    simulator.faults.add(Fault(kind=kind, **more), SystemClock().now())


async def listed(client: Client) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = (await client.ask("GET", LIST)).json()["events"]
    return events


async def test_football_is_shown_at_sofascore_and_nowhere_else(simulator: RunningSimulator, client: Client) -> None:
    async with client_of(simulator.port) as crex:
        on_crex = (await crex.ask("GET", CREX_LIST)).json()

    assert on_crex == {}
    assert await listed(client)


async def test_two_sports_take_turns_and_stop_together(tmp_path: Path) -> None:
    options = SimulatorOptions(sites="crex,sofascore", matches=5, kinds=("t20", "football"), truth=tmp_path / "truth")
    async with running_simulator(options) as running, client_of(running.port) as crex:
        status = (await crex.ask("POST", "/_sim/freeze")).json()

    assert [match["sport"] for match in status["matches"]] == 3 * ["cricket"] + 2 * ["football"]
    assert status["is_frozen"]
    assert running.football.is_frozen
    assert {line.match for line in read_truth(tmp_path / "truth")} >= running.football.boards.keys()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (SimulatorOptions(kinds=("football",)), "only sofascore shows football"),
        (SimulatorOptions(sites="sofascore", kinds=("t20",)), "sofascore shows no cricket"),
        (SimulatorOptions(sites="sofascore", files=(Path("x"),)), "sofascore shows no cricket"),
        (SimulatorOptions(sites="sofascore,ogol"), "'ogol' is not a choice of sites"),
        (SimulatorOptions(poll_seconds=0), "must be greater than 0"),
    ],
)
async def test_what_no_site_shows_is_an_error(options: SimulatorOptions, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        async with running_simulator(options):
            raise AssertionError("it started")


async def test_a_tag_saves_the_second_answer(client: Client) -> None:
    await client.ask("POST", "/_sim/freeze")
    tag = (await client.ask("GET", LIST)).headers["ETag"]
    await client.send_raw(f"GET {LIST} HTTP/1.1\r\nIf-None-Match: {tag}\r\nConnection: close\r\n\r\n".encode())

    answer = await client.rest()
    assert answer.startswith(b"HTTP/1.1 304 Not Modified\r\n")
    assert answer.endswith(b"\r\n\r\n")


async def test_a_fault_about_a_match_befalls_all_its_calls(simulator: RunningSimulator, client: Client) -> None:
    one, two, *_ = [event["id"] for event in await listed(client)]
    befall(simulator, FaultKind.STATUS, match=str(one))

    parts = ("", "/incidents", "/lineups", "/statistics")
    statuses = [(await client.ask("GET", f"/api/v1/event/{one}{part}")).status for part in parts]

    assert statuses == [503] * 4
    assert (await client.ask("GET", f"/api/v1/event/{two}")).status == 200


async def test_a_match_may_be_missing_from_the_list_and_another_be_shown_in_its_place(
    simulator: RunningSimulator, client: Client
) -> None:
    one, *others = [event["id"] for event in await listed(client)]
    befall(simulator, FaultKind.UNLISTED, match=str(one), path=LIST)
    befall(simulator, FaultKind.OTHER_MATCH, path=f"/api/v1/event/{one}")

    still = [event["id"] for event in await listed(client)]
    shown = (await client.ask("GET", f"/api/v1/event/{one}")).json()["event"]["id"]

    assert one not in still
    assert set(others) & set(still)
    assert shown != one


@pytest.mark.parametrize(("kind", "field"), [(FaultKind.ZEROED, "homeScore"), (FaultKind.SWAPPED, "homeTeam")])
async def test_scores_may_be_zero_and_teams_exchanged(
    simulator: RunningSimulator, client: Client, kind: FaultKind, field: str
) -> None:
    before = (await listed(client))[0]
    befall(simulator, kind)

    after = (await client.ask("GET", f"/api/v1/event/{before['id']}")).json()["event"]

    if kind is FaultKind.ZEROED:
        assert set(after[field].values()) == {0}
    else:
        assert after[field]["id"] == before["awayTeam"]["id"]


async def test_an_older_copy_knows_nothing_of_what_came_after(simulator: RunningSimulator, client: Client) -> None:
    begun = simulator.football.twin().now.timestamp()
    befall(simulator, FaultKind.OLDER, seconds=1e9, path=LIST)

    assert max(event["changes"]["changeTimestamp"] for event in await listed(client)) <= begun


async def test_the_push_channel_speaks_and_then_breaks_off(simulator: RunningSimulator) -> None:
    options = SimulatorOptions(sites="sofascore", matches=12, seed=3, speed=300, drop_seconds=2.0)
    async with running_simulator(options) as running, asyncio.timeout(20):
        key = next(key for key, board in running.football.boards.items() if board.status == "1st half")
        reader, writer = await asyncio.open_connection("127.0.0.1", running.sofascore_port)
        writer.write(UPGRADE.format(key=key).encode())
        head = await reader.readuntil(b"\r\n\r\n")
        said = await reader.read()
        writer.close()

    assert head.startswith(b"HTTP/1.1 101 Switching Protocols\r\n")
    # What the protocol's own example answers to this key.
    assert b"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n" in head
    assert said[0] == 0x81
    assert b'"changes.changeTimestamp":' in said


@pytest.mark.parametrize("fault", [None, FaultKind.STATUS])
async def test_a_channel_that_is_not_there_is_refused_in_http(
    simulator: RunningSimulator, client: Client, fault: FaultKind | None
) -> None:
    key = next(iter(simulator.football.boards)) if fault else "1"
    if fault:
        befall(simulator, fault, path="/push/")
    await client.send_raw(UPGRADE.format(key=key).encode())

    answer = await client.receive()

    assert answer.status == (503 if fault else 404)
    assert msgspec.json.decode(answer.body)["error"]


async def test_the_key_of_a_channel_must_be_a_key(simulator: RunningSimulator, client: Client) -> None:
    nonce = base64.b64encode(b"x" * 16).decode()
    await client.send_raw(
        f"GET /push/abc HTTP/1.1\r\nUpgrade: websocket\r\nSec-WebSocket-Key: {nonce}\r\n\r\n".encode()
    )

    assert (await client.receive()).status == 404
