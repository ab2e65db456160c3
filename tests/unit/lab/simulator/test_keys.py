import re
from random import Random

from longstop_lab.simulator.keys import MARKUP_NAME, MAX_MATCHES, invent_sides, match_key, match_keys


def test_no_two_matches_share_a_key() -> None:
    keys = [key for index in range(MAX_MATCHES) for key in match_keys(index)]

    assert len(set(keys)) == len(keys)
    assert len({match_key(index) for index in range(MAX_MATCHES)}) == MAX_MATCHES


def test_keys_look_like_the_sites() -> None:
    assert all(re.fullmatch("[0-9A-Z]{1,3}", key) for index in range(50) for key in match_keys(index))
    assert all(re.fullmatch("[0-9A-Z]{4}", match_key(index)) for index in range(50))


def test_names_have_diacritics_apostrophes_and_one_looks_like_markup() -> None:
    sides = [side for index in range(20) for side in invent_sides(index, Random(index))]
    names = [player.name for side in sides for player in side.players]

    assert names.count(MARKUP_NAME) == 20
    assert any("D'Souza" in name for name in names)
    assert any(not name.isascii() for name in names)


def test_players_of_one_match_have_different_names() -> None:
    for index in range(50):
        first, second = invent_sides(index, Random(index))
        names = [player.name for player in (*first.players, *second.players)]

        assert len(set(names)) == 22
        assert first.name != second.name
