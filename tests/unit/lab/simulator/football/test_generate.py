from collections import Counter
from random import Random

import pytest

from longstop_lab.simulator.football.generate import is_decided, play_football, shoot_out
from longstop_lab.simulator.football.model import (
    AWAY,
    HOME,
    CardTruth,
    FootballEntry,
    FootballMatch,
    FootballResultTruth,
    GoalTruth,
    KickTruth,
    LineupTruth,
    PeriodTruth,
    StatusTruth,
    SubstitutionTruth,
    VarTruth,
)
from tests.unit.lab.simulator.football.games import final, matches, reversed_entries


def goals(match: FootballMatch) -> list[GoalTruth]:
    return [goal for goal in final(match, GoalTruth) if isinstance(goal, GoalTruth)]


def statuses(match: FootballMatch) -> list[str]:
    return [status.status for status in final(match, StatusTruth) if isinstance(status, StatusTruth)]


def result(match: FootballMatch) -> FootballResultTruth | None:
    found = match.truth.get("result")
    return found if isinstance(found, FootballResultTruth) else None


def in_play(match: FootballMatch) -> list[FootballEntry]:
    return [entry for entry in match.entries if not isinstance(entry.content, StatusTruth | LineupTruth)]


def test_the_same_seed_gives_the_same_match() -> None:
    assert play_football(3, 5) == play_football(3, 5)
    assert play_football(4, 5) != play_football(3, 5)


def test_no_two_matches_share_a_key_a_team_or_a_player() -> None:
    keys = [match.key for match in matches()]
    teams = [team.key for match in matches() for team in (match.home, match.away)]
    players = [
        player.key for match in matches() for team in (match.home, match.away) for player in (*team.eleven, *team.bench)
    ]

    for each in (keys, teams, players):
        assert len(set(each)) == len(each)


def test_an_eleven_is_eleven_with_one_goalkeeper_and_lines_as_the_formation_says() -> None:
    for match in matches():
        for team in (match.home, match.away):
            positions = Counter(player.position for player in team.eleven)
            first, *middle, last = (int(count) for count in team.formation.split("-"))
            assert positions == {"G": 1, "D": first, "M": sum(middle), "F": last}


def test_the_score_after_each_goal_adds_up() -> None:
    for match in matches():
        score = {HOME: 0, AWAY: 0}
        for goal in goals(match):
            score[goal.side] += 1
            assert (goal.home, goal.away) == (score[HOME], score[AWAY])
        ended = result(match)
        if ended:
            assert (ended.home, ended.away) == (score[HOME], score[AWAY])


def test_a_goal_that_was_taken_back_counts_nowhere() -> None:
    taken_back = 0
    for match in matches():
        for entry in reversed_entries(match):
            taken_back += 1
            shown = entry.shown_first
            assert isinstance(shown, GoalTruth)
            before = [goal for goal in goals(match) if (goal.minute, goal.added) < (shown.minute, shown.added)]
            assert shown.home + shown.away >= len(before) + 1
            assert entry.id not in match.truth
            decisions = [each.content for each in match.entries if each.at == entry.settled_at]
            assert [each.decision for each in decisions if isinstance(each, VarTruth)] == ["goal not awarded"]

    assert taken_back > 20


def test_an_own_goal_counts_for_the_other_side() -> None:
    own = [(match, goal) for match in matches() for goal in goals(match) if goal.how == "own goal"]

    assert own
    for match, goal in own:
        other = match.team(AWAY if goal.side == HOME else HOME)
        assert goal.scorer in {player.key for player in (*other.eleven, *other.bench)}
        assert goal.assist is None


def test_who_is_sent_off_or_taken_off_does_nothing_more() -> None:
    for match in matches():
        gone: set[str] = set()
        for entry in in_play(match):
            assert not gone & _actors(entry)
            gone |= _leaving(entry)


def _actors(entry: FootballEntry) -> set[str]:
    match entry.content or entry.shown_first:
        case GoalTruth(scorer=scorer, assist=assist):
            return {key for key in (scorer, assist) if key}
        case CardTruth(player=player) | KickTruth(player=player):
            return {player}
        case SubstitutionTruth(player_in=came, player_out=out):
            return {came, out}
    return set()


def _leaving(entry: FootballEntry) -> set[str]:
    match entry.content:
        case CardTruth(player=player, card="red" | "second yellow"):
            return {player}
        case SubstitutionTruth(player_out=out):
            return {out}
    return set()


def test_only_who_is_on_the_pitch_acts() -> None:
    for match in matches():
        playing = {player.key for team in (match.home, match.away) for player in team.eleven}
        for entry in in_play(match):
            if isinstance(entry.content, SubstitutionTruth):
                assert entry.content.player_in not in playing
                playing.add(entry.content.player_in)
            assert _actors(entry) <= playing
            playing -= _leaving(entry)


def test_a_second_yellow_follows_a_first_and_no_third() -> None:
    seconds = 0
    for match in matches():
        booked: set[str] = set()
        for card in final(match, CardTruth):
            assert isinstance(card, CardTruth)
            assert (card.card == "second yellow") == (card.player in booked and card.card != "red")
            seconds += card.card == "second yellow"
            booked.add(card.player)

    assert seconds


def test_a_card_that_is_upgraded_was_first_a_yellow() -> None:
    upgraded = [
        entry
        for match in matches()
        for entry in match.entries
        if isinstance(entry.content, CardTruth) and entry.shown_first is not None
    ]

    assert upgraded
    for entry in upgraded:
        assert isinstance(entry.content, CardTruth)
        assert isinstance(entry.shown_first, CardTruth)
        assert (entry.shown_first.card, entry.content.card) == ("yellow", "red")


def test_no_side_changes_more_than_five_players_or_falls_below_seven() -> None:
    for match in matches():
        for side in (HOME, AWAY):
            changes = [each for each in final(match, SubstitutionTruth) if getattr(each, "side", "") == side]
            sent_off = [
                each
                for each in final(match, CardTruth)
                if isinstance(each, CardTruth) and each.side == side and each.card != "yellow"
            ]
            assert len(changes) <= 5
            assert len(sent_off) <= 4


def test_extra_time_is_played_only_in_a_cup_and_only_when_it_is_level() -> None:
    extended = [match for match in matches() if "period-AET" in match.truth]

    assert extended
    for match in extended:
        full_time = match.truth["period-FT"]
        assert match.is_cup
        assert isinstance(full_time, PeriodTruth)
        assert full_time.home == full_time.away
    for match in matches():
        ended = result(match)
        if ended and ended.after == "FT" and match.is_cup:
            assert ended.outcome != "draw"


def test_periods_carry_the_score_and_the_minutes_added() -> None:
    added = set()
    for match in matches():
        half_time = match.truth.get("period-HT")
        if isinstance(half_time, PeriodTruth):
            first_half = [goal for goal in goals(match) if goal.minute <= 45]
            assert (half_time.home + half_time.away, half_time.minute) == (len(first_half), 45)
            assert all(goal.added <= half_time.added for goal in first_half)
            added.add(half_time.added)

    assert len(added) > 3


def test_who_wins_the_shoot_out_has_won() -> None:
    ended = [found for match in matches() if (found := result(match)) and found.after == "AP"]

    assert ended
    for each in ended:
        assert each.home == each.away
        assert each.home_penalties is not None
        assert each.away_penalties is not None
        assert each.outcome == (HOME if each.home_penalties > each.away_penalties else AWAY)


def test_line_ups_are_guessed_and_then_confirmed_before_the_kick_off() -> None:
    for match in matches():
        for side in (HOME, AWAY):
            entry = next((each for each in match.entries if each.id == f"lineup-{side}"), None)
            if entry is None:
                continue
            guess, confirmed = entry.shown_first, entry.content
            assert isinstance(guess, LineupTruth)
            assert isinstance(confirmed, LineupTruth)
            assert (guess.is_confirmed, confirmed.is_confirmed) == (False, True)
            assert guess.eleven != confirmed.eleven
            assert len(set(guess.eleven)) == len(set(confirmed.eleven)) == 11
            kick_off = next(each.at for each in match.entries if _is_status(each, "1st half"))
            assert entry.at < entry.settled_at < kick_off


def _is_status(entry: FootballEntry, status: str) -> bool:
    return isinstance(entry.content, StatusTruth) and entry.content.status == status


def test_a_postponed_match_has_no_result_until_it_is_played_later() -> None:
    postponed = [match for match in matches() if "Postponed" in statuses(match)]
    played_later = [match for match in postponed if "1st half" in statuses(match)]

    assert {bool(result(match)) for match in postponed} == {True, False}
    for match in postponed:
        assert bool(result(match)) == (match in played_later)
        if match not in played_later:
            assert statuses(match)[-1] == "Postponed"
            assert not goals(match)
    for match in played_later:
        start = next(each for each in match.entries if _is_status(each, "1st half"))
        assert isinstance(start.content, StatusTruth)
        assert start.at == start.content.shift_seconds >= 86_400


def test_a_match_that_is_interrupted_is_resumed_or_abandoned() -> None:
    stopped = [statuses(match) for match in matches() if "Interrupted" in statuses(match)]
    after = Counter(each[each.index("Interrupted") + 1] for each in stopped)

    assert set(after) == {"1st half", "2nd half", "Abandoned"}
    for match in matches():
        ended = result(match)
        if ended and ended.outcome == "abandoned":
            assert statuses(match)[-1] == "Abandoned"
            assert "period-FT" not in match.truth


def test_a_match_that_is_re_timed_starts_when_it_says() -> None:
    shifts = set()
    for match in matches():
        if "1st half" in statuses(match):
            start = next(each for each in match.entries if _is_status(each, "1st half"))
            assert isinstance(start.content, StatusTruth)
            assert start.at == start.content.shift_seconds
            shifts.add(start.content.shift_seconds)

    assert {0.0, 240.0, 10_800.0} <= shifts


def test_ids_are_not_used_twice_but_by_what_changes() -> None:
    for match in matches():
        ids = Counter(entry.id for entry in match.entries)
        assert {id_ for id_, count in ids.items() if count > 1} <= {"status"}


PLAYERS = {HOME: [f"H{nth}" for nth in range(11)], AWAY: [f"A{nth}" for nth in range(10)]}


def shoot_outs() -> list[list[KickTruth]]:
    return [shoot_out(PLAYERS, Random(seed)) for seed in range(500)]


def test_it_ends_when_it_is_decided_and_not_before() -> None:
    for kicks in shoot_outs():
        first = kicks[0].side
        ended = [
            is_decided(*((kick.home, kick.away) if first == HOME else (kick.away, kick.home)), kick.sequence)
            for kick in kicks
        ]
        assert ended == [False] * (len(kicks) - 1) + [True]
        assert kicks[-1].home != kicks[-1].away


@pytest.mark.parametrize(
    ("first", "second", "kicks", "decided"),
    [
        (3, 0, 6, True),
        (3, 0, 5, False),
        (2, 0, 6, False),
        (3, 1, 8, True),
        (3, 2, 8, False),
        (3, 4, 9, True),
        (4, 3, 9, False),
        (4, 4, 10, False),
        (5, 4, 10, True),
        (5, 4, 11, False),
        (5, 5, 12, False),
        (6, 5, 12, True),
    ],
)
def test_nothing_can_change_any_more(first: int, second: int, kicks: int, decided: bool) -> None:
    assert is_decided(first, second, kicks) is decided


def test_the_sides_take_turns_and_the_score_adds_up() -> None:
    for kicks in shoot_outs():
        score = {HOME: 0, AWAY: 0}
        for nth, kick in enumerate(kicks):
            score[kick.side] += kick.is_scored
            assert kick.sequence == nth + 1
            assert kick.side == kicks[nth % 2].side
            assert (kick.home, kick.away) == (score[HOME], score[AWAY])


def test_no_player_kicks_twice_before_all_of_his_side_have_kicked() -> None:
    for kicks in shoot_outs():
        for side, players in PLAYERS.items():
            mine = [kick.player for kick in kicks if kick.side == side]
            assert len(set(mine[: len(players)])) == min(len(mine), len(players))


def test_some_go_to_sudden_death() -> None:
    assert any(len(kicks) > 10 for kicks in shoot_outs())
