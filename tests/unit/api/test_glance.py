from threading import Event

from longstop.api.outlook import Glance
from longstop.errors import StorageError
from longstop.telemetry.bus import Bus
from tests.memory import MemorySink
from tests.readers import ManualClock


class Oracle:
    """Answers with how often it was asked, raises what it is told to, or waits."""

    def __init__(self) -> None:
        self.asked = 0
        self.raises: Exception | None = None
        self.may_answer = Event()
        self.may_answer.set()
        self.is_asked = Event()

    async def ask(self) -> int:
        self.asked += 1
        self.is_asked.set()
        assert self.may_answer.wait(30)
        if self.raises is not None:
            raise self.raises
        return self.asked


async def test_an_answer_stands_and_grows_old_while_there_is_no_other() -> None:
    oracle, clock = Oracle(), ManualClock()
    glance = Glance("it", oracle.ask, clock=clock, bus=Bus())
    before = (glance.newest, glance.age_seconds)
    await glance.look()
    oracle.raises = StorageError("lost")

    clock.advance(4)
    await glance.look()

    assert before == (None, None)
    assert glance.newest is not None
    assert (glance.newest.value, glance.age_seconds) == (1, 4.0)


async def test_a_bug_in_an_answer_is_told_and_the_asking_goes_on() -> None:
    oracle, sink = Oracle(), MemorySink()
    glance = Glance("it", oracle.ask, clock=ManualClock(), bus=Bus([sink]))
    oracle.raises = ValueError("no such field")

    await glance.look()
    oracle.raises = None
    await glance.look()

    assert [event.name for event in sink.events] == ["task.failed"]
    assert glance.newest is not None
    assert glance.newest.value == 2


def test_while_an_answer_does_not_come_it_says_how_long_it_waits() -> None:
    oracle, clock = Oracle(), ManualClock()
    glance = Glance("it", oracle.ask, clock=clock, bus=Bus())
    oracle.may_answer.clear()

    with glance.looking(every_seconds=30.0):
        assert oracle.is_asked.wait(30)
        clock.advance(7)
        waiting, age = glance.waiting_seconds, glance.age_seconds
        oracle.may_answer.set()

    assert (waiting, age) == (7.0, None)


async def test_who_is_answered_waits_for_nothing() -> None:
    glance = Glance("it", Oracle().ask, clock=ManualClock(), bus=Bus())

    await glance.look()

    assert glance.waiting_seconds == 0.0
