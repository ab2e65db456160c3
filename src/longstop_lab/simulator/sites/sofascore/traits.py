"""Peculiarities of a match on this site: missing fields and editing habits, derived from its key."""

from random import Random

from msgspec import Struct


class Traits(Struct, frozen=True, kw_only=True):
    #: No ratings, no statistics, and no information on which half is played.
    is_low_coverage: bool
    #: Line-ups never appear.
    has_no_lineups: bool
    #: No season, so that no list by season has it; and no round.
    is_friendly: bool
    #: An own goal is listed on the side of its scorer instead of the side it counts for.
    own_goals_by_scorer: bool
    #: The address names the away team first.
    is_slug_turned: bool
    has_no_short_names: bool


def traits_of(key: str) -> Traits:
    dice = Random(f"sofascore {key}")
    is_low = dice.random() < 0.2
    return Traits(
        is_low_coverage=is_low,
        has_no_lineups=is_low and dice.random() < 0.4,
        is_friendly=dice.random() < 0.15,
        own_goals_by_scorer=dice.random() < 0.5,
        is_slug_turned=dice.random() < 0.4,
        has_no_short_names=dice.random() < 0.15,
    )
