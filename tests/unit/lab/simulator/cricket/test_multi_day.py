from functools import cache

from longstop.sports.cricket.model import ResultKind
from longstop_lab.simulator.cricket.board import Board
from longstop_lab.simulator.cricket.game import Game, Innings
from longstop_lab.simulator.cricket.multi_day import DAYS, FOLLOW_ON_LEAD, OVERS_A_DAY, play_test
from longstop_lab.simulator.cricket.script import Announce, EndInnings, PublishBall
from longstop_lab.simulator.cricket.world import script_for

SEED = 11
MATCHES = 120


@cache
def games() -> list[Game]:
    return [play_test(SEED, index) for index in range(MATCHES)]


def total(game: Game, side: int, until: int | None = None) -> int:
    return sum(innings.runs for innings in game.innings[:until] if innings.batting == game.sides[side])


def followed_on(game: Game) -> bool:
    return len(game.innings) > 2 and game.innings[1].batting == game.innings[2].batting


def is_all_out(innings: Innings) -> bool:
    """Return whether no batter was left; a batter who retired hurt and cannot come back is missing from the ten."""
    gone = sum(len(ball.outs) for ball in innings.balls)
    return bool(innings.overs[-1].balls[-1].outs) and gone >= 9


def test_the_same_seed_gives_the_same_match_and_script() -> None:
    game, again = play_test(3, 5), play_test(3, 5)

    assert game == again
    assert script_for(game, 3) == script_for(again, 3)
    assert play_test(4, 5) != game


def test_innings_obey_the_laws() -> None:
    for game in games():
        assert 1 <= len(game.innings) <= 4
        assert sum(len(innings.overs) for innings in game.innings) <= DAYS * OVERS_A_DAY
        for innings in game.innings:
            assert innings.wickets <= 10
            assert all(over.legal_balls in (5, 6, 7) for over in innings.overs[:-1])
            assert not (innings.is_declared and innings.wickets == 10)


def test_the_sides_take_turns_unless_the_second_follows_on() -> None:
    orders = {tuple(game.sides.index(innings.batting) for innings in game.innings) for game in games()}

    assert {(0, 1, 0, 1), (0, 1, 1, 0), (0, 1, 1)} <= orders
    assert all((0, 1, 0, 1)[: len(order)] == order or (0, 1, 1, 0)[: len(order)] == order for order in orders)


def test_no_team_follows_on_with_less_than_the_margin() -> None:
    for game in games():
        if followed_on(game):
            assert game.innings[0].runs - game.innings[1].runs >= FOLLOW_ON_LEAD


def test_only_the_fourth_innings_has_a_target_and_it_is_one_more_than_the_lead() -> None:
    for game in games():
        assert all(innings.target is None for innings in game.innings[:3])
        if len(game.innings) == 4:
            last = game.innings[3]
            side = game.sides.index(last.batting)
            assert last.target is not None
            assert last.target.runs == total(game, 1 - side) - total(game, side, until=3) + 1
            assert last.target.overs.over >= len(last.overs)


def test_every_result_follows_from_the_totals() -> None:
    for game in games():
        last = game.innings[-1]
        side = game.sides.index(last.batting)
        lead = total(game, side) - total(game, 1 - side)
        batting, bowling = game.sides[side].name, game.sides[1 - side].name
        text = game.result.text
        if game.result.outcome is ResultKind.DRAW:
            assert text == "Match drawn"
            assert len(game.innings) < 4 or lead < 0 or not is_all_out(last)
        elif game.result.outcome is ResultKind.TIE:
            assert (text, lead, len(game.innings)) == ("Match tied", 0, 4)
        elif len(game.innings) == 3:
            assert text.startswith(f"{bowling} won by an innings and {-lead} run")
        elif lead > 0:
            assert text.startswith(f"{batting} won by {10 - last.wickets} wicket")
        else:
            assert text.startswith(f"{bowling} won by {-lead} run")
            assert is_all_out(last)


def test_all_endings_occur() -> None:
    texts = [game.result.text for game in games()]

    assert any("an innings and" in text for text in texts)
    assert any("wicket" in text for text in texts)
    assert any("run" in text and "innings" not in text for text in texts)
    assert "Match drawn" in texts
    assert any(innings.is_declared for game in games() for innings in game.innings)


def test_an_innings_ends_all_out_declared_won_or_with_the_last_day() -> None:
    for game in games():
        for innings in game.innings[:-1]:
            assert innings.is_declared or is_all_out(innings)


def test_breaks_are_published_and_play_continues_after_them() -> None:
    texts: set[str] = set()
    for game in games():
        script = script_for(game, SEED)
        texts |= {step.text for step in script if isinstance(step, Announce)}
        nights = [step.at for step in script if isinstance(step, Announce) and step.text == "Stumps"]
        last_ball = max(step.at for step in script if isinstance(step, PublishBall))
        assert len(nights) < DAYS
        assert all(night < last_ball for night in nights)

    assert texts == {"Drinks", "Lunch", "Tea", "Stumps", "Rain", "Bad light"}


def test_players_leave_the_field_in_the_middle_of_an_over_too() -> None:
    broken = 0
    for game in games():
        for innings in game.innings:
            ends, bowled = set(), 0
            for over in innings.overs:
                bowled += len(over.balls)
                ends.add(bowled)
            broken += sum(pause.after not in ends for pause in innings.pauses)

    assert broken


def test_an_innings_that_ends_with_the_day_is_followed_by_a_night() -> None:
    waits = [innings.rest_seconds for game in games() for innings in game.innings[:-1]]

    assert max(waits) > 50_000
    assert min(waits) == 0


def test_a_substitute_for_a_concussed_batter_appears_on_the_board() -> None:
    for game in games():
        benches = {player.key for side in game.sides for player in side.substitutes}
        board = Board(game)
        seen = {ball.batter for innings in game.innings for ball in innings.balls} & benches
        if seen:
            assert all(board.names[key] for key in seen)
            break
    else:
        raise AssertionError("no substitute ever bats")


def test_what_is_published_in_the_end_is_the_truth() -> None:
    for game in games()[:40]:
        board = Board(game)
        script = script_for(game, SEED)
        for step in script:
            board.apply(step)
        assert [step.innings for step in script if isinstance(step, EndInnings)] == list(range(1, len(game.innings)))
        for number, innings in enumerate(game.innings, start=1):
            assert [posted.ball for posted in board.balls(number)] == list(innings.balls)
            assert (board.score(number).runs, board.score(number).wickets) == (innings.runs, innings.wickets)
        assert board.headline == game.result.text
