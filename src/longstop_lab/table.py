"""The terminal output of the demo."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from longstop.api.serialisers import data_path
from longstop.model.match import IN_PLAY
from longstop_lab.client import site_of, sport_at
from longstop_lab.deployment import Deployment
from longstop_lab.report import DemoReport, SportReport

#: A poll every 2.5 s gives ages up to the first limit; ages above the second limit need attention.
FRESH_SECONDS = 5.0
STALE_SECONDS = 60.0
MAX_ROWS = 30

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


def table(entries: Sequence[dict[str, Any]], payloads: Mapping[str, Any]) -> Panel:
    """Return the live table: match, score, last event, status and age."""
    rows = Table(expand=True, box=SIMPLE_HEAD, pad_edge=False)
    # A narrow terminal shortens match and last event. Number, current score, status and age stay complete.
    rows.add_column("id", justify="right", no_wrap=True, min_width=2)
    rows.add_column("match", no_wrap=True, overflow="ellipsis", ratio=5)
    rows.add_column(
        "score", no_wrap=True, min_width=max([len("score"), *map(_current_width, payloads.values())]), ratio=4
    )
    rows.add_column("last", no_wrap=True, overflow="ellipsis", ratio=3)
    rows.add_column("status", no_wrap=True, min_width=9)
    rows.add_column("age", justify="right", no_wrap=True, min_width=6)
    shown = sorted(entries, key=lambda entry: (_STATUS_ORDER.get(entry["status"], 9), entry["matchId"]))
    for entry in shown[:MAX_ROWS]:
        rows.add_row(*_cells(entry, payloads.get(entry["match_id"], {})))
    return Panel(rows, title=_title(entries), subtitle="Ctrl-C stops and checks every event", border_style="dim")


def summary(report: DemoReport) -> RenderableType:
    """Return the results of the demo."""
    notes = [
        *([_by_site(report.sites)] if len(report.sites) > 1 else []),
        *([_gaps(report.declared)] if report.declared else []),
        f"API p95 {'not measured' if report.api_p95_ms is None else f'{report.api_p95_ms:g} ms'}",
        f"memory of supervisor, scraper, API and browsers: {report.rss_mb:g} MB (shared pages count for each process)",
    ]
    return Group(_result(report), _by_sport(report.sports), *(Text(line) for line in (*notes, *report.details)))


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


def _cells(entry: dict[str, Any], payload: Mapping[str, Any]) -> list[Text]:
    status = entry["status"]
    return [
        Text(str(entry["matchId"]), style="dim"),
        Text(_printable(entry["title"])),
        Text("  ".join(_scores(payload)), overflow="ellipsis"),
        Text(_printable(_last_event(payload))),
        Text(
            status if entry["sync"] == "in_sync" else f"{status}, {entry['sync']}", style=_STATUS_STYLES.get(status, "")
        ),
        _age(entry["data_age_seconds"]),
    ]


def _current_width(payload: Mapping[str, Any]) -> int:
    return max(map(len, _scores(payload)[:1]), default=0)


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
    style = "green" if seconds <= FRESH_SECONDS else "yellow" if seconds <= STALE_SECONDS else "bold red"
    return Text(f"{seconds:.1f} s", style=style)


def _title(entries: Sequence[dict[str, Any]]) -> str:
    in_play = sum(entry["status"] in IN_PLAY for entry in entries)
    sites = {site_of(entry) for entry in entries}
    on_sites = f" on {len(sites)} sites" if len(sites) > 1 else ""
    return f"Longstop · {len(entries)} matches{on_sites}, {in_play} in play"


def _printable(text: str) -> str:
    """Return a site's text without characters that could move the cursor."""
    return "".join(letter for letter in text if letter.isprintable())
