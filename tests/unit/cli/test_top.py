"""What `longstop top` shows, as plain text."""

from io import StringIO

from msgspec.structs import replace
from rich.console import Console

from longstop.api.health_documents import StatusSnapshot
from longstop.cli.top import screen
from longstop.model.command_and_standing_order import StandingKind, StandingOrder
from longstop.model.match import MatchStatus
from longstop.model.polling_status import MonitoringRecord
from longstop.model.recovery import Recovery, RecoveryKind, RecoveryOutcome
from longstop.model.scraper_report import BreakerNote, NodeBeat, ProcessResources
from longstop.supervision.health_verdict import assess_health
from tests.readers import MOMENT, NOW, a_beat, a_record

MEASURED = ProcessResources(
    pids=(1, 2, 3), rss_bytes=300 << 20, pss_bytes=200 << 20, peak_rss_bytes=400 << 20, cpu_percent=12.5
)


def a_snapshot(*records: MonitoringRecord, beat: NodeBeat | None = None, **more: object) -> StatusSnapshot:
    beats = [beat or a_beat()]
    snapshot = StatusSnapshot(
        verdict=assess_health(beats, records, MOMENT), beats=beats, records=records, recoveries=(), taken_at=MOMENT
    )
    return replace(snapshot, **more)


def shown(snapshot: StatusSnapshot, width: int = 140, height: int = 40) -> list[str]:
    console = Console(file=StringIO(), width=width, height=height, color_system=None)
    console.print(screen(snapshot, width, height))
    assert isinstance(console.file, StringIO)
    return console.file.getvalue().splitlines()


def row_of(lines: list[str], name: str) -> str:
    return next(line for line in lines if line.startswith(name))


def test_the_matches_in_play_come_first_the_longest_unread_before_the_others() -> None:
    done = a_record(1, polled=900, status=MatchStatus.COMPLETED)
    snapshot = a_snapshot(done, a_record(2, polled=3), a_record(3, polled=70), a_record(4, polled=None))

    lines = shown(snapshot)

    refs = [line.split()[0] for line in lines if line.startswith("crex_")]
    assert refs == ["crex_M4", "crex_M3", "crex_M2", "crex_M1"]
    assert " 70.0 " in row_of(lines, "crex_M3")
    assert " - " in row_of(lines, "crex_M4")


def test_the_verdict_is_that_of_health_with_its_reasons() -> None:
    lines = shown(a_snapshot(a_record(3, polled=70)))

    assert "longstop  DEGRADED   1 matches, 1 in play, 0 paused" in lines[0]
    assert any("in play and older than 60 s: crex_M3" in line for line in lines)


def test_a_match_whose_data_are_old_is_stale_and_not_in_sync() -> None:
    lines = shown(a_snapshot(a_record(2, polled=3), a_record(3, polled=70), a_record(4, status=MatchStatus.UPCOMING)))

    states = {name: row_of(lines, name).split()[2] for name in ("crex_M2", "crex_M3", "crex_M4")}
    assert states == {"crex_M2": "in_sync", "crex_M3": "stale", "crex_M4": "in_sync"}


def test_what_was_measured_is_shown_and_what_was_not_is_no_zero() -> None:
    beat = replace(a_beat(errors=2), resources=MEASURED, loop_lag_seconds=0.3)

    measured, unknown = (row_of(shown(a_snapshot(beat=each)), "node-1").split() for each in (beat, a_beat()))

    assert measured == ["node-1", "healthy", "4711", "3", "300", "200", "400", "12.5", "300", "2", "-", "-"]
    assert unknown == ["node-1", "healthy", "4711", "-", "-", "-", "-", "-", "-", "0", "-", "-"]


def test_a_scraper_without_heartbeat_is_silent() -> None:
    lines = shown(a_snapshot(beat=a_beat(ago=60)))

    assert "DOWN" in lines[0]
    assert "silent" in row_of(lines, "node-1")


def test_breakers_orders_and_recoveries_are_shown_when_there_are_some() -> None:
    note = BreakerNote(
        scope="target",
        subject="api.test",
        state="open",
        since=NOW,
        left_seconds=43.0,
        reason="5 failures in a row",
    )
    order = StandingOrder(kind=StandingKind.PAUSED_SOURCE, subject="espncricinfo", since=NOW, asked_by="cli: jane")
    recovery = Recovery(
        id="x", kind=RecoveryKind.RESTART, trigger="it was killed", subject="scraper", process="up", began_at=NOW
    )

    lines = shown(a_snapshot(beat=replace(a_beat(), breakers=(note,)), standing=[order], recoveries=[recovery]))
    quiet = shown(a_snapshot())

    assert row_of(lines, "api.test").split()[:4] == ["api.test", "target", "open", "42"]
    assert "  circuit open for target api.test for up to 42 s, probed meanwhile" in [line.rstrip() for line in lines]
    assert "cli: jane" in row_of(lines, "espncricinfo")
    assert "pending" in row_of(lines, "12:00:00 restart")
    assert not any(line.startswith(("circuit open", "by operator", "recovery")) for line in quiet)


def test_a_small_terminal_is_never_overfilled() -> None:
    paused = replace(a_beat(), paused_sources=("espncricinfo",))
    snapshot = a_snapshot(*(a_record(number, polled=number) for number in range(1, 200)), beat=paused)

    for height in (14, 24, 50):
        lines = shown(snapshot, width=80, height=height)
        assert len(lines) <= height
        assert any(line.startswith("crex_") for line in lines)
        assert any(" more" in line for line in lines)
        assert max(map(len, lines)) <= 80


def test_a_narrow_terminal_leaves_columns_out_rather_than_cutting_all() -> None:
    lines = shown(a_snapshot(a_record(1)), width=80)

    assert "pss MB" not in "".join(lines)
    assert "healthy" in row_of(lines, "node-1")
    assert "in_sync" in row_of(lines, "crex_M1")


def test_at_80_columns_every_reason_can_be_read() -> None:
    error = "FetchTimeout: the site did not answer within 10 s, although it was asked three times"
    why = "5 failures in a row, the last one because the connection was refused by the site"
    note = BreakerNote(scope="target", subject="api.test", state="open", since=NOW, left_seconds=43.0, reason=why)
    records = [replace(a_record(number, polled=70), last_error=error) for number in range(1, 9)]

    lines = shown(a_snapshot(*records, beat=replace(a_beat(), breakers=(note,))), width=80, height=60)

    text = " ".join(word for line in lines for word in line.split())
    assert "…" not in text
    assert "older than 60 s: crex_M1, crex_M2" in text
    assert max(map(len, lines)) <= 80
    first = next(number for number, line in enumerate(lines) if line.startswith("crex_M1"))
    column = lines[first].index("FetchTimeout")
    assert " ".join(line[column:].strip() for line in lines[first : first + 8]).startswith(error)
    column = row_of(lines, "api.test").index("5 failures")
    first = lines.index(row_of(lines, "api.test"))
    assert " ".join(line[column:].strip() for line in lines[first:]).startswith(why)


def test_what_a_site_says_moves_no_cursor() -> None:
    lines = shown(a_snapshot(replace(a_record(1), last_error="\x1b[2J[red]boo\x07")))

    assert "[2J[red]boo" in row_of(lines, "crex_M1")
    assert "\x1b" not in "".join(lines)


def test_at_80_columns_no_time_is_cut() -> None:
    recovery = Recovery(
        id="x",
        kind=RecoveryKind.RESTART,
        trigger="it was killed by SIGKILL " * 5,
        subject="a-scraper-with-a-long-name-" * 3,
        process="up",
        began_at=NOW,
        outcome=RecoveryOutcome.NOT_RECOVERED,
    )
    order = StandingOrder(
        kind=StandingKind.PAUSED_MATCH, subject="espncricinfo_1234567", since=NOW, asked_by="cli: " + "jane" * 20
    )
    snapshot = a_snapshot(
        *(a_record(number, polled=70) for number in range(1, 120)), recoveries=[recovery], standing=[order]
    )

    lines = shown(snapshot, width=80)

    assert lines[0].rstrip().endswith("12:00:00 UTC")
    assert "119 matches, 119 in play, 0 paused" in lines[0]
    assert "not recovered" in row_of(lines, "12:00:00 restart")
    assert "11-15 12:00:00" in row_of(lines, "espncricinfo_1234567")
    assert max(map(len, lines)) <= 80
