"""The resources of the product at one moment: supervisor, scraper, API and browsers, without the simulator."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import psutil
from msgspec import Struct
from prometheus_client.parser import text_string_to_metric_families

from longstop.errors import UsageError
from longstop.process.processes import Process, command_line, measure
from longstop_lab.client import list_matches
from longstop_lab.deployment import Deployment
from tests.process_tree import tree

MEGABYTE = 1_000_000
#: Gauges of the scraper, added up over sources.
GAUGES = {"contexts": "longstop_browser_contexts", "pages": "longstop_browser_pages"}


class Served(Struct, frozen=True, kw_only=True):
    """What a user gets: whether anything, and how old it is."""

    is_up: bool
    #: The ages of the matches that are being played; in a break a match is polled rarely, on purpose.
    ages_s: tuple[float, ...] = ()


class Sample(Struct, frozen=True, kw_only=True):
    """Everything that could pile up; `None` for what could not be read just now."""

    #: Since the beginning.
    seconds: float
    rss_mb: float | None
    pss_mb: float | None
    processes: int
    zombies: int
    descriptors: int
    threads: int
    contexts: int | None
    pages: int | None
    wal_mb: float
    #: Where the memory is: in `up`, `scraper`, `api`, `driver` and `browser`.
    rss_mb_by_part: dict[str, float]
    served: Served


def take(up: int, data: Path, metrics: str, served: Served, seconds: float) -> Sample:
    """Measure the tree below the supervisor, and read the rest from the scraper's own metrics."""
    processes = tree(up)
    usage = measure(each for each in processes if each.state != "Z")
    open_files, threads = zip(*(_handles(each.pid) for each in processes), (0, 0), strict=True)
    gauges = read_gauges(metrics)
    return Sample(
        seconds=round(seconds, 1),
        rss_mb=_megabytes(usage.rss_bytes),
        pss_mb=_megabytes(usage.pss_bytes),
        processes=usage.processes,
        zombies=sum(each.state == "Z" for each in processes),
        descriptors=sum(open_files),
        threads=sum(threads),
        contexts=gauges.get("contexts"),
        pages=gauges.get("pages"),
        wal_mb=_wal_bytes(data.glob("*.db-wal")) / MEGABYTE,
        rss_mb_by_part=_by_part(processes),
        served=served,
    )


async def ask(deployment: Deployment) -> Served:
    """Ask the API how it is and what it has, as a user would."""
    try:
        entries = await list_matches(deployment)
    except UsageError:
        return Served(is_up=False)
    ages = (each["data_age_seconds"] for each in entries if each["status"] == "live")
    return Served(is_up=await deployment.api.responds("/health"), ages_s=tuple(age for age in ages if age is not None))


def part_of(arguments: Sequence[str]) -> str:
    """Return which part of the product a process is, by its command line; what Chromium starts is the browser's."""
    if "run-driver" in arguments:
        return "driver"
    return next((verb for verb in ("up", "scraper", "api") if arguments[-1:] == (verb,)), "browser")


def _by_part(processes: Iterable[Process]) -> dict[str, float]:
    found: dict[str, float] = {}
    for each in processes:
        part = part_of(command_line(each.pid))
        found[part] = found.get(part, 0.0) + each.rss_bytes / MEGABYTE
    return found


def read_gauges(metrics: str) -> Mapping[str, int]:
    """Return contexts and pages, as far as a page of metrics has them."""
    names, found = {metric: name for name, metric in GAUGES.items()}, dict[str, int]()
    for family in text_string_to_metric_families(metrics):
        if family.name in names:
            found[names[family.name]] = int(sum(sample.value for sample in family.samples))
    return found


def _handles(pid: int) -> tuple[int, int]:
    """Return the open files and the threads of a process; none when it has ended."""
    with suppress(psutil.Error):
        process = psutil.Process(pid)
        return process.num_fds(), process.num_threads()
    return 0, 0


def _wal_bytes(files: Iterable[Path]) -> int:
    total = 0
    for file in files:
        with suppress(OSError):
            total += file.stat().st_size
    return total


def _megabytes(size: int | None) -> float | None:
    return None if size is None else size / MEGABYTE
