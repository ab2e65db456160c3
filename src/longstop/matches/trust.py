"""Whether what a source shows may be believed: identity by agreement, contradictions, suspect answers. Pure.

One answer proves nothing: it may be of another match, an old copy, or altered on purpose. Two bodies of one poll are
not two witnesses either, since both may be of the same wrong match. So a new match is stored once its own page agrees
with the listing, and a stored match is replaced once several polls contradict it in the same way.
"""

import re
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
#: Sites contradict themselves now and then: what stays the same is believed after this time.
SUSPECT_SECONDS = 30.0
#: A match that was believed without a witness counts as confirmed after this time without a contradiction.
CONFIRMED_SECONDS = 30.0

#: A doubt names at most this many suspicions.
MANY_SUSPICIONS = 5

_NUMBER = re.compile(r"-?\d+")


class Answers(NamedTuple):
    """What one poll showed of a match."""

    #: Keys of the teams, in an order that never changes; empty if the page shows none.
    teams: tuple[str, ...]
    events: frozenset[object]
    #: Whether the resources of the poll agree with each other; `None` if there is only one.
    agree: bool | None
    #: Why an answer may be altered.
    suspicions: tuple[str, ...] = ()

    @property
    def suspicion_kinds(self) -> frozenset[str]:
        """Return the suspicions without their numbers, which change with every goal."""
        return frozenset(_NUMBER.sub("", suspicion) for suspicion in self.suspicions)


class Trust(Struct, frozen=True, kw_only=True):
    """What this run knows about the answers of one feed. Losing it costs a few polls, no data."""

    #: Whether something of the match is stored: then its identity was confirmed before.
    is_known: bool
    #: Why the last poll was not believed; empty if it was.
    doubt: str = ""
    #: What the last polls showed that were not believed, how many in a row showed it, and since when.
    teams: tuple[str, ...] = ()
    suspicion_kinds: frozenset[str] = frozenset()
    events: frozenset[object] = frozenset()
    polls: int = 0
    since: float = 0.0
    #: Kinds of suspicions that have stayed so long that the answers are believed all the same.
    tolerated: frozenset[str] = frozenset()
    #: The teams of the listing, if it has contradicted the page for so long that the page is believed.
    overruled: tuple[str, ...] = ()
    #: Since when a match has been believed without a witness; `None` if there was one.
    unconfirmed_since: float | None = None
    #: Whether it replaced another belief then: the listing may be wrong in the same way, so it confirms nothing.
    is_rebuilt: bool = False

    @property
    def is_contradicted(self) -> bool:
        return bool(self.doubt or self.tolerated or self.overruled)

    def is_unconfirmed(self, now: float) -> bool:
        return self.unconfirmed_since is not None and now - self.unconfirmed_since < CONFIRMED_SECONDS

    def refused(self, doubt: str) -> "Trust":
        """Return the trust after a poll that showed nothing of the match, such as a page that names another one."""
        return replace(self, doubt=doubt, polls=0, events=frozenset())

    def counted(self, doubt: str, answers: Answers, now: float) -> "Trust":
        """Return the trust after a poll that is not believed. One that shows something else starts a new count."""
        is_same = (answers.teams, answers.suspicion_kinds) == (self.teams, self.suspicion_kinds)
        agrees = self.polls > 0 and is_same and 2 * len(self.events & answers.events) >= len(self.events)
        return replace(
            self,
            doubt=doubt,
            teams=answers.teams,
            suspicion_kinds=answers.suspicion_kinds,
            events=answers.events,
            polls=self.polls + 1 if agrees else 1,
            since=self.since if agrees else now,
        )

    def believed(self, now: float, *, is_witnessed: bool) -> "Trust":
        since = now if self.unconfirmed_since is None else self.unconfirmed_since
        return Trust(
            is_known=True,
            unconfirmed_since=None if is_witnessed else since,
            tolerated=self.tolerated,
            overruled=self.overruled,
            is_rebuilt=self.is_rebuilt,
        )

    def replaced(self, now: float) -> "Trust":
        """Return the trust after a poll that replaces what was believed."""
        return replace(self, is_rebuilt=True, unconfirmed_since=now).believed(now, is_witnessed=False)

    def has_agreed(self, seconds: float, now: float) -> bool:
        return self.polls >= AGREEING_POLLS and now - self.since >= seconds


class Judgement(NamedTuple):
    """The trust after a poll, and why it is not believed; `None` if it is."""

    trust: Trust
    error: ObservationError | None = None


def judge_suspect(trust: Trust, answers: Answers, now: float) -> Judgement:
    """Judge only whether the answers contradict themselves, whatever match they are of."""
    kinds = answers.suspicion_kinds
    if kinds <= trust.tolerated:
        return Judgement(replace(trust, tolerated=kinds))
    more = len(answers.suspicions) - MANY_SUSPICIONS
    doubt = "; ".join((*answers.suspicions[:MANY_SUSPICIONS], *([f"and {more} more"] if more > 0 else ())))
    after = trust.counted(doubt, answers, now)
    if after.has_agreed(SUSPECT_SECONDS, now):
        return Judgement(replace(trust, tolerated=kinds))
    return Judgement(after, SuspectAnswer(doubt))


def judge_new(trust: Trust, answers: Answers, listed: ListingEntry | None, now: float) -> Judgement:
    """Judge a poll of a match of which nothing is stored yet."""
    is_witnessed = listed is not None and answers.teams == listed.teams
    if is_witnessed and answers.agree is not False:
        return Judgement(trust.believed(now, is_witnessed=True))
    if is_witnessed:
        return _unconfirmed(trust, "scoreboard and event list disagree", answers, now)
    if listed is None or not (listed.teams and answers.teams):
        return _unconfirmed(trust, "no listing shows this match", answers, now)
    return _against_listing(trust, answers, listed.teams, now)


def judge_known(
    trust: Trust,
    answers: Answers,
    listed: ListingEntry | None,
    stored: Collection[str],
    now: float,
    before: tuple[str, ...] = (),
) -> Judgement:
    """Judge a poll that fits the stored match; `before` are the teams of its last poll.

    Before the first event the teams may change, but not by one poll: listing and page may be wrong alike.
    """
    trust, listing = _with_listing(trust, answers, listed)
    is_witnessed = bool(answers.teams) and answers.teams == listing
    if answers.teams and listing and not is_witnessed:
        if set(listing) <= set(stored) and answers.teams != before:
            return _against_listing(trust, answers, listing, now)
        trust = replace(trust, overruled=listing)
    is_changed = answers.teams != before if before else bool(stored) and not set(answers.teams) <= set(stored)
    if answers.teams and is_changed:
        return _unconfirmed(trust, f"the teams have become {_named(answers.teams)}", answers, now)
    is_confirmed = trust.unconfirmed_since is None or (is_witnessed and not trust.is_rebuilt)
    return Judgement(trust.believed(now, is_witnessed=is_confirmed))


def judge_contradiction(
    trust: Trust,
    error: ObservationError,
    answers: Answers,
    listed: ListingEntry | None,
    stored: Collection[str],
    now: float,
) -> Judgement:
    """Judge a poll that contradicts the stored match. Without an error, the match is to be rebuilt from it."""
    trust, listing = _with_listing(trust, answers, listed)
    if listing and answers.teams != listing and set(listing) <= set(stored):
        return Judgement(trust.refused(error.reason), error)
    after = trust.counted(error.reason, answers, now)
    if after.has_agreed(SUSPECT_SECONDS if answers.agree is False else AGREEING_SECONDS, now):
        return Judgement(after.replaced(now))
    return Judgement(after, error)


def _with_listing(trust: Trust, answers: Answers, listed: ListingEntry | None) -> tuple[Trust, tuple[str, ...]]:
    """Return the trust and the listing's teams, which are empty while they are overruled."""
    listing = listed.teams if listed else ()
    if listing and (listing == answers.teams or listing != trust.overruled):
        trust = replace(trust, overruled=())
    return trust, () if listing == trust.overruled else listing


def _unconfirmed(trust: Trust, doubt: str, answers: Answers, now: float) -> Judgement:
    """Believe what several polls agree on."""
    after = trust.counted(doubt, answers, now)
    if after.has_agreed(AGREEING_SECONDS, now):
        return Judgement(after.replaced(now) if trust.is_known else after.believed(now, is_witnessed=False))
    return Judgement(after, UnconfirmedMatch(doubt))


def _against_listing(trust: Trust, answers: Answers, listing: tuple[str, ...], now: float) -> Judgement:
    """Believe the page once it has contradicted the listing for long."""
    doubt = f"the page is of {_named(answers.teams)}, the listing shows {_named(listing)}"
    after = trust.counted(doubt, answers, now)
    if after.has_agreed(LISTING_OVERRULED_SECONDS, now):
        return Judgement(replace(after, overruled=listing).believed(now, is_witnessed=False))
    return Judgement(after, WrongMatch(doubt))


def _named(teams: Collection[str]) -> str:
    return " and ".join(teams)
