"""What every data route needs first: whether the bearer may ask, which match is meant, and how old it is."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Annotated

from fastapi import Request, Security
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from starlette.exceptions import HTTPException

from longstop.api import shapes
from longstop.api.auth import Bearer, Permission, TokenVerifier
from longstop.api.view import MatchView, from_hot, from_store
from longstop.clock import Clock, Moment
from longstop.errors import UsageError
from longstop.model.match import MonitoringRecord, Sport, parse_match_id
from longstop.storage.base import HotReader, MatchReader, MatchRow

REVALIDATE = {"Cache-Control": "no-cache"}

_bearer_scheme = HTTPBearer(auto_error=False, description="A token from `longstop token`.")
Scheme = Annotated[HTTPAuthorizationCredentials | None, Security(_bearer_scheme)]


class Lookup:
    """Finds things for the routes of one sport, in the readers it was given.

    The reads run on the loop: each takes well under a millisecond and never waits for a writer, while a hop to a
    thread and back costs more than the read. While a file is known to hang, nobody is let near it: one who waited for
    it here would make everybody else wait.
    """

    def __init__(
        self,
        *,
        reader: MatchReader,
        hot: HotReader,
        verifier: TokenVerifier,
        clock: Clock,
        sport: Sport,
        is_hanging: Callable[[], bool] = lambda: False,
    ) -> None:
        self.sport = sport
        self.reader = reader
        self.hot = hot
        self.clock = clock
        self._verifier = verifier
        self._is_hanging = is_hanging

    async def permit(self, request: Request, _documented: Scheme) -> None:
        self.require(Permission.READ, request)

    def require(self, permission: Permission, request: Request) -> None:
        require(self._verifier, permission, request, self.clock.now())
        if self._is_hanging():
            raise HTTPException(503, "The store cannot be read at the moment.", {"Retry-After": "5"})

    def match(self, text: str) -> MatchRow:
        """Return the match that a path names, or raise what the client is told."""
        match = self._look_up(text)
        if match is None:
            raise HTTPException(404, f"No match {text} is known.")
        if match.sport is not self.sport:
            raise HTTPException(404, f"Match {text} is {match.sport}: ask {shapes.match_path(match)}.")
        return match

    def records(self, page: Sequence[MatchRow]) -> dict[int, MonitoringRecord]:
        """Return how the watching of these matches goes, by their ids; they stand in the order of those."""
        if not page:
            return {}
        found = self.hot.records(page[0].match_id, page[-1].match_id)
        return {record.match_id: record for record in found}

    def view(self, match: MatchRow) -> MatchView | None:
        """Return what is known of a match; `None` while it was never read."""
        row = self.hot.row(match.match_id)
        live = from_hot(match, row) if row else None
        if live is not None:
            return live
        snapshots = self.reader.snapshots(match.match_id)
        return from_store(match, snapshots[0], row.record if row else None) if snapshots else None

    def headers(self, match: MatchRow) -> dict[str, str]:
        """Return the headers of an answer about a match: its age, and that it is to be asked again."""
        return shapes.age_headers(self.view(match), Moment.of(self.clock)) | REVALIDATE

    def open_findings(self, match: MatchRow) -> int:
        return sum(stored.closed_at is None for stored in self.reader.findings(match.match_id))

    def _look_up(self, text: str) -> MatchRow | None:
        return look_up(self.reader, text)


def require(verifier: TokenVerifier, permission: Permission, request: Request, now: datetime) -> Bearer:
    """Return who asks, or raise what whoever may not ask is told."""
    bearer = verifier.verify(request.headers.get("authorization"), now)
    if bearer is None:
        raise HTTPException(401, "A valid Bearer token is needed here.", {"WWW-Authenticate": "Bearer"})
    if permission not in bearer.permissions:
        raise HTTPException(403, f"This token does not carry the permission {permission}.")
    return bearer


def look_up(reader: MatchReader, text: str) -> MatchRow | None:
    """Return the match of this name, of any sport; raise what a client is told who names nothing."""
    try:
        name = parse_match_id(text)
    except UsageError as error:
        raise HTTPException(400, str(error)) from error
    return reader.match(name) if isinstance(name, int) else reader.find(name)


def not_read_yet(match: MatchRow) -> HTTPException:
    return HTTPException(404, f"Match {match.ref} was discovered and has not been read yet.")
