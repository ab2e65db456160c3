"""Who is remembered as over, and for how long."""

from longstop.watching.finished import FORGOTTEN_AFTER_SECONDS, Finished


def test_who_is_listed_again_and_again_is_remembered() -> None:
    finished = Finished()
    finished.add("M1", 0.0)

    for hour in range(1, 100):
        finished.hear(["M1", "M2"], hour * 3600.0)

    assert "M1" in finished
    assert "M2" not in finished


def test_who_was_not_listed_for_a_day_is_forgotten_and_not_sooner() -> None:
    finished = Finished()
    finished.add("M1", 0.0)

    finished.hear([], FORGOTTEN_AFTER_SECONDS - 1)
    shortly_before = "M1" in finished
    finished.hear([], FORGOTTEN_AFTER_SECONDS)

    assert shortly_before
    assert "M1" not in finished


def test_who_is_wanted_again_is_forgotten_at_once() -> None:
    finished = Finished()
    finished.add("M1", 0.0)

    finished.discard("M1")
    finished.discard("M2")

    assert "M1" not in finished
