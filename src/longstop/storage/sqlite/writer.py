"""The writer: one thread, one connection, and one commit for all waiting jobs."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, NamedTuple

import apsw

from longstop.errors import StorageError
from longstop.storage.sqlite.connection import Job, T, as_storage_error

#: Jobs per commit at most; more would only delay the first of them.
MAX_GROUP = 64

#: Errors of a single job. Any other error of SQLite concerns the file, and so the whole group.
_JOB_ERRORS = (apsw.ConstraintError, apsw.SQLError, apsw.MismatchError, apsw.TooBigError, apsw.RangeError)


class _Waiting:
    """A queued job, and the future of its caller."""

    def __init__(self, job: Job[Any]) -> None:
        self.job = job
        self.future: Future[Any] = Future()
        # From here cancellation only stops the waiting: the job still runs completely.
        self.future.set_running_or_notify_cancel()


class _Outcome(NamedTuple):
    result: Any = None
    error: Exception | None = None


class Writer:
    """Runs jobs on its own connection; a job is committed when `run` returns."""

    def __init__(self, path: Path, connect: Callable[[], apsw.Connection]) -> None:
        self._path = path
        self._connect = connect
        self._connection: apsw.Connection | None = None
        self._queue: SimpleQueue[_Waiting | None] = SimpleQueue()
        self._is_closed = False
        # A daemon: a process that forgot to close must still be able to exit.
        self._thread = Thread(target=self._work, name=f"writer of {path.name}", daemon=True)
        self._thread.start()

    async def run(self, job: Job[T]) -> T:
        """Run a job in its own savepoint, and return when it is durable; raise what it raised."""
        if self._is_closed:
            raise StorageError(f"{self._path.name} is closed")
        waiting = _Waiting(job)
        self._queue.put(waiting)
        result: T = await asyncio.wrap_future(waiting.future)
        return result

    async def aclose(self) -> None:
        """Run the queued jobs, then close the file."""
        if not self._is_closed:
            self._is_closed = True
            self._queue.put(None)
        await asyncio.to_thread(self._thread.join)

    def _work(self) -> None:
        for group in _groups(self._queue):
            self._commit(group)
        self._drop_connection()

    def _commit(self, group: Sequence[_Waiting]) -> None:
        try:
            outcomes = self._transact(group)
        except Exception as error:  # the thread must survive every error, or all later callers would wait forever
            outcomes = [_Outcome(error=error)] * len(group)
        for waiting, outcome in zip(group, outcomes, strict=True):
            self._deliver(waiting.future, outcome)

    def _transact(self, group: Sequence[_Waiting]) -> list[_Outcome]:
        connection = self._connected()
        try:
            connection.execute("BEGIN IMMEDIATE")
            outcomes = [_attempt(connection, waiting.job) for waiting in group]
            connection.execute("COMMIT")
        except apsw.BusyError:
            _roll_back(connection)
            raise
        except apsw.Error:
            # After a failed write the state of the file is unknown: reopen and check it before the next use.
            self._drop_connection()
            raise
        return outcomes

    def _deliver(self, future: Future[Any], outcome: _Outcome) -> None:
        match outcome.error:
            case None:
                future.set_result(outcome.result)
            case apsw.Error() as error:
                future.set_exception(as_storage_error(error, self._path))
            case error:
                future.set_exception(error)

    def _connected(self) -> apsw.Connection:
        if self._connection is None:
            self._connection = self._connect()
        return self._connection

    def _drop_connection(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            # The close may fail, too; the error of the commit is already being reported.
            with suppress(apsw.Error):
                connection.close()


def _groups(queue: SimpleQueue[_Waiting | None]) -> Iterator[list[_Waiting]]:
    """Yield groups of waiting jobs, until the end mark."""
    while (first := queue.get()) is not None:
        yield [first, *_at_hand(queue, MAX_GROUP - 1)]


def _at_hand(queue: SimpleQueue[_Waiting | None], limit: int) -> Iterator[_Waiting]:
    for _ in range(limit):
        try:
            waiting = queue.get_nowait()
        except Empty:
            return
        if waiting is None:
            queue.put(None)  # keep the end mark for the next group
            return
        yield waiting


def _attempt(connection: apsw.Connection, job: Job[Any]) -> _Outcome:
    """Return the job's result, or its error after a rollback."""
    connection.execute("SAVEPOINT job")
    try:
        outcome = _Outcome(result=job(connection))
    except Exception as error:  # the other jobs of the group continue
        if isinstance(error, apsw.Error) and not isinstance(error, _JOB_ERRORS):
            raise
        connection.execute("ROLLBACK TO job")
        outcome = _Outcome(error=error)
    connection.execute("RELEASE job")
    return outcome


def _roll_back(connection: apsw.Connection) -> None:
    if connection.in_transaction:
        connection.execute("ROLLBACK")
