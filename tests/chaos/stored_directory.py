"""A data directory with known content, the processes on it, and a site that counts its requests."""

import asyncio
import json
import os
import shutil
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, STDOUT, Process
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager, closing, suppress
from pathlib import Path
from typing import Any

import apsw
import httpx

from longstop.clock import SystemClock
from longstop.model.command_and_standing_order import StandingKind
from longstop.model.match import MatchRef
from longstop.storage.base import MatchFilter
from longstop.storage.directory import DataDirectory
from longstop.storage.sqlite.matches import SqliteMatchReader, SqliteMatchStore
from longstop.storage.sqlite.operations_tables import SqliteCommands
from tests.acceptance.harness import Event, logged, read_log
from tests.chaos.live_deployment import own_environment, until
from tests.contract.stores import delivery, delivery_key, draft, event, owned_match, update

FIRST, SECOND = MatchRef("crex", "11HD"), MatchRef("crex", "22XX")
EVENTS = 120

_SOURCES = """\
sources:
  - domain_id: crex
    enabled: true
    precedence_weight: 100
    adapter_class: crex
    hosts: ["127.0.0.1:{port}"]
    allow_private_addresses: true
    permission: our own server
    metadata: {{api_url: '{url}', content_url: '{url}', names_url: '{url}', site_url: '{url}'}}
"""


class Site:
    """Counts what it is asked for, and answers nothing useful."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.requests: list[str] = []


@asynccontextmanager
async def counting_site() -> AsyncIterator[Site]:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            head = await reader.readuntil(b"\r\n\r\n")
            site.requests.append((head + await _body(reader, head)).decode())
            writer.write(b"HTTP/1.1 500 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    site = Site(server.sockets[0].getsockname()[1])
    async with server:
        yield site


async def _body(reader: asyncio.StreamReader, head: bytes) -> bytes:
    sizes = [line.split(b":")[1] for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    return await reader.readexactly(int(sizes[0])) if sizes else b""


async def fill(data: Path) -> None:
    """Store two matches, and the order of an operator that pauses their source."""
    directory = DataDirectory.open(data)
    async with (
        aclosing(await SqliteMatchStore.open(directory.matches_db)) as store,
        aclosing(SqliteCommands(directory.ops_db, SystemClock())) as commands,
    ):
        for ref in (FIRST, SECOND):
            match_id = await owned_match(store, ref)
            balls = [
                event(delivery_key(number // 6, number % 6 + 1), content=delivery(number % 7), position=number + 1)
                for number in range(EVENTS)
            ]
            await store.save_update(update(match_id, *balls, snapshot=draft(title=str(ref), innings=[])))
        await commands.put_order(StandingKind.PAUSED_SOURCE, "crex", "cli: an operator")


async def events_of(data: Path) -> dict[str, list[tuple[str, int, Any]]]:
    """Return key, revision and content of every version of every match."""
    async with aclosing(SqliteMatchReader(data / "matches.db")) as reader:
        return {
            str(match.ref): [
                (str(stored.event.key), stored.event.rev, stored.event.content)
                for stored in await reader.events_after(match.match_id, 0, 1_000_000)
            ]
            for match in await reader.matches(MatchFilter(limit=1_000))
        }


async def orders_of(data: Path) -> set[tuple[str, str]]:
    async with aclosing(SqliteCommands(data / "ops.db", SystemClock())) as commands:
        return {(order.kind.value, order.subject) for order in await commands.standing()}


def environment(folder: Path, site: Site, data: Path | None = None) -> dict[str, str]:
    """Return the environment of the processes; data go into the folder."""
    url = f"http://127.0.0.1:{site.port}"
    (folder / "sources.yaml").write_text(_SOURCES.format(port=site.port, url=url))
    with own_environment():
        inherited = dict(os.environ)
    return {
        **inherited,
        "LONGSTOP_DATA": str(data or folder / "data"),
        "LONGSTOP_SOURCES": str(folder / "sources.yaml"),
        "LONGSTOP_API_PORT": "0",
        "ENABLE_PROMETHEUS_METRICS": "false",
        "LONGSTOP_SETTLED_SECONDS": "0",
    }


class Running:
    """`longstop up`, or another verb, on a data directory."""

    def __init__(self, process: Process, log: Path, environ: dict[str, str]) -> None:
        self.process = process
        self.log = log
        self.environ = environ
        self.data = Path(environ["LONGSTOP_DATA"])

    @property
    def said(self) -> str:
        return self.log.read_text(errors="replace")

    def logged(self, name: str, **fields: Any) -> list[Event]:
        return logged(read_log(self.log), name, **fields)

    @property
    def api(self) -> str:
        """The address of the newest API."""
        return self.said.rpartition("API on ")[2].split()[0]

    async def asked(self, path: str, token: str = "") -> httpx.Response:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        async with httpx.AsyncClient(base_url=self.api, trust_env=False, timeout=10, headers=headers) as client:
            return await client.get(path)

    async def health(self) -> tuple[int, dict[str, Any]]:
        response = await self.asked("/health")
        return response.status_code, dict(response.json())

    async def until_health(
        self, wanted: Callable[[int, dict[str, Any]], bool], within: float = 40
    ) -> tuple[int, dict[str, Any]]:
        """Wait until status code and document of `/health` are as wanted."""
        found: tuple[int, dict[str, Any]] = (0, {})
        try:
            async with asyncio.timeout(within):
                while True:
                    with suppress(httpx.HTTPError, IndexError, ValueError):
                        found = await self.health()
                        if wanted(*found):
                            return found
                    await asyncio.sleep(0.1)
        except TimeoutError:
            raise AssertionError(f"health did not change within {within:g} s: {found}\n{self.said[-4000:]}") from None

    async def until_healthy(self) -> None:
        await self.until_health(lambda status, document: (status, document["status"]) == (200, "healthy"))

    async def verb(self, *words: str) -> tuple[int | None, str]:
        return await run(self.environ, *words)

    async def token(self, *options: str) -> str:
        return (await self.verb("token", *options))[1].strip()

    async def kill_scraper(self) -> None:
        """Kill the scraper, and wait until another one has started or died."""
        before = self.logged("process.started", process="scraper", reported_by="up")
        os.kill(before[-1]["pid"], signal.SIGKILL)
        starts = len(before)
        await until(
            lambda: len(self.logged("process.started", process="scraper", reported_by="up")) > starts,
            "another scraper starts",
        )

    async def stop(self) -> int:
        with suppress(ProcessLookupError):
            self.process.terminate()
        return await asyncio.wait_for(self.process.wait(), 40)


async def run(
    environ: dict[str, str], *words: str, within: float = 25, before: tuple[str, ...] = ()
) -> tuple[int | None, str]:
    """Run a verb to its end; return its exit code, `None` if it had to be stopped, and what it printed."""
    process = await asyncio.create_subprocess_exec(
        *before, sys.executable, "-m", "longstop", *words, env=environ, stdin=DEVNULL, stdout=PIPE, stderr=STDOUT
    )
    ending = asyncio.create_task(process.communicate())
    await asyncio.wait([ending], timeout=within)
    is_late = not ending.done()
    if is_late:
        process.terminate()
    said, _ = await ending
    return None if is_late else process.returncode, said.decode(errors="replace")


@asynccontextmanager
async def running(environ: dict[str, str], log: Path, *command: str, verb: str = "up") -> AsyncIterator[Running]:
    """Run a verb; `command` wraps it. It is stopped at the end."""
    with log.open("wb") as out:
        process = await asyncio.create_subprocess_exec(
            *(*command, sys.executable, "-m", "longstop", verb),
            env=environ,
            stdin=DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
        )
    started = Running(process, log, environ)
    try:
        yield started
    except BaseException:
        print(started.said[-8000:])
        raise
    finally:
        with suppress(ProcessLookupError):
            process.terminate()
        with suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), 40)
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()


def change_text(path: Path, statement: str, *values: Any) -> None:
    """Change a row below the checks of the product."""
    with closing(apsw.Connection(str(path))) as connection:
        connection.pragma("ignore_check_constraints", True)
        connection.execute(statement, values)
        connection.pragma("wal_checkpoint", "TRUNCATE")


def overwrite(path: Path, offset: int, content: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(offset)
        file.write(content)


def remove_database(path: Path) -> None:
    for each in (path, *path.parent.glob(f"{path.name}-*")):
        each.unlink(missing_ok=True)


def replace_by_directory(path: Path) -> None:
    remove_database(path)
    path.mkdir()
    (path / "file").touch()


def replace_by_text(path: Path) -> None:
    remove_database(path)
    path.write_bytes(b"to whom it may concern\n" * 400)


def replace_by_copy(path: Path) -> None:
    copy_database(path, path.with_name("copy"))
    path.with_name("copy").rename(path)


def copy_database(path: Path, target: Path) -> None:
    """Copy a live database as one of its states."""
    with closing(apsw.Connection(str(path))) as source, closing(apsw.Connection(str(target))) as copy:
        with copy.backup("main", source, "main") as backup:
            backup.step(-1)
        copy.pragma("journal_mode", "DELETE")


def assert_no_trace(said: str) -> None:
    """Check that no output has a traceback, neither on its own lines nor in a field of the log."""
    assert "Traceback" not in said, said[-6000:]


def one_sentence(said: str) -> str:
    """Return the last words of a process that refused to start, as one line."""
    lines = [line for line in said.splitlines() if not line.startswith("{")]
    return " ".join(" ".join(lines).split())


def as_json(text: str) -> Any:
    return json.loads(text)


def copied(template: Path, folder: Path) -> Path:
    target = folder / "data"
    shutil.copytree(template, target)
    target.chmod(0o700)
    return target
