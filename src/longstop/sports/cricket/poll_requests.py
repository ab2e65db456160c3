"""One poll of a cricket match: the scoreboard, and the event list as far back as needed.

The list is read until it reaches a stored ball and the totals agree. It is read completely on resume, at the end of an
innings and at the end of the match; at the end of an over that over is read again, and after a step back the over with
the step back. Scoreboard and list are two requests, so a ball may fall between them: before a disagreement counts, both
are fetched once more.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from math import inf

from msgspec.structs import replace

from longstop.errors import ImpossibleObservation
from longstop.model.match import Phase
from longstop.model.polling_status import SyncState
from longstop.model.source_queries_and_answers import LIVE, Keys, ListingEntry, Observation, Query
from longstop.sports.base import Absent, Client, ask_live, ask_optional, keys_in
from longstop.sports.cricket.align import lay_out, proposed, suspected
from longstop.sports.cricket.model import (
    BALLS,
    NAMES,
    PLAYER_KEYS,
    SCORECARD,
    Board,
    CricketKind,
    CricketState,
    CricketView,
    Delivery,
    Difference,
    EventListPage,
    ListItem,
    Names,
    Overs,
    OverSummary,
    Scorecard,
    SeenEvent,
    SeenEvents,
    innings_of,
    live,
    over_of,
)
from longstop.sports.cricket.page_validation import validate_board, validate_listed, validate_scorecard, validate_teams
from longstop.sports.cricket.totals_gaps_and_derived_events import compare, inferred, pair_of, sides_in_play, tally

#: All names are asked for again after this many seconds, until an answer has no news.
NAMES_CHECKED = 30.0
#: A poll that has read this many pages reads several at a time.
MANY_PAGES = 10


async def read(
    client: Client, state: CricketState, *, is_full: bool = False, stand_in: ListingEntry | None = None
) -> Observation:
    """Poll the match; stop early if list and scoreboard are unchanged."""
    source_id = state.feed.source_id
    heads = (Query(resource=BALLS, source_id=source_id), Query(resource=LIVE, source_id=source_id))
    is_check_due = state.is_check_due(client.monotonic())
    if stand_in is None and not is_check_due and await client.are_unchanged(*heads):
        return Observation(captured_at=client.now(), view=None)
    view = await walk(client, state, is_full=is_full, board=stand_in)
    captured_at, absent = client.now(), Absent()
    scorecard = await _scorecard(client, state, view, absent)
    view = await _with_names(client, state, replace(view, scorecard=scorecard), absent, is_check=is_check_due)
    validate_teams(view.names.teams, view.listed_teams)
    return Observation(captured_at=captured_at, view=view, absent=absent)


async def introduce(client: Client, state: CricketState) -> Keys:
    """Return the names of both sides, the batters and the bowler."""
    board = await client.ask(Query(resource=LIVE, source_id=state.feed.source_id), Board)
    players = tuple(sorted(keys_in((*board.batters, board.bowler), PLAYER_KEYS)))
    query = Query(resource=NAMES, source_id=state.feed.source_id, players=players, teams=tuple(sorted(board.team_keys)))
    return await client.ask(query, Names)


async def _scorecard(client: Client, state: CricketState, view: CricketView, absent: Absent) -> Scorecard | None:
    """Return the scorecard, fetched again after the whole list was read, or if the scoreboard contradicts it.

    It outvotes the scoreboard on who bats. One wrong scorecard would do so until the end of the innings.
    """
    if not view.is_exhausted and not _contradicts(state, view):
        return state.scorecard
    query = Query(resource=SCORECARD, source_id=state.feed.source_id)
    check = partial(validate_scorecard, board=view.board)
    return await ask_optional(client, query, Scorecard, absent, check) or state.scorecard


def _contradicts(state: CricketState, view: CricketView) -> bool:
    """Return whether the stored scorecard names another batting side than the scoreboard."""
    cards = state.scorecard.innings if state.scorecard else ()
    batting = sides_in_play(state, view.newest_innings, view.board, state.scorecard)
    return any(batting.get(card.number, card.team) != card.team for card in cards)


async def _with_names(
    client: Client, state: CricketState, view: CricketView, absent: Absent, *, is_check: bool
) -> CricketView:
    """Return the view with names for keys without one, or all names. They are optional: sites may publish them late."""
    due_at = client.monotonic() + NAMES_CHECKED if is_check or state.names_due_at is None else state.names_due_at
    # A key of another feed may equal the stored key of another player: only mapped keys are known.
    known = state.players.keys() if state.ref is None else set(state.keys.players.values())
    players, teams = _player_keys(view) - known, view.board.team_keys - state.teams.keys()
    if is_check:
        players, teams = players | state.players.keys(), teams | state.teams.keys()
    if not (players or teams):
        return replace(view, names_due_at=inf if is_check else due_at)
    # With the match: a site may show names on the match's own page only.
    query = Query(
        resource=NAMES,
        source_id=state.feed.source_id,
        players=tuple(sorted(players)),
        teams=tuple(sorted(teams)),
    )
    names = await ask_optional(client, query, Names, absent)
    if is_check and names is not None and not _has_news(state, names):
        due_at = inf
    return replace(view, names=names or Names(), names_due_at=due_at)


def _has_news(state: CricketState, names: Names) -> bool:
    pairs = ((state.players, names.players), (state.teams, names.teams))
    return any(known.get(key) != name for known, shown in pairs for key, name in shown.items())


def _player_keys(view: CricketView) -> set[str]:
    balls = [event.content for event in view.listed.events if isinstance(event.content, Delivery)]
    wickets = (wicket for ball in balls for wicket in ball.wickets)
    return keys_in((*view.board.batters, view.board.bowler, *balls, *wickets), PLAYER_KEYS)


# --- from list items to events -----------------------------------------------------------------------------------


def assemble(items: Iterable[ListItem], *, is_whole: bool) -> SeenEvents:
    """Return the events of these items; an item on two pages counts once.

    A wicket belongs to the latest earlier ball with its label. A label alone is ambiguous: a wide has the label of the
    next ball, and either may take a wicket.
    """
    events: dict[str, SeenEvent] = {}
    latest: dict[tuple[int, Overs], tuple[SeenEvent, Delivery]] = {}
    orphans = 0
    once = {item.source_event_id: item for item in items}
    for item in sorted(once.values(), key=lambda item: int(item.source_event_id)):
        if isinstance(item, SeenEvent):
            event = item
        elif (item.innings, item.label) in latest:
            event, ball = latest[item.innings, item.label]
            event = replace(event, content=replace(ball, wickets=(*ball.wickets, item.wicket)))
        else:
            orphans += 1
            continue
        events[event.source_event_id] = event
        if isinstance(event.content, Delivery):
            latest[event.innings, event.content.label] = event, event.content
    return SeenEvents(events=tuple(events.values()), is_whole=is_whole, orphans=orphans)


def assemble_window(recent: Sequence[SeenEvent], detached: Iterable[SeenEvent]) -> SeenEvents:
    """Return the events of a list that shows only its newest items, and of detached items."""
    events = {event.source_event_id: event for event in (*detached, *recent)}
    places = [(event.innings, event.over, event.nth or 0) for event in recent]
    return SeenEvents(
        events=tuple(sorted(events.values(), key=_place)),
        is_whole=False,
        window_from=min(places, default=NOTHING_SHOWN),
    )


#: The window of an empty list: it starts after every event.
NOTHING_SHOWN = (1_000_000, 0, 0)


def _place(event: SeenEvent) -> tuple[int, int, bool, int]:
    return event.innings, event.over, event.kind == CricketKind.OVER, event.nth or 0


# --- how far back to read ------------------------------------------------------------------------------------------


#: An (innings, over) before every event: the list is read completely.
BEGINNING = (0, 0)


def read_back_to(state: CricketState, board: Board) -> tuple[int, int] | None:
    """Return the (innings, over) to read again from its first ball, or `None`, given how the scoreboard changed."""
    last = state.board
    is_finishing = board.result is not None and state.row.phase is not Phase.COMPLETED
    if last is None or state.sync is not SyncState.IN_SYNC or is_finishing:
        return BEGINNING
    are_sides_known = board.is_batting_known and last.is_batting_known
    if board.is_innings_over != last.is_innings_over or (are_sides_known and board.batting != last.batting):
        return BEGINNING
    places = [(innings_of(key), over_of(key)) for key in suspected(state.suspects)]
    before, after = (shown.second or shown.first for shown in (last, board))
    if before and after and after.overs.over > before.overs.over:
        places.append((state.newest_innings, before.overs.over))
    return min(places, default=None)


class _Pages:
    """The list items of one poll; pages are fetched as needed."""

    def __init__(self, client: Client, state: CricketState, last_board: ListingEntry | None) -> None:
        self._client = client
        self._state = state
        self._last_board = last_board
        self._source_id = state.feed.source_id
        self._items: dict[str, ListItem] = {}
        self._oldest: str | None = None
        self._is_exhausted = False
        #: Set if the list shows only its newest items.
        self._window: EventListPage | None = None
        self._pages = 0
        self._teams: dict[str, str] = {}
        self.board: Board

    async def read_newest(self) -> None:
        """Read from the newest item down to one that this poll has already seen, then the scoreboard."""
        is_first = self._pages == 0
        if not is_first:
            self._client.forget()
        before: str | None = None
        while True:
            page = await self._page(before)
            has_met = any(item.source_event_id in self._items for item in page.items)
            self._take(page)
            before = page.next_before
            if is_first or has_met or before is None:
                break
        if is_first:
            self._oldest, self._is_exhausted = before, before is None
        self.board = await ask_live(self._client, self._source_id, Board, self._last_board)
        validate_board(self._state, self.board)

    async def further(self) -> None:
        page = await self._page(self._oldest)
        if page.next_before is not None and page.next_before == self._oldest:
            raise ImpossibleObservation("the event list returns the same page again")
        self._take(page)
        self._oldest = page.next_before
        self._is_exhausted = page.next_before is None

    async def to_the_beginning(self) -> None:
        while not self._is_exhausted:
            await self.further()

    async def some_further(self) -> None:
        """Read one more page, or half as many again if there were many: each time, all events are compared again."""
        for _ in range(1 if self._pages < MANY_PAGES else self._pages // 2):
            if not self._is_exhausted:
                await self.further()

    def _take(self, page: EventListPage) -> None:
        self._items.update((item.source_event_id, item) for item in page.items)
        self._teams.update(page.teams)
        self._window = page if page.is_window else None

    async def _page(self, before: str | None) -> EventListPage:
        self._pages += 1
        query = Query(resource=BALLS, source_id=self._source_id, cursor=before)
        page = await self._client.ask(query, EventListPage)
        validate_teams(self._state.teams, page.teams)
        return page

    def so_far(self) -> CricketView:
        if self._window is not None:
            recent = [item for item in self._items.values() if isinstance(item, SeenEvent)]
            listed = assemble_window(recent, self._window.detached)
        else:
            listed = assemble(self._items.values(), is_whole=self._is_exhausted)
        newest = max([self._state.newest_innings, *(event.innings for event in listed.events)])
        return CricketView(
            board=self.board,
            listed=listed,
            differences=_differences(self._state, listed, self.board, newest),
            newest_innings=newest,
            is_exhausted=self._is_exhausted,
            listed_teams=dict(self._teams),
        )


async def walk(
    client: Client, state: CricketState, *, is_full: bool = False, board: ListingEntry | None = None
) -> CricketView:
    """Return a view that reaches back as far as needed, or to the beginning if `is_full`.

    `board` replaces the scoreboard if the site no longer has one.
    """
    pages = _Pages(client, state, board)
    await pages.read_newest()
    back_to = BEGINNING if is_full else read_back_to(state, pages.board)
    if back_to == BEGINNING:
        await pages.to_the_beginning()
    has_asked_twice = False
    while True:
        seen = pages.so_far()
        reached = seen.is_exhausted or _reaches(seen, state, back_to)
        agrees = not _news(seen.differences, state.differences)
        if reached and not agrees and not has_asked_twice:
            has_asked_twice = True
            await pages.read_newest()
        elif seen.is_exhausted or (reached and agrees):
            break
        else:
            await pages.some_further()
    validate_listed(seen.listed, seen.board)
    return seen


def _reaches(seen: CricketView, state: CricketState, back_to: tuple[int, int] | None) -> bool:
    """Return whether the list was read back to a stored ball, and before the over `back_to`."""
    listed = seen.listed
    # An innings may start without a break: a side that follows on bats again. Then the previous one has ended.
    is_new_innings = seen.newest_innings != state.newest_innings
    if listed.orphans or is_new_innings:
        return False
    held = {event.source_event_id for event, _ in live(state.events, Delivery)}
    oldest = next((event for event in listed.events if event.kind == CricketKind.DELIVERY), None)
    # An unknown oldest ball may be a stored one under a new id: read on.
    if oldest is None or oldest.source_event_id not in held:
        return False
    return back_to is None or (oldest.innings, oldest.over) < back_to


def _news(differences: Mapping[int, Difference], accepted: Mapping[int, Difference]) -> bool:
    """Return whether a scoreboard differs from the events in a way that is not yet recorded."""
    return any(found and accepted.get(innings) != found for innings, found in differences.items())


def _differences(state: CricketState, listed: SeenEvents, board: Board, newest: int) -> dict[int, Difference]:
    found: dict[int, Difference] = {}
    for innings in pair_of(newest):
        shown = board.first if innings % 2 else board.second
        if shown is None or shown.is_blank:
            continue
        deliveries = proposed(lay_out(state.events, listed, innings))
        ours = tally(deliveries, _ended_overs(state, listed, innings), inferred(state.events, listed, innings, shown))
        found[innings] = compare(ours, shown)
    return found


def _ended_overs(state: CricketState, listed: SeenEvents, innings: int) -> set[int]:
    """Return the completed overs: by the list, and before its oldest event by what is stored.

    A list that lags misses the end of an over and its last balls. If the end came from the store, the totals would
    agree although balls are missing.
    """
    stored = {over_of(event.key) for event, _ in live(state.events, OverSummary, innings)}
    held = {over for over in stored if not _reaches_back_to(listed, (innings, over))}
    return held | {event.over for event in listed.events if event.kind == CricketKind.OVER and event.innings == innings}


def _reaches_back_to(listed: SeenEvents, over: tuple[int, int]) -> bool:
    if listed.is_window:
        return False
    return listed.is_whole or any((event.innings, event.over) <= over for event in listed.events)
