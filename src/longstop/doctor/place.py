"""Checks of what an operator chose: settings, sites, the data directory and the ports."""

import os
from collections.abc import Mapping
from pathlib import Path

from longstop.doctor.base import NO_SITE, Check, Verdict, judged
from longstop.doctor.holders import Holder
from longstop.errors import SettingsError
from longstop.fetching.browser.base import BrowserKind
from longstop.settings import Settings, read_settings
from longstop.sources.base import SourceConfig
from longstop.sources.registry import load_sources, make_source


def check_settings(environ: Mapping[str, str]) -> tuple[Settings | None, Check]:
    """Return the settings, `None` when they are refused: what defaults would show is true of nobody."""
    try:
        settings = read_settings(environ)
    except SettingsError as error:
        return None, judged("settings", "they are refused", _one_line(error), is_good=False)
    return settings, judged("settings", "environment and file are valid", "", is_good=True)


def check_sources(path: Path) -> list[Check]:
    """Judge the sites' file, and each site that is enabled in it."""
    try:
        configs = load_sources(path)
    except SettingsError as error:
        return [judged("sources", f"{path} is refused", _one_line(error), is_good=False)]
    enabled = [config for config in configs if config.enabled]
    if not enabled:
        return [_none_enabled(path, configs)]
    return [_check_source(config) for config in enabled]


def browsers_wanted(settings: Settings) -> set[BrowserKind]:
    """Return the kinds of browser that enabled sites are read by; one with a window is a whole one, too."""
    try:
        configs = load_sources(settings.sources)
    except SettingsError:
        return set()
    kinds = {config.browser for config in configs if config.enabled and config.browser}
    if BrowserKind.HEADLESS in kinds and not settings.scraper.browser.headless:
        kinds.add(BrowserKind.HEADED)
    return kinds | ({BrowserKind.HEADLESS} if BrowserKind.HEADED in kinds else set())


def check_data_directory(path: Path, holder: Holder | None) -> Check:
    """Judge whether the directory can be used or made; making it is not our business."""
    if path.exists() and not path.is_dir():
        advice = "choose another path with LONGSTOP_DATA"
        return judged("data directory", f"{path} is no directory", advice, is_good=False)
    there = nearest_existing(path)
    if not os.access(there, os.R_OK | os.W_OK | os.X_OK):
        advice = "make it writable, or choose another directory with LONGSTOP_DATA"
        return judged("data directory", f"{there} cannot be written", advice, is_good=False)
    state = f"{path} is writable" if there == path else f"{path} will be made"
    used = f", in use by the scraper {holder}" if holder else ""
    return judged("data directory", state + used, "", is_good=True)


def check_port(name: str, port: int, variable: str, holder: Holder | None, data: Path, *, is_needed: bool) -> Check:
    """Judge a port; one that a Longstop of this very data directory already holds is in good hands."""
    if port == 0:
        return judged(name, "any free port will be taken", "", is_good=True, is_needed=is_needed)
    if holder is None:
        return judged(name, f"{port} is free", "", is_good=True, is_needed=is_needed)
    return judged(
        name,
        f"{port} is taken by {holder}",
        f"end that process, or choose another port with {variable}",
        is_good=holder.data == data.resolve(),
        is_needed=is_needed,
    )


def nearest_existing(path: Path) -> Path:
    """Return the path itself, or the nearest directory above it that is there."""
    return next(each for each in (path, *path.absolute().parents) if each.exists())


def _none_enabled(path: Path, configs: tuple[SourceConfig, ...]) -> Check:
    named = ", ".join(config.domain_id for config in configs) or "none"
    return Check(
        name=NO_SITE,
        verdict=Verdict.MISSING,
        found=f"no site is enabled in {path} (known: {named})",
        advice="write who gave leave into permission and set enabled: true; longstop demo needs none",
        is_needed=False,
    )


def _check_source(config: SourceConfig) -> Check:
    name = f"source {config.domain_id}"
    try:
        make_source(config)
    except SettingsError as error:
        return judged(name, "it cannot be made", _one_line(error), is_good=False)
    leave = f"leave: {config.permission}" if config.permission else "no leave needed on private addresses"
    way = f"by a browser ({config.browser})" if config.browser else "by HTTP"
    return judged(name, f"enabled, read {way}; {leave}", "", is_good=True)


def _one_line(error: SettingsError) -> str:
    return "; ".join(str(error).splitlines())
