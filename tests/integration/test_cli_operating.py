"""The verbs of an operator on a real data directory: commands, health, top, backup and restore."""

import asyncio
import fcntl
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, aclosing, contextmanager
from datetime import timedelta
from pathlib import Path

import jwt
import pytest
from msgspec.structs import replace
from typer.testing import CliRunner, Result

from longstop.cli.main import command_line
from longstop.clock import SystemClock
from longstop.errors import UsageError
from longstop.model.command_and_standing_order import Command, CommandKind, CommandState, Refusal, Reply
from longstop.model.polling_status import MonitoringRecord
from longstop.model.scraper_report import NodeBeat
from longstop.storage.base import HealthRow
from longstop.storage.directory import DataDirectory
from longstop.storage.sqlite.hot_view_and_heartbeats import SqliteHotWriter
from longstop.storage.sqlite.operations_tables import SqliteCommands, SqliteHealthLog
from tests.contract.stores import REF
from tests.integration.test_backup import a_node
from tests.readers import a_hot_row, a_record, apart

DONE = Reply(state=CommandState.DONE, answer="It is done.")


@pytest.fixture
def node(tmp_path: Path) -> DataDirectory:
    return a_node(tmp_path / "data")


def run(data: Path, *arguments: str) -> Result:
    """Run a verb; what it raises, other than an exit, is raised here."""
    done = CliRunner().invoke(command_line(), [*arguments, "--data", str(data)], env={"COLUMNS": "120"})
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done


@contextmanager
def a_scraper(node: DataDirectory, reply: Reply = DONE) -> Iterator[list[Command]]:
    """Answer commands meanwhile, in a thread; give those that were taken."""
    taken: list[Command] = []
    ending = threading.Event()

    async def work() -> None:
        async with aclosing(SqliteCommands(node.ops_db, SystemClock())) as commands:
            while not ending.is_set():
                for command in await commands.take(8):
                    taken.append(command)
                    await commands.answer(command, reply)
                await asyncio.sleep(0.02)

    thread = threading.Thread(target=lambda: asyncio.run(work()))
    thread.start()
    try:
        with node.lock():
            yield taken
    finally:
        ending.set()
        thread.join()


def beat(node: DataDirectory, *, age_seconds: float = 0.0, is_on_hold: bool = False) -> None:
    """Leave a sign of life and one match in the live view."""
    now = SystemClock().now()
    hot = SqliteHotWriter(node.hot_db, on_failure=lambda error: pytest.fail(str(error)))
    hot.beat(
        NodeBeat(
            node=node.node_id, pid=os.getpid(), started_at=now, beat_at=now, rss_bytes=1 << 20, errors_last_minute=0
        )
    )
    hot.put(a_hot_row(replace(_polled(age_seconds), is_on_hold=is_on_hold)))
    apart(hot.aclose())


def _polled(age_seconds: float) -> MonitoringRecord:
    return replace(a_record(1), last_poll_at=SystemClock().now() - timedelta(seconds=age_seconds))


@pytest.mark.parametrize(
    ("words", "kind", "argument"),
    [
        (("watch", "https://crex.com/scoreboard/11HD"), CommandKind.WATCH, "https://crex.com/scoreboard/11HD"),
        (("unwatch", "1"), CommandKind.UNWATCH, "{ref}"),
        (("pause", "1"), CommandKind.PAUSE_MATCH, "{ref}"),
        (("resume", "1"), CommandKind.RESUME_MATCH, "{ref}"),
        (("pause", "crex"), CommandKind.PAUSE_SOURCE, "crex"),
        (("resume", "crex"), CommandKind.RESUME_SOURCE, "crex"),
        (("recycle",), CommandKind.RECYCLE, ""),
    ],
)
def test_an_order_reaches_the_scraper_and_its_answer_the_terminal(
    node: DataDirectory, words: tuple[str, ...], kind: CommandKind, argument: str
) -> None:
    with a_scraper(node) as taken:
        done = run(node.path, *words)

    assert (done.exit_code, done.stdout) == (0, "It is done.\n")
    [command] = taken
    assert (command.kind, command.argument) == (kind, argument.format(ref=REF))
    assert command.asked_by.startswith("cli: ")


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        (Reply(state=CommandState.REFUSED, answer="No.", refusal=Refusal.CONFLICT), 1),
        (Reply(state=CommandState.FAILED, answer="No."), 2),
    ],
)
def test_a_command_that_was_not_done_prints_to_stderr_and_sets_the_exit_code(
    node: DataDirectory, reply: Reply, code: int
) -> None:
    with a_scraper(node, reply):
        done = run(node.path, "recycle")

    assert (done.exit_code, done.stdout, done.stderr) == (code, "", "No.\n")


def test_an_unknown_source_is_a_usage_error_like_an_unknown_match(node: DataDirectory) -> None:
    refused = Reply(state=CommandState.REFUSED, answer="Source crexx is not enabled.", refusal=Refusal.NOT_KNOWN)

    with a_scraper(node, refused), pytest.raises(UsageError, match="Source crexx is not enabled"):
        run(node.path, "pause", "crexx")


def test_a_command_without_a_scraper_is_rejected_at_once_and_not_stored(node: DataDirectory) -> None:
    began = time.monotonic()

    done = run(node.path, "recycle")

    assert done.exit_code == 3
    assert done.stderr == (
        f"longstop: no scraper is running on {node.path}: start one with `longstop up`, or keep `longstop demo`"
        " running, then try again\n"
    )
    assert time.monotonic() - began < 10
    assert not apart(SqliteCommands(node.ops_db, SystemClock()).take(8))


@pytest.mark.parametrize("sign", ["a supervisor's lock", "a beat from a container"])
def test_a_command_waits_for_a_scraper_that_has_left_a_sign(
    node: DataDirectory, sign: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("longstop.model.command_and_standing_order.EXPIRES_AFTER_SECONDS", 0.5)

    with ExitStack() as stack:
        if "lock" in sign:
            stack.enter_context(node.lock("supervisor"))
        else:
            beat(node)
        done = run(node.path, "recycle")

    assert done.exit_code == 3
    assert done.stderr.startswith("No scraper took this")


@pytest.mark.parametrize("verb", ["unwatch", "pause", "resume"])
def test_a_match_that_is_not_there_is_a_sentence(node: DataDirectory, verb: str) -> None:
    with pytest.raises(UsageError, match="there is no match 999"):
        run(node.path, verb, "999")


def test_the_exit_code_of_health_reflects_the_verdict(node: DataDirectory) -> None:
    silent = run(node.path, "health")
    beat(node)
    healthy = run(node.path, "health")
    beat(node, age_seconds=100)
    degraded = run(node.path, "health")

    assert (silent.exit_code, silent.stdout) == (2, "down\n  no scraper has run here yet\n")
    assert (healthy.exit_code, healthy.stdout) == (0, "healthy\n")
    assert degraded.exit_code == 1
    assert degraded.stdout.startswith("degraded\n  ")
    assert "older than 60 s: crex_M1" in degraded.stdout


def test_health_for_programs_is_the_document_of_status(node: DataDirectory) -> None:
    beat(node)

    document = json.loads(run(node.path, "health", "--json").stdout)

    assert (document["status"], document["grade"]) == ("healthy", "healthy")
    assert document["matches"][0]["match_id"] == "crex_M1"
    assert document["processes"][0]["pid"] == os.getpid()


def test_the_health_of_a_missing_directory_is_unknown(tmp_path: Path) -> None:
    done = run(tmp_path / "nowhere", "health")

    assert done.exit_code == 3
    assert f"health unknown: the data directory {tmp_path / 'nowhere'} does not exist" in done.stderr


def test_a_directory_without_matches_differs_from_a_missing_one(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=f"nothing has run in {tmp_path} yet: .* `longstop up --data {tmp_path}` or"):
        run(tmp_path, "matches")
    with pytest.raises(UsageError, match=r"nowhere does not exist: .* or `longstop demo --keep .*nowhere`$"):
        run(tmp_path / "nowhere", "matches")


@pytest.mark.parametrize("verb", ["matches", "top", "errors", "recoveries"])
def test_another_directory_is_asked_for_only_where_none_was_given(
    tmp_path: Path, verb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LONGSTOP_DATA", str(tmp_path))

    done = CliRunner().invoke(command_line(), [verb])

    assert str(done.exception) == (
        f"nothing has run in {tmp_path} yet: start scraping there with `longstop up` or"
        f" `longstop demo --keep {tmp_path}`, or give another data directory with --data DIR"
    )


def test_the_list_shows_unwatched_matches_and_the_ages_of_the_others(node: DataDirectory) -> None:
    unwatched = run(node.path, "matches")
    beat(node, age_seconds=41.25)
    watched = run(node.path, "matches")
    beat(node, is_on_hold=True)
    paused = run(node.path, "matches")

    assert "unwatched │ -" in unwatched.stdout
    assert "in_sync" in watched.stdout
    assert "paused" in paused.stdout
    assert re.search(r"│ 4\d\.\d +│", watched.stdout)


def test_top_prints_itself_once_for_scripts(node: DataDirectory) -> None:
    beat(node)

    done = run(node.path, "top", "--once")

    assert done.exit_code == 0
    assert "HEALTHY" in done.stdout
    assert "crex_M1" in done.stdout
    assert "\x1b" not in done.stdout


@pytest.mark.parametrize("ending", [b"q", b"\x03"])
def test_top_in_a_terminal_ends_with_a_key_and_leaves_it_as_it_was(node: DataDirectory, ending: bytes) -> None:
    beat(node)
    ours, theirs = pty.openpty()
    before = subprocess.run(["stty", "-g"], stdin=theirs, capture_output=True, check=True).stdout
    process = subprocess.Popen(
        [sys.executable, "-m", "longstop", "top", "--data", str(node.path)],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "120", "LINES": "30"},
        start_new_session=True,
        preexec_fn=lambda: _own_terminal(theirs),
    )

    try:
        seen = _read_until(ours, b"crex_M1")
        os.write(ours, ending)
        code = process.wait(20)
    finally:
        process.kill()
        process.wait()

    after = subprocess.run(["stty", "-g"], stdin=theirs, capture_output=True, check=True).stdout
    os.close(ours)
    os.close(theirs)
    assert b"HEALTHY" in seen
    assert code == 0
    assert after == before


def _own_terminal(terminal: int) -> None:
    """Make it the controlling terminal, and handle Ctrl-C: background processes ignore it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)


def _read_until(terminal: int, wanted: bytes) -> bytes:
    seen, until = b"", time.monotonic() + 30
    while wanted not in seen and time.monotonic() < until:
        if select.select([terminal], [], [], 1)[0]:
            seen += os.read(terminal, 65536)
    return seen


def test_a_backup_is_made_and_put_back_by_verbs(node: DataDirectory, tmp_path: Path) -> None:
    made = run(node.path, "backup", str(tmp_path / "backup"))
    back = run(tmp_path / "new", "restore", str(tmp_path / "backup"))
    again = run(node.path, "restore", str(tmp_path / "backup"), "--force")

    assert made.stdout.startswith(f"Saved 3 files of {node.node_id}")
    assert f"to the state of {node.node_id} at" in back.stdout
    assert "Its previous files are in" in again.stdout


def test_an_admin_token_has_the_permission(node: DataDirectory) -> None:
    plain, admin = (run(node.path, "token", *more).stdout.strip() for more in ((), ("--admin",)))

    permissions = [jwt.decode(each, options={"verify_signature": False})["permissions"] for each in (plain, admin)]
    assert permissions == [["read"], ["admin", "read"]]


def test_health_prints_its_history_as_a_table_and_as_json(node: DataDirectory) -> None:
    now = SystemClock().now()
    log = SqliteHealthLog(node.ops_db)
    of_node = HealthRow(scraper_id="node-1", timestamp=now, health_status="healthy", error_count=0, memory_mb=64.5)
    of_match = replace(of_node, timestamp=now - timedelta(minutes=90), match_id=7, ref="crex_[b]M7", memory_mb=None)
    apart(log.write([of_node, of_match]))
    apart(log.aclose())

    table, newest = run(node.path, "health", "--history"), run(node.path, "health", "--history", "--json")
    match = run(node.path, "health", "--match", "crex_[b]M7", "--hours", "2")
    both = run(node.path, "health", "--hours", "2", "--json")
    nothing = run(node.path, "health", "--history", "--match", "1")

    assert [done.exit_code for done in (table, newest, match, both, nothing)] == [0, 0, 0, 0, 0]
    assert "64.5" in table.output
    assert [each["scraper_id"] for each in json.loads(newest.output)] == ["node-1"]
    assert len(json.loads(both.output)) == 2
    # Text from outside is not markup.
    assert "crex_[b]M7" in match.output
    assert nothing.output == "The health log has no rows for that time.\n"
