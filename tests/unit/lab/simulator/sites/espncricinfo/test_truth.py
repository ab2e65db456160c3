from longstop_lab.simulator.sites.espncricinfo.ids import ball_number, match_number, player_number, team_number
from longstop_lab.simulator.sites.espncricinfo.truth import as_espncricinfo
from longstop_lab.simulator.truth import TruthLine, decode_line
from tests.unit.lab.simulator.espn_pages import TWO_GONE, one_over_game, steady
from tests.unit.lab.simulator.games import board_at, lines_of, small_script


def small_lines() -> list[TruthLine]:
    return lines_of(board_at(small_script(), 10_000)[1])


def test_a_line_carries_the_name_of_both_sites() -> None:
    lines = {line.kind: line for line in small_lines()}

    assert lines["delivery"].espn_id == str(ball_number(int(lines["delivery"].id)))
    assert lines["over"].espn_id == "over-1-1"
    assert (lines["innings"].espn_id, lines["result"].espn_id) == ("innings-2", "result")


def test_a_line_without_the_other_name_can_be_read_and_written() -> None:
    raw = b'{"at":"2026-11-15T12:00:00.000Z","match":"X","op":"insert","kind":"goal","id":"1","minute":3}\n'

    line = decode_line(raw)

    assert line.espn_id is None
    assert line.encode() == raw


def test_keys_become_the_numbers_of_the_site() -> None:
    lines = {line.kind: as_espncricinfo(line) for line in small_lines()}

    assert lines["delivery"].match == str(match_number("11AB"))
    assert lines["delivery"].id == lines["delivery"].espn_id
    assert lines["delivery"].content["batter"] == str(player_number("H0"))
    assert lines["over"].content["bowler"] == str(player_number("H8"))
    assert lines["innings"].content["team"] == str(team_number("H"))
    assert lines["result"].content == {"outcome": "no result", "text": "No result"}


def test_a_balls_second_wicket_is_not_expected_there() -> None:
    game = one_over_game(*TWO_GONE)
    line = next(line for line in lines_of(board_at(steady(game), 10_000, game)[1]) if line.op == "update")

    seen = as_espncricinfo(line)

    assert len(line.content["wickets"]) == 2
    assert seen.content["wickets"] == [
        {"kind": "run out", "player_out": "Rover 1", "player_key": str(player_number("R1"))}
    ]
