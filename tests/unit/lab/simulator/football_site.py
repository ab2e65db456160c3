"""A simulated sofascore with one match, asked without a socket."""

from typing import Any

import msgspec

from longstop_lab.simulator.football.model import FootballMatch
from longstop_lab.simulator.football.script import FootballScript
from longstop_lab.simulator.football.world import FootballWorld, PlannedFootball
from longstop_lab.simulator.http import Request, Response
from longstop_lab.simulator.sites.sofascore.site import SofascoreSite
from longstop_lab.simulator.truth import TruthLine
from tests.unit.lab.simulator.games import NOON


class FootballSite:
    """One match, whose kick-off was planned for the world's beginning plus `head_start` seconds."""

    def __init__(self, match: FootballMatch, script: FootballScript, head_start: float = 10_000.0) -> None:
        self.match = match
        self.lines: list[TruthLine] = []
        self._head_start = head_start
        plan = PlannedFootball(match=match, script=script, starts_at=head_start)
        self.world = FootballWorld([plan], started_at=NOON, speed=1.0, record=self.lines.extend)
        self.site = SofascoreSite(self.world)

    def at(self, seconds: float) -> "FootballSite":
        """Set the time to this many seconds after the kick-off that was planned first."""
        self.world.advance_to(self._head_start + seconds)
        return self

    def answer(self, part: str = "", **headers: str) -> Response:
        path = f"/api/v1/event/{self.match.key}{part}"
        return self.site.answer(Request(method="GET", path=path, headers=headers))

    def body(self, part: str = "") -> Any:
        answered = self.answer(part)
        assert answered.status == 200, answered
        return msgspec.json.decode(answered.body)

    def event(self) -> Any:
        return self.body()["event"]

    def incidents(self) -> list[dict[str, Any]]:
        shown: list[dict[str, Any]] = self.body("/incidents")["incidents"]
        return shown
