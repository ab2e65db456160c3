"""Which Chromium is started, and with which arguments."""

from collections.abc import Iterable, Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from shutil import which

from longstop.fetching.browser.base import BrowserKind

_WHOLE = ("chromium", "chromium-browser", "google-chrome")
PROGRAMS = {
    BrowserKind.SHELL: ("chromium-headless-shell", "chrome-headless-shell", "headless_shell"),
    BrowserKind.HEADLESS: _WHOLE,
    BrowserKind.HEADED: _WHOLE,
}
#: The program itself, where a distribution puts a script of the same name in front of it.
_BEHIND_SCRIPTS = Path("/usr/lib/chromium")
#: What `playwright install` puts into its own directory; the number is the version's.
_DOWNLOADED = {
    BrowserKind.SHELL: "chromium_headless_shell-*/*/*headless*shell",
    BrowserKind.HEADLESS: "chromium-*/chrome-linux*/chrome",
    BrowserKind.HEADED: "chromium-*/chrome-linux*/chrome",
}
#: The value of its variable with which Playwright keeps them inside its own package.
_INSIDE = "0"

_ALWAYS = (
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--disable-breakpad",
    "--block-new-web-contents",
    "--disable-blink-features=AutomationControlled",
    # Without a proxy for it, WebRTC would show our own address.
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
)
#: What Playwright switches off, repeated since only the last list counts, what costs the whole browser a renderer per
#: context, and what makes a page that is loaded again a new frame of a new view.
_WITHOUT = (
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


def find_chromium(kind: BrowserKind, configured: str = "", environment: Mapping[str, str] | None = None) -> Path | None:
    """Return the program to start; `None` when there is none. A configured one that is missing is none."""
    if configured:
        path = Path(configured)
        return path if path.is_file() else None
    return next(_installed(kind, environment or {}), None)


def launch_arguments(
    *, is_root: bool, is_process_per_site: bool = False, reachable: Iterable[str] = ()
) -> tuple[str, ...]:
    """Return the arguments that every start needs; as root Chromium runs without its sandbox or not at all.

    With hosts that are reachable, no other one is found: not for a page, and not for what Chromium does ahead of it.
    """
    arguments = list(_ALWAYS)
    if is_root:
        arguments.append("--no-sandbox")
    if is_process_per_site:
        arguments.append("--process-per-site")
    names = sorted({host.partition(":")[0] for host in reachable})
    if names:
        arguments.append(
            f"--host-resolver-rules={', '.join(['MAP * ~NOTFOUND', *(f'EXCLUDE {each}' for each in names)])}"
        )
    arguments.append(f"--disable-features={','.join(_WITHOUT)}")
    return tuple(arguments)


def _installed(kind: BrowserKind, environment: Mapping[str, str]) -> Iterator[Path]:
    for name in PROGRAMS[kind]:
        behind = _BEHIND_SCRIPTS / name
        if behind.is_file():
            yield behind
    for name in PROGRAMS[kind]:
        found = which(name, path=environment.get("PATH"))
        if found:
            yield Path(found)
    place = _downloads(environment)
    if place is None:
        return
    programs = (path for path in place.glob(_DOWNLOADED[kind]) if path.is_file())
    yield from sorted(programs, key=lambda path: _revision(path.relative_to(place)), reverse=True)


def _downloads(environment: Mapping[str, str]) -> Path | None:
    """Return where `playwright install` puts its browsers, by the variables that it goes by; `None` for nowhere."""
    named = environment.get("PLAYWRIGHT_BROWSERS_PATH")
    if named:
        return _inside_playwright() if named == _INSIDE else Path(named)
    home = Path(environment.get("HOME") or Path.home())
    return Path(environment.get("XDG_CACHE_HOME") or home / ".cache") / "ms-playwright"


def _inside_playwright() -> Path | None:
    package = find_spec("playwright")
    return Path(package.origin).parent / "driver/package/.local-browsers" if package and package.origin else None


def _revision(path: Path) -> int:
    """Return the number at the end of the first folder's name; 0 for a name without one."""
    number = path.parts[0].rpartition("-")[2]
    return int(number) if number.isdecimal() else 0
