"""The rules of watching that the settings make."""

from longstop.app.scraper_parts import watch_rules
from longstop.settings import Scraper
from longstop.watching.poll_intervals_and_frozen_pages import WatchRules


def test_the_defaults_of_the_settings_are_those_of_the_rules() -> None:
    assert watch_rules(Scraper()) == WatchRules()
