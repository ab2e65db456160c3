"""Seeded football matches: the same seed and index give the same match."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from itertools import count
from random import Random

from msgspec import Struct
from msgspec.structs import replace

from longstop_lab.simulator.football.model import (
    AWAY,
    HOME,
    SIDES,
    FootballContent,
    FootballEntry,
    FootballMatch,
    FootballResultTruth,
    GoalTruth,
    KickTruth,
    LineupTruth,
    MissedPenaltyTruth,
    PeriodTruth,
    StatusTruth,
    VarTruth,
)
from longstop_lab.simulator.football.teams import Pitch, football_key, invent_teams

_CUP_SHARE = 0.4
#: How likely things are in a minute, for each side.
_GOAL, _CARD, _SUBSTITUTION, _INJURY = 0.0145, 0.022, 0.065, 0.003
_RED_SHARE, _UPGRADE_SHARE = 0.04, 0.04
_REVERSED_SHARE, _CHECKED_SHARE = 0.12, 0.05
_MISSED_SHARE = 0.15
_FIRST_SUBSTITUTION = 46
#: VAR decisions are numbered on their own, as on the real site.
_FIRST_ID, _FIRST_VAR_ID = 118_000_000, 679_000


class _Story(StrEnum):
    PLAYED = "played"
    RETIMED = "re-timed"
    POSTPONED = "postponed"
    PLAYED_LATER = "postponed and played later"
    INTERRUPTED = "interrupted and resumed"
    ABANDONED = "abandoned"


_STORIES = {
    _Story.PLAYED: 70,
    _Story.RETIMED: 7,
    _Story.POSTPONED: 4,
    _Story.PLAYED_LATER: 6,
    _Story.INTERRUPTED: 8,
    _Story.ABANDONED: 5,
}


class _Half(Struct, frozen=True, kw_only=True):
    """A part of the match."""

    status: str
    first: int
    last: int
    ends_as: str
    #: The most minutes that are added.
    most_added: int
    break_status: str
    break_seconds: float


_HALVES = (
    _Half(status="1st half", first=1, last=45, ends_as="HT", most_added=5, break_status="Halftime", break_seconds=900),
    _Half(status="2nd half", first=46, last=90, ends_as="FT", most_added=12, break_status="", break_seconds=0),
)
_EXTRA_HALVES = (
    _Half(
        status="1st extra",
        first=91,
        last=105,
        ends_as="ET HT",
        most_added=3,
        break_status="Extra time halftime",
        break_seconds=120,
    ),
    _Half(status="2nd extra", first=106, last=120, ends_as="AET", most_added=3, break_status="", break_seconds=0),
)


def play_football(seed: int, index: int, *, is_cup: bool | None = None) -> FootballMatch:
    """Return the final truth of the football match number `index` of the seed, of a cup or as the dice fall."""
    return _Play(index, Random(f"football {seed} {index}"), is_cup).play()


class _Abandoned(Exception):
    """The referee has called it off."""


class _Play:
    """A match under way."""

    def __init__(self, index: int, dice: Random, is_cup: bool | None) -> None:
        self._index = index
        self._dice = dice
        self._home, self._away = invent_teams(index, dice)
        self._pitches = {HOME: Pitch(self._home), AWAY: Pitch(self._away)}
        self._score = {HOME: 0, AWAY: 0}
        drawn_as_cup = dice.random() < _CUP_SHARE
        self._is_cup = drawn_as_cup if is_cup is None else is_cup
        self._story = dice.choices(list(_STORIES), list(_STORIES.values()))[0]
        #: The minute in which play stops, if it does.
        self._stops_in = dice.randint(5, 88) if self._story in (_Story.INTERRUPTED, _Story.ABANDONED) else 0
        #: The minute in which a penalty is missed, if one is.
        self._missed_in = dice.randint(5, 88) if dice.random() < _MISSED_SHARE else 0
        self._shift = 0.0
        self._at = 0.0
        self._entries: list[FootballEntry] = []
        self._ids = 0

    def play(self) -> FootballMatch:
        self._say("Not started", at=-7200)
        self._plan()
        if self._story is not _Story.POSTPONED:
            self._line_up()
            try:
                self._decide()
            except _Abandoned:
                self._end("Abandoned", "abandoned", outcome="abandoned")
        return FootballMatch(
            key=football_key(self._index),
            home=self._home,
            away=self._away,
            is_cup=self._is_cup,
            entries=tuple(sorted(self._entries, key=lambda entry: entry.at)),
        )

    # --- before ---

    def _plan(self) -> None:
        """Move the start, when that is this match's story."""
        match self._story:
            case _Story.RETIMED:
                self._shift = self._dice.choice((240.0, 3600.0, 10_800.0, 169_200.0))
                self._say("Not started", at=-5400)
            case _Story.POSTPONED:
                self._say("Postponed", at=-self._dice.uniform(600, 5000))
            case _Story.PLAYED_LATER:
                self._say("Postponed", at=-self._dice.uniform(600, 5000))
                self._shift = 86_400.0 * self._dice.randint(2, 9)
                self._say("Not started", at=self._dice.uniform(3600, 80_000))

    def _line_up(self) -> None:
        """Show a guess of each eleven, wrong in one or two places, and the confirmed ones an hour before."""
        for side, pitch in self._pitches.items():
            team = pitch.team
            eleven, bench = [[player.key for player in players] for players in (team.eleven, team.bench)]
            confirmed = LineupTruth(
                side=side, is_confirmed=True, formation=team.formation, eleven=tuple(eleven), bench=tuple(bench)
            )
            for nth in self._dice.sample(range(1, len(bench)), self._dice.randint(1, 2)):
                eleven[nth], bench[nth] = bench[nth], eleven[nth]
            guess = replace(confirmed, is_confirmed=False, eleven=tuple(eleven), bench=tuple(bench))
            guessed_at = self._shift - self._dice.uniform(4200, 5400)
            settled_at = self._shift - self._dice.uniform(2400, 3600)
            self._entries.append(
                FootballEntry(
                    at=guessed_at, id=f"lineup-{side}", content=confirmed, shown_first=guess, settled_at=settled_at
                )
            )

    # --- play ---

    def _decide(self) -> None:
        self._at = self._shift
        for half in _HALVES:
            self._play_half(half)
        if not (self._is_cup and self._is_level()):
            self._end("Ended", "FT")
            return
        self._say("Awaiting extra time")
        self._at += 300
        for half in _EXTRA_HALVES:
            self._play_half(half)
        if not self._is_level():
            self._end("AET", "AET")
            return
        self._say("Awaiting penalties")
        self._at += 240
        self._say("Penalties")
        kicks = shoot_out({side: pitch.playing for side, pitch in self._pitches.items()}, self._dice)
        for kick in kicks:
            self._at += self._dice.uniform(30, 60)
            self._add(kick)
        self._at += 60
        last = kicks[-1]
        ended = PeriodTruth(period="PEN", minute=120, added=0, home=last.home, away=last.away)
        self._entries.append(FootballEntry(at=self._at, id="period-PEN", content=ended))
        self._end("AP", "AP", penalties=(last.home, last.away))

    def _play_half(self, half: _Half) -> None:
        self._say(half.status)
        starts_at = self._at
        added = self._dice.randint(0, half.most_added)
        for nth, minute in enumerate(range(half.first, half.last + added + 1)):
            self._at = max(self._at, starts_at + 60 * nth)
            self._play_minute(min(minute, half.last), max(0, minute - half.last))
            if minute == self._stops_in:
                self._stop(half)
                starts_at = self._at - 60 * nth
        self._at = max(self._at, starts_at + 60 * (half.last - half.first + 1 + added))
        self._entries.append(
            FootballEntry(
                at=self._at,
                id=f"period-{half.ends_as}",
                content=PeriodTruth(period=half.ends_as, minute=half.last, added=added, **self._score),
            )
        )
        if half.break_status:
            self._say(half.break_status)
            self._at += half.break_seconds

    def _stop(self, half: _Half) -> None:
        self._stops_in = 0
        self._say("Interrupted")
        self._at += self._dice.uniform(1200, 3600)
        if self._story is _Story.ABANDONED:
            raise _Abandoned
        self._say(half.status)

    def _play_minute(self, minute: int, added: int) -> None:
        if minute == self._missed_in and not added:
            side = self._dice.choice(SIDES)
            player = self._pitches[side].random_player(self._dice)
            self._add(MissedPenaltyTruth(side=side, minute=minute, added=added, player=player))
        for side in SIDES:
            if self._dice.random() < _GOAL:
                self._goal(side, minute, added)
            if self._dice.random() < _CARD:
                self._card(side, minute, added)
            is_injury = self._dice.random() < _INJURY
            is_tactical = minute >= _FIRST_SUBSTITUTION and self._dice.random() < _SUBSTITUTION
            if (is_injury or is_tactical) and self._pitches[side].may_substitute:
                self._add(self._pitches[side].substitute(side, minute, added, self._dice, is_injury=is_injury))

    def _goal(self, side: str, minute: int, added: int) -> None:
        how = self._dice.choices(("regular", "penalty", "own goal"), (86, 9, 5))[0]
        scorers = self._pitches[_other(side) if how == "own goal" else side]
        scorer = scorers.random_player(self._dice)
        has_assist = how == "regular" and self._dice.random() < 0.7
        score = {**self._score, side: self._score[side] + 1}
        goal = GoalTruth(
            side=side,
            minute=minute,
            added=added,
            scorer=scorer,
            assist=scorers.random_player(self._dice, other_than=scorer) if has_assist else None,
            how=how,
            **score,
        )
        if self._dice.random() < _REVERSED_SHARE:
            self._review(goal, None, _decision(goal, "goal not awarded"))
            return
        self._score = score
        if self._dice.random() < _CHECKED_SHARE:
            self._review(goal, goal, _decision(goal, "goal awarded"))
        else:
            self._add(goal)

    def _card(self, side: str, minute: int, added: int) -> None:
        pitch = self._pitches[side]
        player = pitch.random_player(self._dice)
        is_upgraded = self._dice.random() < _UPGRADE_SHARE
        is_red = is_upgraded or self._dice.random() < _RED_SHARE
        if (is_red or pitch.is_booked(player)) and not pitch.may_lose_a_player:
            return
        was_booked = pitch.is_booked(player)
        card = pitch.show_card(side, minute, added, player, is_red=is_red)
        if is_upgraded and not was_booked:
            decision = VarTruth(side=side, minute=minute, added=added, decision="card upgrade", player=player)
            self._review(replace(card, card="yellow"), card, decision)
        else:
            self._add(card)

    def _review(self, shown: FootballContent, final: FootballContent | None, decision: VarTruth) -> None:
        """Stop play for a review; nothing else happens during it."""
        self._at += self._dice.uniform(1, 8)
        settled_at = self._at + self._dice.uniform(40, 150)
        entry = FootballEntry(at=self._at, id=self._next_id(), content=final, shown_first=shown, settled_at=settled_at)
        self._entries.append(entry)
        self._at = settled_at
        self._entries.append(FootballEntry(at=settled_at, id=str(_FIRST_VAR_ID + self._ids), content=decision))

    # --- writing down ---

    def _is_level(self) -> bool:
        return self._score[HOME] == self._score[AWAY]

    def _say(self, status: str, *, at: float | None = None) -> None:
        content = StatusTruth(status=status, shift_seconds=self._shift)
        self._entries.append(FootballEntry(at=self._at if at is None else at, id="status", content=content))

    def _add(self, content: FootballContent) -> None:
        self._at += self._dice.uniform(1, 8)
        self._entries.append(FootballEntry(at=self._at, id=self._next_id(), content=content))

    def _next_id(self) -> str:
        self._ids += 1
        return str(_FIRST_ID + 10 * self._ids)

    def _end(
        self, status: str, after: str, *, outcome: str | None = None, penalties: tuple[int, int] | None = None
    ) -> None:
        self._at += 20
        self._say(status)
        home_kicks, away_kicks = penalties or (None, None)
        ahead = self._score[HOME] - self._score[AWAY] or (home_kicks or 0) - (away_kicks or 0)
        content = FootballResultTruth(
            outcome=outcome or (HOME if ahead > 0 else AWAY if ahead < 0 else "draw"),
            after=after,
            home_penalties=home_kicks,
            away_penalties=away_kicks,
            **self._score,
        )
        self._entries.append(FootballEntry(at=self._at, id="result", content=content))


def _other(side: str) -> str:
    return AWAY if side == HOME else HOME


def _decision(goal: GoalTruth, decision: str) -> VarTruth:
    return VarTruth(side=goal.side, minute=goal.minute, added=goal.added, decision=decision, player=goal.scorer)


_KICKS = 5
_SCORED_SHARE = 0.75


def shoot_out(players: Mapping[str, Sequence[str]], dice: Random) -> list[KickTruth]:
    """Return the kicks; a player kicks again only after all others of the side."""
    first, second = dice.choice(((HOME, AWAY), (AWAY, HOME)))
    orders = {side: dice.sample(list(players[side]), len(players[side])) for side in (first, second)}
    score = {HOME: 0, AWAY: 0}
    kicks: list[KickTruth] = []
    for sequence in count(1):
        side = first if sequence % 2 else second
        nth = (sequence - 1) // 2
        is_scored = dice.random() < _SCORED_SHARE
        score[side] += is_scored
        player = orders[side][nth % len(orders[side])]
        kicks.append(KickTruth(side=side, sequence=sequence, player=player, is_scored=is_scored, **score))
        if is_decided(score[first], score[second], sequence):
            break
    return kicks


def is_decided(first: int, second: int, kicks: int) -> bool:
    """Return whether the shoot-out is decided, given the goals of both sides and the number of kicks."""
    if kicks < 2 * _KICKS:
        first_left, second_left = _KICKS - (kicks + 1) // 2, _KICKS - kicks // 2
        return first > second + second_left or second > first + first_left
    return kicks % 2 == 0 and first != second
