"""Which Chromium is started, and with which arguments."""

from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from shutil import which


class BrowserKind(StrEnum):
    """How much of a browser a site needs to see; some sites tell them apart."""

    #: The old headless browser without a user interface: the lightest.
    SHELL = "shell"
    #: The whole browser, without a window.
    HEADLESS = "headless"
    #: The whole browser with its window, on a display of its own where there is none.
    HEADED = "headed"


_WHOLE = ("chromium", "chromium-browser", "google-chrome")
PROGRAMS = {
    BrowserKind.SHELL: ("chromium-headless-shell", "chrome-headless-shell", "headless_shell"),
    BrowserKind.HEADLESS: _WHOLE,
    BrowserKind.HEADED: _WHOLE,
}
#: The program itself, where a distribution puts a script of the same name in front of it.
_BEHIND_SCRIPTS = Path("/usr/lib/chromium")
#: Where `playwright install` puts its own, below the home directory.
_DOWNLOADED = {
    BrowserKind.SHELL: ".cache/ms-playwright/chromium_headless_shell-*/*/*headless*shell",
    BrowserKind.HEADLESS: ".cache/ms-playwright/chromium-*/chrome-linux*/chrome",
    BrowserKind.HEADED: ".cache/ms-playwright/chromium-*/chrome-linux*/chrome",
}

_ALWAYS = (
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--disable-breakpad",
    "--block-new-web-contents",
    # Without a proxy for it, WebRTC would show our own address.
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
)
#: What Playwright switches off, repeated since only the last list counts, and what costs the whole browser a renderer
#: per context.
_WHOLE_WITHOUT = (
    "AvoidUnnecessaryBeforeUnloadCheckSync",
    "DestroyProfileOnBrowserClose",
    "HttpsUpgrades",
    "HttpsFirstBalancedModeAutoEnable",
    "LensOverlay",
    "MediaRouter",
    "PaintHolding",
    "ThirdPartyStoragePartitioning",
    "AvoidCorsURLLoaderRestartOnRedirect",
    "OptimizationHints",
    "NetworkTimeServiceQuerying",
    "Translate",
    "AutoDeElevate",
    "WebUIOmniboxPopup",
    "WebUIOmniboxAimPopup",
)


def find_chromium(kind: BrowserKind, configured: str = "", home: Path | None = None) -> Path | None:
    """Return the program to start; `None` when there is none. A configured one that is missing is none."""
    if configured:
        path = Path(configured)
        return path if path.is_file() else None
    return next(_installed(kind, home or Path.home()), None)


def launch_arguments(kind: BrowserKind, *, is_root: bool, is_process_per_site: bool = False) -> tuple[str, ...]:
    """Return the arguments that every start needs; as root Chromium runs without its sandbox or not at all."""
    arguments = list(_ALWAYS)
    if is_root:
        arguments.append("--no-sandbox")
    if is_process_per_site:
        arguments.append("--process-per-site")
    if kind is not BrowserKind.SHELL:
        arguments.append(f"--disable-features={','.join(_WHOLE_WITHOUT)}")
    return tuple(arguments)


def _installed(kind: BrowserKind, home: Path) -> Iterator[Path]:
    for name in PROGRAMS[kind]:
        behind = _BEHIND_SCRIPTS / name
        if behind.is_file():
            yield behind
    for name in PROGRAMS[kind]:
        found = which(name)
        if found:
            yield Path(found)
    yield from sorted((path for path in home.glob(_DOWNLOADED[kind]) if path.is_file()), reverse=True)
