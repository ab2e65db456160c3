"""Bearer tokens: the signing secret, issuing, verifying, and the check that routes use."""

import secrets
from collections.abc import Collection
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Self

import jwt
import msgspec
from fastapi import Request, Security
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from msgspec import Struct, field
from starlette.exceptions import HTTPException

from longstop.clock import SystemClock
from longstop.errors import UsageError
from longstop.settings import Settings
from longstop.storage.directory import DataDirectory, create_once

ISSUER = "longstop"
AUDIENCE = "longstop-api"
ALGORITHM = "HS256"
#: An HS256 key gets stronger up to 32 bytes.
SECRET_BYTES = 32
#: Of a larger file only this is read.
MAX_SECRET_FILE_BYTES = 4096
#: Tolerated difference between the clocks of two machines.
LEEWAY_SECONDS = 30
#: Longer headers are rejected before decoding, which would be expensive.
MAX_HEADER_CHARACTERS = 4096
MAX_SUBJECT_CHARACTERS = 200
_MISSING = (
    "This route needs a Bearer token: run `longstop token --data DIR` and send it as `Authorization: Bearer TOKEN`."
)
_INVALID = (
    "This token is not valid here: it has expired, is damaged, or was issued for another data directory. "
    "Run `longstop token --data DIR` with the data directory of this API for a new one."
)


class Permission(StrEnum):
    READ = "read"
    #: Send commands to the scraper.
    ADMIN = "admin"


class Bearer(Struct, frozen=True, kw_only=True):
    """The owner of a token, and when it is valid, in Unix seconds: the claims, which must have exactly these types."""

    subject: str = field(name="sub")
    permissions: frozenset[str]
    #: May lie in the future: a clock that is set back must not invalidate tokens issued before.
    issued: int = field(name="iat")
    expires: int = field(name="exp")
    not_before: int = field(name="nbf", default=0)


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
            if not path.exists():
                create_once(path, secrets.token_hex(SECRET_BYTES) + "\n")
            if not path.is_file():
                raise UsageError(f"the token secret {path} is not a regular file: remove it, and restart the API")
            if path.stat().st_mode & 0o077:
                raise UsageError(f"other users can read the token secret {path}: run chmod 600 {path}, or remove it")
            with path.open("rb") as file:
                key = bytes.fromhex(file.read(MAX_SECRET_FILE_BYTES).decode("ascii"))
        except OSError as error:
            raise UsageError(f"cannot use the token secret {path}: {error.strerror}") from error
        except ValueError:
            key = b""
        if len(key) < SECRET_BYTES:
            raise UsageError(
                f"the token secret {path} is empty or damaged, so no token can be checked: copy it from a backup, or "
                "remove it and restart the API to get a new one; tokens issued so far are not valid then"
            )
        return cls(key)


# --- tokens -----------------------------------------------------------------------------------------------------------


def issue_token(
    secret: Secret, *, subject: str, permissions: Collection[Permission], ttl: timedelta, now: datetime
) -> str:
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


def is_subject(text: str) -> bool:
    """Return whether this can name the owner of a token: it is stored with commands and shown in tables."""
    return 0 < len(text) <= MAX_SUBJECT_CHARACTERS and text.isprintable()


def verify_token(secret: Secret, header: str | None, now: datetime) -> Bearer | None:
    """Return the owner of the token in an `Authorization` header; `None` when it has no valid token."""
    if header is None or len(header) > MAX_HEADER_CHARACTERS:
        return None
    scheme, _, token = header.partition(" ")
    if scheme.lower() != "bearer":
        return None
    try:
        claims = jwt.decode(
            token,
            secret.key,
            algorithms=[ALGORITHM],
            audience=AUDIENCE,
            issuer=ISSUER,
            # Times are checked below with our clock: the library uses its own and accepts "exp" as text.
            options={"strict_aud": True, "verify_exp": False, "verify_iat": False, "verify_nbf": False},
        )
        bearer = msgspec.convert(claims, Bearer)
    except (jwt.PyJWTError, msgspec.ValidationError, ValueError):  # ValueError: text that UTF-8 cannot encode
        return None
    if not is_subject(bearer.subject):
        return None
    is_valid = bearer.not_before - LEEWAY_SECONDS <= now.timestamp() < bearer.expires + LEEWAY_SECONDS
    return bearer if is_valid else None


# --- in routes --------------------------------------------------------------------------------------------------------

_bearer_scheme = HTTPBearer(auto_error=False, description="A token from `longstop token --data DIR`.")
#: Documents the security scheme of a route; `require` does the check.
BearerScheme = Annotated[HTTPAuthorizationCredentials | None, Security(_bearer_scheme)]


def require(secret: Secret, permission: Permission, request: Request, now: datetime) -> Bearer:
    """Return the bearer of a request; raise 401 or 403 without a valid token that has the permission."""
    header = request.headers.get("authorization")
    bearer = verify_token(secret, header, now)
    if bearer is None:
        is_bearer = header is not None and header.lower().startswith("bearer ")
        raise HTTPException(401, _INVALID if is_bearer else _MISSING, {"WWW-Authenticate": "Bearer"})
    if permission not in bearer.permissions:
        option = " --admin" if permission is Permission.ADMIN else ""
        advice = f"get one with `longstop token{option} --data DIR`"
        raise HTTPException(403, f"This token does not have the permission {permission}: {advice}.")
    return bearer


def make_token(settings: Settings, subject: str, *, is_admin: bool = False) -> str:
    """Return a token with the permission to read, and to send commands if `is_admin`. The settings limit its life."""
    if not is_subject(subject):
        raise UsageError(
            f"this is no name for the owner of a token: write 1 to {MAX_SUBJECT_CHARACTERS} printable characters"
        )
    ttl = timedelta(hours=settings.api.token_ttl_hours)
    permissions = [Permission.READ, Permission.ADMIN] if is_admin else [Permission.READ]
    return issue_token(
        load_secret(settings), subject=subject, permissions=permissions, ttl=ttl, now=SystemClock().now()
    )


def load_secret(settings: Settings) -> Secret:
    """Return the key that signs tokens; it is created on first use."""
    return Secret.load_or_create(DataDirectory.open(settings.data).path / "token-secret")
