import asyncio
import threading
from collections.abc import Callable, Iterator
from threading import Event

import pytest

from longstop.api.clerks import MAX_WAITING, Clerks
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


async def test_a_call_is_made_in_a_thread_and_its_result_returned() -> None:
    thread = await Clerks("it").ask(threading.current_thread)

    assert thread is not threading.main_thread()
    assert thread.daemon


async def test_what_a_call_raises_is_raised_to_whoever_asked() -> None:
    def failing() -> None:
        raise StorageError("lost")

    with pytest.raises(StorageError, match="lost"):
        await Clerks("it").ask(failing)


async def test_a_call_that_hangs_is_not_waited_for(is_mended: Event) -> None:
    clerks, is_begun = Clerks("it", patience_seconds=0.1), Event()

    while not is_begun.is_set():  # where threads start slowly, a call can be too late for one
        with pytest.raises(TimeoutError):
            await clerks.ask(hanging(is_mended, is_begun))

    assert not is_mended.is_set()


async def test_beside_a_call_that_hangs_the_others_go_on(is_mended: Event) -> None:
    clerks, is_begun = Clerks("it", count=2, patience_seconds=60.0), Event()
    stuck = asyncio.create_task(clerks.ask(hanging(is_mended, is_begun)))
    assert await asyncio.to_thread(is_begun.wait, 60)

    other = await clerks.ask(lambda: "done")

    assert other == "done"
    assert not stuck.done()
    is_mended.set()
    assert await stuck == "late"


async def test_what_nobody_was_free_for_in_time_is_never_done(is_mended: Event) -> None:
    clerks, done, begun = Clerks("it", count=1, patience_seconds=0.1), list[str](), list[threading.Thread]()

    def hang() -> None:
        begun.append(threading.current_thread())
        assert is_mended.wait(60)
        done.append("begun in time")

    while not begun:
        with pytest.raises(TimeoutError):
            await clerks.ask(hang)

    with pytest.raises(TimeoutError):
        await clerks.ask(lambda: done.append("too late"))
    is_mended.set()
    await asyncio.to_thread(begun[0].join, 60)

    assert done == ["begun in time"]


async def test_calls_for_which_nobody_is_free_do_not_pile_up(is_mended: Event) -> None:
    clerks, is_begun = Clerks("it", count=1, patience_seconds=60.0), Event()
    waiting = [asyncio.create_task(clerks.ask(hanging(is_mended, is_begun)))]
    assert await asyncio.to_thread(is_begun.wait, 60)
    waiting += [asyncio.create_task(clerks.ask(hanging(is_mended))) for _ in range(MAX_WAITING)]
    await asyncio.sleep(0)

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(30):
            await clerks.ask(lambda: "one too many")
    is_mended.set()
    answers = await asyncio.gather(*waiting)

    assert answers == ["late"] * (1 + MAX_WAITING)


async def test_who_has_nothing_to_do_goes_home() -> None:
    clerks = Clerks("of this test")

    thread = await clerks.ask(threading.current_thread)
    await asyncio.to_thread(thread.join, 60)

    assert not thread.is_alive()
    assert await clerks.ask(lambda: "done") == "done"
