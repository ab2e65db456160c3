"""The admin routes: watch, unwatch, pause, resume, recycle.

The API stores a command and waits for its answer; the scraper carries it out.
"""

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import Annotated, Any, TypeVar

import msgspec
from fastapi import Depends, FastAPI, Path, Request, Response
from msgspec import Meta, Struct
from starlette.exceptions import HTTPException

from longstop.api import openapi_responses
from longstop.api.json_and_error_responses import (
    NO_STORE,
    RETRY_SOON,
    STORE_UNREADABLE,
    error_response,
    json_response,
    reading_within,
)
from longstop.api.match_routes import find_match, unknown_match
from longstop.api.metrics_limits_and_errors_middleware import MAX_BODY_BYTES
from longstop.api.tokens import BearerScheme, Permission, Secret, require
from longstop.clock import Clock, iso_or_none, to_iso
from longstop.errors import UsageError
from longstop.model.command_and_standing_order import Command, CommandKind, CommandState, Refusal
from longstop.storage.base import MAX_ARGUMENT_CHARACTERS, CommandStore, MatchReader

T = TypeVar("T")

#: How long a request waits for the answer. After that the client must poll `Location`.
WAIT_SECONDS = 5.0
POLL_EVERY_SECONDS = 0.1
#: Further requests do not wait: each waiting one reads its command ten times a second.
MAX_WAITING = 16
#: How long a request waits for a file that may hang; waiting 5 s for another writer is normal.
STORE_TIMEOUT_SECONDS = 6.0
#: `Retry-After` when memory is insufficient.
RETRY_AFTER_SECONDS = 60

_NOT_STORED = (
    "The command was not stored in time, but may still be carried out: check `/status` before you send it again."
)
_STOPPING = (
    "The API is stopping. A command that it has stored may still be carried out: check `/status` before you send it "
    "again."
)
_COMMANDS_UNREADABLE = "The commands cannot be read at the moment; try again in a few seconds."
_STATUS_OF_REFUSAL = {Refusal.NOT_KNOWN: 404, Refusal.CONFLICT: 409, Refusal.MEMORY: 503}

SourceName = Annotated[str, Path(pattern=r"^[a-z][a-z0-9]{0,31}$")]
CommandId = Annotated[int, Path(ge=1, le=2**63 - 1)]


class _WatchBody(Struct, frozen=True):
    """The body of `POST /admin/watches`."""

    url: Annotated[str, Meta(max_length=MAX_ARGUMENT_CHARACTERS)]


class AdminRoutes:
    """Stores commands and returns their outcome.

    The reader must not answer on the event loop: a hung file may delay admin requests, but no data route.
    """

    def __init__(
        self,
        store: CommandStore,
        *,
        reader: MatchReader,
        secret: Secret,
        clock: Clock,
        stopping: asyncio.Event | None = None,
    ) -> None:
        self._stopping = stopping or asyncio.Event()
        self._store = store
        self._reader = reader
        self._secret = secret
        self._clock = clock
        self._waiting = 0

    def add_to(self, app: FastAPI) -> None:
        router, authorised = app.router, [Depends(self._authorise)]
        for method, path, endpoint, documentation in (
            ("POST", "/admin/watches", self.watch, openapi_responses.WATCH),
            ("DELETE", "/admin/watches/{match_id}", self.unwatch, openapi_responses.SEND),
            ("POST", "/admin/matches/{match_id}/pause", self.pause_match, openapi_responses.SEND),
            ("POST", "/admin/matches/{match_id}/resume", self.resume_match, openapi_responses.SEND),
            ("POST", "/admin/sources/{source}/pause", self.pause_source, openapi_responses.SEND),
            ("POST", "/admin/sources/{source}/resume", self.resume_source, openapi_responses.SEND),
            ("POST", "/admin/recycle", self.recycle, openapi_responses.SEND),
            ("GET", "/admin/commands/{command_id}", self.command, openapi_responses.COMMAND),
        ):
            router.add_api_route(path, endpoint, methods=[method], dependencies=authorised, **documentation)

    async def watch(self, request: Request) -> Response:
        """Poll a match, by the URL of its page, until it ends or is unwatched, whether the site lists it or not."""
        try:
            body = msgspec.json.decode(await _body(request), type=_WatchBody)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise HTTPException(422, 'Send the URL of a match page: {"url": "https://…"}.') from error
        return await self._send(request, CommandKind.WATCH, body.url)

    async def unwatch(self, request: Request, match_id: str) -> Response:
        """Stop polling a match for good, also after a restart."""
        return await self._send(request, CommandKind.UNWATCH, await self._ref(match_id))

    async def pause_match(self, request: Request, match_id: str) -> Response:
        """Stop polling a match until it is resumed, also after a restart."""
        return await self._send(request, CommandKind.PAUSE_MATCH, await self._ref(match_id))

    async def resume_match(self, request: Request, match_id: str) -> Response:
        """Restart polling of a match, with a full poll."""
        return await self._send(request, CommandKind.RESUME_MATCH, await self._ref(match_id))

    async def pause_source(self, request: Request, source: SourceName) -> Response:
        """Send no request to a site until it is resumed, also after a restart."""
        return await self._send(request, CommandKind.PAUSE_SOURCE, source)

    async def resume_source(self, request: Request, source: SourceName) -> Response:
        """Restart polling of all matches of a source."""
        return await self._send(request, CommandKind.RESUME_SOURCE, source)

    async def recycle(self, request: Request) -> Response:
        """Restart connections, browsers and polling of all matches."""
        return await self._send(request, CommandKind.RECYCLE, "")

    async def command(self, command_id: CommandId) -> Response:
        """Return the outcome of a command. `state` is pending, taken, done, refused, failed or expired."""
        async with reading_within(STORE_TIMEOUT_SECONDS, _COMMANDS_UNREADABLE):
            found = await self._store.find(command_id)
        if found is None:
            raise HTTPException(404, f"There is no command {command_id}.")
        return json_response(command_document(found), headers=NO_STORE)

    async def _authorise(self, request: Request, _documented: BearerScheme) -> None:
        require(self._secret, Permission.ADMIN, request, self._clock.now())

    async def _ref(self, text: str) -> str:
        async with reading_within(STORE_TIMEOUT_SECONDS, STORE_UNREADABLE):
            match = await self._unless_stopping(find_match(self._reader, text))
        if match is None:
            raise unknown_match(text)
        return str(match.ref)

    async def _send(self, request: Request, kind: CommandKind, argument: str) -> Response:
        bearer = require(self._secret, Permission.ADMIN, request, self._clock.now())
        asked_by = f"api: {bearer.subject}"[:100]
        return await self._unless_stopping(self._stored_and_answered(kind, argument, asked_by))

    async def _unless_stopping(self, work: Coroutine[Any, Any, T]) -> T:
        """Return the result of this work; raise 503 when the process is asked to stop before it has one."""
        running, stopping = asyncio.create_task(work), asyncio.create_task(self._stopping.wait())
        try:
            await asyncio.wait((running, stopping), return_when=asyncio.FIRST_COMPLETED)
            if not running.done():
                raise HTTPException(503, _STOPPING, RETRY_SOON)
            return running.result()
        finally:
            running.cancel()
            stopping.cancel()

    async def _stored_and_answered(self, kind: CommandKind, argument: str, asked_by: str) -> Response:
        try:
            async with asyncio.timeout(STORE_TIMEOUT_SECONDS):
                stored = await self._store.place(kind, argument, asked_by)
        except UsageError as error:
            return error_response(429, f"{error}.", RETRY_SOON)
        except TimeoutError:
            return error_response(503, _NOT_STORED, RETRY_SOON)
        return command_response(await self._wait(stored))

    async def _wait(self, command: Command) -> Command:
        """Return the command when it is answered, or unanswered after the wait."""
        if self._waiting >= MAX_WAITING:
            return command
        self._waiting += 1
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(WAIT_SECONDS):
                    while not command.is_answered:
                        await asyncio.sleep(POLL_EVERY_SECONDS)
                        latest = await self._store.find(command.id)
                        command = latest or command
            return command
        finally:
            self._waiting -= 1


def command_response(command: Command) -> Response:
    """Return the response for a command: its outcome, or 202 while it has none."""
    document = command_document(command)
    if not command.is_answered:
        url = f"/admin/commands/{command.id}"
        return json_response(document | {"url": url}, status=202, headers=NO_STORE | {"Location": url})
    if command.state is CommandState.DONE:
        return json_response(document, headers=NO_STORE)
    status = _STATUS_OF_REFUSAL[command.refusal] if command.refusal else 503
    retry = {"Retry-After": str(RETRY_AFTER_SECONDS)} if command.refusal is Refusal.MEMORY else {}
    return json_response(document | {"error": command.answer}, status=status, headers=NO_STORE | retry)


def command_document(command: Command) -> dict[str, Any]:
    times = {"asked_at": to_iso(command.asked_at), "answered_at": iso_or_none(command.answered_at)}
    return msgspec.structs.asdict(command) | times


async def _body(request: Request) -> bytes:
    """Return the body, with or without a Content-Length; reading stops at the size limit."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_BODY_BYTES:
            raise HTTPException(413, f"The body is larger than {MAX_BODY_BYTES} bytes.", {"Connection": "close"})
    return bytes(body)
