"""Scrape requests in their order."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from longstop.model.match import MatchRef, Priority
from longstop.watching.requests import ResourceType, ScrapeQueue, ScrapeRequest


def request(name: str = "M1", priority: int = 0, at: float = 0.0, **changes: ResourceType) -> ScrapeRequest:
    resource = changes.get("resource", ResourceType.SCORECARD)
    return ScrapeRequest(
        priority=priority,
        ref=MatchRef("crex", name),
        resource=resource,
        scheduled_at=at,
        request_id=f"{name}-{resource}-{at}",
    )


def _names(queue: ScrapeQueue, now: float) -> list[str]:
    taken = []
    while (found := queue.take(now)) is not None:
        taken.append(found.ref.source_id)
    return taken


@pytest.mark.req("MON-11")
def test_requests_go_by_priority_and_then_by_time() -> None:
    queue = ScrapeQueue()
    queue.put(request("over", Priority.COMPLETED, 1.0))
    queue.put(request("late", Priority.LIVE, 3.0))
    queue.put(request("soon", Priority.IMMINENT, 0.0))
    queue.put(request("live", Priority.LIVE, 2.0))

    assert _names(queue, 10.0) == ["live", "late", "soon", "over"]


@pytest.mark.req("MON-11")
def test_nothing_begins_before_its_time_however_urgent() -> None:
    queue = ScrapeQueue()
    queue.put(request("live", Priority.LIVE, 5.0))
    queue.put(request("over", Priority.COMPLETED, 0.0))

    assert _names(queue, 4.9) == ["over"]
    assert queue.next_at() == 5.0
    assert _names(queue, 5.0) == ["live"]


@pytest.mark.req("MON-11")
def test_a_match_has_one_request_of_each_resource_waiting_or_under_way() -> None:
    queue = ScrapeQueue()

    first = queue.put(request(at=1.0))
    while_waiting = queue.put(request(at=2.0))
    taken = queue.take(1.0)
    under_way = queue.put(request(at=3.0))
    another = queue.put(request(resource=ResourceType.STATS))
    assert taken is not None
    queue.done(taken)
    after = queue.put(request(at=4.0))

    assert (first, while_waiting, under_way, another, after) == (True, False, False, True, True)


def test_equal_requests_go_in_the_order_in_which_they_came() -> None:
    queue = ScrapeQueue()
    for name in ("c", "a", "b"):
        queue.put(request(name))

    assert _names(queue, 0.0) == ["c", "a", "b"]


def test_a_request_names_its_domain() -> None:
    assert request().domain == "crex"


class QueueMachine(RuleBasedStateMachine):
    """The queue beside a list that is searched anew each time."""

    def __init__(self) -> None:
        super().__init__()
        self.queue = ScrapeQueue()
        self.waiting: list[ScrapeRequest] = []
        self.under_way: list[ScrapeRequest] = []
        self.now = 0.0

    @rule(
        name=st.sampled_from(["a", "b", "c", "d", "e"]),
        resource=st.sampled_from([ResourceType.SCORECARD, ResourceType.STATS]),
        priority=st.integers(0, 2),
        ahead=st.sampled_from([-1.0, 0.0, 1.0, 2.0, 5.0]),
    )
    def put(self, name: str, resource: ResourceType, priority: int, ahead: float) -> None:
        wanted = request(name, priority, self.now + ahead, resource=resource)
        is_taken = any(each.slot == wanted.slot for each in self.waiting + self.under_way)

        assert self.queue.put(wanted) is not is_taken
        if not is_taken:
            self.waiting.append(wanted)

    @rule()
    def take(self) -> None:
        ready = [each for each in self.waiting if each.scheduled_at <= self.now]
        expected = min(ready, key=lambda each: (each.priority, each.scheduled_at), default=None)

        found = self.queue.take(self.now)

        assert found is expected
        if found is not None:
            self.waiting.remove(found)
            self.under_way.append(found)

    @rule(seconds=st.sampled_from([0.5, 1.0, 3.0]))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @precondition(lambda self: self.under_way)
    @rule(data=st.data())
    def end(self, data: st.DataObject) -> None:
        ended = data.draw(st.sampled_from(self.under_way))
        self.under_way.remove(ended)

        self.queue.done(ended)

    @invariant()
    def what_waits_is_known(self) -> None:
        assert sorted(each.request_id for each in self.queue.waiting) == sorted(
            each.request_id for each in self.waiting
        )

    @invariant()
    def nobody_sleeps_beyond_the_next_time(self) -> None:
        later = [each.scheduled_at for each in self.waiting if each.scheduled_at > self.now]
        next_at = self.queue.next_at()
        assert not later or (next_at is not None and next_at <= min(later))


QueueMachine.TestCase.settings = settings(max_examples=150, stateful_step_count=60)
TestQueue = QueueMachine.TestCase
