"""Posting to one address by curl; the address may carry a secret, so that no error of ours names more than its host."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

from curl_cffi import AsyncSession, CurlError, CurlOpt, Response

from longstop.clock import Clock, SystemClock
from longstop.errors import FetchTimeout, ForbiddenTarget, SourceFailed
from longstop.fetching.answers import REDIRECTS, error_of, translated

#: For one attempt, from the question to the end of the answer.
DEADLINE_SECONDS = 5.0

#: Sends a body with headers; returns when it was taken, and raises a `FetchError` when not.
Post = Callable[[bytes, Mapping[str, str]], Awaitable[None]]


@asynccontextmanager
async def open_post(url: str, *, deadline_seconds: float = DEADLINE_SECONDS) -> AsyncIterator[Post]:
    """Give a function that posts to an address, without proxies, cookies or redirects."""
    session: AsyncSession[Response] = AsyncSession(
        allow_redirects=False,
        timeout=deadline_seconds,
        trust_env=False,
        discard_cookies=True,
        # Without an empty proxy curl reads http_proxy from the environment by itself.
        curl_options={CurlOpt.PROXY: ""},
    )
    try:
        yield _Poster(session, url, deadline_seconds, SystemClock()).post
    finally:
        await session.close()


class _Poster:
    def __init__(self, session: AsyncSession[Response], url: str, deadline_seconds: float, clock: Clock) -> None:
        self._session = session
        self._url = url
        self._host = _host(url)
        self._deadline_seconds = deadline_seconds
        self._clock = clock

    async def post(self, body: bytes, headers: Mapping[str, str]) -> None:
        try:
            async with asyncio.timeout(self._deadline_seconds):
                response = await self._send(body, headers)
        except TimeoutError:
            raise FetchTimeout(f"{self._host} did not answer within {self._deadline_seconds:g} s") from None
        answered = {name.lower(): value or "" for name, value in response.headers.items()}
        if response.status_code in REDIRECTS:
            raise ForbiddenTarget(f"{self._host} answered {response.status_code}, and redirects are not followed")
        error = error_of(response.status_code, answered, self._clock.now())
        if error is not None:
            error.reason = f"{self._host} {error.reason}"
            raise error

    async def _send(self, body: bytes, headers: Mapping[str, str]) -> Response:
        try:
            return await self._session.post(self._url, data=body, headers=dict(headers), content_callback=len)
        except CurlError as error:
            # Neither the library's words nor its traceback: both may name the whole address.
            raise type(translated(error))(f"{self._host} was not reached (curl {int(error.code)})") from None
        except (LookupError, ValueError):
            raise SourceFailed(f"{self._host} answered with headers that cannot be read") from None


def _host(url: str) -> str:
    try:
        return urlsplit(url).hostname or "the webhook"
    except ValueError:
        return "the webhook"
