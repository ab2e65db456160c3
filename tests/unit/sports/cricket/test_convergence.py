"""Whatever a source does to its event list, what we hold becomes equal to it: the property behind zero loss."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from longstop.model.event import Op
from longstop.sports.cricket.model import CricketKind
from longstop.testing import run_virtual
from tests.crex_site import SiteBall, SiteMatch
from tests.unit.sports.cricket.polling import Polling

VALUES = st.sampled_from(["0", "1", "4", "6", "wd", "nb", "2lb", "4nb"])
#: A value that leaves the over's legal balls as many as they were.
LEGAL_VALUES = st.sampled_from(["0", "1", "2", "4", "6", "b"])
FIRST = st.lists(st.sampled_from(["0", "0", "1", "wd"]), min_size=1, max_size=40)
PLACE = st.floats(min_value=0, max_value=1, exclude_max=True)
STEP = st.one_of(
    st.tuples(st.just("bowl"), PLACE, VALUES),
    st.tuples(st.just("bowl"), PLACE, VALUES),
    st.tuples(st.just("bowl"), PLACE, VALUES),
    st.tuples(st.just("edit"), PLACE, LEGAL_VALUES),
    st.tuples(st.just("there and back"), PLACE, LEGAL_VALUES),
    st.tuples(st.just("insert"), PLACE, VALUES),
    st.tuples(st.just("remove"), PLACE, st.just("")),
    st.tuples(st.just("remove the newest"), PLACE, st.just("")),
    st.tuples(st.just("renumber"), PLACE, st.just("")),
    st.tuples(st.just("wicket"), PLACE, st.just("")),
    st.tuples(st.just("no wicket"), PLACE, st.just("")),
    st.tuples(st.just("look"), PLACE, st.just("")),
    st.tuples(st.just("look"), PLACE, st.just("")),
    st.tuples(st.just("restart"), PLACE, st.just("")),
)


async def take_step(polling: Polling, step: tuple[str, float, str]) -> None:
    what, place, value = step
    match = polling.match
    ball = match.balls[int(place * len(match.balls))]
    match what:
        case "bowl":
            match.bowl(value)
        case "edit" if ball.is_legal:
            ball.value = value
        case "there and back" if ball.is_legal:
            before, ball.value = ball.value, value
            await polling.poll(2)
            ball.value = before
        case "insert":
            match.insert(ball, value)
        case "remove" if _may_go(match, ball):
            match.remove(ball)
            # More gone at once than an over holds is refused, and has a test of its own.
            await polling.poll()
        case "remove the newest" if _may_go(match, match.balls[-1]):
            match.remove(match.balls[-1])
            await polling.poll()
        case "renumber":
            _renumber(match, ball)
        case "wicket":
            ball.outs = [(2, "Cat Out", "C1")]
        case "no wicket":
            ball.outs = []
        case "look":
            await polling.poll()
        case "restart":
            await polling.restart()


def _renumber(match: SiteMatch, ball: SiteBall) -> None:
    """Give a ball another id at the same place."""
    if ball.id + 5 not in {each.id for each in match.balls}:
        ball.id += 5
    match.balls.sort(key=lambda each: each.id)


def _may_go(match: SiteMatch, ball: SiteBall) -> bool:
    """Return whether another ball is left in the over: a whole over gone is a gap, and no correction."""
    return sum(each.over == ball.over for each in match.balls) > 1


async def converge(first: list[str], steps: list[tuple[str, float, str]]) -> Polling:
    polling = Polling()
    polling.match.bowl(*first)
    await polling.start()
    await polling.poll()
    for step in steps:
        await take_step(polling, step)
        polling.check_invariants()
    polling.match.headline = "Innings Break"
    await polling.poll(4)
    return polling


@settings(max_examples=200, suppress_health_check=[HealthCheck.too_slow])
@given(first=FIRST, steps=st.lists(STEP, max_size=25))
def test_any_sequence_of_edits_ends_in_what_the_source_shows(
    first: list[str], steps: list[tuple[str, float, str]]
) -> None:
    polling = run_virtual(converge(first, steps))

    assert polling.stored_balls() == polling.true_balls()
    assert polling.stored_overs() == polling.true_overs()
    polling.check_invariants()
    assert polling.store.findings[1] == ()


@settings(max_examples=25)
@given(first=FIRST, steps=st.lists(STEP, max_size=15))
def test_once_equal_further_polls_store_nothing(first: list[str], steps: list[tuple[str, float, str]]) -> None:
    async def look_on() -> tuple[int, int]:
        polling = await converge(first, steps)
        before = len(polling.store.updates)
        await polling.poll(3)
        return before, len(polling.store.updates)

    before, after = run_virtual(look_on())

    assert before == after


@settings(max_examples=25)
@given(balls=st.lists(VALUES, min_size=1, max_size=60), batch=st.integers(min_value=1, max_value=30))
def test_a_source_that_only_adds_gives_only_inserts(balls: list[str], batch: int) -> None:
    async def watch() -> Polling:
        polling = Polling()
        await polling.start()
        for place in range(0, len(balls), batch):
            polling.match.bowl(*balls[place : place + batch])
            await polling.poll()
        return polling

    polling = run_virtual(watch())

    versions = [stored.event for stored in polling.store.history[1] if stored.event.key.kind == CricketKind.DELIVERY]
    assert {event.op for event in versions} == {Op.INSERT}
    assert [event.position for event in versions] == list(range(1, len(balls) + 1))
