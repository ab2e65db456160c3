"""Sessions with a proxy: which one is used next, and which ones are left alone. Time comes as an argument.

A sticky session is a name in the credential; the provider keeps one address for it. Credentials are handed to the
browser and to curl as values, never on a command line, and show in no text.
"""

import re
from collections.abc import Callable
from enum import StrEnum

from msgspec import Struct
from pydantic import SecretStr

#: Failures in a row after which a session is left alone.
QUARANTINE_AFTER = 3
QUARANTINE_SECONDS = 300.0
#: More time-outs in a row than this, and the session is given up for a new one.
MAX_TIMEOUTS = 2
_HEX = re.compile(r"[0-9a-z]{4,32}")


class ProxyMode(StrEnum):
    #: One address for as long as it is good.
    STICKY = "sticky"
    #: Another address for each connection.
    ROTATING = "rotating"


class ProxyAccount(Struct, frozen=True, kw_only=True):
    """What the provider gave us."""

    host: str
    port: int
    username: str
    password: SecretStr
    #: Two letters; empty for any.
    country: str = ""
    mode: ProxyMode = ProxyMode.STICKY
    sticky_seconds: float = 600.0

    @property
    def server(self) -> str:
        return f"http://{self.host}:{self.port}"


class Credential(Struct, frozen=True):
    """What one session shows to the proxy."""

    username: str
    password: SecretStr


def credential(account: ProxyAccount, session: str) -> Credential:
    """Return the account's credential with country and session behind the password, as the provider reads it."""
    if not _HEX.fullmatch(session):
        raise ValueError("a session's name is 4 to 32 small letters and digits")
    parts = [account.password.get_secret_value()]
    if account.country:
        parts.append(f"country-{account.country.lower()}")
    if account.mode is ProxyMode.STICKY:
        parts += [f"session-{session}", f"lifetime-{max(1, round(account.sticky_seconds / 60))}m"]
    return Credential(account.username, SecretStr("_".join(parts)))


class ProxySession:
    """One session: how it goes, and when it was used."""

    def __init__(self, name: str, began_at: float) -> None:
        self.name = name
        self.began_at = began_at
        self.used_at = float("-inf")
        self.failures = 0
        self.timeouts = 0
        self.quarantined_until = float("-inf")

    def is_good(self, now: float) -> bool:
        return now >= self.quarantined_until


class ProxyRing:
    """The sessions of one source with the proxy."""

    def __init__(self, account: ProxyAccount, *, sessions: int, new_name: Callable[[], str], now: float) -> None:
        self.account = account
        self._new_name = new_name
        self._sessions = [ProxySession(new_name(), now) for _ in range(max(1, sessions))]

    @property
    def sessions(self) -> tuple[ProxySession, ...]:
        return tuple(self._sessions)

    def pick(self, now: float) -> ProxySession:
        """Return the good session that was not used for the longest time; there is always one."""
        for session in self._sessions:
            if self._is_over(session, now):
                self._replace(session, now)
        good = [session for session in self._sessions if session.is_good(now)]
        chosen = min(good or self._sessions, key=lambda session: session.used_at)
        chosen.used_at = now
        return chosen

    def has(self, name: str, now: float) -> bool:
        """Return whether a session is still to be used."""
        return any(each.name == name and each.is_good(now) and not self._is_over(each, now) for each in self._sessions)

    def succeeded(self, name: str) -> None:
        session = self._named(name)
        if session is not None:
            session.failures = session.timeouts = 0

    def refused(self, name: str, now: float) -> bool:
        """Give a session up since the site refused it; return whether it was there to be given up."""
        session = self._named(name)
        if session is not None:
            self._replace(session, now)
        return session is not None

    def timed_out(self, name: str, now: float) -> bool:
        """Note a time-out; return whether the session was given up. The first ones are forgiven."""
        session = self._named(name)
        if session is None:
            return False
        session.timeouts += 1
        if session.timeouts > MAX_TIMEOUTS:
            self._replace(session, now)
            return True
        if session.timeouts == 1:
            session.used_at = float("-inf")  # it may have been the site: the next request tries the same address
        return False

    def failed(self, name: str, now: float) -> float | None:
        """Note that the way through a session is broken; return for how long it is left alone, if it is.

        At most half of the sessions are: whatever breaks, somebody must go on.
        """
        session = self._named(name)
        if session is None:
            return None
        session.failures += 1
        resting = sum(not each.is_good(now) for each in self._sessions)
        if session.failures < QUARANTINE_AFTER or resting + 1 > len(self._sessions) // 2:
            return None
        session.failures = 0
        session.quarantined_until = now + QUARANTINE_SECONDS
        return QUARANTINE_SECONDS

    def _is_over(self, session: ProxySession, now: float) -> bool:
        return self.account.mode is ProxyMode.STICKY and now - session.began_at >= self.account.sticky_seconds

    def _named(self, name: str) -> ProxySession | None:
        return next((session for session in self._sessions if session.name == name), None)

    def _replace(self, session: ProxySession, now: float) -> None:
        fresh = ProxySession(self._new_name(), now)
        fresh.used_at = session.used_at
        fresh.quarantined_until = session.quarantined_until
        self._sessions[self._sessions.index(session)] = fresh
