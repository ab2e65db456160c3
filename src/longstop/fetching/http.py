"""Fetching over HTTP by curl, with the TLS and header habits of a browser."""

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
from longstop.fetching.addresses import Resolve, Target, allowed_target, checked_addresses, resolve_by_system
from longstop.fetching.answers import REDIRECTS, error_of, redirected, translated
from longstop.fetching.base import FetchRequest, Page, RawResponse
from longstop.fetching.guards import FetchPolicy

_BLANKS = " \t\r\n\v\f"


class HttpProxy(Struct, frozen=True, kw_only=True):
    """The proxy that all requests of a fetcher go through."""

    server: str
    username: str
    password: SecretStr


class HttpFetcher:
    """Brings pages of one source; every hop is checked, and curl connects to the address that was checked.

    It keeps connections, but no cookies: a poll means the same whatever came before it.
    """

    def __init__(
        self, policy: FetchPolicy, clock: Clock, resolve: Resolve = resolve_by_system, proxy: HttpProxy | None = None
    ) -> None:
        self._policy = policy
        self._proxy = proxy
        self._clock = clock
        self._resolve = resolve
        #: `host:port` to what curl is told about it. The host list bounds it, and all of it has been checked.
        self._pins: dict[str, str] = {}
        self._is_closed = False
        #: What this machine lacked last time: curl, begun without it, never works again.
        self._lack: str | None = None
        #: What the session before this one was given up for.
        self._lacked = ""
        self._session = self._new_session()
        #: What curl is told on every request, beside the request itself.
        self._options = self._curl_options()

    async def fetch(self, request: FetchRequest) -> Page:
        try:
            started = self._clock.monotonic()
            answer, wire_bytes = await self._follow(request)
            if answer.status != 200:
                error = error_of(answer.status, answer.headers, self._clock.now())
                if error is not None:
                    raise error
            return Page(
                request=request,
                status=answer.status,
                headers=answer.headers,
                body=answer.body,
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
            answer = await self._ask(request)
            wire_bytes += answer.wire_bytes
            if answer.status not in REDIRECTS:
                return answer, wire_bytes
            request = redirected(request, answer.status, answer.headers)
        raise ForbiddenTarget(f"redirected more than {self._policy.max_redirects} times")

    async def _ask(self, request: FetchRequest) -> RawResponse:
        target = allowed_target(request.url, self._policy.hosts, self._policy.allow_private_addresses)
        await self._pin(target)
        session = await self._sound_session()
        if self._is_closed:
            raise SourceUnreachable("the fetcher is closed")
        try:
            answer = await self._send(session, request, target.url)
        except (CurlError, OSError, MemoryError) as error:
            raise self._translated(error, session) from error
        if self._is_closed:  # the library ends what is under way as if it had been good
            raise SourceUnreachable("the fetcher was closed under way")
        if session is not self._session:
            raise ResourcesExhausted(self._lacked)
        return answer

    async def _send(self, session: AsyncSession[Response], request: FetchRequest, url: str) -> RawResponse:
        """Send one request by a handle of the session, which takes it back without any of its settings.

        `AsyncSession.request` does the same for half as much again: it sets and reads much that we do not use.
        """
        body, head = _CappedBody(self._policy.max_body_bytes), BytesIO()
        curl = await session.pop_curl()
        try:
            _describe(curl, request, url)
            for option, value in self._options.items():
                curl.setopt(option, value)
            curl.setopt(CurlOpt.WRITEFUNCTION, body.take)
            curl.setopt(CurlOpt.HEADERDATA, head)
            await session.acurl.add_handle(curl)
            return RawResponse(
                status=_number(curl, CurlInfo.RESPONSE_CODE),
                headers=MappingProxyType(read_headers(head.getvalue())),
                body=body.whole(),
                wire_bytes=_number(curl, CurlInfo.HEADER_SIZE) + _number(curl, CurlInfo.SIZE_DOWNLOAD_T),
            )
        finally:
            session.release_curl(curl)

    def _new_session(self) -> AsyncSession[Response]:
        return AsyncSession(max_clients=self._policy.max_connections, trust_env=False)

    async def _sound_session(self) -> AsyncSession[Response]:
        """Return the session to ask by: after a lack a new one, and what waits in the old one is put off."""
        if self._lack is not None:
            old = self._session
            try:
                self._session = self._new_session()
                self._lacked, self._lack = self._lack, None
                await old.close()
            except (CurlError, OSError, MemoryError) as error:
                raise self._translated(error, old) from error
        return self._session

    def _translated(self, error: Exception, session: AsyncSession[Response]) -> FetchError:
        """Return our error for a foreign one; a session that met a lack of this machine is given up."""
        lack = exhausted(error)
        if lack is None:
            if isinstance(error, CurlError):
                return translated(error)
            return SourceUnreachable(f"{type(error).__name__}: {error}")
        if session is self._session:  # one that was given up has said it before
            self._lack = lack.resource
        return lack

    async def _pin(self, target: Target) -> None:
        """Tell curl the checked addresses, so that no second lookup can change them.

        Through a proxy the name is looked up there: asking for it here would show what is read, and mean nothing.
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
        # Without an empty proxy curl reads http_proxy from the environment by itself.
        options: dict[CurlOpt, Any] = {
            CurlOpt.TIMEOUT_MS: int(self._policy.longest_deadline_seconds * 1000),
            CurlOpt.PROXY: "",
            CurlOpt.RESOLVE: list(self._pins.values()),
        }
        authorities: object = self._session.verify
        if isinstance(authorities, str):  # the operator's own, which the session has found in the environment
            options |= {CurlOpt.CAINFO: authorities, CurlOpt.PROXY_CAINFO: authorities}
        if self._proxy is not None:
            options[CurlOpt.PROXY] = self._proxy.server
            options[CurlOpt.PROXYUSERNAME] = self._proxy.username
            options[CurlOpt.PROXYPASSWORD] = self._proxy.password.get_secret_value()
            options[CurlOpt.NOPROXY] = ""
        return options


class _CappedBody:
    """Collects decoded bytes as curl hands them over.

    The library's own streaming puts them into a queue without a bound: one packet of a gzip bomb fills it before
    the reader wakes up. Called inside the transfer, the cap ends it at once.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._collected = bytearray()

    def take(self, chunk: bytes) -> int:
        if len(self._collected) + len(chunk) > self._max_bytes:
            self._collected.clear()  # the error's traceback refers to us, and may be kept
            raise BodyTooLarge(f"more than {self._max_bytes} bytes after decompression")
        self._collected += chunk
        return len(chunk)

    def whole(self) -> bytes:
        return bytes(self._collected)


def _describe(curl: Curl, request: FetchRequest, url: str) -> None:
    """Tell curl what to ask, as a browser asks it."""
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
    # Curl leaves a header out that has no value, unless a semicolon says that this is meant.
    lines = [f"{name}: {value}" if value else f"{name};" for name, value in request.headers.items()]
    if request.body is not None and "content-type" not in map(str.lower, request.headers):
        lines.append("Content-Type: application/json")
    # Curl would ask first whether a long body may be sent; browsers do not.
    return [line.encode() for line in (*lines, "Expect:")]


def _number(curl: Curl, info: CurlInfo) -> int:
    return cast(int, curl.getinfo(info))


def read_headers(received: bytes) -> dict[str, str]:
    """Read the header lines that came in, names in lower case; raise `SourceFailed` where they cannot be read.

    Only those of the last answer count: before it may stand a proxy's, and one that only announces another.
    """
    lines: list[bytes] = []
    for line in received.splitlines():
        if line.startswith(b"HTTP/"):
            lines.clear()
        elif not line.strip():
            continue
        elif line.startswith((b" ", b"\t")):
            if not lines:
                raise SourceFailed("the answer's headers cannot be read: the first line continues another")
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
            raise SourceFailed(f"the answer's headers cannot be read: {field[:80]!r} has no colon")
        name, value = name.lower(), value.strip(_BLANKS)
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return headers
