"""The simulator's own paths under `/_sim/`: show its status, freeze it, set faults, and list requests."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec

from longstop.clock import to_iso
from longstop.errors import UsageError
from longstop_lab.simulator.cricket.board import Board
from longstop_lab.simulator.faults import FaultRule, FaultRules, read_faults
from longstop_lab.simulator.football.board import FootballBoard
from longstop_lab.simulator.http import Request, Response, failure, to_json
from longstop_lab.simulator.pages.crex_page import page_path
from longstop_lab.simulator.request_log import RequestLog
from longstop_lab.simulator.sites.espncricinfo.ids import match_number
from longstop_lab.simulator.sites.sofascore.page import page_path as event_page_path
from longstop_lab.simulator.sites.sofascore.statuses import has_begun, is_over, status_of
from longstop_lab.simulator.timeline import Timeline

PREFIX = "/_sim/"
#: The answer to `/`, which no simulated site has.
ABOUT = (
    f"This port serves a simulated site. GET {PREFIX}status lists the matches and their pages, "
    f"{PREFIX}faults the faults. See docs/reference/simulator.md"
)
_MAX_DIGITS = 15


class Control:
    def __init__(self, worlds: Sequence[Timeline[Any, Any]], faults: FaultRules, requests: RequestLog) -> None:
        self._worlds = worlds
        self._faults = faults
        self._requests = requests

    def respond(self, request: Request, now: datetime) -> Response:
        match request.method, request.path.removeprefix(PREFIX):
            case "GET", "status":
                return to_json(self._status(now))
            case "POST", "freeze":
                for world in self._worlds:
                    world.freeze(now)
                return to_json(self._status(now))
            case "GET", "requests":
                return self._asked(request.query.get("after", "0"))
            case (("GET" | "POST" | "DELETE"), "faults"):
                return self._change_faults(request, now)
        return failure(404, f"{request.method} {request.path} does not exist")

    def _status(self, now: datetime) -> dict[str, Any]:
        return {
            "now": to_iso(now),
            "world_seconds": self._worlds[0].seconds,
            "is_frozen": all(world.is_frozen for world in self._worlds),
            "requests": dict(self._requests.counts),
            "matches": [
                {**_summary(board), "faulty_answers": self._faults.faulty_answers[key]}
                for world in self._worlds
                for key, board in world.boards.items()
            ],
        }

    def _asked(self, after: str) -> Response:
        if not after.isdecimal() or len(after) > _MAX_DIGITS:
            return failure(400, "after must be the number of a request, such as 0")
        return to_json({"requests": self._requests.after(int(after))})

    def _change_faults(self, request: Request, now: datetime) -> Response:
        self._faults.expire(now)
        try:
            if request.method == "POST":
                faults = read_faults(request.body)
                for fault in faults:
                    self._require_match(fault.match)
                for fault in faults:
                    self._faults.add(fault, now)
            elif request.method == "DELETE":
                self._remove(request.query.get("id"))
        except UsageError as error:
            return failure(400, str(error))
        return to_json([_shown(rule) for rule in self._faults.rules])

    def _require_match(self, key: str | None) -> None:
        keys = [each for world in self._worlds for each in world.boards]
        if key is not None and key not in keys:
            raise UsageError(
                f"no site has a match {key[:40]!r}: GET {PREFIX}status lists the matches by key, such as {keys[0]}"
            )

    def _remove(self, rule_id: str | None) -> None:
        if rule_id is None:
            self._faults.clear()
        elif rule_id.isdecimal():
            self._faults.remove(int(rule_id))
        else:
            raise UsageError("the id of a fault is a number; without an id, all faults are removed")


def _summary(board: Board | FootballBoard) -> dict[str, Any]:
    if isinstance(board, FootballBoard):
        return _football_summary(board)
    return {
        "sport": "cricket",
        "key": board.game.key,
        "espn_id": match_number(board.game.key),
        "title": board.game.title,
        "teams": [{"key": side.key, "name": side.name} for side in board.game.sides],
        "phase": _phase(board),
        "balls": len(board.balls_posted),
        "headline": board.headline,
        "page": page_path(board.game),
    }


def _football_summary(board: FootballBoard) -> dict[str, Any]:
    return {
        "sport": "football",
        "key": board.match.key,
        "title": f"{board.match.home.name} v {board.match.away.name}",
        "teams": [{"key": team.key, "name": team.name} for team in (board.match.home, board.match.away)],
        "phase": "completed" if is_over(board) else _football_phase(board),
        "events": len(board.live),
        "headline": board.status,
        "page": event_page_path(board.match),
    }


def _football_phase(board: FootballBoard) -> str:
    if not has_begun(board):
        return "upcoming"
    return "live" if status_of(board, is_low_coverage=False).code in (6, 7, 41, 42, 50) else "break"


def _phase(board: Board) -> str:
    if board.result:
        return "completed"
    if not board.begun:
        return "upcoming"
    return "break" if board.is_break else "live"


def _shown(rule: FaultRule) -> dict[str, Any]:
    until = to_iso(rule.until) if rule.until else None
    return {"id": rule.id, "until": until, **msgspec.to_builtins(rule.fault)}
