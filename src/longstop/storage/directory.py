"""The data directory: the files of one node, its locks, and its node id."""

import fcntl
import os
import re
import shutil
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Self, TextIO
from uuid import uuid4

from longstop.errors import DataDirectoryInUse, StorageError

#: Marks a directory that has had its databases: from then on a missing one is a loss, not a first start.
REMEMBERED = "databases"
_PRIVATE = 0o700
_NODE_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
#: With less free space than this, no database can grow.
MIN_FREE_BYTES = 1 << 20
_DATABASES_CREATED = """\
matches.db and ops.db were created here. Longstop does not start without them.
To start without one on purpose, move it away and delete this file.
"""


class DataDirectory:
    def __init__(self, path: Path, node_id: str) -> None:
        self.path = path
        #: Stored in the directory, so that a restarted scraper reclaims its own matches at once.
        self.node_id = node_id
        #: The store: written by the scraper, read by the API.
        self.matches_db = path / "matches.db"
        #: The live view, which can be deleted while nothing runs.
        self.hot_db = path / "hot.db"
        #: The operations tables: errors, recoveries, commands, health log.
        self.ops_db = path / "ops.db"
        self.databases = path / REMEMBERED
        #: The mark that exists during a restore.
        self.restoring = path / "restoring"
        #: For error pages, screenshots and match logs.
        self.storage = path / "storage"

    @classmethod
    def open(cls, path: Path, *, option: str = "--data or LONGSTOP_DATA") -> Self:
        """Open the directory; create it if missing, readable by its owner only. `option` names another one."""
        try:
            refuse_file(path)
            path.mkdir(mode=_PRIVATE, parents=True, exist_ok=True)
            if not is_private(path):
                path.chmod(_PRIVATE)
            (path / "storage").mkdir(mode=_PRIVATE, exist_ok=True)
            return cls(path, _node_id(path / "node-id"))
        except OSError as error:
            raise StorageError(
                f"cannot use {path} as data directory: {error.strerror}. Fix its permissions, or choose another"
                f" with {option}"
            ) from error

    @contextmanager
    def lock(self, role: str = "scraper", *, is_restoring: bool = False) -> Iterator[None]:
        """Lock the directory for one scraper or supervisor. The kernel releases the lock when the process ends."""
        if self.restoring.exists() and not is_restoring:
            raise StorageError(f"a restore into {self.path} was interrupted: run the same longstop restore again")
        with ExitStack() as locks:
            try:
                # A lock file may be removed, and the next process would lock another one. A folder in use stays.
                locks.enter_context(_locked_folder(self.path if role == "supervisor" else self.storage))
                locks.enter_context(_locked(self.path / f"{role}.lock"))
            except BlockingIOError:
                raise DataDirectoryInUse(_in_use(self.path, role)) from None
            except OSError as error:
                raise StorageError(
                    f"cannot lock {self.path}: {error.strerror}. Check its permissions and the file system"
                ) from error
            yield

    def remember_databases(self) -> None:
        """Note that the databases were created: from now on, a missing one stops the start."""
        if not self.databases.exists():
            create_once(self.databases, _DATABASES_CREATED)


def _locked(path: Path) -> TextIO:
    """Return the locked file with our pid in it."""
    file = path.open("a+", encoding="ascii")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
    except BaseException:
        file.close()
        raise
    return file


@contextmanager
def _locked_folder(path: Path) -> Iterator[None]:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)


def _in_use(path: Path, role: str) -> str:
    # The file is empty between locking and writing the pid.
    lock, holder = path / f"{role}.lock", ""
    with suppress(OSError):
        holder = lock.read_text(encoding="ascii", errors="replace")[:20]
    who = f"the {role} with pid {holder}" if holder else f"another {role}"
    return f"the data directory {path} is in use by {who}: stop it first, or choose another directory"


def refuse_file(path: Path) -> None:
    """Raise if a file is in the place of the directory."""
    if path.is_file():
        raise StorageError(
            f"{path} is a file, not a directory: choose another data directory with --data or LONGSTOP_DATA"
        )


def is_private(path: Path) -> bool:
    """Return whether only its owner can access the directory; raise if we must not restrict it: it has other files."""
    if stat.S_IMODE(path.stat().st_mode) & 0o077 == 0:
        return True
    if any(path.iterdir()) and not (path / "node-id").exists():
        raise StorageError(
            f"{path} has other files and is accessible to other users: choose an empty directory, or chmod 700 it"
        )
    return False


def is_disk_full(path: Path) -> bool:
    """Return whether the disk of a folder has no room for another commit; an unknown one has."""
    with suppress(OSError):
        return shutil.disk_usage(path).free < MIN_FREE_BYTES
    return False


def _node_id(path: Path) -> str:
    """Return the id in the file; the first process writes it."""
    if not path.exists():
        create_once(path, f"node-{uuid4().hex[:12]}")
    # Opening a named pipe would wait for its other end.
    text = path.read_text(encoding="ascii", errors="replace").strip() if path.is_file() else ""
    if not _NODE_ID.fullmatch(text):
        raise StorageError(
            f"{path} is damaged: restore a backup, or stop everything and delete this file; a new one is then created"
        )
    return text


def create_once(path: Path, text: str) -> None:
    """Create a private file atomically. If another process creates it first, that one stays."""
    draft = path.with_name(f".{path.name}.{uuid4().hex}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileExistsError):
            path.hardlink_to(draft)
    finally:
        draft.unlink()
