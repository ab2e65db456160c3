"""sofascore: one live list, and of each match its event, its incidents, its line-ups and its statistics.

*Unverified*, since no such body was recorded: a list of matches in play, the texts of extra time's periods, a missed
kick of a shoot-out, line-ups before the kick-off. A 404 of anything but the event means "not yet", or "never".
"""

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, NoReturn
from unicodedata import normalize

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from longstop.errors import ImpossibleObservation, LayoutChanged, ParseError, WrongMatch, belonging_to
from longstop.fetching.base import FetchRequest
from longstop.model.football import (
    Card,
    CardKind,
    FootballResult,
    Goal,
    GoalKind,
    Goals,
    Incident,
    Kick,
    MissedPenalty,
    Outcome,
    PeriodEnd,
    Side,
    Substitution,
    VarDecision,
)
from longstop.model.match import MatchStatus, Sport
from longstop.sources.addresses import at_site
from longstop.sources.base import (
    Ask,
    FootballBoard,
    FootballTeam,
    Incidents,
    LineupPlayer,
    Lineups,
    Listing,
    MissingPlayer,
    PeriodScore,
    Reading,
    Resource,
    SeenIncident,
    SourceConfig,
    Squad,
    Statistic,
    Statistics,
    not_offered,
)
from longstop.sources.decode import decode
from longstop.sources.sofascore_dom import read_drawn

#: Stands where a number has no meaning.
_NO_NUMBER = 999
#: A match with extra time, its added time included.
_LAST_MINUTE, _MOST_ADDED = 130, 60

#: How the address of a match's page names the match: behind the mark, or in a path of the short kind.
_EVENT_MARK = re.compile(r"id:(?P<event>\d{1,12})(?:,.*)?", re.ASCII)
_EVENT_PAGE = re.compile(r"(?:/api/v1)?/event/(?:[^/]+/)?(?P<event>\d{1,12})/?", re.ASCII)

_PATHS = {
    Resource.LIVE: "",
    Resource.INCIDENTS: "/incidents",
    Resource.LINEUPS: "/lineups",
    Resource.STATISTICS: "/statistics",
}


class SofascoreSource:
    """Reads sofascore."""

    name = "sofascore"
    sport = Sport.FOOTBALL
    calls: tuple[str, ...] = ("/api/v1/event/*",)
    sites: tuple[str, ...] = ("www.sofascore.com", "sofascore.com")

    def __init__(self, config: SourceConfig) -> None:
        self._sites = (*self.sites, *config.hosts)
        self._api_url = config.metadata.get("api_url", "https://www.sofascore.com")
        self._site_url = config.metadata.get("site_url", "https://www.sofascore.com")

    def request(self, ask: Ask) -> FetchRequest:
        if ask.resource is Resource.LIST:
            return self._get("sport/football/events/live", "football/live")
        # Which words stand before the id does not matter to the site.
        page = f"event/match/{ask.source_id}"
        if ask.resource is Resource.DRAWN:
            return FetchRequest(source=self.name, url=f"{self._site_url}/{page}", is_rendered=True)
        if ask.resource not in _PATHS:
            raise not_offered(self.name, ask.resource)
        return self._get(f"event/{ask.source_id}{_PATHS[ask.resource]}", page)

    def match_of(self, url: str) -> str | None:
        parts = at_site(url, self._sites)
        if parts is None:
            return None
        # The words and the code in the path are of the pair of teams, not of one of their matches.
        found = _EVENT_MARK.fullmatch(parts.fragment) or _EVENT_PAGE.fullmatch(parts.path)
        return found["event"] if found else None

    def parse(self, ask: Ask, body: bytes) -> Reading:
        with belonging_to(self.name, f"{ask.resource} {ask.source_id}".rstrip()):
            match ask.resource:
                case Resource.LIST:
                    return _read_listing(body)
                case Resource.LIVE:
                    return _read_event(ask.source_id, body)
                case Resource.INCIDENTS:
                    return _read_incidents(body)
                case Resource.LINEUPS:
                    return _read_lineups(body)
                case Resource.STATISTICS:
                    return _read_statistics(body)
                case Resource.DRAWN:
                    return read_drawn(ask.source_id, body)
                case other:
                    raise not_offered(self.name, other)

    def _get(self, path: str, page: str) -> FetchRequest:
        return FetchRequest(source=self.name, url=f"{self._api_url}/api/v1/{path}", page=f"{self._site_url}/{page}")


# --- the event ------------------------------------------------------------------------------------------------------

_Small = Annotated[int, Meta(ge=0, le=9_999)]
_Minute = Annotated[int, Meta(ge=-99, le=9_999)]
_Id = Annotated[int, Meta(ge=0, le=2**53)]
_Seconds = Annotated[int, Meta(ge=0, le=4_102_444_800)]


class _Status(Struct, frozen=True):
    code: _Small
    type: str
    description: str = ""


class _Team(Struct, frozen=True):
    id: _Id
    name: str


class _Score(Struct, frozen=True):
    """A side's goals. Before the kick-off, and where nothing was played, it is empty."""

    current: _Small | None = None
    display: _Small | None = None
    period1: _Small | None = None
    period2: _Small | None = None
    extra1: _Small | None = None
    extra2: _Small | None = None
    penalties: _Small | None = None

    @property
    def goals(self) -> int | None:
        """Return the goals without those of a shoot-out, which `current` counts in."""
        if self.display is not None or self.current is None:
            return self.display
        return self.current - (self.penalties or 0)


class _Named(Struct, frozen=True):
    name: str | None = None


class _Season(Struct, frozen=True):
    year: str | int | None = None


class _Round(Struct, frozen=True):
    round: _Small | None = None


class _Event(Struct, frozen=True):
    """What we read of an event; translations, colours and counts of followers drift all the time."""

    id: _Id
    status: _Status
    homeTeam: _Team
    awayTeam: _Team
    homeScore: _Score
    awayScore: _Score
    startTimestamp: _Seconds
    winnerCode: _Small | None = None
    homeRedCards: _Small = 0
    awayRedCards: _Small = 0
    tournament: _Named = _Named()
    season: _Season = _Season()
    roundInfo: _Round = _Round()


class _EventBody(Struct, frozen=True):
    event: _Event


class _ListBody(Struct, frozen=True):
    events: list[msgspec.Raw]


class _Head(Struct, frozen=True):
    id: _Id


def _read_listing(body: bytes) -> Listing:
    boards: list[FootballBoard] = []
    unreadable: list[str] = []
    for raw in decode(body, _ListBody).events:
        try:
            boards.append(_to_board(decode(bytes(raw), _Event)))
        except ParseError:
            unreadable.append(_name_of(bytes(raw)))
    if unreadable and not boards:
        raise LayoutChanged(f"none of the {len(unreadable)} entries of the list can be read")
    return Listing(boards=tuple(boards), unreadable=tuple(unreadable))


def _name_of(entry: bytes) -> str:
    try:
        return str(decode(entry, _Head).id)
    except ParseError:
        return "?"


def _read_event(source_id: str, body: bytes) -> FootballBoard:
    event = decode(body, _EventBody).event
    if source_id and str(event.id) != source_id:
        raise WrongMatch(f"the event is of match {event.id}")
    return _to_board(event)


def _to_board(event: _Event) -> FootballBoard:
    status = _status(event.status)
    return FootballBoard(
        source_id=str(event.id),
        status=status,
        headline=event.status.description.strip(),
        start_at=datetime.fromtimestamp(event.startTimestamp, UTC) if event.startTimestamp else None,
        fingerprint=_fingerprint(event),
        # The score, the status and red cards are all that a list shows of a match in play.
        tells_all=status is not MatchStatus.LIVE,
        home=FootballTeam(key=str(event.homeTeam.id), name=_tidy(event.homeTeam.name)),
        away=FootballTeam(key=str(event.awayTeam.id), name=_tidy(event.awayTeam.name)),
        score=_pair(event.homeScore.goals, event.awayScore.goals),
        periods=tuple(_periods(event.homeScore, event.awayScore)),
        penalties=_pair(event.homeScore.penalties, event.awayScore.penalties),
        result=_result(event),
        tournament=event.tournament.name,
        season=None if event.season.year is None else str(event.season.year),
        round=event.roundInfo.round,
    )


def _fingerprint(event: _Event) -> str:
    status, home, away = event.status, event.homeScore, event.awayScore
    scores = [f"{home.goals}-{away.goals}", f"{home.penalties}-{away.penalties}"]
    cards = f"{event.homeRedCards}-{event.awayRedCards}"
    return "|".join((str(status.code), *scores, cards, str(event.winnerCode), str(event.startTimestamp)))


#: Half-time, waiting for extra time or penalties, the turn of extra time.
_BREAK_CODES = frozenset({31, 32, 33, 34})
_ABANDONED, _WALKOVER = 90, 91
_AFTER = {100: "FT", 110: "AET", 120: "AP"}
_WINNERS = {1: Outcome.HOME, 2: Outcome.AWAY, 3: Outcome.DRAW}


def _status(status: _Status) -> MatchStatus:
    match status.type:
        case "notstarted" | "postponed":
            return MatchStatus.UPCOMING
        case "inprogress":
            return MatchStatus.BREAK if status.code in _BREAK_CODES else MatchStatus.LIVE
        case "finished" | "canceled":
            return MatchStatus.COMPLETED
    # Interrupted, suspended, or a word that is new to us: not over, and picked up again by itself.
    return MatchStatus.BREAK


def _result(event: _Event) -> FootballResult | None:
    code, kind = event.status.code, event.status.type
    if kind == "canceled":
        called_off = Outcome.ABANDONED if code == _ABANDONED else Outcome.CANCELLED
        return _ended(event, called_off, called_off.value)
    if kind != "finished":
        return None
    if code == _WALKOVER:
        return _ended(event, Outcome.WALKOVER, "walkover")
    return _ended(event, _winner(event), _AFTER.get(code, event.status.description.strip()))


def _ended(event: _Event, outcome: Outcome, after: str) -> FootballResult:
    score = _pair(event.homeScore.goals, event.awayScore.goals)
    kicks = _pair(event.homeScore.penalties, event.awayScore.penalties)
    return FootballResult(
        outcome=outcome,
        after=after,
        home=score.home if score else None,
        away=score.away if score else None,
        home_penalties=kicks.home if kicks else None,
        away_penalties=kicks.away if kicks else None,
    )


def _winner(event: _Event) -> Outcome:
    """Return who won; a site that does not say so still shows the score."""
    if event.winnerCode in _WINNERS:
        return _WINNERS[event.winnerCode]
    home, away = event.homeScore, event.awayScore
    if home.goals is None or away.goals is None:
        raise LayoutChanged(f"match {event.id} is finished, with neither a winner nor a score")
    ahead = home.goals - away.goals or (home.penalties or 0) - (away.penalties or 0)
    return Outcome.HOME if ahead > 0 else Outcome.AWAY if ahead < 0 else Outcome.DRAW


def _pair(home: int | None, away: int | None) -> Goals | None:
    return None if home is None or away is None else Goals(home=home, away=away)


def _periods(home: _Score, away: _Score) -> Iterable[PeriodScore]:
    for name in ("period1", "period2", "extra1", "extra2"):
        pair = _pair(getattr(home, name), getattr(away, name))
        if pair is not None:
            yield PeriodScore(name=name, home=pair.home, away=pair.away)


# --- the incidents --------------------------------------------------------------------------------------------------


class _Player(Struct, frozen=True):
    id: _Id
    name: str = ""


class _Item(Struct, frozen=True):
    """An incident; which fields must be there depends on its type."""

    incidentType: str
    id: _Id | UnsetType = UNSET
    isHome: bool | UnsetType = UNSET
    time: _Minute | UnsetType = UNSET
    addedTime: _Small | UnsetType = UNSET
    incidentClass: str | UnsetType = UNSET
    homeScore: _Small | UnsetType = UNSET
    awayScore: _Small | UnsetType = UNSET
    player: _Player | None = None
    assist1: _Player | None = None
    playerIn: _Player | None = None
    playerOut: _Player | None = None
    injury: bool = False
    text: str | UnsetType = UNSET
    isLive: bool = False
    length: _Small | UnsetType = UNSET
    sequence: _Small | UnsetType = UNSET


class _IncidentsBody(Struct, frozen=True):
    incidents: list[_Item]


_GOALS = {"regular": GoalKind.REGULAR, "penalty": GoalKind.PENALTY, "ownGoal": GoalKind.OWN_GOAL}
_CARDS = {"yellow": CardKind.YELLOW, "yellowRed": CardKind.SECOND_YELLOW, "red": CardKind.RED}
_CAPITAL = re.compile(r"(?<!^)([A-Z])")


def _read_incidents(body: bytes) -> Incidents:
    """Read the list, which is newest first, and whole."""
    items = decode(body, _IncidentsBody).incidents[::-1]
    if items and not any(item.incidentType in _READERS or item.incidentType in _NO_EVENTS for item in items):
        raise LayoutChanged(f"none of the {len(items)} incidents is of a known type")
    context = _Context(items)
    seen: dict[tuple[str, str], SeenIncident] = {}
    for item in items:
        # The part that is being played has a mark of its own, which is no end.
        if item.incidentType in _READERS and not item.isLive:
            incident = _READERS[item.incidentType](item, context)
            seen.setdefault((item.incidentType, incident.source_event_id), incident)
    people = (person for item in items for person in (item.player, item.assist1, item.playerIn, item.playerOut))
    named = {str(person.id): _tidy(person.name) for person in people if person and person.name.strip()}
    return Incidents(items=tuple(seen.values()), players=named)


class _Context:
    """What one incident can only be read with the help of others."""

    def __init__(self, items: Iterable[_Item]) -> None:
        #: The scores after each goal, by how many goals there were.
        self._scores = {0: Goals(home=0, away=0)}
        #: Minutes announced to be added, by the minute that they are added to.
        self.announced: dict[int, int] = {}
        for item in items:
            if item.incidentType == "goal":
                score = _score_after(item)
                self._scores[score.total] = score
            elif item.incidentType == "injuryTime" and item.time is not UNSET and item.length is not UNSET:
                # What was announced may be raised, and both announcements may stand in the list.
                self.announced[item.time] = max(item.length, self.announced.get(item.time, 0))

    def credited(self, score: Goals) -> Side | None:
        """Return the side whose score a goal has raised; `None` when the goal before it is not known."""
        before = self._scores.get(score.total - 1)
        if before is None or (score.home < before.home or score.away < before.away):
            return None
        return Side.HOME if score.home > before.home else Side.AWAY


def _to_goal(item: _Item, context: _Context) -> SeenIncident:
    score, how = _score_after(item), _GOALS.get(_class(item), GoalKind.OTHER)
    side = _side(item)
    if how is GoalKind.OWN_GOAL:
        # Some editors write the side of the player, some the side that it counts for.
        side = context.credited(score) or side
    minute, added = _clock(item)
    goal = Goal(
        minute=minute,
        added=added,
        scorer=_key(item.player),
        assist=_key(item.assist1),
        how=how,
        home=score.home,
        away=score.away,
    )
    return _shown(item, side, goal)


def _to_card(item: _Item, _context: _Context) -> SeenIncident:
    minute, added = _clock(item)
    card = _CARDS.get(_class(item), CardKind.OTHER)
    return _shown(item, _side(item), Card(minute=minute, added=added, player=_key(item.player), card=card))


def _to_substitution(item: _Item, _context: _Context) -> SeenIncident:
    minute, added = _clock(item)
    change = Substitution(
        minute=minute,
        added=added,
        player_in=_key(item.playerIn),
        player_out=_key(item.playerOut),
        is_injury=item.injury,
    )
    return _shown(item, _side(item), change)


def _to_decision(item: _Item, _context: _Context) -> SeenIncident:
    minute, added = _clock(item)
    decision = _CAPITAL.sub(r" \1", _class(item)).lower()
    found = VarDecision(minute=minute, added=added, decision=decision, player=_key(item.player))
    return _shown(item, _side(item), found)


def _to_missed(item: _Item, _context: _Context) -> SeenIncident:
    minute, added = _clock(item)
    return _shown(item, _side(item), MissedPenalty(minute=minute, added=added, player=_key(item.player)))


def _to_kick(item: _Item, _context: _Context) -> SeenIncident:
    score = _score_after(item)
    kick = Kick(
        sequence=_number(item, "sequence", item.sequence),
        player=_key(item.player),
        is_scored=_class(item) == "scored",
        home=score.home,
        away=score.away,
    )
    return _shown(item, _side(item), kick)


def _to_period(item: _Item, context: _Context) -> SeenIncident:
    """Read a part's end; it has no id, so its name is one."""
    score, minute = _score_after(item), _number(item, "time", item.time)
    if item.text is UNSET or not item.text.strip():
        _lacks(item, "text")
    end = PeriodEnd(
        period=item.text.strip(),
        minute=None if minute == _NO_NUMBER else minute,
        added=context.announced.get(minute),
        home=score.home,
        away=score.away,
    )
    return SeenIncident(source_event_id=f"period-{end.period}", side=None, content=end)


_READERS: dict[str, Callable[[_Item, _Context], SeenIncident]] = {
    "goal": _to_goal,
    "card": _to_card,
    "substitution": _to_substitution,
    "varDecision": _to_decision,
    "inGamePenalty": _to_missed,
    "penaltyShootout": _to_kick,
    "period": _to_period,
}
#: Told within others.
_NO_EVENTS = frozenset({"injuryTime"})


def _shown(item: _Item, side: Side, content: Incident) -> SeenIncident:
    return SeenIncident(source_event_id=str(_number(item, "id", item.id)), side=side, content=content)


def _clock(item: _Item) -> tuple[int | None, int | None]:
    """Return minute and added time; a card shown on the bench stands at minute -5."""
    minute = _number(item, "time", item.time)
    if minute < 0:
        return None, None
    added = None if item.addedTime is UNSET or item.addedTime == _NO_NUMBER else item.addedTime
    if minute > _LAST_MINUTE or (added or 0) > _MOST_ADDED:
        raise ImpossibleObservation(f"{item.incidentType} {item.id} in minute {minute}+{added}")
    return minute, added


def _score_after(item: _Item) -> Goals:
    home = _number(item, "homeScore", item.homeScore)
    return Goals(home=home, away=_number(item, "awayScore", item.awayScore))


def _side(item: _Item) -> Side:
    if item.isHome is UNSET:
        _lacks(item, "isHome")
    return Side.HOME if item.isHome else Side.AWAY


def _class(item: _Item) -> str:
    if item.incidentClass is UNSET:
        _lacks(item, "incidentClass")
    return item.incidentClass


def _number(item: _Item, field: str, value: int | UnsetType) -> int:
    if value is UNSET:
        _lacks(item, field)
    return value


def _lacks(item: _Item, field: str) -> NoReturn:
    raise LayoutChanged(f"an incident of type {item.incidentType[:40]!r} has no {field!r}")


def _key(person: _Player | None) -> str | None:
    return str(person.id) if person else None


# --- the line-ups ---------------------------------------------------------------------------------------------------


class _PlayerFigures(Struct, frozen=True):
    """Sparse: a figure that is not there is zero or not recorded, and nobody can tell which."""

    rating: Annotated[float, Meta(ge=0, le=10)] | UnsetType | None = UNSET
    minutesPlayed: _Small | UnsetType | None = UNSET


class _Entry(Struct, frozen=True):
    player: _Player
    substitute: bool
    captain: bool = False
    position: str | UnsetType | None = UNSET
    shirtNumber: _Small | UnsetType | None = UNSET
    statistics: _PlayerFigures = _PlayerFigures()


class _Missing(Struct, frozen=True):
    player: _Player
    type: str
    reason: _Small | UnsetType = UNSET
    description: str | UnsetType = UNSET


class _Squad(Struct, frozen=True):
    players: list[_Entry]
    formation: str | UnsetType | None = UNSET
    missingPlayers: list[_Missing] | UnsetType = UNSET


class _LineupsBody(Struct, frozen=True):
    confirmed: bool
    home: _Squad | None = None
    away: _Squad | None = None


def _read_lineups(body: bytes) -> Lineups:
    shown = decode(body, _LineupsBody)
    return Lineups(is_confirmed=shown.confirmed, home=_to_squad(shown.home), away=_to_squad(shown.away))


def _to_squad(squad: _Squad | None) -> Squad | None:
    """Read a side. A player's `teamId` may be his club's or a youth team's: only the side says whom he plays for."""
    if squad is None:
        return None
    players = [_to_player(entry) for entry in squad.players]
    return Squad(
        formation=squad.formation,
        players=tuple(sorted(players, key=lambda player: not player.is_starter)),
        missing=UNSET if squad.missingPlayers is UNSET else tuple(_to_missing(each) for each in squad.missingPlayers),
    )


def _to_player(entry: _Entry) -> LineupPlayer:
    return LineupPlayer(
        key=str(entry.player.id),
        name=_tidy(entry.player.name),
        is_starter=not entry.substitute,
        is_captain=entry.captain,
        position=entry.position,
        shirt=entry.shirtNumber,
        rating=entry.statistics.rating,
        minutes=entry.statistics.minutesPlayed,
    )


def _to_missing(missing: _Missing) -> MissingPlayer:
    return MissingPlayer(
        key=str(missing.player.id),
        name=_tidy(missing.player.name),
        kind=missing.type,
        reason=missing.reason,
        description=missing.description,
    )


# --- the statistics -------------------------------------------------------------------------------------------------


class _Figure(Struct, frozen=True):
    """A figure of both sides. Its text has four forms; the numbers beside it have one."""

    name: str
    homeValue: float
    awayValue: float
    key: str | UnsetType = UNSET
    homeTotal: float | UnsetType = UNSET
    awayTotal: float | UnsetType = UNSET


class _Group(Struct, frozen=True):
    statisticsItems: list[_Figure]


class _Part(Struct, frozen=True):
    period: str
    groups: list[_Group]


class _StatisticsBody(Struct, frozen=True):
    statistics: list[_Part]


def _read_statistics(body: bytes) -> Statistics:
    parts = decode(body, _StatisticsBody).statistics
    return Statistics(periods={part.period: tuple(_figures(part).values()) for part in parts})


def _figures(part: _Part) -> Mapping[str, Statistic]:
    """Return the figures by key; several groups repeat one, and older bodies have a name only."""
    found: dict[str, Statistic] = {}
    for figure in (figure for group in part.groups for figure in group.statisticsItems):
        key = figure.name if figure.key is UNSET else figure.key
        numbers: dict[str, Any] = {"home_total": figure.homeTotal, "away_total": figure.awayTotal}
        found.setdefault(key, Statistic(key=key, home=figure.homeValue, away=figure.awayValue, **numbers))
    return found


def _tidy(name: str) -> str:
    return normalize("NFC", name.strip())
