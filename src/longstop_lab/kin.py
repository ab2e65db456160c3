"""Who belongs to a stage: whoever names its data directory, its browsers, and all that these have started.

A browser is not told the directory. Its first process carries the node's mark instead, and its others show neither:
they are known by the head of their session. That one may die before them, so whoever was seen once is remembered.
"""

from collections.abc import Collection
from pathlib import Path
from typing import Self

from longstop.process.processes import Identity, Process, browser_mark, environment_variable, list_processes
from longstop.storage.directory import DataDirectory


class Kin:
    """The processes of one stage, as they come and go."""

    def __init__(self, data: Path, node: str) -> None:
        #: All that there ever were, at any look.
        self.seen: set[Identity] = set()
        self._data = str(data)
        self._node = node

    @classmethod
    def of(cls, data: Path) -> Self:
        """Learn the node's name from its data; do this while the directory is there."""
        return cls(data, DataDirectory.open(data).node_id)

    def look(self) -> list[Process]:
        """Return all that there are now, also the dead for whom nobody has waited."""
        people = list_processes()
        signed = {each.identity for each in people if each.identity not in self.seen and self._has_sign(each)}
        found = with_their_own(self.seen | signed, people)
        self.seen |= {each.identity for each in found}
        return found

    def living(self) -> list[Process]:
        return [each for each in self.look() if each.state != "Z"]

    def _has_sign(self, process: Process) -> bool:
        if process.state == "Z":
            return False
        mark = browser_mark(process.pid)
        is_marked = mark is not None and mark.partition(":")[0] == self._node
        return is_marked or environment_variable(process.pid, "LONGSTOP_DATA") == self._data


def with_their_own(heads: Collection[Identity], people: Collection[Process]) -> list[Process]:
    """Return those of the heads who are there, all in the sessions that they lead or have led, and all below these."""
    leaders = {head.pid: head for head in sorted(heads, key=lambda head: head.started)}
    present = {each.pid: each.identity for each in people}

    def is_led(each: Process) -> bool:
        leader = leaders.get(each.session)
        # The kernel gives a pid again only when nobody of its session is left.
        return (
            leader is not None and present.get(leader.pid, leader) == leader and each.identity.started >= leader.started
        )

    found = {each.pid for each in people if each.identity in heads or is_led(each)}
    while more := {each.pid for each in people if each.parent in found} - found:
        found |= more
    return [each for each in people if each.pid in found]
