"""One match under watch: the real pipeline, watcher and store, a site that obeys, and ways to break them."""

import asyncio
import shutil
from collections.abc import Coroutine
from contextlib import aclosing
from enum import StrEnum
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

from longstop.errors import StorageError
from longstop.matches.pipeline import Pipeline
from longstop.matches.source_client_and_poll_attempt import SourceClient
from longstop.model.match import MatchRef
from longstop.sports.cricket.sport import Cricket
from longstop.storage.base import MatchStore, MatchUpdate, Receipt
from longstop.storage.sqlite.matches import SqliteMatchReader, SqliteMatchStore
from longstop.telemetry.bus import Bus
from longstop.testing import ScriptedFetcher
from longstop.watching.feed_polling import FeedWatch
from tests.builders import NOW
from tests.live import watch
from tests.memory import MemoryHot, MemorySink
from tests.model.ledger import Ledger
from tests.model.sites import Front, Site
from tests.model.truth import Truth
from tests.readers import ManualClock

T = TypeVar("T")


class Crash(BaseException):
    """The process is gone: only the harness may catch this."""


class CommitFault(StrEnum):
    """What can happen around a commit."""

    DIES_BEFORE = "dies before the commit"
    DIES_AFTER = "dies after the commit"
    FAILS_BEFORE = "the store refuses the commit"
    #: The commit is durable and reported as failed: so it is when the disk fails at the very last moment.
    FAILS_AFTER = "the store loses its own answer"


class FragileStore:
    """Passes updates to the real store, with at most one fault."""

    def __init__(self, inner: SqliteMatchStore) -> None:
        self.inner = inner
        self.fault: CommitFault | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    async def check(self) -> None:
        await self.inner.check()

    async def save_update(self, update: MatchUpdate) -> Receipt:
        fault, self.fault = self.fault, None
        if fault is CommitFault.DIES_BEFORE:
            raise Crash
        if fault is CommitFault.FAILS_BEFORE:
            raise StorageError("the disk is full")
        receipt = await self.inner.save_update(update)
        if fault is CommitFault.DIES_AFTER:
            raise Crash
        if fault is CommitFault.FAILS_AFTER:
            raise StorageError("the disk failed")
        return receipt


class ModelHarness:
    """The match, its site, its files, its owner, and those who think that they still are."""

    def __init__(self, site: Site, truth: Truth, *, ledger: Ledger | None = None, files: Path | None = None) -> None:
        self.front = Front(site, truth)
        self.ledger = ledger or Ledger(site)
        self.front.on_shown = self.ledger.note_shown
        self.sink = MemorySink()
        self.clock = ManualClock(NOW)
        self._runner = asyncio.Runner()
        self._scratch = TemporaryDirectory(prefix="longstop-model-", ignore_cleanup_errors=True)
        self._starts = 0
        self._directory = self._next_directory()
        if files is None:
            self._directory.mkdir()
        else:
            shutil.copytree(files, self._directory)
        self.store = FragileStore(self.run(SqliteMatchStore.open(self._path)))
        self._pipeline = self._make_pipeline(self.store)
        #: Owners that were paused when another one took the match.
        self.stale: list[FeedWatch] = []
        ref = MatchRef(site.source.name, site.source_id)
        self.match_id = self.run(self.store.register(ref, "a match", None, NOW, sport="cricket")).match_id
        self.owner = self._new_owner()
        self.check()

    @property
    def truth(self) -> Truth:
        return self.front.truth

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(coroutine)

    def twin(self) -> "ModelHarness":
        """Return another harness that begins where a sudden death now would leave this one, with a new owner."""
        other = ModelHarness(self.front.site, self.truth.copy(), ledger=self.ledger.copy(), files=self._directory)
        other.clock.moment = self.clock.moment
        return other

    def close(self) -> None:
        self.run(self.store.inner.aclose())
        self._runner.close()
        self._scratch.cleanup()

    # --- polling ---

    def poll(self, watcher: FeedWatch | None = None, fault: CommitFault | None = None) -> bool:
        """Take one poll and return whether it was accepted; a death in the midst of it is followed by a restart."""
        polling = watcher or self.owner
        self.clock.advance(1)
        self.sink.events.clear()
        self.store.fault = fault
        try:
            self.run(polling.poll())
        except Crash:
            self.die()
            return False
        finally:
            self.store.fault = None
            self.front.behave()
        bugs = [event for event in self.sink.events if event.name == "task.failed"]
        assert not bugs, bugs
        self.check()
        return polling.record.consecutive_failures == 0

    def check(self) -> None:
        """Take into the ledger what is new in the files."""

        async def read() -> None:
            async with aclosing(SqliteMatchReader(self._path, inline_ms=5_000)) as reader:
                await self.ledger.read(reader, self.match_id, self.owner.state.row.epoch)

        self.run(read())

    def recount(self) -> None:
        """Compare the files with everything that was ever read from them."""

        async def read() -> None:
            async with aclosing(SqliteMatchReader(self._path, inline_ms=5_000)) as reader:
                await self.ledger.recount(reader, self.match_id)

        self.run(read())

    # --- ending and beginning ---

    def die(self) -> None:
        """Kill the process: memory is gone, the files stay as they are at this moment, and a new one starts."""
        before, self._directory = self._directory, self._next_directory()
        shutil.copytree(before, self._directory)
        self.run(self.store.inner.aclose())
        self.store.inner = self.run(SqliteMatchStore.open(self._path))
        self.owner = self._new_owner()
        self.check()
        self.recount()

    def stop_and_start(self) -> None:
        """End the process in order, and start it again."""
        self.run(self.store.inner.aclose())
        self.store.inner = self.run(SqliteMatchStore.open(self._path))
        self.owner = self._new_owner()

    def take_over(self) -> None:
        """Let another owner take the match while this one is only paused."""
        self.stale = [*self.stale[-1:], self.owner]
        self.owner = self._new_owner()

    def _new_owner(self) -> FeedWatch:
        return self.run(watch(self.match_id, self._pipeline, self.store, MemoryHot(), Bus([self.sink]), self.clock))

    def _make_pipeline(self, store: MatchStore) -> Pipeline:
        client = SourceClient(self.front.site.source, ScriptedFetcher(self.front))
        return Pipeline(
            Cricket(), client=client, store=store, bus=Bus([self.sink]), clock=self.clock, scraper_id="node"
        )

    def _next_directory(self) -> Path:
        self._starts += 1
        return Path(self._scratch.name) / f"start-{self._starts}"

    @property
    def _path(self) -> Path:
        return self._directory / "matches.db"
