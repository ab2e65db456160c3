"""With proxies set, every request of a session is seen at its own proxy, and nowhere else."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Callable
from itertools import count
from pathlib import Path
from time import monotonic

import pytest
from pydantic import SecretStr

from longstop.errors import FetchError, ForbiddenTarget, ProxyFailed, SourceRefused
from longstop.fetching.base import FetchRequest
from longstop.fetching.browser.fetcher import BrowserPolicy
from longstop.fetching.browser.modes import Mode
from longstop.fetching.browser.processes import everybody
from longstop.fetching.browser.proxies import ProxyAccount, ProxyMode, ProxyRing
from tests.browser.laboratory import Laboratory, laboratory
from tests.browser.proxy import CountingProxy, proxying
from tests.browser.site import Site

SECRET = "canary-password"
BROWSING = BrowserPolicy(modes=(Mode.NAVIGATE,), page_seconds=5, fresh_seconds=0)


@pytest.fixture
async def proxy() -> AsyncIterator[CountingProxy]:
    async with proxying() as opened:
        yield opened


def ring(proxy: CountingProxy, sessions: int = 1, mode: ProxyMode = ProxyMode.STICKY) -> ProxyRing:
    account = ProxyAccount(
        host="127.0.0.1", port=proxy.port, username="us", password=SecretStr(SECRET), country="de", mode=mode
    )
    return ProxyRing(account, sessions=sessions, new_name=_names(), now=monotonic())


def _names() -> Callable[[], str]:
    numbers = count(1)
    return lambda: f"name{next(numbers)}"


def credential(session: str) -> str:
    return f"us:{SECRET}_country-de_session-{session}_lifetime-10m"


@pytest.mark.req("CAP-4")
async def test_every_request_of_a_session_is_seen_at_its_proxy_and_nowhere_else(
    lab: Laboratory, proxy: CountingProxy
) -> None:
    fetcher = lab.fetcher(proxies=ring(proxy))
    while fetcher.mode is not Mode.HTTP:
        await fetcher.fetch(lab.state())
    by_http = await fetcher.fetch(lab.state())

    assert json.loads(by_http.body)["match"] == "1"
    assert lab.site.peers <= set(proxy.ports)
    assert set(proxy.requests) == {credential("name1")}


@pytest.mark.req("CAP-4")
@pytest.mark.parametrize("page", ["worker", "rtc", "socket", "popups", "foreign-call"])
async def test_no_page_finds_a_way_around_the_proxy(lab: Laboratory, proxy: CountingProxy, page: str) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stun:
        stun.bind(("127.0.0.1", 0))
        stun.settimeout(0.5)
        lab.site.udp_port = stun.getsockname()[1]

        await lab.fetcher(proxies=ring(proxy), browsing=BROWSING).fetch(lab.state(page))

        with pytest.raises(TimeoutError):
            await asyncio.to_thread(stun.recv, 100)
    assert lab.site.peers <= set(proxy.ports)


async def test_a_redirect_stays_at_the_proxy_and_off_foreign_hosts(lab: Laboratory, proxy: CountingProxy) -> None:
    with pytest.raises(ForbiddenTarget):
        await lab.fetcher(proxies=ring(proxy)).fetch(FetchRequest(source="crex", url=lab.site.url("/redirect")))

    assert lab.site.peers <= set(proxy.ports)


@pytest.mark.req("CAP-4")
@pytest.mark.parametrize("fault", ["407", "reset", "hang"])
async def test_a_broken_proxy_is_not_gone_around(lab: Laboratory, proxy: CountingProxy, fault: str) -> None:
    fetcher = lab.fetcher(proxies=ring(proxy), browsing=BrowserPolicy(page_seconds=2))
    proxy.fault = fault

    with pytest.raises(FetchError) as caught:
        await fetcher.fetch(lab.state())
    assert not lab.site.asked
    assert SECRET not in str(caught.value)

    proxy.fault = ""
    assert (await fetcher.fetch(lab.state())).status == 200


@pytest.mark.req("CAP-4")
async def test_a_dead_proxy_is_not_gone_around(lab: Laboratory, proxy: CountingProxy) -> None:
    dead = ProxyRing(
        ProxyAccount(host="127.0.0.1", port=9, username="us", password=SecretStr(SECRET)),
        sessions=1,
        new_name=_names(),
        now=monotonic(),
    )

    with pytest.raises(ProxyFailed):
        await lab.fetcher(proxies=dead).fetch(lab.state())

    assert not lab.site.asked


async def test_what_has_no_proxy_of_its_own_goes_nowhere(lab: Laboratory, proxy: CountingProxy) -> None:
    await lab.fetcher(proxies=ring(proxy), browsing=BROWSING).fetch(lab.state())
    before = lab.site.asked.total()

    context = await lab.engine().new_context()
    page = await context.new_page()
    with pytest.raises(Exception, match="ERR_PROXY_CONNECTION_FAILED"):
        await page.goto(lab.site.url("/static"))
    await context.close()

    assert lab.site.asked["/static"] == 0
    assert before


@pytest.mark.req("CAP-4")
async def test_sessions_take_turns_each_with_its_own_credential(lab: Laboratory, proxy: CountingProxy) -> None:
    fetcher = lab.fetcher(proxies=ring(proxy, sessions=3), browsing=BROWSING)

    for _ in range(6):
        await fetcher.fetch(lab.state("late"))

    assert set(proxy.requests) == {credential(f"name{number}") for number in (1, 2, 3)}
    assert lab.engine().contexts == 3


@pytest.mark.req("CAP-4")
async def test_a_refusal_is_followed_by_another_session(lab: Laboratory, proxy: CountingProxy) -> None:
    fetcher = lab.fetcher(proxies=ring(proxy), browsing=BROWSING)

    with pytest.raises(SourceRefused):
        await fetcher.fetch(lab.state("403"))
    await fetcher.fetch(lab.state("late"))

    assert set(proxy.requests) == {credential("name1"), credential("name2")}
    assert "proxy.rotated" in lab.heard.names()


async def test_credentials_show_in_no_process_no_event_and_no_file(
    tmp_path: Path, site: Site, proxy: CountingProxy
) -> None:
    async with laboratory(tmp_path, site) as lab:
        fetcher = lab.fetcher(proxies=ring(proxy, sessions=2), browsing=BROWSING)
        await fetcher.fetch(lab.state())
        with pytest.raises(SourceRefused):
            await fetcher.fetch(lab.state("403"))
        shown = [_shown(each.pid) for each in everybody()]

        assert not any(SECRET.encode() in text for text in shown)
        assert SECRET not in repr(lab.heard.events)
        assert SECRET not in (tmp_path / "browsers.json").read_text()


def _shown(pid: int) -> bytes:
    """Return what a process list shows of a process: its arguments and its environment."""
    try:
        return b"".join(Path(f"/proc/{pid}/{name}").read_bytes() for name in ("cmdline", "environ"))
    except OSError:
        return b""
