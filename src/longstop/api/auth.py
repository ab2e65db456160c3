"""Who asks: tokens are issued and verified here, and a verified one says what its bearer may do."""

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Annotated, Any

import jwt
from fastapi import Request, Security
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from msgspec import Struct
from starlette.exceptions import HTTPException

from longstop.api.secret import Secret

ISSUER = "longstop"
AUDIENCE = "longstop-api"
ALGORITHM = "HS256"
#: Two machines' clocks may differ by this much.
LEEWAY_SECONDS = 30
#: Longer headers are refused before anything is decoded: decoding a huge one costs real time.
MAX_HEADER_CHARACTERS = 4096
#: A verified token is not verified again for this long.
CACHED_FOR = timedelta(seconds=60)
CACHED_TOKENS = 1024


class Permission(StrEnum):
    """What a bearer may do."""

    READ = "read"
    #: Give the scraper orders.
    ADMIN = "admin"


class Bearer(Struct, frozen=True, kw_only=True):
    """Whoever holds a token that was verified."""

    subject: str
    permissions: frozenset[str]
    #: Unix seconds.
    expires: int


class _Entry(Struct, frozen=True):
    bearer: Bearer
    verified_at: datetime


def issue_token(
    secret: Secret, *, subject: str, permissions: Collection[Permission], ttl: timedelta, now: datetime
) -> str:
    """Return a signed token."""
    issued = int(now.timestamp())
    claims = {
        "iss": ISSUER,
        "aud": AUDIENCE,
        "sub": subject,
        "iat": issued,
        "exp": issued + int(ttl.total_seconds()),
        "permissions": sorted(permissions),
    }
    return jwt.encode(claims, secret.key, algorithm=ALGORITHM)


class TokenVerifier:
    """Tells whose token a request carries. Only verified tokens are remembered, so strangers cannot fill the cache."""

    def __init__(self, secret: Secret) -> None:
        self._secret = secret
        self._verified: dict[str, _Entry] = {}

    def verify(self, header: str | None, now: datetime) -> Bearer | None:
        """Return the bearer named by an `Authorization` header, or `None` for anything that proves nothing."""
        if header is None or len(header) > MAX_HEADER_CHARACTERS:
            return None
        scheme, _, token = header.partition(" ")
        if scheme.lower() != "bearer":
            return None
        return self._recall(token, now) or self._check(token, now)

    def _recall(self, token: str, now: datetime) -> Bearer | None:
        entry = self._verified.get(token)
        if entry is None:
            return None
        # A clock set back must not make a cached token live longer, hence both bounds.
        if timedelta(0) <= now - entry.verified_at < CACHED_FOR and not _is_expired(entry.bearer.expires, now):
            return entry.bearer
        del self._verified[token]
        return None

    def _check(self, token: str, now: datetime) -> Bearer | None:
        bearer = _read_claims(_decode(token, self._secret), now)
        if bearer is not None:
            self._remember(token, _Entry(bearer, now))
        return bearer

    def _remember(self, token: str, entry: _Entry) -> None:
        if len(self._verified) >= CACHED_TOKENS:
            del self._verified[next(iter(self._verified))]
        self._verified[token] = entry


def _decode(token: str, secret: Secret) -> Mapping[str, Any]:
    """Return the claims of a well signed token, and none at all of any other."""
    try:
        return jwt.decode(
            token,
            secret.key,
            algorithms=[ALGORITHM],
            audience=AUDIENCE,
            issuer=ISSUER,
            options={
                "require": ["iss", "aud", "sub", "iat", "exp", "permissions"],
                "strict_aud": True,
                # Moments are checked below, against our clock: the library has its own, and takes "exp" as text.
                "verify_exp": False,
                "verify_iat": False,
                "verify_nbf": False,
            },
        )
    except (jwt.PyJWTError, ValueError):  # the latter for text that UTF-8 cannot write
        return {}


def _read_claims(claims: Mapping[str, Any], now: datetime) -> Bearer | None:
    """Return the bearer when every claim has its type and the moment is right."""
    match claims:
        case {"sub": str(subject), "iat": int(issued), "exp": int(expires), "permissions": list(permissions)}:
            not_before = claims.get("nbf", 0)
        case _:
            return None
    moments = (issued, expires, not_before)
    if any(type(moment) is not int for moment in moments) or not all(isinstance(each, str) for each in permissions):
        return None
    # One that was issued later than now is good: a clock that is set back must not lock out whoever asked before.
    if _is_expired(expires, now) or not_before > now.timestamp() + LEEWAY_SECONDS:
        return None
    return Bearer(subject=subject, permissions=frozenset(permissions), expires=expires)


def _is_expired(expires: int, now: datetime) -> bool:
    return now.timestamp() >= expires + LEEWAY_SECONDS


# --- in routes -------------------------------------------------------------------------------------------------------

_bearer_scheme = HTTPBearer(auto_error=False, description="A token from `longstop token`.")
Scheme = Annotated[HTTPAuthorizationCredentials | None, Security(_bearer_scheme)]


def require(verifier: TokenVerifier, permission: Permission, request: Request, now: datetime) -> Bearer:
    """Return who asks, or raise what whoever may not ask is told."""
    bearer = verifier.verify(request.headers.get("authorization"), now)
    if bearer is None:
        raise HTTPException(401, "A valid Bearer token is needed here.", {"WWW-Authenticate": "Bearer"})
    if permission not in bearer.permissions:
        raise HTTPException(403, f"This token does not carry the permission {permission}.")
    return bearer
