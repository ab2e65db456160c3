"""The admin routes: watch, unwatch, pause, resume, recycle.

The API stores a command and waits for its answer; the scraper carries it out.
"""

import asyncio
from contextlib import suppress
from typing import Annotated, Any

import msgspec
from fastapi import Depends, FastAPI, Path, Request, Response
from msgspec import Meta, Struct
from starlette.exceptions import HTTPException

from longstop.api import openapi
from longstop.api.auth import BearerScheme, Permission, TokenVerifier, require
from longstop.api.match_routes import find_match, unknown_match
from longstop.api.middleware import MAX_BODY_BYTES, STORE_UNREADABLE, error_response, json_response
from longstop.api.serialisers import iso_or_none
from longstop.clock import Clock, to_iso
from longstop.errors import UsageError
from longstop.model.command import Command, CommandKind, CommandState, Refusal
from longstop.storage.base import MAX_ARGUMENT_CHARACTERS, CommandRequest, CommandStore, MatchReader

#: How long a request waits for the answer. After that the client must poll `Location`.
WAIT_SECONDS = 5.0
POLL_EVERY_SECONDS = 0.1
#: Further requests do not wait: each waiting one reads its command ten times a second.
MAX_WAITING = 16
#: How long a request waits for a file that may hang; waiting 5 s for another writer is normal.
STORE_TIMEOUT_SECONDS = 6.0
#: `Retry-After` when memory is insufficient.
RETRY_AFTER_SECONDS = 60

_NO_STORE = {"Cache-Control": "no-store"}
_RETRY_SOON = {"Retry-After": "5"}
_NOT_STORED = (
    "The command was not stored in time, but may still be carried out: check `/status` before you send it again."
)
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
        verifier: TokenVerifier,
        clock: Clock,
        wait_seconds: float = WAIT_SECONDS,
        timeout_seconds: float = STORE_TIMEOUT_SECONDS,
    ) -> None:
        self._store = store
        self._reader = reader
        self._verifier = verifier
        self._clock = clock
        self._wait_seconds = wait_seconds
        self._waiting = 0
        self._timeout_seconds = timeout_seconds

    def add_to(self, app: FastAPI) -> None:
        router, authorised = app.router, [Depends(self._authorise)]
        for method, path, endpoint, documentation in (
            ("POST", "/admin/watches", self.watch, openapi.WATCH),
            ("DELETE", "/admin/watches/{match_id}", self.unwatch, openapi.UNWATCH),
            ("POST", "/admin/matches/{match_id}/pause", self.pause_match, openapi.PAUSE_MATCH),
            ("POST", "/admin/matches/{match_id}/resume", self.resume_match, openapi.RESUME_MATCH),
            ("POST", "/admin/sources/{source}/pause", self.pause_source, openapi.PAUSE_SOURCE),
            ("POST", "/admin/sources/{source}/resume", self.resume_source, openapi.RESUME_SOURCE),
            ("POST", "/admin/recycle", self.recycle, openapi.RECYCLE),
            ("GET", "/admin/commands/{command_id}", self.command, openapi.COMMAND),
        ):
            router.add_api_route(path, endpoint, methods=[method], dependencies=authorised, **documentation)

    async def watch(self, request: Request) -> Response:
        try:
            body = msgspec.json.decode(await _body(request), type=_WatchBody)
        except msgspec.MsgspecError as error:
            raise HTTPException(422, 'Send the URL of a match page: {"url": "https://…"}.') from error
        return await self._send(request, CommandKind.WATCH, body.url)

    async def unwatch(self, request: Request, match_id: str) -> Response:
        return await self._send(request, CommandKind.UNWATCH, await self._ref(match_id))

    async def pause_match(self, request: Request, match_id: str) -> Response:
        return await self._send(request, CommandKind.PAUSE_MATCH, await self._ref(match_id))

    async def resume_match(self, request: Request, match_id: str) -> Response:
        return await self._send(request, CommandKind.RESUME_MATCH, await self._ref(match_id))

    async def pause_source(self, request: Request, source: SourceName) -> Response:
        return await self._send(request, CommandKind.PAUSE_SOURCE, source)

    async def resume_source(self, request: Request, source: SourceName) -> Response:
        return await self._send(request, CommandKind.RESUME_SOURCE, source)

    async def recycle(self, request: Request) -> Response:
        return await self._send(request, CommandKind.RECYCLE, "")

    async def command(self, command_id: CommandId) -> Response:
        try:
            async with asyncio.timeout(self._timeout_seconds):
                found = await self._store.find(command_id)
        except TimeoutError as error:
            raise HTTPException(
                503, "The commands cannot be read at the moment; try again in a few seconds.", _RETRY_SOON
            ) from error
        if found is None:
            raise HTTPException(404, f"There is no command {command_id}.")
        return json_response(command_document(found), headers=_NO_STORE)

    async def _authorise(self, request: Request, _documented: BearerScheme) -> None:
        require(self._verifier, Permission.ADMIN, request, self._clock.now())

    async def _ref(self, text: str) -> str:
        try:
            async with asyncio.timeout(self._timeout_seconds):
                match = await find_match(self._reader, text)
        except TimeoutError as error:
            raise HTTPException(503, STORE_UNREADABLE, _RETRY_SOON) from error
        if match is None:
            raise unknown_match(text)
        return str(match.ref)

    async def _send(self, request: Request, kind: CommandKind, argument: str) -> Response:
        bearer = require(self._verifier, Permission.ADMIN, request, self._clock.now())
        command = CommandRequest(kind=kind, argument=argument, asked_by=f"api: {bearer.subject}"[:100])
        try:
            async with asyncio.timeout(self._timeout_seconds):
                stored = await self._store.place(command)
        except UsageError as error:
            return error_response(429, f"{error}.", _RETRY_SOON)
        except TimeoutError:
            return error_response(503, _NOT_STORED, _RETRY_SOON)
        return command_response(await self._wait(stored))

    async def _wait(self, command: Command) -> Command:
        """Return the command when it is answered, or unanswered after the wait."""
        if self._waiting >= MAX_WAITING:
            return command
        self._waiting += 1
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._wait_seconds):
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
        return json_response(document | {"url": url}, status=202, headers=_NO_STORE | {"Location": url})
    if command.state is CommandState.DONE:
        return json_response(document, headers=_NO_STORE)
    status = _STATUS_OF_REFUSAL[command.refusal] if command.refusal else 503
    retry = {"Retry-After": str(RETRY_AFTER_SECONDS)} if command.refusal is Refusal.MEMORY else {}
    return json_response(document | {"error": command.answer}, status=status, headers=_NO_STORE | retry)


def command_document(command: Command) -> dict[str, Any]:
    return {
        "id": command.id,
        "kind": command.kind.value,
        "argument": command.argument,
        "asked_by": command.asked_by,
        "asked_at": to_iso(command.asked_at),
        "state": command.state.value,
        "refusal": command.refusal and command.refusal.value,
        "answer": command.answer,
        "answered_at": iso_or_none(command.answered_at),
    }


async def _body(request: Request) -> bytes:
    """Return the body, with or without a Content-Length; reading stops at the size limit."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_BODY_BYTES:
            raise HTTPException(413, f"The body is larger than {MAX_BODY_BYTES} bytes.", {"Connection": "close"})
    return bytes(body)
