"""The admin routes over a real file: permissions, stored commands, and responses."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from threading import Event

import apsw
import httpx
import pytest
from fastapi import FastAPI

from longstop.api.admin_routes import AdminRoutes
from longstop.api.json_and_error_responses import STORE_UNREADABLE
from longstop.api.metrics_limits_and_errors_middleware import RequestMetrics, add_middleware
from longstop.api.tokens import Permission, Secret, issue_token
from longstop.clock import SystemClock
from longstop.model.command_and_standing_order import Command, CommandKind, CommandState, Refusal, Reply
from longstop.model.match import MatchRow
from longstop.storage.base import MAX_COMMANDS_WAITING, MatchReader
from longstop.storage.sqlite.connection import Synchronous, open_writable
from longstop.storage.sqlite.load_sql_and_migrate import Database
from longstop.storage.sqlite.operations_tables import SqliteCommands
from longstop.telemetry.bus import Bus
from tests.readers import MemoryReader, a_match

SECRET = Secret(b"s" * 32)
URL = "https://crex.com/scoreboard/11HD"
DONE = Reply(state=CommandState.DONE, answer="It is done.")
ROUTES = [
    ("POST", "/admin/watches"),
    ("DELETE", "/admin/watches/1"),
    ("POST", "/admin/matches/1/pause"),
    ("POST", "/admin/matches/1/resume"),
    ("POST", "/admin/sources/crex/pause"),
    ("POST", "/admin/sources/crex/resume"),
    ("POST", "/admin/recycle"),
    ("GET", "/admin/commands/1"),
]


@pytest.fixture
async def commands(tmp_path: Path) -> AsyncIterator[SqliteCommands]:
    opened = SqliteCommands(tmp_path / "ops.db", SystemClock())
    yield opened
    await opened.aclose()


def client_of(
    commands: SqliteCommands,
    *permissions: Permission,
    reader: MatchReader | None = None,
) -> httpx.AsyncClient:
    app, clock = FastAPI(), SystemClock()
    AdminRoutes(
        commands,
        reader=reader or MemoryReader(a_match()),
        secret=SECRET,
        clock=clock,
    ).add_to(app)
    add_middleware(app, Bus(), RequestMetrics())
    ttl = timedelta(hours=1)
    token = issue_token(SECRET, subject="jane", permissions=permissions, ttl=ttl, now=clock.now())
    headers = {"Authorization": f"Bearer {token}"} if permissions else {}
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://api", headers=headers)


def limit(monkeypatch: pytest.MonkeyPatch, *, wait: float = 5.0, store: float = 30.0) -> None:
    """Let requests wait this long for an answer, and for the store."""
    monkeypatch.setattr("longstop.api.admin_routes.WAIT_SECONDS", wait)
    monkeypatch.setattr("longstop.api.admin_routes.STORE_TIMEOUT_SECONDS", store)


@pytest.fixture
async def client(commands: SqliteCommands) -> AsyncIterator[httpx.AsyncClient]:
    async with client_of(commands, Permission.READ, Permission.ADMIN) as made:
        yield made


@asynccontextmanager
async def a_scraper(commands: SqliteCommands, reply: Callable[[Command], Reply]) -> AsyncIterator[list[Command]]:
    """Take and answer commands meanwhile; give those that were taken."""
    taken: list[Command] = []

    async def work() -> None:
        while True:
            for command in await commands.take(8):
                taken.append(command)
                await commands.answer(command, reply(command))
            await asyncio.sleep(0.02)

    task = asyncio.create_task(work())
    try:
        yield taken
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@pytest.mark.parametrize(("method", "path"), ROUTES)
@pytest.mark.parametrize(("permissions", "status"), [((), 401), ((Permission.READ,), 403)])
async def test_commands_need_the_permission(
    commands: SqliteCommands, method: str, path: str, permissions: tuple[Permission, ...], status: int
) -> None:
    async with client_of(commands, *permissions) as stranger:
        answer = await stranger.request(method, path, json={"url": URL})

    assert answer.status_code == status
    assert await commands.take(8) == []


@pytest.mark.parametrize(
    ("method", "path", "kind", "argument"),
    [
        ("POST", "/admin/watches", CommandKind.WATCH, URL),
        ("DELETE", "/admin/watches/1", CommandKind.UNWATCH, "crex_M1"),
        ("DELETE", "/admin/watches/crex_M1", CommandKind.UNWATCH, "crex_M1"),
        ("POST", "/admin/matches/1/pause", CommandKind.PAUSE_MATCH, "crex_M1"),
        ("POST", "/admin/matches/crex_M1/resume", CommandKind.RESUME_MATCH, "crex_M1"),
        ("POST", "/admin/sources/crex/pause", CommandKind.PAUSE_SOURCE, "crex"),
        ("POST", "/admin/sources/crex/resume", CommandKind.RESUME_SOURCE, "crex"),
        ("POST", "/admin/recycle", CommandKind.RECYCLE, ""),
    ],
)
async def test_an_order_reaches_the_scraper_and_its_answer_the_client(
    client: httpx.AsyncClient, commands: SqliteCommands, method: str, path: str, kind: CommandKind, argument: str
) -> None:
    async with a_scraper(commands, lambda _: DONE) as taken:
        answer = await client.request(method, path, json={"url": URL} if kind is CommandKind.WATCH else None)

    assert (answer.status_code, answer.json()["answer"], answer.json()["state"]) == (200, "It is done.", "done")
    assert [(each.kind, each.argument, each.asked_by) for each in taken] == [(kind, argument, "api: jane")]
    assert answer.headers["Cache-Control"] == "no-store"


@pytest.mark.req("EC6")
@pytest.mark.parametrize(
    ("refusal", "status", "retry"),
    [(Refusal.NOT_KNOWN, 404, None), (Refusal.CONFLICT, 409, None), (Refusal.MEMORY, 503, "60")],
)
async def test_a_refusal_has_its_status_and_a_sentence(
    client: httpx.AsyncClient, commands: SqliteCommands, refusal: Refusal, status: int, retry: str | None
) -> None:
    sentence = "Insufficient memory resources: 100 MB are free, 500 MB are needed."
    reply = Reply(state=CommandState.REFUSED, answer=sentence, refusal=refusal)

    async with a_scraper(commands, lambda _: reply):
        answer = await client.post("/admin/watches", json={"url": URL})

    assert (answer.status_code, answer.json()["error"]) == (status, sentence)
    assert answer.headers.get("Retry-After") == retry


async def test_what_failed_is_no_success(client: httpx.AsyncClient, commands: SqliteCommands) -> None:
    async with a_scraper(commands, lambda _: Reply(state=CommandState.FAILED, answer="It broke.")):
        answer = await client.post("/admin/recycle")

    assert (answer.status_code, answer.json()["error"]) == (503, "It broke.")


async def test_without_an_answer_the_client_gets_its_location(
    commands: SqliteCommands, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit(monkeypatch, wait=0.3)
    async with client_of(commands, Permission.ADMIN) as client:
        pending = await client.post("/admin/recycle")
        before = await client.get(pending.headers["Location"])
        await commands.answer((await commands.take(1))[0], DONE)
        after = await client.get(pending.headers["Location"])

    assert (pending.status_code, pending.headers["Location"]) == (202, "/admin/commands/1")
    assert (before.status_code, before.json()["state"]) == (200, "pending")
    assert (after.status_code, after.json()["answer"]) == (200, "It is done.")


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", "/admin/watches", b"", 422),
        ("POST", "/admin/watches", b"[]", 422),
        ("POST", "/admin/watches", b'{"url": 7}', 422),
        ("POST", "/admin/watches", b'{"url": "\xff"}', 422),
        ("POST", "/admin/watches", b'{"url": "' + b"x" * 100_000 + b'"}', 413),
        ("POST", "/admin/watches", b'{"url": "' + b"x" * 3_000 + b'"}', 422),
        ("DELETE", "/admin/watches/999", b"", 404),
        ("DELETE", "/admin/watches/-", b"", 400),
        ("POST", "/admin/sources/CREX!/pause", b"", 422),
        ("GET", "/admin/commands/999", b"", 404),
        ("GET", "/admin/commands/0", b"", 422),
        ("GET", "/admin/recycle", b"", 405),
    ],
)
async def test_what_makes_no_sense_is_refused_and_never_written_down(
    client: httpx.AsyncClient, commands: SqliteCommands, method: str, path: str, body: bytes, status: int
) -> None:
    answer = await client.request(method, path, content=body)

    assert answer.status_code == status
    assert "error" in answer.json()
    assert await commands.take(8) == []


async def test_a_body_of_no_announced_size_is_not_read_to_its_end(client: httpx.AsyncClient) -> None:
    sent = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal sent
        while sent < 10_000_000:
            sent += 10_000
            yield b"x" * 10_000

    answer = await client.post("/admin/watches", content=endless())

    assert answer.status_code == 413


async def test_too_many_orders_are_turned_away(client: httpx.AsyncClient, commands: SqliteCommands) -> None:
    for _ in range(MAX_COMMANDS_WAITING):
        await commands.place(CommandKind.RECYCLE, "", "tester")

    answer = await client.post("/admin/recycle")

    assert answer.status_code == 429
    assert answer.headers["Retry-After"] == "5"


def spoil(path: Path) -> None:
    path.write_bytes(b"this is no database" * 1_000)


async def test_an_unusable_file_is_reported(tmp_path: Path) -> None:
    spoil(tmp_path / "ops.db")
    broken = SqliteCommands(tmp_path / "ops.db", SystemClock())

    async with client_of(broken, Permission.ADMIN) as client:
        answer = await client.post("/admin/recycle")

    assert answer.status_code == 503
    await broken.aclose()


class HangingReader(MemoryReader):
    """A store that blocks until it is released."""

    def __init__(self) -> None:
        super().__init__(a_match())
        self.is_asked, self.is_released = asyncio.Event(), asyncio.Event()

    async def match(self, match_id: int) -> MatchRow | None:
        self.is_asked.set()
        await self.is_released.wait()
        return await super().match(match_id)


class HangingFile:
    """A file that cannot be opened until it is released."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.is_asked, self.is_released = Event(), Event()
        monkeypatch.setattr("longstop.storage.sqlite.connection.open_writable", self._open)

    def _open(self, path: Path, database: Database, synchronous: Synchronous) -> apsw.Connection:
        self.is_asked.set()
        assert self.is_released.wait(60)
        return open_writable(path, database, synchronous)


@pytest.fixture
def hanging(monkeypatch: pytest.MonkeyPatch) -> Iterator[HangingFile]:
    file = HangingFile(monkeypatch)
    yield file
    file.is_released.set()


@pytest.mark.req("NFR-006")
async def test_a_hung_store_only_delays_commands_that_name_a_match(
    commands: SqliteCommands, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit(monkeypatch, wait=0.1, store=3.0)
    reader = HangingReader()
    async with client_of(commands, Permission.ADMIN, reader=reader) as client:
        stuck = asyncio.create_task(client.post("/admin/matches/1/pause"))
        await reader.is_asked.wait()

        other = await client.post("/admin/recycle")
        answer = await stuck
        reader.is_released.set()

    assert other.status_code == 202
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "5")
    assert answer.json()["error"] == STORE_UNREADABLE
    assert [each.kind for each in await commands.take(8)] == [CommandKind.RECYCLE]


@pytest.mark.req("NFR-006")
async def test_a_hung_list_of_commands_is_reported_to_every_client(
    commands: SqliteCommands, hanging: HangingFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit(monkeypatch, store=0.2)
    async with client_of(commands, Permission.ADMIN) as client:
        orders = await asyncio.gather(*(client.post("/admin/recycle") for _ in range(4)))
        lookup = await client.get("/admin/commands/1")

    assert hanging.is_asked.is_set()
    assert {answer.status_code for answer in (*orders, lookup)} == {503}
    assert {answer.headers["Retry-After"] for answer in (*orders, lookup)} == {"5"}
    assert orders[0].json()["error"] == (
        "The command was not stored in time, but may still be carried out: check `/status` before you send it again."
    )
    assert lookup.json()["error"] == "The commands cannot be read at the moment; try again in a few seconds."


async def test_a_command_that_was_not_stored_in_time_is_never_carried_out(
    commands: SqliteCommands, hanging: HangingFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit(monkeypatch, wait=0.1, store=0.2)
    async with client_of(commands, Permission.ADMIN) as client:
        while not hanging.is_asked.is_set():  # where threads start slowly, an order can be too late for one
            await client.post("/admin/recycle")

        await client.post("/admin/sources/crex/pause")
    hanging.is_released.set()

    assert [each.kind for each in await commands.take(8)] == [CommandKind.RECYCLE]
