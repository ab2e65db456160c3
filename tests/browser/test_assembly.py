"""Browsers are built as the settings say."""

import json
import os
import shutil
import tempfile
from pathlib import Path

import pytest
from pydantic import SecretStr

from longstop.app.browsers import browser_fetcher, browser_pool, proxy_account, scratch_of
from longstop.clock import SystemClock
from longstop.errors import SettingsError
from longstop.fetching.browser.browser_policy_and_stats import BrowserKind
from longstop.fetching.guarded_and_replaceable_fetcher import FetchPolicy
from longstop.settings import Browser, Proxy, load_settings
from longstop.storage.directory import DataDirectory
from longstop.telemetry.bus import Bus
from longstop_lab.simulator.forward_proxy import running_forward_proxy
from tests.browser.harness import BrowserHarness, RecordedEvents
from tests.browser.site import Site
from tests.builders import CREX_CONFIG


@pytest.mark.parametrize("options", [None, "--no-deprecation"])
def test_the_environment_is_as_it_was_when_the_scratch_is_gone(
    tmp_path: Path, options: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NODE_OPTIONS", raising=False)
    if options is not None:
        monkeypatch.setenv("NODE_OPTIONS", options)
    directory, before = DataDirectory.open(tmp_path / "data"), dict(os.environ)

    with scratch_of(directory) as scratch:
        for _ in range(2):
            browser_pool(Browser(), directory, scratch, Bus([]))
        within = dict(os.environ)

    assert within["TMPDIR"] == str(scratch)
    assert within["NODE_OPTIONS"] == " ".join([*([options] if options else []), "--max-semi-space-size=2"])
    assert dict(os.environ) == before
    assert not scratch.exists()


@pytest.mark.parametrize("is_proxied", [False, True])
async def test_a_fetcher_made_from_the_settings_brings_a_page(
    tmp_path: Path, site: Site, is_proxied: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NODE_OPTIONS", "--no-deprecation")
    directory, heard = DataDirectory.open(tmp_path / "data"), RecordedEvents()
    with scratch_of(directory) as scratch:
        async with running_forward_proxy() as proxy:
            given = {"IPROYAL_HOST": "127.0.0.1", "IPROYAL_PORT": str(proxy.port), "IPROYAL_USERNAME": "us"}
            environ = {**given, "IPROYAL_PASSWORD": "canary"} if is_proxied else {}
            settings = load_settings(environ, {}).scraper.browser
            pool = browser_pool(settings, directory, scratch, Bus([heard]))
            fetcher = browser_fetcher(
                CREX_CONFIG,
                BrowserKind.SHELL,
                settings=settings,
                pool=pool,
                policy=FetchPolicy(hosts=(site.authority,), allow_private_addresses=True),
                clock=SystemClock(),
                bus=Bus([heard]),
            )

            foreign = tempfile.mkdtemp(prefix="playwright-artifacts-")
            page = await fetcher.fetch(BrowserHarness(pool, site, heard).state())
            names = {name.partition("-")[0] for name in _within(scratch)}
            driver = pool.engines[0].driver
            options = _environment_of(driver.pid if driver else 0)
            await fetcher.aclose()
            await pool.aclose()
            left = _within(scratch)

    assert json.loads(page.body)["match"] == "1"
    assert {"playwright", "playwright_chromiumdev_profile"} <= names
    assert "NODE_OPTIONS=--no-deprecation --max-semi-space-size=2" in options
    assert not left
    assert Path(foreign).name in _within(scratch.parent)
    shutil.rmtree(foreign)
    assert bool(proxy.proxy.usage) is is_proxied
    assert "canary" not in repr(heard.events)


def _environment_of(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/environ").read_text().split("\0")


def _within(path: Path) -> list[str]:
    return [each.name for each in path.iterdir()]


@pytest.mark.req("CAP-4")
@pytest.mark.parametrize("missing", ["host", "username", "password"])
def test_half_an_account_at_the_proxy_stops_the_start(missing: str) -> None:
    whole = {"host": "proxy.example", "username": "us", "password": SecretStr("canary")}

    with pytest.raises(SettingsError, match=f"IPROYAL_{missing.upper()} is missing"):
        proxy_account(Proxy(**{name: value for name, value in whole.items() if name != missing}))


def test_without_an_account_there_is_no_proxy() -> None:
    assert proxy_account(Browser().proxy) is None
