"""Faults on tap: rules as data, a pure choice, and a book to keep them in."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from random import Random
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from longstop.errors import UsageError
from longstop_lab.simulator.http import Request

_Seconds = Annotated[float, Meta(ge=0)]


class FaultKind(StrEnum):
    #: The answer comes late: `seconds` plus up to `jitter_seconds`.
    LATENCY = "latency"
    #: The connection is closed without a byte.
    DROP = "drop"
    #: The connection is reset.
    RESET = "reset"
    #: The full length is announced, a part is sent, and the connection is closed.
    TRUNCATED = "truncated"
    #: Another status, with `retry_after_seconds` when given.
    STATUS = "status"
    #: A page for people, with 200, where JSON should be.
    HTML = "html"
    #: A page that wants a person to prove to be one, with 200.
    CHALLENGE = "challenge"
    #: The first answer since the rule began, again and again.
    FROZEN = "frozen"
    #: What the site showed `seconds` world seconds ago, as from a cache.
    OLDER = "older"
    #: The body comes byte by byte, with `seconds` between two.
    DRIP = "drip"
    #: A few hundred kilobytes on the wire, 200 megabytes once decompressed.
    BOMB = "bomb"
    #: `field` has another name, wherever it stands.
    RENAMED = "renamed"
    #: The site no longer knows the path.
    MOVED = "moved"
    #: The keys of the two teams are exchanged in state, feed and scorecard; their names are not.
    SWAPPED = "swapped"
    #: Every innings of state, list and scorecard is 0/0, played or not.
    ZEROED = "zeroed"
    #: The table of names knows nobody yet.
    NAMELESS = "nameless"
    #: The match, or every match, is missing from the list.
    UNLISTED = "unlisted"
    #: Whatever is asked about a match is answered about another one.
    OTHER_MATCH = "other-match"
    #: A page runs in circles from `seconds` after it is read, and answers nothing any more.
    SPIN = "spin"
    #: A page takes ten megabytes more every second.
    LEAK = "leak"
    #: A page brings its renderer down after `seconds`.
    CRASH = "crash"
    #: A page alerts, asks, and does not want to be left.
    DIALOGS = "dialogs"
    #: A page opens others.
    POPUPS = "popups"
    #: A page sends files.
    DOWNLOADS = "downloads"
    #: A page asks for something ten times a second, for ever: the network is never idle.
    BUSY = "busy"
    #: A page whose elements all have other names.
    REDESIGNED = "redesigned"
    #: A page makes each of its calls `seconds` late.
    LATE_CALLS = "late-calls"
    #: A page makes none of its calls.
    NO_CALLS = "no-calls"


class Fault(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What goes wrong, where and how often."""

    kind: FaultKind
    #: Only paths that begin so.
    path: str = "/"
    #: Only this match.
    match: str | None = None
    #: The share of requests, from 0 to 1.
    share: Annotated[float, Meta(ge=0, le=1)] = 1.0
    #: How long the rule holds; `None` is until it is taken away.
    valid_seconds: _Seconds | None = None
    #: For `latency`, `older`, `drip`, `spin`, `crash`, `dialogs` and `late-calls`.
    seconds: _Seconds = 0.0
    jitter_seconds: _Seconds = 0.0
    status: Annotated[int, Meta(ge=400, le=599)] = 503
    retry_after_seconds: Annotated[int, Meta(ge=0)] | None = None
    #: For `renamed`.
    field: str = ""


class FaultRule(Struct, frozen=True, kw_only=True):
    """A fault in force."""

    id: int
    fault: Fault
    until: datetime | None

    def applies_to(self, request: Request, now: datetime) -> bool:
        return (
            request.path.startswith(self.fault.path)
            and self._concerns(request)
            and (self.until is None or now < self.until)
        )

    def _concerns(self, request: Request) -> bool:
        if self.fault.kind is FaultKind.UNLISTED:
            # The list speaks of all matches, so a rule about one of them holds there, and nowhere else.
            return request.is_list
        return self.fault.match in (None, request.match_key)


class Choice(Struct, frozen=True, kw_only=True):
    """What is done to one answer: it may come late, and it may be spoilt."""

    delay_seconds: float = 0.0
    #: Of faults that spoil an answer, the first that struck.
    rule: FaultRule | None = None

    @property
    def fault(self) -> Fault | None:
        return self.rule.fault if self.rule else None


def choose(rules: Sequence[FaultRule], request: Request, now: datetime, dice: Random) -> Choice:
    """Return what befalls this request: delays add up, and of the other faults the first one wins."""
    struck = [rule for rule in rules if rule.applies_to(request, now) and dice.random() < rule.fault.share]
    late = [rule.fault for rule in struck if rule.fault.kind is FaultKind.LATENCY]
    return Choice(
        delay_seconds=sum(fault.seconds + dice.uniform(0, fault.jitter_seconds) for fault in late),
        rule=next((rule for rule in struck if rule.fault.kind is not FaultKind.LATENCY), None),
    )


class FaultBook:
    """The rules in force, and the dice that decide whom they hit."""

    def __init__(self, seed: int) -> None:
        self._dice = Random(f"faults {seed}")
        self._rules: dict[int, FaultRule] = {}
        self._last_id = 0

    @property
    def rules(self) -> list[FaultRule]:
        return list(self._rules.values())

    def add(self, fault: Fault, now: datetime) -> FaultRule:
        self._last_id += 1
        until = None if fault.valid_seconds is None else now + timedelta(seconds=fault.valid_seconds)
        rule = FaultRule(id=self._last_id, fault=fault, until=until)
        self._rules[rule.id] = rule
        return rule

    def remove(self, rule_id: int) -> None:
        if rule_id not in self._rules:
            raise UsageError(f"there is no fault {rule_id}: {_said(self._rules)}")
        del self._rules[rule_id]

    def clear(self) -> None:
        self._rules.clear()

    def choose(self, request: Request, now: datetime) -> Choice:
        return choose(self.rules, request, now, self._dice) if self._rules else Choice()


def read_faults(body: bytes) -> list[Fault]:
    """Read one fault, or a list of them, as they are posted."""
    try:
        posted: Any = msgspec.json.decode(body)
        faults = msgspec.convert(posted if isinstance(posted, list) else [posted], list[Fault])
    except msgspec.MsgspecError as error:
        raise UsageError(f"this is no fault: {error}") from error
    if any(fault.kind is FaultKind.RENAMED and not fault.field for fault in faults):
        raise UsageError("this is no fault: renamed needs a field, the one that is to have another name")
    return faults


def _said(rules: Iterable[int]) -> str:
    numbers = ", ".join(map(str, rules))
    return f"in force are {numbers}" if numbers else "none is in force"
