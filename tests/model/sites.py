"""A site that shows a truth, and what stands between it and its readers."""

from collections.abc import Callable
from typing import Any, ClassVar, Protocol
from urllib.parse import urlsplit

import msgspec

from longstop.errors import FetchError
from longstop.fetching.base import FetchRequest
from longstop.sources.base import Source
from longstop.sources.crex.source import CrexSource
from longstop.sports.cricket.model import Dismissal, InningsScore, Wicket
from longstop.testing import ScriptedReply
from tests.builders import CREX_CONFIG, body
from tests.model.truth import People, Truth

PAGE_SIZE = 10
BREAK = "Innings Break"
RESULT = "Reds won by 10 runs"


class Site(Protocol):
    """Renders a truth in the wire format of a site."""

    source: Source
    source_id: str
    people: People
    #: Whether an over's summary says how many balls it had.
    counts_balls: bool

    def render(self, resource: str, request: FetchRequest, truth: Truth) -> bytes: ...


class Front:
    """What stands between a site and its readers: it can serve old copies, fail, and be slower than the play."""

    def __init__(self, site: Site, truth: Truth) -> None:
        self.site = site
        self.truth = truth
        #: Says which truth a resource is answered from; `None` is the present one.
        self.choose: Callable[[str], Truth | None] = lambda _resource: None
        #: Called before each answer; may change the truth, and may raise.
        self.before_answer: Callable[[str], FetchError | None] = lambda _resource: None
        #: Called with every truth of which something is shown.
        self.on_shown: Callable[[Truth], None] = lambda _truth: None

    def behave(self) -> None:
        self.choose = lambda _resource: None
        self.before_answer = lambda _resource: None

    def __call__(self, request: FetchRequest) -> ScriptedReply:
        resource = urlsplit(request.url).path.rpartition("/")[2]
        error = self.before_answer(resource)
        if error is not None:
            return error
        shown = self.choose(resource) or self.truth
        self.on_shown(shown)
        return self.site.render(resource, request, shown)


class CrexSite:
    """Every ball from the first on, ten items a page, newest first."""

    source_id = "M1"
    counts_balls = False
    people = People(
        batter="A1",
        bowler="B1",
        out=Wicket(kind=Dismissal.CAUGHT, player_out="Cat Out", player_key="C1"),
        sides=("T1", "T2"),
    )
    _names: ClassVar = {
        "A1": "Ann Alpha",
        "A2": "Amy Alpha",
        "B1": "Bea Beta",
        "C1": "Cat Out",
        "T1": "Reds",
        "T2": "Blues",
    }

    def __init__(self) -> None:
        self.source: Source = CrexSource(CREX_CONFIG)
        #: How many of the newest items the feed does not show yet.
        self.lag = 0

    def render(self, resource: str, request: FetchRequest, truth: Truth) -> bytes:
        match resource:
            case "getSV3":
                return body(self._state(truth))
            case "getSC4":
                return body(self._scorecard(truth))
            case "getBallFeeds":
                return body(self._page(request, truth))
            case _:
                return body(self._found(request))

    def _state(self, truth: Truth) -> dict[str, Any]:
        board = truth.board()
        newest = max(board, default=1)
        first = newest - 1 + newest % 2
        return {
            "a": ".".join(self.people.sides),
            "rb": [{"bt": self.people.sides[(newest - 1) % 2], "i": newest - 1}],
            "B": truth.headline or "B",
            "j": _crex_score(board.get(first)),
            "k": _crex_score(board.get(first + 1)),
            "fo": "TEST",
            "mt": 1_772_892_000_000,
        }

    def _scorecard(self, truth: Truth) -> list[dict[str, str]]:
        return [
            {
                "c": self.people.sides[(number - 1) % 2],
                "d": f"{score.runs}/{score.wickets}({score.overs.over * 6 + score.overs.ball}",
            }
            for number, score in truth.board().items()
        ]

    def _page(self, request: FetchRequest, truth: Truth) -> list[dict[str, Any]]:
        before = msgspec.json.decode(request.body or b"")["lastDocId"]
        items = sorted(self._items(truth), key=lambda item: item["id"], reverse=True)[self.lag :]
        return [item for item in items if before is None or item["id"] < int(before)][:PAGE_SIZE]

    def _items(self, truth: Truth) -> list[dict[str, Any]]:
        shown = truth.deliveries()
        items = []
        for ball in truth.balls:
            place = {"mfkey": self.source_id, "inning": ball.innings - 1, "on": ball.over}
            label = {"o": str(shown[ball.id].label)}
            fv = {4: 8, 6: 4}.get(shown[ball.id].boundary or 0, 2)
            items.append(
                {**place, **label, "type": "b", "id": ball.id, "b": ball.value, "fv": fv, "bf": "B1", "pf": "A1"}
            )
            if ball.is_out:
                out = {"player": "Cat Out", "pf_out": "C1", "dismissal": 2, "fv": 64}
                items.append({**place, **label, **out, "type": "w", "id": ball.id + 1})
        for (innings, over), summary in truth.summaries(counts_balls=False).items():
            after = f"{summary.score.runs}/{summary.score.wickets}"
            place = {"mfkey": self.source_id, "inning": innings - 1, "on": over, "o": over + 1}
            id_ = truth.ends[innings, over]
            items.append({**place, "type": "o", "id": id_, "runs": summary.runs, "s": after, "bf": "B1"})
        return items

    def _found(self, request: FetchRequest) -> dict[str, Any]:
        asked = msgspec.json.decode(request.body or b"")
        return {part: [{"f_key": key, "n": self._names[key]} for key in asked[part]] for part in ("p", "t")}


def _crex_score(score: InningsScore | None) -> str:
    return f"{score.runs}/{score.wickets}({score.overs}" if score else "0/0(0.0"
