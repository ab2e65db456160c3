"""Whether a source is believed: the rules, poll by poll."""

import pytest
from msgspec import Struct

from longstop.errors import SuspectAnswer, UnconfirmedMatch, WrongMatch
from longstop.matches.trust import (
    AGREEING_SECONDS,
    CONFIRMED_SECONDS,
    LISTING_OVERRULED_SECONDS,
    SUSPECT_SECONDS,
    Answers,
    Judgement,
    Trust,
    judge_contradiction,
    judge_known,
    judge_new,
    judge_suspect,
)
from longstop.model.match import MatchStatus
from longstop.model.source_queries_and_answers import ListingEntry

OURS, THEIRS = ("T1", "T2"), ("T8", "T9")
NEW = Trust(is_known=False)
CONFIRMED = Trust(is_known=True)
CONTRADICTION = WrongMatch("the page has teams T8 and T9")


class Entry(ListingEntry, frozen=True, kw_only=True):
    sides: tuple[str, ...] = ()

    @property
    def teams(self) -> tuple[str, ...]:
        return self.sides


class Ball(Struct, frozen=True):
    number: int


def listed(*teams: str) -> Entry:
    return Entry(source_id="M1", status=MatchStatus.LIVE, headline="", sides=teams)


def shows(teams: tuple[str, ...] = OURS, balls: int = 0, *, agree: bool | None = True) -> Answers:
    return Answers(teams=teams, events=frozenset(map(Ball, range(balls))), agree=agree)


def new_polls(answers: Answers, entry: ListingEntry | None, *times: float) -> list[Judgement]:
    trust, judged = NEW, []
    for now in times:
        judged.append(judge_new(trust, answers, entry, now))
        trust = judged[-1].trust
    return judged


@pytest.mark.req("JOB-6")
def test_a_new_match_is_believed_at_once_if_page_and_listing_name_the_same_teams() -> None:
    [judged] = new_polls(shows(), listed(*OURS), 0.0)

    assert (judged.error, judged.trust) == (None, CONFIRMED)


@pytest.mark.req("JOB-6")
def test_a_new_match_is_not_believed_while_the_listing_names_other_teams() -> None:
    judged = new_polls(shows(THEIRS), listed(*OURS), 0.0, 2.5, 5.0, 12.5, 30.0, 39.0)

    assert all(isinstance(each.error, WrongMatch) for each in judged)


def test_a_listing_with_other_keys_than_the_page_does_not_lock_a_match_out_for_ever() -> None:
    judged = new_polls(shows(THEIRS), listed(*OURS), 0.0, 2.5, 5.0, LISTING_OVERRULED_SECONDS)

    assert judged[-1].error is None
    assert judged[-1].trust.is_unconfirmed(LISTING_OVERRULED_SECONDS)


@pytest.mark.parametrize("entry", [None, listed()], ids=["unlisted", "an entry without teams"])
def test_without_a_listing_three_polls_must_agree(entry: ListingEntry | None) -> None:
    judged = new_polls(shows(), entry, 0.0, 5.0, AGREEING_SECONDS)

    assert [type(each.error) for each in judged] == [UnconfirmedMatch, UnconfirmedMatch, type(None)]


def test_three_polls_within_a_moment_are_not_enough() -> None:
    judged = new_polls(shows(), None, 0.0, 0.1, 0.2, 0.3)

    assert all(each.error for each in judged)


def test_polls_that_show_different_matches_confirm_nothing() -> None:
    trust, errors = NEW, []
    for now in range(20):
        judged = judge_new(trust, shows(OURS if now % 2 else THEIRS), None, float(now))
        trust = judged.trust
        errors.append(judged.error)

    assert all(errors)


def test_polls_with_the_same_teams_and_other_events_confirm_nothing() -> None:
    trust, errors = NEW, []
    for now in range(20):
        events = frozenset(Ball(100 * (now % 2) + number) for number in range(6))
        judged = judge_new(trust, Answers(teams=OURS, events=events, agree=True), None, float(now))
        trust = judged.trust
        errors.append(judged.error)

    assert all(errors)


def test_a_list_that_grows_still_agrees() -> None:
    trust = NEW
    for now in (0.0, 2.5, 5.0, 7.5, 10.0):
        judged = judge_new(trust, shows(balls=1 + int(now)), None, now)
        trust = judged.trust

    assert judged.error is None


def test_a_new_match_whose_scoreboard_and_list_disagree_needs_three_polls_in_spite_of_the_listing() -> None:
    judged = new_polls(shows(agree=False), listed(*OURS), 0.0, 5.0, AGREEING_SECONDS)

    assert [type(each.error) for each in judged] == [UnconfirmedMatch, UnconfirmedMatch, type(None)]


@pytest.mark.parametrize("entry", [None, listed(*OURS)], ids=["unlisted", "listed with teams"])
def test_a_page_without_teams_needs_three_polls(entry: ListingEntry | None) -> None:
    judged = new_polls(shows(()), entry, 0.0, 5.0, AGREEING_SECONDS)

    assert [type(each.error) for each in judged] == [UnconfirmedMatch, UnconfirmedMatch, type(None)]


def test_a_sport_without_teams_needs_its_entry_in_the_listing() -> None:
    [judged] = new_polls(shows(()), listed(), 0.0)

    assert judged.error is None


def test_a_match_believed_without_a_witness_is_confirmed_by_the_listing_or_by_time() -> None:
    alone = Trust(is_known=True, unconfirmed_since=0.0)

    assert alone.is_unconfirmed(1.0)
    assert judge_known(alone, shows(agree=True), None, OURS, 1.0).trust.is_unconfirmed(1.0), "one wrong match has both"
    assert not judge_known(alone, shows(), listed(*OURS), OURS, 1.0).trust.is_unconfirmed(1.0)
    assert not alone.is_unconfirmed(CONFIRMED_SECONDS)


def test_a_rebuilt_match_is_unconfirmed_for_a_while_though_the_listing_agrees() -> None:
    rebuilt = contradictions(shows(THEIRS, 6), listed(*THEIRS), 0.0, 5.0, AGREEING_SECONDS)[-1].trust
    [later] = known_polls(rebuilt, shows(THEIRS), listed(*THEIRS), 15.0, before=THEIRS)

    assert later.trust.is_unconfirmed(15.0)
    assert not later.trust.is_unconfirmed(AGREEING_SECONDS + CONFIRMED_SECONDS)


def test_a_page_of_other_teams_is_refused_while_the_listing_backs_what_is_stored() -> None:
    judged = judge_known(CONFIRMED, shows(THEIRS), listed(*OURS), OURS, 0.0)

    assert isinstance(judged.error, WrongMatch)
    assert judged.trust.doubt


def known_polls(
    trust: Trust, answers: Answers, entry: ListingEntry | None, *times: float, before: tuple[str, ...] = ()
) -> list[Judgement]:
    judged = []
    for now in times:
        judged.append(judge_known(trust, answers, entry, OURS, now, before))
        trust = judged[-1].trust
    return judged


@pytest.mark.parametrize(
    ("teams", "before"),
    [(THEIRS, OURS), (THEIRS, ()), (OURS[::-1], OURS)],
    ids=["others", "others after a restart", "swapped"],
)
def test_one_answer_changes_no_teams_without_the_listing(teams: tuple[str, ...], before: tuple[str, ...]) -> None:
    judged = known_polls(CONFIRMED, shows(teams), None, 0.0, 5.0, AGREEING_SECONDS, before=before)

    assert [type(each.error) for each in judged] == [UnconfirmedMatch, UnconfirmedMatch, type(None)]


def test_one_poll_and_listing_that_agree_change_no_teams() -> None:
    judged = known_polls(CONFIRMED, shows(THEIRS), listed(*THEIRS), 0.0, 5.0, AGREEING_SECONDS, before=OURS)

    assert [type(each.error) for each in judged] == [UnconfirmedMatch, UnconfirmedMatch, type(None)]
    assert judged[-1].trust.is_unconfirmed(AGREEING_SECONDS), "they may be wrong alike"


def test_a_listing_of_unknown_teams_keeps_a_stored_match_unreliable() -> None:
    [judged] = known_polls(CONFIRMED, shows(), listed(*THEIRS), 0.0, before=OURS)

    assert judged.error is None
    assert judged.trust.is_contradicted


def test_a_listing_with_the_teams_the_other_way_round_refuses_nothing_and_keeps_the_match_unreliable() -> None:
    swapped = listed(*OURS[::-1])
    [again] = known_polls(CONFIRMED, shows(), swapped, 0.0, before=OURS)
    [rebuilt] = contradictions(shows(THEIRS, 6), swapped, 0.0, trust=again.trust)
    [agreed] = known_polls(again.trust, shows(), listed(*OURS), 10.0, before=OURS)

    assert again.error is None
    assert again.trust.is_contradicted
    assert rebuilt.trust.polls == 1, "an overruled listing backs nothing"
    assert not agreed.trust.is_contradicted


def contradictions(
    answers: Answers, entry: ListingEntry | None, *times: float, trust: Trust = CONFIRMED
) -> list[Judgement]:
    judged = []
    for now in times:
        judged.append(judge_contradiction(trust, CONTRADICTION, answers, entry, OURS, now))
        trust = judged[-1].trust
    return judged


@pytest.mark.req("JOB-6")
def test_what_is_stored_is_replaced_after_three_polls_that_contradict_it_in_the_same_way() -> None:
    judged = contradictions(shows(THEIRS, 6), listed(*THEIRS), 0.0, 5.0, AGREEING_SECONDS)

    assert [each.error for each in judged] == [CONTRADICTION, CONTRADICTION, None]


def test_what_is_stored_stays_while_the_listing_backs_it() -> None:
    judged = contradictions(shows(THEIRS, 6), listed(*OURS), 0.0, 5.0, 10.0, 60.0, 600.0)

    assert all(each.error is CONTRADICTION for each in judged)


def test_a_contradiction_that_contradicts_itself_must_stay_so_for_longer() -> None:
    judged = contradictions(shows(THEIRS, 6, agree=False), None, 0.0, 5.0, AGREEING_SECONDS, SUSPECT_SECONDS)

    assert [each.error for each in judged] == [CONTRADICTION, CONTRADICTION, CONTRADICTION, None]


def suspect_polls(*times: float) -> list[Judgement]:
    altered = shows()._replace(suspicions=("the halves do not add up to the score",))
    trust, judged = CONFIRMED, []
    for now in times:
        judged.append(judge_suspect(trust, altered, now))
        trust = judged[-1].trust
    return judged


@pytest.mark.req("JOB-6")
def test_a_suspect_answer_is_not_believed_until_it_has_stayed_so_for_long() -> None:
    judged = suspect_polls(0.0, 15.0, SUSPECT_SECONDS)

    assert [type(each.error) for each in judged] == [SuspectAnswer, SuspectAnswer, type(None)]


def test_a_suspicion_that_was_tolerated_stays_tolerated_and_contradicted_until_a_clean_answer() -> None:
    tolerated = suspect_polls(0.0, 15.0, SUSPECT_SECONDS)[-1].trust.believed(31.0, is_witnessed=True)

    assert judge_suspect(tolerated, shows()._replace(suspicions=tuple(tolerated.tolerated)), 33.0).error is None
    assert tolerated.is_contradicted
    clean = judge_suspect(tolerated, shows(), 35.0)
    assert clean == (CONFIRMED, None)


def test_a_tolerated_contradiction_stays_tolerated_when_its_numbers_change() -> None:
    trust = CONFIRMED
    for goals, now in ((2, 0.0), (2, 15.0), (2, SUSPECT_SECONDS), (3, 33.0)):
        altered = shows()._replace(suspicions=(f"current {goals}, display {goals + 1}",))
        judged = judge_suspect(trust, altered, now)
        trust = judged.trust

    assert judged.error is None


def test_different_contradictions_are_no_repetition() -> None:
    trust, errors = CONFIRMED, []
    for nth, what in enumerate(("home score", "away score", "minute", "halves")):
        judged = judge_suspect(trust, shows()._replace(suspicions=(f"the {what} is altered",)), 10.0 * nth)
        trust = judged.trust
        errors.append(judged.error)

    assert all(errors)


def test_a_listing_that_was_overruled_is_right_again_once_the_page_agrees_with_it() -> None:
    trust = Trust(is_known=True, overruled=OURS)
    [agreed] = known_polls(trust, shows(), listed(*OURS), 0.0, before=OURS)
    rebuilt = contradictions(shows(OURS, 6), listed(*OURS), 0.0, 5.0, AGREEING_SECONDS, trust=trust)[-1]

    assert (agreed.error, agreed.trust.overruled) == (None, ())
    assert (rebuilt.error, rebuilt.trust.overruled) == (None, ())


def test_a_failed_listing_does_not_end_an_overruling() -> None:
    trust = Trust(is_known=True, overruled=OURS[::-1])
    [without] = known_polls(trust, shows(), None, 0.0, before=OURS)
    [again] = known_polls(without.trust, shows(), listed(*OURS[::-1]), 5.0, before=OURS)

    assert again.error is None
