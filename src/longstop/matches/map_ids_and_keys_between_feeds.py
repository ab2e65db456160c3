"""Several feeds of one match: how the ids and keys of a feed map to the stored ones. Pure.

Any feed may become the only one that works, so each can continue where another stopped. Stored events, players and
teams keep the ids and keys of the feed that introduced them. A feed sees the match under its own ids (`as_seen`) and
with the stored keys (`learn_keys`, `Sport.rekey`); what it adds is stored as its own (`as_stored`). With one feed,
nothing is mapped.
"""

from collections.abc import Iterable, Mapping

import msgspec

from longstop.model.event import Event, EventKey
from longstop.model.source_queries_and_answers import Keys

#: Prefix of the key of an event whose id this feed has not shown yet; no source's id starts with it.
_UNKNOWN = "?"


def as_seen(
    events: Mapping[EventKey, Event], source: str, own: str, ids: Mapping[EventKey, str]
) -> Mapping[EventKey, Event]:
    """Return stored events under the ids of one source; `own` is the source that the match is named after.

    `source` is set for events of other sources only.
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
    """Return new versions with their source, as they are stored; unchanged if the feed uses the stored ids.

    A version that only moves or voids another source's event keeps that source's id.
    """
    return tuple(_stored(event, stored.get(event.key), "" if source == own else source) for event in events)


def _stored(event: Event, before: Event | None, source: str) -> Event:
    is_unnamed = event.source or event.source_event_id.startswith(_UNKNOWN)
    if is_unnamed and before is not None:
        return msgspec.structs.replace(event, source=before.source, source_event_id=before.source_event_id)
    return msgspec.structs.replace(event, source=source)


def learn_keys(known: Keys, shown: Keys, source: str, stored: Keys) -> Keys:
    """Return the mapping of a feed's keys after it has shown names: equal names are the same player or team.

    `stored` are the stored names. A key without an equal name stays as it is; nothing is guessed. A key that is already
    taken by another player or team is prefixed with the source.
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
        # Views are shown with the keys known so far, so a mapped value is not a key of the source.
        if key in known or key in known.values():
            continue
        # Two players of one name cannot be distinguished automatically.
        if len(equals) == 1 and equals[0] not in learnt.values():
            learnt[key] = equals[0]
        elif key in stored and key not in equals:
            learnt[key] = f"{source}:{key}"
    return learnt
