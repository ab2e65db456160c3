"""A steady load, on a real socket: what is not answered is not overlooked."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import pytest

from tests.steady_load import CONNECTIONS, Load, steady

Answering = Callable[[asyncio.StreamWriter], Awaitable[None]]


async def answer(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")


async def refuse(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n")


async def hang(_writer: asyncio.StreamWriter) -> None:
    """Say nothing, ever."""


async def hang_up(writer: asyncio.StreamWriter) -> None:
    writer.close()


@asynccontextmanager
async def serving(*answers: Answering) -> AsyncIterator[str]:
    """Answer the first question in the first way, the second in the second, and all others in the last."""
    left = list(answers)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with suppress(asyncio.IncompleteReadError, ConnectionError):
                while not writer.is_closing():
                    await reader.readuntil(b"\r\n\r\n")
                    await (left.pop(0) if len(left) > 1 else left[0])(writer)
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/health"
    finally:
        server.close()


async def load(*answers: Answering, timeout_seconds: float) -> Load:
    async with serving(*answers) as url:
        return await steady(url, rate=100, seconds=0.4, timeout_seconds=timeout_seconds)


async def test_every_question_is_asked_and_its_answer_counted() -> None:
    taken = await load(refuse, answer, timeout_seconds=30)

    assert (taken.statuses, taken.unanswered, taken.last) == ({500: 1, 200: 39}, 0, b"ok")
    assert len(taken.seconds) == 40


async def test_a_server_that_never_answers_is_given_up_and_costs_the_whole_time() -> None:
    taken = await load(hang, timeout_seconds=1.0)

    assert (taken.statuses, taken.unanswered) == ({}, 40)
    assert len(taken.seconds) == 40 > CONNECTIONS
    assert min(taken.seconds) >= 1.0


@pytest.mark.parametrize("once", [hang, hang_up])
async def test_a_question_without_an_answer_counts_its_whole_time_and_spoils_no_other(once: Answering) -> None:
    taken = await load(once, answer, timeout_seconds=3)

    assert (taken.statuses, taken.unanswered) == ({200: 39}, 1)
    assert max(taken.seconds) >= 3


async def test_requests_to_a_closed_port_are_unanswered() -> None:
    async with serving(answer) as url:
        pass

    taken = await steady(url, rate=100, seconds=0.1, timeout_seconds=3)

    assert (taken.statuses, taken.unanswered, min(taken.seconds)) == ({}, 10, 3.0)
