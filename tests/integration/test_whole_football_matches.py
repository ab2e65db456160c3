"""Whole football matches, polled from the line-ups to the result, with restarts in between."""

from bisect import bisect_right
from random import Random

import pytest

from longstop.model.match import MatchStatus, Phase
from longstop_lab.simulator.football.generate import play_football
from longstop_lab.simulator.judge import judge
from tests.football_world import WatchingFootball

SEED = 7
MATCHES = 12
#: One poll is enough while a match is postponed by days.
LONG_WAIT = 3000.0
RESTART_SHARE = 0.03


def moments(watching: WatchingFootball, every: float, dice: Random) -> list[float]:
    """Return when to look: at random, about so often, from the line-ups to the last correction."""
    steps = [step.at for step in watching.script]
    now, chosen = -7000.0, []
    while now < steps[-1]:
        chosen.append(now)
        now += dice.expovariate(1 / every)
        following = bisect_right(steps, now)
        if following < len(steps) and steps[following] - now > LONG_WAIT:
            now = steps[following] - 60
    return chosen


@pytest.mark.req("NFR-009", "FLD-1")
async def test_whole_matches_are_stored_as_they_were_whatever_becomes_of_them() -> None:
    ends, statuses = set(), set()
    for index in range(MATCHES):
        dice = Random(f"{SEED} {index}")
        watching = WatchingFootball(play_football(SEED, index), SEED)
        await watching.start()

        for at in moments(watching, 60, dice):
            await watching.poll(at)
            statuses.add(watching.state.row.status)
            if dice.random() < RESTART_SHARE:
                await watching.restart()
        for later in (1, 30, 60):
            await watching.poll(watching.script[-1].at + later)

        found = judge(watching.lines, {watching.match.key: watching.served()})
        assert (found.lost, found.duplicated, found.ghost) == (0, 0, 0), found.details
        assert not watching.state.findings
        assert not watching.sink.named("resource.failed")
        has_result = "result" in watching.match.truth
        assert (watching.state.row.phase is Phase.COMPLETED) is has_result
        ends.add(watching.state.result.text.split()[-1] if watching.state.result else "none")
    assert {"FT", "AP", "none"} <= ends
    assert {MatchStatus.UPCOMING, MatchStatus.LIVE, MatchStatus.BREAK} <= statuses
