"""The list of our processes on disk."""

from pathlib import Path
from threading import Thread

from longstop.fetching.browser.registry import Registry
from longstop.process.processes import Identity

BROWSER, DRIVER = Identity(10, 100), Identity(11, 101)


def test_what_was_added_is_there_for_the_next_scraper_and_owned_by_this_one_only(tmp_path: Path) -> None:
    registry = Registry(tmp_path / "browsers.json", "node-1")
    mark = registry.new_mark()
    registry.add(mark, BROWSER, "chromium", "/tmp/profile")  # noqa: S108 - a name only
    registry.add(mark, DRIVER, "node")

    after = Registry(tmp_path / "browsers.json", "node-1")

    assert [(entry.identity, entry.mark) for entry in after] == [(BROWSER, mark), (DRIVER, mark)]
    assert (registry.is_owned(mark), after.is_owned(mark)) == (True, False)
    assert after.is_ours(mark)
    assert not Registry(tmp_path / "theirs.json", "node-2").is_ours(mark)


def test_what_is_forgotten_is_gone_from_the_file(tmp_path: Path) -> None:
    registry = Registry(tmp_path / "browsers.json", "node-1")
    marks = [registry.new_mark() for _ in range(2)]
    for mark, identity in zip(marks, (BROWSER, DRIVER), strict=True):
        registry.add(mark, identity, "chromium")

    registry.forget(marks[0])

    assert [entry.mark for entry in Registry(tmp_path / "browsers.json", "node-1")] == [marks[1]]
    assert not registry.is_owned(marks[0])


def test_a_file_that_cannot_be_read_is_an_empty_list(tmp_path: Path) -> None:
    for content in (b"", b"{", b"\xff", b'[{"mark": 1}]'):
        (tmp_path / "browsers.json").write_bytes(content)

        assert list(Registry(tmp_path / "browsers.json", "node-1")) == []


def test_a_sweep_in_a_thread_and_a_browser_that_starts_do_not_get_in_each_others_way(tmp_path: Path) -> None:
    path = tmp_path / "browsers.json"
    registry = Registry(path, "node")
    old = [registry.new_mark() for _ in range(200)]
    for mark in old:
        registry.add(mark, BROWSER, "chromium")
    failures: list[BaseException] = []

    def sweep() -> None:
        try:
            for mark in old:
                registry.forget(mark)
        except BaseException as error:
            failures.append(error)

    sweeping = Thread(target=sweep)
    sweeping.start()
    new = [registry.new_mark() for _ in range(200)]
    for mark in new:
        registry.add(mark, DRIVER, "node")
    sweeping.join()

    assert not failures
    assert {entry.mark for entry in Registry(path, "node")} == set(new)
