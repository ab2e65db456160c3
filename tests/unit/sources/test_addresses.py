"""Addresses as people copy them: which match they lead to, and what leads nowhere."""

from typing import Any

import pytest

from longstop.sources.addresses import host_of
from longstop.sources.base import Source, SourceConfig
from longstop.sources.crex.source import CrexSource
from longstop.sources.espncricinfo.source import EspncricinfoSource
from longstop.sources.sofascore.source import SofascoreSource

CREX, ESPN, SOFA = CrexSource, EspncricinfoSource, SofascoreSource


def a_source(make: Any) -> Source:
    config = SourceConfig(
        domain_id="any",
        enabled=True,
        precedence_weight=1,
        adapter_class="any",
        hosts=("127.0.0.1:8701",),
        allow_private_addresses=True,
        permission=None,
        metadata={},
    )
    source: Source = make(config)
    return source


@pytest.mark.parametrize(
    ("make", "url", "source_id"),
    [
        (CREX, "https://crex.com/scoreboard/11HD/1S0/3rd-Match/AB/CD/nep-vs-oma-3rd-match/live", "11HD"),
        (CREX, "https://crex.com/scoreboard/11HD", "11HD"),
        (CREX, "https://CREX.com/cricket-live-score/nep-vs-oma-match-updates-11HD?tab=info", "11HD"),
        (CREX, " http://127.0.0.1:8701/scoreboard/1000/1S0/1-Match/0/1BO/a-vs-b/live ", "1000"),
        (
            ESPN,
            "https://www.espncricinfo.com/series/a-cup-1478874/a-vs-b-1st-match-1478889/full-scorecard",
            "1478889",
        ),
        (ESPN, "https://www.espncricinfo.com/series/the-cup-1478874/a-vs-b-1st-match-1478889", "1478889"),
        (SOFA, "https://www.sofascore.com/football/match/a-b/xKbsyKb#id:11400000", "11400000"),
        (SOFA, "https://www.sofascore.com/football/match/a-b/xKbsyKb#id:11400000,tab:details", "11400000"),
        (SOFA, "https://www.sofascore.com/event/a-b/11400000", "11400000"),
        (SOFA, "https://www.sofascore.com/api/v1/event/11400000", "11400000"),
    ],
)
def test_the_address_of_a_match_names_it(make: Any, url: str, source_id: str) -> None:
    assert a_source(make).match_of(url) == source_id


@pytest.mark.parametrize("make", [CREX, ESPN, SOFA])
@pytest.mark.parametrize(
    "url",
    [
        "",
        "11HD",
        "crex.com/scoreboard/11HD",
        "https://crex.com.evil.example/scoreboard/11HD",
        "https://crex.com@evil.example/scoreboard/11HD",
        "ftp://crex.com/scoreboard/11HD",
        "https://crex.com/live-matches",
        "https://crex.com/scoreboard/../../etc",
        "https://crex.com/cricket-live-score/match-updates-11HD",
        "https://www.espncricinfo.com/live-cricket-score",
        "https://www.espncricinfo.com/series/the-cup-1478874",
        "https://www.sofascore.com/football/match/a-b/xKbsyKb",
        "https://[::1/scoreboard/11HD",
        "https://crex.com/scoreboard/" + "1" * 2_000,
    ],
)
def test_anything_else_names_none(make: Any, url: str) -> None:
    assert a_source(make).match_of(url) is None


@pytest.mark.parametrize(
    ("url", "host"),
    [("https://Example.org:81/x", "example.org:81"), ("example.org", ""), ("https://[::1", ""), ("", "")],
)
def test_the_host_of_an_address_can_be_told(url: str, host: str) -> None:
    assert host_of(url) == host
