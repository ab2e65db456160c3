"""What a person sees while the demo runs."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from longstop.api.serialisers import data_path
from longstop_lab.report import DemoReport, SportReport
from longstop_lab.sample import sport_at
from longstop_lab.stage import Stage

#: Ages up to here are what a poll every 2.5 s gives; up to the second limit somebody should look.
FRESH_SECONDS = 5.0
STALE_SECONDS = 60.0
MAX_ROWS = 30

_STATUS_STYLES = {"live": "bold green", "break": "yellow", "upcoming": "cyan", "completed": "dim"}


def greeting(stage: Stage) -> RenderableType:
    """Return how to try the API by hand, with lines that can be copied."""
    return Text(
        f"""API        {stage.api_url}   health: {stage.api_url}/health
simulator  {stage.simulator_url}   status: {stage.simulator_url}/_sim/status
data       {stage.data}
try it:
  TOKEN={stage.token}
  curl -s -H "Authorization: Bearer $TOKEN" {stage.api_url}{data_path(sport_at(stage.sites[0]))}/match-info/1
"""
    )


def table(entries: Sequence[dict[str, Any]], payloads: Mapping[str, Any]) -> RenderableType:
    """Return the live table: what is played, the score, and how old it is."""
    rows = Table(expand=True, box=SIMPLE_HEAD, pad_edge=False)
    # Narrow terminals shorten the texts; number, status and age are what the table is for, and stay whole.
    rows.add_column("id", justify="right", no_wrap=True, min_width=2)
    for name, ratio in (("match", 5), ("score", 4), ("last", 3)):
        rows.add_column(name, no_wrap=True, overflow="ellipsis", ratio=ratio)
    rows.add_column("status", no_wrap=True, min_width=9)
    rows.add_column("age", justify="right", no_wrap=True, min_width=6)
    shown = sorted(entries, key=lambda entry: (_RANK.get(entry["status"], 9), entry["matchId"]))
    for entry in shown[:MAX_ROWS]:
        rows.add_row(*_cells(entry, payloads.get(entry["match_id"], {})))
    return Panel(rows, title=_title(entries), subtitle="Ctrl-C stops and accounts for every event", border_style="dim")


_RANK = {"live": 0, "break": 1, "upcoming": 2, "completed": 3}


def summary(report: DemoReport) -> RenderableType:
    """Return what the demo found at its end, in words."""
    measured = [
        *([f"matches by site: {_by_site(report.sites)}"] if len(report.sites) > 1 else []),
        f"API p95 {_said(report.api_p95_ms)} ms",
        f"supervisor, scraper, API and browsers {report.rss_mb:g} MB; what they share is counted for each of them",
    ]
    return Group(_verdict(report), _by_sport(report.sports), *(Text(line) for line in (*measured, *report.details)))


def _verdict(report: DemoReport) -> Text:
    gaps = f"; {report.declared} no longer shown when we came, and declared as gaps" if report.declared else ""
    if report.is_good:
        return Text(f"nothing lost, nothing doubled, nothing invented{gaps}", style="bold green")
    found = f"{report.lost} lost, {report.duplicated} doubled, {report.ghost} invented"
    wrong = f", {report.wrong} totals wrong" if report.wrong else ""
    return Text(f"{found}{wrong}{gaps}", style="bold red")


def _by_site(sites: Mapping[str, int]) -> str:
    return ", ".join(f"{site} {count}" for site, count in sites.items())


def _by_sport(sports: Sequence[SportReport]) -> Table:
    rows = Table(box=None, padding=(0, 2, 0, 0))
    for name in ("sport", "matches", "events", "lost", "doubled", "invented", "age p50", "p99"):
        rows.add_column(name, justify="left" if name == "sport" else "right", no_wrap=True)
    for each in sports:
        stored = f"{each.events_stored} of {each.events_truth}"
        counts = (each.matches, stored, each.lost, each.duplicated, each.ghost)
        ages = (each.freshness_p50_s, each.freshness_p99_s)
        rows.add_row(each.sport, *map(str, counts), *("-" if age is None else f"{age:.1f} s" for age in ages))
    return rows


def _said(value: float | None) -> str:
    return "not measured" if value is None else f"{value:g}"


def _cells(entry: dict[str, Any], payload: Mapping[str, Any]) -> list[Text]:
    status = entry["status"]
    return [
        Text(str(entry["matchId"]), style="dim"),
        Text(_plain(entry["title"])),
        Text(_score(payload)),
        Text(_plain(_last(payload))),
        Text(
            status if entry["sync"] == "in_sync" else f"{status}, {entry['sync']}", style=_STATUS_STYLES.get(status, "")
        ),
        _age(entry["data_age_seconds"]),
    ]


def _score(payload: Mapping[str, Any]) -> str:
    if "incidents" in payload:
        return _goals(payload.get("score"))
    return "  ".join(
        f"{innings['runs']}/{innings['wickets']} ({innings['overs']['over']}.{innings['overs']['ball']})"
        for innings in payload.get("innings", ())[-2:]
    )


def _goals(score: Mapping[str, Any] | None) -> str:
    if score is None:
        return ""
    kicks = score.get("penalties")
    return f"{score['home']}-{score['away']}" + (f" ({kicks['home']}-{kicks['away']})" if kicks else "")


def _last(payload: Mapping[str, Any]) -> str:
    """Return the last thing that happened: of a football match with its minute, else as the site words it."""
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
    live = sum(entry["status"] == "live" for entry in entries)
    return f"Longstop · {len(entries)} matches, {live} in play"


def _plain(text: str) -> str:
    """Return a site's text without characters that could move the cursor."""
    return "".join(letter for letter in text if letter.isprintable())
