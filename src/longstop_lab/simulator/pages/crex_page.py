"""The match page of crex: its script polls the compact state, draws it, and learns the names late."""

import re
from collections.abc import Iterable
from html import escape
from importlib.resources import files

import msgspec

from longstop_lab.simulator.cricket.board import Board
from longstop_lab.simulator.cricket.game import Game
from longstop_lab.simulator.pages.decoration import whole_page

LISTING = "/live-matches"
#: The address until 2025, and the one since.
_MATCH_PAGE = re.compile(
    r"/scoreboard/(?P<old>[0-9A-Z]{1,8})(?:/[^/]+){5}/(?:live|info|scorecard)"
    r"|/cricket-live-score/[a-z0-9-]+-match-updates-(?P<new>[0-9A-Z]{1,8})"
)
#: The names that a redesign changes.
CLASSES = (
    "result-box",
    "team-run-rate",
    "final-result",
    "team-content",
    "team-name",
    "runs",
    "slideOver",
    "overs-slide",
    "over-ball",
    "total",
    "fav-odd",
    "app-match-live-player",
    "batsmen-partnership",
    "batsmen-name",
    "batsmen-score",
    "cm-b-roundcard",
    "cm-b-over",
    "cm-b-ballupdate",
    "cm-b-comment-c1",
    "live-score-card",
    "live-card",
)
#: A former player whose name is in every visitor's local storage.
_OLD_PLAYER = {"key": "0ZZ", "name": "Old Timer"}
_LATE_SECONDS = 5.0
_STYLE = ".over-ball{display:inline-block;padding:0 .3rem}.runs{font-weight:bold}"

_BODY = """<main class="live-score-card">
<div class="team-content" data-team="0"><img src="/static/img/team-{one}.png" alt="" width="40">
<div class="team-name"></div><div class="runs"><span></span> <span></span></div></div>
<div class="team-content" data-team="1"><img src="/static/img/team-{two}.png" alt="" width="40">
<div class="team-name"></div><div class="runs"><span></span> <span></span></div></div>
<div class="result-box"><span></span></div>
<div class="team-run-rate">CRR: <span class="data"></span></div>
<div class="final-result m-none"></div>
<div id="slideOver"></div>
<div class="fav-odd"><div class="d-flex"><span></span> <span></span></div></div>
<app-match-live-player></app-match-live-player>
<section id="commentary"></section>
</main>
<script id="match" type="application/json">{settings}</script>"""


def page_path(game: Game) -> str:
    """Return where a match's page is."""
    one, two = game.sides
    slug = re.sub(r"[^a-z0-9]+", "-", game.title.lower()).strip("-")
    return f"/scoreboard/{game.key}/1S0/{game.number}-Match/{one.key}/{two.key}/{slug}/live"


def key_of(path: str) -> str | None:
    """Return which match a page's address names."""
    named = _MATCH_PAGE.fullmatch(path)
    return (named["old"] or named["new"]) if named else None


def match_page(game: Game, poll_seconds: float) -> bytes:
    one, two = game.sides
    settings = {
        "key": game.key,
        "teams": [one.key, two.key],
        "pollSeconds": poll_seconds,
        "lateSeconds": _LATE_SECONDS,
        "oldPlayer": _OLD_PLAYER,
    }
    body = _BODY.format(one=one.key, two=two.key, settings=msgspec.json.encode(settings).decode())
    script = (files("longstop_lab.simulator.pages") / "crex_page.js").read_text(encoding="utf-8")
    return whole_page(f"{game.title} live score", body=body, script=script, style=_STYLE)


def listing_page(boards: Iterable[Board]) -> bytes:
    """Return a page with a card for every match."""
    cards = (
        f'<li class="live-card"><a href="{page_path(board.game)}">'
        f'<div class="team-name">{escape(board.game.title)}</div>'
        f"<span>{escape(board.headline)}</span></a></li>"
        for board in boards
    )
    return whole_page("Live cricket matches", body=f"<ul>{''.join(cards)}</ul>", script="")
