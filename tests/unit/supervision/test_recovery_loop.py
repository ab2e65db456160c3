"""The monitor in virtual time: what it sees, does, and writes down."""

import asyncio
from collections.abc import Awaitable, Callable, Collection
from datetime import datetime, timedelta

import pytest
from msgspec.structs import replace

from longstop.errors import RestartNeeded
from longstop.model.match import MatchStatus, Phase
from longstop.model.recovery import RecoveryKind, RecoveryOutcome
from longstop.supervision.health_grade_and_recovery import Grade
from longstop.supervision.recovery_loop import RECYCLE_WITHIN_SECONDS, RESTART_AGAIN_SECONDS, HealthMonitor
from longstop.telemetry.bus import Bus
from longstop.testing import VirtualClock, run_virtual
from tests.memory import MemorySink
from tests.readers import a_record
from tests.unit.supervision.test_recovery_audit import RecordedAudit


class Scenario:
    """A scraper under watch: its matches are read until they are stuck."""

    def __init__(self, clock: VirtualClock | None = None) -> None:
        self.clock = clock or VirtualClock()
        self.sink = MemorySink()
        self.records = {number: a_record(number) for number in (1, 2)}
        self.stuck: set[int] = set()
        self.recycled: list[tuple[str, frozenset[int] | None]] = []
        self.on_recycle: Callable[[], Awaitable[None]] | None = None
        self.pids = [7]
        self.exhausted: tuple[str, ...] = ()
        self.audit = RecordedAudit(self.clock)
        self.monitor = HealthMonitor(
            "node-1",
            recycle=self._recycle,
            recoveries=self.audit,
            pids=lambda: self.pids,
            bus=Bus([self.sink]),
            clock=self.clock,
            exhausted=lambda: self.exhausted,
        )

    @property
    def grade(self) -> Grade:
        return self.monitor.state.grade

    @property
    def reported(self) -> list[str]:
        return [event.name for event in self.sink.events]

    async def live(self, seconds: float) -> None:
        """Let this many seconds pass, with an evaluation each."""
        for _ in range(round(seconds)):
            for number in self.records.keys() - self.stuck:
                self.change(number, **self.poll)
            self.monitor.evaluate(list(self.records.values()))
            await asyncio.sleep(1)

    @property
    def poll(self) -> dict[str, object]:
        """The fields of a record that a successful poll sets."""
        return {"last_poll_at": self.clock.now(), "last_poll_monotonic": self.clock.monotonic()}

    def change(self, number: int, **fields: object) -> None:
        self.records[number] = replace(self.records[number], **fields)

    async def _recycle(self, reason: str, match_ids: Collection[int] | None = None) -> None:
        self.recycled.append((reason, frozenset(match_ids) if match_ids is not None else None))
        self.pids = [pid + 1 for pid in self.pids]
        if self.on_recycle is not None:
            await self.on_recycle()


def run_scenario(script: Callable[[Scenario], Awaitable[None]]) -> Scenario:
    async def run() -> Scenario:
        made = Scenario()
        await script(made)
        return made

    return run_virtual(run())


@pytest.mark.req("MON-8")
def test_a_stall_goes_through_the_grades_to_a_recycle_and_back() -> None:
    async def script(scenario: Scenario) -> None:
        async def cure() -> None:
            scenario.stuck.clear()

        scenario.on_recycle = cure
        await scenario.live(30)
        scenario.stuck = {1, 2}
        await scenario.live(200)

    seen = run_scenario(script)

    assert [name for name in seen.reported if name.startswith("health.")] == [
        "health.degraded",
        "health.failing",
        "health.recovering",
        "health.recovered",
    ]
    assert seen.grade is Grade.HEALTHY
    assert len(seen.recycled) == 1


@pytest.mark.req("MON-9")
def test_a_recycle_is_recorded_with_its_observed_outcome() -> None:
    async def script(scenario: Scenario) -> None:
        async def cure() -> None:
            await asyncio.sleep(6)
            scenario.stuck.clear()

        scenario.on_recycle = cure
        scenario.stuck = {1, 2}
        await scenario.live(150)

    (entry,) = run_scenario(script).audit.ended

    assert (entry.kind, entry.outcome, entry.subject) == (RecoveryKind.RECYCLE, RecoveryOutcome.RECOVERED, "node-1")
    assert entry.trigger.startswith("nothing in play was read for ")
    assert entry.observed == "crex_M1 and 1 more were read again"
    assert (entry.pids_before, entry.pids_after) == ((7,), (8,))
    assert entry.duration_seconds is not None
    assert 6 <= entry.duration_seconds <= 8


@pytest.mark.req("MON-9")
def test_a_recycle_without_an_effect_within_two_minutes_has_failed() -> None:
    async def script(scenario: Scenario) -> None:
        scenario.stuck = {1}
        await scenario.live(290)

    seen = run_scenario(script)

    (entry,) = seen.audit.ended
    assert entry.outcome is RecoveryOutcome.NOT_RECOVERED
    assert entry.duration_seconds is not None
    assert 120 <= entry.duration_seconds <= 122
    # A poll of another match is no proof: match 2 was read all the time.
    assert seen.recycled[0] == ("not read for 120 s: crex_M1", frozenset({1}))


@pytest.mark.req("MON-9")
def test_a_poll_that_shows_the_end_of_the_match_is_a_recovery() -> None:
    async def script(scenario: Scenario) -> None:
        async def cure() -> None:
            await asyncio.sleep(1)
            scenario.change(1, status=MatchStatus.COMPLETED, **scenario.poll)

        scenario.on_recycle = cure
        scenario.stuck = {1}
        await scenario.live(290)

    seen = run_scenario(script)

    (entry,) = seen.audit.ended
    assert (entry.outcome, entry.observed) == (RecoveryOutcome.RECOVERED, "crex_M1 was read again")
    assert seen.grade is Grade.HEALTHY


@pytest.mark.req("MON-9")
@pytest.mark.parametrize("change", [{"status": MatchStatus.COMPLETED}, {"is_on_hold": True}, None])
def test_a_recycle_ends_well_when_its_matches_are_over_paused_or_watched_no_more(
    change: dict[str, object] | None,
) -> None:
    async def script(scenario: Scenario) -> None:
        async def leave() -> None:
            if change is None:
                del scenario.records[1]
            else:
                scenario.change(1, **change)

        scenario.on_recycle = leave
        scenario.stuck = {1}
        await scenario.live(290)

    (entry,) = run_scenario(script).audit.ended

    assert (entry.outcome, entry.observed) == (RecoveryOutcome.RECOVERED, "no match is left to read")


def test_a_match_that_is_paused_after_a_recycle_was_not_helped() -> None:
    async def script(scenario: Scenario) -> None:
        async def rest() -> None:
            scenario.change(1, phase=Phase.PAUSED)

        scenario.on_recycle = rest
        scenario.stuck = {1}
        await scenario.live(290)

    (entry,) = run_scenario(script).audit.ended

    assert entry.outcome is RecoveryOutcome.NOT_RECOVERED


def test_a_stall_that_no_recycle_helps_asks_for_a_new_process() -> None:
    async def script(scenario: Scenario) -> None:
        await scenario.live(5)
        scenario.stuck = {1, 2}
        with pytest.raises(RestartNeeded, match=r"nothing in play was read for \d+ s, and recycling did not help"):
            await scenario.live(600)

    seen = run_scenario(script)

    assert [entry.outcome for entry in seen.audit.ended] == [RecoveryOutcome.NOT_RECOVERED] * 2


async def joined_every(seconds: float, scenario: Scenario) -> None:
    """Let one match after the other come into play that is not read either."""
    for number in range(3, 40):
        scenario.stuck.add(number)
        scenario.records[number] = a_record(number)
        await scenario.live(seconds)


@pytest.mark.req("MON-8")
def test_newcomers_to_a_stall_do_not_put_the_last_resort_off() -> None:
    moments = []

    async def script(scenario: Scenario) -> None:
        await scenario.live(5)
        scenario.stuck = {1, 2}
        with pytest.raises(RestartNeeded):
            await joined_every(50, scenario)
        moments.append(scenario.clock.monotonic())

    seen = run_scenario(script)

    assert len(seen.recycled) == 2
    assert moments[0] < 600


def test_a_stall_of_one_that_was_given_up_before_is_only_for_the_others_to_be_recycled() -> None:
    async def script(scenario: Scenario) -> None:
        scenario.stuck = {1}
        await scenario.live(600)
        scenario.stuck = {1, 2}
        await scenario.live(150)

    assert [match_ids for _, match_ids in run_scenario(script).recycled] == [
        frozenset({number}) for number in (1, 1, 2)
    ]


@pytest.mark.req("MON-8")
def test_a_site_that_refuses_everything_is_failing_and_gets_no_more_requests() -> None:
    async def script(scenario: Scenario) -> None:
        await scenario.live(5)
        scenario.stuck = {1, 2}
        await scenario.live(20)
        for number in scenario.stuck:
            scenario.change(number, phase=Phase.PAUSED)
        await scenario.live(4 * 3600)

    seen = run_scenario(script)

    assert (seen.grade, seen.recycled) == (Grade.FAILING, [])
    assert seen.reported.count("health.failing") == 1
    assert seen.monitor.state.reason.endswith(" s; 2 paused")


def test_matches_that_are_refused_and_paused_in_turn_are_no_reason_to_recycle() -> None:
    async def script(scenario: Scenario) -> None:
        await scenario.live(5)
        scenario.stuck = {1, 2}
        for number in range(3, 30):
            for before in scenario.records:
                scenario.change(before, phase=Phase.PAUSED)
            scenario.stuck.add(number)
            scenario.records[number] = a_record(number, polled=None)
            await scenario.live(40)

    seen = run_scenario(script)

    assert (seen.grade, seen.recycled) == (Grade.FAILING, [])


def test_the_last_resort_is_not_taken_again_at_once_by_a_process_that_has_read_nothing() -> None:
    moments = []

    async def script(scenario: Scenario) -> None:
        scenario.stuck = {1, 2}
        with pytest.raises(RestartNeeded):
            await scenario.live(2 * RESTART_AGAIN_SECONDS)
        moments.append(scenario.clock.monotonic())

    seen = run_scenario(script)

    assert RESTART_AGAIN_SECONDS <= moments[0] <= RESTART_AGAIN_SECONDS + 60
    assert len(seen.recycled) == 2


def test_polls_of_the_process_before_do_not_count_as_its_own() -> None:
    moments = []

    async def script(scenario: Scenario) -> None:
        for number in scenario.records:
            scenario.change(number, last_poll_monotonic=scenario.clock.monotonic() - 30)
        scenario.stuck = {1, 2}
        with pytest.raises(RestartNeeded):
            await scenario.live(2 * RESTART_AGAIN_SECONDS)
        moments.append(scenario.clock.monotonic())

    run_scenario(script)

    assert moments[0] >= RESTART_AGAIN_SECONDS


def test_one_match_that_nothing_helps_is_left_to_its_own_watch() -> None:
    async def script(scenario: Scenario) -> None:
        scenario.stuck = {1}
        await scenario.live(3600)

    seen = run_scenario(script)

    assert len(seen.recycled) == 2
    assert seen.grade is Grade.FAILING
    assert seen.monitor.state.reason == "not read for 120 s: crex_M1; recycling did not help"


def test_a_match_that_was_read_in_between_is_helped_again() -> None:
    async def script(scenario: Scenario) -> None:
        scenario.stuck = {1}
        await scenario.live(900)
        scenario.stuck = set()
        await scenario.live(60)
        scenario.stuck = {1}
        await scenario.live(200)

    assert len(run_scenario(script).recycled) == 3


def test_nothing_is_recycled_while_polling_is_blocked() -> None:
    async def script(scenario: Scenario) -> None:
        scenario.stuck = {1, 2}
        for number in scenario.stuck:
            scenario.change(number, is_held=True)
        await scenario.live(900)

    seen = run_scenario(script)

    assert seen.recycled == []
    assert seen.grade is Grade.FAILING
    assert seen.monitor.state.reason.endswith("; polling is blocked by an open circuit or a rate limit")


def test_when_the_site_is_back_the_failing_ends_without_a_recycle() -> None:
    async def script(scenario: Scenario) -> None:
        scenario.stuck = {1, 2}
        for number in scenario.stuck:
            scenario.change(number, is_held=True)
        await scenario.live(300)
        scenario.stuck = set()
        await scenario.live(50)

    seen = run_scenario(script)

    assert (seen.recycled, seen.grade) == ([], Grade.HEALTHY)


def test_an_idle_night_is_healthy() -> None:
    async def script(scenario: Scenario) -> None:
        scenario.records.clear()
        await scenario.live(3600)

    seen = run_scenario(script)

    assert (seen.grade, seen.reported) == (Grade.HEALTHY, [])


class SetClock(VirtualClock):
    """A clock that is set after twenty seconds."""

    def __init__(self, hours: int) -> None:
        super().__init__()
        self._hours = hours

    def now(self) -> datetime:
        return super().now() + timedelta(hours=self._hours if self.monotonic() >= 20 else 0)


@pytest.mark.parametrize("hours", [1, -1])
def test_a_wall_clock_that_is_set_moves_no_grade(hours: int) -> None:
    async def run() -> Scenario:
        made = Scenario(clock=SetClock(hours))
        await made.live(300)
        return made

    assert run_virtual(run()).reported == []


def test_a_recycle_that_fails_or_hangs_is_reported_and_its_outcome_observed() -> None:
    async def script(scenario: Scenario) -> None:
        async def hang() -> None:
            await asyncio.sleep(3600)

        scenario.on_recycle = hang
        scenario.stuck = {1, 2}
        await scenario.live(250)

    seen = run_scenario(script)

    assert RECYCLE_WITHIN_SECONDS < 120
    assert "task.failed" in seen.reported
    assert seen.audit.ended[0].outcome is RecoveryOutcome.NOT_RECOVERED


def test_an_exhausted_resource_is_reported_once_and_part_of_the_grade_until_it_is_over() -> None:
    reasons = []

    async def script(scenario: Scenario) -> None:
        scenario.exhausted = ("file descriptors",)
        await scenario.live(40)
        reasons.append((scenario.grade, scenario.monitor.state.reason))
        scenario.exhausted = ()
        await scenario.live(60)

    seen = run_scenario(script)

    assert reasons == [(Grade.DEGRADED, "out of file descriptors")]
    assert seen.reported == ["resources.exhausted", "health.degraded", "resources.recovered", "health.recovered"]
    assert seen.recycled == []


def test_an_exhausted_resource_that_leads_to_a_stall_leads_to_a_recycle() -> None:
    async def script(scenario: Scenario) -> None:
        for number in scenario.records:
            scenario.change(number, is_held=True, lacking="memory")
        scenario.stuck = {1, 2}
        await scenario.live(130)

    seen = run_scenario(script)

    assert seen.recycled == [
        ("nothing in play was read for 90 s; out of memory", frozenset({1, 2})),
    ]


def test_an_exhausted_resource_is_no_reason_to_recycle_a_blocked_match() -> None:
    async def script(scenario: Scenario) -> None:
        scenario.stuck = {1, 2}
        for number in scenario.stuck:
            scenario.change(number, is_held=True)
        scenario.exhausted = ("room for temporary files",)
        await scenario.live(900)

    seen = run_scenario(script)

    assert seen.recycled == []
    assert seen.grade is Grade.FAILING


def test_an_exhausted_resource_lasts_until_the_next_poll_of_the_match() -> None:
    async def script(scenario: Scenario) -> None:
        for _ in range(3):  # tried every 30 s, and missed each time for a moment only
            scenario.change(1, is_held=True, lacking="processes")
            scenario.exhausted = ("processes",)
            await scenario.live(15)
            scenario.exhausted = ()
            await scenario.live(15)
        scenario.change(1, is_held=False, lacking=None)
        await scenario.live(2)

    seen = run_scenario(script)

    assert [name for name in seen.reported if name.startswith("resources.")] == [
        "resources.exhausted",
        "resources.recovered",
    ]
