"""The whole check-up: every check once, in the order in which a person would mend things."""

import os
import shutil
import sys
from collections.abc import Collection, Mapping
from pathlib import Path

import psutil

from longstop.doctor import holders, machine, measure, place
from longstop.doctor.base import NO_SITE, Check, skipped
from longstop.doctor.machine import Remedy
from longstop.fetching.browser.base import BrowserKind
from longstop.fetching.browser.chromium import find_chromium, missing_packages
from longstop.settings import Settings

#: What nobody can look at who does not know the settings.
_BY_SETTINGS = ("open files", NO_SITE, "data directory", "disk space", "API port", "metrics port", "browsers")


def examine(environ: Mapping[str, str]) -> list[Check]:
    """Return what was found; it takes a few seconds at most and leaves nothing behind."""
    settings, checked = place.check_settings(environ)
    remedy = Remedy(os.geteuid() == 0, shutil.which("apt-get") is not None, sys.executable)
    if settings is None:
        return [*_machine(), checked, *map(skipped, _BY_SETTINGS), *_programs(remedy, needs_display=False)]
    wanted = place.browsers_wanted(settings)
    return [
        *_machine(),
        machine.check_open_files(measure.open_files_limit(), settings.scraper.fetching.concurrency_cap),
        checked,
        *place.check_sources(settings.sources),
        *_data(settings),
        *_ports(settings),
        *_browsers(settings, wanted, environ, remedy),
        *_programs(remedy, needs_display=BrowserKind.HEADED in wanted and not environ.get("DISPLAY")),
    ]


def _machine() -> list[Check]:
    return [
        machine.check_python(sys.version_info[:3]),
        machine.check_sqlite(*measure.sqlite()),
        machine.check_fetching(*measure.user_agent()),
        machine.check_clock(*measure.clocks_apart()),
        machine.check_memory(psutil.virtual_memory().available),
    ]


def _data(settings: Settings) -> list[Check]:
    there = place.nearest_existing(settings.data)
    return [
        place.check_data_directory(settings.data, holders.lock_holder(settings.data / "scraper.lock")),
        machine.check_space(str(there.absolute()), measure.free_bytes(there)),
    ]


def _browsers(
    settings: Settings, wanted: Collection[BrowserKind], environ: Mapping[str, str], remedy: Remedy
) -> list[Check]:
    named = settings.scraper.browser.executable
    paths = {kind: Path(named) if named else find_chromium(kind, "", environ) for kind in machine.BROWSER_PACKAGES}
    starts = measure.browser_starts(paths, environ)
    return [
        machine.check_browser_packages(missing_packages(), remedy, is_needed=bool(wanted)),
        *(
            machine.check_chromium(kind, starts[kind], remedy, is_needed=kind in wanted, is_root=remedy.is_root)
            for kind in machine.BROWSER_PACKAGES
        ),
    ]


def _programs(remedy: Remedy, *, needs_display: bool) -> list[Check]:
    return [
        machine.check_program(
            program,
            shutil.which(program.name),
            remedy,
            is_needed=needs_display and program.name == machine.DISPLAY_PROGRAM,
        )
        for program in machine.PROGRAMS
    ]


def _ports(settings: Settings) -> list[Check]:
    api, metrics, data = settings.api, settings.scraper.monitoring.prometheus, settings.data
    holder = holders.listener_on(api.host, api.port)
    checks = [place.check_port("API port", api.port, "LONGSTOP_API_PORT", holder, data, is_needed=True)]
    if metrics.enabled:
        holder = holders.listener_on(metrics.host, metrics.port)
        checks.append(place.check_port("metrics port", metrics.port, "PROMETHEUS_PORT", holder, data, is_needed=False))
    return checks
