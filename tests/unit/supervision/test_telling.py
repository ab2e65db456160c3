from datetime import timedelta

import pytest
from msgspec.structs import replace

from longstop.model.breaker import BreakerNote
from longstop.model.recovery import Recovery, RecoveryKind, RecoveryOutcome
from longstop.supervision.telling import left_alone, not_coming_up, silence
from longstop.supervision.verdict import heard
from tests.readers import MOMENT, NOW, a_beat


def a_note(scope: str, subject: str = "crex", state: str = "open", seconds: float | None = None) -> BreakerNote:
    """Return a note of a beat that is a second old; so many seconds are left now."""
    left = None if seconds is None else seconds + 1
    return BreakerNote(scope=scope, subject=subject, state=state, since=NOW, left_seconds=left, reason="secret")


@pytest.mark.parametrize(
    ("ages", "said"),
    [
        ((), "no scraper has run here yet"),
        ((16,), "the last scraper was heard 16 s ago"),
        ((5000, 360), "the last scraper was heard 6 min ago"),
        ((3600 * 5,), "the last scraper was heard 5 h ago"),
        ((86400 * 3,), "the last scraper was heard 3 days ago"),
        ((-3600, 60), "the last scraper was heard 60 s ago"),
        ((-3600,), "the last scraper was heard at a time still to come: a clock was set back"),
    ],
)
def test_silence_is_told_with_its_length(ages: tuple[float, ...], said: str) -> None:
    assert silence([a_beat(ago=age) for age in ages], MOMENT) == said


def test_a_scraper_that_said_goodbye_has_stopped_and_is_not_missed() -> None:
    missed, over = a_beat("node-1", ago=90), replace(a_beat("node-2", ago=3), is_over=True)

    assert silence([missed, over], MOMENT) == "the last scraper stopped 3 s ago, as it was asked to"
    assert silence([over, a_beat("node-1", ago=1)], MOMENT) == "the last scraper was heard 1 s ago"
    assert heard([missed, over], MOMENT) == []


@pytest.mark.parametrize(
    ("note", "said"),
    [
        (a_note("rest", seconds=42), "crex rests for another 42 s, as the site has asked"),
        (a_note("target", "api.test", seconds=600), "target api.test is left alone for up to 10 min more"),
        (a_note("target", "api.test", seconds=-1), "target api.test is left alone"),
        (a_note("source", state="half_open"), "source crex is being tried again"),
        (a_note("layout", "crex live"), "layout crex live is left alone"),
    ],
)
def test_who_is_left_alone_is_told_without_the_words_of_errors(note: BreakerNote, said: str) -> None:
    assert list(left_alone([replace(a_beat(), breakers=(note,))], MOMENT)) == [said]


def test_whole_sites_are_named_before_single_matches_and_the_rest_is_counted() -> None:
    matches = tuple(a_note("match", f"crex_M{number}") for number in range(1, 7))

    told = list(left_alone([replace(a_beat(), breakers=(*matches, a_note("rest")))], MOMENT))

    assert told[0] == "crex rests, as the site has asked"
    assert told[-1] == "and 2 more are left alone"
    assert len(told) == 6


RECOVERED, IN_VAIN, PENDING = RecoveryOutcome.RECOVERED, RecoveryOutcome.NOT_RECOVERED, RecoveryOutcome.PENDING


def a_restart(outcome: RecoveryOutcome, ago: float, subject: str = "api") -> Recovery:
    began_at = NOW - timedelta(seconds=ago)
    return Recovery(
        id="r",
        kind=RecoveryKind.RESTART,
        trigger="it died",
        subject=subject,
        process="up",
        began_at=began_at,
        outcome=outcome,
    )


@pytest.mark.parametrize(
    ("recoveries", "is_told"),
    [
        ([], False),
        ([a_restart(PENDING, 1)], False),  # once is no habit
        ([a_restart(IN_VAIN, 1)], True),
        ([a_restart(PENDING, 1), a_restart(IN_VAIN, 60)], True),
        ([a_restart(RECOVERED, 1), a_restart(IN_VAIN, 60)], False),
        ([a_restart(PENDING, 1), a_restart(RECOVERED, 60), a_restart(IN_VAIN, 70)], False),
        ([a_restart(IN_VAIN, 160)], False),  # of a life before
        ([a_restart(IN_VAIN, 1, subject="scraper")], False),  # its beats tell
    ],
)
def test_an_api_that_dies_again_and_again_is_told(recoveries: list[Recovery], is_told: bool) -> None:
    said = not_coming_up(recoveries, NOW)

    assert said == ("the API does not come up: it died (its log says more)" if is_told else None)
