"""The writer: one thread, one connection, and one commit for all waiting jobs.

It commits only into the file that it has opened: if another program deletes or replaces that file or its
log, or removes data from it, everything is refused until the file is back.
"""

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
from longstop.storage.sqlite.connection import Job, T, check_tables, close, merge_log
from longstop.storage.sqlite.files_and_errors import OpenFiles, as_storage_error, damaged

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
        #: The files of the connection; of the last one while there is none.
        self._files: OpenFiles | None = None
        #: Why the last commit failed; `None` after one that succeeded.
        self._failure: apsw.Error | None = None
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

    async def check(self) -> None:
        """Raise if the file cannot be read, or nothing can be stored now. After a failed commit, that is tried."""
        await self.run(self._try_to_write)

    def _try_to_write(self, connection: apsw.Connection) -> None:
        if self._failure is not None:
            connection.pragma("user_version", connection.pragma("user_version"))
        check_tables(self._path)  # an error closes the file, and opening it again checks all pages

    async def aclose(self) -> None:
        """Run the queued jobs, then close the file, complete without its log if no reader prevents that."""
        if not self._is_closed:
            self._is_closed = True
            self._queue.put(None)
        await asyncio.to_thread(self._thread.join)

    def _work(self) -> None:
        for group in _groups(self._queue):
            self._commit(group)
        if self._connection is not None:
            with suppress(apsw.Error):
                merge_log(self._connection)
        self._drop_connection()

    def _commit(self, group: Sequence[_Waiting]) -> None:
        try:
            outcomes = self._transact(group)
        except Exception as error:  # the thread must survive every error, or all later callers would wait forever
            outcomes = [_Outcome(error=error)] * len(group)
        for waiting, outcome in zip(group, outcomes, strict=True):
            self._deliver(waiting.future, outcome)

    def _transact(self, group: Sequence[_Waiting]) -> list[_Outcome]:
        connection, files = self._connected()
        try:
            connection.execute("BEGIN IMMEDIATE")
            outcomes = [_attempt(connection, waiting.job) for waiting in group]
            connection.execute("COMMIT")
        except apsw.BusyError:
            _roll_back(connection)
            raise
        except apsw.Error as error:
            self._failure = error
            # After a failed write the state of the file is unknown: reopen and check it before the next use.
            self._drop_connection()
            raise
        self._failure = None
        files.note()
        return outcomes

    def _deliver(self, future: Future[Any], outcome: _Outcome) -> None:
        match outcome.error:
            case None:
                future.set_result(outcome.result)
            case apsw.Error() as error:
                future.set_exception(as_storage_error(error, self._path))
            case error:
                future.set_exception(error)

    def _connected(self) -> tuple[apsw.Connection, OpenFiles]:
        """Return the connection and its files; raise if another program has changed them."""
        if self._files is not None and (problem := self._files.problem(has_log=self._connection is not None)):
            raise damaged(self._path, f"{problem}, so nothing more is stored")
        if self._connection is None or self._files is None:
            self._connection = self._connect()
            self._files = OpenFiles(self._path)
        elif self._files.is_shared_memory_lost():
            # The log is complete: reading it again gives all processes the same shared memory.
            self._drop_connection()
            return self._connected()
        return self._connection, self._files

    def _drop_connection(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            # The close may fail, too; the error of the commit is already being reported.
            close(connection)


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
