"""JSON answers and error answers of all routes."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
from fastapi import Response
from starlette.exceptions import HTTPException

from longstop.errors import StorageError

STORE_UNREADABLE = "The store cannot be read at the moment; try again in a few seconds."
NO_STORE = {"Cache-Control": "no-store"}
RETRY_SOON = {"Retry-After": "5"}


def json_response(document: object, *, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return encoded_response(msgspec.json.encode(document), status=status, headers=headers)


def encoded_response(content: bytes, *, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(content, status, headers, "application/json")


def error_response(status: int, sentence: str, headers: dict[str, str] | None = None) -> Response:
    return json_response({"error": sentence}, status=status, headers=headers)


@asynccontextmanager
async def reading_within(seconds: float, sentence: str) -> AsyncIterator[None]:
    """Answer 503 with this sentence when a file cannot be read in time: it may hang."""
    try:
        async with asyncio.timeout(seconds):
            yield
    except (StorageError, TimeoutError) as error:
        raise HTTPException(503, sentence, RETRY_SOON) from error
