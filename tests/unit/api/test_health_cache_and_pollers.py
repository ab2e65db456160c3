from threading import Event

from longstop.api.health_cache_and_pollers import Poller
from longstop.errors import StorageError
from longstop.telemetry.bus import Bus
from tests.memory import MemorySink
from tests.readers import ManualClock


class FakeRead:
    """Returns how often it was called, raises what it is given, or blocks."""

    def __init__(self) -> None:
        self.reads = 0
        self.raises: Exception | None = None
        self.may_return = Event()
        self.may_return.set()
        self.is_called = Event()

    async def read(self) -> int:
        self.reads += 1
        self.is_called.set()
        assert self.may_return.wait(30)
        if self.raises is not None:
            raise self.raises
        return self.reads


async def test_a_value_stays_and_ages_while_reads_fail() -> None:
    fake, clock = FakeRead(), ManualClock()
    poller = Poller("it", fake.read, clock=clock, bus=Bus())
    before = (poller.newest, poller.age_seconds)
    await poller.poll()
    fake.raises = StorageError("lost")

    clock.advance(4)
    await poller.poll()

    assert before == (None, None)
    assert poller.newest is not None
    assert (poller.newest.value, poller.age_seconds) == (1, 4.0)


async def test_a_bug_in_a_read_is_reported_and_polling_continues() -> None:
    fake, sink = FakeRead(), MemorySink()
    poller = Poller("it", fake.read, clock=ManualClock(), bus=Bus([sink]))
    fake.raises = ValueError("no such field")

    await poller.poll()
    fake.raises = None
    await poller.poll()

    assert [event.name for event in sink.events] == ["task.failed"]
    assert poller.newest is not None
    assert poller.newest.value == 2


def test_a_blocked_read_reports_how_long_it_has_waited() -> None:
    fake, clock = FakeRead(), ManualClock()
    poller = Poller("it", fake.read, clock=clock, bus=Bus())
    fake.may_return.clear()

    with poller.polling(every_seconds=30.0):
        assert fake.is_called.wait(30)
        clock.advance(7)
        waiting, age = poller.waiting_seconds, poller.age_seconds
        fake.may_return.set()

    assert (waiting, age) == (7.0, None)


async def test_a_finished_read_is_not_waiting() -> None:
    poller = Poller("it", FakeRead().read, clock=ManualClock(), bus=Bus())

    await poller.poll()

    assert poller.waiting_seconds == 0.0
