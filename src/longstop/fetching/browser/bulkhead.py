"""A bulkhead: one source's browser, generation after generation. What goes wrong in it stays in it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from time import monotonic
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct

from longstop.errors import BrowserLost, ResourcesExhausted
from longstop.exhaustion import mapping_exhaustion
from longstop.fetching.browser.base import BrowserCensus
from longstop.fetching.browser.errands import Errands
from longstop.fetching.browser.events import BrowserClosed, BrowserFailed, BrowserRecycled, BrowserStarted
from longstop.fetching.browser.hanging import HangPolicy
from longstop.fetching.browser.recycling import RecyclePolicy, patience_seconds, reason_to_recycle
from longstop.process.processes import Process
from longstop.telemetry.bus import Bus
from longstop.telemetry.exhaustion import failure_of

if TYPE_CHECKING:  # Playwright takes half a second to load: those who need no browser do not wait for it
    from longstop.fetching.browser.engine import Engine

StartEngine: TypeAlias = "Callable[[int], Awaitable[Engine]]"
MAX_REST_SECONDS = 60.0
FAREWELL_SECONDS = 1.0


class BulkheadPolicy(Struct, frozen=True, kw_only=True):
    recycle: RecyclePolicy = RecyclePolicy()
    hanging: HangPolicy = HangPolicy()
    #: How long the users of an old generation may go on.
    drain_seconds: float = 60.0


class Bulkhead:
    """Lends out the current engine of one source, and replaces it without interrupting anybody."""

    def __init__(self, source: str, *, start: StartEngine, policy: BulkheadPolicy, bus: Bus) -> None:
        self.source = source
        self._start = start
        self._policy = policy
        self._bus = bus
        self._current: Engine | None = None
        self._old: set[Engine] = set()
        self._generation = 0
        #: Why the last one was replaced by itself, and how many before it for the same reason.
        self._last_reason = ""
        self._repeats = 0
        self._starting = asyncio.Lock()
        self._errands = Errands()
        self._failures = 0
        self._rests_until = float("-inf")
        #: What this machine lacked when the last one did not start.
        self._lack: str | None = None
        self._is_closed = False
        #: Called with every engine that is given up, so that those who wait for it are told.
        self.on_loss: list[Callable[[Engine, str], None]] = []
        #: Called before an engine that is still good is closed: the last chance to take something along.
        self.on_farewell: list[Callable[[Engine], Awaitable[None]]] = []
        self._condemned: set[Engine] = set()

    @property
    def engines(self) -> tuple[Engine, ...]:
        current = (self._current,) if self._current is not None else ()
        return (*current, *self._old)

    @asynccontextmanager
    async def engine(self) -> AsyncIterator[Engine]:
        """Lend the current engine; it is not closed while it is lent, unless it is lost."""
        engine = await self._ready()
        engine.users += 1
        try:
            yield engine
        finally:
            engine.users -= 1
            if engine in self._old and not engine.users:
                self._close_soon(engine)

    def recycle(self, reason: str = "asked") -> None:
        """Let the next request start another browser; this one ends with its last user."""
        engine, self._current = self._current, None
        if engine is None:
            return
        wear = engine.wear
        held = wear.usage
        self._bus.emit(
            BrowserRecycled(
                source=self.source,
                generation=engine.generation,
                reason=reason,
                pages=wear.pages,
                age_seconds=round(wear.age_seconds, 1),
                processes=held.processes if held else 0,
                rss_bytes=held.rss_bytes if held else None,
                pss_bytes=held.pss_bytes if held else None,
            )
        )
        self._old.add(engine)
        if not engine.users:
            self._close_soon(engine)
        else:
            self._errands.run(self._drain(engine))

    def condemn(self, engine: Engine, reason: str) -> None:
        """Give an engine up at once: it is dead, or as good as."""
        if engine in self._condemned or engine not in self.engines:
            return
        if engine is self._current:
            self._current = None
        self._old.add(engine)
        self._condemned.add(engine)
        pid = engine.head.pid if engine.head else None
        self._bus.emit(BrowserFailed(source=self.source, generation=engine.generation, pid=pid, reason=reason))
        for tell in self.on_loss:
            tell(engine, reason)
        self._close_soon(engine)

    def take_over(self, engine: Engine) -> None:
        """Close an engine, as soon as that can be done, that was never lent."""
        self._old.add(engine)

    async def suspect(self, engine: Engine) -> bool:
        """Ask an engine that somebody waited for in vain; return whether it is still good."""
        if engine is not self._current and engine not in self._old:
            return False
        self._end_stopped(engine, await asyncio.to_thread(engine.processes))
        if await engine.probe(self._policy.hanging.probe_seconds):
            return True
        silent = monotonic() - engine.answered_at
        if not engine.is_connected or self._policy.hanging.is_hung(silent):
            self.condemn(engine, f"it has not answered for {silent:.0f} s")
        return False

    async def check(self) -> bool:
        """Look after the engines once: what they hold, whether they have served enough; return whether all answer."""
        over = {engine for engine in self._old if not engine.users or engine in self._condemned}
        for engine in over:
            self._close_soon(engine)  # once more, where it could not be closed before
        # All at one time: a silent one must not put off the question to the others.
        answers = await asyncio.gather(*(self._is_well(engine) for engine in self.engines if engine not in over))
        if self._current is not None:
            reason = reason_to_recycle(self._policy.recycle, self._current.wear)
            if reason is not None and self._is_time_for(reason, self._current.age_seconds):
                self.recycle(reason)
        return all(answers)

    async def _is_well(self, engine: Engine) -> bool:
        """Measure an engine and ask it; return whether there is nothing to wait for: it answers, or has ended."""
        people = await asyncio.to_thread(engine.measure)
        if {engine.head, engine.driver} - {each.identity for each in people}:
            self.condemn(engine, "its process has ended")
            return True
        self._end_stopped(engine, people)
        answered = await engine.probe(self._policy.hanging.probe_seconds)
        silent = monotonic() - engine.answered_at
        if not answered and self._policy.hanging.is_hung(silent):
            self.condemn(engine, f"it has not answered for {silent:.0f} s")
        elif not answered and not engine.is_connected:
            self.condemn(engine, "its connection has ended")
        return answered

    def _is_time_for(self, reason: str, age_seconds: float) -> bool:
        """Return whether a browser is replaced now, or its successors would follow one another."""
        repeats = self._repeats if reason == self._last_reason else 0
        if age_seconds < patience_seconds(reason, repeats):
            return False
        self._last_reason, self._repeats = reason, repeats + 1
        return True

    def census(self) -> list[BrowserCensus]:
        """Tell who lives in each engine, with what was measured last."""
        return [self._census(engine) for engine in self.engines]

    def report(self) -> list[BrowserCensus]:
        """Measure every engine now, and tell who lives in it."""
        for engine in self.engines:
            engine.measure()
        return self.census()

    async def aclose(self) -> None:
        """End all engines; the longest way takes less than ten seconds."""
        self._is_closed = True
        async with self._starting:
            engines, self._current = self.engines, None
        for engine in engines:
            for tell in self.on_loss:
                tell(engine, "the browser was closed")
        await asyncio.gather(*(self._close(engine) for engine in engines))
        await self._errands.aclose()

    async def _ready(self) -> Engine:
        async with self._starting:
            if self._is_closed:
                raise BrowserLost("the browser was closed")
            if self._current is None:
                self._current = await self._started()
            return self._current

    async def _started(self) -> Engine:
        now = monotonic()
        if now < self._rests_until:
            if self._lack is not None:
                raise ResourcesExhausted(self._lack)
            raise BrowserLost(f"the browser did not start; the next try is in {self._rests_until - now:.0f} s")
        self._generation += 1
        try:
            with mapping_exhaustion():
                engine = await self._start(self._generation)
        except (BrowserLost, ResourcesExhausted) as error:
            self._failures += 1
            self._lack = error.resource if isinstance(error, ResourcesExhausted) else None
            self._rests_until = monotonic() + min(2.0 ** (self._failures - 1), MAX_REST_SECONDS)
            self._bus.emit(
                BrowserFailed(source=self.source, generation=self._generation, pid=None, reason=error.reason)
            )
            raise
        self._failures = 0
        self._bus.emit(
            BrowserStarted(
                source=self.source,
                generation=engine.generation,
                kind=engine.plan.kind,
                pid=engine.head.pid if engine.head else 0,
                version=engine.version,
                seconds=round(monotonic() - now, 3),
            )
        )
        return engine

    def _census(self, engine: Engine) -> BrowserCensus:
        return BrowserCensus(
            source=self.source,
            generation=engine.generation,
            pid=engine.head.pid if engine.head else None,
            age_seconds=engine.age_seconds,
            users=engine.users,
            pages_served=engine.pages,
            addresses=engine.addresses,
            contexts=engine.contexts,
            usage=engine.usage,
        )

    def _end_stopped(self, engine: Engine, people: list[Process]) -> None:
        """End halted processes: Chromium replaces its helpers by itself; without its first one the engine is lost."""
        for process in (each for each in people if each.state in "Tt"):
            engine.end(process)
            if process.identity in (engine.head, engine.driver):
                self.condemn(engine, f"its process {process.pid} was halted")

    async def _drain(self, engine: Engine) -> None:
        await asyncio.sleep(self._policy.drain_seconds)
        if engine in self._old:
            for tell in self.on_loss:
                tell(engine, "the browser was replaced")
            self._close_soon(engine)

    def _close_soon(self, engine: Engine) -> None:
        self._errands.run(self._close(engine))

    async def _close(self, engine: Engine) -> None:
        if engine not in self._condemned and not self._is_closed:
            await self._say_farewell(engine)
        started = monotonic()
        try:
            how, left = await engine.aclose()
        except Exception as error:  # whatever it is, the next check tries again
            self._old.add(engine)
            self._bus.emit(failure_of(error, f"closing the browser of {self.source}"))
            return
        self._condemned.discard(engine)
        if engine in self._old or engine is self._current or self._is_closed:
            self._old.discard(engine)
            self._bus.emit(
                BrowserClosed(
                    source=self.source,
                    generation=engine.generation,
                    how=how,
                    seconds=round(monotonic() - started, 3),
                    left=left,
                )
            )

    async def _say_farewell(self, engine: Engine) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(FAREWELL_SECONDS):
                await asyncio.gather(*(say(engine) for say in self.on_farewell), return_exceptions=True)
