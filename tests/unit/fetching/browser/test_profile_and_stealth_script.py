"""The profile of a session: all parts agree with each other and with the running browser."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longstop.fetching.browser.profile_and_stealth_script import COUNTRIES, choose_profile

VERSION = "156.0.8078.79"


@pytest.mark.req("CAP-3")
@given(seed=st.integers(0, 1000), country=st.sampled_from([*COUNTRIES, "", "zz"]))
def test_all_parts_of_a_profile_agree(seed: int, country: str) -> None:
    profile = choose_profile(VERSION, country, seed)
    hints = profile.user_agent_override["userAgentMetadata"]
    systems = {"Win32": "Windows NT", "MacIntel": "Macintosh", "Linux x86_64": "Linux"}

    assert "Chrome/156.0.0.0" in profile.user_agent
    assert "Headless" not in str(profile.user_agent_override)
    assert systems[profile.platform] in profile.user_agent
    assert {brand["version"] for brand in hints["brands"] if "Chrom" in brand["brand"]} == {"156"}
    assert {"Windows": "Win32", "macOS": "MacIntel", "Linux": "Linux x86_64"}[hints["platform"]] == profile.platform
    assert profile.country.locale == profile.country.languages[0]
    assert profile.accept_language.startswith(profile.country.locale)


@pytest.mark.req("CAP-3")
def test_language_and_clock_are_those_of_the_proxys_country() -> None:
    profile = choose_profile(VERSION, "DE")

    assert (profile.country.locale, profile.country.time_zone) == ("de-DE", "Europe/Berlin")
    assert profile.accept_language == "de-DE,de;q=0.9,en;q=0.8"


def test_the_same_seed_gives_the_same_profile_and_others_another() -> None:
    profiles = [choose_profile(VERSION, "", seed) for seed in range(12)]

    assert profiles == [choose_profile(VERSION, "", seed) for seed in range(12)]
    assert len({(each.user_agent, each.width) for each in profiles}) == 12
