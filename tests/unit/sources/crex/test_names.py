"""crex: whose names its table holds."""

from longstop.sources.wire import read_body
from longstop.sports.cricket.model import Names
from tests.builders import body
from tests.unit.sources.crex.reading import NAMES, SOURCE, page


def test_a_key_without_a_name_stays_unresolved() -> None:
    found = read_body(SOURCE, NAMES, page("names.json"))

    assert found == Names(players={"A1": "Ann One", "A2": "Amélie Two"}, teams={"T1": "Reds", "T2": "Blues"})


def test_a_name_in_pieces_is_put_together() -> None:
    found = read_body(SOURCE, NAMES, body({"p": [{"f_key": "A1", "n": "Ame\u0301lie"}], "t": []}))

    assert found == Names(players={"A1": "Am\u00e9lie"}, teams={})
