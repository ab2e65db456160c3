"""What is peculiar about a match on this site: which fields it lacks, and how its editors work. Pure, by key."""

from random import Random

from msgspec import Struct


class Traits(Struct, frozen=True, kw_only=True):
    #: Few people follow it: no ratings, no statistics, no word on which half is played.
    is_low_coverage: bool
    #: There are never line-ups, however long one waits.
    has_no_lineups: bool
    #: No season, so that no list by season has it; and no round.
    is_friendly: bool
    #: An own goal stands on the side of the player who scored it, not of the one it counts for.
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
