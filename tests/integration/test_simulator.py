"""The simulator over real sockets, asked by a client that sees every byte."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import Struct

from longstop.clock import SystemClock, from_iso
from longstop.errors import UsageError
from longstop_lab.simulator.faults import Fault, FaultKind
from longstop_lab.simulator.judge import judge
from longstop_lab.simulator.service import RunningSimulator, SimulatorOptions, running_simulator, serve
from longstop_lab.simulator.truth import read_truth

LIST = "/api/v3/getLiveMatches"
FEED = "/commentary/v1/getBallFeeds"


class Answer(Struct, frozen=True, kw_only=True):
    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return msgspec.json.decode(self.body)


class Client:
    """One kept-alive connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def send(self, method: str, target: str, body: Any = None) -> None:
        encoded = b"" if body is None else msgspec.json.encode(body)
        head = f"{method} {target} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(encoded)}\r\n\r\n"
        await self.send_raw(head.encode() + encoded)

    async def send_raw(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def receive(self) -> Answer:
        head = (await self._reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = dict(line.split(": ", 1) for line in head[1:-2])
        body = await self._reader.readexactly(int(headers["Content-Length"]))
        return Answer(status=int(head[0].split(" ")[1]), headers=headers, body=body)

    async def rest(self) -> bytes:
        return await self._reader.read()

    async def ask(self, method: str, target: str, body: Any = None) -> Answer:
        await self.send(method, target, body)
        return await self.receive()


@contextlib.asynccontextmanager
async def client_of(port: int) -> AsyncIterator[Client]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield Client(reader, writer)
    finally:
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()


@pytest.fixture
async def simulator() -> AsyncIterator[RunningSimulator]:
    async with running_simulator(SimulatorOptions(matches=4, seed=3)) as running:
        yield running


@pytest.fixture
async def client(simulator: RunningSimulator) -> AsyncIterator[Client]:
    async with client_of(simulator.port) as connected:
        yield connected


async def test_many_requests_go_over_one_connection(client: Client) -> None:
    listing = (await client.ask("GET", LIST)).json()
    key = next(key for key, entry in listing.items() if entry["j"] != "0/0(0.0")

    state = await client.ask("GET", f"/api/v3/getSV3?key={key}")
    card = await client.ask("GET", f"/api/v3/getSC4?key={key}")
    feed = await client.ask("POST", FEED, {"matchKey": key, "lastDocId": None, "filters": {}, "lang": "en"})
    unknown = await client.ask("GET", "/api/v3/getSV3?key=NONE")

    assert len(listing) == 4
    assert state.json()["a"] == listing[key]["a"]
    assert card.json()[0]["d"].count("(") == 1
    assert len(feed.json()) == 10
    assert (unknown.status, unknown.json()) == (404, {"error": "Not a valid Request"})


async def test_a_connection_is_closed_when_the_client_says_so(client: Client) -> None:
    await client.send_raw(f"GET {LIST} HTTP/1.1\r\nConnection: close\r\n\r\n".encode())

    answer = await client.receive()

    assert answer.headers["Connection"] == "close"
    assert await client.rest() == b""


@pytest.mark.parametrize("nonsense", [b"hello\r\n\r\n", b"GET / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", b"x" * 70_000])
async def test_nonsense_is_answered_with_400_and_the_end(client: Client, nonsense: bytes) -> None:
    await client.send_raw(nonsense)

    assert (await client.rest()).startswith(b"HTTP/1.1 400 Bad Request\r\n")


async def test_latency_delays_the_answer(simulator: RunningSimulator, client: Client) -> None:
    simulator.faults.add(Fault(kind=FaultKind.LATENCY, seconds=0.3), SystemClock().now())
    begun = asyncio.get_running_loop().time()

    answer = await client.ask("GET", LIST)

    assert answer.status == 200
    assert asyncio.get_running_loop().time() - begun >= 0.3


async def test_a_dropped_request_gets_no_byte(simulator: RunningSimulator, client: Client) -> None:
    simulator.faults.add(Fault(kind=FaultKind.DROP), SystemClock().now())

    await client.send("GET", LIST)

    assert await client.rest() == b""


async def test_a_reset_is_a_reset(simulator: RunningSimulator, client: Client) -> None:
    simulator.faults.add(Fault(kind=FaultKind.RESET), SystemClock().now())

    await client.send("GET", LIST)

    with pytest.raises(ConnectionResetError):
        await client.rest()


async def test_a_truncated_answer_announces_more_than_it_sends(simulator: RunningSimulator, client: Client) -> None:
    simulator.faults.add(Fault(kind=FaultKind.TRUNCATED), SystemClock().now())

    await client.send("GET", LIST)

    head, _, body = (await client.rest()).partition(b"\r\n\r\n")
    announced = int(head.split(b"Content-Length: ")[1].split(b"\r\n")[0])
    assert 0 < len(body) < announced


async def test_an_empty_answer_is_truncated_too(simulator: RunningSimulator, client: Client) -> None:
    simulator.faults.add(Fault(kind=FaultKind.TRUNCATED), SystemClock().now())

    await client.send("GET", "/api/v3/getSC4?key=NONE")

    with pytest.raises(asyncio.IncompleteReadError):
        await client.receive()


@pytest.mark.parametrize("status", [403, 404, 429, 500, 502, 503])
async def test_a_status_is_answered_with_retry_after(simulator: RunningSimulator, client: Client, status: int) -> None:
    fault = Fault(kind=FaultKind.STATUS, status=status, retry_after_seconds=7)
    simulator.faults.add(fault, SystemClock().now())

    answer = await client.ask("GET", LIST)

    assert (answer.status, answer.headers["Retry-After"]) == (status, "7")


async def test_html_comes_where_json_should(simulator: RunningSimulator, client: Client) -> None:
    simulator.faults.add(Fault(kind=FaultKind.HTML), SystemClock().now())

    answer = await client.ask("GET", LIST)

    assert (answer.status, answer.headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    assert answer.body.startswith(b"<!doctype html>")


async def test_faults_are_set_and_taken_away_over_http(client: Client) -> None:
    key = (await client.ask("GET", "/_sim/status")).json()["matches"][0]["key"]
    wish = [{"kind": "status", "status": 503, "path": "/api/"}, {"kind": "drop", "match": key}]

    await client.ask("POST", "/_sim/faults", wish)
    spoilt = await client.ask("GET", LIST)
    rules = (await client.ask("GET", "/_sim/faults")).json()
    left = (await client.ask("DELETE", f"/_sim/faults?id={rules[0]['id']}")).json()
    healed = await client.ask("GET", LIST)
    none_left = (await client.ask("DELETE", "/_sim/faults")).json()

    assert (spoilt.status, healed.status) == (503, 200)
    assert [rule["kind"] for rule in rules] == ["status", "drop"]
    assert [rule["kind"] for rule in left] == ["drop"]
    assert none_left == []


async def test_an_invalid_fault_is_rejected(client: Client) -> None:
    answer = await client.ask("POST", "/_sim/faults", {"kind": "flood"})

    assert answer.status == 400
    assert answer.json()["error"].startswith("this is not a valid fault: ")


async def test_a_fault_of_a_match_that_no_site_has_is_rejected(client: Client) -> None:
    answer = await client.ask("POST", "/_sim/faults", [{"kind": "html"}, {"kind": "drop", "match": "NONE"}])
    faults = (await client.ask("GET", "/_sim/faults")).json()

    assert answer.status == 400
    assert answer.json()["error"].startswith(
        "no site has a match 'NONE': GET /_sim/status lists the matches by key, such as "
    )
    assert faults == []


async def test_a_fault_whose_time_is_over_is_not_listed(simulator: RunningSimulator, client: Client) -> None:
    simulator.faults.add(Fault(kind=FaultKind.DROP, valid_seconds=5), SystemClock().now() - timedelta(seconds=6))
    lasting = simulator.faults.add(Fault(kind=FaultKind.HTML, valid_seconds=60), SystemClock().now())

    assert [rule["id"] for rule in (await client.ask("GET", "/_sim/faults")).json()] == [lasting.id]


async def test_the_root_says_what_is_served(client: Client) -> None:
    answer = await client.ask("GET", "/")

    assert answer.status == 200
    assert answer.json()["simulator"].startswith(
        "This port serves a simulated site. GET /_sim/status lists the matches"
    )


async def test_a_fault_that_is_not_there_cannot_be_taken_away(client: Client) -> None:
    answer = await client.ask("DELETE", "/_sim/faults?id=9")

    assert answer.status == 400
    assert answer.json()["error"] == "there is no fault 9: none is active"


async def test_control_paths_are_never_spoilt(simulator: RunningSimulator, client: Client) -> None:
    simulator.faults.add(Fault(kind=FaultKind.DROP), SystemClock().now())

    status = (await client.ask("GET", "/_sim/status")).json()

    assert len(status["matches"]) == 4
    assert "upcoming" in {match["phase"] for match in status["matches"]}
    assert status["is_frozen"] is False


async def test_requests_are_noted_as_they_come_and_orders_are_not(simulator: RunningSimulator, client: Client) -> None:
    before = SystemClock().now()
    await client.ask("GET", LIST)
    simulator.faults.add(Fault(kind=FaultKind.STATUS, status=429, retry_after_seconds=2), SystemClock().now())
    await client.ask("POST", FEED, {"matchKey": "11AB"})

    first, second = (await client.ask("GET", "/_sim/requests")).json()["requests"]
    later = (await client.ask("GET", "/_sim/requests?after=1")).json()["requests"]
    wrong = await client.ask("GET", "/_sim/requests?after=yesterday")

    assert (first["number"], first["path"], first["match"], first["fault"]) == (1, LIST, None, None)
    assert before <= from_iso(first["at"]) <= from_iso(second["at"]) <= SystemClock().now()
    assert (second["path"], second["match"], second["fault"]) == (FEED, "11AB", "status")
    assert (second["retry_after_seconds"], second["delay_seconds"]) == (2, 0.0)
    assert later == [second]
    assert (wrong.status, wrong.json()["error"]) == (400, "after must be the number of a request, such as 0")


async def test_a_frozen_world_answers_the_same_for_ever() -> None:
    options = SimulatorOptions(matches=4, seed=3, speed=10_000)
    async with running_simulator(options) as running, client_of(running.port) as client:
        frozen = (await client.ask("POST", "/_sim/freeze")).json()
        first = await client.ask("GET", LIST)
        await asyncio.sleep(0.1)
        second = await client.ask("GET", LIST)

    assert frozen["is_frozen"] is True
    assert first.body == second.body


async def test_the_feed_walked_over_the_wire_agrees_with_the_truth_log(tmp_path: Path) -> None:
    truth = tmp_path / "truth.jsonl"
    options = SimulatorOptions(matches=3, seed=9, speed=200, truth=truth)
    async with running_simulator(options) as running, client_of(running.port) as client:
        await asyncio.sleep(0.5)
        status = (await client.ask("POST", "/_sim/freeze")).json()
        shown = {match["key"]: await _walk(client, match["key"]) for match in status["matches"]}

    live: dict[str, set[str]] = {key: set() for key in shown}
    for line in read_truth(truth):
        if line.kind in ("delivery", "over"):
            (live[line.match].discard if line.op == "void" else live[line.match].add)(line.id)
    assert live == {key: {str(item["id"]) for item in items if item["type"] in "bo"} for key, items in shown.items()}
    assert judge(read_truth(truth), {}).events_truth > 300


async def _walk(client: Client, key: str) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    while True:
        last = items[-1]["id"] if items else None
        ask: dict[str, Any] = {"matchKey": key, "lastDocId": last, "filters": {}, "lang": "en"}
        page = (await client.ask("POST", FEED, ask)).json()
        if not page:
            return items
        items += page


async def test_the_truth_log_is_written_without_requests(tmp_path: Path) -> None:
    truth = tmp_path / "truth.jsonl"

    async with running_simulator(SimulatorOptions(matches=1, speed=500, truth=truth)):
        early = await _longer_than(0, truth)
        late = await _longer_than(early, truth)

    assert 0 < early < late


async def _longer_than(before: int, truth: Path) -> int:
    """Return how many lines a log has, once they are more than before."""
    async with asyncio.timeout(20):
        while (now := len(list(read_truth(truth)))) <= before:  # noqa: ASYNC110 - a file sets no event
            await asyncio.sleep(0.05)
    return now


async def test_serve_reports_its_port_and_runs_until_it_is_cancelled() -> None:
    ready: asyncio.Future[RunningSimulator] = asyncio.get_running_loop().create_future()
    serving = asyncio.create_task(serve(SimulatorOptions(matches=1), clock=SystemClock(), ready=ready.set_result))
    async with asyncio.timeout(10), client_of((await ready).port) as client:
        answer = await client.ask("GET", LIST)
    serving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await serving

    assert answer.status == 200
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection("127.0.0.1", ready.result().port)
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection("127.0.0.1", ready.result().espn_port)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (SimulatorOptions(matches=0), "there is nothing to simulate"),
        (SimulatorOptions(speed=0), "the speed must be greater than 0"),
        (SimulatorOptions(sites="cricbuzz"), "'cricbuzz' is not a choice of sites"),
        (SimulatorOptions(matches=100_000), "at most 1166 matches"),
    ],
)
async def test_what_cannot_be_simulated_is_an_error(options: SimulatorOptions, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        async with running_simulator(options):
            raise AssertionError("it started")


async def test_a_port_in_use_is_a_sentence(simulator: RunningSimulator) -> None:
    with pytest.raises(UsageError, match=rf"port {simulator.port} of 127\.0\.0\.1 cannot be used"):
        async with running_simulator(SimulatorOptions(matches=1, port=simulator.port)):
            raise AssertionError("it started")


ESPN_LIST = "/live-cricket-score"


def matches_in(page: bytes) -> int:
    return page.count(b'"objectId":14')


@pytest.mark.parametrize(("sites", "on_crex", "on_espn"), [("crex", 2, 0), ("espncricinfo", 0, 2), ("both", 2, 2)])
async def test_each_site_shows_the_matches_that_are_on_it(sites: str, on_crex: int, on_espn: int) -> None:
    async with (
        running_simulator(SimulatorOptions(matches=2, sites=sites)) as running,
        client_of(running.port) as crex,
        client_of(running.espn_port) as espn,
    ):
        listing = await crex.ask("GET", LIST)
        page = await espn.ask("GET", ESPN_LIST)

    assert len(listing.json()) == on_crex
    assert (page.status, matches_in(page.body)) == (200, on_espn)


async def test_both_sites_have_the_same_control_and_the_same_faults() -> None:
    async with (
        running_simulator(SimulatorOptions(matches=2, sites="both")) as running,
        client_of(running.port) as crex,
        client_of(running.espn_port) as espn,
    ):
        status = (await espn.ask("GET", "/_sim/status")).json()
        wet, dry = (match["espn_id"] for match in status["matches"])
        await crex.ask("POST", "/_sim/faults", {"kind": "status", "match": status["matches"][0]["key"]})

        spoilt = await espn.ask("GET", f"/series/a-1/b-{wet}/full-scorecard")
        good = await espn.ask("GET", f"/series/a-1/b-{dry}/full-scorecard")

    assert (spoilt.status, good.status) == (503, 200)
    assert running.espn_url == f"http://127.0.0.1:{running.espn_port}"
