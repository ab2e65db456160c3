"""Delivering alerts, in virtual time: what is sent when, what is tried again, what is given up."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest

from longstop.errors import FetchError, FetchTimeout, ForbiddenTarget, SourceFailed, SourceRefused
from longstop.telemetry import webhook
from longstop.telemetry.bus import Bus
from longstop.telemetry.events import Telemetry
from longstop.telemetry.events.matches import MatchStale
from longstop.telemetry.events.processes import AlertUndelivered
from longstop.telemetry.events.sources import CircuitClosed, CircuitOpened
from longstop.telemetry.webhook import FLUSH_WITHIN, Post, WebhookSink, signature
from longstop.testing import VirtualClock, run_virtual

URL = "https://hooks.example/services/secret-token?key=secret-key"
OPENED = CircuitOpened(scope="source", subject="crex", reason="refused", seconds=900.0)
CLOSED = CircuitClosed(scope="source", subject="crex", rejected=1)


def stale(ref: str = "crex_1") -> MatchStale:
    return MatchStale(match_id=1, ref=ref, age_seconds=301.0, last_update=None)


class Receiver:
    """Takes what is posted; each answer of the script is used once, the last one for ever."""

    def __init__(self, *script: Exception | None, seconds: float = 0.0) -> None:
        self._script = list(script) or [None]
        self._seconds = seconds
        self.moments: list[float] = []
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[Mapping[str, str]] = []

    def open(self, _url: str) -> AbstractAsyncContextManager[Post]:
        @asynccontextmanager
        async def opened() -> AsyncIterator[Post]:
            yield self.post

        return opened()

    async def post(self, body: bytes, headers: Mapping[str, str]) -> None:
        self.moments.append(asyncio.get_running_loop().time())
        self.bodies.append(json.loads(body))
        self.headers.append(headers)
        await asyncio.sleep(self._seconds)
        answer = self._script.pop(0) if len(self._script) > 1 else self._script[0]
        if answer is not None:
            raise answer

    @property
    def titles(self) -> list[str]:
        return [body["title"] for body in self.bodies]


class Stage:
    """A sink that delivers to a receiver, on a bus that records events."""

    def __init__(self, receiver: Receiver, secret: str = "") -> None:
        self.sink = WebhookSink(URL, secret, node="node-1", clock=VirtualClock(), open_post=receiver.open)
        self.events: list[Telemetry] = []
        self.bus = Bus([self.sink, self])

    def take(self, event: Telemetry) -> None:
        self.events.append(event)

    @property
    def lost(self) -> list[AlertUndelivered]:
        return [event for event in self.events if isinstance(event, AlertUndelivered)]


def play(receiver: Receiver, act: Callable[[Stage], Coroutine[Any, Any, None]], secret: str = "") -> Stage:
    """Run an act while a sink delivers."""

    async def run() -> Stage:
        stage = Stage(receiver, secret)
        async with stage.sink.delivering(stage.bus):
            await act(stage)
        return stage

    return run_virtual(run())


def emit(*events: Telemetry, wait: float = 0.0) -> Callable[[Stage], Coroutine[Any, Any, None]]:
    async def act(stage: Stage) -> None:
        for event in events:
            stage.bus.emit(event)
        await asyncio.sleep(wait)

    return act


def test_an_alert_is_sent_with_its_condition_text_and_time() -> None:
    receiver = Receiver()

    play(receiver, emit(OPENED))

    [body] = receiver.bodies
    assert body == {
        "id": receiver.headers[0]["X-Longstop-Alert-Id"],
        "key": "circuit_opened source crex",
        "severity": "WARN",
        "resolved": False,
        "title": "Circuit open for source crex (900 s)",
        "text": "refused",
        "at": "2026-01-01T00:00:00.000Z",
        "node": "node-1",
        "suppressed": 0,
        "fields": {"scope": "source", "subject": "crex", "reason": "refused", "seconds": 900.0, "match_id": None},
    }


def test_without_a_secret_nothing_is_signed_and_with_one_every_attempt_carries_its_own_moment() -> None:
    plain, signed = Receiver(), Receiver(SourceFailed("answered 500"), None)

    play(plain, emit(OPENED))
    play(signed, emit(OPENED, wait=10), secret="toy")

    assert "X-Longstop-Signature" not in plain.headers[0]
    first, second = (headers["X-Longstop-Signature"] for headers in signed.headers)
    assert first.startswith("t=1767225600,v1=")
    assert second.startswith("t=176722560")
    assert first != second


def test_the_signature_is_the_hmac_of_moment_and_body() -> None:
    # echo -n '1767225600.{"a":1}' | openssl dgst -sha256 -hmac toy
    expected = "19fc7299f01e9eba62963bd6a976fcd6f63ed8fd41dbbc8119814ca2f2b0a78c"

    assert signature("toy", 1767225600, b'{"a":1}') == f"t=1767225600,v1={expected}"


def test_a_receiver_in_trouble_is_asked_again_with_growing_pauses_and_the_same_id() -> None:
    receiver = Receiver(SourceFailed("answered 500"))

    stage = play(receiver, emit(OPENED, wait=60))

    pauses = [later - sooner for sooner, later in zip(receiver.moments, receiver.moments[1:], strict=False)]
    assert [stated <= pause <= stated * 1.25 for stated, pause in zip((1, 2, 4, 8, 16), pauses, strict=True)] == [
        True
    ] * 5
    assert len({headers["X-Longstop-Alert-Id"] for headers in receiver.headers}) == 1
    assert stage.lost == [AlertUndelivered(alert="circuit_opened source crex", attempts=6, reason="answered 500")]


@pytest.mark.parametrize(
    "error", [ForbiddenTarget("answered 302"), SourceRefused("answered 403")], ids=["redirect", "refusal"]
)
def test_an_answer_that_will_not_change_ends_the_trying(error: FetchError) -> None:
    receiver = Receiver(error)

    stage = play(receiver, emit(OPENED, wait=60))

    assert [(lost.attempts, lost.reason) for lost in stage.lost] == [(1, error.reason)]


def test_a_condition_is_sent_once_and_suppressed_alerts_are_counted_ten_minutes_later() -> None:
    receiver = Receiver()

    async def act(stage: Stage) -> None:
        for _ in range(5):
            stage.bus.emit(stale())
            await asyncio.sleep(60)
        await asyncio.sleep(301)

    play(receiver, act)

    assert receiver.moments == [0.0, 600.0]
    assert [body["suppressed"] for body in receiver.bodies] == [0, 3]


def test_the_end_is_sent_after_a_delivered_beginning() -> None:
    receiver = Receiver()

    play(receiver, emit(CLOSED, OPENED, CLOSED, OPENED, CLOSED))

    assert [body["resolved"] for body in receiver.bodies] == [False, True]


def test_the_end_of_an_undelivered_problem_is_not_sent() -> None:
    receiver = Receiver(SourceRefused("answered 403"), None)

    play(receiver, emit(OPENED, CLOSED, stale(), wait=1))

    assert [body["key"] for body in receiver.bodies] == ["circuit_opened source crex", "match.stale crex_1"]


def test_a_lost_alert_makes_no_alert_and_does_not_keep_the_next() -> None:
    receiver = Receiver(SourceRefused("answered 403"), None)

    stage = play(receiver, emit(OPENED, stale(), wait=1))

    assert len(stage.lost) == 1
    assert receiver.titles == ["Circuit open for source crex (900 s)", "Data of crex_1 is 301 s old"]


def test_a_bug_with_one_alert_is_reported_and_its_condition_is_sent_when_it_returns() -> None:
    receiver = Receiver(RuntimeError("a bug"), None)

    stage = play(receiver, emit(OPENED, OPENED, stale(), wait=1))

    assert [(lost.alert, lost.reason) for lost in stage.lost] == [
        ("circuit_opened source crex", "internal error: RuntimeError")
    ]
    assert receiver.titles[-1] == "Data of crex_1 is 301 s old"


def test_when_too_many_are_queued_the_oldest_is_dropped_and_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhook, "MAX_WAITING", 3)
    receiver = Receiver()

    stage = play(receiver, emit(*(stale(f"crex_{number}") for number in range(5))))

    assert [body["fields"]["ref"] for body in receiver.bodies] == ["crex_2", "crex_3", "crex_4"]
    assert [(lost.alert, lost.reason) for lost in stage.lost] == [
        ("webhook", "dropped 2 alerts: more than 3 were queued")
    ]


def test_the_end_of_a_dropped_alert_is_dropped_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhook, "MAX_WAITING", 3)
    receiver = Receiver()

    play(receiver, emit(OPENED, CLOSED, stale("crex_1"), stale("crex_2")))

    assert [body["key"] for body in receiver.bodies] == ["match.stale crex_1", "match.stale crex_2"]


def test_at_shutdown_queued_alerts_are_sent_for_a_short_while_and_the_others_reported() -> None:
    receiver = Receiver(seconds=FLUSH_WITHIN / 2.4)

    async def run() -> tuple[Stage, float]:
        stage = Stage(receiver)
        async with stage.sink.delivering(stage.bus):
            for number in range(5):
                stage.bus.emit(stale(f"crex_{number}"))
        return stage, asyncio.get_running_loop().time()

    stage, ended_at = run_virtual(run())

    assert ended_at == FLUSH_WITHIN
    assert len(receiver.bodies) == 3
    assert [lost.alert for lost in stage.lost] == ["match.stale crex_2", "match.stale crex_3", "match.stale crex_4"]


def test_alerts_taken_before_the_delivery_starts_are_sent() -> None:
    receiver = Receiver()

    async def run() -> None:
        stage = Stage(receiver)
        stage.bus.emit(OPENED)
        async with stage.sink.delivering(stage.bus):
            pass

    run_virtual(run())

    assert receiver.titles == ["Circuit open for source crex (900 s)"]


def test_a_failing_end_of_the_work_still_sends_what_it_had_to_say() -> None:
    receiver = Receiver(FetchTimeout("late"), None)

    async def act(stage: Stage) -> None:
        stage.bus.emit(OPENED)
        raise RuntimeError("the end")

    with pytest.raises(RuntimeError, match="the end"):
        play(receiver, act)

    assert len(receiver.bodies) == 2
