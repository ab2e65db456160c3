"""Who belongs to whom: by birth, and by the session."""

from longstop.process.processes import Identity, Process
from longstop_lab.kin import with_their_own


def process(pid: int, parent: int, *, session: int = 1, started: int = 10) -> Process:
    return Process(
        identity=Identity(pid, started),
        name="x",
        state="S",
        parent=parent,
        session=session,
        cpu_seconds=0.0,
        rss_bytes=1,
    )


def pids(heads: set[Identity], people: list[Process]) -> list[int]:
    return [each.pid for each in with_their_own(heads, people)]


def test_whoever_was_started_by_one_of_ours_is_ours() -> None:
    people = [process(1, 0), process(5, 1), process(6, 5), process(7, 6), process(9, 1)]

    assert pids({Identity(5, 10)}, people) == [5, 6, 7]


def test_whoever_is_in_the_session_of_one_of_ours_is_ours_whoever_has_adopted_it() -> None:
    people = [process(1, 0), process(5, 1, session=5), process(6, 1, session=5), process(7, 6, session=7)]

    assert pids({Identity(5, 10)}, people) == [5, 6, 7]


def test_a_head_that_died_still_tells_whose_its_session_is() -> None:
    assert pids({Identity(5, 10)}, [process(6, 1, session=5, started=11)]) == [6]


def test_whoever_shares_a_session_with_one_of_ours_that_is_not_its_head_is_a_stranger() -> None:
    people = [process(3, 1, session=3), process(5, 3, session=3), process(6, 3, session=3)]

    assert pids({Identity(5, 10)}, people) == [5]


def test_a_later_process_with_the_same_pid_is_a_stranger() -> None:
    people = [process(5, 1, session=5, started=20), process(6, 5, session=5, started=21)]

    assert pids({Identity(5, 10)}, people) == []


def test_of_two_of_ours_that_had_one_pid_the_later_one_is_the_head() -> None:
    people = [process(5, 1, session=5, started=20), process(6, 1, session=5, started=21)]

    assert pids({Identity(5, 10), Identity(5, 20)}, people) == [5, 6]
