"""Fetching over HTTP by curl, with the TLS and header habits of a browser."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any, cast

from curl_cffi import AsyncSession, CurlError, CurlOpt, Response
from curl_cffi.requests.session import HttpMethod
from msgspec import Struct
from pydantic import SecretStr

from longstop.clock import Clock
from longstop.errors import (
    BodyTooLarge,
    ForbiddenTarget,
    ResourcesExhausted,
    SourceFailed,
    SourceUnreachable,
    belonging_to,
)
from longstop.fetching.addresses import Resolve, Target, allowed_target, checked_addresses, resolve_by_system
from longstop.fetching.answers import REDIRECTS, error_of, redirected, translated
from longstop.fetching.base import FetchRequest, Page
from longstop.fetching.guards import FetchPolicy
from longstop.lacking import exhausted


class Answer(Struct, frozen=True, kw_only=True):
    """What came back for one hop."""

    status: int
    #: Names in lower case.
    headers: Mapping[str, str]
    body: bytes
    wire_bytes: int


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

    async def fetch(self, request: FetchRequest) -> Page:
        with belonging_to(request.source, str(request)):
            started = self._clock.monotonic()
            answer, wire_bytes = await self._follow(request)
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

    async def aclose(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            await self._session.close()

    async def _follow(self, request: FetchRequest) -> tuple[Answer, int]:
        wire_bytes = 0
        for _ in range(self._policy.max_redirects + 1):
            answer = await self._ask(request)
            wire_bytes += answer.wire_bytes
            if answer.status not in REDIRECTS:
                return answer, wire_bytes
            request = redirected(request, answer.status, answer.headers)
        raise ForbiddenTarget(f"redirected more than {self._policy.max_redirects} times")

    async def _ask(self, request: FetchRequest) -> Answer:
        target = allowed_target(request.url, self._policy.hosts, self._policy.allow_private_addresses)
        await self._pin(target)
        body, session = _CappedBody(self._policy.max_body_bytes), await self._sound_session()
        with self._foreign_errors(session):
            response = await session.request(
                cast(HttpMethod, request.method),
                target.url,
                data=request.body,
                headers=_headers_of(request),
                content_callback=body.take,
            )
        if self._is_closed:  # the library ends what is under way as if it had been good
            raise SourceUnreachable("the fetcher was closed under way")
        if session is not self._session:
            raise ResourcesExhausted(self._lacked)
        return Answer(
            status=response.status_code,
            headers=MappingProxyType({name.lower(): value or "" for name, value in response.headers.items()}),
            body=body.whole(),
            wire_bytes=response.response_size,
        )

    def _new_session(self) -> AsyncSession[Response]:
        return AsyncSession(
            impersonate="chrome",
            allow_redirects=False,
            timeout=self._policy.longest_deadline_seconds,
            max_clients=self._policy.max_connections,
            trust_env=False,
            discard_cookies=True,
            curl_options=self._curl_options(),
        )

    async def _sound_session(self) -> AsyncSession[Response]:
        """Return the session to ask by: after a lack a new one, and what waits in the old one is put off."""
        if self._lack is not None:
            old = self._session
            with self._foreign_errors(old):
                self._session = self._new_session()
                self._lacked, self._lack = self._lack, None
                await old.close()
        return self._session

    @contextmanager
    def _foreign_errors(self, session: AsyncSession[Response]) -> Iterator[None]:
        try:
            with _foreign_errors():
                yield
        except ResourcesExhausted as error:
            if session is self._session:  # one that was given up has said it before
                self._lack = error.resource
            raise

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
            self._pins[name] = f"{name}:{','.join(map(str, addresses))}"
            self._session.curl_options = self._curl_options()

    def _curl_options(self) -> dict[CurlOpt, Any]:
        # Without an empty proxy curl reads http_proxy from the environment by itself.
        options: dict[CurlOpt, Any] = {CurlOpt.PROXY: "", CurlOpt.RESOLVE: list(self._pins.values())}
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


def _headers_of(request: FetchRequest) -> dict[str, str]:
    headers = dict(request.headers)
    if request.body is not None and "content-type" not in map(str.lower, headers):
        headers["Content-Type"] = "application/json"
    return headers


@contextmanager
def _foreign_errors() -> Iterator[None]:
    try:
        yield
    except CurlError as error:
        raise exhausted(error) or translated(error) from error
    except (OSError, MemoryError) as error:
        raise exhausted(error) or SourceUnreachable(f"{type(error).__name__}: {error}") from error
    except (LookupError, ValueError) as error:  # the library reads headers in Python, and trips over strange ones
        raise SourceFailed(f"the answer's headers cannot be read: {error!r}") from error
