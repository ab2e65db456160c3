import pytest

from longstop.supervision.standstill import COUNTED_SECONDS, FIRST_PATIENCE_SECONDS, BeatWatch

pytestmark = pytest.mark.req("NFR-005")


def listened(beats: str, watch: BeatWatch | None = None, *, pid: int = 7, began: float = 0.0) -> BeatWatch:
    """Return the watch after a look each second: `x` for a beat, `-` for none."""
    watch = watch or BeatWatch(patience=5.0)
    for second, beat in enumerate(beats):
        watch = watch.look(pid, began + second, has_beaten=beat == "x")
    return watch


def test_a_child_that_beats_stands_not_still() -> None:
    assert not listened("x----" * 100).stands_still


def test_a_child_that_falls_silent_stands_still_after_the_patience() -> None:
    assert not listened("xx----").stands_still
    assert listened("xx-----").stands_still
    assert listened("xx-----").silent_seconds == 5.0


def test_a_child_that_has_not_beaten_yet_has_more_time() -> None:
    seconds = round(FIRST_PATIENCE_SECONDS)

    assert not listened("-" * seconds).stands_still
    assert listened("-" * (seconds + 1)).stands_still


def test_a_patience_above_the_first_one_counts_from_the_start() -> None:
    assert not listened("-" * 90, BeatWatch(patience=100.0)).stands_still


def test_the_next_life_begins_without_the_silence_of_the_last() -> None:
    silent = listened("xx----")

    renewed = listened("-" * 10, silent, pid=8, began=6.0)

    assert not renewed.stands_still
    assert not renewed.has_beaten


def test_one_that_is_given_up_is_given_up_once_and_again_when_it_is_still_there_much_later() -> None:
    given_up = listened("xx-----")

    later = listened("-", given_up, began=7.0)

    assert not later.stands_still
    assert listened("-" * 60, later, began=8.0).stands_still


def test_time_in_which_nobody_looked_is_not_the_childs() -> None:
    watch = listened("xx")

    thawed = watch.look(7, 3600.0, has_beaten=False)

    assert thawed.silent_seconds == COUNTED_SECONDS
    assert not thawed.stands_still
