"""A site that answers with other matches: nothing of them is stored, and every match is back soon after."""

from typing import Any

import msgspec
import pytest

from longstop.errors import SourceFailed
from longstop.fetching.base import FetchRequest
from longstop.matches.trust import Trust
from longstop.model.polling_status import SyncState, Unreliability
from longstop.sports.cricket.model import Delivery
from longstop.telemetry.events.matches import FindingOpened
from longstop.testing import ScriptedReply
from tests.crex_site import Site, SiteMatch
from tests.unit.watching.running import CountingFetcher, Running, match, run, script


class ConfusedSite(Site):
    """Answers about one match with the pages of another while it is confused; the event list names its match."""

    is_confused = False

    def __call__(self, request: FetchRequest) -> ScriptedReply:
        if self.is_confused and "key=M1" in request.url:
            request = type(request)(source=request.source, url=request.url.replace("key=M1", "key=M2"))
        return super().__call__(request)


def confused(*matches: SiteMatch) -> tuple[Running, ConfusedSite]:
    running = Running(*matches)
    site = running.site = ConfusedSite(*matches)
    running.fetcher = CountingFetcher(site, delay_seconds=0.01)
    return running, site


def two_matches() -> tuple[SiteMatch, SiteMatch]:
    ours, theirs = match("M1", "1", "4", "0"), match("M2", "6", "6", "6")
    theirs.sides = ("T8", "T9")
    return ours, theirs


@pytest.mark.req("JOB-6")
def test_nothing_of_another_match_is_stored_at_first_contact() -> None:
    running, site = confused(*two_matches())
    site.is_confused = True

    run(running.run(15))

    assert 1 not in running.store.snapshots
    assert not running.store.history.get(1)


@pytest.mark.req("JOB-6")
def test_a_match_that_was_another_one_at_first_contact_is_in_sync_within_a_minute() -> None:
    running, site = confused(*two_matches())
    site.is_confused = True

    script(running, (15.0, lambda: setattr(site, "is_confused", False)), until=45.0)

    row = running.row("M1")
    assert row.record.sync is SyncState.IN_SYNC
    assert row.record.unreliability == ()
    assert len([event for event in running.store.history[1] if event.event.key.kind == "delivery"]) == 3


def test_a_match_that_is_answered_as_another_one_later_keeps_what_it_has_and_is_not_paused() -> None:
    running, site = confused(*two_matches())

    script(
        running,
        (5.0, lambda: setattr(site, "is_confused", True)),
        (5.5, lambda: site.matches["M1"].bowl("2")),
        until=35.0,
    )

    record = running.row("M1").record
    assert Unreliability.CONTRADICTED in record.unreliability
    assert record.phase == "active"
    assert not running.sink.named("circuit_opened")
    assert len(running.sink.named("match.doubted")) == 1


def play_something_else(site_match: SiteMatch) -> None:
    site_match.sides = ("T1", "T2")
    site_match.balls.clear()
    site_match.ends.clear()
    site_match.bowl("4", "1wd", "0", "2", "1")


@pytest.mark.req("JOB-6")
def test_a_match_that_was_stored_wrongly_is_rebuilt_once_the_source_keeps_contradicting_it() -> None:
    mistaken = match("M1", *(["6"] * 24))
    mistaken.sides = ("T8", "T9")
    running = Running(mistaken)

    script(running, (5.0, lambda: play_something_else(mistaken)), until=60.0)

    newest = {event.event.key: event.event for event in running.store.history[1]}
    live = sorted((event for event in newest.values() if event.is_live), key=lambda event: event.position or 0)
    assert [ball.runs.total for event in live if isinstance(ball := event.content, Delivery)] == [4, 1, 0, 2, 1]
    assert running.row("M1").record.sync is SyncState.IN_SYNC
    assert [event.detail for event in opened(running) if event.kind == "rebuilt"] == [
        "the source kept contradicting it: the page has teams ['T1', 'T2'], this match has ['T8', 'T9']"
    ]
    assert running.row("M1").record.unreliability == ()


def opened(running: Running) -> list[FindingOpened]:
    return [event for event in running.sink.events if isinstance(event, FindingOpened)]


def test_a_doubt_ends_with_the_next_good_answer_though_nothing_has_changed() -> None:
    running, site = confused(*two_matches())

    def confuse() -> None:
        site.is_confused = True
        site.matches["M1"].odds += 1
        running.scheduler.find("M1").feed.trust = Trust(is_known=True, doubt="the page is of another match")  # type: ignore[union-attr]

    script(running, (10.0, confuse), (11.0, lambda: setattr(site, "is_confused", False)), until=25.0)

    assert running.row("M1").record.unreliability == ()


@pytest.mark.req("JOB-6")
def test_the_innings_of_a_match_that_was_stored_wrongly_do_not_stay_in_the_payload() -> None:
    wrong, right = match("M1", *["1"] * 12), match("M1", "1", "4", "0")
    wrong.bowl("6", "6", innings=2)
    wrong.sides = ("T8", "T9")
    running = Running(wrong)

    script(running, (5.0, lambda: running.site.matches.update(M1=right)), until=90)

    assert payload(running)["current_innings"] == 1
    assert running.row("M1").record.unreliability == ()


def test_wrong_names_of_the_first_answer_are_replaced_within_a_minute() -> None:
    running = Running(match("M1", "1", "4", "0"))
    right = dict(running.site.names)
    running.site.names = {**right, "T1": "Blues", "T2": "Reds"}

    script(running, (5.0, lambda: setattr(running.site, "names", right)), until=70)

    assert payload(running)["teams"]["team_a"] == {"key": "T1", "name": "Reds"}


def test_a_batting_side_that_is_swapped_for_two_polls_changes_nothing() -> None:
    ours = match("M1", "1", "4", "0", "2")
    running, seen = Running(ours), []

    def swap() -> None:
        ours.sides = ("T2", "T1")
        ours.bowl("1")

    script(running, (30.0, swap), (34.0, lambda: seen.append(payload(running)["innings"][0]["team"])), until=36)

    assert seen == ["T1"]


def test_two_teams_of_one_name_are_not_taken_for_swapped_ones() -> None:
    ours = match("M1", "1", "4")
    ours.item_fields = {"tfkey": "T1", "team": "Reds"}
    running = Running(ours)
    running.site.names |= {"T1": "Reds", "T2": "Reds"}

    run(running.run(10))

    assert running.row("M1").record.sync is SyncState.IN_SYNC


def test_names_that_fail_are_asked_for_every_half_minute() -> None:
    ours = match("M1", "1", "4")
    ours.is_listed = False
    running = Running(match("M2", "1"), ours)

    def fail() -> None:
        running.site.faults["getHomeMapData"] = SourceFailed("500")
        running.site.asked.clear()

    script(running, (20.0, fail), until=140.0)

    assert running.site.count("getHomeMapData") <= 10


def test_teams_that_become_known_on_an_idle_source_are_served_within_a_minute() -> None:
    announced = match("M1")
    announced.sides, announced.headline = ("TBC", "TBD"), "Match yet to begin"
    running = Running(announced)

    script(running, (170.0, lambda: setattr(announced, "sides", ("T1", "T2"))), until=270.0)

    assert {team["key"] for team in payload(running)["teams"].values()} == {"T1", "T2"}


def payload(running: Running) -> dict[str, Any]:
    served: dict[str, Any] = msgspec.json.decode(running.store.snapshots[1].payload)
    return served
