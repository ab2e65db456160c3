"""How lively a match is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longstop.model.match import MatchStatus
from longstop.watching.rhythm import CYCLES, Rhythm

#: Seconds between two cycles.
STEP = 2.5
AFTER = 180.0


def _after(*news: bool, step: float = STEP) -> Rhythm:
    rhythm = Rhythm(changed_at=0.0)
    for cycle, is_news in enumerate(news, start=1):
        rhythm = rhythm.after(cycle * step, is_news=is_news)
    return rhythm


@pytest.mark.req("FR-022")
@pytest.mark.parametrize(
    ("news", "is_busy"),
    [
        ([True] * 6 + [False] * 4, True),
        ([True] * 5 + [False] * 5, False),  # half is not more than half
        ([True] * 9, False),  # too few cycles to say
        ([True] * 10 + [False] * 5, False),  # only the last ten count
        ([False] * 50 + [True] * 6, True),
    ],
)
def test_a_match_is_busy_when_more_than_half_of_its_last_ten_cycles_brought_news(
    news: list[bool], is_busy: bool
) -> None:
    assert _after(*news).is_busy is is_busy


@pytest.mark.req("FR-024")
@pytest.mark.parametrize(
    ("status", "cycles", "is_break"),
    [
        (MatchStatus.BREAK, 9, False),
        (MatchStatus.BREAK, 10, True),
        (MatchStatus.LIVE, 10, False),
        (MatchStatus.LIVE, 71, False),  # 177.5 s
        (MatchStatus.LIVE, 72, True),
    ],
)
def test_a_break_begins_by_word_and_ten_equal_cycles_or_by_three_minutes_alone(
    status: MatchStatus, cycles: int, is_break: bool
) -> None:
    rhythm = _after(*[False] * cycles)

    assert rhythm.is_break(status, cycles * STEP, AFTER) is is_break


@pytest.mark.req("FR-024")
def test_balls_that_are_30_seconds_apart_are_no_break() -> None:
    rhythm, breaks = Rhythm(changed_at=0.0), 0

    for cycle in range(1, 600):
        rhythm = rhythm.after(cycle * STEP, is_news=cycle % 12 == 0)
        breaks += rhythm.is_break(MatchStatus.LIVE, cycle * STEP, AFTER)

    assert breaks == 0


@pytest.mark.req("FR-024")
@given(st.lists(st.booleans(), max_size=100), st.sampled_from([MatchStatus.LIVE, MatchStatus.BREAK]))
def test_the_first_change_ends_any_break(news: list[bool], status: MatchStatus) -> None:
    now = len(news) * 30.0 + 1.0

    changed = _after(*news, step=30.0).after(now, is_news=True)

    assert not changed.is_break(status, now, AFTER)
    assert changed.changed_at == now
    assert not changed.is_quiet


@given(st.lists(st.booleans(), max_size=200))
def test_a_rhythm_remembers_ten_cycles_however_long_the_match(news: list[bool]) -> None:
    rhythm = _after(*news)

    assert list(rhythm.news) == news[-CYCLES:]
    assert rhythm.unchanged == next((back for back, is_news in enumerate(reversed(news)) if is_news), len(news))
