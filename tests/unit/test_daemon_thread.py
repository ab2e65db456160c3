import asyncio
import threading
from collections.abc import Callable, Iterator
from threading import Event

import pytest

from longstop.daemon_thread import MAX_WAITING, DaemonThread
from longstop.errors import StorageError


@pytest.fixture
def is_mended() -> Iterator[Event]:
    """What hangs goes on once this is set; at the end it is, so that no thread stays behind."""
    event = Event()
    yield event
    event.set()


def hanging(is_mended: Event, is_begun: Event | None = None) -> Callable[[], str]:
    def call() -> str:
        if is_begun is not None:
            is_begun.set()
        assert is_mended.wait(60)
        return "late"

    return call


async def test_a_call_is_made_in_a_daemon_thread_and_its_result_returned() -> None:
    thread = await DaemonThread("it").run(threading.current_thread)

    assert thread is not threading.main_thread()
    assert thread.daemon
    assert thread.name == "it"


async def test_what_a_call_raises_is_raised_to_its_caller_and_the_next_is_made() -> None:
    def failing() -> None:
        raise StorageError("lost")

    thread = DaemonThread("it")
    with pytest.raises(StorageError, match="lost"):
        await thread.run(failing)

    assert await thread.run(lambda: "done") == "done"


async def test_a_caller_may_stop_waiting_for_a_call_that_hangs(is_mended: Event) -> None:
    thread, is_begun = DaemonThread("it"), Event()
    waiting = asyncio.create_task(thread.run(hanging(is_mended, is_begun)))
    assert await asyncio.to_thread(is_begun.wait, 60)

    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting

    assert not is_mended.is_set()


async def test_calls_are_made_one_after_the_other_in_their_order() -> None:
    thread, made = DaemonThread("it"), list[int]()

    await asyncio.gather(*(thread.run(lambda number=number: made.append(number)) for number in range(20)))  # type: ignore[misc]

    assert made == list(range(20))


async def test_a_call_that_was_given_up_before_it_began_is_never_made(is_mended: Event) -> None:
    thread, is_begun, made = DaemonThread("it"), Event(), list[str]()
    first = asyncio.create_task(thread.run(hanging(is_mended, is_begun)))
    assert await asyncio.to_thread(is_begun.wait, 60)

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await thread.run(lambda: made.append("too late"))
    is_mended.set()

    assert await first == "late"
    assert await thread.run(lambda: "done") == "done"
    assert made == []


async def test_calls_behind_one_that_hangs_do_not_pile_up(is_mended: Event) -> None:
    thread, is_begun = DaemonThread("it"), Event()
    waiting = [asyncio.create_task(thread.run(hanging(is_mended, is_begun)))]
    assert await asyncio.to_thread(is_begun.wait, 60)
    waiting += [asyncio.create_task(thread.run(hanging(is_mended))) for _ in range(MAX_WAITING)]
    await asyncio.sleep(0)

    with pytest.raises(TimeoutError, match="already waiting"):
        await thread.run(lambda: "one too many")
    is_mended.set()
    answers = await asyncio.gather(*waiting)

    assert answers == ["late"] * (1 + MAX_WAITING)


async def test_an_idle_thread_ends_after_a_while_and_the_next_call_starts_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("longstop.daemon_thread.IDLE_SECONDS", 0.01)
    calls = DaemonThread("of this test")

    thread = await calls.run(threading.current_thread)
    await asyncio.to_thread(thread.join, 60)

    assert not thread.is_alive()
    assert await calls.run(lambda: "done") == "done"


async def test_a_thread_that_is_used_now_and_then_stays() -> None:
    thread = DaemonThread("it")

    assert await thread.run(threading.get_ident) == await thread.run(threading.get_ident)
