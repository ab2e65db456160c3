"""The part of HTTP that the simulator needs: requests, responses, and their wire format."""

import asyncio
import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from longstop_lab.simulator.sites.espncricinfo.ids import match_key_of, match_number

_MAX_BODY_BYTES = 1_000_000
#: A match's number as it stands in the addresses of espncricinfo.
_IN_PATH = re.compile(r"-(\d{1,12})/full-scorecard$")
#: A match's key as it stands in the other sites' addresses: crex's pages; sofascore's calls, pages and channel.
_KEY_IN_PATH = re.compile(
    r"/(?:scoreboard/|cricket-live-score/[a-z0-9-]*-match-updates-)(?P<page>[0-9A-Z]{1,8})(?:/|$)"
    r"|/(?:api/v1/event/|push/|event/[a-z0-9-]+/)(?P<event>\d{1,12})(?:/|$)"
)


#: Where the sites list their matches as JSON.
_LISTS = frozenset({"/api/v3/getLiveMatches", "/api/v1/sport/football/events/live"})


class BadRequest(Exception):
    """What came in is no request; the connection is closed after the answer."""


class Request(Struct, frozen=True, kw_only=True):
    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    #: By name in small letters.
    headers: Mapping[str, str] = field(default_factory=dict)
    keeps_alive: bool = True

    @property
    def match_key(self) -> str | None:
        """Return which match is meant, by the path, by the query or by the posted JSON."""
        if named := _IN_PATH.search(self.path):
            return match_key_of(int(named[1]))
        if named := _KEY_IN_PATH.match(self.path):
            return named["page"] or named["event"]
        if "key" in self.query or not self.body:
            return self.query.get("key")
        try:
            return msgspec.json.decode(self.body, type=_Posted).matchKey
        except msgspec.MsgspecError:
            return None

    @property
    def is_list(self) -> bool:
        """Return whether all matches are asked for."""
        return self.path in _LISTS

    def about(self, key: str) -> "Request":
        """Return the same request about another match."""
        if _IN_PATH.search(self.path):
            return replace(self, path=_IN_PATH.sub(f"-{match_number(key)}/full-scorecard", self.path))
        if named := _KEY_IN_PATH.match(self.path):
            begin, end = named.span("page" if named["page"] else "event")
            return replace(self, path=self.path[:begin] + key + self.path[end:])
        if "key" in self.query:
            return replace(self, query={**self.query, "key": key})
        return replace(self, body=self.body.replace(f'"{self.match_key}"'.encode(), f'"{key}"'.encode()))


class _Posted(Struct):
    matchKey: str | None = None  # noqa: N815, the site's own spelling


class Response(Struct, frozen=True, kw_only=True):
    status: int = 200
    body: bytes = b""
    content_type: str = "application/json; charset=utf-8"
    headers: Mapping[str, str] = field(default_factory=dict)

    def encode(self, *, keeps_alive: bool) -> bytes:
        """Return the whole answer as bytes."""
        lines = [
            f"HTTP/1.1 {self.status} {HTTPStatus(self.status).phrase}",
            f"Content-Type: {self.content_type}",
            # What was not modified has a length, and none of it is sent.
            *([] if self.status == HTTPStatus.NOT_MODIFIED else [f"Content-Length: {len(self.body)}"]),
            f"Connection: {'keep-alive' if keeps_alive else 'close'}",
            *(f"{name}: {value}" for name, value in self.headers.items()),
        ]
        return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + self.body


def to_json(value: Any, status: int = 200) -> Response:
    return Response(status=status, body=msgspec.json.encode(value))


def failure(status: int, sentence: str) -> Response:
    return to_json({"error": sentence}, status)


async def read_request(reader: asyncio.StreamReader) -> Request | None:
    """Return the next request of a connection, or `None` when the other side is done with it."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError as error:
        if error.partial:
            raise BadRequest("the request was cut short") from error
        return None
    except asyncio.LimitOverrunError as error:
        raise BadRequest("the head of the request is too long") from error
    request_line, *lines = head.decode("latin-1").split("\r\n")[:-2]
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    return _to_request(request_line, headers, await _read_body(reader, headers))


async def _read_body(reader: asyncio.StreamReader, headers: Mapping[str, str]) -> bytes:
    length = headers.get("content-length", "0")
    if "transfer-encoding" in headers or not length.isdecimal() or int(length) > _MAX_BODY_BYTES:
        raise BadRequest("the body needs a Content-Length of at most one million bytes")
    try:
        return await reader.readexactly(int(length))
    except asyncio.IncompleteReadError as error:
        raise BadRequest("the body was cut short") from error


def _to_request(request_line: str, headers: Mapping[str, str], body: bytes) -> Request:
    parts = request_line.split(" ")
    if len(parts) != 3 or not parts[2].startswith("HTTP/1."):
        raise BadRequest("the request line is not one of HTTP/1.1")
    method, target, version = parts
    path, _, query = target.partition("?")
    wanted = headers.get("connection", "").lower()
    return Request(
        method=method,
        path=path,
        query=dict(parse_qsl(query)),
        body=body,
        headers=headers,
        keeps_alive=wanted == "keep-alive" if version == "HTTP/1.0" else wanted != "close",
    )
