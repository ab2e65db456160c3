"""Reports: one JSON line, and an exit code that agrees."""

import json

import pytest

from bench.reporting import Report, run
from longstop.errors import UsageError


async def good() -> Report:
    return Report(suite="x", is_ok=True, figures={"lost": 0})


async def bad() -> Report:
    return Report(suite="x", is_ok=False, figures={"lost": 1}, details=["one is gone"])


async def broken() -> Report:
    raise UsageError("it did not come up")


def test_a_good_suite_ends_in_one_line_and_zero(capsys: pytest.CaptureFixture[str]) -> None:
    code = run("x", good())

    assert code == 0
    assert capsys.readouterr().out == '{"suite":"x","ok":true,"lost":0}\n'


def test_a_bad_suite_says_what_is_wrong_and_ends_in_one(capsys: pytest.CaptureFixture[str]) -> None:
    code = run("x", bad())

    assert code == 1
    assert json.loads(capsys.readouterr().out) == {"suite": "x", "ok": False, "lost": 1, "details": ["one is gone"]}


def test_a_suite_that_cannot_run_is_not_ok(capsys: pytest.CaptureFixture[str]) -> None:
    code = run("x", broken())

    assert code == 1
    assert json.loads(capsys.readouterr().out) == {"suite": "x", "ok": False, "details": ["it did not come up"]}
