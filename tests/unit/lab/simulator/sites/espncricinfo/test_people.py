import pytest

from longstop_lab.simulator.cricket.game import Player
from longstop_lab.simulator.sites.espncricinfo.players import abbreviation, match_players, player, slug, team
from tests.unit.lab.simulator.games import HERONS, small_game


@pytest.mark.parametrize(
    ("name", "expected"),
    [("Port Élan Foxes", "port-elan-foxes"), ("<b>O'Hara</b>", "b-o-hara-b"), ("Göransby", "goransby")],
)
def test_a_slug_holds_plain_letters_and_dashes(name: str, expected: str) -> None:
    assert slug(name) == expected


@pytest.mark.parametrize(("name", "expected"), [("Kestrel Bay Rooks", "KBR"), ("Herons", "HER")])
def test_a_team_has_an_abbreviation(name: str, expected: str) -> None:
    assert abbreviation(name) == expected


def test_the_number_that_others_point_with_is_not_the_public_one() -> None:
    assert team(HERONS)["id"] != team(HERONS)["objectId"]
    assert player(HERONS.players[0])["id"] != player(HERONS.players[0])["objectId"]


@pytest.mark.parametrize(("name", "short"), [("Aled Carrow", "A Carrow"), ("Quim", "Quim")])
def test_a_player_has_a_long_and_a_short_name(name: str, short: str) -> None:
    shown = player(Player(key="A1", name=name))

    assert (shown["longName"], shown["name"]) == (name, short)


def test_everybody_is_listed_under_his_team() -> None:
    teams = match_players(small_game())["teamPlayers"]

    assert [entry["team"]["longName"] for entry in teams] == ["Rovers", "Herons"]
    assert [len(entry["players"]) for entry in teams] == [11, 11]
    assert teams[1]["players"][3]["player"]["longName"] == "Heron 3"
