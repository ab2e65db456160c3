"""The sweep: ends what a scraper of this node has started and nobody owns any more, and nothing else.

A process is ours by two signs: it stands in the registry with its pid and start, or carries our node's mark in its
environment. A browser that somebody else runs beside us has neither.
"""

import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct

from longstop.fetching.browser.processes import Process, arguments_of, everybody, family, kill, mark_of
from longstop.fetching.browser.registry import Entry, Registry
from longstop.fetching.browser.scratch import PREFIX as SCRATCH_PREFIX

#: What the names of profile directories begin with; nothing else is ever removed.
PROFILE_PREFIXES = ("playwright_chromiumdev_profile-", "longstop-profile-")
_PROFILE_ARGUMENT = "--user-data-dir="


class Orphan(Struct, frozen=True, kw_only=True):
    """A process that was ended."""

    pid: int
    program: str
    rss_bytes: int | None


def sweep(registry: Registry) -> list[Orphan]:
    """End every orphan of this node; return who they were."""
    people = everybody()
    ended: dict[int, Orphan] = {}
    for entry in registry:
        if not registry.is_owned(entry.mark):
            _end(_left_of(entry, registry, people), ended)
            remove_profile(entry.profile)
            registry.forget(entry.mark)
    for process in people:
        mark = mark_of(process.pid)
        if mark is not None and registry.is_ours(mark) and not registry.is_owned(mark):
            profile = profile_of(process.pid)
            _end(family(process.identity, people), ended)
            remove_profile(profile)
    return list(ended.values())


def profile_of(pid: int) -> str:
    """Return the profile directory that a browser was started with; empty when it names none."""
    arguments = (each for each in arguments_of(pid) if each.startswith(_PROFILE_ARGUMENT))
    return next(arguments, "").removeprefix(_PROFILE_ARGUMENT)


def remove_profile(profile: str) -> None:
    """Take a profile directory away, if it is one of those that are made for us."""
    path = Path(profile)
    root = Path(tempfile.gettempdir())
    is_in_place = path.parent == root or (path.parent.parent == root and path.parent.name.startswith(SCRATCH_PREFIX))
    if profile and path.name.startswith(PROFILE_PREFIXES) and is_in_place:
        shutil.rmtree(path, ignore_errors=True)


def _left_of(entry: Entry, registry: Registry, people: list[Process]) -> list[Process]:
    if entry.boot != registry.boot:
        return []
    members = family(entry.identity, people)
    if any(each.identity == entry.identity for each in members):
        return members
    # Its first process is gone: of those that it left, only such as run the same program are beyond doubt.
    return [each for each in members if each.name == entry.program]


def _end(processes: Iterable[Process], ended: dict[int, Orphan]) -> None:
    for each in processes:
        if each.pid not in ended and kill(each.identity):
            ended[each.pid] = Orphan(pid=each.pid, program=each.name, rss_bytes=each.rss_bytes or None)
