"""Which processes belong to a deployment: by parent and by session."""

from longstop.process.processes import Identity, Process
from longstop_lab.processes import with_descendants


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


def pids(heads: set[Identity], processes: list[Process]) -> list[int]:
    return [each.pid for each in with_descendants(heads, processes)]


def test_descendants_belong() -> None:
    processes = [process(1, 0), process(5, 1), process(6, 5), process(7, 6), process(9, 1)]

    assert pids({Identity(5, 10)}, processes) == [5, 6, 7]


def test_members_of_a_leaders_session_belong_even_if_they_were_adopted() -> None:
    processes = [process(1, 0), process(5, 1, session=5), process(6, 1, session=5), process(7, 6, session=7)]

    assert pids({Identity(5, 10)}, processes) == [5, 6, 7]


def test_the_session_of_a_dead_leader_still_belongs() -> None:
    assert pids({Identity(5, 10)}, [process(6, 1, session=5, started=11)]) == [6]


def test_sharing_a_session_with_a_process_that_does_not_lead_it_is_not_enough() -> None:
    processes = [process(3, 1, session=3), process(5, 3, session=3), process(6, 3, session=3)]

    assert pids({Identity(5, 10)}, processes) == [5]


def test_a_later_process_with_the_same_pid_does_not_belong() -> None:
    processes = [process(5, 1, session=5, started=20), process(6, 5, session=5, started=21)]

    assert pids({Identity(5, 10)}, processes) == []


def test_of_two_processes_with_one_pid_the_later_one_leads_the_session() -> None:
    processes = [process(5, 1, session=5, started=20), process(6, 1, session=5, started=21)]

    assert pids({Identity(5, 10), Identity(5, 20)}, processes) == [5, 6]
