"""With a proxy, every request of a session goes through it with the session's credential, and nowhere else."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Callable
from itertools import count
from pathlib import Path
from time import monotonic
from typing import Any

import pytest
from msgspec import structs
from pydantic import SecretStr

from longstop.clock import SystemClock
from longstop.errors import BodyTooLarge, BudgetSpent, FetchError, ForbiddenTarget, ProxyFailed, SourceRefused
from longstop.fetching.base import FetchRequest
from longstop.fetching.browser.browser_policy_and_stats import BrowserPolicy, Mode
from longstop.fetching.browser.fetcher import BrowserFetcher
from longstop.fetching.browser.proxy_budget import ProxyMeter
from longstop.fetching.browser.proxy_sessions import ProxyAccount, ProxyRing
from longstop.fetching.browser.session import Session, SessionPlan
from longstop.model.match import Priority
from longstop.process.processes import list_processes
from longstop_lab.simulator.forward_proxy import ForwardProxy, ProxyFault, ProxyFaultKind, running_forward_proxy
from tests.browser.harness import BrowserHarness, browser_harness, until
from tests.browser.site import RULES, UNSEEN, Site

SECRET = "canary-password"
#: Paths that only a browser requests that loads pages ahead of time.
AHEAD = {"/ahead", "/ahead.js", "/rules.json"}
BROWSING = BrowserPolicy(modes=(Mode.NAVIGATE,), page_seconds=20, fresh_seconds=0)


@pytest.fixture
async def proxy() -> AsyncIterator[ForwardProxy]:
    async with running_forward_proxy(accepted=(f"us:{SECRET}",)) as running:
        yield running.proxy


def ring(proxy: ForwardProxy, sessions: int = 1) -> ProxyRing:
    account = ProxyAccount(host="127.0.0.1", port=proxy.port, username="us", password=SecretStr(SECRET), country="de")
    return ProxyRing(account, sessions=sessions, new_name=_names(), now=monotonic())


def _names() -> Callable[[], str]:
    numbers = count(1)
    return lambda: f"name{next(numbers)}"


def credential(session: str) -> str:
    return f"us:{SECRET}_country-de_session-{session}_lifetime-10m"


def served(proxy: ForwardProxy) -> set[str]:
    """Return the credentials that the proxy has served."""
    return {name for name, usage in proxy.usage.items() if usage.requests + usage.tunnels}


def passed_on(proxy: ForwardProxy) -> int:
    """Return how many connections the proxy has made, one for each request or tunnel."""
    return sum(usage.requests + usage.tunnels for usage in proxy.usage.values())


@pytest.mark.req("CAP-4")
async def test_every_request_of_a_session_is_seen_at_its_proxy_and_nowhere_else(
    harness: BrowserHarness, proxy: ForwardProxy
) -> None:
    fetcher = harness.fetcher(proxies=ring(proxy))
    while fetcher.mode is not Mode.HTTP:
        await fetcher.fetch(harness.state())
    by_http = await fetcher.fetch(harness.state())

    assert json.loads(by_http.body)["match"] == "1"
    assert harness.site.connections == passed_on(proxy) > 0
    assert served(proxy) == {credential("name1")}


@pytest.mark.req("CAP-2")
@pytest.mark.parametrize("page", ["foretold", *RULES])
async def test_no_page_leads_the_browser_ahead_to_hosts_that_are_not_listed(harness: BrowserHarness, page: str) -> None:
    answer = await harness.fetcher(browsing=BROWSING).fetch(harness.state(page))

    assert json.loads(answer.body)["match"] == "1"
    assert harness.site.baited == 0
    assert not AHEAD & set(harness.site.asked)


@pytest.mark.req("CAP-2")
async def test_rules_that_no_script_is_shown_lead_to_no_host_that_is_not_listed(harness: BrowserHarness) -> None:
    await harness.fetcher(browsing=BROWSING).fetch(harness.state(UNSEEN))

    assert AHEAD & set(harness.site.asked)  # they are followed, on the page's own host
    assert harness.site.baited == 0


@pytest.mark.req("CAP-4")
async def test_rules_that_no_script_is_shown_find_no_way_around_the_proxy(
    harness: BrowserHarness, proxy: ForwardProxy
) -> None:
    await harness.fetcher(proxies=ring(proxy), browsing=BROWSING).fetch(harness.state(UNSEEN))

    assert AHEAD & set(harness.site.asked)
    assert harness.site.connections == passed_on(proxy)


@pytest.mark.req("CAP-4")
@pytest.mark.parametrize(
    "page",
    ["worker", "workers", "rtc", "socket", "foreign-socket", "popups", "foreign-call", "foretold", *RULES],
)
async def test_no_page_finds_a_way_around_the_proxy(harness: BrowserHarness, proxy: ForwardProxy, page: str) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stun:
        stun.bind(("127.0.0.1", 0))
        stun.settimeout(0.5)
        harness.site.udp_port = stun.getsockname()[1]

        await harness.fetcher(proxies=ring(proxy), browsing=BROWSING).fetch(harness.state(page))

        with pytest.raises(TimeoutError):
            await asyncio.to_thread(stun.recv, 100)
    assert harness.site.baited == 0
    assert not AHEAD & set(harness.site.asked)
    assert harness.site.connections == passed_on(proxy) > 0
    assert {target for usage in proxy.usage.values() for target in usage.targets} == {harness.site.authority}


async def test_a_redirect_stays_at_the_proxy_and_off_foreign_hosts(
    harness: BrowserHarness, proxy: ForwardProxy
) -> None:
    with pytest.raises(ForbiddenTarget):
        await harness.fetcher(proxies=ring(proxy)).fetch(FetchRequest(source="crex", url=harness.site.url("/redirect")))

    assert harness.site.connections == passed_on(proxy) > 0
    assert {target for usage in proxy.usage.values() for target in usage.targets} == {harness.site.authority}


@pytest.mark.req("CAP-4")
@pytest.mark.parametrize("fault", ProxyFaultKind)
async def test_a_broken_proxy_is_not_gone_around(
    harness: BrowserHarness, proxy: ForwardProxy, fault: ProxyFaultKind
) -> None:
    fetcher = harness.fetcher(proxies=ring(proxy), browsing=BrowserPolicy(page_seconds=5))
    await harness.start()
    proxy.change([ProxyFault(kind=fault)])

    with pytest.raises(FetchError) as caught:
        await fetcher.fetch(harness.state())
    assert not harness.site.asked
    assert SECRET not in str(caught.value)

    proxy.change([])
    assert (await fetcher.fetch(harness.state())).status == 200


@pytest.mark.req("CAP-4")
async def test_a_dead_proxy_is_not_gone_around(harness: BrowserHarness, proxy: ForwardProxy) -> None:
    dead = ProxyRing(
        ProxyAccount(host="127.0.0.1", port=9, username="us", password=SecretStr(SECRET)),
        sessions=1,
        new_name=_names(),
        now=monotonic(),
    )

    with pytest.raises(ProxyFailed):
        await harness.fetcher(proxies=dead).fetch(harness.state())

    assert not harness.site.asked


async def test_what_has_no_proxy_of_its_own_goes_nowhere(harness: BrowserHarness, proxy: ForwardProxy) -> None:
    await harness.fetcher(proxies=ring(proxy), browsing=BROWSING).fetch(harness.state())
    before = harness.site.asked.total()

    context = await harness.engine().new_context()
    page = await context.new_page()
    with pytest.raises(Exception, match="ERR_PROXY_CONNECTION_FAILED"):
        await page.goto(harness.site.url("/static"))
    await context.close()

    assert harness.site.asked["/static"] == 0
    assert before


@pytest.mark.req("CAP-4")
async def test_sessions_take_turns_each_with_its_own_credential(harness: BrowserHarness, proxy: ForwardProxy) -> None:
    fetcher = harness.fetcher(proxies=ring(proxy, sessions=3), browsing=BROWSING)

    for _ in range(6):
        await fetcher.fetch(harness.state("late"))

    assert served(proxy) == {credential(f"name{number}") for number in (1, 2, 3)}
    assert harness.engine().contexts == 3


@pytest.mark.req("CAP-4")
async def test_a_refusal_is_followed_by_another_session(harness: BrowserHarness, proxy: ForwardProxy) -> None:
    fetcher = harness.fetcher(proxies=ring(proxy), browsing=BROWSING)

    with pytest.raises(SourceRefused):
        await fetcher.fetch(harness.state("403"))
    await fetcher.fetch(harness.state("late"))

    assert served(proxy) == {credential("name1"), credential("name2")}
    assert "proxy.rotated" in harness.events.names()


@pytest.mark.req("CAP-4", "FR-021")
@pytest.mark.parametrize("end", ["its time is over", "it is refused"])
async def test_a_session_that_ends_interrupts_no_request_and_accepts_none(
    harness: BrowserHarness, proxy: ForwardProxy, end: str
) -> None:
    proxies = ring(proxy)
    fetcher = harness.fetcher(proxies=proxies, browsing=BROWSING)
    waiting = asyncio.ensure_future(fetcher.fetch(harness.state("plain", "held")))
    await until(lambda: harness.site.asked["/api/state"] == 1, 15)
    old = fetcher.sessions[0]

    if end == "it is refused":
        with pytest.raises(SourceRefused):
            await fetcher.fetch(harness.state("403"))
    else:
        proxies.refused("name1", monotonic())
    await fetcher.fetch(harness.state("plain"))
    new, is_old_open = fetcher.sessions[0], not old.is_closed
    harness.site.released.set()

    assert json.loads((await waiting).body)["match"] == "held"
    assert (new.plan.name, is_old_open, len(fetcher.sessions)) == ("name2", True, 1)
    await until(lambda: old.is_closed and harness.engine().contexts == 1, 10)


@pytest.mark.req("CAP-4")
async def test_who_waited_for_a_session_that_is_over_by_now_gets_the_next_one(
    harness: BrowserHarness, proxy: ForwardProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    proxies, opened, open_one = ring(proxy), list[str](), Session.open

    async def opening(plan: SessionPlan, *arguments: Any) -> Session:
        session = await open_one(plan, *arguments)
        opened.append(plan.name)
        if len(opened) == 1:
            proxies.refused(plan.name, monotonic())  # while the second waits for its turn
        return session

    monkeypatch.setattr(Session, "open", opening)
    fetcher = harness.fetcher(proxies=proxies, browsing=BROWSING)

    await asyncio.gather(*(fetcher.fetch(harness.state("plain", match)) for match in "ab"))

    assert opened == ["name1", "name2"]
    assert served(proxy) == {credential("name1"), credential("name2")}


@pytest.mark.req("CAP-4")
async def test_an_answer_of_an_odd_size_costs_its_session_and_is_brought(
    harness: BrowserHarness, proxy: ForwardProxy
) -> None:
    fetcher = harness.fetcher(proxies=ring(proxy), browsing=BROWSING)
    harness.site.state = (200, json.dumps({"match": "1", "much": "x" * 20_000}))
    for _ in range(5):
        await fetcher.fetch(harness.state("plain"))
    harness.site.state = (200, json.dumps({"match": "1"}))

    odd = [await fetcher.fetch(harness.state("plain")) for _ in range(3)]

    assert [json.loads(page.body) for page in odd] == [{"match": "1"}] * 3
    assert served(proxy) == {credential("name1"), credential("name2")}
    assert len(harness.events.of("proxy.rotated")) == 1


@pytest.mark.req("CAP-4")
async def test_all_that_goes_through_the_proxy_is_metered_whichever_way(
    harness: BrowserHarness, proxy: ForwardProxy, tmp_path: Path
) -> None:
    meter = ProxyMeter(tmp_path / "bytes.json", budget_bytes=0, clock=SystemClock(), bus=harness.bus)
    fetcher = harness.fetcher(proxies=ring(proxy), meter=meter)
    harness.site.state = (200, json.dumps({"match": "1", "much": "x" * 20_000}))

    while fetcher.mode is not Mode.HTTP:
        await fetcher.fetch(harness.state())
    await fetcher.fetch(harness.state())
    await fetcher.aclose()

    # Chromium does not report all of what was in transit when the page closed.
    assert meter.used_bytes == pytest.approx(_carried(proxy), rel=0.2, abs=45_000)
    assert meter.used_bytes > 150_000


@pytest.mark.req("CAP-4")
@pytest.mark.parametrize("page", ["", "/page/endless"])
async def test_an_answer_without_an_end_is_ended_at_the_cap_and_metered(
    harness: BrowserHarness, proxy: ForwardProxy, tmp_path: Path, page: str
) -> None:
    meter = ProxyMeter(tmp_path / "bytes.json", budget_bytes=0, clock=SystemClock(), bus=harness.bus)
    fetcher = harness.fetcher(proxies=ring(proxy), browsing=BROWSING, meter=meter)
    endless = FetchRequest(source="crex", url=harness.site.url("/api/endless"), page=page and harness.site.url(page))

    with pytest.raises(BodyTooLarge):
        await fetcher.fetch(endless)

    await until(lambda: not harness.site.pouring, 10)
    assert meter.used_bytes > 5_000_000
    assert meter.used_bytes == pytest.approx(_carried(proxy), rel=0.5)
    assert all(tab.interception.is_quiet for tab in fetcher.sessions[0].tabs)


@pytest.mark.req("CAP-4")
async def test_what_is_under_way_when_its_page_closes_is_metered(
    harness: BrowserHarness, proxy: ForwardProxy, tmp_path: Path
) -> None:
    meter = ProxyMeter(tmp_path / "bytes.json", budget_bytes=0, clock=SystemClock(), bus=harness.bus)
    fetcher = harness.fetcher(proxies=ring(proxy), browsing=BROWSING, meter=meter)
    await fetcher.fetch(harness.state("endless-aside"))

    await fetcher.aclose()

    await until(lambda: not harness.site.pouring, 10)
    assert meter.used_bytes > 200_000
    assert meter.used_bytes == pytest.approx(_carried(proxy), rel=0.5)


def _carried(proxy: ForwardProxy) -> int:
    return sum(usage.bytes_up + usage.bytes_down for usage in proxy.usage.values())


@pytest.mark.req("CAP-4")
async def test_the_last_of_the_proxy_budget_is_for_live_matches_and_then_no_request_is_sent(
    harness: BrowserHarness, proxy: ForwardProxy, tmp_path: Path
) -> None:
    meter = ProxyMeter(tmp_path / "bytes.json", budget_bytes=1_000_000, clock=SystemClock(), bus=harness.bus)
    fetcher = harness.fetcher(proxies=ring(proxy), browsing=BROWSING, meter=meter)
    over = structs.replace(harness.state("plain"), priority=Priority.COMPLETED)
    await fetcher.fetch(over)

    meter.count(900_000)
    with pytest.raises(BudgetSpent):
        await fetcher.fetch(over)
    await fetcher.fetch(harness.state("plain"))
    meter.count(100_000)
    before = harness.site.asked.total()
    with pytest.raises(BudgetSpent):
        await fetcher.fetch(harness.state("plain"))

    assert fetcher.sessions == ()
    assert harness.site.asked.total() == before


@pytest.mark.req("CAP-4")
async def test_one_session_that_fails_says_nothing_about_the_others(
    harness: BrowserHarness, proxy: ForwardProxy
) -> None:
    fetcher = harness.fetcher(proxies=ring(proxy, sessions=2), browsing=BROWSING)
    proxy.change([ProxyFault(kind=ProxyFaultKind.REFUSED, credential=credential("name1"))])

    outcomes = [await _outcome(fetcher, harness) for _ in range(4)]

    assert outcomes == ["ProxyRefused", "good"] * 2
    assert served(proxy) == {credential("name2")}
    assert harness.site.connections == passed_on(proxy)


async def _outcome(fetcher: BrowserFetcher, harness: BrowserHarness) -> str:
    try:
        await fetcher.fetch(harness.state("plain"))
    except FetchError as error:
        return type(error).__name__
    return "good"


async def test_credentials_show_in_no_process_no_event_and_no_file(
    tmp_path: Path, site: Site, proxy: ForwardProxy
) -> None:
    async with browser_harness(tmp_path, site) as harness:
        fetcher = harness.fetcher(proxies=ring(proxy, sessions=2), browsing=BROWSING)
        await fetcher.fetch(harness.state())
        with pytest.raises(SourceRefused):
            await fetcher.fetch(harness.state("403"))
        shown = [_shown(each.pid) for each in list_processes()]

        assert not any(SECRET.encode() in text for text in shown)
        assert SECRET not in repr(harness.events.events)
        assert SECRET not in (tmp_path / "browsers.json").read_text()


def _shown(pid: int) -> bytes:
    """Return arguments and environment of a process, as other users may see them."""
    try:
        return b"".join(Path(f"/proc/{pid}/{name}").read_bytes() for name in ("cmdline", "environ"))
    except OSError:
        return b""
