"""Faults that the simulator can inject: rules as data, and which of them affect a request."""

import re
from collections import Counter
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
#: How errors name the types of JSON.
_TYPES = {
    "float": "a number",
    "int": "a whole number",
    "str": "a text",
    "array": "a list",
    "object": "an object",
    "bool": "true or false",
}


class FaultKind(StrEnum):
    #: Delays the response by `seconds` plus up to `jitter_seconds`.
    LATENCY = "latency"
    #: Closes the connection without sending a byte.
    DROP = "drop"
    #: Resets the connection.
    RESET = "reset"
    #: Announces the full length, sends a part, and closes the connection.
    TRUNCATED = "truncated"
    #: Returns another status, with `retry_after_seconds` if given.
    STATUS = "status"
    #: Returns an HTML page with status 200 instead of JSON.
    HTML = "html"
    #: Returns a CAPTCHA page with status 200.
    CHALLENGE = "challenge"
    #: Repeats the first response since the rule was added.
    FROZEN = "frozen"
    #: Returns what the site showed `seconds` world seconds ago, as a cache would.
    OLDER = "older"
    #: Sends the body byte by byte with `seconds` between two bytes.
    DRIP = "drip"
    #: Sends a few hundred kilobytes that decompress to 200 megabytes.
    BOMB = "bomb"
    #: Renames `field` wherever it occurs.
    RENAMED = "renamed"
    #: Returns 404 for the path.
    MOVED = "moved"
    #: Swaps the keys of the two teams in state, event list and scorecard, but not their names.
    SWAPPED = "swapped"
    #: Shows every innings as 0/0 in state, listing and scorecard.
    ZEROED = "zeroed"
    #: Returns an empty table of names.
    NAMELESS = "nameless"
    #: Removes the match, or every match, from the listing.
    UNLISTED = "unlisted"
    #: Returns the data of another match.
    OTHER_MATCH = "other-match"
    #: Returns readable bodies with wrong numbers, the same ones in every response about a match.
    POISONED = "poisoned"
    #: Bodies of 4.9 MB; each page of an event list points to a next one.
    HUGE_PAGE = "huge-page"
    #: A match with 50,000 balls in 9,999 innings, or with 50,000 incidents.
    MANY_BALLS = "many-balls"
    #: A listing with 50,000 more matches, or as many as fit.
    MANY_MATCHES = "many-matches"
    #: One name of four million characters.
    HUGE_NAME = "huge-name"
    #: Control characters, ANSI sequences and characters that turn the text, in every text.
    CONTROL_CHARACTERS = "control-characters"
    #: A page that loops endlessly `seconds` after it was loaded and no longer responds.
    SPIN = "spin"
    #: A page that allocates ten megabytes every second.
    LEAK = "leak"
    #: A page that crashes its renderer after `seconds`.
    CRASH = "crash"
    #: A page that opens dialogs and asks for confirmation before it is left.
    DIALOGS = "dialogs"
    #: A page that opens other pages.
    POPUPS = "popups"
    #: A page that starts downloads.
    DOWNLOADS = "downloads"
    #: A page that sends ten requests a second, so that the network is never idle.
    BUSY = "busy"
    #: A page with other class names.
    REDESIGNED = "redesigned"
    #: A page that delays each of its calls by `seconds`.
    LATE_CALLS = "late-calls"
    #: A page that makes none of its calls.
    NO_CALLS = "no-calls"


class Fault(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What goes wrong, where, and how often."""

    kind: FaultKind
    #: Only paths with this prefix.
    path: str = "/"
    #: Only this match.
    match: str | None = None
    #: The share of requests, from 0 to 1.
    share: Annotated[float, Meta(ge=0, le=1)] = 1.0
    #: For how many seconds one roll of the share decides about all resources of a match; 0 rolls for each request.
    window_seconds: _Seconds = 0.0
    #: How long the rule applies; `None` means until it is removed.
    valid_seconds: _Seconds | None = None
    #: For `latency`, `older`, `drip`, `spin`, `crash`, `dialogs` and `late-calls`.
    seconds: _Seconds = 0.0
    jitter_seconds: _Seconds = 0.0
    status: Annotated[int, Meta(ge=400, le=599)] = 503
    retry_after_seconds: Annotated[int, Meta(ge=0)] | None = None
    #: For `renamed`.
    field: str = ""


class FaultRule(Struct, frozen=True, kw_only=True):
    """An active fault."""

    id: int
    fault: Fault
    since: datetime
    until: datetime | None
    #: Decides what the windows of the fault hit.
    seed: int

    def hits(self, request: Request, now: datetime, dice: Random) -> bool:
        """Return whether the request is one of the fault's share."""
        if not self.fault.window_seconds:
            return dice.random() < self.fault.share
        window = int((now - self.since).total_seconds() // self.fault.window_seconds)
        # A list and a table of names are about no match: they share one roll.
        return Random(f"window {self.seed} {self.id} {request.match_key} {window}").random() < self.fault.share

    def applies_to(self, request: Request, now: datetime) -> bool:
        return (
            request.path.startswith(self.fault.path)
            and self._concerns(request)
            and (self.until is None or now < self.until)
        )

    def _concerns(self, request: Request) -> bool:
        if self.fault.kind is FaultKind.UNLISTED:
            # The listing contains all matches, so a rule for one match applies to it, and to nothing else.
            return request.is_list
        return self.fault.match in (None, request.match_key)


class Choice(Struct, frozen=True, kw_only=True):
    """What happens to one response: a delay, a fault, both or neither."""

    delay_seconds: float = 0.0
    #: The first rule that changes the response.
    rule: FaultRule | None = None

    @property
    def fault(self) -> Fault | None:
        return self.rule.fault if self.rule else None


def choose(rules: Sequence[FaultRule], request: Request, now: datetime, dice: Random) -> Choice:
    """Return what happens to a request: delays add up, and of the other faults the first one wins."""
    struck = [rule for rule in rules if rule.applies_to(request, now) and rule.hits(request, now, dice)]
    late = [rule.fault for rule in struck if rule.fault.kind is FaultKind.LATENCY]
    return Choice(
        delay_seconds=sum(fault.seconds + dice.uniform(0, fault.jitter_seconds) for fault in late),
        rule=next((rule for rule in struck if rule.fault.kind is not FaultKind.LATENCY), None),
    )


class FaultRules:
    """The active rules, and the random numbers that decide which requests they affect."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._dice = Random(f"faults {seed}")
        self._rules: dict[int, FaultRule] = {}
        self._last_id = 0
        #: Answers about each match that a fault has changed, of all sites together.
        self.faulty_answers: Counter[str] = Counter()

    @property
    def rules(self) -> list[FaultRule]:
        return list(self._rules.values())

    def add(self, fault: Fault, now: datetime) -> FaultRule:
        self._last_id += 1
        until = None if fault.valid_seconds is None else now + timedelta(seconds=fault.valid_seconds)
        rule = FaultRule(id=self._last_id, fault=fault, since=now, until=until, seed=self._seed)
        self._rules[rule.id] = rule
        return rule

    def remove(self, rule_id: int) -> None:
        if rule_id not in self._rules:
            raise UsageError(f"there is no fault {rule_id}: {_active(self._rules)}")
        del self._rules[rule_id]

    def clear(self) -> None:
        self._rules.clear()

    def expire(self, now: datetime) -> None:
        """Remove the rules whose time is over."""
        self._rules = {rule.id: rule for rule in self.rules if rule.until is None or now < rule.until}

    def choose(self, request: Request, now: datetime) -> Choice:
        choice = choose(self.rules, request, now, self._dice) if self._rules else Choice()
        if choice.rule is not None and (match := request.match_key):
            self.faulty_answers[match] += 1
        return choice


def read_faults(body: bytes) -> list[Fault]:
    """Decode the body of a POST: one fault or a list of faults."""
    try:
        posted: Any = msgspec.json.decode(body)
    except msgspec.MsgspecError as error:
        raise UsageError(f"this is not a valid fault: it is not JSON ({error})") from error
    return [_read_fault(each) for each in (posted if isinstance(posted, list) else [posted])]


def _read_fault(posted: object) -> Fault:
    try:
        fault = msgspec.convert(posted, Fault)
    except msgspec.ValidationError as error:
        kinds = f". Kinds: {', '.join(FaultKind)}" if "kind" in str(error) else ""
        raise UsageError(f"this is not a valid fault: {_in_words(error)}{kinds}") from error
    if wanted := _missing_from(fault):
        raise UsageError(f"this is not a valid fault: {fault.kind} needs {wanted}")
    return fault


def _in_words(error: msgspec.ValidationError) -> str:
    """Return an error of msgspec without its notation: "share: expected a number <= 1.0"."""
    what, _, field = str(error).partition(" - at `$.")
    what = re.sub(r"`(\w+)( \| null)?`", lambda named: _TYPES.get(named[1], named[1]), what)
    what = what.replace("Object contains unknown field", "there is no field")
    what = what.replace("Object missing required field", "it needs the field")
    where = f"{field.rstrip('`')}: " if field else ""
    return where + what[0].lower() + what[1:]


def _missing_from(fault: Fault) -> str | None:
    """Return the field without which a fault would do nothing; `None` if it is there."""
    match fault:
        case Fault(kind=FaultKind.RENAMED, field=""):
            return "a field, the one to rename"
        case Fault(kind=FaultKind.OLDER, seconds=0.0):
            return "seconds, the age of the copy in world seconds, such as 600"
    return None


def _active(rules: Iterable[int]) -> str:
    numbers = ", ".join(map(str, rules))
    return f"active are {numbers}" if numbers else "none is active"
