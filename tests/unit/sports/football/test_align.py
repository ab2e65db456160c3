"""What becomes of a list of incidents: kept, changed, taken back, and in question when the board says otherwise."""

import pytest

from longstop.errors import LayoutSuspected
from tests.football_site import LookingAtFootball, card, decision, event, goal, substitution


@pytest.mark.req("JOB-6")
async def test_a_goal_that_the_video_referee_takes_back_is_a_void_after_two_polls(polling: LookingAtFootball) -> None:
    polling.pages.event = event("1st half", 1, 0)
    polling.pages.incidents = [goal(100, 1, 0)]
    await polling.poll()
    polling.pages.event = event("1st half", 0, 0)
    polling.pages.incidents = [decision(7)]

    await polling.poll()
    assert polling.versions() == ["goal:home:1 1 insert", "var:home:1 1 insert"]
    assert polling.payload()["score"]["home"] == 1
    await polling.poll()

    assert polling.versions()[-1] == "goal:home:1 2 void"
    assert polling.payload()["score"]["home"] == 0
    assert [each["kind"] for each in polling.payload()["incidents"]] == ["var"]


async def test_a_goal_that_comes_back_is_the_old_one_and_no_number_is_used_twice(polling: LookingAtFootball) -> None:
    shown = [goal(100, 1, 0)]
    for score in (1, 0, 1):
        polling.pages.event, polling.pages.incidents = event("1st half", score, 0), shown[:score]
        await polling.poll(times=2)
    polling.pages.event, polling.pages.incidents = event("1st half", 2, 0), [*shown, goal(105, 2, 0, time=30)]
    await polling.poll()

    assert polling.versions() == [
        "goal:home:1 1 insert",
        "goal:home:1 2 void",
        "goal:home:1 3 update",
        "goal:home:2 1 insert",
    ]


async def test_the_number_of_a_goal_that_was_taken_back_is_not_given_to_another(polling: LookingAtFootball) -> None:
    for score, incidents in ((1, [goal(100, 1, 0)]), (0, [card(101)]), (1, [card(101), goal(105, 1, 0, time=30)])):
        polling.pages.event, polling.pages.incidents = event("1st half", score, 0), incidents
        await polling.poll(times=2)

    assert [each for each in polling.versions() if each.startswith("goal")] == [
        "goal:home:1 1 insert",
        "goal:home:1 2 void",
        "goal:home:2 1 insert",
    ]


async def test_there_and_back_are_three_versions(polling: LookingAtFootball) -> None:
    polling.pages.event = event("1st half", 1, 0)
    for scorer in (11, 12, 11):
        polling.pages.incidents = [goal(100, 1, 0, scorer=scorer)]
        await polling.poll()

    assert polling.versions() == ["goal:home:1 1 insert", "goal:home:1 2 update", "goal:home:1 3 update"]


async def test_one_old_copy_of_the_list_takes_nothing_back(polling: LookingAtFootball) -> None:
    polling.pages.incidents = [card(101), substitution(102)]
    await polling.poll()
    polling.pages.incidents = [card(101)]
    await polling.poll()
    polling.pages.incidents = [card(101), substitution(102)]

    await polling.poll(times=2)

    assert polling.versions() == ["card:home:1 1 insert", "substitution:home:1 1 insert"]


async def test_a_list_that_lags_behind_the_board_loses_no_goal(polling: LookingAtFootball) -> None:
    polling.pages.event = event("1st half", 1, 0)
    polling.pages.incidents = [goal(100, 1, 0)]
    await polling.poll()
    polling.pages.incidents = []

    await polling.poll(times=5)

    assert polling.versions() == ["goal:home:1 1 insert"]


async def test_a_milder_card_is_believed_at_the_second_poll_and_a_harder_one_at_once(
    polling: LookingAtFootball,
) -> None:
    polling.pages.incidents = [card(101)]
    await polling.poll()
    polling.pages.incidents = [card(101, kind="red")]
    await polling.poll()
    assert polling.versions()[-1] == "card:home:1 2 update"
    polling.pages.incidents = [card(101)]

    await polling.poll()
    assert len(polling.versions()) == 2
    await polling.poll()

    assert polling.versions()[-1] == "card:home:1 3 update"


async def test_what_goes_over_to_the_other_side_gets_another_key(polling: LookingAtFootball) -> None:
    polling.pages.incidents = [card(101)]
    await polling.poll()
    polling.pages.incidents = [card(101, is_home=False)]

    await polling.poll(times=2)

    assert polling.versions() == ["card:home:1 1 insert", "card:home:1 2 void", "card:away:1 1 insert"]
    assert (await polling.poll()).receipt is None


async def test_events_under_other_ids_are_the_same_events(polling: LookingAtFootball) -> None:
    first, others = range(100, 106), range(900, 906)
    polling.pages.incidents = [card(key, who=12 + nth) for nth, key in enumerate(first)]
    await polling.poll()
    polling.pages.incidents = [card(key, who=12 + nth) for nth, key in enumerate(others)]

    await polling.poll()

    assert len(polling.state.incidents) == 6
    assert {each.source_event_id for each in polling.state.incidents} == {str(key) for key in others}


async def test_a_list_that_is_suddenly_empty_is_not_believed(polling: LookingAtFootball) -> None:
    polling.pages.incidents = [card(100 + nth, who=12 + nth) for nth in range(6)]
    await polling.poll()
    polling.pages.incidents = []

    with pytest.raises(LayoutSuspected):
        await polling.poll()

    assert len(polling.state.incidents) == 6


async def test_a_goal_that_falls_between_two_requests_opens_no_question(polling: LookingAtFootball) -> None:
    await polling.poll()
    polling.pages.event = event("1st half", 1, 0)
    asked = polling.pages.asked
    asked.clear()

    class Late(list[dict[str, object]]):
        """A list in which the goal stands only when it is asked for again."""

        def __getitem__(self, index: object) -> list[dict[str, object]]:  # type: ignore[override]
            return [goal(100, 1, 0)] if asked.count("incidents") > 1 else []

    polling.pages.incidents = Late()

    await polling.poll()

    assert polling.versions() == ["goal:home:1 1 insert"]
    assert not polling.state.suspects


async def test_goals_without_a_list_open_a_question_at_the_second_poll(polling: LookingAtFootball) -> None:
    polling.pages.event, polling.pages.incidents = event("Started", 2, 0), None

    assert not (await polling.poll()).state.findings
    [finding] = (await polling.poll()).state.findings

    assert (finding.place, finding.detail) == ("home", "0 goals are listed, the board shows 2")


async def test_a_question_is_closed_when_board_and_list_agree(polling: LookingAtFootball) -> None:
    polling.pages.event, polling.pages.incidents = event("Started", 1, 0), None
    await polling.poll(times=2)
    polling.pages.incidents = [goal(100, 1, 0)]

    await polling.poll()

    assert polling.state.findings == ()
