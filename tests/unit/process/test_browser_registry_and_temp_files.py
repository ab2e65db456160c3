"""The list of our browser processes on disk, and their temporary files."""

from pathlib import Path
from threading import Thread

from longstop.process.browser_registry_and_temp_files import Registry, Scratch, open_scratch
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


def test_a_node_takes_its_own_directory_again(tmp_path: Path) -> None:
    first = open_scratch(tmp_path, "node-0123456789abcdef")

    assert open_scratch(tmp_path, "node-0123456789abcdef") == first
    assert first.name == "longstop-0123456789ab"
    assert first.stat().st_mode & 0o777 == 0o700


def test_what_another_user_has_put_in_its_place_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "longstop-abcd").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "longstop-efgh").write_text("")

    opened = [open_scratch(tmp_path, node) for node in ("abcd", "efgh")]

    assert all(path.is_dir() and not path.is_symlink() for path in opened)
    assert not {"longstop-abcd", "longstop-efgh"} & {path.name for path in opened}


def test_all_that_is_old_enough_is_taken_away_and_nothing_outside(tmp_path: Path) -> None:
    scratch = open_scratch(tmp_path, "abcd")
    (tmp_path / "kept").mkdir()
    (scratch / "playwright-artifacts-x" / "deep").mkdir(parents=True)
    (scratch / "file").write_text("")
    (scratch / "link").symlink_to(tmp_path / "kept")
    now = 100.0
    files = Scratch(scratch, lambda: now)

    assert files.clear(older_than_seconds=60) == 0
    (scratch / "newer").write_text("")
    now += 60
    assert files.clear(older_than_seconds=60) == 3
    assert [each.name for each in scratch.iterdir()] == ["newer"]
    assert files.clear() == 1
    assert list(scratch.iterdir()) == []
    assert (tmp_path / "kept").is_dir()


def test_a_directory_that_is_gone_is_clear(tmp_path: Path) -> None:
    assert Scratch(tmp_path / "gone", lambda: 0.0).clear() == 0
