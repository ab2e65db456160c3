"""Backup and restore on real files: whole or not at all, while others write, and never over something else."""

import asyncio
import json
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import aclosing, contextmanager
from itertools import count
from pathlib import Path

import apsw
import pytest

from longstop.errors import DataDirectoryInUse, EpochLost, StorageError, StoreDamaged, StoreTooNew, UsageError
from longstop.model.command_and_standing_order import StandingKind
from longstop.model.event import Event
from longstop.storage.backup import back_up
from longstop.storage.directory import DataDirectory
from longstop.storage.restore import GENERATION_STEP, restore
from longstop.storage.sqlite.files_and_errors import refuse_loss
from longstop.storage.sqlite.matches import SqliteMatchReader, SqliteMatchStore
from longstop.storage.sqlite.operations_tables import SqliteCommands
from tests.contract.stores import NOW, REF, delivery, delivery_key, draft, event, update
from tests.readers import ManualClock, apart

CLOCK = ManualClock()
ROOT = Path(__file__).parents[2]


def a_node(path: Path, balls: int = 3) -> DataDirectory:
    """Return a data directory with a match, an order and a secret in it."""
    directory = DataDirectory.open(path)
    asyncio.run(_write(directory.matches_db, balls))
    commands = SqliteCommands(directory.ops_db, CLOCK)
    apart(commands.put_order(StandingKind.PAUSED_SOURCE, "crex", "tester"))
    apart(commands.aclose())
    secret = path / "token-secret"
    secret.write_text("ab" * 32)
    secret.chmod(0o600)
    return directory


async def _write(path: Path, balls: int) -> None:
    store = await SqliteMatchStore.open(path)
    match = await store.register(REF, "Red v Blue", NOW, NOW, sport="cricket")
    claimed = await store.claim(match.match_id, "node-a")
    for number in range(claimed.seq + 1, claimed.seq + balls + 1):
        await store.save_update(update(match.match_id, ball(number), epoch=claimed.epoch, snapshot=draft(score=number)))
    await store.aclose()


def ball(number: int) -> Event:
    return event(delivery_key(number // 6, number % 6 + 1), content=delivery(number), position=number)


def events(path: Path) -> list[tuple[str, int]]:
    async def read() -> list[tuple[str, int]]:
        async with aclosing(SqliteMatchReader(path / "matches.db")) as reader:
            return [(str(stored.event.key), stored.seq) for stored in await reader.events_after(1, 0, 100_000)]

    return apart(read())


@contextmanager
def writing(node: DataDirectory) -> Iterator[subprocess.Popen[str]]:
    """Let a real process commit ball after ball meanwhile, and kill it in the end."""
    command = [sys.executable, "-m", "tests.integration.writing_child", str(node.matches_db)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as writer:
        try:
            yield writer
        finally:
            writer.kill()


def next_seq(writer: subprocess.Popen[str]) -> int:
    """Return the next number that the writer has acknowledged."""
    assert writer.stdout is not None
    return int(writer.stdout.readline())


def test_a_restore_that_is_cut_off_lets_no_one_start_until_it_is_done_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = a_node(tmp_path / "data")
    back_up(node, tmp_path / "backup", CLOCK)

    def cut_off(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("longstop.storage.restore._move_aside", cut_off)
        with pytest.raises(KeyboardInterrupt):
            restore(tmp_path / "backup", tmp_path / "new", CLOCK)
    with (
        pytest.raises(StorageError, match="run the same longstop restore again"),
        DataDirectory.open(tmp_path / "new").lock(),
    ):
        pass
    restore(tmp_path / "backup", tmp_path / "new", CLOCK)

    with DataDirectory.open(tmp_path / "new").lock():
        assert events(tmp_path / "new") == events(tmp_path / "data")


class Cut(BaseException):
    """The end of a process, as its files show it."""


@contextmanager
def cut_off_at(rename: int) -> Iterator[None]:
    """End it with the nth rename, which is still done."""
    done, real = 0, Path.rename

    def renaming(path: Path, target: Path) -> Path:
        nonlocal done
        done += 1
        moved = real(path, target)
        if done == rename:
            raise Cut
        return moved

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Path, "rename", renaming)
        yield


@pytest.mark.parametrize("force", [False, True])
def test_a_restore_that_is_cut_off_anywhere_is_brought_to_its_end_by_the_same_again(
    tmp_path: Path, force: bool
) -> None:
    back_up(a_node(tmp_path / "data"), tmp_path / "backup", CLOCK)
    for rename in count(1):
        data = tmp_path / f"new {rename}"
        if force:
            a_node(data, balls=5)
            assert len(events(data)) == 5  # which leaves a log beside the store
            # A file that was not there before: what is put there must not be taken for the old one.
            (data / "token-secret").unlink()
        try:
            with cut_off_at(rename):
                restore(tmp_path / "backup", data, CLOCK, force=force)
            break
        except Cut:
            with pytest.raises(StorageError, match="restore again"), DataDirectory.open(data).lock():
                pass

        done = restore(tmp_path / "backup", data, CLOCK, force=force)

        with DataDirectory.open(data).lock():
            assert events(data) == events(tmp_path / "data")
        assert not list(data.glob("*.restored*"))
        assert (data / "token-secret").read_text() == "ab" * 32
        assert list(data.glob("before-restore-*")) == ([done.aside] if done.aside else [])
        assert (done.aside is not None) is force
        if done.aside:
            assert files(done.aside) == ["matches.db", "matches.db-shm", "matches.db-wal", "ops.db"]
            assert len(events(done.aside)) == 5

    # The mark, the old files, the new ones.
    assert rename == 1 + (1 + 4 + 3 if force else 1 + 3)


def test_after_one_that_was_cut_off_another_backup_is_restored_alone(tmp_path: Path) -> None:
    full, bare = a_node(tmp_path / "full"), a_node(tmp_path / "bare", balls=5)
    back_up(full, tmp_path / "backup of full", CLOCK)
    for path in bare.path.glob("ops.db*"):
        path.unlink()
    back_up(bare, tmp_path / "backup of bare", CLOCK)
    with pytest.raises(Cut), cut_off_at(3):  # the mark and the first file are there, and the drafts of the others
        restore(tmp_path / "backup of full", tmp_path / "new", CLOCK)

    restore(tmp_path / "backup of bare", tmp_path / "new", CLOCK)

    assert len(events(tmp_path / "new")) == 5
    assert not list((tmp_path / "new").glob("ops.db*"))
    assert not list((tmp_path / "new").glob("*.restored*"))


def test_a_reader_that_has_a_file_open_during_a_restore_continues_with_the_new_one(tmp_path: Path) -> None:
    """An API that runs alone has no lock that a restore could see."""
    node = a_node(tmp_path / "data")
    back_up(node, tmp_path / "backup", CLOCK)
    api, scraper = (SqliteCommands(node.ops_db, CLOCK) for _ in range(2))
    apart(api.put_order(StandingKind.PAUSED_SOURCE, "sofascore", "after the backup"))

    restore(tmp_path / "backup", tmp_path / "data", CLOCK, force=True)
    apart(scraper.put_order(StandingKind.UNWATCHED, "crex_1", "scraper"))
    apart(api.put_order(StandingKind.UNWATCHED, "crex_2", "api"))
    subjects = [[each.subject for each in apart(commands.standing())] for commands in (api, scraper)]
    apart(api.aclose())
    restored = apsw.Connection(str(node.ops_db))
    verdict = restored.pragma("integrity_check")
    restored.close()
    apart(scraper.aclose())

    assert subjects == [["crex", "crex_1", "crex_2"]] * 2
    assert verdict == "ok"


def test_two_restores_within_a_second_keep_what_was_before_each(tmp_path: Path) -> None:
    node = a_node(tmp_path / "data")
    back_up(node, tmp_path / "backup", CLOCK)
    asyncio.run(_write(node.matches_db, 2))

    first = restore(tmp_path / "backup", tmp_path / "data", CLOCK, force=True).aside
    second = restore(tmp_path / "backup", tmp_path / "data", CLOCK, force=True).aside

    assert first is not None
    assert second is not None
    assert [len(events(each)) for each in (first, second)] == [5, 3]


def test_a_mark_that_no_one_can_read_changes_nothing(tmp_path: Path) -> None:
    node = a_node(tmp_path / "data")
    back_up(node, tmp_path / "backup", CLOCK)
    node.restoring.write_text("?")

    with pytest.raises(StorageError, match="restoring, the mark of an interrupted restore"):
        restore(tmp_path / "backup", tmp_path / "data", CLOCK, force=True)

    assert len(events(tmp_path / "data")) == 3


def files(path: Path) -> list[str]:
    return sorted(each.name for each in path.iterdir())


def test_a_backup_holds_everything_that_cannot_be_built_again(tmp_path: Path) -> None:
    node = a_node(tmp_path / "data")

    manifest = back_up(node, tmp_path / "backup", CLOCK)

    assert files(tmp_path / "backup") == ["manifest.json", "matches.db", "ops.db", "token-secret"]
    assert manifest.node == node.node_id
    assert {kept.name: bool(kept.schema) for kept in manifest.files} == {
        "matches.db": True,
        "ops.db": True,
        "token-secret": False,
    }
    assert (tmp_path / "backup").stat().st_mode & 0o077 == 0
    assert all(each.stat().st_mode & 0o077 == 0 for each in (tmp_path / "backup").glob("*.db"))
    assert (tmp_path / "backup" / "token-secret").stat().st_mode & 0o077 == 0


def test_what_was_backed_up_comes_back(tmp_path: Path) -> None:
    node = a_node(tmp_path / "data")
    back_up(node, tmp_path / "backup", CLOCK)

    done = restore(tmp_path / "backup", tmp_path / "new", CLOCK)

    assert done.aside is None
    assert events(tmp_path / "new") == events(tmp_path / "data")
    # Two directories are two nodes: what one starts and ends must never be taken for the other's.
    assert DataDirectory.open(tmp_path / "new").node_id != node.node_id
    assert (tmp_path / "new" / "token-secret").read_text() == "ab" * 32
    commands = SqliteCommands(tmp_path / "new" / "ops.db", CLOCK)
    assert [each.subject for each in apart(commands.standing())] == ["crex"]
    apart(commands.aclose())


async def test_a_writer_from_before_the_restore_can_write_no_more(tmp_path: Path) -> None:
    node = await asyncio.to_thread(a_node, tmp_path / "data")
    back_up(node, tmp_path / "backup", CLOCK)
    store = await SqliteMatchStore.open(node.matches_db)
    newest = (await store.claim(1, "node-a")).epoch
    await store.aclose()

    restore(tmp_path / "backup", tmp_path / "data", CLOCK, force=True)

    restored = await SqliteMatchStore.open(node.matches_db)
    claimed = await restored.claim(1, "node-b")
    with pytest.raises(EpochLost):
        await restored.save_update(update(1, ball(4), epoch=newest))
    receipt = await restored.save_update(update(1, ball(4), epoch=claimed.epoch))
    await restored.aclose()
    assert claimed.epoch > GENERATION_STEP
    assert receipt.events[0].seq > GENERATION_STEP


def test_readers_who_saw_more_than_the_backup_holds_miss_nothing_afterwards(tmp_path: Path) -> None:
    node = a_node(tmp_path / "data", balls=3)
    back_up(node, tmp_path / "backup", CLOCK)
    asyncio.run(_write(node.matches_db, 5))
    seen = max(seq for _, seq in events(tmp_path / "data"))

    restore(tmp_path / "backup", tmp_path / "data", CLOCK, force=True)
    asyncio.run(_write(node.matches_db, 2))

    assert len([seq for _, seq in events(tmp_path / "data") if seq > seen]) == 2


def test_a_backup_never_goes_over_something_else(tmp_path: Path) -> None:
    node = a_node(tmp_path / "data")
    (tmp_path / "backup").mkdir()
    (tmp_path / "backup" / "diary").write_text("dear")

    with pytest.raises(UsageError, match="already exists"):
        back_up(node, tmp_path / "backup", CLOCK)
    assert files(tmp_path / "backup") == ["diary"]


def test_a_full_disk_is_said_of_the_place_where_the_backup_goes(tmp_path: Path) -> None:
    node = a_node(tmp_path / "data", balls=300)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (64 * 1024, hard))

    try:
        with pytest.raises(StorageError) as refused:
            back_up(node, tmp_path / "backup", CLOCK)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    assert str(refused.value).startswith(f"cannot write the backup {tmp_path / 'backup'}: the disk ")
    assert files(tmp_path) == ["data"]


def test_without_matches_there_is_nothing_to_back_up(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="nothing to back up"):
        back_up(DataDirectory.open(tmp_path / "data"), tmp_path / "backup", CLOCK)


@pytest.mark.parametrize("lost", ["matches.db", "ops.db"])
def test_a_directory_that_has_lost_a_database_is_not_backed_up(tmp_path: Path, lost: str) -> None:
    node = a_node(tmp_path / "data")
    node.remember_databases()
    (node.path / lost).unlink()

    with pytest.raises(StoreDamaged, match=f"{lost}: the file is missing"):
        back_up(node, tmp_path / "backup", CLOCK)

    assert not (tmp_path / "backup").exists()


@pytest.mark.parametrize("lost", ["matches.db", "ops.db"])
def test_a_database_that_is_lost_right_after_a_restore_is_missed(tmp_path: Path, lost: str) -> None:
    back_up(a_node(tmp_path / "data"), tmp_path / "backup", CLOCK)
    restore(tmp_path / "backup", tmp_path / "again", CLOCK)
    (tmp_path / "again" / lost).unlink()

    with pytest.raises(StoreDamaged, match=f"{lost}: the file is missing"):
        refuse_loss(tmp_path / "again" / lost)


def test_a_restore_never_goes_over_something_else_unless_reported_to(tmp_path: Path) -> None:
    back_up(a_node(tmp_path / "data", balls=1), tmp_path / "backup", CLOCK)
    a_node(tmp_path / "other", balls=5)

    with pytest.raises(UsageError, match="--force"):
        restore(tmp_path / "backup", tmp_path / "other", CLOCK)
    refused = len(events(tmp_path / "other"))
    done = restore(tmp_path / "backup", tmp_path / "other", CLOCK, force=True)

    assert refused == 5
    assert len(events(tmp_path / "other")) == 1
    assert done.aside is not None
    assert len(events(done.aside)) == 5


@pytest.mark.parametrize("role", ["scraper", "supervisor"])
def test_a_directory_that_is_in_use_is_not_restored(tmp_path: Path, role: str) -> None:
    node = a_node(tmp_path / "data")
    back_up(node, tmp_path / "backup", CLOCK)

    with node.lock(role), pytest.raises(DataDirectoryInUse):
        restore(tmp_path / "backup", tmp_path / "data", CLOCK, force=True)
    assert len(events(tmp_path / "data")) == 3


def test_what_stood_in_the_log_of_the_old_store_is_not_read_into_the_new_one(tmp_path: Path) -> None:
    back_up(a_node(tmp_path / "data", balls=1), tmp_path / "backup", CLOCK)
    other = a_node(tmp_path / "other", balls=5)
    (tmp_path / "other" / "hot.db").write_bytes(b"the old live view")
    with writing(other) as writer:
        for _ in range(20):
            next_seq(writer)
    left = (tmp_path / "other" / "matches.db-wal").stat().st_size

    restore(tmp_path / "backup", tmp_path / "other", CLOCK, force=True)

    assert left > 0
    assert len(events(tmp_path / "other")) == 1
    assert not (tmp_path / "other" / "hot.db").exists()


def flip_a_byte(folder: Path) -> None:
    path = folder / "matches.db"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(content)


def cut(folder: Path) -> None:
    path = folder / "ops.db"
    path.write_bytes(path.read_bytes()[:-4096])


def lose(folder: Path) -> None:
    (folder / "token-secret").unlink()


def unsign(folder: Path) -> None:
    (folder / "manifest.json").unlink()


def scribble(folder: Path) -> None:
    (folder / "manifest.json").write_text("{")


def lead_astray(folder: Path) -> None:
    path = folder / "manifest.json"
    path.write_text(path.read_text().replace('"token-secret"', '"../../token-secret"'))


def come_from_the_future(folder: Path) -> None:
    path = folder / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"format": 2}))


@pytest.mark.parametrize("harm", [flip_a_byte, cut, lose, unsign, scribble, lead_astray, come_from_the_future])
def test_a_backup_that_is_not_whole_changes_nothing(tmp_path: Path, harm: object) -> None:
    assert callable(harm)
    back_up(a_node(tmp_path / "data", balls=1), tmp_path / "backup", CLOCK)
    a_node(tmp_path / "other", balls=5)
    before = files(tmp_path / "other")
    harm(tmp_path / "backup")

    with pytest.raises(StorageError):
        restore(tmp_path / "backup", tmp_path / "other", CLOCK, force=True)

    assert files(tmp_path / "other") == before
    assert len(events(tmp_path / "other")) == 5


def test_a_backup_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    node = a_node(tmp_path / "data")
    newer = apsw.Connection(str(node.matches_db))
    newer.execute("INSERT INTO migrations (number, name, checksum) VALUES (999, '0999_later.sql', 'x')")
    newer.close()
    back_up(node, tmp_path / "backup", CLOCK)

    with pytest.raises(StoreTooNew):
        restore(tmp_path / "backup", tmp_path / "new", CLOCK)
    assert not (tmp_path / "new").exists()


def test_a_backup_begun_under_a_writer_is_of_one_moment_and_holds_no_one_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A real process commits ball after ball; the copy, however slow, is one of the states that there were."""
    monkeypatch.setattr("longstop.storage.backup.PAGES_PER_STEP", 4)
    node = a_node(tmp_path / "data", balls=300)
    acknowledged: list[int] = []
    with writing(node) as writer:
        first = next_seq(writer)

        with monkeypatch.context() as patched:
            patched.setattr("longstop.storage.backup.time.sleep", lambda _: acknowledged.append(next_seq(writer)))
            back_up(node, tmp_path / "backup", CLOCK)

    restore(tmp_path / "backup", tmp_path / "new", CLOCK)
    copied = [seq for _, seq in events(tmp_path / "new")]
    assert len(acknowledged) >= 10
    assert copied == list(range(1, len(copied) + 1))
    assert len(copied) >= first
    assert copied == [seq for _, seq in events(tmp_path / "data")][: len(copied)]


def test_a_backup_that_is_killed_leaves_nothing_that_looks_like_one(tmp_path: Path) -> None:
    node = a_node(tmp_path / "data", balls=50)
    program = (
        "import os, signal, time\nfrom pathlib import Path\nfrom longstop.storage.backup import back_up\n"
        "from longstop.storage.directory import DataDirectory\nfrom tests.readers import ManualClock\n"
        "time.sleep = lambda _: os.kill(os.getpid(), signal.SIGKILL)  # the pause amid a copy\n"
        f"back_up(DataDirectory.open(Path({str(node.path)!r})), Path({str(tmp_path / 'backup')!r}), ManualClock())\n"
    )

    killed = subprocess.run([sys.executable, "-c", program], check=False, cwd=ROOT)
    left = [each for each in files(tmp_path) if each != "data"]
    back_up(node, tmp_path / "backup", CLOCK)

    assert killed.returncode == -9
    assert len(left) == 1
    assert left[0].startswith(".backup.partial-")
    assert files(tmp_path) == [*left, "backup", "data"]
