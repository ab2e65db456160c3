import base64
import hmac
import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import jwt
import pytest

from longstop.api.tokens import (
    MAX_HEADER_CHARACTERS,
    SECRET_BYTES,
    Permission,
    Secret,
    issue_token,
    verify_token,
)
from longstop.errors import UsageError
from tests.readers import NOW

SECRET = Secret(b"s" * 32)
MISSING = (
    "This route needs a Bearer token: run `longstop token --data DIR` and send it as `Authorization: Bearer TOKEN`."
)
INVALID = (
    "This token is not valid here: it has expired, is damaged, or was issued for another data directory. "
    "Run `longstop token --data DIR` with the data directory of this API for a new one."
)
ISSUED = int(NOW.timestamp())
CLAIMS: dict[str, Any] = {
    "iss": "longstop",
    "aud": "longstop-api",
    "sub": "tester",
    "iat": ISSUED,
    "exp": ISSUED + 3600,
    "permissions": ["read"],
}


def signed(headers: dict[str, Any] | None = None, key: bytes = SECRET.key, alg: str = "HS256", **changes: Any) -> str:
    return "Bearer " + jwt.encode(CLAIMS | changes, key, algorithm=alg, headers=headers)


def without(claim: str) -> str:
    claims = {name: value for name, value in CLAIMS.items() if name != claim}
    return "Bearer " + jwt.encode(claims, SECRET.key, algorithm="HS256")


def right_signature(text: bytes) -> bytes:
    return hmac.digest(SECRET.key, text, "sha256")


def crafted(header: object, payload: object = CLAIMS, sign: Callable[[bytes], bytes] = lambda _text: b"") -> str:
    parts = [_segment(json.dumps(header).encode()), _segment(json.dumps(payload).encode())]
    signature = _segment(sign(".".join(parts).encode()))
    return f"Bearer {'.'.join(parts)}.{signature}"


def _segment(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def deep_header() -> str:
    header = _segment(b'{"alg":"HS256","x":' + b"[" * 1400 + b"]" * 1400 + b"}")
    return f"Bearer {header}.{_segment(b'{}')}.{_segment(b'x')}"


ATTACKS: dict[str, str | None] = {
    "no header": None,
    "empty": "",
    "no scheme": signed().removeprefix("Bearer "),
    "another scheme": signed().replace("Bearer", "Basic"),
    "only the scheme": "Bearer ",
    "three dots": "Bearer ...",
    "not ASCII": "Bearer \xe9\xe9.\xe9.\xe9",
    "alg none": crafted({"alg": "none", "typ": "JWT"}),
    "alg None": crafted({"alg": "None", "typ": "JWT"}),
    "alg missing": crafted({"typ": "JWT"}),
    "alg is a list": crafted({"alg": ["HS256"]}),
    "another alg, right key": signed(key=SECRET.key * 2, alg="HS512"),
    "another key": signed(key=b"t" * 32),
    "own key in the header": signed({"jwk": {"kty": "oct", "k": _segment(b"t" * 32)}}, key=b"t" * 32),
    "key by path": signed({"kid": "../../../dev/null"}, key=b"\0" * 32),
    "key id is a number": crafted({"alg": "HS256", "kid": 7}, sign=right_signature),
    "unknown crit": signed({"crit": ["x-must"], "x-must": 1}),
    "b64 false": signed({"b64": False}),
    "deep header": deep_header(),
    "longer than 4 KB": signed(padding="x" * 5000),
    "truncated signature": signed()[:-4],
    "no signature": signed().rpartition(".")[0] + ".",
    "payload of another": signed().replace(
        signed().split(".")[1], _segment(json.dumps(CLAIMS | {"sub": "x"}).encode())
    ),
    "expired": signed(exp=ISSUED - 31),
    "exp as text": signed(exp=str(ISSUED + 3600)),
    "exp as a fraction": signed(exp=ISSUED + 3600.5),
    "exp as a truth": signed(exp=True),
    "exp is null": signed(exp=None),
    "iat as text": signed(iat=str(ISSUED)),
    "not yet": signed(nbf=ISSUED + 31),
    "nbf as text": signed(nbf="0"),
    "another issuer": signed(iss="someone"),
    "another audience": signed(aud="someone"),
    "a list of audiences": signed(aud=["longstop-api", "someone"]),
    "subject is a list": signed(sub=["tester"]),
    "permissions as text": signed(permissions="read"),
    "permissions of numbers": signed(permissions=[1]),
    **{f"no {claim}": without(claim) for claim in CLAIMS},
}


@pytest.mark.req("FR-026")
@pytest.mark.parametrize("header", ATTACKS.values(), ids=ATTACKS.keys())
async def test_every_invalid_token_gets_the_same_answer(stranger: httpx.AsyncClient, header: str | None) -> None:
    headers = [] if header is None else [(b"Authorization", header.encode("latin-1"))]

    for path in ("/cricket-data/match-info/1", "/cricket-data/matches", "/cricket-data/match-info/1/events"):
        answer = await stranger.get(path, headers=headers)

        assert answer.status_code == 401
        assert answer.json() == {"error": INVALID if (header or "").startswith("Bearer ") else MISSING}
        assert answer.headers["WWW-Authenticate"] == "Bearer"
        assert answer.headers["Cache-Control"] == "no-store"


def test_crafted_tokens_differ_from_a_valid_one_in_one_thing_only() -> None:
    honest = crafted({"alg": "HS256", "typ": "JWT"}, sign=right_signature)

    assert verify_token(SECRET, honest, NOW) is not None
    assert len(deep_header()) <= MAX_HEADER_CHARACTERS


@pytest.mark.req("FR-026")
@pytest.mark.parametrize(
    "header",
    [
        signed(),
        signed().replace("Bearer", "bearer"),
        signed(nbf=ISSUED),
        signed(iat=ISSUED + 3600, exp=ISSUED + 7200),  # the clock was set back since
    ],
)
def test_an_honest_token_is_let_in(header: str) -> None:
    bearer = verify_token(SECRET, header, NOW)

    assert bearer is not None
    assert bearer.subject == "tester"
    assert bearer.permissions == {"read"}


async def test_a_token_without_the_permission_is_forbidden(stranger: httpx.AsyncClient) -> None:
    answer = await stranger.get("/cricket-data/match-info/1", headers={"Authorization": signed(permissions=["batch"])})

    assert answer.status_code == 403
    assert answer.json() == {
        "error": "This token does not have the permission read: get one with `longstop token --data DIR`."
    }


def test_text_that_cannot_be_encoded_proves_nothing() -> None:
    assert verify_token(SECRET, "Bearer \ud800.a.b", NOW) is None


def test_an_issued_token_carries_its_claims_and_ends_with_its_ttl() -> None:
    token = issue_token(SECRET, subject="me", permissions=[Permission.READ], ttl=timedelta(hours=24), now=NOW)

    claims = jwt.decode(
        token, SECRET.key, ["HS256"], {"verify_exp": False, "verify_iat": False}, audience="longstop-api"
    )

    assert claims == CLAIMS | {"sub": "me", "exp": ISSUED + 86400}
    assert verify_token(SECRET, f"Bearer {token}", NOW + timedelta(hours=24, seconds=29)) is not None
    assert verify_token(SECRET, f"Bearer {token}", NOW + timedelta(hours=24, seconds=30)) is None


def test_a_token_expires_at_its_moment_and_is_not_valid_before_its_start() -> None:
    header = signed(nbf=ISSUED, exp=ISSUED + 10)

    assert verify_token(SECRET, header, NOW) is not None
    assert verify_token(SECRET, header, NOW + timedelta(seconds=39)) is not None
    assert verify_token(SECRET, header, NOW + timedelta(seconds=40)) is None
    assert verify_token(SECRET, header, NOW - timedelta(hours=1)) is None


def test_a_new_secret_is_random_and_only_its_owner_can_read_it(tmp_path: Path) -> None:
    first = Secret.load_or_create(tmp_path / "one")
    second = Secret.load_or_create(tmp_path / "two")

    assert len(first.key) == SECRET_BYTES
    assert first.key != second.key
    assert (tmp_path / "one").stat().st_mode & 0o777 == 0o600
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one", "two"]


def test_a_secret_that_exists_is_used_again(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    created = Secret.load_or_create(path)

    loaded = Secret.load_or_create(path)

    assert loaded.key == created.key


def test_a_secret_created_by_another_process_first_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "secret"
    first = Secret.load_or_create(path)
    monkeypatch.setattr(Path, "exists", lambda _path: False)

    second = Secret.load_or_create(path)

    assert second.key == first.key
    assert [each.name for each in tmp_path.iterdir()] == ["secret"]


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o602])
def test_a_secret_that_others_can_reach_is_refused(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "secret"
    Secret.load_or_create(path)
    path.chmod(mode)

    with pytest.raises(UsageError, match="chmod 600"):
        Secret.load_or_create(path)


@pytest.mark.parametrize("content", [b"not hex", b"abcd", b"", b"\xff" * 64, b"\0" * 100_000])
def test_a_damaged_secret_is_refused_with_a_sentence_that_says_what_to_do(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "secret"
    path.write_bytes(content)
    path.chmod(0o600)

    with pytest.raises(UsageError, match=r"secret is empty or damaged.* remove it and restart the API"):
        Secret.load_or_create(path)


def test_a_missing_directory_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        Secret.load_or_create(tmp_path / "absent" / "secret")


def test_a_secret_does_not_show_itself() -> None:
    secret = Secret(b"canary-canary-canary-canary-canary")

    assert "canary" not in repr(secret)
    assert "canary" not in f"{secret}"
