"""What a browser needs on this machine: Python packages and a Chromium; and the arguments that Chromium gets."""

import os
from collections.abc import Iterable, Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from shutil import which

from longstop.fetching.browser.browser_policy_and_stats import BrowserKind

#: Packages of the extra `browser`.
PACKAGES = ("playwright", "playwright_stealth")
INSTALL = "pip install 'longstop[browser]'"

_COMPLETE = ("chromium", "chromium-browser", "google-chrome")
PROGRAMS = {
    BrowserKind.SHELL: ("chromium-headless-shell", "chrome-headless-shell", "headless_shell"),
    BrowserKind.HEADLESS: _COMPLETE,
    BrowserKind.HEADED: _COMPLETE,
}
#: The program itself, where a distribution wraps it in a script of the same name.
_WRAPPED_PROGRAMS = Path("/usr/lib/chromium")
#: Where `playwright install` puts its browsers; the number is the revision.
_DOWNLOADED = {
    BrowserKind.SHELL: "chromium_headless_shell-*/*/*headless*shell",
    BrowserKind.HEADLESS: "chromium-*/chrome-linux*/chrome",
    BrowserKind.HEADED: "chromium-*/chrome-linux*/chrome",
}

_ALWAYS = (
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--disable-breakpad",
    "--block-new-web-contents",
    "--disable-blink-features=AutomationControlled",
    # WebRTC would bypass the proxy and show our own address.
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
)
#: Chromium reads only the last `--disable-features`, so this repeats Playwright's list. It also has
#: features that cost the complete browser a renderer per context, or a new frame for each reload of a page.
_DISABLED_FEATURES = (
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
    "RenderDocument",
)


def missing_packages() -> list[str]:
    return [name for name in PACKAGES if find_spec(name) is None]


def find_chromium(kind: BrowserKind, configured: str = "", environment: Mapping[str, str] | None = None) -> Path | None:
    """Return the program to start; `None` if there is none. A configured path is the only candidate."""
    if configured:
        path = Path(configured)
        return path if path.is_file() else None
    return next(_installed(kind, environment or {}), None)


def launch_arguments(*, is_process_per_site: bool = False, reachable: Iterable[str] = ()) -> list[str]:
    """Return the arguments of every start. As root, Chromium runs only without its sandbox.

    With a list of reachable hosts no other host name is resolved, neither for a page nor for Chromium's own requests.
    """
    arguments = list(_ALWAYS)
    if os.geteuid() == 0:
        arguments.append("--no-sandbox")
    if is_process_per_site:
        arguments.append("--process-per-site")
    names = sorted({host.partition(":")[0] for host in reachable})
    if names:
        rules = ["MAP * ~NOTFOUND", *(f"EXCLUDE {each}" for each in names)]
        arguments.append(f"--host-resolver-rules={', '.join(rules)}")
    arguments.append(f"--disable-features={','.join(_DISABLED_FEATURES)}")
    return arguments


def _installed(kind: BrowserKind, environment: Mapping[str, str]) -> Iterator[Path]:
    for name in PROGRAMS[kind]:
        wrapped = _WRAPPED_PROGRAMS / name
        if wrapped.is_file():
            yield wrapped
    for name in PROGRAMS[kind]:
        found = which(name, path=environment.get("PATH"))
        if found:
            yield Path(found)
    downloads = _downloads(environment)
    programs = (path for path in downloads.glob(_DOWNLOADED[kind]) if path.is_file())
    yield from sorted(programs, key=lambda path: _revision(path.relative_to(downloads)), reverse=True)


def _downloads(environment: Mapping[str, str]) -> Path:
    """Return where `playwright install` puts its browsers, by the same variables."""
    if named := environment.get("PLAYWRIGHT_BROWSERS_PATH"):
        return Path(named)
    home = Path(environment.get("HOME") or Path.home())
    return Path(environment.get("XDG_CACHE_HOME") or home / ".cache") / "ms-playwright"


def _revision(path: Path) -> int:
    """Return the number at the end of the first folder's name; 0 if there is none."""
    number = path.parts[0].rpartition("-")[2]
    return int(number) if number.isdecimal() else 0
