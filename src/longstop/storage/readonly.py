"""A SQLite file that another process writes: read when it is there, empty until it is."""

from collections.abc import Mapping
from pathlib import Path
from threading import Lock
from typing import Any

import apsw

from longstop.storage.connection import file_identity, open_readable, translated
from longstop.storage.migrate import Database, migrations_of, pending
from longstop.storage.queries import Row, rows


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
