"""Whether what a source shows may be believed: identity by agreement, contradictions, suspect answers. Pure.

One answer proves nothing: it may be of another match, an old copy, or altered on purpose. Two bodies of one poll are
not two witnesses either, since both may be of the same wrong match. So a new match is stored once its own page agrees
with the listing, and a stored match is replaced once several polls contradict it in the same way.
"""

from collections.abc import Collection
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from longstop.errors import ObservationError, SuspectAnswer, UnconfirmedMatch, WrongMatch
from longstop.model.source_queries_and_answers import ListingEntry

#: Polls that must agree before they are believed without a witness, or against what is stored; and for how long.
AGREEING_POLLS = 3
AGREEING_SECONDS = 10.0
#: If the listing shows other teams for this long, it uses other keys than the match's page.
LISTING_OVERRULED_SECONDS = 40.0
#: Sites contradict themselves now and then: a suspect answer that stays the same is believed after this time.
SUSPECT_SECONDS = 30.0
#: A match that was believed without a witness counts as confirmed after this time without a contradiction.
CONFIRMED_SECONDS = 30.0


class Answers(NamedTuple):
    """What one poll showed of a match."""

    #: Keys of the teams, in an order that never changes; empty if the sport has none.
    teams: tuple[str, ...]
    events: frozenset[object]
    #: Whether the resources of the poll agree with each other; `None` if there is only one.
    agree: bool | None
    #: Why an answer may be altered.
    suspicions: tuple[str, ...] = ()


class Trust(Struct, frozen=True, kw_only=True):
    """What this run knows about the answers of one feed. Losing it costs a few polls, no data."""

    #: Whether something of the match is stored: then its identity was confirmed before.
    is_known: bool = True
    #: Why the last poll was not believed; empty if it was.
    doubt: str = ""
    #: What the last polls showed that were not believed, how many in a row showed it, and since when.
    teams: tuple[str, ...] = ()
    events: frozenset[object] = frozenset()
    polls: int = 0
    since: float = 0.0
    #: Suspicions that have stayed so long that the answers are believed all the same.
    tolerated: frozenset[str] = frozenset()
    #: Since when a match has been believed without a witness; `None` if there was one.
    unconfirmed_since: float | None = None

    @property
    def is_contradicted(self) -> bool:
        return bool(self.doubt or self.tolerated)

    def is_unconfirmed(self, now: float) -> bool:
        return self.unconfirmed_since is not None and now - self.unconfirmed_since < CONFIRMED_SECONDS

    def refused(self, doubt: str) -> "Trust":
        """Return the trust after a poll that showed nothing of the match, such as a page that names another one."""
        return replace(self, doubt=doubt, polls=0, events=frozenset())

    def counted(self, doubt: str, answers: Answers, now: float) -> "Trust":
        """Return the trust after a poll that is not believed. One that shows something else starts a new count."""
        is_same = answers.teams == self.teams and 2 * len(self.events & answers.events) >= len(self.events)
        agrees = self.polls > 0 and is_same
        return replace(
            self,
            doubt=doubt,
            teams=answers.teams,
            events=answers.events,
            polls=self.polls + 1 if agrees else 1,
            since=self.since if agrees else now,
        )

    def believed(self, now: float, *, is_witnessed: bool) -> "Trust":
        since = now if self.unconfirmed_since is None else self.unconfirmed_since
        return Trust(unconfirmed_since=None if is_witnessed else since, tolerated=self.tolerated)

    def has_agreed(self, seconds: float, now: float) -> bool:
        return self.polls >= AGREEING_POLLS and now - self.since >= seconds


class Judgement(NamedTuple):
    """The trust after a poll, and why it is not believed; `None` if it is."""

    trust: Trust
    error: ObservationError | None = None


def judge_suspect(trust: Trust, answers: Answers, now: float) -> Judgement:
    """Judge only whether the answers contradict themselves, whatever match they are of."""
    suspicions = frozenset(answers.suspicions)
    if suspicions <= trust.tolerated:
        return Judgement(replace(trust, tolerated=suspicions))
    doubt = "; ".join(answers.suspicions)
    after = trust.counted(doubt, answers, now)
    if after.has_agreed(SUSPECT_SECONDS, now):
        return Judgement(replace(after, tolerated=suspicions))
    return Judgement(after, SuspectAnswer(doubt))


def judge_new(trust: Trust, answers: Answers, listed: ListingEntry | None, now: float) -> Judgement:
    """Judge a poll of a match of which nothing is stored yet."""
    listing = listed.teams if listed else ()
    is_witnessed = not answers.teams or answers.teams == listing
    if is_witnessed and answers.agree is not False:
        return Judgement(trust.believed(now, is_witnessed=True))
    is_against = bool(listing) and not is_witnessed
    if is_against:
        doubt = f"the page is of {_named(answers.teams)}, the listing shows {_named(listing)}"
    else:
        doubt = "scoreboard and event list disagree" if is_witnessed else "no listing shows this match"
    after = trust.counted(doubt, answers, now)
    if after.has_agreed(LISTING_OVERRULED_SECONDS if is_against else AGREEING_SECONDS, now):
        return Judgement(after.believed(now, is_witnessed=False))
    return Judgement(after, WrongMatch(doubt) if is_against else UnconfirmedMatch(doubt))


def judge_known(
    trust: Trust, answers: Answers, listed: ListingEntry | None, stored: Collection[str], now: float
) -> Judgement:
    """Judge a poll that fits the stored match. Before the first event its teams may change, if the listing says so."""
    listing = listed.teams if listed else ()
    if answers.teams and listing and answers.teams != listing and set(listing) <= set(stored):
        doubt = f"the page is of {_named(answers.teams)}, the listing shows {_named(listing)}"
        return Judgement(trust.refused(doubt), WrongMatch(doubt))
    is_witnessed = trust.unconfirmed_since is None or answers.teams == listing or answers.agree is True
    return Judgement(trust.believed(now, is_witnessed=is_witnessed))


def judge_contradiction(
    trust: Trust,
    error: ObservationError,
    answers: Answers,
    listed: ListingEntry | None,
    stored: Collection[str],
    now: float,
) -> Judgement:
    """Judge a poll that contradicts the stored match. Without an error, the match is to be rebuilt from it."""
    listing = listed.teams if listed else ()
    is_backed = bool(listing) and answers.teams != listing and set(listing) <= set(stored)
    if is_backed or answers.agree is False:
        return Judgement(trust.refused(error.reason), error)
    after = trust.counted(error.reason, answers, now)
    if after.has_agreed(AGREEING_SECONDS, now):
        return Judgement(after.believed(now, is_witnessed=answers.teams == listing))
    return Judgement(after, error)


def _named(teams: Collection[str]) -> str:
    return " and ".join(sorted(teams))
