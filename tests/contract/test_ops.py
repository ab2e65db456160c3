"""What the operations tables must do, whatever they are made of: errors, audit, commands, health log, pauses."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from datetime import timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace

from longstop.errors import IllegalTransition, UsageError
from longstop.model.command_and_standing_order import (
    EXPIRES_AFTER_SECONDS,
    LOST_AFTER_SECONDS,
    Command,
    CommandKind,
    CommandState,
    Refusal,
    Reply,
    StandingKind,
)
from longstop.model.episode import Episode, EpisodeChange, ErrorSeen, ErrorType, Resolution, ResolutionMethod
from longstop.model.recovery import Recovery, RecoveryKind, RecoveryOutcome
from longstop.model.request_pause import PauseKind, RequestPause
from longstop.storage.base import (
    COMMANDS_KEPT,
    KEEP_FOR,
    MAX_ARGUMENT_CHARACTERS,
    MAX_COMMANDS_WAITING,
    RECOVERIES_KEPT,
    RECOVERIES_KEPT_OF_THE_SAME,
    AuditStore,
    CommandStore,
    ErrorFilter,
    ErrorStore,
    HealthLogStore,
    HealthRow,
)
from tests.contract.stores import OPERATIONS, OpsBackend
from tests.readers import NOW, ManualClock


@pytest.fixture(params=list(OPERATIONS))
def ops(request: pytest.FixtureRequest, tmp_path: Path) -> OpsBackend:
    return OPERATIONS[request.param](tmp_path)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


# --- errors -----------------------------------------------------------------------------------------------------------


@pytest.fixture
async def errors(ops: OpsBackend) -> AsyncIterator[ErrorStore]:
    store = ops.open_errors()
    yield store
    await store.aclose()


def met(seconds: float = 0.0, signature: str = "abc", count: int = 1) -> dict[Episode, EpisodeChange]:
    """Return the change that an error makes this many seconds after `NOW`."""
    episode, at = Episode("crex_11HD", signature), NOW + timedelta(seconds=seconds)
    error = ErrorSeen(
        episode=episode,
        scraper_id="node-1",
        match_id=1,
        timestamp=at,
        error_type=ErrorType.NETWORK,
        error_class="FetchTimeout",
        error_message="late – “very”",
        source="crex",
        operation="poll",
        stack_trace="line 1\nline 2",
        url="https://crex.com/1",
        retry_attempt=2,
        snapshot="storage/x.html",
    )
    return {episode: EpisodeChange(error=error, count=count, last_seen=at)}


def over(seconds: float, signature: str = "abc") -> dict[Episode, EpisodeChange]:
    end = Resolution(at=NOW + timedelta(seconds=seconds), method=ResolutionMethod.AUTO_RETRY)
    return {Episode("crex_11HD", signature): EpisodeChange(resolution=end)}


async def signatures(errors: ErrorStore, wanted: ErrorFilter | None = None) -> list[str]:
    return [each.episode.signature for each in await errors.recent(wanted or ErrorFilter())]


async def test_where_nothing_was_written_there_are_no_errors(errors: ErrorStore) -> None:
    assert await errors.recent(ErrorFilter()) == []
    assert await errors.open_episodes() == []


async def test_an_error_comes_back_with_all_that_was_written(errors: ErrorStore) -> None:
    [(episode, change)] = met(count=3).items()
    assert change.error is not None

    await errors.write({episode: change})

    [stored] = await errors.recent(ErrorFilter())
    assert {name: getattr(stored, name) for name in ErrorSeen.__struct_fields__} == {
        name: getattr(change.error, name) for name in ErrorSeen.__struct_fields__
    }
    assert (stored.count, stored.last_seen, stored.resolution) == (3, NOW, None)
    assert await errors.open_episodes() == [episode]


async def test_the_same_error_again_raises_the_count_of_its_episode(errors: ErrorStore) -> None:
    for seconds in range(5):
        await errors.write(met(seconds))

    [stored] = await errors.recent(ErrorFilter())
    assert (stored.count, stored.timestamp, stored.last_seen) == (5, NOW, NOW + timedelta(seconds=4))


async def test_an_episode_that_is_over_is_no_longer_open(errors: ErrorStore) -> None:
    await errors.write(met())
    await errors.write(over(10))

    [stored] = await errors.recent(ErrorFilter())
    assert stored.resolution == Resolution(at=NOW + timedelta(seconds=10), method=ResolutionMethod.AUTO_RETRY)
    assert await errors.open_episodes() == []


async def test_an_error_that_is_back_within_a_minute_was_never_over(errors: ErrorStore) -> None:
    for change in (met(0), over(10), met(60), over(70), met(131)):
        await errors.write(change)

    newest, first = await errors.recent(ErrorFilter())
    assert (first.count, first.resolution is not None) == (2, True)
    assert (newest.count, newest.resolution) == (1, None)


async def test_what_another_process_marked_stays_marked_when_the_error_is_back(errors: ErrorStore) -> None:
    await errors.write(met(0))
    [stored] = await errors.recent(ErrorFilter())

    marked = [await errors.resolve(each, NOW) for each in (stored.id, stored.id, stored.id + 6)]
    await errors.write(met(1))

    newest, first = await errors.recent(ErrorFilter())
    assert marked == [True, False, False]
    assert first.resolution == Resolution(at=NOW, method=ResolutionMethod.MANUAL)
    assert (newest.id > first.id, newest.resolution) == (True, None)


@pytest.mark.req("NFR-017")
async def test_resolved_errors_are_kept_for_thirty_days_and_open_ones_for_longer(errors: ErrorStore) -> None:
    for signature in ("open", "old", "young"):
        await errors.write(met(100 if signature == "young" else 0, signature))
    for signature in ("old", "young"):
        await errors.write(over(200, signature))

    await errors.prune(NOW + timedelta(days=30, seconds=50))

    assert await signatures(errors) == ["young", "open"]


async def test_beyond_a_number_of_rows_the_oldest_resolved_ones_go_first(errors: ErrorStore) -> None:
    for number, signature in enumerate(("open", "first", "second", "third")):
        await errors.write(met(number, signature))
    for signature in ("first", "second", "third"):
        await errors.write(over(10, signature))

    await errors.prune(NOW, max_rows=2)

    assert await signatures(errors) == ["third", "open"]


async def test_errors_are_found_by_match_by_name_and_by_being_open(errors: ErrorStore) -> None:
    await errors.write(met(0, "a") | met(1, "b"))
    await errors.write(over(2, "a"))

    assert await signatures(errors) == ["b", "a"]
    assert await signatures(errors, ErrorFilter(limit=1)) == ["b"]
    assert await signatures(errors, ErrorFilter(ref="crex_11HD", is_open=True)) == ["b"]
    assert await signatures(errors, ErrorFilter(ref="crex_other")) == []
    assert await signatures(errors, ErrorFilter(match_id=1)) == ["b", "a"]
    assert await signatures(errors, ErrorFilter(match_id=2)) == []


@pytest.mark.req("NFR-009")
async def test_errors_outlive_the_process_that_wrote_them(ops: OpsBackend, errors: ErrorStore) -> None:
    await errors.write(met())
    await errors.aclose()

    again = ops.open_errors()
    assert await again.open_episodes() == list(met())
    await again.write(met(1))

    assert [each.count for each in await again.recent(ErrorFilter())] == [2]
    await again.aclose()


# --- audit ------------------------------------------------------------------------------------------------------------


@pytest.fixture
async def audit(ops: OpsBackend) -> AsyncIterator[AuditStore]:
    store = ops.open_audit()
    yield store
    await store.aclose()


def begun(number: int, kind: RecoveryKind = RecoveryKind.RESTART, subject: str = "api") -> Recovery:
    return Recovery(
        id=f"{kind} {number:03}",
        kind=kind,
        trigger="it does not answer",
        subject=subject,
        process="scraper",
        began_at=NOW + timedelta(seconds=number),
        pids_before=(7, 8),
    )


def ended(number: int, kind: RecoveryKind = RecoveryKind.RESTART, subject: str = "api") -> Recovery:
    return replace(begun(number, kind, subject), outcome=RecoveryOutcome.RECOVERED, observed="it answers")


async def write_each(audit: AuditStore, recoveries: Iterable[Recovery]) -> None:
    for recovery in recoveries:
        await audit.write([recovery])


async def test_where_nothing_was_done_the_audit_is_empty(audit: AuditStore) -> None:
    assert await audit.recent() == []


@pytest.mark.req("MON-9")
async def test_an_outcome_replaces_what_was_written_at_the_beginning(audit: AuditStore) -> None:
    whole = replace(ended(1), duration_seconds=4.25, pids_after=(9,))

    await audit.write([begun(1)])
    before = await audit.recent()
    await audit.write([whole])

    assert before == [begun(1)]
    assert await audit.recent() == [whole]


@pytest.mark.req("MON-9")
async def test_the_last_hundred_are_kept_the_newest_first(audit: AuditStore) -> None:
    await write_each(audit, (begun(number, subject=f"s{number}") for number in range(RECOVERIES_KEPT + 5)))

    entries = await audit.recent()
    assert [entry.id for entry in entries] == [f"restart {number:03}" for number in reversed(range(5, 105))]
    assert await audit.recent(limit=2) == entries[:2]


@pytest.mark.req("MON-9")
async def test_a_storm_of_the_same_is_counted_and_pushes_nothing_out(audit: AuditStore) -> None:
    rare = ended(0, RecoveryKind.SOFT_RESTART, "scraper")
    storm = (ended(number, RecoveryKind.BROWSER_RECYCLE, "crex") for number in range(1, 60))

    await write_each(audit, [rare, *storm])

    entries, kept = await audit.recent(), RECOVERIES_KEPT_OF_THE_SAME
    assert [entry.count for entry in entries] == [1] * (kept - 1) + [59 - kept + 1, 1]
    assert entries[0].id == "browser_recycle 059"
    assert entries[-1] == rare


@pytest.mark.req("MON-9")
async def test_a_storm_of_one_kind_over_many_subjects_leaves_the_other_kinds_their_place(audit: AuditStore) -> None:
    rare = [ended(number, kind, f"{kind} {number}") for kind in RecoveryKind for number in range(12)]
    storm = [ended(number, RecoveryKind.WATCH_RESTART, f"crex_{number}") for number in range(100, 400)]

    await audit.write([*rare, *storm])

    entries = await audit.recent()
    kept = Counter(entry.kind for entry in entries)
    assert len(entries) == RECOVERIES_KEPT
    assert {kind: kept[kind] for kind in RecoveryKind if kind is not RecoveryKind.WATCH_RESTART} == {
        kind: 12 for kind in RecoveryKind if kind is not RecoveryKind.WATCH_RESTART
    }


@pytest.mark.req("MON-9")
@pytest.mark.parametrize("subjects", [1, RECOVERIES_KEPT], ids=["of the same", "of all"])
async def test_the_newest_is_what_was_written_last_wherever_the_clock_was_set(audit: AuditStore, subjects: int) -> None:
    before = [ended(number, subject=f"s{number % subjects}") for number in range(2 * RECOVERIES_KEPT)]
    set_back = ended(-3600, subject="s0")

    await audit.write(before)
    await write_each(audit, [set_back, replace(set_back, observed="seen later")])

    newest, second, *_ = await audit.recent()
    assert newest == replace(set_back, observed="seen later")
    assert second == before[-1]


async def test_what_is_begun_stays_until_its_outcome_is_seen(audit: AuditStore) -> None:
    first = begun(0, RecoveryKind.WATCH_RESTART, "crex_1")
    storm = (ended(number, RecoveryKind.WATCH_RESTART, "crex_1") for number in range(1, 30))

    await write_each(audit, [first, *storm])

    assert (await audit.recent())[-1] == first


@pytest.mark.req("MON-9")
async def test_a_process_gives_up_what_it_has_begun_itself_and_nothing_else(audit: AuditStore) -> None:
    other = replace(begun(2, subject="another's"), process="up")
    await audit.write([begun(1), ended(3), other])

    await audit.give_up("scraper", "it ended before")

    entries = {entry.id: entry for entry in await audit.recent()}
    given_up = replace(begun(1), outcome=RecoveryOutcome.NOT_RECOVERED, observed="it ended before")
    assert entries == {given_up.id: given_up, other.id: other, ended(3).id: ended(3)}


# --- commands ---------------------------------------------------------------------------------------------------------

#: What `place` takes.
RECYCLE = (CommandKind.RECYCLE, "", "tester")
DONE = Reply(state=CommandState.DONE, answer="It is done.")


@pytest.fixture
async def commands(ops: OpsBackend, clock: ManualClock) -> AsyncIterator[CommandStore]:
    store = ops.open_commands(clock)
    yield store
    await store.aclose()


async def seen(commands: CommandStore, command: Command) -> Command:
    found = await commands.find(command.id)
    assert found is not None
    return found


async def test_a_command_is_placed_taken_and_answered(commands: CommandStore, clock: ManualClock) -> None:
    placed = await commands.place(CommandKind.UNWATCH, "crex_1", "tester")
    clock.advance(1)
    [taken] = await commands.take(8)
    clock.advance(1)
    await commands.answer(taken, Reply(state=CommandState.REFUSED, answer="No.", refusal=Refusal.CONFLICT))

    answered = await seen(commands, placed)
    states = (placed.state, taken.state, answered.state)
    assert states == (CommandState.PENDING, CommandState.TAKEN, CommandState.REFUSED)
    assert (answered.kind, answered.argument, answered.asked_by) == (CommandKind.UNWATCH, "crex_1", "tester")
    assert (answered.answer, answered.refusal, answered.is_answered) == ("No.", Refusal.CONFLICT, True)
    assert (answered.asked_at, answered.answered_at) == (NOW, NOW + timedelta(seconds=2))


async def test_a_command_that_no_one_placed_is_not_found(commands: CommandStore) -> None:
    assert await commands.find(1) is None
    assert await commands.take(8) == []


async def test_commands_are_taken_in_their_order_and_no_more_than_wanted(commands: CommandStore) -> None:
    placed = [(await commands.place(*RECYCLE)).id for _ in range(5)]

    first, second = await commands.take(3), await commands.take(3)

    assert [each.id for each in first + second] == placed


async def test_two_who_take_at_the_same_time_never_get_the_same_one(ops: OpsBackend, clock: ManualClock) -> None:
    stores = [ops.open_commands(clock) for _ in range(4)]
    placed = {(await stores[0].place(*RECYCLE)).id for _ in range(60)}

    async def take_all(store: CommandStore) -> list[int]:
        taken: list[int] = []
        while batch := await store.take(2):
            taken += [each.id for each in batch]
        return taken

    batches = await asyncio.gather(*(take_all(each) for each in stores))

    taken = [number for batch in batches for number in batch]
    assert sorted(taken) == sorted(placed)
    for store in stores:
        await store.aclose()


async def test_an_answer_is_given_once(commands: CommandStore) -> None:
    await commands.place(*RECYCLE)
    [taken] = await commands.take(1)
    await commands.answer(taken, DONE)

    await commands.answer(taken, Reply(state=CommandState.FAILED, answer="Or not."))

    assert (await seen(commands, taken)).answer == "It is done."


async def test_a_state_that_is_no_answer_is_refused(commands: CommandStore) -> None:
    await commands.place(*RECYCLE)
    [taken] = await commands.take(1)

    with pytest.raises(IllegalTransition):
        await commands.answer(taken, Reply(state=CommandState.EXPIRED, answer="Too late."))


@pytest.mark.req("NFR-009")
async def test_what_a_dead_process_has_taken_is_never_done_again(ops: OpsBackend, clock: ManualClock) -> None:
    dead = ops.open_commands(clock)
    placed = await dead.place(*RECYCLE)
    await dead.take(8)
    await dead.aclose()

    successor = ops.open_commands(clock)
    await successor.give_up_taken()

    assert await successor.take(8) == []
    answered = await seen(successor, placed)
    assert (answered.state, "died during this command" in (answered.answer or "")) == (CommandState.FAILED, True)
    await successor.aclose()


async def test_answered_commands_do_not_pile_up_for_ever(commands: CommandStore) -> None:
    first = await commands.place(*RECYCLE)
    for _ in range(COMMANDS_KEPT + 1):
        await commands.answer((await commands.take(1))[0], DONE)
        newest = await commands.place(*RECYCLE)

    assert await commands.find(first.id) is None
    assert await commands.find(newest.id - COMMANDS_KEPT + 1) is not None


async def test_the_number_of_waiting_commands_is_bounded(commands: CommandStore, clock: ManualClock) -> None:
    for _ in range(MAX_COMMANDS_WAITING):
        await commands.place(*RECYCLE)

    with pytest.raises(UsageError, match="already pending"):
        await commands.place(*RECYCLE)
    clock.advance(EXPIRES_AFTER_SECONDS + 1)
    assert (await commands.place(*RECYCLE)).state is CommandState.PENDING


async def test_what_is_too_long_is_refused(commands: CommandStore) -> None:
    argument = "x" * (MAX_ARGUMENT_CHARACTERS + 1)

    with pytest.raises(UsageError, match="characters"):
        await commands.place(CommandKind.WATCH, argument, "tester")


async def test_a_command_that_no_one_takes_expires_and_is_not_done_later(
    commands: CommandStore, clock: ManualClock
) -> None:
    placed = await commands.place(*RECYCLE)

    clock.advance(EXPIRES_AFTER_SECONDS + 1)

    assert await commands.take(8) == []
    expired = await seen(commands, placed)
    assert (expired.state, "Start one" in (expired.answer or "")) == (CommandState.EXPIRED, True)


async def test_reading_a_command_shows_that_it_has_expired(commands: CommandStore, clock: ManualClock) -> None:
    placed = await commands.place(*RECYCLE)

    clock.advance(EXPIRES_AFTER_SECONDS + 1)

    assert (await seen(commands, placed)).state is CommandState.EXPIRED


async def test_a_command_that_was_taken_and_never_answered_is_given_up(
    commands: CommandStore, clock: ManualClock
) -> None:
    placed = await commands.place(*RECYCLE)
    await commands.take(8)

    clock.advance(EXPIRES_AFTER_SECONDS + 1)
    early = await seen(commands, placed)
    clock.advance(LOST_AFTER_SECONDS)

    assert (early.state, (await seen(commands, placed)).state) == (CommandState.TAKEN, CommandState.FAILED)


@pytest.mark.parametrize("hours", [-1, 1])
async def test_a_wall_clock_that_is_set_expires_no_fresh_command(
    commands: CommandStore, clock: ManualClock, hours: int
) -> None:
    await commands.place(*RECYCLE)

    clock.leap(hours * 3600)

    assert len(await commands.take(8)) == 1


@pytest.mark.parametrize("back", [EXPIRES_AFTER_SECONDS + 1, 3600.0])
async def test_a_wall_clock_that_is_set_back_keeps_no_old_command_fresh(
    commands: CommandStore, clock: ManualClock, back: float
) -> None:
    placed = await commands.place(*RECYCLE)

    clock.advance(EXPIRES_AFTER_SECONDS + 1)
    clock.leap(-back)

    assert await commands.take(8) == []
    assert (await seen(commands, placed)).state is CommandState.EXPIRED


@pytest.mark.parametrize(
    ("wall", "states"),
    [
        (EXPIRES_AFTER_SECONDS - 1, (CommandState.TAKEN, CommandState.TAKEN)),
        # The other machine's clock is a little ahead of ours.
        (-5.0, (CommandState.TAKEN, CommandState.TAKEN)),
        (EXPIRES_AFTER_SECONDS + 1, (CommandState.EXPIRED, CommandState.TAKEN)),
        (timedelta(days=3).total_seconds(), (CommandState.EXPIRED, CommandState.FAILED)),
        # The clock was set back with the boot.
        (-3600.0, (CommandState.EXPIRED, CommandState.FAILED)),
    ],
)
@pytest.mark.parametrize("monotonic", [1.0, -1_000_000.0, 1_000_000.0])
async def test_after_a_reboot_and_on_another_machine_a_command_expires_by_the_wall_clock(
    ops: OpsBackend, clock: ManualClock, wall: float, states: tuple[CommandState, CommandState], monotonic: float
) -> None:
    """Monotonic clocks of two boots have nothing to do with each other, and come by the same numbers again."""
    before = ops.open_commands(clock)
    taken = await before.place(*RECYCLE)
    await before.take(1)
    pending = await before.place(*RECYCLE)
    await before.aclose()

    clock.advance(monotonic)
    clock.leap(wall - monotonic)
    commands = ops.open_commands(clock, boot="another boot")
    await commands.take(8)

    found = [(await seen(commands, each)).state for each in (pending, taken)]
    assert tuple(found) == states
    await commands.aclose()


async def test_where_a_kernel_does_not_name_its_boots_orders_are_taken_all_the_same(
    ops: OpsBackend, clock: ManualClock
) -> None:
    asking, commands = ops.open_commands(clock), ops.open_commands(clock, boot=None)
    await asking.place(*RECYCLE)

    clock.leap(3600)

    assert len(await commands.take(8)) == 1
    await asking.aclose()
    await commands.aclose()


async def test_a_standing_order_stays_until_it_is_taken_back(ops: OpsBackend, clock: ManualClock) -> None:
    commands = ops.open_commands(clock)
    put = [await commands.put_order(StandingKind.UNWATCHED, "crex_1", client) for client in ("first", "second")]
    await commands.put_order(StandingKind.PAUSED_SOURCE, "crex", "first")
    await commands.aclose()

    clock.advance(timedelta(days=400).total_seconds())
    again = ops.open_commands(clock, boot="the next boot")
    orders = await again.standing()
    lifted = [await again.lift_order(StandingKind.UNWATCHED, "crex_1") for _ in range(2)]

    assert [(each.kind, each.subject, each.asked_by, each.since) for each in orders] == [
        (StandingKind.PAUSED_SOURCE, "crex", "first", NOW),
        (StandingKind.UNWATCHED, "crex_1", "first", NOW),
    ]
    assert (put, lifted) == ([True, False], [True, False])
    assert len(await again.standing()) == 1
    await again.aclose()


# --- health log -------------------------------------------------------------------------------------------------------


@pytest.fixture
async def health_log(ops: OpsBackend) -> AsyncIterator[HealthLogStore]:
    store = ops.open_health_log()
    yield store
    await store.aclose()


def row(seconds: float, status: str = "healthy") -> HealthRow:
    return HealthRow(scraper_id="n", timestamp=NOW + timedelta(seconds=seconds), health_status=status, error_count=0)


async def moments(log: HealthLogStore) -> list[float]:
    """Return when each row was, in seconds after `NOW`, in the order of the log."""
    return [(each.timestamp - NOW).total_seconds() for each in await log.recent()]


async def test_where_nothing_ran_the_health_log_is_empty(health_log: HealthLogStore) -> None:
    assert await health_log.recent() == []


@pytest.mark.req("FLD-10")
async def test_a_row_comes_back_with_what_was_measured_and_nothing_else(health_log: HealthLogStore) -> None:
    whole = HealthRow(
        scraper_id="node-1",
        timestamp=NOW,
        health_status="degraded",
        error_count=3,
        match_id=7,
        ref="crex_M7",
        memory_mb=50.5,
        cpu_percent=7.5,
        update_latency_ms=12,
        polling_interval_seconds=2.5,
        uptime_seconds=600.0,
        last_update_age_seconds=4.0,
    )

    await health_log.write([row(0), whole])

    assert await health_log.recent() == [whole, row(0)]


@pytest.mark.req("NFR-017")
async def test_rows_are_kept_for_thirty_days(health_log: HealthLogStore) -> None:
    days = [timedelta(days=each).total_seconds() for each in (-31, -29, 0)]
    await health_log.write([row(each) for each in days])

    await health_log.prune(NOW)

    assert timedelta(days=30) <= KEEP_FOR
    assert await moments(health_log) == [0, timedelta(days=-29).total_seconds()]


async def test_however_much_is_written_there_is_a_limit(health_log: HealthLogStore) -> None:
    await health_log.write([row(each) for each in range(5)])

    await health_log.prune(NOW, max_rows=3)

    assert await moments(health_log) == [4, 3, 2]


async def test_a_clock_that_is_set_back_does_not_cost_the_newest_rows(health_log: HealthLogStore) -> None:
    await health_log.write([row(each) for each in (1, 2, 3, -3600)])

    await health_log.prune(NOW, max_rows=3)

    assert await moments(health_log) == [-3600, 3, 2]


async def test_the_history_is_that_of_one_match_or_of_all_since_a_moment(health_log: HealthLogStore) -> None:
    of_match = [replace(row(each, "failing"), match_id=7, ref="crex_M7") for each in (0, 10)]
    await health_log.write([row(0), *of_match, row(20)])

    late = await health_log.recent(since=NOW + timedelta(seconds=10))
    newest = await health_log.recent(limit=1)
    by_number, by_ref = await health_log.recent(match_id=7), await health_log.recent(ref="crex_M7")
    other = await health_log.recent(ref="crex_M8")

    assert late == [row(20), of_match[1]]
    assert newest == [row(20)]
    assert by_number == by_ref == list(reversed(of_match))
    assert other == []


# --- pauses of requests -----------------------------------------------------------------------------------------------


def pause(subject: str, boot: str | None = "this boot") -> RequestPause:
    return RequestPause(
        source="crex",
        kind=PauseKind.TARGET_CIRCUIT,
        subject=subject,
        until=NOW,
        until_monotonic=12.5,
        boot=boot,
        reason="5 failures in a row – “all”",
    )


async def test_pauses_are_those_that_were_stored_last_and_outlive_their_writer(ops: OpsBackend) -> None:
    first, second = ops.open_pauses(), ops.open_pauses()
    before = await first.read()
    await first.replace([pause("crex.com"), pause("api.crex.com")])
    await first.replace([pause("crex.com", boot=None), pause("cdn.crex.com")])
    await first.aclose()

    after = await second.read()
    await second.aclose()

    assert before == []
    assert sorted(after, key=lambda each: each.subject) == [pause("cdn.crex.com"), pause("crex.com", boot=None)]
