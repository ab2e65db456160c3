"""From curl's errors to ours."""

import pytest
from curl_cffi import CurlError
from curl_cffi.const import CurlECode
from curl_cffi.requests import exceptions as curl

from longstop.errors import BodyTruncated, FetchError, FetchTimeout, SourceUnreachable
from longstop.fetching.curl_errors import MEANINGS, translated


def test_every_error_class_of_the_library_has_a_meaning() -> None:
    classes = {thing for thing in vars(curl).values() if isinstance(thing, type) and issubclass(thing, CurlError)}

    assert classes == set(MEANINGS)


@pytest.mark.parametrize("code", [code for code in CurlECode if code is not CurlECode.OK])
def test_every_code_becomes_a_fetch_error(code: CurlECode) -> None:
    kind = curl.code2error(code, "")

    assert isinstance(translated(kind("broken", code)), FetchError)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (CurlECode.OPERATION_TIMEDOUT, FetchTimeout),
        (CurlECode.PARTIAL_FILE, BodyTruncated),
        (CurlECode.BAD_CONTENT_ENCODING, BodyTruncated),
        (CurlECode.COULDNT_RESOLVE_HOST, SourceUnreachable),
        (CurlECode.COULDNT_CONNECT, SourceUnreachable),
        (CurlECode.GOT_NOTHING, SourceUnreachable),
        (CurlECode.RECV_ERROR, SourceUnreachable),
        (CurlECode.SEND_ERROR, SourceUnreachable),
        (CurlECode.SSL_CONNECT_ERROR, SourceUnreachable),
        (CurlECode.PEER_FAILED_VERIFICATION, SourceUnreachable),
        (CurlECode.HTTP2_STREAM, SourceUnreachable),
        (CurlECode.UNSUPPORTED_PROTOCOL, SourceUnreachable),
    ],
)
def test_the_codes_of_a_bad_day_become_what_they_mean(code: CurlECode, expected: type[FetchError]) -> None:
    kind = curl.code2error(code, "")

    assert type(translated(kind("broken", code))) is expected


def test_a_code_that_curl_has_yet_to_invent_is_a_connection_that_failed() -> None:
    unknown = max(CurlECode) + 1000
    kind = curl.code2error(unknown, "")  # type: ignore[arg-type] # just what a newer curl would do

    error = translated(kind("broken", unknown))

    assert (type(error), error.reason) == (SourceUnreachable, f"broken (curl {unknown})")


def test_the_reason_is_in_curls_words_without_the_librarys_advice() -> None:
    message = "Failed to perform, curl: (56) Recv failure. See https://curl.se/x first for more details."

    assert translated(curl.ConnectionError(message, CurlECode.RECV_ERROR)).reason == "Recv failure (curl 56)"


def test_an_error_class_from_elsewhere_means_what_its_parent_means() -> None:
    class Newcomer(curl.Timeout):
        pass

    assert type(translated(Newcomer("late"))) is FetchTimeout
