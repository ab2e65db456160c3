import pytest

from longstop_lab.simulator.football.model import FootballMatch, FootballResultTruth
from longstop_lab.simulator.football.script import FootballScript
from longstop_lab.simulator.sites.sofascore.traits import traits_of
from tests.unit.lab.simulator.football.games import scripts
from tests.unit.lab.simulator.football_site import FootballSite
from tests.unit.lab.simulator.recorded import disagreements, needs_recorded, recorded_json

END = 10_000_000.0


def one_that_ends(status: str) -> tuple[FootballMatch, FootballScript]:
    return next(
        pair
        for pair in scripts()
        if any(getattr(step.content, "status", "") == status for step in pair[1])
        and not traits_of(pair[0].key).is_low_coverage
    )


def moment_of(script: FootballScript, status: str) -> float:
    return next(step.at for step in script if getattr(step.content, "status", "") == status)


def test_before_the_kick_off_scores_and_clock_are_empty() -> None:
    match, script = one_that_ends("Ended")

    event = FootballSite(match, script).at(moment_of(script, "1st half") - 1).event()

    assert (event["homeScore"], event["awayScore"], event["time"]) == ({}, {}, {})
    assert event["status"] == {"code": 0, "description": "Not started", "type": "notstarted"}


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [("Ended", 100, "finished"), ("AET", 110, "finished"), ("AP", 120, "finished"), ("Abandoned", 90, "canceled")],
)
def test_the_end_has_three_words_and_the_result(status: str, code: int, kind: str) -> None:
    match, script = one_that_ends(status)
    result = match.truth["result"]
    assert isinstance(result, FootballResultTruth)

    event = FootballSite(match, script).at(END).event()

    assert (event["status"]["code"], event["status"]["type"]) == (code, kind)
    assert (event["homeScore"]["display"], event["awayScore"]["display"]) == (result.home, result.away)
    assert event.get("winnerCode") == {"home": 1, "away": 2, "draw": 3}.get(result.outcome)


def test_after_a_shoot_out_current_counts_it_in_and_nothing_else_does() -> None:
    match, script = one_that_ends("AP")
    result = match.truth["result"]
    assert isinstance(result, FootballResultTruth)

    score = FootballSite(match, script).at(END).event()["homeScore"]

    assert score["penalties"] == result.home_penalties
    assert score["current"] == result.home + score["penalties"]
    assert score["display"] == result.home == score["normaltime"] + score["overtime"]


def test_goals_by_part_add_up_at_every_step() -> None:
    for match, script in scripts()[:40]:
        site = FootballSite(match, script)
        for step in script:
            for name in ("homeScore", "awayScore"):
                score = site.at(step.at).event()[name]
                parts = [score.get(part, 0) for part in ("period1", "period2", "extra1", "extra2")]
                assert sum(parts) == score.get("display", 0)
                assert min(parts) >= 0


def test_a_postponed_match_keeps_its_id_and_its_planned_start() -> None:
    match, script = one_that_ends("Postponed")
    site = FootballSite(match, script)
    before = site.at(-7100).event()

    after = site.at(moment_of(script, "Postponed") + 1).event()

    assert after["status"]["type"] == "postponed"
    assert (after["id"], after["startTimestamp"]) == (before["id"], before["startTimestamp"])
    assert (after["homeScore"], after["time"]) == ({}, {})


def test_the_changes_are_those_of_the_last_update() -> None:
    match, script = one_that_ends("Ended")
    site = FootballSite(match, script)

    at_kick_off = site.at(moment_of(script, "1st half")).event()["changes"]

    assert at_kick_off["changes"] == ["status.code", "status.description", "status.type"]
    assert at_kick_off["changeTimestamp"] == int(
        site.world.moment(match.key, moment_of(script, "1st half")).timestamp()
    )


def test_a_match_that_few_follow_says_started_and_no_more() -> None:
    match, script = next(
        pair
        for pair in scripts()
        if traits_of(pair[0].key).is_low_coverage and "1st half" in [getattr(s.content, "status", "") for s in pair[1]]
    )

    status = FootballSite(match, script).at(moment_of(script, "1st half")).event()["status"]

    assert status == {"code": 20, "description": "Started", "type": "inprogress"}


@needs_recorded
def test_every_field_is_one_that_was_recorded() -> None:
    recorded = [recorded_json(f"sofascore/events/{number}.json")["event"] for number in (13424932, 13424935, 13424937)]
    variants = recorded_json("sofascore/excerpts/status_variants.json")
    known = [*recorded, *(value for value in variants.values() if isinstance(value, dict))]
    match, script = one_that_ends("AP")
    event = FootballSite(match, script).at(END).event()

    assert list(disagreements(event, known)) == []
