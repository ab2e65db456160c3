"""What a football site publishes of a match, step by step, including its mistakes."""

from collections.abc import Iterator
from random import Random

from msgspec import Struct
from msgspec.structs import replace

from longstop_lab.simulator.football.model import (
    CardTruth,
    FootballContent,
    FootballEntry,
    FootballMatch,
    GoalTruth,
    SubstitutionTruth,
)

#: The share of goals, cards and substitutions that are first published wrong, or late.
MISTAKE_SHARE = 0.08
#: How many mistakes are found only hours after the end.
_HOURS_LATER_SHARE = 0.1
_GHOST_ID = 5


class FootballStep(Struct, frozen=True, kw_only=True):
    """From this moment on, the event with this id has this content, or is withdrawn."""

    #: Seconds from the kick-off as first planned.
    at: float
    id: str
    content: FootballContent | None


FootballScript = tuple[FootballStep, ...]


def script_football(match: FootballMatch, seed: int, share: float = MISTAKE_SHARE) -> FootballScript:
    """Return the script; its final state is the true one."""
    dice = Random(f"football script {seed} {match.key}")
    steps: list[FootballStep] = []
    for nth, entry in enumerate(match.entries):
        is_wrong = _may_be_wrong(entry) and dice.random() < share
        steps += _mistaken(match, nth, dice) if is_wrong else _published(entry)
    return tuple(sorted(steps, key=lambda step: step.at))


def _published(entry: FootballEntry) -> Iterator[FootballStep]:
    if entry.shown_first is None:
        yield FootballStep(at=entry.at, id=entry.id, content=entry.content)
        return
    yield FootballStep(at=entry.at, id=entry.id, content=entry.shown_first)
    if entry.content != entry.shown_first:
        yield FootballStep(at=entry.settled_at, id=entry.id, content=entry.content)


def _may_be_wrong(entry: FootballEntry) -> bool:
    return entry.shown_first is None and isinstance(entry.content, GoalTruth | CardTruth | SubstitutionTruth)


def _mistaken(match: FootballMatch, nth: int, dice: Random) -> list[FootballStep]:
    entry = match.entries[nth]
    right = FootballStep(at=entry.at, id=entry.id, content=entry.content)
    match dice.choice(("other player", "other minute", "late", "ghost")):
        case "other player":
            wrong = replace(right, content=_other_player(match, entry.content, dice))
            return [wrong, replace(right, at=_corrected_at(match, entry, dice))]
        case "other minute":
            wrong = replace(right, content=_other_minute(entry.content))
            return [wrong, replace(right, at=_corrected_at(match, entry, dice))]
        case "late":
            return [replace(right, at=min(entry.at + dice.uniform(20, 200), _next_at(match, nth)))]
    ghost = FootballStep(at=entry.at + 2, id=str(int(entry.id) + _GHOST_ID), content=_ghost(entry.content))
    return [right, ghost, replace(ghost, at=ghost.at + dice.uniform(10, 90), content=None)]


def _corrected_at(match: FootballMatch, entry: FootballEntry, dice: Random) -> float:
    if dice.random() < _HOURS_LATER_SHARE:
        return match.entries[-1].at + dice.uniform(3600, 18_000)
    return entry.at + dice.uniform(15, 600)


def _next_at(match: FootballMatch, nth: int) -> float:
    """Return when the next event happens; a late event is published before it, so that scores stay in order."""
    return match.entries[nth + 1].at


def _other_player(match: FootballMatch, content: FootballContent | None, dice: Random) -> FootballContent | None:
    match content:
        case GoalTruth(scorer=scorer) if content.how != "own goal":
            return replace(content, scorer=_another(match, content.side, scorer, dice))
        case CardTruth(player=player):
            return replace(content, player=_another(match, content.side, player, dice))
        case SubstitutionTruth(player_out=out):
            return replace(content, player_out=_another(match, content.side, out, dice))
    return _other_minute(content)


def _another(match: FootballMatch, side: str, player: str, dice: Random) -> str:
    return dice.choice([other.key for other in match.team(side).eleven if other.key != player])


def _other_minute(content: FootballContent | None) -> FootballContent | None:
    match content:
        case GoalTruth(minute=minute) | CardTruth(minute=minute) | SubstitutionTruth(minute=minute):
            return replace(content, minute=minute - 1 if minute > 1 else minute + 1)
    return content


def _ghost(content: FootballContent | None) -> FootballContent | None:
    """Return what is shown a second time by mistake; a goal twice would be two goals, so it is a card."""
    if isinstance(content, GoalTruth):
        return CardTruth(
            side=content.side, minute=content.minute, added=content.added, player=content.scorer, card="yellow"
        )
    return content
