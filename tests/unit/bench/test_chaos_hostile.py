"""The suite `hostile`: its phases, its damage, and when a run proves something."""

import sqlite3
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
import pytest

from bench.chaos.hostile import is_proof
from bench.chaos.hostile_files import FILES, damage
from bench.chaos.hostile_schedule import (
    HOSTILE_PATHS,
    PHASE_NAMES,
    REBUILT,
    WHILE_RUNNING,
    Attack,
    Damage,
    Phase,
    SiteFault,
    faults_of,
    rounds,
)
from bench.chaos.hostile_store import Ending, Outcome
from bench.chaos.hostile_watch import TRACEBACK, count_in
from longstop.supervision.exit_codes import Exit
from longstop_lab.simulator.faults import Choice, FaultRules
from longstop_lab.simulator.http import Request
from tests.unit.lab.simulator.games import NOON

PROOF = {
    **{"events_truth": 900, "events_stored": 900, "events_during": 80, "events_witnessed": 950},
    **dict.fromkeys(("lost", "duplicated", "ghost", "wrong", "forgotten", "orphans", "unsynced"), 0),
    **{"fresh_p99_s": 4.1, "live_share": 0.9995, "rss_max_mb": 210.0, "log_mb": 1.2, "tracebacks": 0},
    **{"attacks": 8, "site_faults": 8, "damages": 7, "connections": 2000},
    **dict.fromkeys(("requests_while_paused", "never_recovered", "wrong_endings", "failed_restores"), 0),
}


# --- rounds ---------------------------------------------------------------------------------------------------------


def test_the_seed_fixes_the_rounds() -> None:
    assert next(rounds(7)) == next(rounds(7))
    assert next(rounds(7)) != next(rounds(8))


def test_a_round_contains_every_attack_every_damage_and_every_fault_of_the_site_once() -> None:
    for seed in range(20):
        for round_ in islice(rounds(seed), 3):
            names = [name for phase in round_ for name in phase.names]
            assert sorted(names) == sorted(PHASE_NAMES) == sorted([*Attack, *Damage, *SiteFault])


def test_every_attack_comes_together_with_a_fault_of_the_site_and_damage_alone() -> None:
    for phase in next(rounds(7)):
        assert (phase.site is None) == (phase.damage is not None)
        assert phase.attack is None or phase.damage is None


def test_some_damage_follows_a_kill_and_some_a_clean_stop() -> None:
    phases = [phase for seed in range(5) for phase in next(rounds(seed)) if phase.damage]

    assert {phase.is_killed for phase in phases} == {True, False}


def test_only_the_chosen_parts_of_a_phase_are_left() -> None:
    phase = Phase(attack=Attack.IDLE, site=SiteFault.HUGE_NAME)

    assert phase.only(["idle", "slow"]) == Phase(attack=Attack.IDLE)
    assert phase.only(["slow"]).names == ()


@pytest.mark.parametrize("site", SiteFault)
def test_a_fault_never_befalls_the_healthy_matches(site: SiteFault) -> None:
    healthy = [
        Request(method="GET", path="/api/v3/getLiveMatches"),
        Request(method="GET", path="/api/v3/getSV3", query={"key": "11AB"}),
        Request(method="POST", path="/commentary/v1/getBallFeeds", body=b'{"matchKey":"11AB"}'),
        Request(method="POST", path="/mapping/getHomeMapData", body=b'{"p":[]}'),
    ]
    hostile = [
        *(Request(method="GET", path=f"{HOSTILE_PATHS}{path}") for path in ("sport/football/events/live", "event/1")),
        Request(method="GET", path="/api/v3/getSV3", query={"key": "11CD"}),
    ]
    rules = FaultRules(seed=1)
    for fault in faults_of(site, "11CD", 5.0):
        rules.add(fault, NOON)

    assert all(rules.choose(request, NOON) == Choice() for request in healthy)
    struck = [rules.choose(request, NOON) for _ in range(50) for request in hostile]
    assert any(choice.fault is not None or choice.delay_seconds for choice in struck)


# --- damage ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", Damage)
def test_each_damage_changes_its_file_and_no_other(kind: Damage, tmp_path: Path) -> None:
    for name in set(FILES.values()):
        with closing(sqlite3.connect(tmp_path / name)) as store, store:
            store.execute("PRAGMA journal_mode=WAL")
            store.execute("CREATE TABLE views (match_id INTEGER PRIMARY KEY, record TEXT NOT NULL)")
            store.executemany("INSERT INTO views (record) VALUES (?)", [('{"a":1}',)] * 500)
    struck = tmp_path / FILES[kind]
    if kind is Damage.WAL_REMOVED:
        struck = struck.with_name("matches.db-wal")
        struck.write_bytes(b"log")
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}

    damage(tmp_path, kind, left=0.5)

    after = {path: path.read_bytes() for path in tmp_path.iterdir()}
    assert {path for path in before if before[path] != after.get(path)} == {struck}


def test_a_changed_byte_leaves_a_file_that_sqlite_can_read(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "hot.db")) as store, store:
        store.execute("CREATE TABLE views (match_id INTEGER PRIMARY KEY, record TEXT NOT NULL)")
        store.execute("INSERT INTO views (record) VALUES (?)", ('{"a":1}',))

    damage(tmp_path, Damage.HOT_BYTE)

    with closing(sqlite3.connect(tmp_path / "hot.db")) as store:
        [(record,)] = store.execute("SELECT record FROM views")
        assert store.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    with pytest.raises(msgspec.DecodeError):
        msgspec.json.decode(record)


# --- endings --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", Damage)
def test_what_is_rebuilt_goes_on_and_what_is_not_is_refused_or_noticed(kind: Damage) -> None:
    right = {
        ending
        for ending in Ending
        if Outcome(damage=kind, ending=ending, exit_code=Exit.STORAGE, names_file=True, names_command=True).is_right
    }

    assert right == ({Ending.WENT_ON} if kind in REBUILT else {Ending.REFUSED, Ending.NOTICED})
    assert {*REBUILT, *WHILE_RUNNING} <= set(Damage)


@pytest.mark.parametrize(
    "wrong",
    [{"exit_code": Exit.FAILED}, {"names_file": False}, {"names_command": False}],
    ids=lambda each: next(iter(each)),
)
def test_a_refusal_has_the_right_exit_code_and_names_file_and_command(wrong: dict[str, Any]) -> None:
    said = {"exit_code": Exit.STORAGE, "names_file": True, "names_command": True}

    assert not Outcome(damage=Damage.OPS_HEADER, ending=Ending.REFUSED, **{**said, **wrong}).is_right


def test_tracebacks_are_counted_across_the_pieces_of_a_large_log(tmp_path: Path) -> None:
    log = tmp_path / "longstop.log"
    log.write_bytes(b"x" * (1_000_000 - 10) + TRACEBACK + b"\n" + TRACEBACK)

    assert count_in(log, TRACEBACK) == 2


# --- the verdict ----------------------------------------------------------------------------------------------------


def test_a_healthy_site_that_notices_nothing_is_a_proof() -> None:
    assert is_proof(PROOF)


@pytest.mark.parametrize(
    "figures",
    [
        *({name: 1} for name in ("lost", "ghost", "wrong", "duplicated", "forgotten", "orphans", "unsynced")),
        *({name: 1} for name in ("tracebacks", "requests_while_paused", "never_recovered")),
        *({name: 1} for name in ("wrong_endings", "failed_restores")),
        {"events_stored": 899},
        {"fresh_p99_s": 10.0},
        {"fresh_p99_s": None},
        {"live_share": 0.9989},
        {"live_share": None},
        {"rss_max_mb": 600.0},
        {"log_mb": 10.0},
    ],
    ids=lambda each: next(iter(each)),
)
def test_one_thing_that_is_wrong_is_enough(figures: dict[str, Any]) -> None:
    assert not is_proof({**PROOF, **figures})


@pytest.mark.parametrize("name", ["attacks", "site_faults", "damages", "connections", "events_during"])
def test_what_could_not_fail_proves_nothing(name: str) -> None:
    assert not is_proof({**PROOF, name: 0})
