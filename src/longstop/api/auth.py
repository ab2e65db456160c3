"""Bearer tokens: the signing secret, issuing, verifying, and the check that routes use."""

import errno
import os
import secrets
import stat
from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Self

import jwt
from fastapi import Request, Security
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from msgspec import Struct
from starlette.exceptions import HTTPException

from longstop.errors import UsageError

ISSUER = "longstop"
AUDIENCE = "longstop-api"
ALGORITHM = "HS256"
#: An HS256 key gets stronger up to 32 bytes.
SECRET_BYTES = 32
#: Tolerated difference between the clocks of two machines.
LEEWAY_SECONDS = 30
#: Longer headers are rejected before decoding, which would be expensive.
MAX_HEADER_CHARACTERS = 4096
#: A verified token is trusted for this long without another signature check.
CACHED_FOR = timedelta(seconds=60)
CACHED_TOKENS = 1024
_MAX_FILE_BYTES = 4096

_MISSING = "This route needs a Bearer token: run `longstop token` and send it as `Authorization: Bearer TOKEN`."
_INVALID = (
    "This token is not valid here: it has expired, is damaged, or was issued for another data directory. "
    "Run `longstop token` for a new one."
)


class Permission(StrEnum):
    """What a token allows."""

    READ = "read"
    #: Send commands to the scraper.
    ADMIN = "admin"


class Bearer(Struct, frozen=True, kw_only=True):
    """The owner of a verified token."""

    subject: str
    permissions: frozenset[str]
    #: Unix seconds.
    expires: int


# --- the secret -------------------------------------------------------------------------------------------------------


class Secret:
    """A signing key. Its `repr` hides the key from logs and tracebacks."""

    def __init__(self, key: bytes) -> None:
        if len(key) < SECRET_BYTES:
            raise UsageError(f"a signing secret needs at least {SECRET_BYTES} bytes, this one has {len(key)}")
        self.key = key

    def __repr__(self) -> str:
        return "Secret(…)"

    @classmethod
    def load_or_create(cls, path: Path) -> Self:
        """Return the secret in this file. A missing file is created atomically."""
        try:
            if not os.path.lexists(path):
                _create(path)
            return cls(_read(path))
        except OSError as error:
            raise UsageError(f"cannot use the token secret {path}: {_why(error)}") from error


def _create(path: Path) -> None:
    """Write a new secret beside the path and link it into place, so that no reader sees a partial file."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(secrets.token_hex(SECRET_BYTES) + "\n")
            file.flush()
            os.fsync(file.fileno())
        try:
            path.hardlink_to(draft)
        except FileExistsError:
            return  # another process created it first: use that one
    finally:
        draft.unlink()


def _read(path: Path) -> bytes:
    # O_NONBLOCK: opening a FIFO must not block. It is rejected below.
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        _refuse_unsafe(path, os.fstat(descriptor))
        text = file.read(_MAX_FILE_BYTES)
    try:
        return bytes.fromhex(text.decode("ascii"))
    except ValueError as error:
        raise UsageError(f"the token secret {path} is not hexadecimal: remove it and a new one is created") from error


def _refuse_unsafe(path: Path, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise UsageError(f"the token secret {path} is not a regular file: remove it and a new one is created")
    if status.st_mode & 0o077:
        raise UsageError(f"other users can read the token secret {path}: run chmod 600 {path}, or remove it")


def _why(error: OSError) -> str:
    return "it is a symbolic link" if error.errno == errno.ELOOP else (error.strerror or type(error).__name__)


# --- tokens -----------------------------------------------------------------------------------------------------------


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


class _CachedToken(Struct, frozen=True):
    bearer: Bearer
    verified_at: datetime


class TokenVerifier:
    """Verifies `Authorization` headers. Caches valid tokens only, so that invalid ones cannot fill the cache."""

    def __init__(self, secret: Secret) -> None:
        self._secret = secret
        self._verified: dict[str, _CachedToken] = {}

    def verify(self, header: str | None, now: datetime) -> Bearer | None:
        """Return the owner of the token in an `Authorization` header; `None` when it has no valid token."""
        if header is None or len(header) > MAX_HEADER_CHARACTERS:
            return None
        scheme, _, token = header.partition(" ")
        if scheme.lower() != "bearer":
            return None
        return self._cached(token, now) or self._check(token, now)

    def _cached(self, token: str, now: datetime) -> Bearer | None:
        entry = self._verified.get(token)
        if entry is None:
            return None
        # Both bounds: a clock that is set back must not extend the life of a cached token.
        if timedelta(0) <= now - entry.verified_at < CACHED_FOR and not _is_expired(entry.bearer.expires, now):
            return entry.bearer
        del self._verified[token]
        return None

    def _check(self, token: str, now: datetime) -> Bearer | None:
        bearer = _read_claims(_decode(token, self._secret), now)
        if bearer is not None:
            if len(self._verified) >= CACHED_TOKENS:
                del self._verified[next(iter(self._verified))]
            self._verified[token] = _CachedToken(bearer, now)
        return bearer


def _decode(token: str, secret: Secret) -> Mapping[str, Any]:
    """Return the claims of a correctly signed token, else an empty mapping."""
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
                # Times are checked below with our clock: the library uses its own and accepts "exp" as text.
                "verify_exp": False,
                "verify_iat": False,
                "verify_nbf": False,
            },
        )
    except (jwt.PyJWTError, ValueError):  # ValueError: text that UTF-8 cannot encode
        return {}


def _read_claims(claims: Mapping[str, Any], now: datetime) -> Bearer | None:
    """Return the bearer if every claim has the right type and the token is valid now."""
    match claims:
        case {"sub": str(subject), "iat": int(issued), "exp": int(expires), "permissions": list(permissions)}:
            not_before = claims.get("nbf", 0)
        case _:
            return None
    times = (issued, expires, not_before)
    if any(type(each) is not int for each in times) or not all(isinstance(each, str) for each in permissions):
        return None
    # "iat" may be in the future: a clock that is set back must not invalidate tokens issued before.
    if _is_expired(expires, now) or not_before > now.timestamp() + LEEWAY_SECONDS:
        return None
    return Bearer(subject=subject, permissions=frozenset(permissions), expires=expires)


def _is_expired(expires: int, now: datetime) -> bool:
    return now.timestamp() >= expires + LEEWAY_SECONDS


# --- in routes --------------------------------------------------------------------------------------------------------

_bearer_scheme = HTTPBearer(auto_error=False, description="A token from `longstop token`.")
#: Documents the security scheme of a route; `require` does the check.
BearerScheme = Annotated[HTTPAuthorizationCredentials | None, Security(_bearer_scheme)]


def require(verifier: TokenVerifier, permission: Permission, request: Request, now: datetime) -> Bearer:
    """Return the bearer of a request; raise 401 or 403 without a valid token that has the permission."""
    header = request.headers.get("authorization")
    bearer = verifier.verify(header, now)
    if bearer is None:
        raise HTTPException(401, _INVALID if header else _MISSING, {"WWW-Authenticate": "Bearer"})
    if permission not in bearer.permissions:
        option = " --admin" if permission is Permission.ADMIN else ""
        raise HTTPException(
            403, f"This token does not have the permission {permission}: run `longstop token{option}` for one that has."
        )
    return bearer
