from typing import Any

import msgspec

from longstop_lab.simulator.football.model import FootballMatch, LineupTruth
from longstop_lab.simulator.football.script import FootballScript
from longstop_lab.simulator.sites.sofascore.traits import Traits, traits_of
from tests.unit.lab.simulator.football.games import scripts
from tests.unit.lab.simulator.football_site import FootballSite
from tests.unit.lab.simulator.recorded import disagreements, needs_recorded, recorded_json

END = 10_000_000.0


def one(*, is_low: bool = False, has_none: bool = False) -> tuple[FootballMatch, FootballScript]:
    def fits(traits: Traits) -> bool:
        return (traits.is_low_coverage, traits.has_no_lineups) == (is_low, has_none)

    return next(
        pair
        for pair in scripts()
        if fits(traits_of(pair[0].key)) and "result" in pair[0].truth and "period-FT" in pair[0].truth
    )


def shown_at(script: FootballScript) -> list[float]:
    """Return when line-ups are published: both guesses, then both confirmations."""
    return [step.at for step in script if isinstance(step.content, LineupTruth)]


def starters(body: Any, side: str) -> list[str]:
    return [str(entry["player"]["id"]) for entry in body[side]["players"] if not entry["substitute"]]


def test_there_are_none_then_an_empty_word_then_a_guess_then_the_confirmed_elevens() -> None:
    match, script = one()
    site = FootballSite(match, script)
    first, second, third, fourth = shown_at(script)

    nothing = site.at(first - 1).answer("/lineups")
    half = site.at(first).body("/lineups")
    guess = site.at(second).body("/lineups")
    one_side = site.at(third).body("/lineups")
    both = site.at(fourth).body("/lineups")

    assert (nothing.status, nothing.headers["Cache-Control"]) == (404, "public, max-age=3600")
    assert msgspec.json.decode(nothing.body) == {"error": {"code": 404, "message": "Not Found"}}
    assert half == {"confirmed": False}
    assert (guess["confirmed"], one_side["confirmed"], both["confirmed"]) == (False, False, True)
    assert starters(guess, "home") != starters(both, "home") == [player.key for player in match.home.eleven]


def test_before_the_kick_off_no_player_has_figures_and_after_it_the_unused_have_empty_ones() -> None:
    match, script = one()
    site = FootballSite(match, script)

    before = site.at(shown_at(script)[-1]).body("/lineups")
    after = site.at(END).body("/lineups")

    assert all("statistics" not in entry for entry in before["home"]["players"])
    figures = [entry["statistics"] for entry in after["home"]["players"]]
    assert {} in figures
    assert all({"goalAssist", "minutesPlayed", "touches"} <= each.keys() for each in figures if each)


def test_only_players_who_played_long_enough_are_rated_and_some_leagues_have_no_ratings() -> None:
    rated, unrated = 0, 0
    for match, script in scripts()[:60]:
        answered = FootballSite(match, script).at(END).answer("/lineups")
        if answered.status != 200 or "period-FT" not in match.truth:
            continue
        body = msgspec.json.decode(answered.body)
        for entry in (*body["home"]["players"], *body["away"]["players"]):
            figures = entry["statistics"]
            if traits_of(match.key).is_low_coverage:
                assert "rating" not in figures
            elif figures:
                assert ("rating" in figures) == (figures["minutesPlayed"] >= 8)
                rated += "rating" in figures
                unrated += "rating" not in figures
    assert rated
    assert unrated


def test_some_matches_never_have_line_ups() -> None:
    match, script = one(is_low=True, has_none=True)

    assert FootballSite(match, script).at(END).answer("/lineups").status == 404


@needs_recorded
def test_every_field_of_the_line_ups_is_one_that_was_recorded() -> None:
    variants = recorded_json("sofascore/excerpts/lineups_variants.json")
    whole = recorded_json("sofascore/lineups/brasileirao2025_atletico-mg_internacional.json")
    match, script = one()

    body = FootballSite(match, script).at(END).body("/lineups")

    assert list(disagreements(body, [whole, *variants.values()])) == []
