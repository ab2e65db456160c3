import itertools

from longstop_lab.simulator.football.model import (
    CardTruth,
    FootballResultTruth,
    GoalTruth,
    LineupTruth,
    SubstitutionTruth,
)
from longstop_lab.simulator.football.script import FootballScript, FootballStep, script_football
from tests.unit.lab.simulator.football.games import SEED, board_after, matches, reversed_entries, scripts


def versions(script: FootballScript) -> dict[str, list[FootballStep]]:
    shown: dict[str, list[FootballStep]] = {}
    for step in script:
        shown.setdefault(step.id, []).append(step)
    return shown


def test_the_same_seed_gives_the_same_script() -> None:
    match = matches()[0]

    assert script_football(match, 3) == script_football(match, 3)


def test_scripts_run_forward() -> None:
    for _, script in scripts():
        assert all(earlier.at <= later.at for earlier, later in itertools.pairwise(script))


def test_what_is_published_in_the_end_is_the_truth() -> None:
    for match, script in scripts():
        assert board_after(match, script).live == match.truth


def test_a_goal_that_is_taken_back_restores_the_score() -> None:
    """The mistakes of a site are left out here: only the referee's are checked."""
    reversals = 0
    for match in matches():
        script = script_football(match, SEED, share=0.0)
        for entry in reversed_entries(match):
            reversals += 1
            before = board_after(match, script, entry.at - 0.01).score
            shown = board_after(match, script, entry.at).score
            after = board_after(match, script, entry.settled_at).score
            assert sum(shown) == sum(before) + 1
            assert after == before

    assert reversals


def test_the_score_shown_is_always_that_of_the_last_goal_shown() -> None:
    for match, script in scripts()[:150]:
        board = board_after(match, ())
        for step in script:
            board.apply(step)
            if isinstance(step.content, GoalTruth) and len(versions(script)[step.id]) == 1:
                assert board.score == (step.content.home, step.content.away)


def test_line_ups_are_first_shown_unconfirmed() -> None:
    for _, script in scripts():
        for id_, steps in versions(script).items():
            if id_.startswith("lineup-"):
                shown = [step.content for step in steps]
                assert [each.is_confirmed for each in shown if isinstance(each, LineupTruth)] == [False, True]


def test_wrong_players_and_minutes_are_corrected() -> None:
    first_and_last = [
        (steps[0].content, steps[-1].content)
        for _, script in scripts()
        for steps in versions(script).values()
        if len(steps) == 2
    ]

    for kind, player in ((GoalTruth, "scorer"), (CardTruth, "player"), (SubstitutionTruth, "player_out")):
        pairs = [(one, two) for one, two in first_and_last if isinstance(one, kind) and isinstance(two, kind)]
        assert any(getattr(one, player) != getattr(two, player) for one, two in pairs)
        assert any(one.minute != two.minute for one, two in pairs)


def test_ghosts_are_withdrawn() -> None:
    ghosts = [
        (match, steps)
        for match, script in scripts()
        for steps in versions(script).values()
        if steps[-1].content is None and steps[0].id not in {entry.id for entry in match.entries}
    ]

    assert ghosts
    assert all(steps[0].content is not None for _, steps in ghosts)


def test_some_mistakes_are_corrected_hours_after_the_end() -> None:
    late = 0
    for _, script in scripts():
        ends = [step.at for step in script if isinstance(step.content, FootballResultTruth)]
        late += sum(step.at > ends[0] + 3000 for step in script if ends)

    assert late
