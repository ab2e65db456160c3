"""One look at a match: its scoreboard, and its event list walked back as far as needed.

The list is read until it meets what we hold and the totals agree; whole on resume, at the end of an innings and at the
finish; at the end of an over, that over again; after a step back, the over in which it was seen. Scoreboard and list
are two requests, so a ball may fall between them: before a disagreement is believed, both are asked once more.
"""

from collections.abc import Mapping

from longstop.errors import ImpossibleObservation, PageNotFound
from longstop.model.event import EventKey, EventKind
from longstop.pipeline.ask import Asker
from longstop.pipeline.assemble import Sighting, assemble, assemble_window
from longstop.pipeline.inferred import inferred
from longstop.pipeline.looking import Depth, Look, depth_for
from longstop.pipeline.milestones import pair_of
from longstop.pipeline.state import MatchState
from longstop.pipeline.tally import Difference, compare, tally
from longstop.pipeline.timeline import lay_out, proposed
from longstop.pipeline.validate import validate_board, validate_page, validate_sighting
from longstop.sources.base import Board, FeedItem, FeedPage

#: A Test match of five days fills about 300 pages.
MAX_PAGES = 600


class _Walk:
    """The items of one look; pages are asked for as they are needed."""

    def __init__(self, asker: Asker, state: MatchState, last_board: Board | None) -> None:
        self._asker = asker
        self._state = state
        self._last_board = last_board
        self._source_id = state.row.ref.source_id
        self._items: dict[int, FeedItem] = {}
        self._oldest: str | None = None
        self._is_exhausted = False
        #: Set for a list that shows its newest items only.
        self._window: FeedPage | None = None
        self._pages = 0
        self.board: Board

    async def look_again(self) -> None:
        """Read from the newest item down to where this look has been already, then the scoreboard."""
        self._asker.forget()
        is_first = self._pages == 0
        before: str | None = None
        while True:
            page = await self._page(before)
            has_met = any(item.id in self._items for item in page.items)
            self._take(page)
            before = page.next_before
            if is_first or has_met or before is None:
                break
        if is_first:
            self._oldest, self._is_exhausted = before, before is None
        self.board = await self._shown_board()
        validate_board(self._state, self.board)

    async def _shown_board(self) -> Board:
        try:
            return await self._asker.board(self._source_id)
        except PageNotFound:
            if self._last_board is None:
                raise
            return self._last_board

    async def further(self) -> None:
        page = await self._page(self._oldest)
        if page.next_before is not None and page.next_before == self._oldest:
            raise ImpossibleObservation("the event list does not move on")
        self._take(page)
        self._oldest = page.next_before
        self._is_exhausted = page.next_before is None

    async def to_the_beginning(self) -> None:
        while not self._is_exhausted:
            await self.further()

    def _take(self, page: FeedPage) -> None:
        self._items.update((item.id, item) for item in page.items)
        self._window = page if page.is_window else None

    async def _page(self, before: str | None) -> FeedPage:
        self._pages += 1
        if self._pages > MAX_PAGES:
            raise ImpossibleObservation(f"the event list has more than {MAX_PAGES} pages")
        page = await self._asker.feed(self._source_id, before)
        validate_page(self._state, page)
        return page

    def so_far(self) -> Look:
        if self._window is not None:
            sighting = assemble_window(self._items.values(), self._window.detached)
        else:
            sighting = assemble(self._items.values(), is_whole=self._is_exhausted)
        newest = max([self._state.newest_innings, *(event.innings for event in sighting.events)])
        return Look(
            board=self.board,
            sighting=sighting,
            differences=_differences(self._state, sighting, self.board, newest),
            newest_innings=newest,
            is_exhausted=self._is_exhausted,
        )


async def look(asker: Asker, state: MatchState, *, is_whole: bool = False, board: Board | None = None) -> Look:
    """Return a view of the match that reaches back as far as it must, or to the beginning if asked to.

    `board` stands in for the scoreboard when the site has none any more.
    """
    walk = _Walk(asker, state, board)
    await walk.look_again()
    depth = Depth(is_whole=True) if is_whole else depth_for(state, walk.board)
    if depth.is_whole:
        await walk.to_the_beginning()
    has_asked_twice = False
    while True:
        seen = walk.so_far()
        reached = seen.is_exhausted or _reaches(seen, state, depth)
        agrees = not _news(seen.differences, state.differences)
        if reached and not agrees and not has_asked_twice:
            has_asked_twice = True
            await walk.look_again()
        elif seen.is_exhausted or (reached and agrees):
            break
        else:
            await walk.further()
    validate_sighting(seen.sighting, seen.board)
    return seen


def _reaches(seen: Look, state: MatchState, depth: Depth) -> bool:
    """Return whether the walk has met what we hold, and gone back as far as it was told to."""
    sighting = seen.sighting
    # An innings may begin unannounced: the side that follows on bats on. Then the one before it has ended.
    is_new_innings = seen.newest_innings != state.newest_innings
    if depth.is_whole or sighting.orphans or is_new_innings:
        return False
    held = {event.source_event_id for event in state.live(EventKind.DELIVERY)}
    oldest = next((event for event in sighting.events if event.kind is EventKind.DELIVERY), None)
    # A ball at the far end that we do not hold may stand for one that lies just beyond it.
    if oldest is None or oldest.source_event_id not in held:
        return False
    return depth.back_to is None or (oldest.innings, oldest.over) < depth.back_to


def _news(differences: Mapping[int, Difference], accepted: Mapping[int, Difference]) -> bool:
    """Return whether a scoreboard is off in another way than it was known to be."""
    return any(found and accepted.get(innings) != found for innings, found in differences.items())


def _differences(state: MatchState, sighting: Sighting, board: Board, newest: int) -> dict[int, Difference]:
    found: dict[int, Difference] = {}
    for innings in pair_of(newest):
        shown = board.first if innings % 2 else board.second
        if shown is None or shown.is_blank:
            continue
        deliveries = proposed(lay_out(state.events, sighting, innings))
        ours = tally(
            deliveries, _ended_overs(state, sighting, innings), inferred(state.events, sighting, innings, shown)
        )
        found[innings] = compare(ours, shown)
    return found


def _ended_overs(state: MatchState, sighting: Sighting, innings: int) -> set[int]:
    """Return the overs that have ended: by the list, and where it does not reach, by what we hold.

    A feed that lags shows neither an over's end nor its last balls. Were the end taken from what we hold, the
    scoreboard would agree with a list that lacks them.
    """
    held = {
        key.over
        for key, event in state.events.items()
        if _is_end(key, innings) and event.is_live and not _reaches_back_to(sighting, key)
    }
    return held | {event.over for event in sighting.events if event.kind is EventKind.OVER and event.innings == innings}


def _is_end(key: EventKey, innings: int) -> bool:
    return key.kind is EventKind.OVER and key.innings == innings


def _reaches_back_to(sighting: Sighting, key: EventKey) -> bool:
    if sighting.is_window:
        return False
    return sighting.is_whole or any((event.innings, event.over) <= (key.innings, key.over) for event in sighting.events)
