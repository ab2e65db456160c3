"""The routes of those who run it: watch, pause, resume, recycle.

The API writes a command down and waits for its answer; what is done is done by the scraper.
"""

import asyncio
from contextlib import suppress
from typing import Annotated, Any

import msgspec
from fastapi import Depends, FastAPI, Path, Request, Response
from msgspec import Meta, Struct
from starlette.exceptions import HTTPException

from longstop.api import described_admin as described
from longstop.api.auth import Permission, Scheme, TokenVerifier, require
from longstop.api.guard import MAX_BODY_BYTES, error_response, json_response
from longstop.api.matches import look_up
from longstop.api.shapes import iso_or_none
from longstop.clock import Clock, to_iso
from longstop.errors import UsageError
from longstop.model.command import Command, CommandKind, CommandState, Refusal
from longstop.storage.base import MAX_ARGUMENT_CHARACTERS, CommandRequest, CommandStore, MatchReader

#: How long a request waits for the answer; after that the client comes back for it.
WAIT_SECONDS = 5.0
LOOK_EVERY_SECONDS = 0.1
#: More than these do not wait: each asks for its command ten times a second.
MAX_WAITING = 16
#: A file that hangs is not waited for longer than this; for one that somebody else writes, 5 s are no hang yet.
PATIENCE_SECONDS = 6.0
#: Without memory, when it is worth asking again.
RETRY_AFTER_SECONDS = 60

_NO_STORE = {"Cache-Control": "no-store"}
_SOON = {"Retry-After": "5"}
#: Who hangs while it is written down may still come to its end.
_NOT_WRITTEN = (
    "The order was not written down in time, but may still be carried out: look how things are, and ask again."
)
_REFUSED = {Refusal.NOT_KNOWN: 404, Refusal.CONFLICT: 409, Refusal.MEMORY: 503}

SourceName = Annotated[str, Path(pattern=r"^[a-z][a-z0-9]{0,31}$")]
CommandId = Annotated[int, Path(ge=1, le=2**63 - 1)]


class _Page(Struct, frozen=True):
    """The body that asks for a watch."""

    url: Annotated[str, Meta(max_length=MAX_ARGUMENT_CHARACTERS)]


class AdminRoutes:
    """Writes commands down and tells what came of them.

    The reader should not answer on the loop: a file that hangs must hold up only those who give orders, and the match
    store only those who name a match.
    """

    def __init__(
        self,
        store: CommandStore,
        *,
        reader: MatchReader,
        verifier: TokenVerifier,
        clock: Clock,
        wait_seconds: float = WAIT_SECONDS,
        patience_seconds: float = PATIENCE_SECONDS,
    ) -> None:
        self._store = store
        self._reader = reader
        self._verifier = verifier
        self._clock = clock
        self._wait_seconds = wait_seconds
        self._waiting = 0
        self._patience_seconds = patience_seconds

    def add_to(self, app: FastAPI) -> None:
        router, permitted = app.router, [Depends(self._permit)]
        for method, path, endpoint, words in (
            ("POST", "/admin/watches", self.watch, described.WATCH),
            ("DELETE", "/admin/watches/{match_id}", self.unwatch, described.UNWATCH),
            ("POST", "/admin/matches/{match_id}/pause", self.pause_match, described.PAUSE_MATCH),
            ("POST", "/admin/matches/{match_id}/resume", self.resume_match, described.RESUME_MATCH),
            ("POST", "/admin/sources/{source}/pause", self.pause_source, described.PAUSE_SOURCE),
            ("POST", "/admin/sources/{source}/resume", self.resume_source, described.RESUME_SOURCE),
            ("POST", "/admin/recycle", self.recycle, described.RECYCLE),
            ("GET", "/admin/commands/{command_id}", self.command, described.COMMAND),
        ):
            router.add_api_route(path, endpoint, methods=[method], dependencies=permitted, **words)

    async def watch(self, request: Request) -> Response:
        try:
            page = msgspec.json.decode(await _body(request), type=_Page)
        except msgspec.MsgspecError as error:
            raise HTTPException(422, 'Send the address of a match\'s page: {"url": "https://…"}.') from error
        return await self._ask(request, CommandKind.WATCH, page.url)

    async def unwatch(self, request: Request, match_id: str) -> Response:
        return await self._ask(request, CommandKind.UNWATCH, await self._ref(match_id))

    async def pause_match(self, request: Request, match_id: str) -> Response:
        return await self._ask(request, CommandKind.PAUSE_MATCH, await self._ref(match_id))

    async def resume_match(self, request: Request, match_id: str) -> Response:
        return await self._ask(request, CommandKind.RESUME_MATCH, await self._ref(match_id))

    async def pause_source(self, request: Request, source: SourceName) -> Response:
        return await self._ask(request, CommandKind.PAUSE_SOURCE, source)

    async def resume_source(self, request: Request, source: SourceName) -> Response:
        return await self._ask(request, CommandKind.RESUME_SOURCE, source)

    async def recycle(self, request: Request) -> Response:
        return await self._ask(request, CommandKind.RECYCLE, "")

    async def command(self, command_id: CommandId) -> Response:
        try:
            async with asyncio.timeout(self._patience_seconds):
                found = await self._store.find(command_id)
        except TimeoutError as error:
            raise HTTPException(503, "The list of commands cannot be read at the moment.", _SOON) from error
        if found is None:
            raise HTTPException(404, f"No command {command_id} is known.")
        return json_response(command_document(found), headers=_NO_STORE)

    async def _permit(self, request: Request, _documented: Scheme) -> None:
        require(self._verifier, Permission.ADMIN, request, self._clock.now())

    async def _ref(self, text: str) -> str:
        try:
            async with asyncio.timeout(self._patience_seconds):
                match = await look_up(self._reader, text)
        except TimeoutError as error:
            raise HTTPException(503, "The store cannot be read at the moment.", _SOON) from error
        if match is None:
            raise HTTPException(404, f"No match {text} is known.")
        return str(match.ref)

    async def _ask(self, request: Request, kind: CommandKind, argument: str) -> Response:
        bearer = require(self._verifier, Permission.ADMIN, request, self._clock.now())
        wanted = CommandRequest(kind=kind, argument=argument, asked_by=f"api: {bearer.subject}"[:100])
        try:
            async with asyncio.timeout(self._patience_seconds):
                asked = await self._store.place(wanted)
        except UsageError as error:
            return error_response(429, f"{error}.", _SOON)
        except TimeoutError:
            return error_response(503, _NOT_WRITTEN, _SOON)
        return answer_to(await self._wait(asked))

    async def _wait(self, command: Command) -> Command:
        """Return the command once it is answered, or as it is when that takes too long."""
        if self._waiting >= MAX_WAITING:
            return command
        self._waiting += 1
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._wait_seconds):
                    while not command.is_answered:
                        await asyncio.sleep(LOOK_EVERY_SECONDS)
                        latest = await self._store.find(command.id)
                        command = latest or command
            return command
        finally:
            self._waiting -= 1


def answer_to(command: Command) -> Response:
    """Return what a client is told of a command."""
    document = command_document(command)
    if not command.is_answered:
        address = f"/admin/commands/{command.id}"
        return json_response(document | {"url": address}, status=202, headers=_NO_STORE | {"Location": address})
    if command.state is CommandState.DONE:
        return json_response(document, headers=_NO_STORE)
    status = _REFUSED[command.refusal] if command.refusal else 503
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
    """Return the body, however its size is announced; one that is too long is not read to its end."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_BODY_BYTES:
            raise HTTPException(413, "No request here needs a body of that size.", {"Connection": "close"})
    return bytes(body)
