"""An unresponsive process is detected, killed and restarted; the other one goes on."""

import os
import signal
from time import monotonic

import pytest

from longstop.model.recovery import Recovery, RecoveryKind, RecoveryOutcome
from tests.acceptance.harness import assert_nothing_lost
from tests.chaos.live_deployment import LiveDeployment, live_deployment, until, until_true
from tests.readers import audited

pytestmark = pytest.mark.timeout(240)

OTHERS = {"scraper": "api", "api": "scraper"}


def seen_restarts(running: LiveDeployment) -> list[Recovery]:
    """Return the restarts in the audit whose outcome was seen."""
    ended = [each for each in audited(running.deployment.data) if each.outcome is not RecoveryOutcome.PENDING]
    return [each for each in ended if each.subject in OTHERS]


@pytest.mark.req("NFR-005", "NFR-009", "MON-9")
@pytest.mark.parametrize("target", OTHERS)
async def test_a_stopped_process_is_restarted_and_the_other_goes_on(target: str) -> None:
    async with live_deployment(LONGSTOP_STANDSTILL_SECONDS="5", LONGSTOP_SETTLED_SECONDS="0.5") as running:
        stopped, other = running.pid_of(target), running.pid_of(OTHERS[target])
        assert stopped is not None
        moment = monotonic()
        os.kill(stopped, signal.SIGSTOP)
        await until(lambda: running.logged("process.restarted", process=target), "it is restarted", within=60)
        await until_true(running.is_fresh_since, moment)
        await until(lambda: seen_restarts(running), "its outcome is written down")
        noticed = running.logged("process.unresponsive")
        pids = [running.pid_of(target), running.pid_of(OTHERS[target])]
        restarts = seen_restarts(running)
        verdict = await running.verdict()

    assert [(event["process"], event["pid"]) for event in noticed] == [(target, stopped)]
    assert noticed[0]["silent_seconds"] >= 5
    assert pids[0] != stopped
    assert pids[1] == other
    (entry,) = restarts
    assert (entry.kind, entry.subject, entry.outcome) == (RecoveryKind.HARD_RESTART, target, RecoveryOutcome.RECOVERED)
    assert entry.trigger.startswith("unresponsive")
    assert entry.observed is not None
    assert entry.observed.endswith("sends heartbeats")
    assert_nothing_lost(verdict)
