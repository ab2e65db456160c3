"""What our browsers leave on a machine: their processes, in a list on disk, and their temporary files.

A sweep uses the list to find what a killed scraper has left behind. The directory for temporary files belongs to one
node, so everything in it is ours.
"""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from threading import Lock
from uuid import uuid4

import msgspec

from longstop.clock import this_boot
from longstop.process.processes import Identity

#: The start of the name of a node's directory for temporary files.
SCRATCH_PREFIX = "longstop-"


class RegistryEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One process that we started, and its files."""

    mark: str
    identity: Identity
    #: The name of its program, as the kernel shows it.
    program: str
    boot: str
    #: Its profile directory, which is removed with it.
    profile: str = ""


class Registry:
    """The entries of one node. Every change is written to disk first."""

    def __init__(self, path: Path, node: str) -> None:
        self._path = path
        self._node = node
        self.boot = this_boot() or ""  # without a boot id, pid and start time must suffice
        self._entries = {(entry.mark, entry.identity): entry for entry in _read(path)}
        #: Marks of what this process has started and still owns.
        self._owned: set[str] = set()
        #: A sweep removes entries in a thread while the next browser is added.
        self._lock = Lock()

    def __iter__(self) -> Iterator[RegistryEntry]:
        return iter(tuple(self._entries.values()))

    def new_mark(self) -> str:
        """Return a new mark and own it: processes with it are no orphans."""
        mark = f"{self._node}:{uuid4().hex}"
        self._owned.add(mark)
        return mark

    def is_ours(self, mark: str) -> bool:
        """Return whether a mark belongs to this node, from before a restart as well."""
        return mark.partition(":")[0] == self._node

    def is_owned(self, mark: str) -> bool:
        return mark in self._owned

    def add(self, mark: str, identity: Identity, program: str, profile: str = "") -> None:
        entry = RegistryEntry(mark=mark, identity=identity, program=program, boot=self.boot, profile=profile)
        with self._lock:
            self._entries = {**self._entries, (mark, identity): entry}
            self._write()

    def forget(self, mark: str) -> None:
        """Remove all entries with this mark: their processes are gone."""
        self._owned.discard(mark)
        with self._lock:
            kept = {key: entry for key, entry in self._entries.items() if entry.mark != mark}
            if len(kept) != len(self._entries):
                self._entries = kept
                self._write()

    def disown(self, mark: str) -> None:
        """Leave processes with this mark to the next sweep: they could not be killed."""
        self._owned.discard(mark)

    def _write(self) -> None:
        draft = self._path.with_name(f"{self._path.name}.new")
        draft.write_bytes(msgspec.json.encode(list(self._entries.values())))
        draft.replace(self._path)


def _read(path: Path) -> list[RegistryEntry]:
    """Return the stored entries; without a readable file, orphans are still found by their marks."""
    with suppress(OSError, msgspec.DecodeError):
        return msgspec.json.decode(path.read_bytes(), type=list[RegistryEntry])
    return []


def open_scratch(root: Path, node: str) -> Path:
    """Create or reuse the node's directory; one that belongs to another user is not used.

    The path is short: Chromium creates a socket in it, whose path may have about a hundred characters.
    """
    path = root / f"{SCRATCH_PREFIX}{node.removeprefix('node-')[:12]}"
    with suppress(FileExistsError):
        path.mkdir(mode=0o700)
    if path.is_symlink() or not path.is_dir() or path.stat().st_uid != os.geteuid():
        return Path(tempfile.mkdtemp(prefix=SCRATCH_PREFIX, dir=root))
    return path


class Scratch:
    """The temporary files of a node's browsers. Their age counts from when a sweep first saw them: the time of a file
    is wall time, which may jump."""

    def __init__(self, path: Path, monotonic: Callable[[], float]) -> None:
        self._path = path
        self._monotonic = monotonic
        self._seen_at: dict[Path, float] = {}

    def clear(self, older_than_seconds: float = 0.0) -> int:
        """Remove what was first seen this long ago; return how many entries."""
        now = self._monotonic()
        present = list(self._path.iterdir()) if self._path.is_dir() else []
        self._seen_at = {each: self._seen_at.get(each, now) for each in present}
        old = [each for each in present if now - self._seen_at[each] >= older_than_seconds]
        for each in old:
            with suppress(OSError):
                _remove(each)
        return len(old)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink()
