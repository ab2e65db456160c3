"""The list of our processes on disk: what a scraper that was killed has left behind can be found by it."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from threading import Lock
from uuid import uuid4

import msgspec

from longstop.boot import this_boot
from longstop.process.processes import Identity


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One process that we started, with what it leaves on disk."""

    mark: str
    identity: Identity
    #: The name of its program, as the kernel shows it.
    program: str
    boot: str
    #: Its profile directory, to be taken away with it.
    profile: str = ""


class Registry:
    """The entries of one node; every change is on disk before it counts."""

    def __init__(self, path: Path, node: str) -> None:
        self._path = path
        self._node = node
        self._boot = this_boot() or ""  # where boots have no names, a start in ticks must do
        self._entries = {(entry.mark, entry.identity): entry for entry in _read(path)}
        #: Marks of what this process has started itself, and still owns.
        self._owned: set[str] = set()
        #: A sweep forgets in a thread while the next browser is added.
        self._turn = Lock()

    def __iter__(self) -> Iterator[Entry]:
        return iter(tuple(self._entries.values()))

    @property
    def boot(self) -> str:
        return self._boot

    def new_mark(self) -> str:
        """Return a mark that nobody has had, and own it: what carries it is no orphan."""
        mark = f"{self._node}:{uuid4().hex}"
        self._owned.add(mark)
        return mark

    def is_ours(self, mark: str) -> bool:
        """Return whether a mark was given by this node, now or before its restart."""
        return mark.partition(":")[0] == self._node

    def is_owned(self, mark: str) -> bool:
        return mark in self._owned

    def add(self, mark: str, identity: Identity, program: str, profile: str = "") -> None:
        entry = Entry(mark=mark, identity=identity, program=program, boot=self._boot, profile=profile)
        with self._turn:
            self._entries = {**self._entries, (mark, identity): entry}
            self._write()

    def forget(self, mark: str) -> None:
        """Let go of everything with this mark: it is gone."""
        self._owned.discard(mark)
        with self._turn:
            kept = {key: entry for key, entry in self._entries.items() if entry.mark != mark}
            if len(kept) != len(self._entries):
                self._entries = kept
                self._write()

    def disown(self, mark: str) -> None:
        """Leave what carries this mark to the next sweep: it could not be ended."""
        self._owned.discard(mark)

    def _write(self) -> None:
        draft = self._path.with_name(f"{self._path.name}.new")
        draft.write_bytes(msgspec.json.encode(list(self._entries.values())))
        draft.replace(self._path)


def _read(path: Path) -> list[Entry]:
    """Return what is written; a file that cannot be read says nothing, and the marks still do."""
    with suppress(OSError, msgspec.DecodeError):
        return msgspec.json.decode(path.read_bytes(), type=list[Entry])
    return []
