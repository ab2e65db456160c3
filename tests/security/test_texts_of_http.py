"""A site that writes escape sequences into its status line, headers and body, over a real socket."""

import asyncio
import io
import json
from datetime import UTC, datetime

import pytest

from longstop.cli.output import say_error
from longstop.clock import SystemClock
from longstop.errors import SourceError
from longstop.fetching.base import FetchRequest
from longstop.fetching.guarded_and_replaceable_fetcher import FetchPolicy
from longstop.fetching.http import HttpFetcher
from longstop.model.source_queries_and_answers import LIST, Query
from longstop.sources.bodies_and_urls import read_body
from longstop.sources.load_sources import make_source
from longstop.storage.error_pages_and_screenshots import file_name
from longstop.telemetry.events import Severity
from longstop.telemetry.events.matches import PollFailed
from longstop.telemetry.log import LogSink
from tests.builders import CREX_CONFIG
from tests.readers import ManualClock
from tests.security.hostile_texts import BIDI, FLOOD, ZERO_WIDTH, raw

#: Everything that a header can hold: no NUL, no line break.
HEADER = ("\x1b]8;;http://evil.test\x07\x1b[2J\x9b31m\x7f\t[red]" + BIDI + ZERO_WIDTH + FLOOD).encode()
OK = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b"


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 503 " + HEADER + b"\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 " + HEADER + b"\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 429 No\r\nRetry-After: " + HEADER + b"\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 302 Go\r\nLocation: http://" + HEADER + b"/\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 302 Go\r\nLocation: " + HEADER + b"://evil.test\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Encoding: " + HEADER + b"\r\nContent-Length: 2\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nContent-Length: " + HEADER + b"\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\n" + HEADER.replace(b":", b"") + b"\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + HEADER + b"\r\n{}",
        HEADER,
        OK % (len(HEADER), HEADER),
        OK % (len(HEADER) + 2, b'"' + HEADER + b'"'),
        OK % (len(HEADER) + 9, b'[{"mf": "' + HEADER),
        OK % (9, b'\xff\x1b[2J\n\r{}'),
    ],
    ids=[
        *("reason", "status", "retry-after", "host", "scheme", "encoding", "length", "header", "chunk", "no http"),
        *("body", "text", "truncated", "bytes"),
    ],
)  # fmt: skip
async def test_nothing_that_a_server_writes_is_raw_in_an_error_a_log_line_or_a_file_name(
    answer: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    error = await _error_of(answer)
    stream = io.StringIO()

    say_error(error)
    event = PollFailed(match_id=1, ref="crex_1", error_type=type(error).__name__, error_message=str(error))
    LogSink(process="scraper", level=Severity.DEBUG, clock=ManualClock(), stream=stream).take(event)

    sentence = capsys.readouterr().err
    assert raw(sentence) == set()
    assert sentence.count("\n") == 1
    assert raw(stream.getvalue()) == set()
    assert json.loads(stream.getvalue())["error_message"] == str(error)
    assert file_name(str(error), datetime(2026, 3, 7, tzinfo=UTC)).isascii()


async def _error_of(answer: bytes) -> SourceError:
    """Return the error of fetching an answer, or of reading it as a list."""

    async def respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(respond, "127.0.0.1", 0) as server:
        authority = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        policy = FetchPolicy(hosts=(authority,), allow_private_addresses=True, deadline_seconds=5.0)
        fetcher = HttpFetcher(policy, SystemClock())
        try:
            page = await fetcher.fetch(FetchRequest(source="crex", url=f"http://{authority}/"))
            read_body(make_source(CREX_CONFIG), Query(resource=LIST), page.body)
        except SourceError as error:
            return error
        finally:
            await fetcher.aclose()
    raise AssertionError("this answer is readable: it proves nothing here")
