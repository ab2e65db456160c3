from collections.abc import Callable
from functools import cache
from itertools import accumulate
from random import Random

from longstop_lab.simulator.cricket.board import Board
from longstop_lab.simulator.cricket.game import Game
from longstop_lab.simulator.cricket.limited_overs import play_t20
from longstop_lab.simulator.cricket.mistakes import with_mistakes
from longstop_lab.simulator.cricket.multi_day import play_test
from longstop_lab.simulator.cricket.script import (
    LIVE_PACE,
    Announce,
    EndInnings,
    PublishBall,
    Script,
    WithdrawBall,
    narrate,
)


@cache
def scripts() -> list[tuple[Game, Script]]:
    """Sites that get one ball in four wrong."""
    made = []
    for index in range(25):
        game = play_t20(2, index)
        plain = narrate(game, LIVE_PACE, Random(index))
        made.append((game, with_mistakes(plain, Random(index), share=0.25)))
    return made


def versions(script: Script) -> dict[int, list[PublishBall]]:
    shown: dict[int, list[PublishBall]] = {}
    for step in script:
        if isinstance(step, PublishBall):
            shown.setdefault(step.id, []).append(step)
    return shown


def count(is_such: Callable[[list[PublishBall]], bool]) -> int:
    return sum(is_such(steps) for _, script in scripts() for steps in versions(script).values())


def test_every_mistake_is_corrected() -> None:
    for game, script in scripts():
        board = Board(game)
        for step in script:
            board.apply(step)
        for number, innings in enumerate(game.innings, start=1):
            assert [posted.ball for posted in board.balls(number)] == list(innings.balls)


def test_no_board_ever_shows_eleven_wickets() -> None:
    most = 0
    for game, script in scripts():
        board = Board(game)
        for step in script:
            board.apply(step)
            most = max(most, *(board.score(number).wickets for number in range(1, len(game.innings) + 1)))

    assert most == 10


def test_nothing_is_missed_or_invented_while_players_are_off_the_field() -> None:
    """A break in the middle of an over: what is published in it was bowled before."""
    game = next(game for index in range(50) if _has_break_in_over(game := play_test(2, index)))
    plain = narrate(game, LIVE_PACE, Random(1))
    breaks = [(step, plain[nth + 1].at) for nth, step in enumerate(plain) if isinstance(step, Announce)]
    bowled_at: dict[int, float] = {}
    for step in plain:
        if isinstance(step, PublishBall):
            bowled_at.setdefault(step.id, step.at)

    for seed in range(10):
        script = with_mistakes(plain, Random(seed), share=0.5)
        firsts = {id_: steps[0].at for id_, steps in versions(script).items()}
        for pause, until in breaks:
            new = {id_ for id_, at in firsts.items() if pause.at < at < until}
            assert all(bowled_at.get(id_, pause.at) < pause.at for id_ in new)
            assert not any(id_ not in bowled_at for id_ in new)


def _has_break_in_over(game: Game) -> bool:
    for innings in game.innings:
        ends = set(accumulate(len(over.balls) for over in innings.overs))
        if any(pause.after not in ends for pause in innings.pauses):
            return True
    return False


def test_values_go_wrong_and_come_back() -> None:
    assert count(lambda steps: steps[0].ball.runs != steps[-1].ball.runs)
    assert count(lambda steps: len(steps) == 3 and steps[0].ball == steps[2].ball != steps[1].ball)


def test_wickets_come_late_fall_away_and_change_their_kind() -> None:
    assert count(lambda steps: bool(steps[-1].ball.outs) and steps[-1].at - steps[0].at > 60)
    assert count(lambda steps: not steps[-1].ball.outs and any(step.ball.outs for step in steps))
    assert count(lambda steps: len({step.ball.outs[0].kind for step in steps if step.ball.outs}) > 1)


def test_ghosts_are_withdrawn_and_missed_balls_inserted() -> None:
    ghosts = [step for _, script in scripts() for step in script if isinstance(step, WithdrawBall)]
    late = 0
    for _, script in scripts():
        firsts = [steps[0].id for steps in versions(script).values()]
        late += sum(id_ < max(firsts[:nth], default=0) for nth, id_ in enumerate(firsts))

    assert ghosts
    assert late


def test_some_corrections_come_after_the_innings() -> None:
    after = 0
    for _, script in scripts():
        ends = {step.innings: step.at for step in script if isinstance(step, EndInnings)}
        after += sum(
            isinstance(step, PublishBall) and step.at > ends.get(step.innings, script[-1].at) for step in script
        )

    assert after


def test_a_label_never_lies_about_the_balls_before_it() -> None:
    """Whatever is wrong for a while, no ball is shown under a label that it does not keep."""
    for _, script in scripts():
        for steps in versions(script).values():
            assert len({step.label for step in steps}) == 1
