"""A complete source: football from the JSON API of a fictitious site. See docs/howto/add-a-source.md."""

import re
from typing import Any, Literal

from msgspec import Struct

from longstop.errors import PageNotFound, WrongMatch
from longstop.fetching.base import FetchRequest
from longstop.model.match import MatchStatus
from longstop.model.source_queries_and_answers import LIST, LIVE, Listing, Query
from longstop.sources.base import SourceConfig, not_offered
from longstop.sources.bodies_and_urls import decode, digest_of, split_site_url
from longstop.sports.football import model as football

_STATUSES = {"before": MatchStatus.UPCOMING, "live": MatchStatus.LIVE, "ended": MatchStatus.COMPLETED}


class _Match(Struct):  # only what is read: the site's clock and odds are skipped
    id: str
    state: Literal["before", "live", "ended"]
    home: football.FootballTeam
    away: football.FootballTeam
    goals: football.Goals | None = None


class _Goal(Struct):
    id: int
    side: football.Side
    minute: int
    score: football.Goals
    scorer: str | None = None


_SHAPES: dict[str, Any] = {LIST: list[_Match], LIVE: _Match, football.INCIDENTS: list[_Goal]}


class KickoffSource:
    sport = "football"
    calls: tuple[str, ...] = ()  # no browser is needed
    sites: tuple[str, ...] = ("kickoff.example",)
    metadata_keys = ("api_url",)

    def __init__(self, config: SourceConfig) -> None:
        self.name = config.domain_id
        self._api_url = config.metadata.get("api_url", "https://kickoff.example/api")

    def request(self, query: Query) -> FetchRequest:
        paths = {LIST: "", LIVE: f"/{query.source_id}", football.INCIDENTS: f"/{query.source_id}/goals"}
        if query.resource not in paths:  # line-ups and statistics: optional in football, and this site has none
            raise PageNotFound(f"the site has no {query.resource}")
        return FetchRequest(source=self.name, url=f"{self._api_url}/matches{paths[query.resource]}")

    def parse(self, query: Query, body: bytes) -> Listing | football.FootballBoard | football.Incidents:
        if query.resource not in _SHAPES:
            raise not_offered(self.name, query.resource)
        content = decode(body, _SHAPES[query.resource])
        if query.resource == LIST:
            return Listing(boards=tuple(_board(match) for match in content))
        if query.resource == football.INCIDENTS:
            return football.Incidents(items=tuple(_incident(goal) for goal in content))
        if query.source_id not in ("", content.id):
            raise WrongMatch(f"the body is of match {content.id}")
        return _board(content)

    def digest(self, query: Query, body: bytes) -> bytes:
        return digest_of(decode(body, _SHAPES[query.resource]))

    def match_of(self, url: str) -> str | None:
        parts = split_site_url(url, self.sites)
        found = re.fullmatch(r"/match/(\d+)", parts.path) if parts else None
        return found[1] if found else None


def _board(match: _Match) -> football.FootballBoard:
    goals, status = match.goals, _STATUSES[match.state]
    result = None
    if status is MatchStatus.COMPLETED and goals:
        ahead = goals.home - goals.away
        outcome = football.Outcome.HOME if ahead > 0 else football.Outcome.AWAY if ahead else football.Outcome.DRAW
        result = football.FootballResult(outcome=outcome, after="FT", home=goals.home, away=goals.away)
    return football.FootballBoard(
        source_id=match.id,
        status=status,
        headline=match.state,
        fingerprint=f"{match.state}|{goals}",  # what makes a listing entry "changed"
        shows_every_change=status
        is not MatchStatus.LIVE,  # a live entry shows no scorers: always poll the match itself
        home=match.home,
        away=match.away,
        score=goals,
        result=result,
    )


def _incident(goal: _Goal) -> football.SeenIncident:
    score, how = goal.score, football.GoalKind.OTHER
    content = football.Goal(minute=goal.minute, scorer=goal.scorer, how=how, home=score.home, away=score.away)
    return football.SeenIncident(source_event_id=str(goal.id), side=goal.side, content=content)
