import itertools
from functools import cache

from longstop.sports.cricket.model import Dismissal, ResultKind
from longstop_lab.simulator.cricket.board import Board
from longstop_lab.simulator.cricket.game import Ball, Game, Innings
from longstop_lab.simulator.cricket.limited_overs import play_t20
from longstop_lab.simulator.cricket.script import EndMatch, PublishBall, Step, WithdrawBall
from longstop_lab.simulator.cricket.world import script_for

SEED = 11
MATCHES = 200


@cache
def games() -> list[Game]:
    return [play_t20(SEED, index) for index in range(MATCHES)]


def balls() -> list[Ball]:
    return [ball for game in games() for innings in game.innings for ball in innings.balls]


def test_the_same_seed_gives_the_same_match_and_script() -> None:
    game, again = play_t20(3, 5), play_t20(3, 5)

    assert game == again
    assert script_for(game, 3) == script_for(again, 3)
    assert play_t20(4, 5) != game


def test_innings_obey_the_laws() -> None:
    for game in games():
        for innings in game.innings:
            most_overs, most_wickets = (1, 2) if innings.is_super_over else (20, 10)
            assert 1 <= len(innings.overs) <= most_overs
            assert innings.wickets <= most_wickets
            assert all(over.legal_balls in (5, 6, 7) for over in innings.overs[:-1])
            assert innings.overs[-1].legal_balls <= 7
            assert [over.number for over in innings.overs] == list(range(len(innings.overs)))


def test_an_innings_ends_only_when_it_must() -> None:
    for game in games():
        for innings in game.innings:
            last = innings.overs[-1]
            is_bowled_out = len(innings.overs) == (1 if innings.is_super_over else 20) and last.legal_balls == 6
            is_chased = innings.target is not None and innings.runs >= innings.target.runs
            assert is_bowled_out or is_chased or last.balls[-1].outs


def test_no_bowler_bowls_two_overs_running_or_more_than_four() -> None:
    for game in games():
        for innings in game.innings:
            bowlers = [over.balls[0].bowler for over in innings.overs]
            assert all(bowlers.count(bowler) <= 4 for bowler in bowlers)
            assert all(one != two for one, two in itertools.pairwise(bowlers))


def test_no_batter_bats_after_being_out() -> None:
    for game in games():
        for innings in game.innings:
            gone: set[str] = set()
            for ball in innings.balls:
                assert not gone & {ball.batter, ball.non_striker}
                gone |= {out.player for out in ball.outs if out.counts}


def test_an_umpire_miscounts_now_and_then_but_never_the_last_over() -> None:
    overs = [over for game in games() for innings in game.innings for over in innings.overs[:-1]]
    wrong = [over.legal_balls for over in overs if over.legal_balls != 6]

    assert set(wrong) == {5, 7}
    assert len(wrong) < len(overs) / 100
    assert all(
        innings.overs[19].legal_balls <= 6
        for game in games()
        for innings in game.innings[:2]
        if len(innings.overs) == 20
    )


def test_who_retired_hurt_may_come_back() -> None:
    assert any(_comes_back(innings) for game in games() for innings in game.innings)


def _comes_back(innings: Innings) -> bool:
    hurt: set[str] = set()
    for ball in innings.balls:
        if hurt & {ball.batter, ball.non_striker}:
            return True
        hurt |= {out.player for out in ball.outs if not out.counts}
    return False


def test_a_substitute_plays_in_no_innings_with_the_player_he_came_for() -> None:
    """An impact player or a concussion substitute makes a twelfth; there are never twelve in one innings."""
    has_substitutes = 0
    for game in games():
        for innings in game.innings:
            eleven = {player.key for player in innings.bowling.players}
            bowlers = {ball.bowler for ball in innings.balls}
            has_substitutes += not bowlers <= eleven
            assert bowlers <= eleven | {player.key for player in innings.bowling.substitutes}
            assert len({ball.batter for ball in innings.balls}) <= 12

    assert has_substitutes


def test_every_dismissal_and_every_extra_occurs() -> None:
    kinds = {out.kind for ball in balls() for out in ball.outs}
    runs = [ball.runs for ball in balls()]

    assert kinds == set(Dismissal)
    assert any(given.wides > 1 for given in runs)
    assert any(given.noballs and given.batter for given in runs)
    assert any(given.noballs > 1 for given in runs)
    assert any(given.byes for given in runs)
    assert any(given.legbyes for given in runs)
    assert any(given.penalty for given in runs)
    assert {ball.boundary for ball in balls() if ball.runs.batter == 4} == {4, None}
    assert not any(given.wides and given.batter for given in runs)


def test_retired_hurt_is_no_wicket_and_retired_out_is_one() -> None:
    retired = [out.counts for ball in balls() for out in ball.outs if out.kind is Dismissal.RETIRED]

    assert set(retired) == {True, False}


def test_results_say_what_the_innings_say() -> None:
    outcomes = {game.result.outcome for game in games()}

    assert outcomes == {ResultKind.WON, ResultKind.TIE}
    for game in games():
        first, second = game.innings[:2]
        if game.result.outcome is ResultKind.TIE:
            assert first.runs == second.runs
            assert len(game.innings) >= 4
            assert "won the Super Over)" in game.result.text
        elif second.runs > first.runs:
            left = 10 - second.wickets
            assert game.result.text == f"{second.batting.name} won by {left} wicket{'' if left == 1 else 's'}"
        else:
            by = first.runs - second.runs
            assert game.result.text == f"{first.batting.name} won by {by} run{'' if by == 1 else 's'}"


def test_what_is_published_in_the_end_is_the_truth() -> None:
    for game in games():
        board = Board(game)
        for step in script_for(game, SEED):
            board.apply(step)
        for number, innings in enumerate(game.innings, start=1):
            assert [posted.ball for posted in board.balls(number)] == list(innings.balls)
            assert (board.score(number).runs, board.score(number).wickets) == (innings.runs, innings.wickets)
        assert board.headline == game.result.text


def test_scripts_run_forward_and_end_with_the_result() -> None:
    for game in games():
        script = script_for(game, SEED)
        moments = [step.at for step in script]

        assert moments == sorted(moments)
        assert [type(step) for step in script].count(EndMatch) == 1
        assert isinstance(script[-1], EndMatch)


def test_one_to_three_balls_in_a_hundred_are_published_wrong_first() -> None:
    corrected = sum(_is_corrected(game) for game in games())

    assert 0.008 < corrected / len(balls()) < 0.03


def _is_corrected(game: Game) -> int:
    """Count the balls with a version that is not the truth, a ghost, or a place that was empty for a while."""
    script = script_for(game, SEED)
    final = {step.id: step.ball for step in script if isinstance(step, PublishBall)}
    wrong = {step.id for step in script if isinstance(step, PublishBall) and _differs(step, final)}
    ghosts = {step.id for step in script if isinstance(step, WithdrawBall)}
    return len(wrong | ghosts) + _late_insertions(script)


def _differs(step: PublishBall, final: dict[int, Ball]) -> bool:
    return (step.ball.runs, step.ball.boundary) != (final[step.id].runs, final[step.id].boundary)


def _late_insertions(script: tuple[Step, ...]) -> int:
    seen: list[int] = []
    late = 0
    for step in script:
        if isinstance(step, PublishBall) and step.id not in seen:
            late += bool(seen) and step.id < max(seen)
            seen.append(step.id)
    return late
