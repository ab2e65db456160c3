"""The verdict on all scrapers, and its texts."""

from datetime import timedelta

import msgspec
import pytest
from msgspec.structs import replace

from longstop.clock import Moment
from longstop.model.match import MatchRef, MatchStatus, Phase
from longstop.model.polling_status import MonitoringRecord, SyncState
from longstop.model.recovery import Recovery, RecoveryKind, RecoveryOutcome
from longstop.model.scraper_report import BreakerNote, MatchCost, NodeBeat
from longstop.supervision.health_grade_and_recovery import Grade
from longstop.supervision.health_verdict import (
    MAX_MATCH_BYTES,
    HealthStatus,
    HealthVerdict,
    assess_health,
    down,
    live_beats,
    open_circuits,
    silence_reason,
    start_failure,
    with_reasons,
    with_store_problems,
)
from tests.readers import MOMENT, NOW, a_beat, a_record

RECOVERING = SyncState.RECOVERING


def failing(number: int) -> MonitoringRecord:
    return msgspec.structs.replace(a_record(number, polled=600), consecutive_failures=9, status=MatchStatus.UPCOMING)


def unlisted(since: float | None) -> NodeBeat:
    """Return a heartbeat of a second ago, with a listing that was read this long ago, or never."""
    seconds = 3600.0 if since is None else since
    return msgspec.structs.replace(a_beat(ago=1), unlisted_seconds={"crex": seconds - 1})


def paused(number: int) -> MonitoringRecord:
    return msgspec.structs.replace(a_record(number, polled=600), phase=Phase.PAUSED)


def on_hold(number: int) -> MonitoringRecord:
    return msgspec.structs.replace(paused(number), is_on_hold=True)


def graded(grade: Grade, node: str = "node-1", reason: str = "") -> NodeBeat:
    return msgspec.structs.replace(a_beat(node), grade=grade.value, grade_reason=reason)


@pytest.mark.req("FR-012")
@pytest.mark.parametrize(
    ("beats", "records", "status"),
    [
        # An idle night: someone watches, nothing is on.
        ([a_beat()], [], "healthy"),
        ([a_beat()], [a_record(polled=3000, status=MatchStatus.UPCOMING)], "healthy"),
        ([a_beat()], [a_record(polled=3000, status=MatchStatus.COMPLETED, sync=RECOVERING)], "healthy"),
        ([a_beat()], [a_record(polled=60)], "healthy"),
        ([a_beat()], [a_record(polled=60.001)], "degraded"),
        ([a_beat()], [a_record(polled=61, status=MatchStatus.BREAK)], "degraded"),
        ([a_beat()], [a_record(polled=None)], "degraded"),
        ([a_beat()], [a_record(1), a_record(2, sync=RECOVERING)], "degraded"),
        # Nothing in play is read any more.
        ([a_beat()], [a_record(1, polled=181), a_record(2, polled=None)], "degraded"),
        ([a_beat()], [a_record(1, polled=181), a_record(2, polled=170)], "degraded"),
        ([a_beat()], [paused(1)], "degraded"),
        # An operator has paused it: that is intended.
        ([a_beat()], [on_hold(1)], "healthy"),
        ([], [a_record()], "down"),
        ([a_beat(ago=15)], [a_record()], "healthy"),
        ([a_beat(ago=15.001)], [a_record()], "down"),
        # A scraper's clock may be ahead of ours.
        ([a_beat(ago=-3)], [a_record()], "healthy"),
        ([a_beat(errors=10)], [], "healthy"),
        ([a_beat(errors=11)], [], "down"),
        # One match fails again and again; the others are read as ever.
        ([a_beat(errors=24)], [a_record(1), failing(2)], "degraded"),
        ([a_beat(errors=24)], [a_record(1, polled=61), failing(2)], "down"),
        # The clock was set back: the heartbeat lies an hour in the future.
        ([a_beat(ago=-3600)], [a_record()], "down"),
        # The list was not read for minutes: that is not an idle night.
        ([unlisted(since=179)], [], "healthy"),
        ([unlisted(since=181)], [], "degraded"),
        ([unlisted(since=None)], [], "degraded"),
        ([a_beat("a", errors=11), a_beat("b")], [], "healthy"),
        # A scraper that does not think well of itself is believed.
        ([graded(Grade.DEGRADED)], [], "degraded"),
        ([graded(Grade.FAILING)], [a_record()], "degraded"),
        ([graded(Grade.RECOVERING)], [a_record()], "degraded"),
        # The quiet scraper that spoke for the others is gone itself.
        ([a_beat("a", errors=11), a_beat("b", ago=20)], [], "down"),
    ],
)
def test_the_verdict_follows_the_table(beats: list[NodeBeat], records: list[MonitoringRecord], status: str) -> None:
    judged = assess_health(beats, records, MOMENT)

    assert judged.status == status
    assert bool(judged.reasons) == (judged.status is not HealthStatus.HEALTHY)


def test_the_reasons_name_the_first_matches_and_count_the_rest() -> None:
    records = [a_record(number, polled=90) for number in range(1, 8)]

    judged = assess_health([a_beat()], records, MOMENT)

    assert judged.reasons == ("in play and older than 60 s: crex_M1, crex_M2, crex_M3, crex_M4, crex_M5 and 2 more",)


def test_the_worst_scraper_gives_the_grade_and_says_why() -> None:
    beats = [a_beat("a"), graded(Grade.RECOVERING, "b", "was not read"), graded(Grade.FAILING, "c"), a_beat("d")]

    judged = assess_health(beats, [], MOMENT)

    assert judged.grade is Grade.FAILING
    assert judged.reasons == ("b is recovering: was not read", "c is failing")


def test_a_scraper_that_is_gone_has_no_say() -> None:
    gone = msgspec.structs.replace(graded(Grade.FAILING, "gone"), beat_at=NOW - timedelta(minutes=5))

    judged = assess_health([a_beat(), gone], [], MOMENT)

    assert (judged.status, judged.grade) == (HealthStatus.HEALTHY, Grade.HEALTHY)


def test_an_unreadable_live_view_has_no_grade() -> None:
    judged = down("the live view cannot be read")

    assert (judged.status, judged.grade) == (HealthStatus.DOWN, None)


@pytest.mark.req("MON-8", "FR-012")
@pytest.mark.parametrize("grade", Grade)
def test_where_nothing_in_play_is_read_it_fails_whatever_a_scraper_says(grade: Grade) -> None:
    unread = assess_health([graded(grade)], [a_record(1, polled=181)], MOMENT)
    late = assess_health([graded(grade)], [a_record(1, polled=180)], MOMENT)

    assert (unread.status, unread.grade, unread.is_unread) == (HealthStatus.DEGRADED, Grade.FAILING, True)
    assert unread.reasons[0] == "no match in play was read for 180 s"
    assert (late.grade, late.is_unread) == (grade, False)


@pytest.mark.req("MON-8", "FR-012")
def test_it_fails_also_when_breakers_pause_every_match() -> None:
    hours = [msgspec.structs.replace(a_record(number, polled=36_000), phase=Phase.PAUSED) for number in range(1, 51)]

    judged = assess_health([graded(Grade.DEGRADED)], hours, MOMENT)

    assert (judged.grade, judged.is_unread) == (Grade.FAILING, True)
    assert judged.reasons[0] == "no match in play was read for 180 s"


@pytest.mark.parametrize("other", [a_record(2), on_hold(2)])
def test_a_match_paused_by_its_breaker_counts_like_any_other(other: MonitoringRecord) -> None:
    judged = assess_health([a_beat()], [paused(1), other], MOMENT)

    assert judged.is_unread == other.is_on_hold


@pytest.mark.parametrize(
    ("grade", "is_unread"),
    [(Grade.HEALTHY, False), (Grade.DEGRADED, False), (Grade.FAILING, True), (Grade.RECOVERING, True)],
)
def test_what_was_never_read_is_about_to_be_until_its_scraper_has_waited_too_long(
    grade: Grade, is_unread: bool
) -> None:
    new = [a_record(1, polled=None), msgspec.structs.replace(a_record(2, polled=None), phase=Phase.PAUSED)]

    judged = assess_health([graded(grade)], new, MOMENT)

    assert judged.is_unread == is_unread
    assert (judged.reasons[0] == "no match in play was ever read") == is_unread


def test_what_an_operator_has_paused_is_a_note_and_no_failure() -> None:
    source = msgspec.structs.replace(a_beat(), paused_sources=("espn",))
    elsewhere = msgspec.structs.replace(on_hold(2), ref=MatchRef("espn", "M2"))

    judged = assess_health([source], [on_hold(1), elsewhere, a_record(3)], MOMENT)

    assert (judged.status, judged.grade, judged.reasons) == (HealthStatus.HEALTHY, Grade.HEALTHY, ())
    assert judged.notes == ("sources paused by an operator: espn", "paused by an operator: crex_M1")


@pytest.mark.req("US4.1")
def test_a_match_that_takes_too_much_is_noted() -> None:
    costs = {
        1: MatchCost(pss_bytes=MAX_MATCH_BYTES - 1, cpu_percent=19.9),
        2: MatchCost(pss_bytes=MAX_MATCH_BYTES),
        3: MatchCost(cpu_percent=20.0),
        4: MatchCost(),
    }
    beat = msgspec.structs.replace(a_beat(), costs=costs)

    judged = assess_health([beat], [a_record(number) for number in range(1, 6)], MOMENT)

    assert (judged.status, judged.notes) == (
        HealthStatus.HEALTHY,
        ("uses at least 1024 MB or 20 % CPU: crex_M2, crex_M3",),
    )


@pytest.mark.req("FR-012")
@pytest.mark.parametrize(("errors", "status"), [(0, "healthy"), (11, "down")])
def test_a_site_that_is_cut_off_is_noted_whatever_the_status(errors: int, status: str) -> None:
    cut = BreakerNote(scope="source", subject="crex", state="open", since=NOW, left_seconds=31.0)
    beat = msgspec.structs.replace(a_beat(errors=errors), breakers=(cut,))

    judged = assess_health([beat], [], MOMENT)

    assert (judged.status, judged.notes) == (status, ("circuit open for source crex for up to 30 s",))


@pytest.mark.parametrize(
    ("status", "grade", "said"),
    [
        (HealthStatus.HEALTHY, Grade.HEALTHY, "healthy"),
        (HealthStatus.DEGRADED, Grade.HEALTHY, "degraded"),
        (HealthStatus.DEGRADED, Grade.DEGRADED, "degraded"),
        (HealthStatus.DEGRADED, Grade.RECOVERING, "recovering"),
        (HealthStatus.DEGRADED, Grade.FAILING, "failing"),
        (HealthStatus.DOWN, Grade.DEGRADED, "down"),
        (HealthStatus.DOWN, None, "down"),
    ],
)
def test_people_get_one_word_for_status_and_grade(status: HealthStatus, grade: Grade | None, said: str) -> None:
    assert HealthVerdict(status=status, grade=grade).summary == said


def test_what_is_down_is_no_better_for_being_old() -> None:
    old = with_reasons(down("the live view cannot be read"), ("the live view cannot be read", "live data is 7 s old"))

    assert old.status is HealthStatus.DOWN
    assert old.reasons == ("the live view cannot be read", "live data is 7 s old")


@pytest.mark.req("NFR-005", "FR-012")
@pytest.mark.parametrize("leap", [timedelta(hours=1), timedelta(hours=-1)])
def test_a_jump_of_the_wall_clock_changes_nothing(leap: timedelta) -> None:
    beat = msgspec.structs.replace(a_beat(), beat_monotonic=999.0, unlisted_seconds={"crex": 2.0})
    read = msgspec.structs.replace(a_record(), last_poll_monotonic=998.0)

    judged = assess_health([beat], [read], Moment(NOW + leap, 1000.0))

    assert (judged.status, judged.reasons) == (HealthStatus.HEALTHY, ())


@pytest.mark.req("FR-012")
@pytest.mark.parametrize(
    ("silent", "unread", "unlisted", "reason"),
    [
        (15.5, 1.0, 1.0, "no heartbeat from a scraper for 16 s"),
        (1.0, 61.0, 1.0, "in play and older than 60 s: crex_M1"),
        (1.0, 181.0, 1.0, "no match in play was read for 180 s"),
        (1.0, 1.0, 180.0, "the listing of crex was not read for 181 s"),
    ],
)
def test_a_wall_clock_set_back_hides_nothing(silent: float, unread: float, unlisted: float, reason: str) -> None:
    beat = msgspec.structs.replace(a_beat(), beat_monotonic=1000.0 - silent, unlisted_seconds={"crex": unlisted})
    record = msgspec.structs.replace(a_record(), last_poll_monotonic=1000.0 - unread)

    judged = assess_health([beat], [record], Moment(NOW - timedelta(hours=1), 1000.0))

    assert judged.reasons[0] == reason


def a_note(scope: str, subject: str = "crex", state: str = "open", seconds: float | None = None) -> BreakerNote:
    """Return a note of a heartbeat that is a second old; `seconds` are left now."""
    left = None if seconds is None else seconds + 1
    return BreakerNote(scope=scope, subject=subject, state=state, since=NOW, left_seconds=left, reason="secret")


@pytest.mark.parametrize(
    ("ages", "said"),
    [
        ((), "no scraper has run here yet"),
        ((16,), "no heartbeat from a scraper for 16 s"),
        ((5000, 360), "no heartbeat from a scraper for 6 min"),
        ((3600 * 5,), "no heartbeat from a scraper for 5 h"),
        ((86400 * 3,), "no heartbeat from a scraper for 3 days"),
        ((-3600, 60), "no heartbeat from a scraper for 60 s"),
        ((-3600,), "the last heartbeat lies in the future: the clock was set back"),
    ],
)
def test_silence_is_reported_with_its_length(ages: tuple[float, ...], said: str) -> None:
    assert silence_reason([a_beat(ago=age) for age in ages], MOMENT) == said


def test_a_scraper_that_stopped_in_order_is_reported_as_stopped() -> None:
    missed, over = a_beat("node-1", ago=90), replace(a_beat("node-2", ago=3), is_over=True)

    assert silence_reason([missed, over], MOMENT) == "the last scraper stopped 3 s ago, as requested"
    assert silence_reason([over, a_beat("node-1", ago=1)], MOMENT) == "no heartbeat from a scraper for 1 s"
    assert live_beats([missed, over], MOMENT) == []


@pytest.mark.parametrize(
    ("note", "said"),
    [
        (a_note("rest", seconds=42), "crex is rate-limited for another 42 s (Retry-After)"),
        (
            a_note("target", "api.test", seconds=600),
            "circuit open for target api.test for up to 10 min, probed meanwhile",
        ),
        (a_note("target", "api.test", seconds=-1), "circuit open for target api.test"),
        (a_note("source", state="half_open"), "circuit half-open for source crex"),
        (a_note("layout", "crex live"), "circuit open for layout crex live"),
    ],
)
def test_open_circuits_are_reported_without_error_texts(note: BreakerNote, said: str) -> None:
    assert list(open_circuits([replace(a_beat(), breakers=(note,))], MOMENT)) == [said]


def test_whole_sites_are_named_before_single_matches_and_the_rest_is_counted() -> None:
    matches = tuple(a_note("match", f"crex_M{number}") for number in range(1, 7))

    reported = list(open_circuits([replace(a_beat(), breakers=(*matches, a_note("rest")))], MOMENT))

    assert reported[0] == "crex is rate-limited (Retry-After)"
    assert reported[-1] == "and 2 more open circuits"
    assert len(reported) == 6


RECOVERED, IN_VAIN, PENDING = RecoveryOutcome.RECOVERED, RecoveryOutcome.NOT_RECOVERED, RecoveryOutcome.PENDING


def a_restart(outcome: RecoveryOutcome, ago: float, subject: str = "api") -> Recovery:
    began_at = NOW - timedelta(seconds=ago)
    return Recovery(
        id="r",
        kind=RecoveryKind.RESTART,
        trigger="it died",
        subject=subject,
        process="up",
        began_at=began_at,
        outcome=outcome,
    )


@pytest.mark.parametrize(
    ("recoveries", "is_told"),
    [
        ([], False),
        ([a_restart(PENDING, 1)], False),  # once is no habit
        ([a_restart(IN_VAIN, 1)], True),
        ([a_restart(PENDING, 1), a_restart(IN_VAIN, 60)], True),
        ([a_restart(RECOVERED, 1), a_restart(IN_VAIN, 60)], False),
        ([a_restart(PENDING, 1), a_restart(RECOVERED, 60), a_restart(IN_VAIN, 70)], False),
        ([a_restart(IN_VAIN, 160)], False),  # of a life before
        ([a_restart(IN_VAIN, 1, subject="scraper")], False),  # its heartbeat shows that
    ],
)
def test_an_api_that_keeps_dying_is_reported(recoveries: list[Recovery], is_told: bool) -> None:
    said = start_failure("api", recoveries, NOW)

    assert said == ("the API keeps failing after its start: it died (see its log)" if is_told else None)


def test_a_scraper_that_cannot_store_anything_is_down_whatever_its_grade() -> None:
    beats = [replace(graded(Grade.HEALTHY), store_problem="matches.db: the disk is full")]

    verdict = assess_health(beats, [a_record()], MOMENT)

    assert (verdict.status, verdict.grade) == (HealthStatus.DOWN, Grade.HEALTHY)
    assert verdict.reasons == ("node-1 cannot store anything: matches.db: the disk is full",)


def test_matches_whose_stored_data_are_damaged_are_named_also_when_nothing_is_read() -> None:
    beats = [replace(a_beat(), damaged_matches=("crex_M7",))]

    alone = assess_health(beats, [], MOMENT)
    unread = assess_health(beats, [a_record(polled=600)], MOMENT)

    sentence = "not polled, because stored data are damaged: crex_M7"
    assert (alone.status, alone.reasons) == (HealthStatus.DEGRADED, (sentence,))
    assert unread.is_unread
    assert sentence in unread.reasons


def test_a_store_that_cannot_be_read_is_down_and_no_scraper_ran_contradicts_that() -> None:
    verdict = with_store_problems(assess_health([], [], MOMENT), ("the store is lost",))

    assert (verdict.status, verdict.reasons) == (HealthStatus.DOWN, ("the store is lost",))
    assert with_store_problems(verdict, ()) is verdict
