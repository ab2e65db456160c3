"""Everything that was ever shown and everything that was ever stored, and what must be true between the two."""

import sys
from copy import copy
from itertools import groupby

import msgspec

from longstop.model.data_finding import Finding, FindingKind
from longstop.model.event import Event, EventKey, Op, StoredEvent
from longstop.model.match import MatchRow
from longstop.model.snapshot import SNAPSHOTS_KEPT, Snapshot, checksum
from longstop.sports.cricket.align import order_of_play
from longstop.sports.cricket.model import (
    CricketKind,
    Delivery,
    InferredBalls,
    InningsSummary,
    Overs,
    OverSummary,
    Result,
)
from longstop.storage.base import MatchReader
from tests.model.sites import Site
from tests.model.truth import BALLS_PER_OVER, Truth


class Ledger:
    """Reads the store from outside, version by version, and forgets nothing."""

    def __init__(self, site: Site) -> None:
        self._counts_balls = site.counts_balls
        self._shown: set[object] = set()
        #: Ids of balls that the site took away, or gave another id.
        self.removed: set[str] = set()
        self.versions: list[StoredEvent] = []
        self.fold: dict[EventKey, Event] = {}
        self.findings: tuple[Finding, ...] = ()
        self._row: MatchRow | None = None
        self._snapshot: Snapshot | None = None

    @property
    def state(self) -> object:
        """Return all that a writer can change, but for the owner."""
        row = self._row and msgspec.structs.replace(self._row, owner=None, epoch=0)
        return row, self._snapshot, self.findings

    def copy(self) -> "Ledger":
        twin = copy(self)
        twin._shown, twin.removed = set(self._shown), set(self.removed)
        twin.versions, twin.fold = list(self.versions), dict(self.fold)
        return twin

    def note_shown(self, truth: Truth) -> None:
        self._shown.update((str(id_), content) for id_, content in truth.deliveries().items())
        self._shown.update(truth.summaries(counts_balls=self._counts_balls).items())
        for innings, score in truth.board().items():
            self._shown.add((innings, score.runs, score.wickets, balls_of(score.overs)))
        self._shown.add(truth.headline)

    def live(self, kind: CricketKind) -> list[Event]:
        """Return the live events of a kind in the order of play."""
        return sorted(
            (each for each in self.fold.values() if each.key.kind == kind and each.is_live), key=order_of_play
        )

    def count(self, kind: CricketKind, op: Op | None = None) -> int:
        """Return how many versions of a kind were ever stored."""
        return sum(each.event.key.kind == kind and op in (None, each.event.op) for each in self.versions)

    def sum_of(self, innings: int) -> tuple[int, int]:
        """Return runs and wickets of an innings, of balls and of what stands for unseen ones."""
        live = [event.content for event in self.fold.values() if event.is_live and event.key.numbers[:1] == (innings,)]
        balls = [content for content in live if isinstance(content, Delivery)]
        sums = [content for content in live if isinstance(content, InferredBalls)]
        runs = sum(ball.runs.total for ball in balls) + sum(unseen.runs for unseen in sums)
        return runs, sum(len(ball.wickets) for ball in balls) + sum(unseen.wickets for unseen in sums)

    @property
    def mismatched(self) -> set[int]:
        """Return the innings of which events and scoreboard are on record as different."""
        return {int(finding.place) for finding in self.findings if finding.kind is FindingKind.MISMATCH}

    # --- reading ---

    async def read(self, reader: MatchReader, match_id: int, epoch: int) -> None:
        """Take what is new in the store and check that all of it stands as it should."""
        for stored in await reader.events_after(match_id, len(self.versions), sys.maxsize):
            self._take(stored, epoch)
        row = await reader.match(match_id)
        assert row is not None
        assert row.seq == len(self.versions), "the match's counter is that of its last version"
        self._row = row
        current = {each.event.key: each.event for each in await reader.current_events(match_id)}
        assert current == self.fold, "what counts is the last version of each key"
        self.findings = tuple(each.finding for each in await reader.findings(match_id) if each.closed_at is None)
        self._check_line()
        await self._check_snapshots(reader, match_id)

    async def recount(self, reader: MatchReader, match_id: int) -> None:
        """Check that no version was lost or changed since it was first read."""
        assert await reader.events_after(match_id, 0, sys.maxsize) == self.versions

    def _take(self, stored: StoredEvent, epoch: int) -> None:
        event, before = stored.event, self.fold.get(stored.event.key)
        assert stored.seq == len(self.versions) + 1, "sequence numbers follow each other"
        assert event.rev == (before.rev if before else 0) + 1, "revisions follow each other"
        assert (event.op is Op.INSERT) == (before is None)
        if self.versions:
            last = self.versions[-1]
            assert last.epoch <= stored.epoch <= epoch, "no write has an epoch that is over"
            assert last.captured_at <= stored.captured_at
        if before and not before.is_live:
            assert event.source_event_id == before.source_event_id, "a key that was given up is never given away"
        if event.op is Op.VOID and event.key.kind == CricketKind.DELIVERY:
            assert event.source_event_id in self.removed, "only what the source took away is void"
        assert self._was_shown(event), f"the site never showed {event}"
        self.versions.append(stored)
        self.fold[event.key] = event

    def _was_shown(self, event: Event) -> bool:
        match event.content:
            case Delivery():
                return (event.source_event_id, event.content) in self._shown
            case OverSummary():
                return ((event.key.numbers[0], event.key.numbers[1]), event.content) in self._shown
            case InningsSummary() as closed:
                return (event.key.numbers[0], closed.runs, closed.wickets, balls_of(closed.overs)) in self._shown
            case Result():
                return event.content.text in self._shown
            case _:
                return True

    def _check_line(self) -> None:
        live = self.live(CricketKind.DELIVERY)
        for _, events in groupby(live, key=lambda event: event.key.numbers[0]):
            positions = [event.position for event in events]
            assert positions == list(range(1, len(positions) + 1)), "places are 1, 2, 3 …"
        ids = [event.source_event_id for event in live]
        assert len(ids) == len(set(ids)), "no ball is there twice"

    async def _check_snapshots(self, reader: MatchReader, match_id: int) -> None:
        kept = await reader.snapshots(match_id)
        if not kept:
            assert not self.versions, "events come with a snapshot"
            return
        newest, self._snapshot = kept[0].sequence, kept[0]
        assert [each.sequence for each in kept] == list(range(newest, max(0, newest - SNAPSHOTS_KEPT), -1))
        assert kept[0].checksum == checksum(kept[0].payload)
        last = msgspec.json.decode(kept[0].payload).get("last_event")
        if last:
            assert self.fold[EventKey.parse(last["key"])].is_live, "a snapshot speaks of what is stored"


def balls_of(overs: Overs) -> int:
    """Count balls: 9.6 and 10.0 are the same moment, on the scoreboard and on the scorecard of one site."""
    return overs.over * BALLS_PER_OVER + overs.ball
