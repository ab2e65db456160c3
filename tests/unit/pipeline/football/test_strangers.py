"""However the lists of two matches are mixed up, no event of the other one is stored, and none of ours is lost."""

from itertools import groupby

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from longstop.errors import SourceError
from longstop.pipeline.football.validate import LOOKS_AGAINST
from longstop.testing import run_virtual
from tests.football_site import LookingAtFootball, card, event, goal, lineups

#: Under the numbers of ours, as on a site that counts from the same number in every match.
OTHERS = [goal(100, 1, 0, scorer=5000), card(101, who=5001), card(102, who=5002, is_home=False)]
OURS = [card(100 + nth, who=11 + nth) for nth in range(6)]


def longest(turns: list[bool]) -> int:
    """Return how often in a row the other match's list is shown."""
    return max((len(list(run)) for is_other, run in groupby(turns) if is_other), default=0)


#: Whether each look is shown the other match's list.
TURNS = st.lists(st.booleans(), max_size=25).filter(lambda turns: longest(turns) < LOOKS_AGAINST)


async def watch(turns: list[bool], *, has_lineups: bool, others: int) -> LookingAtFootball:
    """Watch a match that has one event more at every third look."""
    looking = await LookingAtFootball().start()
    looking.pages.event = event("1st half", 0, 0)
    looking.pages.lineups = lineups() if has_lineups else None
    for nth, is_other in enumerate([*turns, *[False] * LOOKS_AGAINST]):
        ours = OURS[: min(nth // 3, len(OURS))]
        looking.pages.incidents = OTHERS[:others] if is_other else ours
        try:
            await looking.look()
        except SourceError:
            continue
    looking.pages.incidents = OURS
    await looking.look(times=2)
    return looking


@pytest.mark.req("NFR-009")
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(turns=TURNS, has_lineups=st.booleans(), others=st.integers(min_value=1, max_value=3))
def test_no_event_of_another_match_is_stored_and_none_of_ours_is_lost(
    turns: list[bool], has_lineups: bool, others: int
) -> None:
    looking = run_virtual(watch(turns, has_lineups=has_lineups, others=others))

    assert looking.versions() == [f"card:home:{nth} 1 insert" for nth in range(1, len(OURS) + 1)]
    assert looking.state.people == {str(11 + nth) for nth in range(len(OURS))}
