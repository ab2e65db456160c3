"""What a check finds: a verdict, what was seen, and what to do about it."""

from collections.abc import Iterable
from enum import StrEnum

from msgspec import Struct

#: The check that finds no enabled site: `demo` needs none, `up` does.
NO_SITE = "sources"


class Verdict(StrEnum):
    OK = "ok"
    #: It is not there.
    MISSING = "missing"
    #: It is there, and not as it should be.
    WRONG = "wrong"
    #: It was not looked at, since what it depends on is wrong.
    SKIPPED = "skipped"


class Check(Struct, frozen=True, kw_only=True):
    """One thing that was looked at."""

    name: str
    verdict: Verdict
    found: str
    #: What to do; empty when nothing needs to be done.
    advice: str = ""
    #: Whether Longstop cannot do its work without it; the rest is for tests, or a choice.
    is_needed: bool = True

    @property
    def is_in_the_way(self) -> bool:
        return self.is_needed and self.verdict is not Verdict.OK


def is_well(checks: Iterable[Check]) -> bool:
    """Return whether everything that is needed is there."""
    return not any(check.is_in_the_way for check in checks)


def lacks_a_site(checks: Iterable[Check]) -> bool:
    """Return whether no site is enabled; that is a choice, and yet `up` has nothing to watch."""
    return any(check.name == NO_SITE and check.verdict is Verdict.MISSING for check in checks)


def skipped(name: str) -> Check:
    """Return a check that nobody could make without knowing the settings; what is in the way is those."""
    return Check(name=name, verdict=Verdict.SKIPPED, found="not looked at: the settings are refused", is_needed=False)


def judged(name: str, found: str, advice: str, *, is_good: bool, is_needed: bool = True) -> Check:
    """Return a check of something that is there, and either as it should be or not."""
    verdict = Verdict.OK if is_good else Verdict.WRONG
    return Check(name=name, verdict=verdict, found=found, advice="" if is_good else advice, is_needed=is_needed)
