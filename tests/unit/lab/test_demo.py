"""Parts of the demo that need no processes."""

import asyncio
import os
import termios
from contextlib import nullcontext
from io import StringIO
from types import SimpleNamespace
from typing import Any, cast

import pytest
from msgspec.structs import replace

from longstop.cli.output import TextConsole
from longstop.errors import UsageError
from longstop_lab.client import JsonResponse, Samples
from longstop_lab.demo import DemoOptions, _watch, remove_faults, run_demo, without_echoed_control_keys
from longstop_lab.deployment import Deployment

OPTIONS = DemoOptions(
    seconds=1,
    matches=1,
    kinds=None,
    speed=10.0,
    seed=1,
    sites=("crex",),
    browser=None,
    truth=None,
    keep=None,
    api_port=None,
    is_quiet=False,
)


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"kinds": "foo"}, "'foo' is not a kind of match"),
        ({"kinds": "football"}, "only sofascore shows football"),
        ({"speed": 0.0}, "the speed must be greater than 0"),
    ],
)
async def test_wrong_options_are_refused_before_anything_is_said_to_start(wrong: dict[str, Any], reason: str) -> None:
    said = StringIO()

    with pytest.raises(UsageError, match=reason):
        await run_demo(replace(OPTIONS, **wrong), TextConsole(file=said))

    assert said.getvalue() == ""


async def test_the_table_in_a_pipe_ends_with_a_newline(monkeypatch: pytest.MonkeyPatch) -> None:
    async def no_matches(*_arguments: object) -> list[dict[str, Any]]:
        return []

    monkeypatch.setattr("longstop_lab.demo.list_matches", no_matches)
    monkeypatch.setattr("longstop_lab.demo.without_echoed_control_keys", nullcontext)
    said, deployment = StringIO(), SimpleNamespace(rss_bytes=lambda: 0)

    await _watch(cast(Deployment, deployment), Samples(), replace(OPTIONS, seconds=0.05), TextConsole(file=said))

    assert said.getvalue().endswith("╯\n")


@pytest.mark.parametrize("interruption", [asyncio.CancelledError, KeyboardInterrupt])
async def test_an_interrupted_check_is_not_taken_for_a_good_one(
    monkeypatch: pytest.MonkeyPatch, interruption: type[BaseException]
) -> None:
    async def nothing(*_arguments: object, **_options: object) -> None: ...

    async def interrupted(*_arguments: object) -> None:
        raise interruption

    for name in ("wait_until_synced", "_watch", "remove_faults"):
        monkeypatch.setattr(f"longstop_lab.demo.{name}", nothing)
    monkeypatch.setattr("longstop_lab.demo._report", interrupted)
    monkeypatch.setattr("longstop_lab.demo.deployed", nullcontext)
    monkeypatch.setattr("longstop_lab.demo.greeting", str)
    said = StringIO()

    with pytest.raises(interruption):
        await run_demo(OPTIONS, TextConsole(file=said))

    assert said.getvalue().endswith("stopped before the check was done: no event was checked\n")


class FakeSimulator:
    def __init__(self, faults: int) -> None:
        self.faults = ["a fault"] * faults

    async def get(self, path: str) -> JsonResponse:
        assert path == "/_sim/faults"
        return JsonResponse(body=self.faults, seconds=0.0)

    async def delete(self, path: str) -> JsonResponse:
        self.faults = []
        return await self.get(path)


@pytest.mark.parametrize(("faults", "said"), [(0, ""), (1, "1 fault"), (2, "2 faults")])
async def test_all_faults_of_the_simulator_are_removed_and_counted(faults: int, said: str) -> None:
    simulator = FakeSimulator(faults)

    assert await remove_faults(cast(Deployment, SimpleNamespace(simulator=simulator))) == said
    assert simulator.faults == []


async def test_faults_are_removed_before_the_last_sync_and_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    simulator = FakeSimulator(1)

    async def nothing(*_arguments: object, **_options: object) -> None: ...

    async def report(*_arguments: object) -> str:
        assert simulator.faults == []
        return "the report"

    for name in ("wait_until_synced", "_watch"):
        monkeypatch.setattr(f"longstop_lab.demo.{name}", nothing)
    monkeypatch.setattr("longstop_lab.demo._report", report)
    monkeypatch.setattr("longstop_lab.demo.deployed", lambda _: nullcontext(SimpleNamespace(simulator=simulator)))
    for name in ("greeting", "summary"):
        monkeypatch.setattr(f"longstop_lab.demo.{name}", str)
    said = StringIO()

    await run_demo(OPTIONS, TextConsole(file=said))

    removed, frozen, result = said.getvalue().splitlines()[-3:]
    assert removed == "removed 1 fault from the simulator: faults could hide events from the last sync"
    assert frozen.startswith("simulator frozen")
    assert result == "the report"


def test_the_terminal_does_not_echo_control_keys_into_the_table_and_is_restored() -> None:
    controller, terminal = os.openpty()
    try:
        before = termios.tcgetattr(terminal)
        with without_echoed_control_keys(terminal):
            during = termios.tcgetattr(terminal)

        assert before[3] & termios.ECHOCTL
        assert not during[3] & termios.ECHOCTL
        assert termios.tcgetattr(terminal) == before
    finally:
        os.close(controller)
        os.close(terminal)


def test_a_pipe_is_left_unchanged() -> None:
    reader, writer = os.pipe()
    try:
        with without_echoed_control_keys(reader):
            pass
    finally:
        os.close(reader)
        os.close(writer)
