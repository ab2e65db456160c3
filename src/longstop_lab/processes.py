"""All processes of a deployment: those that name its data directory, its browsers, and their descendants.

The environment of a browser does not contain the directory. Its first process carries the node's mark instead, and
its other processes carry neither: the session identifies them. The session leader may die before them, so every
process that was found once is remembered.
"""

from collections.abc import Collection
from pathlib import Path
from typing import Self

from longstop.process.processes import Identity, Process, browser_mark, environment_variable, list_processes
from longstop.storage.directory import DataDirectory


class DeploymentProcesses:
    """The processes of one deployment, as they start and end."""

    def __init__(self, data: Path, node: str) -> None:
        #: Every process that was ever found.
        self.seen: set[Identity] = set()
        self._data = str(data)
        self._node = node

    @classmethod
    def of(cls, data: Path) -> Self:
        """Read the node's id from its data directory, which must exist."""
        return cls(data, DataDirectory.open(data).node_id)

    def find(self) -> list[Process]:
        """Return all processes that exist now, zombies included."""
        processes = list_processes()
        marked = {each.identity for each in processes if each.identity not in self.seen and self._is_marked(each)}
        found = with_descendants(self.seen | marked, processes)
        self.seen |= {each.identity for each in found}
        return found

    def running(self) -> list[Process]:
        return [each for each in self.find() if each.state != "Z"]

    def _is_marked(self, process: Process) -> bool:
        if process.state == "Z":
            return False
        mark = browser_mark(process.pid)
        has_mark = mark is not None and mark.partition(":")[0] == self._node
        return has_mark or environment_variable(process.pid, "LONGSTOP_DATA") == self._data


def with_descendants(heads: Collection[Identity], processes: Collection[Process]) -> list[Process]:
    """Return the heads that exist, the members of sessions that a head leads or led, and their descendants."""
    leaders = {head.pid: head for head in sorted(heads, key=lambda head: head.started)}
    present = {each.pid: each.identity for each in processes}

    def is_led(each: Process) -> bool:
        leader = leaders.get(each.session)
        # The kernel reuses a pid only when its session is empty.
        return (
            leader is not None and present.get(leader.pid, leader) == leader and each.identity.started >= leader.started
        )

    found = {each.pid for each in processes if each.identity in heads or is_led(each)}
    while more := {each.pid for each in processes if each.parent in found} - found:
        found |= more
    return [each for each in processes if each.pid in found]
