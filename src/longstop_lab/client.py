"""A small HTTP client for trials: it only ever talks to what the stage started on this machine."""

import time
from typing import Any

import msgspec
from curl_cffi import CurlError
from curl_cffi.requests import AsyncSession, Response
from msgspec import Struct

from longstop.errors import UsageError

TIMEOUT_SECONDS = 10.0
OK = 200


class Answer(Struct, frozen=True, kw_only=True):
    body: Any
    seconds: float


class Client:
    """Asks one server, keeping its connection."""

    def __init__(self, base_url: str, token: str | None = None) -> None:
        self._base_url = base_url
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._session: AsyncSession[Response] = AsyncSession(headers=headers, timeout=TIMEOUT_SECONDS, trust_env=False)

    async def get(self, path: str) -> Answer:
        """Return a good answer; anything else is one sentence."""
        return await self._ask("GET", path)

    async def post(self, path: str, body: bytes | None = None) -> Answer:
        return await self._ask("POST", path, body)

    async def delete(self, path: str) -> Answer:
        return await self._ask("DELETE", path)

    async def answers(self, path: str) -> bool:
        """Return whether the server is there and says 200."""
        try:
            return (await self._session.get(self._base_url + path)).status_code == 200
        except CurlError:
            return False

    async def aclose(self) -> None:
        await self._session.close()

    async def _ask(self, method: str, path: str, body: bytes | None = None) -> Answer:
        started = time.perf_counter()
        try:
            response = await self._session.request(method, self._base_url + path, data=body)  # type: ignore[arg-type]
        except CurlError as error:
            raise UsageError(f"{self._base_url} does not answer: {error}") from error
        seconds = time.perf_counter() - started
        if response.status_code != OK:
            raise UsageError(f"{self._base_url}{path} answered {response.status_code}: {response.text[:200]}")
        return Answer(body=msgspec.json.decode(response.content), seconds=seconds)
