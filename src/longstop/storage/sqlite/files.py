"""SQLite files that several processes use: read while another one writes, or written a little by each."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock
from typing import Any

import apsw

from longstop.storage.sqlite.connection import (
    Database,
    Row,
    Synchronous,
    file_identity,
    migrations_of,
    open_readable,
    open_writable,
    pending,
    rows,
    translated,
)


class ReadOnlyDatabase:
    """Answers queries on a file that may not exist yet, or may be replaced by a new one at any time.

    Safe to share between threads; each query is one statement and sees one committed state.
    """

    def __init__(self, path: Path, database: Database, patience_ms: int | None = None) -> None:
        self._path = path
        self._database = database
        #: How long a query waits for somebody who holds the file; `None` for as long as everybody does.
        self._patience_ms = patience_ms
        self._lock = Lock()
        self._connection: apsw.Connection | None = None
        #: Of the file that is open.
        self._identity: tuple[int, int] | None = None

    def rows(self, statement: str, bindings: Mapping[str, Any] | None = None) -> list[Row]:
        with self._lock, translated(self._path):
            try:
                connection = self._current()
                return rows(connection, statement, bindings) if connection else []
            except apsw.Error:
                self._drop()
                raise

    def close(self) -> None:
        with self._lock:
            self._drop()

    def _current(self) -> apsw.Connection | None:
        identity = file_identity(self._path)
        if identity != self._identity:
            self._drop()
        if self._connection is None and identity is not None:
            self._open(identity)
        return self._connection

    def _open(self, identity: tuple[int, int]) -> None:
        connection = open_readable(self._path, self._patience_ms)
        try:
            ready = not pending(connection, migrations_of(self._database))
        except BaseException:
            connection.close()
            raise
        if ready:
            self._connection, self._identity = connection, identity
        else:
            # The writer is still making it, or is an older version; either way there is nothing to read yet.
            connection.close()

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = self._identity = None


class ReopenedDatabase:
    """Gives a connection to whoever asks; it belongs to one thread at a time."""

    def __init__(self, path: Path, database: Database) -> None:
        self._path = path
        self._database = database
        self._connection: apsw.Connection | None = None
        #: Of the file that is open.
        self._identity: tuple[int, int] | None = None

    @property
    def is_open(self) -> bool:
        return self._connection is not None

    @contextmanager
    def connection(self) -> Iterator[apsw.Connection]:
        """Give the connection; whatever goes wrong with it, the next one to ask gets a new one."""
        try:
            connection = self._current()
            with translated(self._path):
                yield connection
        except BaseException:
            self.close()
            raise

    @contextmanager
    def transaction(self) -> Iterator[apsw.Connection]:
        """Give the connection for one transaction: all that is done in it, or nothing."""
        with self.connection() as connection:
            # At once: a lock that is asked for in the middle may be refused without any patience.
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                with suppress(apsw.Error):
                    connection.execute("ROLLBACK")
                raise

    def _current(self) -> apsw.Connection:
        identity = file_identity(self._path)
        if identity != self._identity:
            self.close()
        if self._connection is None:
            self._connection = open_writable(self._path, self._database, Synchronous.FULL)
            # Taken before the opening: a file that is put there meanwhile is met the next time. A new one had none.
            self._identity = identity or file_identity(self._path)
        return self._connection

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(apsw.Error):
                connection.close()
