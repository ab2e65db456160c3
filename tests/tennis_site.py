"""The site that the tennis plug-in reads: a match that is played by a script, served on loopback."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from itertools import count
from typing import Any

from longstop_lab.simulator.http import Request, Response, failure, read_request, to_json

HOME, AWAY = "home", "away"
#: The score of a game after each of its points, seen by the one who wins them all.
LOVE_GAME = ("15-0", "30-0", "40-0", "game")


class Court:
    """One match: what its site shows of it now."""

    def __init__(self, source_id: str, home: str = "Ada", away: str = "Bea") -> None:
        self.source_id = source_id
        self.names = {HOME: home, AWAY: away}
        self.status = "live"
        self.sets = [[0, 0]]
        self.game = "0-0"
        self.winner: str | None = None
        self.plays: list[dict[str, Any]] = []
        self._ids = count(1)

    def point(self, winner: str, score: str) -> str:
        """Play a point; return the site's id of it."""
        here = (len(self.sets), sum(self.sets[-1]) + 1)
        played = [play for play in self.plays if play["type"] == "point" and tuple(play["at"][:2]) == here]
        self.game = score
        return self._add("point", (*here, len(played) + 1), winner, score)

    def win_game(self, winner: str) -> None:
        """Play a game that one side wins without losing a point."""
        for score in LOVE_GAME:
            self.point(winner, score if winner == HOME else "-".join(reversed(score.split("-"))))
        self.end_game(winner)

    def end_game(self, winner: str) -> None:
        self.sets[-1][winner == AWAY] += 1
        self.game = "0-0"
        self._add("game", (len(self.sets), sum(self.sets[-1])), winner, "-".join(map(str, self.sets[-1])))

    def end_set(self, winner: str) -> None:
        self._add("set", (len(self.sets),), winner, "-".join(map(str, self.sets[-1])))

    def begin_set(self) -> None:
        self.sets.append([0, 0])

    def end(self, winner: str) -> None:
        self.status, self.winner = "completed", winner

    def correct(self, winner: str, score: str) -> None:
        """Give the last point to the other side."""
        self.plays[-1]["won"] = {"winner": winner, "score": score}
        self.game = score

    def take_back(self) -> None:
        """Take the last point back; the one before it is the last again."""
        self.plays.pop()
        self.game = self.plays[-1]["won"]["score"]

    def summary(self) -> dict[str, Any]:
        names = {"id": self.source_id, **self.names}
        return names | {"status": self.status, "sets": self.sets, "game": self.game, "winner": self.winner}

    def _add(self, kind: str, at: tuple[int, ...], winner: str, score: str) -> str:
        play_id = f"p{next(self._ids)}"
        self.plays.append({"id": play_id, "type": kind, "at": at, "won": {"winner": winner, "score": score}})
        return play_id


class TennisSite:
    """The site."""

    def __init__(self, *courts: Court) -> None:
        self.courts = {court.source_id: court for court in courts}
        self.port = 0
        self.requests: list[str] = []
        self._clock = count()

    def described(self, adapter: str = "courtside") -> str:
        """Return a file of sources that leads here."""
        key = "url" if adapter == "courtside" else "api_url"
        return f"""\
sources:
  - domain_id: courtside
    enabled: true
    precedence_weight: 50
    adapter_class: {adapter}
    hosts: ["127.0.0.1:{self.port}"]
    allow_private_addresses: true
    metadata: {{{key}: "http://127.0.0.1:{self.port}"}}
"""

    def answer(self, request: Request) -> Response:
        self.requests.append(request.path)
        match request.path.strip("/").split("/"):
            case ["matches"]:
                return to_json([self._with_clock(court.summary()) for court in self.courts.values()])
            case ["matches", source_id] if source_id in self.courts:
                return to_json(self._with_clock(self.courts[source_id].summary()))
            case ["matches", source_id, "points"] if source_id in self.courts:
                return to_json(self.courts[source_id].plays)
        return failure(404, "There is no such page.")

    def body(self, path: str) -> bytes:
        return self.answer(Request(method="GET", path=path)).body

    def _with_clock(self, document: dict[str, Any]) -> dict[str, Any]:
        """Add what moves without meaning."""
        return {**document, "clock": next(self._clock)}

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while (request := await read_request(reader)) is not None:
                writer.write(self.answer(request).encode(keeps_alive=request.keeps_alive))
                await writer.drain()
        writer.close()


@asynccontextmanager
async def serving(site: TennisSite) -> AsyncIterator[None]:
    """Serve the site on a free port of 127.0.0.1."""
    tasks: set[asyncio.Task[None]] = set()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.add(asyncio.create_task(site.serve(reader, writer)))

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    site.port = server.sockets[0].getsockname()[1]
    try:
        yield
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
