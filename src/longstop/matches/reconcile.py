"""Several feeds, one match: which feed leads, and how its ids and keys map onto those stored. Pure.

Every feed may be the only one that answers, so each must be able to go on where another stopped. What is stored of a
match comes from the feed that leads; the others are polled for a sign of life, and take over when it falls silent.

Stored events, players and teams keep the ids and keys of the feed that introduced them. A feed sees the match under
its own ids (`as_seen`) and in the stored keys (`learn_keys`, `Sport.rekey`); what it adds is stored as its own
(`as_stored`). With one feed all of this is the identity.
"""

from collections.abc import Iterable, Mapping

import msgspec
from msgspec import Struct

from longstop.model.event import Event, EventKey
from longstop.model.match import MatchRef
from longstop.model.observation import Keys

#: Stands before the key of an event whose id this feed has not shown yet; no source's id begins so.
_UNKNOWN = "?"


class Candidate(Struct, frozen=True, kw_only=True):
    """A feed, as far as the choice of the leader depends on it. Moments are monotonic."""

    ref: MatchRef
    precedence: int
    #: Until when its last good poll counts; in the past for one that never was polled, or was paused.
    fresh_until: float


def leads(feed: MatchRef, feeds: Iterable[Candidate], leader: MatchRef | None, now: float) -> bool:
    """Return whether a feed leads, or may take the lead with its next good poll.

    The fresh feed of the highest precedence leads; among equals the one that leads already, so that the lead does not
    go to and fro.
    """
    by_ref = {each.ref: each for each in feeds}
    mine = _rank(by_ref[feed], leader)
    others = (each for ref, each in by_ref.items() if ref != feed and each.fresh_until > now)
    return all(_rank(each, leader) < mine for each in others)


def _rank(feed: Candidate, leader: MatchRef | None) -> tuple[int, bool, MatchRef]:
    return feed.precedence, feed.ref == leader, feed.ref


def as_seen(
    events: Mapping[EventKey, Event], source: str, own: str, ids: Mapping[EventKey, str]
) -> Mapping[EventKey, Event]:
    """Return stored events under the ids of one source; `own` is the source that the match is named after.

    An event of another source says so in `source`; one of this source does not.
    """
    if source == own and not any(event.source for event in events.values()):
        return events
    return {key: _seen(event, source, own, ids) for key, event in events.items()}


def _seen(event: Event, source: str, own: str, ids: Mapping[EventKey, str]) -> Event:
    came_from = event.source or own
    if came_from == source:
        return msgspec.structs.replace(event, source="")
    name = ids.get(event.key, f"{_UNKNOWN}{event.key}")
    return msgspec.structs.replace(event, source=came_from, source_event_id=name)


def as_stored(events: Iterable[Event], stored: Mapping[EventKey, Event], source: str, own: str) -> tuple[Event, ...]:
    """Return new versions as they are stored: each says which source it came from.

    A version that only moves or voids another source's event keeps that source's id.
    """
    return tuple(_stored(event, stored.get(event.key), "" if source == own else source) for event in events)


def _stored(event: Event, before: Event | None, source: str) -> Event:
    is_unnamed = event.source or event.source_event_id.startswith(_UNKNOWN)
    if is_unnamed and before is not None:
        return msgspec.structs.replace(event, source=before.source, source_event_id=before.source_event_id)
    return msgspec.structs.replace(event, source=source)


def learn_keys(known: Keys, shown: Keys, source: str, stored: Keys) -> Keys:
    """Return how a feed's keys map once it has shown names: equal names within a match are the same player or team.

    `stored` are the names that are stored. What has no equal stays itself; nothing is guessed. A key that stands for
    somebody else already gets the source's name before it.
    """
    return Keys(
        players=_learn(known.players, shown.players, source, stored.players),
        teams=_learn(known.teams, shown.teams, source, stored.teams),
    )


def _learn(
    known: Mapping[str, str], shown: Mapping[str, str], source: str, stored: Mapping[str, str]
) -> dict[str, str]:
    owners: dict[str, list[str]] = {}
    for key, name in stored.items():
        owners.setdefault(name.casefold(), []).append(key)
    learnt = dict(known)
    for key, name in shown.items():
        equals = owners.get(name.casefold(), [])
        # Shown in the keys known so far: what they stand for is no key of the source. What is learnt here is not yet.
        if key in known or key in known.values():
            continue
        # Two people of one name: only a person can tell which is meant.
        if len(equals) == 1 and equals[0] not in learnt.values():
            learnt[key] = equals[0]
        elif key in stored and key not in equals:
            learnt[key] = f"{source}:{key}"
    return learnt
