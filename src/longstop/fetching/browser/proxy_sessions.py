"""Sessions with a proxy: which one is used next, and which ones are in quarantine. Pure: time is an argument.

A sticky session is a name in the credential, for which the provider keeps one IP address. Credentials are passed to
browser and curl as values, never on a command line, and appear in no log or error.
"""

from collections.abc import Callable
from enum import StrEnum

from msgspec import Struct
from pydantic import SecretStr

from longstop.fetching.base import HttpProxy

#: Consecutive failures after which a session is put in quarantine.
QUARANTINE_AFTER = 3
QUARANTINE_SECONDS = 300.0
#: After more consecutive time-outs than this a session is replaced.
MAX_TIMEOUTS = 2


class ProxyMode(StrEnum):
    #: One IP address for as long as it works.
    STICKY = "sticky"
    #: Another IP address for each connection.
    ROTATING = "rotating"


class ProxyAccount(Struct, frozen=True, kw_only=True):
    host: str
    port: int
    username: str
    password: SecretStr
    #: Two letters; empty for any.
    country: str = ""
    mode: ProxyMode = ProxyMode.STICKY
    sticky_seconds: float = 600.0


def session_proxy(account: ProxyAccount, session: str) -> HttpProxy:
    """Return the proxy with the credential of a session: country and session follow the password."""
    parts = [account.password.get_secret_value()]
    if account.country:
        parts.append(f"country-{account.country.lower()}")
    if account.mode is ProxyMode.STICKY:
        parts += [f"session-{session}", f"lifetime-{max(1, round(account.sticky_seconds / 60))}m"]
    password = SecretStr("_".join(parts))
    return HttpProxy(server=f"http://{account.host}:{account.port}", username=account.username, password=password)


class ProxySession(Struct, eq=False):
    """One session: when it was used, and how often it failed."""

    name: str
    started_at: float
    used_at: float = float("-inf")
    failures: int = 0
    timeouts: int = 0
    quarantined_until: float = float("-inf")

    def is_good(self, now: float) -> bool:
        return now >= self.quarantined_until


class ProxyRing:
    """The proxy sessions of one source."""

    def __init__(self, account: ProxyAccount, *, sessions: int, new_name: Callable[[], str], now: float) -> None:
        self.account = account
        self._new_name = new_name
        self._sessions = [ProxySession(new_name(), now) for _ in range(max(1, sessions))]

    @property
    def sessions(self) -> tuple[ProxySession, ...]:
        return tuple(self._sessions)

    def pick(self, now: float) -> ProxySession:
        """Return the least recently used good session, or the least recently used one if none is good."""
        for session in self._sessions:
            if self._is_expired(session, now):
                self._replace(session, now)
        good = [session for session in self._sessions if session.is_good(now)]
        chosen = min(good or self._sessions, key=lambda session: session.used_at)
        chosen.used_at = now
        return chosen

    def has(self, name: str, now: float) -> bool:
        """Return whether a session may still be used."""
        return any(
            each.name == name and each.is_good(now) and not self._is_expired(each, now) for each in self._sessions
        )

    def succeeded(self, name: str) -> None:
        session = self._named(name)
        if session is not None:
            session.failures = session.timeouts = 0

    def refused(self, name: str, now: float) -> bool:
        """Replace a session that the site refused; return whether it was still in use."""
        session = self._named(name)
        if session is not None:
            self._replace(session, now)
        return session is not None

    def timed_out(self, name: str, now: float) -> bool:
        """Count a time-out; return whether the session was replaced. The first ones are tolerated."""
        session = self._named(name)
        if session is None:
            return False
        session.timeouts += 1
        if session.timeouts > MAX_TIMEOUTS:
            self._replace(session, now)
            return True
        if session.timeouts == 1:
            session.used_at = float("-inf")  # the site may be the cause: retry with the same IP address
        return False

    def failed(self, name: str, now: float) -> float | None:
        """Count a failure of the proxy; return for how long the session is in quarantine, if it is.

        At most half of the sessions are at one time, so that requests can always be sent.
        """
        session = self._named(name)
        if session is None:
            return None
        session.failures += 1
        in_quarantine = sum(not each.is_good(now) for each in self._sessions)
        if session.failures < QUARANTINE_AFTER or in_quarantine + 1 > len(self._sessions) // 2:
            return None
        session.failures = 0
        session.quarantined_until = now + QUARANTINE_SECONDS
        return QUARANTINE_SECONDS

    def _is_expired(self, session: ProxySession, now: float) -> bool:
        return self.account.mode is ProxyMode.STICKY and now - session.started_at >= self.account.sticky_seconds

    def _named(self, name: str) -> ProxySession | None:
        return next((session for session in self._sessions if session.name == name), None)

    def _replace(self, session: ProxySession, now: float) -> None:
        new = ProxySession(self._new_name(), now)
        new.used_at = session.used_at
        new.quarantined_until = session.quarantined_until
        self._sessions[self._sessions.index(session)] = new
