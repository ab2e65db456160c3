"""The browser of one source, generation after generation. Failures in it do not affect other sources."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct

from longstop.errors import BrowserLost, ResourcesExhausted
from longstop.exhaustion import mapping_exhaustion
from longstop.fetching.browser.browser_policy_and_stats import BrowserKind, BrowserStats, Egress
from longstop.fetching.browser.recycle_and_hang_policy import (
    PATIENCE_SECONDS,
    RECURRING,
    HangPolicy,
    RecyclePolicy,
    reason_to_recycle,
)
from longstop.fetching.browser.tasks_and_close_after_last_use import TaskSet
from longstop.process.processes import Process, kill
from longstop.telemetry.bus import Bus, failure_of
from longstop.telemetry.events.browsers import BrowserClosed, BrowserFailed, BrowserRecycled, BrowserStarted

if TYPE_CHECKING:  # Playwright takes half a second to import; start-up does not wait for it
    from longstop.fetching.browser.engine import Engine

StartEngine: TypeAlias = "Callable[[SourceBrowser], Awaitable[Engine]]"
MAX_BACKOFF_SECONDS = 60.0
BEFORE_CLOSE_SECONDS = 1.0


class SourceBrowserPolicy(Struct, frozen=True, kw_only=True):
    recycle: RecyclePolicy = RecyclePolicy()
    hanging: HangPolicy = HangPolicy()
    #: How long requests may go on in a browser that was replaced.
    drain_seconds: float = 60.0


class SourceBrowser:
    """Lends the current engine of one source, and replaces it without interrupting requests."""

    def __init__(
        self,
        source: str,
        kind: BrowserKind,
        egress: Egress,
        *,
        start: StartEngine,
        policy: SourceBrowserPolicy,
        bus: Bus,
    ) -> None:
        self.source = source
        #: Kind and reachable hosts of the next engine.
        self.kind = kind
        self.egress = egress
        self._start = start
        self._policy = policy
        self._bus = bus
        self._current: Engine | None = None
        #: Engines that were replaced or abandoned, until they are closed.
        self._old: set[Engine] = set()
        #: Those of them that are dead or hung.
        self._abandoned: set[Engine] = set()
        #: The number of the latest start.
        self.generation = 0
        #: The limit that the last engine to be recycled had reached.
        self._last_reason = ""
        self._starting = asyncio.Lock()
        self._tasks = TaskSet()
        #: Consecutive failed starts, and when the next one may be tried.
        self._failures = 0
        self._retry_at = float("-inf")
        #: The resource that was exhausted at the last failed start.
        self._exhausted: str | None = None
        self._is_closed = False
        #: Called with every engine that is given up, to wake the requests that wait in it.
        self.on_lost: list[Callable[[Engine, str], None]] = []
        #: Called before a working engine is closed, to save what its successor needs.
        self.before_close: list[Callable[[Engine], Awaitable[None]]] = []

    @property
    def engines(self) -> tuple[Engine, ...]:
        current = (self._current,) if self._current is not None else ()
        return (*current, *self._old)

    async def acquire(self) -> Engine:
        """Return the current engine, started if necessary. It is not closed before its release, unless it is lost."""
        async with self._starting:
            if self._is_closed:
                raise BrowserLost("the browser was closed")
            if self._current is None:
                self._current = await self._start_engine()
            self._current.users += 1
            return self._current

    def release(self, engine: Engine) -> None:
        engine.users -= 1
        if engine in self._old and not engine.users:
            self._close_soon(engine)

    def recycle(self, reason: str = "asked") -> None:
        """Let the next request start another browser; the old one closes after its last request."""
        engine, self._current = self._current, None
        if engine is None:
            return
        usage = engine.usage
        event = BrowserRecycled(
            source=self.source,
            generation=engine.generation,
            reason=reason,
            pages=engine.pages,
            age_seconds=round(engine.age_seconds, 1),
            processes=usage.processes if usage else 0,
            rss_bytes=usage.rss_bytes if usage else None,
            pss_bytes=usage.pss_bytes if usage else None,
        )
        self._bus.emit(event)
        self._old.add(engine)
        if not engine.users:
            self._close_soon(engine)
        else:
            self._tasks.start(self._drain(engine))

    def abandon(self, engine: Engine, reason: str) -> None:
        """Give an engine up at once: it is dead or hung."""
        if engine in self._abandoned or engine not in self.engines:
            return
        if engine is self._current:
            self._current = None
        self._old.add(engine)
        self._abandoned.add(engine)
        pid = engine.root.pid if engine.root else None
        self._bus.emit(BrowserFailed(source=self.source, generation=engine.generation, pid=pid, reason=reason))
        self._report_lost(engine, reason)
        self._close_soon(engine)

    def adopt_unclosed(self, engine: Engine) -> None:
        """Take an engine that failed to start and could not be closed; the next check tries again."""
        self._old.add(engine)

    async def verify(self, engine: Engine) -> bool:
        """Measure and probe an engine, and give it up if it is dead or hung; return whether it responds."""
        if engine not in self.engines:
            return False
        processes = await asyncio.to_thread(engine.measure)
        if {engine.root, engine.driver} - {each.identity for each in processes}:
            self.abandon(engine, "its process has exited")
            return False
        self._kill_stopped(engine, processes)
        if await engine.probe(self._policy.hanging.probe_seconds):
            return True
        silent = monotonic() - engine.responded_at
        if self._policy.hanging.is_hung(silent):
            self.abandon(engine, f"it has not responded for {silent:.0f} s")
        elif not engine.is_connected:
            self.abandon(engine, "its connection was closed")
        return False

    async def check(self) -> bool:
        """Verify the engines once, and recycle the current one if it is due; return whether all respond."""
        finished = {engine for engine in self._old if not engine.users or engine in self._abandoned}
        for engine in finished:
            self._close_soon(engine)  # again, if it could not be closed before
        # Concurrently: one that does not respond must not delay the others' probes.
        responses = await asyncio.gather(*(self.verify(engine) for engine in self.engines if engine not in finished))
        if self._current is not None:
            reason = reason_to_recycle(self._policy.recycle, self._stats(self._current))
            is_repeated = reason in RECURRING and reason == self._last_reason
            if reason is not None and not (is_repeated and self._current.age_seconds < PATIENCE_SECONDS):
                self._last_reason = reason
                self.recycle(reason)
        return all(responses)

    def stats(self) -> list[BrowserStats]:
        """Return the pages and resources of each engine, as last measured."""
        return [self._stats(engine) for engine in self.engines]

    async def aclose(self) -> None:
        """Close all engines; this takes less than ten seconds."""
        self._is_closed = True
        async with self._starting:
            engines, self._current = self.engines, None
        for engine in engines:
            self._report_lost(engine, "the browser was closed")
        await asyncio.gather(*(self._close(engine) for engine in engines))
        await self._tasks.aclose()

    async def _start_engine(self) -> Engine:
        now = monotonic()
        if now < self._retry_at:
            if self._exhausted is not None:
                raise ResourcesExhausted(self._exhausted)
            raise BrowserLost(f"the browser did not start; the next attempt is in {self._retry_at - now:.0f} s")
        self.generation += 1
        try:
            with mapping_exhaustion():
                engine = await self._start(self)
        except (BrowserLost, ResourcesExhausted) as error:
            self._failures += 1
            self._exhausted = error.resource if isinstance(error, ResourcesExhausted) else None
            self._retry_at = monotonic() + min(2.0 ** (self._failures - 1), MAX_BACKOFF_SECONDS)
            self._bus.emit(BrowserFailed(source=self.source, generation=self.generation, pid=None, reason=error.reason))
            raise
        self._failures = 0
        event = BrowserStarted(
            source=self.source,
            generation=engine.generation,
            kind=engine.plan.kind,
            pid=engine.root.pid if engine.root else 0,
            version=engine.version,
            seconds=round(monotonic() - now, 3),
        )
        self._bus.emit(event)
        return engine

    def _stats(self, engine: Engine) -> BrowserStats:
        return BrowserStats(
            source=self.source,
            age_seconds=engine.age_seconds,
            pages_served=engine.pages,
            addresses=engine.addresses,
            contexts=engine.contexts,
            usage=engine.usage,
            first_latency=engine.latencies.first,
            last_latency=engine.latencies.last,
            timeouts=engine.timeouts,
        )

    def _kill_stopped(self, engine: Engine, processes: list[Process]) -> None:
        """Kill stopped processes. Chromium restarts its helpers; without its root process the engine is lost."""
        for process in (each for each in processes if each.state in "Tt"):
            kill(process.identity)
            if process.identity in (engine.root, engine.driver):
                self.abandon(engine, f"its process {process.pid} was stopped")

    async def _drain(self, engine: Engine) -> None:
        await asyncio.sleep(self._policy.drain_seconds)
        if engine in self._old:
            self._report_lost(engine, "the browser was replaced")
            self._close_soon(engine)

    def _report_lost(self, engine: Engine, reason: str) -> None:
        for report in self.on_lost:
            report(engine, reason)

    def _close_soon(self, engine: Engine) -> None:
        self._tasks.start(self._close(engine))

    async def _close(self, engine: Engine) -> None:
        if engine not in self._abandoned and not self._is_closed:
            with suppress(TimeoutError):
                async with asyncio.timeout(BEFORE_CLOSE_SECONDS):
                    await asyncio.gather(*(call(engine) for call in self.before_close), return_exceptions=True)
        started = monotonic()
        try:
            how, left = await engine.aclose()
        except Exception as error:  # the next check tries again
            self._old.add(engine)
            self._bus.emit(failure_of(error, f"closing the browser of {self.source}"))
            return
        self._abandoned.discard(engine)
        if engine in self._old or engine is self._current or self._is_closed:
            self._old.discard(engine)
            event = BrowserClosed(
                source=self.source,
                generation=engine.generation,
                how=how,
                seconds=round(monotonic() - started, 3),
                left=left,
            )
            self._bus.emit(event)
