"""Match pages as their scripts render them, in the simulator's format, with the content that a test needs."""

from html import escape

_CREX = """<!doctype html><html><head><title>live score</title></head><body><div class="ad-slot">Won by Ads</div>
<main class="live-score-card">
<div class="team-content" data-team="0"><img src="/a.png" alt="">
<div class="team-name">{batting}</div><div class="runs"><span>{now}</span> <span>{now_overs}</span></div></div>
<div class="team-content" data-team="1"><img src="/b.png" alt="">
<div class="team-name">{bowling}</div><div class="runs"><span>{other}</span> <span>{other_overs}</span></div></div>
<div class="result-box"><span>{said}</span></div>
<div class="team-run-rate">CRR: <span class="data">7.25</span></div>
<div class="final-result m-none"></div>
<div id="slideOver"><div class="overs-slide"><span class="">This Over:</span><div class="over-ball"> 4 </div>
<span class="total">= 4</span></div></div>
<div class="fav-odd"><div class="d-flex"><span>Reds</span> <span>34+36</span></div></div>
<app-match-live-player><div class="batsmen-partnership"><div class="batsmen-name">A One</div>
<div class="batsmen-score">31 (20)</div></div></app-match-live-player>
<section id="commentary"><div class="cm-b-roundcard"><span class="cm-b-over">3.4</span>
<span class="cm-b-ballupdate"> 4 </span><p class="cm-b-comment-c1">B to A, 29/1 (3.4)</p></div></section>
</main></body></html>"""

_SOFASCORE = """<!doctype html><html><head><title>{home} vs {away} live score</title></head><body><main>
<h1><span class="team-title" data-side="home">{home}</span> –
<span class="team-title" data-side="away">{away}</span></h1>
<p class="event-score">{score}</p><p class="event-status">{status}</p>
<h2>Incidents</h2><ol class="event-incidents"><li>12' goal regular Player 1</li><li>45' period HT</li></ol>
<h2>Line-ups</h2><ul class="event-lineups"><li>1 Keeper (7.1)</li></ul>
<h2>Statistics</h2><ul class="event-statistics"><li>3 Shots 4</li><li>2 - 1</li></ul>
</main></body></html>"""


#: The site's own marks, as in a recorded page; its class names are generated.
_SOFASCORE_SITE = """<html lang="en"><body><ul>
<li data-testid="breadcrumb_title"><h1><bdi>{home}</bdi> vs <bdi>{away}</bdi>
live score, H2H results</h1></li></ul><main>
<div><div data-testid="left_team"><a href="/team/1"><img alt="{home}"><bdi>{home}</bdi></a></div>
<div><div><div><span><span data-testid="left_score">{left}</span><span> - </span>
<span data-testid="right_score">{right}</span></span></div>
<div><span><span>{status}</span></span></div></div></div>
<div data-testid="right_team"><a href="/team/2"><img alt="{away}"><bdi>{away}</bdi></a></div></div>
<div data-testid="scorer_list"><span>Player 1 12'</span></div></main></body></html>"""


def crex_page(
    now: str = "29/1(3.4)",
    other: str = "0/0(0.0)",
    said: str = "4",
    *,
    batting: str = "Reds",
    bowling: str = "Blues",
) -> bytes:
    """Return a crex page; a score is written as `29/1(3.4)`, anything else stands there as it is."""
    fields = {"batting": batting, "bowling": bowling, "said": said}
    for name, text in (("now", now), ("other", other)):
        score, bracket, overs = text.partition("(")
        fields |= {name: score, f"{name}_overs": bracket + overs}
    return _CREX.format(**{name: escape(text) for name, text in fields.items()}).encode()


def sofascore_page(
    score: str = "1 : 0", status: str = "1st half", *, home: str = "Fennick FC", away: str = "Port Élan United"
) -> bytes:
    fields = {"score": score, "status": status, "home": home, "away": away}
    return _SOFASCORE.format(**{name: escape(text) for name, text in fields.items()}).encode()


def sofascore_site_page(left: int, right: int, status: str) -> bytes:
    """Return a sofascore page with the site's marks in place of the simulator's names."""
    fields = {
        "home": "Fennick FC",
        "away": "Port Élan United",
        "status": status,
        "left": str(left),
        "right": str(right),
    }
    return _SOFASCORE_SITE.format(**{name: escape(text) for name, text in fields.items()}).encode()
