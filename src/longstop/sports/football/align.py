"""Aligns the events that a source shows with the stored ones. Pure.

Events are matched by kind and source id first, then by the fields that stay equal when the id changes. A step back (a
goal less, a milder card, an event gone) counts only when two polls in a row agree.
"""

from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Mapping, Sequence

from msgspec import Struct

from longstop.errors import LayoutSuspected
from longstop.matches.event_versions_and_confirmation import Versions
from longstop.model.event import RESULT, Event, EventKey, content_hash
from longstop.sports.football.model import (
    INCIDENT_KINDS,
    Card,
    FootballKind,
    FootballResult,
    Goal,
    Kick,
    MissedPenalty,
    PeriodEnd,
    SeenIncident,
    Side,
    Substitution,
    VarDecision,
    is_step_back,
    order_of_play,
)

#: More events gone at once is a broken list, not a referee's decision.
MAX_VANISHED = 4

_KINDS: dict[type, FootballKind] = {
    Goal: FootballKind.GOAL,
    Card: FootballKind.CARD,
    Substitution: FootballKind.SUBSTITUTION,
    VarDecision: FootballKind.VAR,
    MissedPenalty: FootballKind.MISSED_PENALTY,
    PeriodEnd: FootballKind.PERIOD,
    Kick: FootballKind.KICK,
}


def kind_of(incident: SeenIncident) -> FootballKind:
    return _KINDS[type(incident.content)]


def align(
    known: Mapping[EventKey, Event],
    shown: Sequence[SeenIncident] | None,
    result: FootballResult | None,
    *,
    confirmed: Collection[str] = (),
    settled: Collection[Side] = (),
) -> Versions:
    """Return the versions that turn the stored events into the shown ones.

    `shown` is the whole list, `None` if there is none; `confirmed` are the suspects of the last poll; `settled` the
    sides with as many goals on the board as in the list.
    """
    versions = Versions(known, confirmed)
    if shown is not None:
        _align_incidents(versions, shown, settled)
    _align_result(versions, result)
    versions.events.sort(key=order_of_play)
    return versions


def _add(versions: Versions, seen: SeenIncident) -> None:
    """Insert a new event under a key that was never used."""
    key = versions.allot(kind_of(seen), side=seen.side or "")
    versions.put(key, seen.content, seen.source_event_id)


def _move(versions: Versions, old: Event, seen: SeenIncident) -> None:
    """Move an event to the other side: void it and insert it again, because the side is part of the key."""
    if not old.is_live:
        _add(versions, seen)
    elif versions.may_step_back(old.key, f"to {seen.side}"):
        versions.void(old)
        _add(versions, seen)


def _align_incidents(versions: Versions, shown: Sequence[SeenIncident], settled: Collection[Side]) -> None:
    by_id = _by_id(versions.known.values())
    ids = {(kind_of(seen), seen.source_event_id) for seen in shown}
    vanished = [event for name, event in by_id.items() if event.is_live and name not in ids]
    unknown = [seen for seen in shown if (kind_of(seen), seen.source_event_id) not in by_id]
    renamed = _renamed(vanished, unknown)
    replaced = {event.key for event in renamed.values()}
    gone = [event for event in vanished if event.key not in replaced]
    if len(gone) > MAX_VANISHED:
        raise LayoutSuspected(f"{len(gone)} events vanished from the list at once")
    for seen in shown:
        old = by_id.get((kind_of(seen), seen.source_event_id)) or renamed.get(seen.source_event_id)
        if old is None:
            _add(versions, seen)
        elif old.key.side != (seen.side or ""):
            _move(versions, old, seen)
        else:
            is_back = is_step_back(old.content, seen.content)
            versions.replace(old, seen.content, seen.source_event_id, is_back=is_back)
    for event in gone:
        # A list that lags misses the newest goals, too: the board decides.
        is_counted = event.key.kind == FootballKind.GOAL and Side(event.key.side) not in settled
        if not is_counted and versions.may_step_back(event.key, "void"):
            versions.void(event)


def _by_id(events: Iterable[Event]) -> dict[tuple[str, str], Event]:
    """Return the events by kind and source id, including void ones: an event that comes back keeps its key."""
    mine = [event for event in events if event.key.kind in INCIDENT_KINDS]
    # An event that moved to the other side left a void one with the same id; the live one wins.
    return {(event.key.kind, event.source_event_id): event for event in sorted(mine, key=lambda event: event.is_live)}


def _renamed(vanished: Iterable[Event], unknown: Iterable[SeenIncident]) -> dict[str, Event]:
    """Return events whose id has changed, by new id: same kind, side, time and players."""
    left: dict[tuple[object, ...], deque[Event]] = defaultdict(deque)
    for old in vanished:
        left[old.key.kind, old.key.side, _traits(old.content)].append(old)
    found: dict[str, Event] = {}
    for seen in unknown:
        twins = left.get((kind_of(seen), seen.side or "", _traits(seen.content)))
        if twins:
            found[seen.source_event_id] = twins.popleft()
    return found


def _traits(content: Struct) -> tuple[object, ...]:
    """Return the fields that stay equal when the id of an event changes."""
    match content:
        case Goal():
            return content.minute, content.scorer
        case Card() | VarDecision() | MissedPenalty():
            return content.minute, content.player
        case Substitution():
            return content.minute, content.player_in, content.player_out
        case Kick():
            return (content.sequence,)
    return (content,)


def _align_result(versions: Versions, result: FootballResult | None) -> None:
    """Compare the result. Clients treat it as final, so every change needs two polls."""
    old = versions.known.get(RESULT)
    held = old.content if old and old.is_live else None
    if result == held:
        return
    if result is None:
        if old and versions.may_step_back(RESULT, "void"):
            versions.void(old)
    elif versions.may_step_back(RESULT, content_hash(result, None)):
        versions.put(RESULT, result, "result")
