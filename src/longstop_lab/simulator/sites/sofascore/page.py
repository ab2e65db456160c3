"""The page of a match: it asks for its data itself, again and again, and listens to a push channel."""

from html import escape
from importlib.resources import files

import msgspec

from longstop_lab.simulator.football.model import FootballMatch
from longstop_lab.simulator.football.world import FootballWorld
from longstop_lab.simulator.pages.decoration import whole_page
from longstop_lab.simulator.sites.sofascore.players import match_slug
from longstop_lab.simulator.sites.sofascore.traits import traits_of

#: The names that a redesign changes.
CLASSES = ("event-score", "event-status", "event-incidents", "event-lineups", "event-statistics", "team-title")

_BODY = """<main>
<h1><span class="team-title" data-side="home">{home}</span> –
<span class="team-title" data-side="away">{away}</span></h1>
<img src="/static/img/team-{home_key}.png" alt="" width="40">
<img src="/static/img/team-{away_key}.png" alt="" width="40">
<p class="event-score">- : -</p><p class="event-status"></p>
<h2>Incidents</h2><ol class="event-incidents"></ol>
<h2>Line-ups</h2><ul class="event-lineups"></ul>
<h2>Statistics</h2><ul class="event-statistics"></ul>
</main>
<script id="match" type="application/json">{settings}</script>"""


def page_path(match: FootballMatch) -> str:
    """Return where a match's page is."""
    return f"/event/{match_slug(match, traits_of(match.key))}/{match.key}"


def event_page(match: FootballMatch, poll_seconds: float) -> bytes:
    settings = msgspec.json.encode({"id": int(match.key), "pollSeconds": poll_seconds}).decode()
    body = _BODY.format(
        home=escape(match.home.name),
        away=escape(match.away.name),
        home_key=match.home.key,
        away_key=match.away.key,
        settings=settings,
    )
    script = (files("longstop_lab.simulator.sites.sofascore") / "page.js").read_text(encoding="utf-8")
    return whole_page(f"{match.home.name} vs {match.away.name} live score", body=body, script=script)


def live_page(world: FootballWorld) -> bytes:
    """Return a page that leads to every match."""
    matches = [board.match for board in world.boards.values()]
    links = (
        f'<li><a href="{page_path(match)}">{escape(match.home.name)} – {escape(match.away.name)}</a></li>'
        for match in matches
    )
    return whole_page("Football live scores", body=f"<ul>{''.join(links)}</ul>", script="")
