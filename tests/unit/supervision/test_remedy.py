import pytest

from longstop.supervision.grades import Age, Sample
from longstop.supervision.remedy import MAX_RECYCLES, Remedy, counted, remedy

VAIN = {1: MAX_RECYCLES, 2: MAX_RECYCLES}


def sample(*seconds: float, held: tuple[int, ...] = ()) -> Sample:
    ages = (Age(each, number, f"crex_M{number}", number in held) for number, each in enumerate(seconds, start=1))
    return Sample(ages=tuple(ages))


@pytest.mark.parametrize(
    ("taken", "vain", "wanted"),
    [
        (sample(95.0, 96.0), {}, Remedy.RECYCLE),
        (sample(1.0, 130.0), {}, Remedy.RECYCLE),
        (sample(1.0, 130.0), {2: MAX_RECYCLES - 1}, Remedy.RECYCLE),
        # The site is down or has asked for rest: whatever is made afresh, nobody may be asked.
        (sample(95.0, 96.0, held=(1, 2)), {}, Remedy.HOLD),
        (sample(1.0, 130.0, held=(2,)), {}, Remedy.HOLD),
        # One site is down, the other one should be read.
        (sample(95.0, 96.0, held=(1,)), {}, Remedy.RECYCLE),
        # Nothing is read, and recycling did not help.
        (sample(95.0, 96.0), VAIN, Remedy.RESTART),
        (sample(95.0, 96.0, held=(1,)), VAIN, Remedy.RESTART),
        (sample(95.0, 96.0), {1: MAX_RECYCLES}, Remedy.RECYCLE),
        # One match is not helped; the others are read, and are not troubled again for it.
        (sample(1.0, 130.0), VAIN, Remedy.LEAVE),
    ],
)
def test_the_remedy_follows_the_table(taken: Sample, vain: dict[int, int], wanted: Remedy) -> None:
    assert remedy(taken, vain) is wanted


def test_a_recycle_in_vain_counts_for_those_that_are_still_not_read() -> None:
    after = counted({1: 1, 3: 1}, [1, 2], sample(130.0, 130.0, 1.0))

    assert after == {1: 2, 2: 1}


def test_who_was_read_again_is_forgotten() -> None:
    assert counted({1: 2, 2: 1}, [1, 2], sample(1.0, 130.0)) == {2: 2}
