"""The rules of watching and fetching that the settings make."""

from longstop.app.scraper_parts import watch_rules
from longstop.resilience.breaker import source_policy, target_policy
from longstop.settings import CircuitBreaker, Scraper
from longstop.watching.poll_intervals_and_frozen_pages import WatchRules


def test_the_defaults_of_the_settings_are_those_of_the_rules() -> None:
    assert watch_rules(Scraper()) == WatchRules()


def test_the_defaults_of_the_settings_are_those_of_the_breakers() -> None:
    breaker = CircuitBreaker()

    assert target_policy() == target_policy(breaker.threshold, breaker.timeout, breaker.success_threshold, breaker.slow)
    assert source_policy() == source_policy(breaker.source_timeout)
