from collections import Counter
from typing import Any

from longstop_lab.simulator.sites.sofascore.traits import traits_of
from tests.unit.lab.simulator.football.games import scripts
from tests.unit.lab.simulator.football_site import FootballSite
from tests.unit.lab.simulator.recorded import disagreements, needs_recorded, recorded_json

END = 10_000_000.0


def ended() -> FootballSite:
    match, script = next(
        pair for pair in scripts() if "period-FT" in pair[0].truth and not traits_of(pair[0].key).is_low_coverage
    )
    return FootballSite(match, script)


def items(part: dict[str, Any]) -> list[dict[str, Any]]:
    return [item for group in part["groups"] for item in group["statisticsItems"]]


def test_there_are_none_before_the_kick_off() -> None:
    assert ended().at(-7100).answer("/statistics").status == 404


def test_possession_adds_up_and_texts_have_four_forms() -> None:
    for part in ended().at(END).body("/statistics")["statistics"]:
        by_key = {item["key"]: item for item in items(part)}

        assert by_key["ballPossession"]["homeValue"] + by_key["ballPossession"]["awayValue"] == 100
        assert by_key["ballPossession"]["home"].endswith("%")
        assert by_key["totalShotsOnGoal"]["home"] == str(by_key["totalShotsOnGoal"]["homeValue"])
        assert by_key["accuratePasses"]["home"].endswith("%)")
        assert float(by_key["expectedGoals"]["home"]) >= 0


def test_some_keys_stand_in_two_groups_with_the_same_numbers() -> None:
    everything = items(ended().at(END).body("/statistics")["statistics"][0])
    twice = [key for key, count in Counter(item["key"] for item in everything).items() if count > 1]

    assert twice == ["totalShotsOnGoal", "totalTackle"]
    assert all(len({item["home"] for item in everything if item["key"] == key}) == 1 for key in twice)


@needs_recorded
def test_every_field_of_the_statistics_is_one_that_was_recorded() -> None:
    recorded = recorded_json("sofascore/statistics/statistics_sample_ptbr_repo.json")

    assert list(disagreements(ended().at(END).body("/statistics"), [recorded])) == []
