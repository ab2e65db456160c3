"""The counting proxy over real sockets."""

import asyncio
import base64
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from longstop_lab.simulator.forward_proxy import RunningForwardProxy, running_forward_proxy
from longstop_lab.simulator.service import RunningSimulator, SimulatorOptions, running_simulator

LIST = "/api/v3/getLiveMatches"
ANA, BEN = "ana:pw_session-1_country-in", "ben:pw_session-2"


@pytest.fixture
async def site() -> AsyncIterator[RunningSimulator]:
    async with running_simulator(SimulatorOptions(matches=2)) as running:
        yield running


@pytest.fixture
async def proxy(site: RunningSimulator) -> AsyncIterator[RunningForwardProxy]:
    async with running_forward_proxy(names={"crex.test:80": ("127.0.0.1", site.port)}) as running:
        yield running


def signed(credential: str) -> str:
    return f"Proxy-Authorization: Basic {base64.b64encode(credential.encode()).decode()}\r\n" if credential else ""


async def speak(port: int, text: str, *, then: str = "") -> bytes:
    """Send, and read until the other side closes; `then` is sent when a line to the target stands."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        async with asyncio.timeout(5):
            writer.write(text.encode())
            if then:
                await reader.readuntil(b"\r\n\r\n")
                writer.write(then.encode())
            return await reader.read()
    finally:
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()


async def ask(proxy: RunningForwardProxy, url: str, credential: str = ANA) -> bytes:
    return await speak(proxy.port, f"GET {url} HTTP/1.1\r\nHost: x\r\n{signed(credential)}\r\n")


async def control(proxy: RunningForwardProxy, method: str, path: str, body: Any = None) -> Any:
    encoded = "" if body is None else msgspec.json.encode(body).decode()
    port = int(proxy.control_url.rpartition(":")[2])
    answer = await speak(port, f"{method} {path} HTTP/1.1\r\nContent-Length: {len(encoded)}\r\n\r\n{encoded}")
    return msgspec.json.decode(answer.partition(b"\r\n\r\n")[2])


async def test_requests_and_bytes_are_counted_by_credential(site: RunningSimulator, proxy: RunningForwardProxy) -> None:
    answers = [await ask(proxy, f"{site.base_url}{LIST}", who) for who in (ANA, ANA, BEN)]

    counts = await control(proxy, "GET", "/counts")
    assert all(answer.startswith(b"HTTP/1.1 200 OK\r\n") for answer in answers)
    assert {who: usage["requests"] for who, usage in counts.items()} == {ANA: 2, BEN: 1}
    assert counts[BEN]["bytes_down"] == len(answers[2])
    assert counts[ANA]["targets"] == {f"127.0.0.1:{site.port}": 2}


async def test_the_credential_stays_with_the_proxy(proxy: RunningForwardProxy) -> None:
    heads: list[bytes] = []

    async def note(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(note, "127.0.0.1", 0) as target:
        port = target.sockets[0].getsockname()[1]
        await ask(proxy, f"http://localhost:{port}/a?b=c")

    assert heads[0].startswith(b"GET /a?b=c HTTP/1.1\r\n")
    assert b"proxy-" not in heads[0].lower()


async def test_a_tunnel_passes_bytes_both_ways_and_counts_them(
    site: RunningSimulator, proxy: RunningForwardProxy
) -> None:
    inside = f"GET {LIST} HTTP/1.1\r\nConnection: close\r\n\r\n"

    answer = await speak(proxy.port, f"CONNECT 127.0.0.1:{site.port} HTTP/1.1\r\n{signed(ANA)}\r\n", then=inside)

    usage = proxy.proxy.usage[ANA]
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
    assert (usage.tunnels, usage.requests) == (1, 0)
    assert (usage.bytes_up, usage.bytes_down) == (len(inside), len(answer))


async def test_a_name_resolves_to_the_configured_address(proxy: RunningForwardProxy) -> None:
    assert (await ask(proxy, f"http://crex.test{LIST}")).startswith(b"HTTP/1.1 200 OK\r\n")


@pytest.mark.parametrize("url", ["http://192.0.2.1/", "http://unknown.test/", "http://10.0.0.1:80/"])
async def test_it_leads_nowhere_but_to_this_machine(proxy: RunningForwardProxy, url: str) -> None:
    assert (await ask(proxy, url)).startswith(b"HTTP/1.1 403 ")


@pytest.mark.parametrize("url", ["/path", "https://127.0.0.1/", "http://127.0.0.1:port/"])
async def test_what_is_no_request_to_a_proxy_is_refused(proxy: RunningForwardProxy, url: str) -> None:
    assert (await ask(proxy, url)).startswith(b"HTTP/1.1 400 ")


async def test_without_a_credential_it_asks_for_one(site: RunningSimulator, proxy: RunningForwardProxy) -> None:
    answer = await ask(proxy, f"{site.base_url}{LIST}", credential="")

    assert answer.startswith(b"HTTP/1.1 407 ")
    assert b'Proxy-Authenticate: Basic realm="proxy"' in answer
    assert proxy.proxy.usage[""].refused == 1


async def test_credentials_are_known_by_their_beginning(site: RunningSimulator) -> None:
    async with running_forward_proxy(accepted=["ana:pw"]) as proxy:
        known, unknown = [await ask(proxy, f"{site.base_url}{LIST}", who) for who in (ANA, BEN)]

    assert known.startswith(b"HTTP/1.1 200 ")
    assert unknown.startswith(b"HTTP/1.1 407 ")


async def test_a_fault_hits_one_credential_the_configured_number_of_times(
    site: RunningSimulator, proxy: RunningForwardProxy
) -> None:
    await control(proxy, "PUT", "/faults", [{"kind": "407", "credential": ANA, "times": 1}])

    answers = [await ask(proxy, f"{site.base_url}{LIST}", who) for who in (BEN, ANA, ANA)]

    assert [answer[9:12] for answer in answers] == [b"200", b"407", b"200"]


async def test_a_reset_and_a_silence_are_what_they_are(site: RunningSimulator, proxy: RunningForwardProxy) -> None:
    await control(proxy, "PUT", "/faults", [{"kind": "reset"}])
    with pytest.raises(ConnectionResetError):
        await ask(proxy, f"{site.base_url}{LIST}")

    await control(proxy, "PUT", "/faults", [{"kind": "hang"}])
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.3):
            await ask(proxy, f"{site.base_url}{LIST}")

    await control(proxy, "DELETE", "/faults")
    assert (await ask(proxy, f"{site.base_url}{LIST}")).startswith(b"HTTP/1.1 200 ")


async def test_the_counts_can_be_reset(site: RunningSimulator, proxy: RunningForwardProxy) -> None:
    await ask(proxy, f"{site.base_url}{LIST}")

    assert await control(proxy, "DELETE", "/counts") == {}
    assert "error" in await control(proxy, "PUT", "/faults", [{"kind": "dance"}])
    assert "error" in await control(proxy, "GET", "/dance")
