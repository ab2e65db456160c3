"""Sessions with a proxy: their credentials, rotation and quarantine."""

from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs
from pydantic import SecretStr

from longstop.fetching.browser.proxy_sessions import (
    MAX_TIMEOUTS,
    QUARANTINE_AFTER,
    QUARANTINE_SECONDS,
    ProxyAccount,
    ProxyMode,
    ProxyRing,
    session_proxy,
)

ACCOUNT = ProxyAccount(
    host="proxy.example", port=12321, username="us", password=SecretStr("canary"), country="BR", sticky_seconds=600
)


def ring(sessions: int = 3, account: ProxyAccount = ACCOUNT) -> ProxyRing:
    numbers = count(1)
    return ProxyRing(account, sessions=sessions, new_name=lambda: f"name{next(numbers)}", now=0.0)


def names(made: ProxyRing) -> list[str]:
    return [session.name for session in made.sessions]


@pytest.mark.req("CAP-4")
def test_country_session_and_lifetime_stand_behind_the_password() -> None:
    made = session_proxy(ACCOUNT, "abcd1234")

    assert made.username == "us"
    assert made.password.get_secret_value() == "canary_country-br_session-abcd1234_lifetime-10m"


@pytest.mark.req("CAP-4")
def test_a_rotating_credential_names_no_session() -> None:
    rotating = structs.replace(ACCOUNT, mode=ProxyMode.ROTATING, country="")

    assert session_proxy(rotating, "abcd1234").password.get_secret_value() == "canary"


def test_nothing_that_is_shown_has_the_password() -> None:
    shown = f"{ACCOUNT!r} {session_proxy(ACCOUNT, 'abcd1234')!r} {ring().account!r}"

    assert "canary" not in shown


def test_sessions_take_turns() -> None:
    made = ring()

    assert [made.pick(float(now)).name for now in range(6)] == ["name1", "name2", "name3"] * 2


def test_a_sticky_session_is_replaced_when_its_time_is_over() -> None:
    made = ring(1)

    assert made.pick(599.0).name == "name1"
    assert made.pick(600.0).name == "name2"
    assert not made.has("name1", 600.0)


def test_a_refused_session_is_replaced_at_once() -> None:
    made = ring(2)

    assert made.refused("name1", 1.0)
    assert names(made) == ["name3", "name2"]
    assert not made.refused("name1", 1.0)


def test_time_outs_are_forgiven_until_there_are_too_many_in_a_row() -> None:
    made = ring(1)

    assert [made.timed_out("name1", 1.0) for _ in range(MAX_TIMEOUTS)] == [False] * MAX_TIMEOUTS
    made.succeeded("name1")
    assert [made.timed_out("name1", 1.0) for _ in range(MAX_TIMEOUTS + 1)][-1] is True


@pytest.mark.req("CAP-4")
def test_a_first_time_out_is_followed_by_one_more_try_through_the_same_session() -> None:
    made = ring(3)
    picked = []

    for now in range(4):
        picked.append(made.pick(float(now)).name)
        made.timed_out("name1", float(now)) if picked[-1] == "name1" else made.succeeded(picked[-1])

    assert picked == ["name1", "name1", "name2", "name3"]


@pytest.mark.req("CAP-4")
def test_a_broken_session_is_quarantined_and_comes_back() -> None:
    made = ring(2)

    waits = [made.failed("name1", 1.0) for _ in range(QUARANTINE_AFTER)]

    assert waits == [None, None, QUARANTINE_SECONDS]
    assert {made.pick(float(now)).name for now in range(2, 9)} == {"name2"}
    assert made.pick(1.0 + QUARANTINE_SECONDS).name == "name1"


@pytest.mark.req("CAP-4")
@given(
    sessions=st.integers(1, 6),
    steps=st.lists(st.tuples(st.sampled_from(["failed", "refused", "timed_out"]), st.integers(0, 5)), max_size=80),
)
def test_never_are_all_in_quarantine_and_one_is_always_picked(sessions: int, steps: list[tuple[str, int]]) -> None:
    made, now = ring(sessions), 0.0
    for what, place in steps:
        now += 1.0
        session = made.sessions[place % sessions]
        getattr(made, what)(session.name, now)

        paused = [each for each in made.sessions if not each.is_good(now)]
        assert len(paused) <= sessions // 2
        assert made.pick(now).is_good(now)
        assert len(set(names(made))) == sessions
