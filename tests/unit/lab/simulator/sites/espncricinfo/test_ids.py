from longstop_lab.simulator.cricket.script import FIRST_ID, GHOST_ID, ID_STEP
from longstop_lab.simulator.keys import MAX_MATCHES, match_key, match_keys
from longstop_lab.simulator.sites.espncricinfo.ids import (
    ball_number,
    inner_match_number,
    match_key_of,
    match_number,
    player_number,
    team_number,
)


def test_every_match_has_its_own_public_and_inner_number() -> None:
    keys = [match_key(index) for index in range(MAX_MATCHES)]

    assert len({match_number(key) for key in keys}) == len({inner_match_number(key) for key in keys}) == MAX_MATCHES
    assert all(match_number(key) != inner_match_number(key) for key in keys)


def test_a_number_leads_back_to_its_match() -> None:
    assert [match_key_of(match_number(match_key(index))) for index in range(50)] == [match_key(n) for n in range(50)]
    assert match_key_of(7) is None


def test_teams_and_players_of_all_matches_are_told_apart() -> None:
    keys = [key for index in range(MAX_MATCHES) for key in match_keys(index)]

    assert len({player_number(key) for key in keys}) == len({team_number(key) for key in keys}) == len(keys)


def test_balls_keep_their_order_with_room_for_a_ghost_between_two() -> None:
    ids = [FIRST_ID + nth * ID_STEP + more for nth in range(5) for more in (0, GHOST_ID)]

    numbers = [ball_number(id_) for id_ in ids]

    assert numbers == sorted(set(numbers))
