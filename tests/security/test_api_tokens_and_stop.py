"""Hostile names in tokens, damaged secrets, and commands that are in flight when the API is asked to stop."""

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path

import jwt
import psutil
import pytest

from longstop.api.tokens import ALGORITHM, AUDIENCE, ISSUER, load_secret, make_token
from longstop.clock import SystemClock
from longstop.settings import load_settings
from longstop.supervision.exit_codes import Exit
from tests.security.api_process import ApiProcess, running_api

RECYCLE = b"POST /admin/recycle HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nAuthorization: Bearer %b\r\n"
SUBJECTS = {
    "5,000 characters": "s" * 5000,
    "no character": "",
    "invalid UTF-8": "a\udcff",
    "a control character": "a\x1b[2J",
    "a bidirectional control": "a\u202eb",
    "two lines": "a\nb",
}
subjects = pytest.mark.parametrize("subject", SUBJECTS.values(), ids=SUBJECTS.keys())


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiProcess]:
    with running_api(tmp_path_factory.mktemp("data")) as started:
        yield started


def longstop(*arguments: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([sys.executable, "-m", "longstop", *arguments], capture_output=True, timeout=60, check=False)


@subjects
def test_no_token_is_issued_to_a_name_that_cannot_be_shown(tmp_path: Path, subject: str) -> None:
    done = longstop("token", "--data", str(tmp_path), "--subject", subject)

    assert done.returncode == Exit.USAGE
    assert done.stdout == b""
    reason = "not valid UTF-8" if subject == SUBJECTS["invalid UTF-8"] else "1 to 200 printable characters"
    assert reason.encode() in b" ".join(done.stderr.split())
    assert b"Traceback" not in done.stderr


@subjects
def test_a_signed_token_with_a_name_that_cannot_be_shown_is_not_valid(api: ApiProcess, subject: str) -> None:
    now = SystemClock().now()
    claims = {
        "iss": ISSUER,
        "aud": AUDIENCE,
        "sub": subject,
        "iat": int(now.timestamp()),
        "exp": int((now + timedelta(hours=1)).timestamp()),
        "permissions": ["admin", "read"],
    }
    secret = load_secret(load_settings({"LONGSTOP_DATA": str(api.log.parent)}, {}))
    token = jwt.encode(claims, secret.key, algorithm=ALGORITHM).encode()

    answer = api.exchange(RECYCLE % token + b"Connection: close\r\n\r\n", within=20)

    assert answer.startswith(b"HTTP/1.1 401 ")
    assert b"request.failed" not in api.log.read_bytes()


@pytest.mark.parametrize("content", [b"", b"ab" * 8, b"\xff\xfe"])
@pytest.mark.parametrize("verb", ["api", "token"])
def test_a_damaged_secret_is_reported_with_what_to_do(tmp_path: Path, verb: str, content: bytes) -> None:
    load_secret(load_settings({"LONGSTOP_DATA": str(tmp_path)}, {}))
    (tmp_path / "token-secret").write_bytes(content)

    done = longstop(verb, "--data", str(tmp_path), *(["--port", "0"] if verb == "api" else []))

    text = b" ".join(done.stderr.split())
    assert done.returncode == Exit.USAGE
    assert b"token-secret is empty or damaged" in text
    assert b"remove it and restart the API" in text
    assert b"Traceback" not in done.stderr


def test_a_command_in_flight_at_the_stop_is_answered_with_a_sentence(tmp_path: Path) -> None:
    answers: list[bytes] = []
    with running_api(tmp_path) as api:
        token = make_token(load_settings({"LONGSTOP_DATA": str(tmp_path)}, {}), "tester", is_admin=True).encode()

        def command() -> None:
            answers.append(api.exchange(RECYCLE % token + b"\r\n", within=20))

        threads = [threading.Thread(target=command) for _ in range(5)]
        for thread in threads:
            thread.start()
        time.sleep(1)
        began = time.monotonic()
        api.process.terminate()
        for thread in threads:
            thread.join(20)
        seconds = time.monotonic() - began

    assert len(answers) == 5
    for answer in answers:
        assert answer.startswith(b"HTTP/1.1 503 ")
        assert b"may still be carried out" in answer
    assert seconds < 3


def test_hostile_connections_do_not_delay_the_stop(tmp_path: Path) -> None:
    with running_api(tmp_path) as api, ExitStack() as stack:
        for number in range(60):
            client = stack.enter_context(api.connect())
            client.sendall((b"", b"GET /live HTTP/1.1\r\nX: ", b"GET /openapi.json HTTP/1.1\r\n\r\n" * 30)[number % 3])
        time.sleep(1)
        began = time.monotonic()
        api.process.terminate()
        gone, _ = psutil.wait_procs([api.process], timeout=20)

        assert gone == [api.process]
        assert time.monotonic() - began < 8
        assert b"Traceback" not in api.log.read_bytes()
