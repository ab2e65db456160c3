"""The whole check-up: every check once, in the order in which a person would mend things."""

import shutil
import sys
from collections.abc import Mapping

import psutil

from longstop.doctor import machine, measure, place
from longstop.doctor.base import Check
from longstop.fetching.browser.chromium import BrowserKind, find_chromium
from longstop.settings import Settings


def examine(environ: Mapping[str, str]) -> list[Check]:
    """Return what was found; it takes a second at most and leaves nothing behind."""
    settings, checked = place.check_settings(environ)
    return [
        *_machine(settings),
        checked,
        *place.check_sources(settings.sources),
        *_data(settings),
        *_ports(settings),
        *_browsers(settings),
        *(machine.check_program(program, shutil.which(program.name)) for program in machine.PROGRAMS),
    ]


def _machine(settings: Settings) -> list[Check]:
    return [
        machine.check_python(sys.version_info[:3]),
        machine.check_sqlite(*measure.sqlite()),
        machine.check_fetching(*measure.user_agent()),
        machine.check_clock(*measure.clocks_apart()),
        machine.check_memory(psutil.virtual_memory().available),
        machine.check_open_files(measure.open_files_limit(), settings.scraper.fetching.concurrency_cap),
    ]


def _data(settings: Settings) -> list[Check]:
    there = place.nearest_existing(settings.data)
    return [
        place.check_data_directory(settings.data, measure.lock_holder(settings.data / "scraper.lock")),
        machine.check_space(str(there.absolute()), measure.free_bytes(there)),
    ]


def _browsers(settings: Settings) -> list[Check]:
    packages = {BrowserKind.SHELL: "chromium-headless-shell", BrowserKind.HEADLESS: "chromium"}
    found = {kind: find_chromium(kind, settings.scraper.browser.executable) for kind in packages}
    return [
        machine.check_chromium(kind, str(found[kind]) if found[kind] else None, package)
        for kind, package in packages.items()
    ]


def _ports(settings: Settings) -> list[Check]:
    api, metrics = settings.api, settings.scraper.monitoring.prometheus
    checks = [
        place.check_port(
            "API port", api.port, "LONGSTOP_API_PORT", measure.listener_on(api.host, api.port), is_needed=True
        )
    ]
    if metrics.enabled:
        holder = measure.listener_on(metrics.host, metrics.port)
        checks.append(place.check_port("metrics port", metrics.port, "PROMETHEUS_PORT", holder, is_needed=False))
    return checks
