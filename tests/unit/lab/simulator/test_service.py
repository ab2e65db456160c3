import pytest

from longstop.errors import UsageError
from longstop_lab.simulator.cricket.world import play
from longstop_lab.simulator.service import KINDS, read_kinds


def test_kinds_are_separated_by_commas() -> None:
    assert read_kinds("t20, odi,test") == ("t20", "odi", "test")


@pytest.mark.parametrize("text", ["", "t20,", "tests", "t20;odi"])
def test_an_unknown_kind_is_an_error_that_lists_the_known_ones(text: str) -> None:
    with pytest.raises(UsageError, match="is not a kind of match: choose from t20, t20-rain, odi, test"):
        read_kinds(text)


@pytest.mark.parametrize(
    ("kind", "match_format"), [("t20", "T20"), ("t20-rain", "T20"), ("odi", "ODI"), ("test", "TEST")]
)
def test_every_kind_has_the_format_name_of_the_site(kind: str, match_format: str) -> None:
    assert kind in KINDS
    assert play(kind, 1, 0).match_format == match_format
