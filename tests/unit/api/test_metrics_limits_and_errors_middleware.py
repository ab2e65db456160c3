import httpx
import pytest

from longstop.api.json_and_error_responses import STORE_UNREADABLE
from longstop.api.metrics_limits_and_errors_middleware import RequestFailed
from longstop.errors import StorageError
from tests.readers import MemoryReader
from tests.unit.api.conftest import RecordingSink


@pytest.mark.parametrize(
    ("method", "path", "status", "sentence"),
    [
        ("GET", "/nothing", 404, "No such route; /docs lists them."),
        ("GET", "/health/", 404, "No such route; /docs lists them."),
        ("POST", "/health", 405, "This route only accepts GET."),
        ("DELETE", "/cricket-data/match-info/1", 405, "This route only accepts GET."),
    ],
)
async def test_every_refusal_is_one_json_sentence(
    client: httpx.AsyncClient, method: str, path: str, status: int, sentence: str
) -> None:
    answer = await client.request(method, path)

    assert (answer.status_code, answer.json()) == (status, {"error": sentence})
    assert answer.headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize("path", ["/live", "/nothing", "/cricket-data/matches", "/openapi.json"])
async def test_every_answer_carries_the_safe_headers(stranger: httpx.AsyncClient, path: str) -> None:
    answer = await stranger.get(path)

    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["X-Frame-Options"] == "DENY"
    assert "frame-ancestors 'none'" in answer.headers["Content-Security-Policy"]
    assert "Server" not in answer.headers


async def test_a_long_query_is_refused(client: httpx.AsyncClient) -> None:
    answer = await client.get("/cricket-data/matches?" + "limit=1&" * 300)

    assert answer.status_code == 414
    assert "2048" in answer.json()["error"]


@pytest.mark.parametrize("announced", ["100000000", "9" * 5000, "-1", "x", "²"])
async def test_a_body_too_large_or_of_no_sensible_size_is_refused(client: httpx.AsyncClient, announced: str) -> None:
    answer = await client.get("/cricket-data/matches", headers=[(b"Content-Length", announced.encode())])

    assert answer.status_code == 413


async def test_an_unexpected_error_is_logged_in_full_and_hidden_from_the_client(
    client: httpx.AsyncClient, reader: MemoryReader, sink: RecordingSink
) -> None:
    reader.broken = RuntimeError("canary")

    answer = await client.get("/cricket-data/match-info/1?token=hidden")

    assert answer.status_code == 500
    assert answer.json() == {"error": "Internal error; see request.failed in the log of the API."}
    assert answer.headers["X-Frame-Options"] == "DENY"
    (event,) = sink.events
    assert isinstance(event, RequestFailed)
    assert (event.path, event.error_type, event.error_message) == (
        "/cricket-data/match-info/1",
        "RuntimeError",
        "canary",
    )
    assert "readers.py" in event.stack_trace


async def test_a_store_that_cannot_be_read_is_said_to_come_back(
    client: httpx.AsyncClient, reader: MemoryReader, sink: RecordingSink
) -> None:
    reader.broken = StorageError("disk I/O error")

    answer = await client.get("/cricket-data/matches")

    assert answer.status_code == 503
    assert answer.json() == {"error": STORE_UNREADABLE}
    assert answer.headers["Retry-After"] == "5"
    assert [event.name for event in sink.events] == ["request.failed"]
