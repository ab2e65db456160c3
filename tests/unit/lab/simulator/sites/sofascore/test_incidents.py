from collections.abc import Iterator
from typing import Any

from longstop_lab.simulator.football.model import (
    CardTruth,
    FootballContent,
    GoalTruth,
    KickTruth,
    MissedPenaltyTruth,
    PeriodTruth,
    SubstitutionTruth,
    VarTruth,
)
from longstop_lab.simulator.sites.sofascore.traits import traits_of
from tests.unit.lab.simulator.football.games import reversed_entries, scripts
from tests.unit.lab.simulator.football_site import FootballSite

END = 10_000_000.0
HOWS = {"regular": "regular", "penalty": "penalty", "ownGoal": "own goal"}
CARDS = {"yellow": "yellow", "yellowRed": "second yellow", "red": "red"}
WORDS = {"goalAwarded": "goal awarded", "goalNotAwarded": "goal not awarded", "cardUpgrade": "card upgrade"}


def ended_sites(count: int = 120) -> Iterator[FootballSite]:
    for match, script in scripts()[:count]:
        site = FootballSite(match, script).at(END)
        if site.answer("/incidents").status == 200:
            yield site


def read_back(incidents: list[dict[str, Any]]) -> dict[tuple[str, str], FootballContent]:
    """Read the wire as plainly as can be, oldest first."""
    read: dict[tuple[str, str], FootballContent] = {}
    score = (0, 0)
    for item in reversed(incidents):
        side = "home" if item.get("isHome") else "away"
        clock: dict[str, Any] = {"side": side, "minute": item.get("time"), "added": item.get("addedTime", 0)}
        match item["incidentType"]:
            case "goal":
                after = (item["homeScore"], item["awayScore"])
                clock["side"] = "home" if after[0] > score[0] else "away"
                score = after
                goal = GoalTruth(
                    **clock,
                    scorer=str(item["player"]["id"]),
                    assist=str(item["assist1"]["id"]) if "assist1" in item else None,
                    how=HOWS[item["incidentClass"]],
                    home=after[0],
                    away=after[1],
                )
                read["goal", str(item["id"])] = goal
            case "card":
                card = CardTruth(**clock, player=str(item["player"]["id"]), card=CARDS[item["incidentClass"]])
                read["card", str(item["id"])] = card
            case "substitution":
                read["substitution", str(item["id"])] = SubstitutionTruth(
                    **clock,
                    player_in=str(item["playerIn"]["id"]),
                    player_out=str(item["playerOut"]["id"]),
                    is_injury=item.get("injury", False),
                )
            case "varDecision":
                words = WORDS[item["incidentClass"]]
                decided = VarTruth(**clock, decision=words, player=str(item["player"]["id"]))
                read["var", str(item["id"])] = decided
            case "inGamePenalty":
                read["missed", str(item["id"])] = MissedPenaltyTruth(**clock, player=str(item["player"]["id"]))
            case "penaltyShootout":
                read["kick", str(item["id"])] = KickTruth(
                    side=side,
                    sequence=item["sequence"],
                    player=str(item["player"]["id"]),
                    is_scored=item["incidentClass"] == "scored",
                    home=item["homeScore"],
                    away=item["awayScore"],
                )
    return read


def test_the_wire_contains_every_event_of_a_match_that_is_over() -> None:
    kinds = set()
    for site in ended_sites():
        reported = set(read_back(site.incidents()).values())
        true = {
            content
            for content in site.match.truth.values()
            if isinstance(
                content, GoalTruth | CardTruth | SubstitutionTruth | VarTruth | MissedPenaltyTruth | KickTruth
            )
        }
        kinds |= {type(content) for content in true}

        assert reported == true, site.match.key
    assert len(kinds) == 6


def test_incidents_stand_newest_first_and_a_shoot_out_before_all_others() -> None:
    shoot_outs = 0
    for site in ended_sites():
        incidents = site.incidents()
        kicks = [item["sequence"] for item in incidents if item["incidentType"] == "penaltyShootout"]
        moments = [(item["time"], item.get("addedTime", 0)) for item in incidents if "sequence" not in item]

        assert moments == sorted(moments, reverse=True)
        assert kicks == sorted(kicks, reverse=True)
        if kicks:
            shoot_outs += 1
            assert (incidents[0]["text"], incidents[0]["time"], incidents[0]["period"]) == ("PEN", 999, "penalties")
            assert [item.get("sequence") for item in incidents[1 : len(kicks) + 1]] == kicks
    assert shoot_outs


def test_periods_and_added_times_have_no_id_and_the_added_time_of_a_period_means_nothing() -> None:
    for site in ended_sites(20):
        periods = [item for item in site.incidents() if item["incidentType"] == "period"]
        added = [item for item in site.incidents() if item["incidentType"] == "injuryTime"]

        assert all("id" not in item and item["addedTime"] == 999 and item["isLive"] is False for item in periods)
        assert all(not {"id", "isHome"} & item.keys() for item in added)
        true = {content.period for content in site.match.truth.values() if isinstance(content, PeriodTruth)}
        assert {item["text"] for item in periods} == true


def test_the_part_that_is_played_has_a_live_mark_that_is_no_end() -> None:
    match, script = next(pair for pair in scripts() if "period-HT" in pair[0].truth)
    begun = next(step.at for step in script if getattr(step.content, "status", "") == "1st half")

    site = FootballSite(match, script).at(begun + 60)

    (mark,) = [item for item in site.incidents() if item["incidentType"] == "period"]
    assert (mark["text"], mark["isLive"], mark["time"]) == ("HT", True, 45)


def test_a_goal_that_is_taken_back_leaves_the_list_and_a_decision_comes() -> None:
    match, script = next(pair for pair in scripts() if reversed_entries(pair[0]))
    entry = reversed_entries(match)[0]
    site = FootballSite(match, script)

    before = {item.get("id") for item in site.at(entry.settled_at - 1).incidents()}
    under_review = site.event()["varInProgress"]
    after = site.at(entry.settled_at + 1).incidents()

    assert int(entry.id) in before
    assert True in under_review.values()
    assert int(entry.id) not in {item.get("id") for item in after}
    assert "goalNotAwarded" in {item.get("incidentClass") for item in after}


def test_an_own_goal_stands_on_one_side_or_the_other_by_the_habit_of_its_editors() -> None:
    habits = set()
    for site in ended_sites(400):
        for item in site.incidents():
            if item.get("incidentClass") == "ownGoal":
                truth = site.match.truth[str(item["id"])]
                is_credited = item["isHome"] == (getattr(truth, "side", "") == "home")
                assert is_credited is not traits_of(site.match.key).own_goals_by_scorer
                habits.add(is_credited)
    assert habits == {True, False}
