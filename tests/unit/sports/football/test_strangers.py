"""However the lists of two matches are mixed up, no event of the other one is stored, and none of ours is lost."""

from enum import StrEnum, auto
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import Struct

from longstop.errors import SourceError
from longstop.sports.football.page_validation import POLLS_AGAINST, POLLS_UNKNOWN
from longstop.testing import run_virtual
from tests.football_site import LookingAtFootball, card, event, goal, lineups

OURS = [card(100 + nth, who=11 + nth) for nth in range(6)]


class Shown(StrEnum):
    """The list that a poll receives."""

    OURS = auto()
    OTHERS = auto()
    NONE = auto()


class Other(Struct, frozen=True):
    """Another match: how long its list is, and how many of its people play in ours too, as in a tie's other leg."""

    length: int
    shared: int

    def incidents(self) -> list[dict[str, Any]]:
        """Return its list, under the numbers of ours, as on a site that counts from the same one in every match; its
        score never fits."""
        who = [(11 if nth < self.shared else 5000) + nth for nth in range(3)]
        reported = [
            goal(100, 1, 0, scorer=who[0]),
            card(101, who=who[1], time=33),
            card(102, who=who[2], is_home=False),
        ]
        return reported[: self.length]

    @property
    def in_a_row(self) -> int:
        """Return how often in a row its list may be shown without being believed."""
        return (POLLS_UNKNOWN if self.shared else POLLS_AGAINST) - 1


def broken_up(turns: list[Shown], in_a_row: int) -> list[Shown]:
    """Return the turns with ours wherever the other match's list would be shown once too often in a row."""
    kept: list[Shown] = []
    for turn in turns:
        is_too_many = turn is Shown.OTHERS and kept[-in_a_row:] == [Shown.OTHERS] * in_a_row
        kept.append(Shown.OURS if is_too_many else turn)
    return kept


@st.composite
def mix_ups(draw: st.DrawFn) -> tuple[Other, list[Shown]]:
    """Return another match, and which list each poll receives."""
    other = Other(length=draw(st.integers(1, 3)), shared=draw(st.integers(0, 3)))
    turns = draw(st.lists(st.sampled_from(Shown), max_size=25))
    return other, broken_up(turns, other.in_a_row)


async def watch(other: Other, turns: list[Shown], *, has_lineups: bool) -> LookingAtFootball:
    """Watch a match that has one event more at every third look."""
    polling = await LookingAtFootball().start()
    polling.pages.event = event("1st half", 0, 0)
    polling.pages.lineups = lineups() if has_lineups else None
    for nth, shown in enumerate([*turns, *[Shown.OURS] * POLLS_AGAINST]):
        ours = OURS[: min(nth // 3, len(OURS))]
        polling.pages.incidents = {Shown.OURS: ours, Shown.OTHERS: other.incidents(), Shown.NONE: None}[shown]
        try:
            await polling.poll()
        except SourceError:
            continue
    polling.pages.incidents = OURS
    await polling.poll(times=POLLS_AGAINST)
    return polling


@pytest.mark.req("NFR-009")
@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow])
@given(mixed=mix_ups(), has_lineups=st.booleans())
def test_no_event_of_another_match_is_stored_and_none_of_ours_is_lost(
    mixed: tuple[Other, list[Shown]], has_lineups: bool
) -> None:
    polling = run_virtual(watch(*mixed, has_lineups=has_lineups))

    assert polling.versions() == [f"card:home:{nth} 1 insert" for nth in range(1, len(OURS) + 1)]
    assert polling.state.event_players == {str(11 + nth) for nth in range(len(OURS))}
