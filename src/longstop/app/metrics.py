"""The scraper's metrics: what is watched is sampled once a second, and written out when somebody asks."""

import asyncio
import errno
from collections.abc import Callable, Coroutine, Iterable

from msgspec import Struct

from longstop.app.common import OwnMemory
from longstop.app.runtime import Runtime
from longstop.clock import Clock, Moment
from longstop.doctor.holders import listener_on
from longstop.settings import Prometheus
from longstop.telemetry.bus import Bus, failure_of
from longstop.telemetry.metrics import Metrics, Reading, Watched
from longstop.telemetry.serving import plainly, serve_metrics
from longstop.watching.scheduler import Scheduler

SAMPLE_SECONDS = 1.0
#: A page is given again for this long, so that many collectors cost no more than one.
PAGE_KEPT_SECONDS = 1.0

Watching = Callable[[], Watched]


def metrics_work(
    settings: Prometheus, metrics: Metrics, watching: Watching, *, bus: Bus, clock: Clock
) -> list[Coroutine[None, None, None]]:
    """Return what has to run beside the schedulers; nothing when the metrics are switched off."""
    if not settings.enabled:
        return []
    pages = Pages(metrics, watching, clock)
    serving = serve_metrics(settings.host, settings.port, pages.newest, bus, unserved)
    return [_sample(metrics, watching, bus, clock), serving]


def unserved(host: str, port: int, error: OSError) -> str:
    """Return why the port cannot be had, who has it, and what to do."""
    holder = listener_on(host, port) if error.errno == errno.EADDRINUSE else None
    why = f"it is taken by {holder}; end that process, or choose" if holder else f"{plainly(host, port, error)}; choose"
    return f"{why} another port with PROMETHEUS_PORT"


def watching(
    schedulers: Iterable[Scheduler], runtime: Runtime, lag: Callable[[], float | None] = lambda: None
) -> Watching:
    """Return a look at schedulers and browsers that changes nothing. It belongs on their loop."""
    own, browsers = OwnMemory(), runtime.browsers

    def take() -> Watched:
        return Watched(
            node=runtime.node,
            records=[record for scheduler in schedulers for record in scheduler.records],
            waiting=[request.priority for request in runtime.dispatcher.waiting],
            findings=[finding.kind for scheduler in schedulers for finding in scheduler.findings],
            rss_bytes=own.rss_bytes(),
            loop_lag_seconds=lag(),
            browsers=browsers.census(),
            proxy_bytes=browsers.meter.used_bytes if browsers.meter else None,
        )

    return take


class _Page(Struct, frozen=True):
    text: bytes
    taken_at: float


class Pages:
    """Makes the page of metrics: the reading on the loop, which takes a moment, the text in a thread."""

    def __init__(self, metrics: Metrics, watching: Watching, clock: Clock) -> None:
        self._metrics = metrics
        self._watching = watching
        self._clock = clock
        self._turn = asyncio.Lock()
        self._kept: _Page | None = None

    async def newest(self) -> bytes:
        """Return a page that is at most a second old."""
        async with self._turn:
            now = self._clock.monotonic()
            if self._kept is None or now - self._kept.taken_at >= PAGE_KEPT_SECONDS:
                reading = self._metrics.read(self._watching(), Moment.of(self._clock))
                self._kept = _Page(await asyncio.to_thread(_expose, reading), now)
            return self._kept.text


def _expose(reading: Reading) -> bytes:
    # Loaded by the first who asks: a scraper must be back within a second after a crash.
    from longstop.telemetry.exposition import expose

    return expose(reading)


async def _sample(metrics: Metrics, watching: Watching, bus: Bus, clock: Clock) -> None:
    while True:
        try:
            metrics.sample(watching().records, Moment.of(clock))
        except Exception as error:  # a bug in the metrics must neither end the watching nor be silent
            bus.emit(failure_of(error, "metrics"))
        await asyncio.sleep(SAMPLE_SECONDS)
