"""Fetches over HTTP with curl, with the TLS fingerprint and headers of a browser."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, cast
from urllib.parse import quote, urljoin, urlsplit

import msgspec
from curl_cffi import AsyncSession, CurlError, CurlOpt, Response
from curl_cffi.requests.session import HttpMethod

from longstop import errors
from longstop.clock import Clock
from longstop.exhaustion import exhausted
from longstop.fetching.addresses import ParsedUrl, Resolve, allowed_url, checked_addresses, resolve_by_system
from longstop.fetching.base import FetchRequest, HttpProxy, Page, RawResponse
from longstop.fetching.guarded_and_replaceable_fetcher import FetchPolicy
from longstop.fetching.http_error_mapping import REDIRECTS, map_curl_error, status_error
from longstop.sources.bodies_and_urls import is_challenge


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
        #: Curl's options of every request; sessions refer to this object, so that new pins apply at once.
        #: Without these two curl reads http_proxy and no_proxy from the environment.
        self._options: dict[CurlOpt, Any] = {CurlOpt.NOPROXY: ""} if proxy else {CurlOpt.PROXY: ""}
        self._session = self._new_session()

    async def fetch(self, request: FetchRequest) -> Page:
        response = await self._follow(request)
        error = status_error(response.status, response.headers, self._clock.now())
        if error is not None and is_challenge(response.body):
            raise errors.SourceChallenged(
                "the site answered with a challenge", retry_after_seconds=error.retry_after_seconds
            )
        if error is not None:
            raise error
        return Page(request=request, **msgspec.structs.asdict(response))

    async def aclose(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            await self._session.close()

    async def _follow(self, request: FetchRequest) -> RawResponse:
        """Return the response after all redirects, with the bytes of all of them."""
        wire_bytes = 0
        for _ in range(self._policy.max_redirects + 1):
            response = await self._request(request)
            wire_bytes += response.wire_bytes
            if response.status not in REDIRECTS:
                return msgspec.structs.replace(response, wire_bytes=wire_bytes)
            request = redirected_request(request, response.status, response.headers)
        raise errors.ForbiddenTarget(f"redirected more than {self._policy.max_redirects} times")

    async def _request(self, request: FetchRequest) -> RawResponse:
        target = allowed_url(request.url, self._policy.hosts, self._policy.allow_private_addresses)
        await self._pin(target)
        session = await self._working_session()
        if self._is_closed:
            raise errors.SourceUnreachable("the fetcher is closed")
        try:
            response = await self._send(session, request, target.url)
        except (CurlError, OSError, MemoryError) as error:
            raise self._map_error(error, session) from error
        except (IndexError, ValueError) as error:
            raise errors.SourceFailed("malformed headers") from error
        if self._is_closed:  # the library ends running requests as if they had succeeded
            raise errors.SourceUnreachable("the fetcher was closed during the request")
        if session is not self._session:
            raise errors.ResourcesExhausted(self._exhausted_before)
        return response

    async def _send(self, session: AsyncSession[Response], request: FetchRequest, url: str) -> RawResponse:
        body, headers = _CappedBody(self._policy.max_body_bytes), dict(request.headers)
        if request.body is not None and "content-type" not in map(str.lower, headers):
            headers["Content-Type"] = "application/json"
        response = await session.request(
            cast(HttpMethod, request.method), url, headers=headers, content=request.body, content_callback=body.take
        )
        return RawResponse(
            status=response.status_code,
            headers=MappingProxyType({name: value or "" for name, value in response.headers.items()}),
            body=body.complete(),
            wire_bytes=response.response_size,
        )

    def _new_session(self) -> AsyncSession[Response]:
        proxy = self._proxy
        return AsyncSession(
            max_clients=self._policy.max_connections,
            trust_env=False,
            impersonate="chrome",
            allow_redirects=False,
            discard_cookies=True,
            timeout=self._policy.longest_deadline_seconds,
            proxy=proxy.server if proxy else None,
            proxy_auth=(proxy.username, proxy.password.get_secret_value()) if proxy else None,
            curl_options=self._options,
        )

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

    def _map_error(self, error: Exception, session: AsyncSession[Response]) -> errors.FetchError:
        """Return our error for a foreign one; a session that ran out of a resource is marked for replacement."""
        shortage = exhausted(error)
        if shortage is None:
            if isinstance(error, CurlError):
                return map_curl_error(error)
            return errors.SourceUnreachable(f"{type(error).__name__}: {error}")
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
            self._pins[name] = pin
            self._options[CurlOpt.RESOLVE] = list(self._pins.values())


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
            raise errors.BodyTooLarge(f"more than {self._max_bytes} bytes after decompression")
        self._collected += chunk
        return len(chunk)

    def complete(self) -> bytes:
        return bytes(self._collected)


_KEEPS_METHOD = frozenset({307, 308})
#: The headers that are sent along to another host: any other might be a credential.
_HEADERS_FOR_ANY_HOST = frozenset({"accept", "accept-language", "content-type", "user-agent"})
_URL_CHARACTERS = "!#$%&'()*+,/:;=?@[]~"


def redirected_request(request: FetchRequest, status: int, headers: Mapping[str, str]) -> FetchRequest:
    """Return the request that follows a redirect; its URL is checked like any other before it is sent."""
    location = headers.get("location", "").strip()
    if not location:
        raise errors.SourceFailed(f"answered {status} without a Location header")
    try:
        url = urljoin(request.url, quote(location, safe=_URL_CHARACTERS))
        is_same_host = urlsplit(url)[:2] == urlsplit(request.url)[:2]
    except ValueError as error:
        raise errors.ForbiddenTarget(f"redirected to an invalid URL: {error}") from error
    carried = {
        name: value for name, value in request.headers.items() if is_same_host or name.lower() in _HEADERS_FOR_ANY_HOST
    }
    if status in _KEEPS_METHOD:
        return msgspec.structs.replace(request, url=url, headers=carried)
    body_headers = {"content-type", "content-length"}
    without_body = {name: value for name, value in carried.items() if name.lower() not in body_headers}
    return msgspec.structs.replace(request, url=url, headers=without_body, method="GET", body=None)
