"""Events are differences: what the source shows now against what we hold. Pure, and the heart of zero loss.

Keys are allotted once and never used again; alignment is by the source's id first. A step back (fewer runs, a wicket
less, an event gone) counts only when two looks in a row agree on it, because caches serve yesterday's copy too.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence

import msgspec
from msgspec import Struct

from longstop.errors import LayoutSuspected
from longstop.model.cricket import Delivery, InningsSummary, OverSummary
from longstop.model.event import Content, Event, EventKey, EventKind, Op, content_hash, order_of_play
from longstop.pipeline.assemble import SeenEvent, Sighting
from longstop.pipeline.milestones import NO_MILESTONES, Milestones
from longstop.pipeline.slots import Held, New, Shown, Slot, Vanished
from longstop.pipeline.timeline import lay_out

#: More events gone at once than an over holds is not a scorer's correction but a broken feed.
MAX_VANISHED = 8


class Diff(Struct, frozen=True, kw_only=True):
    """What to store now, and what to store if the next look says the same."""

    events: tuple[Event, ...]
    #: Steps back seen for the first time, as tokens to hand to the next `diff`.
    suspects: frozenset[str]


def suspected(suspects: Iterable[str]) -> list[EventKey]:
    """Return the deliveries and overs of which a step back awaits its second look."""
    names = (token.partition(" ")[0] for token in suspects)
    return [EventKey.parse(name) for name in names if name.startswith(("delivery:", "over:"))]


class _Builder:
    """Collects changes; knows which steps back were already suspected."""

    def __init__(self, known: Mapping[EventKey, Event], confirmed: Collection[str]) -> None:
        self.known = known
        self.events: list[Event] = []
        self.suspects: set[str] = set()
        self._confirmed = confirmed
        self._taken = set(known)
        self._used: dict[tuple[int, int], int] = {}
        for key in known:
            if key.kind is EventKind.DELIVERY:
                place = (key.innings, key.over)
                self._used[place] = max(self._used.get(place, 0), key.nth)

    def may_step_back(self, key: EventKey, what: str) -> bool:
        token = f"{key} {what}"
        if token in self._confirmed:
            return True
        self.suspects.add(token)
        return False

    def allot(self, seen: SeenEvent) -> EventKey:
        """Return a key that was never used: the source's own number where it has one and it is free, else the next."""
        place = (seen.innings, seen.over)
        last = self._used.get(place, 0)
        nth = seen.nth or 0
        if not nth or EventKey(EventKind.DELIVERY, *place, nth) in self._taken:
            nth = last + 1
        self._used[place] = max(last, nth)
        key = EventKey(EventKind.DELIVERY, *place, nth)
        self._taken.add(key)
        return key

    def put(self, key: EventKey, content: Content, source_event_id: str, position: int | None = None) -> None:
        """Add an insert or an update, or nothing when nothing changed."""
        old = self.known.get(key)
        if (
            old
            and old.is_live
            and (old.content, old.position, old.source_event_id)
            == (
                content,
                position,
                source_event_id,
            )
        ):
            return
        self.events.append(
            Event(
                key=key,
                rev=old.rev + 1 if old else 1,
                op=Op.UPDATE if old else Op.INSERT,
                content=content,
                source_event_id=source_event_id,
                position=position,
            )
        )

    def replace(self, old: Event, seen: SeenEvent, position: int | None = None, *, may_be_late: bool = False) -> None:
        """Put what is seen over what we hold; while that is a step back only suspected, the old stands."""
        is_back = old.is_live and _is_step_back(old.content, seen.content)
        is_late = may_be_late and _has_lost_wicket(old.content, seen.content)
        if is_back and (is_late or not self.may_step_back(old.key, content_hash(seen.content, None))):
            self.put(old.key, old.content, old.source_event_id, position)
        else:
            self.put(old.key, seen.content, seen.source_event_id, position)

    def void(self, old: Event) -> None:
        self.events.append(msgspec.structs.replace(old, rev=old.rev + 1, op=Op.VOID, position=None))


def diff(
    known: Mapping[EventKey, Event],
    sighting: Sighting,
    milestones: Milestones = NO_MILESTONES,
    *,
    confirmed: Collection[str] = (),
    settled: Collection[int] = (),
) -> Diff:
    """Return the changes that turn what we hold into what is seen.

    `confirmed` are the suspects of the last look; `settled` the innings whose scoreboard agrees with what is seen;
    `milestones` are the innings and result rows, which no feed lists.
    """
    builder = _Builder(known, confirmed)
    for innings in _innings_touched(known, sighting):
        slots = lay_out(known, sighting, innings)
        _refuse_mass_vanishing(slots)
        _diff_deliveries(builder, slots, innings in settled)
    _diff_overs(builder, sighting, settled)
    _diff_milestones(builder, milestones, settled)
    return Diff(events=tuple(sorted(builder.events, key=order_of_play)), suspects=frozenset(builder.suspects))


def _innings_touched(known: Mapping[EventKey, Event], sighting: Sighting) -> list[int]:
    touched = {event.innings for event in sighting.events}
    if sighting.is_whole:
        touched |= {key.innings for key in known if key.kind is EventKind.DELIVERY}
    return sorted(touched)


def _refuse_mass_vanishing(slots: Iterable[Slot]) -> None:
    vanished = sum(isinstance(slot, Vanished) for slot in slots)
    if vanished > MAX_VANISHED:
        raise LayoutSuspected(f"{vanished} deliveries of an innings are gone from the event list at once")


def _diff_deliveries(builder: _Builder, slots: Sequence[Slot], is_settled: bool) -> None:
    position = 0
    newest = next((slot for slot in reversed(slots) if isinstance(slot, Shown | New)), None)
    for slot in slots:
        if isinstance(slot, Vanished) and _may_void(builder, slot, is_settled):
            builder.void(slot.known)
            continue
        position += 1
        match slot:
            case Held(known) | Vanished(known):
                builder.put(known.key, known.content, known.source_event_id, position)
            case New(seen):
                builder.put(builder.allot(seen), seen.content, seen.source_event_id, position)
            case Shown(known, seen):
                # A feed that lags may show the newest ball and not yet its wicket: there the scoreboard has the word.
                builder.replace(known, seen, position, may_be_late=slot is newest and not is_settled)


def _may_void(builder: _Builder, slot: Vanished, is_settled: bool) -> bool:
    # The newest ball is also missing from a feed that lags: there the scoreboard has the word.
    return (is_settled or not slot.is_tail) and builder.may_step_back(slot.known.key, "void")


def _is_step_back(old: Content, new: Content) -> bool:
    if isinstance(old, Delivery) and isinstance(new, Delivery):
        return new.runs.total < old.runs.total or _has_lost_wicket(old, new)
    if isinstance(old, OverSummary) and isinstance(new, OverSummary):
        return new.runs < old.runs
    if isinstance(old, InningsSummary) and isinstance(new, InningsSummary):
        return new.runs < old.runs or new.wickets < old.wickets or new.overs < old.overs
    return False


def _has_lost_wicket(old: Content, new: Content) -> bool:
    return isinstance(old, Delivery) and isinstance(new, Delivery) and len(new.wickets) < len(old.wickets)


def _diff_overs(builder: _Builder, sighting: Sighting, settled: Collection[int]) -> None:
    seen = {
        EventKey(EventKind.OVER, event.innings, event.over): event
        for event in sighting.events
        if event.kind is EventKind.OVER
    }
    for key, event in seen.items():
        old = builder.known.get(key)
        if old is None:
            builder.put(key, event.content, event.source_event_id)
        else:
            builder.replace(old, event)
    for key, old in builder.known.items():
        is_missed = key.kind is EventKind.OVER and key not in seen and old.is_live
        is_gone = is_missed and _covers(sighting, key, is_settled=key.innings in settled)
        if is_gone and builder.may_step_back(key, "void"):
            builder.void(old)


def _covers(sighting: Sighting, key: EventKey, *, is_settled: bool) -> bool:
    """Return whether the walk would have shown this over's end: it saw that over or an older one, and no feed lags."""
    places = [(event.innings, event.over) for event in sighting.events]
    place = (key.innings, key.over)
    if not places or (places[-1] < place and not is_settled):
        return False
    return sighting.is_whole or places[0] <= place


def _wants_two_looks(old: Event | None, seen: SeenEvent, settled: Collection[int]) -> bool:
    # A result is final for everybody who reads it, so even the first one is looked at twice; and a scoreboard that the
    # events contradict may be that of other innings than we think.
    is_grave = seen.kind is EventKind.RESULT or (seen.kind is EventKind.INNINGS and seen.innings not in settled)
    if old is None or not old.is_live:
        return is_grave
    return old.content != seen.content and (is_grave or _is_step_back(old.content, seen.content))


def _diff_milestones(builder: _Builder, milestones: Milestones, settled: Collection[int]) -> None:
    for seen in milestones.reached:
        key = EventKey(seen.kind, seen.innings, seen.over)
        old = builder.known.get(key)
        is_doubtful = _wants_two_looks(old, seen, settled)
        if not is_doubtful or builder.may_step_back(key, content_hash(seen.content, None)):
            builder.put(key, seen.content, seen.source_event_id)
    for key in milestones.withdrawn:
        old = builder.known.get(key)
        if old and old.is_live and builder.may_step_back(key, "void"):
            builder.void(old)
