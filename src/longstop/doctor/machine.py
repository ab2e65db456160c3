"""Checks of the machine: what was measured goes in, a verdict comes out."""

from collections.abc import Sequence

from msgspec import Struct

from longstop.doctor.base import Check, Verdict, judged
from longstop.fetching.browser.base import BrowserKind
from longstop.fetching.browser.chromium import INSTALL, PACKAGES

OLDEST_PYTHON = (3, 11)
#: The wall clock cannot be before the day on which this was written.
EARLIEST_SECONDS = 1_793_491_200.0  # 2026-11-01
#: How far wall clock and monotonic clock may part within the moment of measuring.
MAX_DRIFT_SECONDS = 0.05
LEAST_MEMORY_BYTES = 500_000_000
LEAST_SPACE_BYTES = 1_000_000_000
#: Files, logs, pipes and the store; connections come on top.
FILES_BESIDE_CONNECTIONS = 200


class Moment(Struct, frozen=True):
    """What both clocks showed at once."""

    wall: float
    monotonic: float


class Program(Struct, frozen=True):
    """A program that tests use, or some sites need."""

    name: str
    package: str
    used_for: str


#: What Debian and Ubuntu call the browsers; one with a window is the same program as one without.
BROWSER_PACKAGES = {BrowserKind.SHELL: "chromium-headless-shell", BrowserKind.HEADLESS: "chromium"}
DISPLAY_PROGRAM = "Xvfb"


class BrowserStart(Struct, frozen=True):
    """How the start of a browser went."""

    path: str
    #: Why it does not start; empty when it does.
    problem: str = ""


class Remedy(Struct, frozen=True):
    """How this person can get a program onto this machine, to the letter."""

    is_root: bool
    #: Whether packages come from Debian or Ubuntu.
    has_apt: bool
    #: The Python that runs us.
    python: str

    def for_program(self, package: str) -> str:
        if not self.has_apt:
            return f"install {package} as this system does it"
        return f"run {'' if self.is_root else 'sudo '}apt-get install {package}"

    def for_browser(self, package: str) -> str:
        download = f"{self.python} -m playwright install chromium"
        if not self.has_apt:
            return f"run {download}"
        return self.for_program(package) if self.is_root else f"{self.for_program(package)}; without sudo: {download}"


PROGRAMS = (
    Program("openssl", "openssl", "certificates in tests of fetching"),
    Program("strace", "strace", "kills at exact moments in tests of the store"),
    Program(DISPLAY_PROGRAM, "xvfb", "browsers with a window on a machine without a screen"),
    Program("faketime", "faketime", "clocks that leap in tests"),
    Program("promtool", "prometheus", "a second opinion on the metrics in tests"),
)


def check_python(version: tuple[int, int, int]) -> Check:
    found = ".".join(map(str, version))
    return judged("Python", found, "install Python 3.11 or newer", is_good=version >= OLDEST_PYTHON)


def check_sqlite(version: str | None, is_safe: bool) -> Check:
    if version is None:
        return Check(
            name="SQLite", verdict=Verdict.MISSING, found="apsw cannot be loaded", advice="run pip install apsw"
        )
    advice = "it can damage a file that several processes use: run pip install --upgrade apsw"
    return judged("SQLite", f"{version}, bundled with apsw", advice, is_good=is_safe)


def check_fetching(user_agent: str | None, reason: str) -> Check:
    """Judge what a server on this machine was told by the fetcher's library."""
    advice = "run pip install --force-reinstall curl-cffi; it needs a Linux with glibc"
    if user_agent is None:
        return Check(name="fetching", verdict=Verdict.MISSING, found=reason, advice=advice)
    found = "curl_cffi speaks like a browser" if "Chrome/" in user_agent else f"curl_cffi says {user_agent[:60]!r}"
    return judged("fetching", found, advice, is_good="Chrome/" in user_agent)


def check_clock(before: Moment, after: Moment) -> Check:
    drift = (after.wall - before.wall) - (after.monotonic - before.monotonic)
    if before.wall < EARLIEST_SECONDS:
        return judged("clock", "it shows a day long past", "set it, and keep it right with chrony", is_good=False)
    return judged(
        "clock",
        f"wall and monotonic clock agree to {abs(drift) * 1000:.0f} ms",
        "something sets the wall clock by leaps: keep it right with chrony",
        is_good=abs(drift) <= MAX_DRIFT_SECONDS,
    )


def check_memory(available_bytes: int) -> Check:
    return judged(
        "memory",
        f"{available_bytes / 1e6:,.0f} MB available",
        f"free {LEAST_MEMORY_BYTES / 1e6:,.0f} MB: end other programs, or take a larger machine",
        is_good=available_bytes >= LEAST_MEMORY_BYTES,
    )


def check_open_files(limit: int, concurrency_cap: int) -> Check:
    needed = FILES_BESIDE_CONNECTIONS + 2 * concurrency_cap
    found = f"{limit} may be open at once, {needed} are needed"
    return judged("open files", found, f"run ulimit -n {needed} before the start", is_good=limit >= needed)


def check_space(place: str, free_bytes: int) -> Check:
    return judged(
        "disk space",
        f"{free_bytes / 1e9:,.1f} GB free at {place}",
        f"free {LEAST_SPACE_BYTES / 1e9:,.0f} GB, or choose another directory with LONGSTOP_DATA",
        is_good=free_bytes >= LEAST_SPACE_BYTES,
    )


def check_browser_packages(missing: Sequence[str], remedy: Remedy, *, is_needed: bool) -> Check:
    """Judge whether the extra for browsers is installed; who reads sites by HTTP only needs none of it."""
    name = "browser, packages"
    if not missing:
        return Check(name=name, verdict=Verdict.OK, found=", ".join(PACKAGES), is_needed=is_needed)
    found = f"{', '.join(missing)} missing; needed for sites that are read by a browser"
    advice = f"run {remedy.python} -m {INSTALL}"
    return Check(name=name, verdict=Verdict.MISSING, found=found, advice=advice, is_needed=is_needed)


def check_chromium(
    kind: BrowserKind, start: BrowserStart | None, remedy: Remedy, *, is_needed: bool, is_root: bool
) -> Check:
    """Judge whether a kind of browser can be started; who reads sites by HTTP only needs none."""
    name = f"browser, {kind}"
    if start is None:
        found = "there is none; it reads sites that give their data only to a page"
        return Check(
            name=name,
            verdict=Verdict.MISSING,
            found=found,
            advice=remedy.for_browser(BROWSER_PACKAGES[kind]),
            is_needed=is_needed,
        )
    if start.problem:
        found = f"{start.path} does not start: {start.problem}"
        advice = "run the program by hand to see why, or write the path of another Chromium into BROWSER_EXECUTABLE"
        return judged(name, found, advice, is_good=False, is_needed=is_needed)
    sandbox = ", as root without its sandbox" if is_root else ""
    return judged(name, f"{start.path} starts{sandbox}", "", is_good=True, is_needed=is_needed)


def check_program(program: Program, path: str | None, remedy: Remedy, *, is_needed: bool = False) -> Check:
    if path is not None:
        return Check(name=program.name, verdict=Verdict.OK, found=path, is_needed=is_needed)
    return Check(
        name=program.name,
        verdict=Verdict.MISSING,
        found=f"there is none; it is for {program.used_for}",
        advice=remedy.for_program(program.package),
        is_needed=is_needed,
    )
