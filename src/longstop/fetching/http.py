"""Fetches over HTTP with curl, with the TLS fingerprint and headers of a browser."""

from io import BytesIO
from types import MappingProxyType
from typing import Any, cast

from curl_cffi import AsyncSession, Curl, CurlError, CurlInfo, CurlOpt, Response
from curl_cffi.requests.impersonate import DEFAULT_CHROME
from curl_cffi.requests.utils import requote_uri
from msgspec import Struct
from pydantic import SecretStr

from longstop.clock import Clock
from longstop.errors import (
    BodyTooLarge,
    FetchError,
    ForbiddenTarget,
    ResourcesExhausted,
    SourceError,
    SourceFailed,
    SourceUnreachable,
)
from longstop.exhaustion import exhausted
from longstop.fetching.addresses import ParsedUrl, Resolve, allowed_url, checked_addresses, resolve_by_system
from longstop.fetching.base import FetchRequest, Page, RawResponse
from longstop.fetching.guards import FetchPolicy
from longstop.fetching.responses import REDIRECTS, map_curl_error, redirected_request, status_error

_WHITESPACE = " \t\r\n\v\f"


class HttpProxy(Struct, frozen=True, kw_only=True):
    """The proxy of all requests of a fetcher."""

    server: str
    username: str
    password: SecretStr


class HttpFetcher:
    """Fetches pages of one source. Every redirect is checked, and curl connects to the address that was checked.

    It keeps connections but no cookies, so that a request does not depend on those before it.
    """

    def __init__(
        self, policy: FetchPolicy, clock: Clock, resolve: Resolve = resolve_by_system, proxy: HttpProxy | None = None
    ) -> None:
        self._policy = policy
        self._proxy = proxy
        self._clock = clock
        self._resolve = resolve
        #: `host:port` to the checked addresses in curl's notation. The host list limits its size.
        self._pins: dict[str, str] = {}
        self._is_closed = False
        #: The resource that the current session ran out of: curl does not recover, so the session is replaced.
        self._exhausted: str | None = None
        #: The resource that the previous session ran out of.
        self._exhausted_before = ""
        self._session = self._new_session()
        #: Curl's options of every request.
        self._options = self._curl_options()

    async def fetch(self, request: FetchRequest) -> Page:
        try:
            started = self._clock.monotonic()
            response, wire_bytes = await self._follow(request)
            if response.status != 200:
                error = status_error(response.status, response.headers, self._clock.now())
                if error is not None:
                    raise error
            return Page(
                request=request,
                status=response.status,
                headers=response.headers,
                body=response.body,
                elapsed_seconds=self._clock.monotonic() - started,
                wire_bytes=wire_bytes,
            )
        except SourceError as error:
            error.name(request.source, str(request))
            raise

    async def aclose(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            await self._session.close()

    async def _follow(self, request: FetchRequest) -> tuple[RawResponse, int]:
        wire_bytes = 0
        for _ in range(self._policy.max_redirects + 1):
            response = await self._request(request)
            wire_bytes += response.wire_bytes
            if response.status not in REDIRECTS:
                return response, wire_bytes
            request = redirected_request(request, response.status, response.headers)
        raise ForbiddenTarget(f"redirected more than {self._policy.max_redirects} times")

    async def _request(self, request: FetchRequest) -> RawResponse:
        target = allowed_url(request.url, self._policy.hosts, self._policy.allow_private_addresses)
        await self._pin(target)
        session = await self._working_session()
        if self._is_closed:
            raise SourceUnreachable("the fetcher is closed")
        try:
            response = await self._send(session, request, target.url)
        except (CurlError, OSError, MemoryError) as error:
            raise self._map_error(error, session) from error
        if self._is_closed:  # the library ends running requests as if they had succeeded
            raise SourceUnreachable("the fetcher was closed during the request")
        if session is not self._session:
            raise ResourcesExhausted(self._exhausted_before)
        return response

    async def _send(self, session: AsyncSession[Response], request: FetchRequest, url: str) -> RawResponse:
        """Send one request with a curl handle of the session, which resets it afterwards.

        `AsyncSession.request` takes half as long again: it sets and reads much that we do not use.
        """
        body, head = _CappedBody(self._policy.max_body_bytes), BytesIO()
        curl = await session.pop_curl()
        try:
            _set_request(curl, request, url)
            for option, value in self._options.items():
                curl.setopt(option, value)
            curl.setopt(CurlOpt.WRITEFUNCTION, body.take)
            curl.setopt(CurlOpt.HEADERDATA, head)
            await session.acurl.add_handle(curl)
            return RawResponse(
                status=_number(curl, CurlInfo.RESPONSE_CODE),
                headers=MappingProxyType(read_headers(head.getvalue())),
                body=body.complete(),
                wire_bytes=_number(curl, CurlInfo.HEADER_SIZE) + _number(curl, CurlInfo.SIZE_DOWNLOAD_T),
            )
        finally:
            session.release_curl(curl)

    def _new_session(self) -> AsyncSession[Response]:
        return AsyncSession(max_clients=self._policy.max_connections, trust_env=False)

    async def _working_session(self) -> AsyncSession[Response]:
        """Return the session, replaced if it ran out of a resource; requests in the old one are postponed."""
        if self._exhausted is not None:
            old = self._session
            try:
                self._session = self._new_session()
                self._exhausted_before, self._exhausted = self._exhausted, None
                await old.close()
            except (CurlError, OSError, MemoryError) as error:
                raise self._map_error(error, old) from error
        return self._session

    def _map_error(self, error: Exception, session: AsyncSession[Response]) -> FetchError:
        """Return our error for a foreign one; a session that ran out of a resource is marked for replacement."""
        shortage = exhausted(error)
        if shortage is None:
            if isinstance(error, CurlError):
                return map_curl_error(error)
            return SourceUnreachable(f"{type(error).__name__}: {error}")
        if session is self._session:  # otherwise it was replaced already
            self._exhausted = shortage.resource
        return shortage

    async def _pin(self, target: ParsedUrl) -> None:
        """Give curl the checked addresses, so that a second lookup cannot change them.

        A proxy resolves host names itself: a lookup here would be useless, and would show what is read.
        """
        if self._proxy is not None and target.literal is None:
            return
        addresses = await checked_addresses(
            target,
            allow_private_addresses=self._policy.allow_private_addresses,
            resolve=self._resolve,
            deadline_seconds=self._policy.longest_deadline_seconds,
        )
        if target.literal is None:
            name = f"{target.host}:{target.port}"
            pin = f"{name}:{','.join(map(str, addresses))}"
            if self._pins.get(name) != pin:
                self._pins[name] = pin
                self._options = self._curl_options()

    def _curl_options(self) -> dict[CurlOpt, Any]:
        # Without an empty proxy, curl reads http_proxy from the environment.
        options: dict[CurlOpt, Any] = {
            CurlOpt.TIMEOUT_MS: int(self._policy.longest_deadline_seconds * 1000),
            CurlOpt.PROXY: "",
            CurlOpt.RESOLVE: list(self._pins.values()),
        }
        authorities: object = self._session.verify
        if isinstance(authorities, str):  # the operator's own, found by the session in the environment
            options |= {CurlOpt.CAINFO: authorities, CurlOpt.PROXY_CAINFO: authorities}
        if self._proxy is not None:
            options[CurlOpt.PROXY] = self._proxy.server
            options[CurlOpt.PROXYUSERNAME] = self._proxy.username
            options[CurlOpt.PROXYPASSWORD] = self._proxy.password.get_secret_value()
            options[CurlOpt.NOPROXY] = ""
        return options


class _CappedBody:
    """Collects decoded bytes during the transfer, and ends it when there are too many.

    The library's own streaming uses an unbounded queue, which one packet of a gzip bomb fills before a reader runs.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._collected = bytearray()

    def take(self, chunk: bytes) -> int:
        if len(self._collected) + len(chunk) > self._max_bytes:
            self._collected.clear()  # the error's traceback keeps a reference to this object
            raise BodyTooLarge(f"more than {self._max_bytes} bytes after decompression")
        self._collected += chunk
        return len(chunk)

    def complete(self) -> bytes:
        return bytes(self._collected)


def _set_request(curl: Curl, request: FetchRequest, url: str) -> None:
    """Set the options of a request, as a browser sends it."""
    curl.setopt(CurlOpt.URL, requote_uri(url))
    if request.method == "POST":
        curl.setopt(CurlOpt.POST, 1)
    elif request.method != "GET" or request.body:
        curl.setopt(CurlOpt.CUSTOMREQUEST, request.method)
    if request.method == "POST" or request.body:
        body = request.body or b""
        curl.setopt(CurlOpt.POSTFIELDS, body)
        curl.setopt(CurlOpt.POSTFIELDSIZE, len(body))
    curl.setopt(CurlOpt.HTTPHEADER, _header_lines(request))
    curl.setopt(CurlOpt.ACCEPT_ENCODING, "gzip, deflate, br")
    curl.impersonate(DEFAULT_CHROME)


def _header_lines(request: FetchRequest) -> list[bytes]:
    # Curl drops a header without a value, unless it ends in a semicolon.
    lines = [f"{name}: {value}" if value else f"{name};" for name, value in request.headers.items()]
    if request.body is not None and "content-type" not in map(str.lower, request.headers):
        lines.append("Content-Type: application/json")
    # Without this, curl sends "Expect: 100-continue" before a long body; browsers do not.
    return [line.encode() for line in (*lines, "Expect:")]


def _number(curl: Curl, info: CurlInfo) -> int:
    return cast(int, curl.getinfo(info))


def read_headers(received: bytes) -> dict[str, str]:
    """Parse received header lines, with names in lower case; raise `SourceFailed` if they are malformed.

    Only those of the last response count: before it there may be a proxy's, or an interim one (1xx).
    """
    lines: list[bytes] = []
    for line in received.splitlines():
        if line.startswith(b"HTTP/"):
            lines.clear()
        elif not line.strip():
            continue
        elif line.startswith((b" ", b"\t")):
            if not lines:
                raise SourceFailed("malformed headers: the first line is a continuation")
            lines[-1] += line
        else:
            lines.append(line)
    text = b"\n".join(lines)
    try:
        decoded = text.decode()
    except UnicodeDecodeError:
        decoded = text.decode("latin-1")
    headers: dict[str, str] = {}
    for field in decoded.split("\n") if lines else ():
        name, colon, value = field.partition(":")
        if not colon:
            raise SourceFailed(f"malformed headers: {field[:80]!r} has no colon")
        name, value = name.lower(), value.strip(_WHITESPACE)
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return headers
