"""What a killed scraper leaves behind is found and killed; other processes are never touched."""

import asyncio
import json
import os
import signal
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from uuid import uuid4

import pytest
from msgspec import structs

from longstop.fetching.browser.browser_policy_and_stats import BrowserKind
from longstop.fetching.browser.browser_pool_and_orphan_sweep import BrowserPool, PoolPlan
from longstop.fetching.browser.chromium_path_and_arguments import find_chromium
from longstop.process.browser_registry_and_temp_files import Registry
from longstop.process.orphan_sweeps import profile_of, remove_profile, sweep_browsers
from longstop.process.processes import (
    MARK_VARIABLE,
    Identity,
    Process,
    become_subreaper,
    find_process,
    kill,
    list_processes,
    process_tree,
    reap,
    reap_session,
)
from longstop.telemetry.bus import Bus
from tests.browser.harness import until

#: Another name in each run: a sweep kills everything with its own node's mark.
NODE = f"node-{uuid4().hex[:12]}"


@asynccontextmanager
async def foreign_chromium() -> AsyncIterator[Identity]:
    """Run a Chromium that another user started: another profile, no mark."""
    program = find_chromium(BrowserKind.SHELL)
    assert program is not None
    become_subreaper()  # an init process that never waits would keep the dead as zombies
    with tempfile.TemporaryDirectory(prefix="foreign-profile-", ignore_cleanup_errors=True) as profile:
        arguments = ["--no-sandbox", "--disable-background-networking", "--remote-debugging-port=0"]
        process = await asyncio.create_subprocess_exec(
            program,
            *(*arguments, f"--user-data-dir={profile}", "about:blank"),
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            await until(lambda: len(_family(process.pid)) >= 4, 10)
            yield Identity(process.pid, _started(process.pid))
        finally:
            members = _family(process.pid)
            os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
            await until(lambda: all(map(_is_gone, members)), 5)
            reap([program.name])


@asynccontextmanager
async def scraping(registry: Path, kind: str = "shell", way: str = "pipe") -> AsyncIterator[tuple[int, list[int]]]:
    """Run a scraper with a browser; yield its pid and those of its browser's processes."""
    become_subreaper()
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.browser.scraping_child", str(registry), NODE, kind, way),
        stdout=asyncio.subprocess.PIPE,
    )
    assert child.stdout is not None
    started: list[Identity] = []
    profiles: set[str] = set()
    try:
        async with asyncio.timeout(20):
            pids = json.loads(await child.stdout.readline())
        started = [Identity(pid, _started(pid)) for pid in pids]
        profiles = {profile_of(pid) for pid in pids}
        yield child.pid, pids
    finally:
        for identity in (*started, Identity(child.pid, _started(child.pid))):
            kill(identity)
        await child.wait()
        await until(lambda: all(_is_gone(identity.pid) for identity in started), 5)
        reap({process.name for identity in started if (process := find_process(identity.pid))})
        for profile in profiles:
            remove_profile(profile)


@pytest.mark.req("FR-009")
@pytest.mark.parametrize(("kind", "way"), [("shell", "pipe"), ("shell", "cdp"), ("headed", "pipe")])
async def test_the_sweep_ends_what_a_killed_scraper_left_and_no_foreign_browser(
    tmp_path: Path, kind: str, way: str
) -> None:
    path = tmp_path / "browsers.json"
    async with foreign_chromium() as foreign, scraping(path, kind, way) as (scraper, pids):
        others = _family(foreign.pid)
        for pid in pids:  # stopped, they cannot notice that their scraper dies
            with suppress(ProcessLookupError):  # a helper may have exited just before
                os.kill(pid, signal.SIGSTOP)
        halted = {pid for pid in pids if not _is_gone(pid)}
        started = set().union(*map(_family, pids)) - set(pids)  # or started after the list was printed
        os.kill(scraper, signal.SIGKILL)
        await until(lambda: _is_gone(scraper), 5)
        profiles = [Path(entry.profile) for entry in Registry(path, NODE) if entry.profile]

        orphans = sweep_browsers(Registry(path, NODE))
        await until(lambda: all(map(_is_gone, pids)), 5)

        ended = {orphan.pid for orphan in orphans}
        assert ended <= halted | started
        assert len(halted - ended) <= 1  # one may die with its parent, before its turn
        assert all(orphan.rss_bytes for orphan in orphans)
        assert others <= _family(foreign.pid)  # it may still be growing
        assert profiles
        assert not any(profile.exists() for profile in profiles)
        assert list(Registry(path, NODE)) == []
        assert sweep_browsers(Registry(path, NODE)) == []


@pytest.mark.req("FR-007", "FR-009")
async def test_temporary_files_of_a_killed_scraper_go_with_the_next_sweep_and_foreign_ones_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch, foreign = tmp_path / "ours", tmp_path / "playwright-artifacts-foreign"
    scratch.mkdir()
    foreign.mkdir()
    monkeypatch.setenv("TMPDIR", str(scratch))
    path = tmp_path / "browsers.json"
    async with scraping(path) as (scraper, pids):
        for pid in (scraper, *pids):
            os.kill(pid, signal.SIGKILL)
        await until(lambda: all(map(_is_gone, (scraper, *pids))), 5)
        left = list(scratch.iterdir())
        pool = BrowserPool(PoolPlan(registry=path, node=NODE, scratch=scratch), Bus())

        await pool.sweep()

        assert len(left) >= 2
        assert list(scratch.iterdir()) == []
        assert foreign.is_dir()


@pytest.mark.req("FR-009")
async def test_without_its_list_the_sweep_finds_orphans_by_their_mark(tmp_path: Path) -> None:
    path = tmp_path / "browsers.json"
    async with scraping(path) as (scraper, pids):
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        os.kill(scraper, signal.SIGKILL)
        path.write_text("{ broken")

        ended = {orphan.pid for orphan in sweep_browsers(Registry(path, NODE))}

        # Only the driver has no mark; it exits with its browser, or is found in the registry.
        assert len(set(pids) - ended) <= 1


@pytest.mark.req("FR-009")
async def test_the_browsers_of_another_node_are_foreign_too(tmp_path: Path) -> None:
    async with scraping(tmp_path / "theirs.json") as (_, pids):
        orphans = sweep_browsers(Registry(tmp_path / "ours.json", "another-node"))

        assert orphans == []
        assert not any(map(_is_gone, pids))


@pytest.mark.req("FR-009")
async def test_a_pid_that_was_given_again_is_not_killed(tmp_path: Path) -> None:
    async with foreign_chromium() as foreign:
        registry = Registry(tmp_path / "browsers.json", NODE)
        earlier = structs.replace(foreign, started=foreign.started - 100)
        registry.add(f"{NODE}:gone", earlier, "chromium-headle")
        others = _family(foreign.pid)

        orphans = sweep_browsers(Registry(tmp_path / "browsers.json", NODE))

        assert orphans == []
        assert others <= _family(foreign.pid)  # it may still be growing


async def test_a_registry_from_before_the_last_boot_kills_no_process(tmp_path: Path) -> None:
    async with foreign_chromium() as foreign:
        path = tmp_path / "browsers.json"
        Registry(path, NODE).add(f"{NODE}:old", foreign, "chromium-headle")
        path.write_text(path.read_text().replace(Registry(path, NODE).boot, "another-start"))

        assert sweep_browsers(Registry(path, NODE)) == []
        assert not _is_gone(foreign.pid)


async def test_what_this_process_owns_is_no_orphan(tmp_path: Path) -> None:
    registry = Registry(tmp_path / "browsers.json", NODE)
    mark = registry.new_mark()
    process = await asyncio.create_subprocess_exec("sleep", "60", env={MARK_VARIABLE: mark}, start_new_session=True)
    registry.add(mark, Identity(process.pid, _started(process.pid)), "sleep")

    assert sweep_browsers(registry) == []

    registry.disown(mark)
    assert [orphan.pid for orphan in sweep_browsers(registry)] == [process.pid]
    await process.wait()


async def test_dead_children_with_a_browsers_name_are_waited_for_and_others_are_not() -> None:
    pids = [os.posix_spawn("/bin/true", ["true"], {}) for _ in range(3)]  # noqa: ASYNC221 - they are not waited for
    await until(lambda: all(_state(pid) == "Z" for pid in pids), 5)

    assert reap(["no such name"]) == 0
    assert reap(["true"], spared=pids[:1]) == 2
    assert reap(["true"]) == 1


async def test_the_dead_of_a_session_are_waited_for_whatever_they_are_called() -> None:
    become_subreaper()
    leader = await asyncio.create_subprocess_exec("sh", "-c", "true & exec sleep 60", start_new_session=True)
    await until(lambda: any(each.state == "Z" for each in _session(leader.pid)), 5)
    identity = Identity(leader.pid, _started(leader.pid))

    os.kill(leader.pid, signal.SIGKILL)
    await leader.wait()
    await until(lambda: all(each.parent == os.getpid() for each in _session(leader.pid)), 5)

    assert reap_session(identity) == 1
    assert not _session(leader.pid)


def _session(pid: int) -> list[Process]:
    return [each for each in list_processes() if each.session == pid]


def _family(pid: int) -> set[int]:
    return {each.pid for each in process_tree(Identity(pid, _started(pid)), list_processes())}


def _started(pid: int) -> int:
    process = find_process(pid)
    return process.identity.started if process else 0


def _state(pid: int) -> str:
    process = find_process(pid)
    return process.state if process else ""


def _is_gone(pid: int) -> bool:
    return _state(pid) in ("", "Z")
