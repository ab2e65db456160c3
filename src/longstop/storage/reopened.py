"""A SQLite file that several processes write a little: opened when it is needed, and again after every failure.

So it is after a restore: what is written into a file that was moved aside, nobody reads.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import apsw

from longstop.storage.connection import Synchronous, file_identity, open_writable, translated
from longstop.storage.migrate import Database


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
