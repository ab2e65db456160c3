"""What the settings say is what the browsers do."""

import json
from pathlib import Path

import pytest
from pydantic import SecretStr

from longstop.app.browsers import browser_fetcher, browser_pool, proxy_account
from longstop.clock import SystemClock
from longstop.errors import SettingsError
from longstop.fetching.browser.chromium import BrowserKind
from longstop.fetching.guards import FetchPolicy
from longstop.settings import Browser, Proxy, load_settings
from longstop.storage.directory import DataDirectory
from longstop.telemetry.bus import Bus
from tests.browser.laboratory import Heard, Laboratory
from tests.browser.proxy import proxying
from tests.browser.site import Site


@pytest.mark.parametrize("is_proxied", [False, True])
async def test_a_fetcher_made_from_the_settings_brings_a_page(tmp_path: Path, site: Site, is_proxied: bool) -> None:
    directory, heard = DataDirectory.open(tmp_path / "data"), Heard()
    async with proxying() as proxy:
        given = {"IPROYAL_HOST": "127.0.0.1", "IPROYAL_PORT": str(proxy.port), "IPROYAL_USERNAME": "us"}
        environ = {**given, "IPROYAL_PASSWORD": "canary"} if is_proxied else {}
        settings = load_settings(environ, {}).scraper.browser
        pool = browser_pool(settings, directory, Bus([heard]))
        fetcher = browser_fetcher(
            "crex",
            BrowserKind.SHELL,
            settings=settings,
            pool=pool,
            policy=FetchPolicy(hosts=(site.authority,), allow_private_addresses=True),
            clock=SystemClock(),
            bus=Bus([heard]),
        )

        page = await fetcher.fetch(Laboratory(pool, site, heard).state())
        await fetcher.aclose()
        await pool.aclose()

    assert json.loads(page.body)["match"] == "1"
    assert bool(proxy.requests) is is_proxied
    assert "canary" not in repr(heard.events)


@pytest.mark.req("CAP-4")
@pytest.mark.parametrize("missing", ["host", "username", "password"])
def test_half_an_account_at_the_proxy_stops_the_start(missing: str) -> None:
    whole = {"host": "proxy.example", "username": "us", "password": SecretStr("canary")}

    with pytest.raises(SettingsError, match=f"IPROYAL_{missing.upper()} is missing"):
        proxy_account(Proxy(**{name: value for name, value in whole.items() if name != missing}))


def test_without_an_account_there_is_no_proxy() -> None:
    assert proxy_account(Browser().proxy) is None
