from longstop_lab.simulator.sites.crex.scorecard import scorecard
from tests.unit.lab.simulator.games import board_at, small_script
from tests.unit.lab.simulator.recorded import needs_recorded, recorded_json, shape


def test_only_innings_that_have_begun_are_listed() -> None:
    lengths = [len(scorecard(board_at(small_script(), seconds)[0])) for seconds in (0, 55, 150, 210)]

    assert lengths == [0, 1, 1, 2]


def test_scores_are_in_balls() -> None:
    first, second = scorecard(board_at(small_script(), 210)[0])

    assert (first["c"], first["d"]) == ("R", "20/1(12")
    assert (second["c"], second["d"]) == ("H", "4/0(1")


def test_batters_have_one_part_yet_to_bat_five_batting_and_more_when_out() -> None:
    (innings,) = scorecard(board_at(small_script(), 65)[0])

    parts = [len(batter.split("/")[0].split(".")) for batter in innings["b"]]
    assert parts == [9, 5, *[1] * 9]
    assert innings["b"][0].startswith("R0.5.5.1.0.5.8.2.H9/")


def test_bowlers_and_extras_are_rows_of_numbers() -> None:
    first, _ = scorecard(board_at(small_script(), 210)[0])

    assert first["a"] == ["H9.12.6.0.1", "H8.6.6.0.0"]
    assert first["e"] == "0.2.1.0.0"


@needs_recorded
def test_the_card_has_the_keys_and_types_of_the_recorded_ones() -> None:
    ours = shape(scorecard(board_at(small_script(), 210)[0]))

    assert ours == shape(recorded_json("crex/sc4_11HD_late.json"))
    assert ours == shape(recorded_json("crex/sc4_11HD_early.json"))
