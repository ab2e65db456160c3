"""A scraper that is asked to stop says so: `/health` knows it at once, and nothing of it is left on the machine."""

import asyncio
import os
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, STDOUT, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from longstop.storage.directory import DataDirectory
from longstop.supervision.exit_codes import Exit
from tests.acceptance.harness import logged, read_log
from tests.chaos.live_deployment import until
from tests.chaos.unreachable_site import unreachable_site

pytestmark = pytest.mark.timeout(180)


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """With a directory of its own for temporary files."""
    (tmp_path / "tmp").mkdir()
    return {**unreachable_site(tmp_path), "TMPDIR": str(tmp_path / "tmp")}


@asynccontextmanager
async def process(verb: str, environ: dict[str, str], log: Path) -> AsyncIterator[Process]:
    with log.open("wb") as out:
        started = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "longstop", verb, env=environ, stdin=DEVNULL, stderr=out, start_new_session=True
        )
    try:
        yield started
    finally:
        with suppress(ProcessLookupError):
            started.terminate()
        with suppress(TimeoutError):
            await asyncio.wait_for(started.wait(), 35)
        with suppress(ProcessLookupError):
            started.kill()
        await started.wait()


@asynccontextmanager
async def client(log: Path) -> AsyncIterator[httpx.AsyncClient]:
    await until(lambda: "API on " in log.read_text(), "the API listens")
    said = await asyncio.to_thread(log.read_text)
    address = said.partition("API on ")[2].split()[0]
    async with httpx.AsyncClient(base_url=address, trust_env=False, timeout=10) as asking:
        yield asking


async def health(asking: httpx.AsyncClient) -> dict[str, Any]:
    return dict((await asking.get("/health")).json())


async def until_status(asking: httpx.AsyncClient, status: str) -> dict[str, Any]:
    async with asyncio.timeout(40):
        while (said := await health(asking))["status"] != status:  # noqa: ASYNC110 - another process sets no event
            await asyncio.sleep(0.05)
        return said


@pytest.mark.req("FR-012", "FR-005")
async def test_a_lone_scraper_that_has_stopped_is_gone_at_once_and_leaves_no_temporary_files(
    environ: dict[str, str], tmp_path: Path
) -> None:
    scraper_log, api_log = tmp_path / "scraper.log", tmp_path / "api.log"
    DataDirectory.open(Path(environ["LONGSTOP_DATA"]))  # `longstop api` does not create it
    async with (
        process("scraper", environ, scraper_log) as scraper,
        process("api", environ, api_log),
        client(api_log) as asking,
    ):
        await until_status(asking, "healthy")
        scratch = list((tmp_path / "tmp").glob("longstop-*"))

        scraper.terminate()
        ended = await asyncio.wait_for(scraper.wait(), 35)
        # The API looks every second; a scraper that is only missed would be called healthy for 15.
        async with asyncio.timeout(8):
            said = await until_status(asking, "down")

        assert ended == Exit.DONE
        assert said["reasons"][0].startswith("the last scraper stopped ")
        assert said["active_scraper_count"] == 0
        assert scratch
        assert not list((tmp_path / "tmp").glob("longstop-*"))


@pytest.mark.req("FR-012")
async def test_a_scraper_that_its_supervisor_starts_again_is_not_healthy_meanwhile_and_not_down_either(
    environ: dict[str, str], tmp_path: Path
) -> None:
    log = tmp_path / "log"
    async with process("up", environ, log), client(log) as asking:
        await until_status(asking, "healthy")
        [first, *_] = logged(read_log(log), "process.started", process="scraper")
        (tmp_path / "sources.yaml").write_text("nonsense\n")  # keeps the next one from being too quick to be missed

        os.kill(first["pid"], signal.SIGTERM)
        said = await until_status(asking, "degraded")

        assert said["reasons"][0].endswith("is degraded: stopped on request")
        assert said["active_scraper_count"] == 1


@pytest.mark.req("FR-012")
async def test_after_an_orderly_end_of_up_health_is_down_and_commands_do_not_wait(
    environ: dict[str, str], tmp_path: Path
) -> None:
    log = tmp_path / "log"
    async with process("up", environ, log) as up, client(log) as asking:
        await until_status(asking, "healthy")
        up.terminate()
        ended = await asyncio.wait_for(up.wait(), 35)

    health, order = await said_by("health", environ), await said_by("recycle", environ)

    assert ended == Exit.DONE
    assert (health[0], order[0]) == (2, 3)
    assert health[1].startswith("down\n  the last scraper stopped ")
    assert order[1].startswith("longstop: no scraper is running")


async def said_by(verb: str, environ: dict[str, str]) -> tuple[int | None, str]:
    """Run a verb to its end; return its exit code and its words. One that waits for a scraper takes too long."""
    running = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "longstop", verb, env=environ, stdin=DEVNULL, stdout=PIPE, stderr=STDOUT
    )
    said, _ = await asyncio.wait_for(running.communicate(), 30)
    return running.returncode, said.decode()
