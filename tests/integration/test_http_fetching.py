"""HTTP fetching over real sockets: memory, redirects, pinned addresses, connections."""

import asyncio
import gzip
import ssl
import time
from collections.abc import AsyncIterator, Callable
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import quote

import psutil
import pytest

from longstop.clock import SystemClock
from longstop.errors import (
    BodyTooLarge,
    FetchError,
    FetchTimeout,
    ForbiddenTarget,
    SourceChallenged,
    SourceRefused,
    SourceUnreachable,
)
from longstop.fetching.addresses import Address, Resolve, resolve_by_system
from longstop.fetching.base import FetchRequest
from longstop.fetching.guarded_and_replaceable_fetcher import FetchPolicy
from longstop.fetching.http import HttpFetcher
from tests.servers import OK_BODY, FaultServer, bomb, fault_server

Open = Callable[..., HttpFetcher]


@pytest.fixture
async def server() -> AsyncIterator[FaultServer]:
    async with fault_server() as running:
        yield running


@pytest.fixture
async def open_fetcher(server: FaultServer) -> AsyncIterator[Open]:
    """Open fetchers that may ask the server, with the policy changed as a test wants it."""
    opened: list[HttpFetcher] = []

    def open_one(resolve: Resolve | None = None, **changes: object) -> HttpFetcher:
        settings = {"hosts": (server.authority,), "allow_private_addresses": True, "deadline_seconds": 20.0} | changes
        policy = FetchPolicy(**settings)  # type: ignore[arg-type]
        opened.append(HttpFetcher(policy, SystemClock(), resolve or resolve_by_system))
        return opened[-1]

    yield open_one
    for fetcher in opened:
        await fetcher.aclose()


def _get(url: str) -> FetchRequest:
    return FetchRequest(source="crex", url=url)


def _leading_to(*addresses: str) -> Resolve:
    async def resolve(_host: str, _port: int) -> tuple[Address, ...]:
        return tuple(map(ip_address, addresses))

    return resolve


async def _until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110 - the other side of a socket sets no event
            await asyncio.sleep(0.01)


@pytest.mark.parametrize(
    ("sent", "received"),
    [
        (b"X-Name:  text/html ", {"x-name": "text/html"}),
        (b"X-Name:", {"x-name": ""}),
        (b"Vary: a\r\nX-Name: 1\r\nvary: b", {"vary": "a, b", "x-name": "1"}),
        (b"X-Name: one\r\n two", {"x-name": "one two"}),
        ("X-Name: é".encode(), {"x-name": "é"}),
        (b"X-Name: \xe9", {"x-name": "é"}),
    ],
    ids=["blanks", "empty", "twice", "folded", "utf-8", "latin-1"],
)
async def test_header_names_are_lower_case_and_values_are_whole(sent: bytes, received: dict[str, str]) -> None:
    assert await _headers_after(b"HTTP/1.1 200 OK\r\n" + sent) == {**received, "content-length": "2"}


async def test_only_the_headers_of_the_last_response_count() -> None:
    first = b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"

    assert await _headers_after(first + b"HTTP/1.1 200 OK\r\nA: 1") == {"a": "1", "content-length": "2"}


@pytest.mark.parametrize("line", [b" folded: too early", b"no colon"])
async def test_malformed_headers_are_an_error_of_the_site(line: bytes) -> None:
    with pytest.raises(FetchError):
        await _headers_after(b"HTTP/1.1 200 OK\r\n" + line)


async def _headers_after(head: bytes) -> dict[str, str]:
    """Return the headers as read from a server that sends this head, and a body of two bytes."""

    async def respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(head + b"\r\nContent-Length: 2\r\n\r\n{}")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(respond, "127.0.0.1", 0) as server:
        authority = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        fetcher = HttpFetcher(FetchPolicy(hosts=(authority,), allow_private_addresses=True), SystemClock())
        try:
            return dict((await fetcher.fetch(_get(f"http://{authority}/"))).headers)
        finally:
            await fetcher.aclose()


async def test_a_compressed_body_arrives_decoded_and_counts_its_wire_bytes(
    server: FaultServer, open_fetcher: Open
) -> None:
    page = await open_fetcher().fetch(_get(server.url("/gzip")))

    assert page.body == OK_BODY * 1000
    compressed = len(gzip.compress(OK_BODY * 1000))
    assert compressed <= page.wire_bytes < compressed + 200


async def test_header_names_are_in_lower_case(server: FaultServer, open_fetcher: Open) -> None:
    page = await open_fetcher().fetch(_get(server.url("/ok")))

    assert page.headers["content-type"] == "application/json"


async def test_an_empty_body_is_an_empty_page(server: FaultServer, open_fetcher: Open) -> None:
    page = await open_fetcher().fetch(_get(server.url("/empty")))

    assert (page.status, page.body) == (200, b"")


async def test_a_request_looks_like_a_browsers(server: FaultServer, open_fetcher: Open) -> None:
    await open_fetcher().fetch(_get(server.url("/ok")))

    headers = server.received[0].headers
    assert "Chrome/" in headers["user-agent"]
    assert "sec-ch-ua" in headers


async def test_a_posted_body_is_sent_as_json(server: FaultServer, open_fetcher: Open) -> None:
    request = FetchRequest(source="crex", url=server.url("/echo"), method="POST", body=b'{"a": 1}')

    page = await open_fetcher().fetch(request)

    assert page.body == b'POST {"a": 1}'
    assert server.received[0].headers["content-type"] == "application/json"


async def test_the_sources_own_headers_win(server: FaultServer, open_fetcher: Open) -> None:
    request = FetchRequest(
        source="crex", url=server.url("/echo"), method="POST", body=b"a=1", headers={"content-type": "text/plain"}
    )

    await open_fetcher().fetch(request)

    assert server.received[0].headers["content-type"] == "text/plain"


@pytest.mark.parametrize("path", ["/gzip-bomb", "/double-bomb", "/huge", "/endless"])
async def test_a_body_without_measure_costs_hardly_any_memory(
    server: FaultServer, open_fetcher: Open, path: str
) -> None:
    fetcher = open_fetcher()
    await fetcher.fetch(_get(server.url("/ok")))
    bomb()
    process = psutil.Process()
    before = process.memory_info().rss

    for _ in range(5):
        with pytest.raises(BodyTooLarge):
            await fetcher.fetch(_get(server.url(path)))

    assert process.memory_info().rss - before < 40_000_000


async def test_a_body_of_exactly_the_cap_is_accepted_and_one_byte_more_is_not(
    server: FaultServer, open_fetcher: Open
) -> None:
    page = await open_fetcher(max_body_bytes=len(OK_BODY)).fetch(_get(server.url("/ok")))

    assert page.body == OK_BODY
    with pytest.raises(BodyTooLarge):
        await open_fetcher(max_body_bytes=len(OK_BODY) - 1).fetch(_get(server.url("/ok")))


@pytest.mark.parametrize("path", ["/slow-drip", "/stall"])
async def test_even_without_guards_a_hop_ends_by_its_deadline(
    server: FaultServer, open_fetcher: Open, path: str
) -> None:
    fetcher = open_fetcher(deadline_seconds=0.3)
    started = time.monotonic()

    with pytest.raises(FetchTimeout):
        await fetcher.fetch(_get(server.url(path)))

    assert time.monotonic() - started < 10


async def test_a_refusal_carries_retry_after(server: FaultServer, open_fetcher: Open) -> None:
    with pytest.raises(SourceRefused) as caught:
        await open_fetcher().fetch(_get(server.url("/status?is=429&after=17")))

    assert caught.value.retry_after_seconds == 17


@pytest.mark.parametrize("status", [403, 404, 503])
async def test_an_error_whose_body_names_a_challenge_is_one_whatever_its_status(
    server: FaultServer, open_fetcher: Open, status: int
) -> None:
    for reason, is_challenge in (("challenge", True), ("Forbidden", False)):
        body = quote(f'{{"error":{{"code":403,"reason":"{reason}"}}}}')
        with pytest.raises(FetchError) as caught:
            await open_fetcher().fetch(_get(server.url(f"/status?is={status}&after=17&body={body}")))
        assert isinstance(caught.value, SourceChallenged) is is_challenge


async def test_a_redirect_within_the_host_list_is_followed(server: FaultServer, open_fetcher: Open) -> None:
    request = _get(server.url("/redirect?to=/redirect%3Fto=/ok"))

    page = await open_fetcher().fetch(request)

    assert (page.body, page.request) == (OK_BODY, request)
    assert [received.path for received in server.received] == ["/redirect", "/redirect", "/ok"]


async def test_a_loop_is_left_after_three_redirects(server: FaultServer, open_fetcher: Open) -> None:
    with pytest.raises(ForbiddenTarget, match="more than 3 times"):
        await open_fetcher().fetch(_get(server.url("/loop")))

    assert len(server.received) == 4


@pytest.mark.parametrize(("status", "echoed"), [(301, b"GET "), (303, b"GET "), (307, b"POST {}"), (308, b"POST {}")])
async def test_a_redirected_post_stays_one_only_where_the_status_says_so(
    server: FaultServer, open_fetcher: Open, status: int, echoed: bytes
) -> None:
    url = server.url(f"/redirect?is={status}&to=/echo")

    page = await open_fetcher().fetch(FetchRequest(source="crex", url=url, method="POST", body=b"{}"))

    assert page.body == echoed


@pytest.mark.parametrize(
    "location",
    [
        "http://other.test/",
        "http://127.0.0.1:1/",
        "http://localhost:1/",
        "http://169.254.169.254/latest/meta-data/",
        "http://[::1]/",
        "http://[::ffff:127.0.0.1]/",
        "http://2130706433/",
        "http://0x7f000001/",
        "http://0177.0.0.1/",
        "http://127.1/",
        "file:///etc/passwd",
        "gopher://127.0.0.1/",
        "//other.test/",
        "http://user@{authority}/ok",
        "http://{authority}@other.test/",
    ],
)
async def test_a_redirect_out_of_the_host_list_is_refused(
    server: FaultServer, open_fetcher: Open, location: str
) -> None:
    where = location.format(authority=server.authority)

    with pytest.raises(ForbiddenTarget):
        await open_fetcher().fetch(_get(server.url(f"/redirect?to={where}")))

    assert len(server.received) == 1


async def test_a_listed_host_that_leads_to_a_private_address_is_refused(
    server: FaultServer, open_fetcher: Open
) -> None:
    fetcher = open_fetcher(
        hosts=(f"site.test:{server.port}",), allow_private_addresses=False, resolve=_leading_to("127.0.0.1")
    )

    with pytest.raises(ForbiddenTarget, match="not a public address"):
        await fetcher.fetch(_get(f"https://site.test:{server.port}/ok"))

    assert server.connections == 0


async def test_curl_connects_to_the_checked_address_without_a_lookup_of_its_own(
    server: FaultServer, open_fetcher: Open
) -> None:
    host = f"site.test:{server.port}"
    fetcher = open_fetcher(hosts=(host,), resolve=_leading_to("127.0.0.1"))

    page = await fetcher.fetch(_get(f"http://{host}/ok"))

    assert page.body == OK_BODY
    assert server.received[0].headers["host"] == host


async def test_a_dead_address_among_several_does_not_matter(server: FaultServer, open_fetcher: Open) -> None:
    host = f"site.test:{server.port}"
    fetcher = open_fetcher(hosts=(host,), resolve=_leading_to("::1", "127.0.0.1"))

    page = await fetcher.fetch(_get(f"http://{host}/ok"))

    assert page.body == OK_BODY


async def test_every_hop_is_looked_up_and_a_credential_stays_with_its_host(
    server: FaultServer, open_fetcher: Open
) -> None:
    looked_up: list[str] = []

    async def resolve(host: str, _port: int) -> tuple[Address, ...]:
        looked_up.append(host)
        return (ip_address("127.0.0.1"),)

    hosts = (f"one.test:{server.port}", f"two.test:{server.port}")
    url = f"http://{hosts[0]}/redirect?to=http://{hosts[1]}/ok"
    request = FetchRequest(source="crex", url=url, headers={"X-Key": "secret"})

    await open_fetcher(hosts=hosts, resolve=resolve).fetch(request)

    assert looked_up == ["one.test", "two.test"]
    assert [received.headers.get("x-key") for received in server.received] == ["secret", None]


async def test_an_unknown_name_is_unreachable(open_fetcher: Open) -> None:
    async def no_such_name(_host: str, _port: int) -> tuple[Address, ...]:
        raise SourceUnreachable("no such name")

    with pytest.raises(SourceUnreachable):
        await open_fetcher(hosts=("nowhere.test",), resolve=no_such_name).fetch(_get("http://nowhere.test/"))


async def test_a_closed_port_is_unreachable(open_fetcher: Open) -> None:
    async with fault_server() as gone:
        authority = gone.authority

    with pytest.raises(SourceUnreachable):
        await open_fetcher(hosts=(authority,)).fetch(_get(f"http://{authority}/ok"))


async def test_a_site_that_speaks_no_tls_is_unreachable(open_fetcher: Open) -> None:
    async def plain(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(plain, "127.0.0.1", 0) as listening:
        authority = f"127.0.0.1:{listening.sockets[0].getsockname()[1]}"

        with pytest.raises(SourceUnreachable):
            await open_fetcher(hosts=(authority,)).fetch(_get(f"https://{authority}/"))


async def _certificate(directory: Path, name: str) -> tuple[Path, ssl.SSLContext]:
    """Make a certificate that vouches for itself; return its file, and what a server needs to show it."""
    key, certificate = directory / "key.pem", directory / "certificate.pem"
    make = f"openssl req -x509 -newkey rsa:2048 -nodes -keyout {key} -out {certificate} -subj /CN={name}"
    make += f" -addext subjectAltName=DNS:{name}"
    await (await asyncio.create_subprocess_exec(*make.split(), stderr=asyncio.subprocess.DEVNULL)).wait()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    return certificate, context


async def test_an_untrusted_certificate_is_refused(open_fetcher: Open, tmp_path: Path) -> None:
    _, context = await _certificate(tmp_path, "site.test")
    met: list[None] = []

    async with await asyncio.start_server(lambda *_: met.append(None), "127.0.0.1", 0, ssl=context) as listening:
        host = f"site.test:{listening.sockets[0].getsockname()[1]}"
        fetcher = open_fetcher(hosts=(host,), resolve=_leading_to("127.0.0.1"))

        with pytest.raises(SourceUnreachable, match="certificate"):
            await fetcher.fetch(_get(f"https://{host}/"))

    assert met == []


async def test_the_operators_own_certificates_are_trusted(
    open_fetcher: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate, context = await _certificate(tmp_path, "site.test")
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(certificate))

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0, ssl=context) as listening:
        host = f"site.test:{listening.sockets[0].getsockname()[1]}"
        fetcher = open_fetcher(hosts=(host,), resolve=_leading_to("127.0.0.1"))

        page = await fetcher.fetch(_get(f"https://{host}/"))

    assert page.body == b"{}"


async def test_nothing_of_a_post_is_left_over_for_the_next_request(server: FaultServer, open_fetcher: Open) -> None:
    fetcher = open_fetcher(max_connections=1)
    post = FetchRequest(source="crex", url=server.url("/echo"), method="POST", body=b"{}", headers={"X-Key": "secret"})
    await fetcher.fetch(post)

    page = await fetcher.fetch(_get(server.url("/echo")))

    assert page.body == b"GET "
    assert not {"x-key", "content-type", "content-length"} & set(server.received[1].headers)


async def test_a_proxy_of_the_environment_is_not_used(
    server: FaultServer, open_fetcher: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")

    page = await open_fetcher().fetch(_get(server.url("/ok")))

    assert page.body == OK_BODY


async def test_no_cookie_is_kept(server: FaultServer, open_fetcher: Open) -> None:
    fetcher = open_fetcher()

    await fetcher.fetch(_get(server.url("/cookie")))
    await fetcher.fetch(_get(server.url("/ok")))

    assert "cookie" not in server.received[1].headers


async def test_a_connection_is_used_again(server: FaultServer, open_fetcher: Open) -> None:
    fetcher = open_fetcher()

    for _ in range(10):
        await fetcher.fetch(_get(server.url("/ok")))

    assert server.connections == 1


@pytest.mark.parametrize("path", ["/slow-drip", "/stall", "/endless"])
async def test_a_cancelled_fetch_closes_its_connection(server: FaultServer, open_fetcher: Open, path: str) -> None:
    fetcher = open_fetcher(max_body_bytes=10**12)
    task = asyncio.create_task(fetcher.fetch(_get(server.url(path))))
    await _until(lambda: server.open_connections == 1 and len(server.received) == 1)

    task.cancel()
    await asyncio.wait([task])

    assert task.cancelled()
    await _until(lambda: server.open_connections == 0)


async def test_cancelled_fetches_give_back_their_places(server: FaultServer, open_fetcher: Open) -> None:
    fetcher = open_fetcher(max_connections=2)
    for _ in range(5):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await fetcher.fetch(_get(server.url("/stall")))

    page = await fetcher.fetch(_get(server.url("/ok")))

    assert page.body == OK_BODY


async def test_closing_ends_what_is_under_way_with_an_error_not_with_half_a_page(
    server: FaultServer, open_fetcher: Open
) -> None:
    fetcher = open_fetcher()
    task = asyncio.create_task(fetcher.fetch(_get(server.url("/slow-drip"))))
    await _until(lambda: len(server.received) == 1)

    await fetcher.aclose()

    with pytest.raises(FetchError):
        await asyncio.wait_for(task, 10)
    await _until(lambda: server.open_connections == 0)
