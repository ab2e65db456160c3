import pytest

from longstop.errors import UsageError
from longstop_lab.simulator.kinds import KINDS, play, read_kinds


def test_kinds_are_read_with_commas() -> None:
    assert read_kinds("t20, odi,test") == ("t20", "odi", "test")


@pytest.mark.parametrize("text", ["", "t20,", "tests", "t20;odi"])
def test_an_unknown_kind_is_a_sentence_with_those_that_are_known(text: str) -> None:
    with pytest.raises(UsageError, match="is no kind of match: there are t20, t20-rain, odi, test"):
        read_kinds(text)


@pytest.mark.parametrize(
    ("kind", "match_format"), [("t20", "T20"), ("t20-rain", "T20"), ("odi", "ODI"), ("test", "TEST")]
)
def test_every_kind_says_its_format_as_the_site_does(kind: str, match_format: str) -> None:
    assert kind in KINDS
    assert play(kind, 1, 0).match_format == match_format
