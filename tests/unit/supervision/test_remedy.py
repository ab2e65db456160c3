import pytest

from longstop.supervision.grades import Age, Sample
from longstop.supervision.remedy import MAX_RECYCLES, Remedy, Vain, remedy, still_hoped_for

GIVEN_UP = Vain(matches={1: MAX_RECYCLES, 2: MAX_RECYCLES})
STALLED_TWICE = Vain(matches={1: MAX_RECYCLES}, stalls=MAX_RECYCLES)


def sample(*seconds: float, held: tuple[int, ...] = (), paused: tuple[int, ...] = ()) -> Sample:
    ages = (Age(each, number, f"crex_M{number}", number in held) for number, each in enumerate(seconds, start=1))
    return Sample(ages=tuple(ages), paused=frozenset(paused), stall_seconds=min(seconds, default=3600.0))


@pytest.mark.parametrize(
    ("taken", "vain", "wanted"),
    [
        (sample(95.0, 96.0), Vain(), Remedy.RECYCLE),
        (sample(1.0, 130.0), Vain(), Remedy.RECYCLE),
        (sample(1.0, 130.0), Vain(matches={2: MAX_RECYCLES - 1}), Remedy.RECYCLE),
        # The site is down or has asked for rest: whatever is made afresh, nobody may be asked.
        (sample(95.0, 96.0, held=(1, 2)), Vain(), Remedy.HOLD),
        (sample(1.0, 130.0, held=(2,)), Vain(), Remedy.HOLD),
        # The site refuses us, and every match rests: it is not asked again for our sake, however often we tried.
        (sample(paused=(1, 2)), Vain(), Remedy.HOLD),
        (sample(paused=(1, 2)), STALLED_TWICE, Remedy.HOLD),
        (sample(95.0, held=(1,), paused=(2,)), STALLED_TWICE, Remedy.HOLD),
        # One site is down, the other one should be read.
        (sample(95.0, 96.0, held=(1,)), Vain(), Remedy.RECYCLE),
        # Nothing is read, and recycling did not help: whoever has joined since changes nothing about that.
        (sample(95.0, 96.0), STALLED_TWICE, Remedy.RESTART),
        (sample(95.0, 96.0, held=(1,)), STALLED_TWICE, Remedy.RESTART),
        (sample(*[900.0] * 50, 95.0), Vain(matches=dict.fromkeys(range(1, 51), 2), stalls=2), Remedy.RESTART),
        # Those who were given up while others were read do not hinder the others' turn.
        (sample(95.0, 96.0), Vain(matches={1: MAX_RECYCLES}), Remedy.RECYCLE),
        # One match is not helped; the others are read, and are not troubled again for it.
        (sample(1.0, 130.0), GIVEN_UP, Remedy.LEAVE),
        # The others have ended: now nothing is read, and nothing else is left to be tried.
        (sample(130.0), GIVEN_UP, Remedy.RESTART),
    ],
)
def test_the_remedy_follows_the_table(taken: Sample, vain: Vain, wanted: Remedy) -> None:
    assert remedy(taken, vain) is wanted


def test_a_process_that_was_no_remedy_itself_does_not_ask_for_the_next() -> None:
    assert remedy(sample(95.0), STALLED_TWICE, may_restart=False) is Remedy.LEAVE


def test_only_those_are_recycled_whom_it_may_still_help() -> None:
    hoped = still_hoped_for(sample(900.0, 95.0, 96.0, held=(3,)), Vain(matches={1: MAX_RECYCLES, 2: 1}))

    assert [age.match_id for age in hoped] == [2]


def test_a_recycle_in_vain_counts_for_those_that_it_was_for() -> None:
    after = Vain(matches={1: 1, 3: 1}).after([1, 2], sample(130.0, 130.0, 125.0))

    assert after == Vain(matches={1: 2, 2: 1, 3: 1}, stalls=1)


def test_who_was_read_again_is_forgotten_and_so_is_the_stall() -> None:
    after = Vain(matches={1: 2, 2: 1, 4: 2}, stalls=1).kept(sample(1.0, 130.0))

    assert after == Vain(matches={2: 1})


def test_who_rests_when_the_outcome_is_seen_was_not_helped_either() -> None:
    after = Vain(matches={1: 1}).after([1], sample(paused=(1,)))

    assert after.matches == {1: 2}


def test_a_recycle_for_a_few_while_others_are_read_is_none_of_a_stall() -> None:
    assert Vain().after([2], sample(1.0, 250.0)) == Vain(matches={2: 1})
