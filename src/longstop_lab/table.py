"""The terminal output of the demo."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import ConsoleDimensions, Group, JustifyMethod, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from longstop.api.match_documents import data_path
from longstop.cli.output import plain
from longstop.model.match import IN_PLAY
from longstop.supervision.health_grade_and_recovery import OLD_SECONDS
from longstop_lab.client import site_of, sport_at
from longstop_lab.deployment import Deployment
from longstop_lab.report import DemoReport, SportReport

#: A poll every 2.5 s gives ages up to this.
FRESH_SECONDS = 5.0
#: The table leaves room for the greeting: its token and its request take several lines of a terminal with 80 columns.
LINES_ABOVE = 11
#: The border, the names of the columns and the line below them.
FRAME_LINES = 4
MIN_ROWS = 3
#: The border and the space between the columns.
FRAME_COLUMNS = 14
AGE_COLUMNS = len("9999 s")
#: Terminals from this width show the innings before the current one too.
WIDE_COLUMNS = 100

_COLUMNS = ("id", "match", "score", "last", "status", "age")

_STATUS_STYLES = {"live": "bold green", "break": "yellow", "upcoming": "cyan", "completed": "dim"}
_STATUS_ORDER = {"live": 0, "break": 1, "upcoming": 2, "completed": 3}


def greeting(deployment: Deployment) -> RenderableType:
    """Return the addresses of the demo and a request to try, in lines that can be copied."""
    return Text(
        f"""API        {deployment.api_url}   health: {deployment.api_url}/health
simulator  {deployment.simulator_url}   status: {deployment.simulator_url}/_sim/status
data       {deployment.data}
try it:
  TOKEN={deployment.token}
  curl -s -H "Authorization: Bearer $TOKEN" {deployment.api_url}{data_path(sport_at(deployment.sites[0]))}/match-info/1
"""
    )


def table(entries: Sequence[dict[str, Any]], payloads: Mapping[str, Any], size: ConsoleDimensions) -> Panel:
    """Return the live table: match, score, last event, status and age; as many matches as the terminal has room for."""
    order = sorted(entries, key=lambda entry: (_STATUS_ORDER.get(entry["status"], 9), entry["matchId"]))
    shown = order[: max(MIN_ROWS, size.height - LINES_ABOVE - FRAME_LINES)]
    innings = 2 if size.width >= WIDE_COLUMNS else 1
    scores = ["  ".join(_scores(payloads.get(entry["match_id"], {}))[:innings]) for entry in shown]
    statuses = [_status(entry) for entry in shown]
    # A narrow terminal shortens match and last event. Number, score, status and age stay complete.
    number, score_width, status_width = (
        max(map(len, texts))
        for texts in (["id", *(str(each["matchId"]) for each in shown)], ["score", *scores], ["status", *statuses])
    )
    room = max(0, size.width - FRAME_COLUMNS - number - score_width - status_width - AGE_COLUMNS)
    last = room // 5
    widths = (number, room - last, score_width, last, status_width, AGE_COLUMNS)
    rows = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    for name, width in zip(_COLUMNS, widths, strict=True):
        justify: JustifyMethod = "right" if name in ("id", "age") else "left"
        rows.add_column(name, width=width, justify=justify, no_wrap=True, overflow="ellipsis")
    for entry, score, status in zip(shown, scores, statuses, strict=True):
        rows.add_row(
            Text(str(entry["matchId"]), style="dim"),
            plain(_shorten_title(entry["title"], room - last)),
            plain(score),
            plain(_last_event(payloads.get(entry["match_id"], {}))),
            Text(status, style=_STATUS_STYLES.get(entry["status"], "")),
            _age(entry["data_age_seconds"]),
        )
    more = f"and {len(order) - len(shown)} more · " if len(order) > len(shown) else ""
    return Panel(rows, title=_title(entries), subtitle=f"{more}Ctrl-C stops and checks every event", border_style="dim")


def summary(report: DemoReport) -> RenderableType:
    """Return the results of the demo."""
    notes = [
        *([_by_site(report.sites)] if len(report.sites) > 1 else []),
        *([_gaps(report.declared)] if report.declared else []),
        f"API p95 {'not measured' if report.api_p95_ms is None else f'{report.api_p95_ms:g} ms'}",
        f"memory of supervisor, scraper, API and browsers: {report.rss_mb:g} MB (shared pages count for each process)",
    ]
    return Group(_result(report), _by_sport(report.sports), *(plain(line) for line in (*notes, *report.details)))


def _result(report: DemoReport) -> Text:
    if report.is_good:
        except_gaps = f" ({report.declared} declared as gaps)" if report.declared else ""
        return Text(f"no event lost, duplicated or invented{except_gaps}", style="bold green")
    found = f"{report.lost} lost, {report.duplicated} duplicated, {report.ghost} invented"
    wrong = f", {report.wrong} wrong totals" if report.wrong else ""
    return Text(f"{found}{wrong}", style="bold red")


def _by_site(sites: Mapping[str, int]) -> str:
    counts = ", ".join(f"{site} {count}" for site, count in sites.items())
    note = " (crex and espncricinfo show the same matches)" if {"crex", "espncricinfo"} <= sites.keys() else ""
    return f"matches by site: {counts}{note}"


def _gaps(count: int) -> str:
    were = "1 event was" if count == 1 else f"{count} events were"
    return f"gaps: {were} no longer on the site when polling started; Longstop declares them instead of losing them"


def _by_sport(sports: Sequence[SportReport]) -> Table:
    rows = Table(box=None, padding=(0, 1, 0, 0))
    for name in ("sport", "matches", "published", "stored", "gaps", "lost", "duplicated", "invented", "age p50", "p99"):
        rows.add_column(name, justify="left" if name == "sport" else "right", no_wrap=True)
    for each in sports:
        counts = (
            *(each.matches, each.events_truth, each.events_stored, each.declared),
            *(each.lost, each.duplicated, each.ghost),
        )
        ages = (each.freshness_p50_s, each.freshness_p99_s)
        rows.add_row(each.sport, *map(str, counts), *("-" if age is None else f"{age:.1f} s" for age in ages))
    return rows


def _status(entry: dict[str, Any]) -> str:
    return entry["status"] if entry["sync"] == "in_sync" else f"{entry['status']}, {entry['sync']}"


def _shorten_title(title: str, width: int) -> str:
    """Return a title that fits: without the format of the match, and with both teams shortened evenly."""
    if len(title) <= width:
        return title
    home, versus, away = title.partition(" - ")[0].partition(" vs ")
    room = max(0, width - len(versus))
    home = _cut(home, max(room // 2, room - len(away)))
    return home + versus + _cut(away, room - len(home))


def _cut(name: str, width: int) -> str:
    return name if len(name) <= width else f"{name[: max(0, width - 1)].rstrip()}…"


def _scores(payload: Mapping[str, Any]) -> list[str]:
    """Return the score of the current innings, then that of the innings before it; of football, the goals."""
    if "incidents" in payload:
        score = payload.get("score")
        return [_goals(score)] if score else []
    return [
        f"{innings['runs']}/{innings['wickets']} ({innings['overs']['over']}.{innings['overs']['ball']})"
        for innings in reversed(payload.get("innings", ())[-2:])
    ]


def _goals(score: Mapping[str, Any]) -> str:
    kicks = score.get("penalties")
    return f"{score['home']}-{score['away']}" + (f" ({kicks['home']}-{kicks['away']})" if kicks else "")


def _last_event(payload: Mapping[str, Any]) -> str:
    """Return the last event: of football with its minute, else in the site's words."""
    if not payload.get("incidents"):
        return str(payload.get("last_event", {}).get("description", ""))
    last = payload["incidents"][-1]
    minute = f" {last['minute']}'" if last.get("minute") is not None else ""
    return f"{last.get('period') or last['kind'].replace('_', ' ')}{minute}"


def _age(seconds: float | None) -> Text:
    if seconds is None:
        return Text("-", style="dim")
    style = "green" if seconds <= FRESH_SECONDS else "yellow" if seconds <= OLD_SECONDS else "bold red"
    return Text(f"{seconds:.1f} s" if seconds < 100 else f"{seconds:.0f} s", style=style)


def _title(entries: Sequence[dict[str, Any]]) -> str:
    in_play = sum(entry["status"] in IN_PLAY for entry in entries)
    sites = {site_of(entry) for entry in entries}
    on_sites = f" on {len(sites)} sites" if len(sites) > 1 else ""
    return f"Longstop · {len(entries)} matches{on_sites}, {in_play} in play"
