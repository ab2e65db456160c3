"""What an answer, or an error of curl, means."""

from datetime import UTC, datetime

import pytest
from curl_cffi import CurlError
from curl_cffi.const import CurlECode
from curl_cffi.requests import exceptions as curl
from hypothesis import given
from hypothesis import strategies as st

from longstop.errors import (
    BodyTruncated,
    FetchError,
    FetchTimeout,
    ForbiddenTarget,
    PageNotFound,
    SourceFailed,
    SourceRefused,
    SourceUnreachable,
)
from longstop.fetching.base import FetchRequest
from longstop.fetching.http import redirected_request
from longstop.fetching.http_error_mapping import CURL_ERRORS, map_curl_error, retry_after_seconds, status_error

NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
POST = FetchRequest(
    source="crex",
    url="https://crex.com/a/b?key=1",
    method="POST",
    body=b"{}",
    headers={"Accept": "application/json", "Content-Type": "application/json", "X-Key": "secret"},
)


@pytest.mark.parametrize("status", [200, 201, 204, 299])
def test_a_good_status_is_no_error(status: int) -> None:
    assert status_error(status, {}, NOW) is None


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (206, BodyTruncated),
        (300, SourceFailed),
        (304, SourceFailed),
        (400, SourceRefused),
        (401, SourceRefused),
        (403, SourceRefused),
        (404, PageNotFound),
        (410, PageNotFound),
        (418, SourceRefused),
        (429, SourceRefused),
        (451, SourceRefused),
        (500, SourceFailed),
        (502, SourceFailed),
        (503, SourceFailed),
        (599, SourceFailed),
        (0, SourceFailed),
        (999, SourceFailed),
    ],
)
def test_every_other_status_is_the_error_it_means(status: int, expected: type[FetchError]) -> None:
    assert type(status_error(status, {}, NOW)) is expected


def test_a_refusal_carries_how_long_to_stay_away() -> None:
    error = status_error(429, {"retry-after": "120"}, NOW)

    assert isinstance(error, SourceRefused)
    assert error.retry_after_seconds == 120


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("0", 0),
        ("120", 120),
        (" 120 ", 120),
        ("-5", 0),
        ("864000", 900),  # ten days
        ("9" * 5000, 900),
        ("Sun, 01 Mar 2026 12:01:30 GMT", 90),
        ("Sun, 01 Mar 2026 12:01:30 -0000", 90),
        ("Sun, 01 Mar 2026 11:00:00 GMT", 0),
        ("Sun, 01 Mar 2099 12:00:00 GMT", 900),
        ("soon", None),
        ("1.5e3", None),
        ("nan", None),
        ("٣", None),
        ("Sun, 99 Mar 2026 12:00:00 GMT", None),
        ("", None),
        (None, None),
    ],
)
def test_retry_after_is_seconds_or_a_date_within_bounds(value: str | None, seconds: float | None) -> None:
    assert retry_after_seconds(value, NOW) == seconds


@given(st.text())
def test_whatever_retry_after_says_is_nothing_or_within_bounds(value: str) -> None:
    seconds = retry_after_seconds(value, NOW)

    assert seconds is None or 0 <= seconds <= 900


@pytest.mark.parametrize("status", [307, 308])
def test_a_strict_redirect_keeps_method_and_body(status: int) -> None:
    hop = redirected_request(POST, status, {"location": "/c"})

    assert (hop.method, hop.body, hop.url) == ("POST", b"{}", "https://crex.com/c")
    assert hop.headers == POST.headers


@pytest.mark.parametrize("status", [301, 302, 303])
def test_a_loose_redirect_becomes_a_get_without_a_body(status: int) -> None:
    hop = redirected_request(POST, status, {"location": "c?d=1"})

    assert (hop.method, hop.body, hop.url) == ("GET", None, "https://crex.com/a/c?d=1")
    assert hop.headers == {"Accept": "application/json", "X-Key": "secret"}


@pytest.mark.parametrize(
    "location",
    ["https://other.com/", "//other.com/", "http://crex.com/", "https://crex.com:444/", "https://x@crex.com/"],
)
def test_no_credential_goes_to_another_host(location: str) -> None:
    hop = redirected_request(POST, 307, {"location": location})

    assert hop.headers == {"Accept": "application/json", "Content-Type": "application/json"}


def test_strange_characters_of_a_location_are_quoted_and_cannot_move_the_host() -> None:
    assert (
        redirected_request(POST, 302, {"location": "\\\\evil.com/ü x"}).url
        == "https://crex.com/a/%5C%5Cevil.com/%C3%BC%20x"
    )


def test_a_redirect_to_nowhere_is_the_sites_failure() -> None:
    with pytest.raises(SourceFailed, match="without a Location header"):
        redirected_request(POST, 302, {})


def test_a_redirect_to_an_unreadable_url_is_forbidden() -> None:
    with pytest.raises(ForbiddenTarget):
        redirected_request(POST, 302, {"location": "https://[::1/"})


# --- from curl's errors to ours -------------------------------------------------------------------------------------


#: Errors of curl after which the site counts as unreachable, which is what an unknown one means, too.
UNREACHABLE: set[type[CurlError]] = {
    *(curl.ConnectionError, curl.DNSError, curl.SSLError, curl.CertificateVerifyError, curl.ProxyError),
    *(curl.InterfaceError, curl.HTTPError, curl.SessionClosed, curl.ImpersonateError, curl.CookieConflict),
    *(curl.InvalidHeader, curl.InvalidJSONError, curl.JSONDecodeError, curl.StreamConsumedError),
    *(curl.RetryError, curl.UnrewindableBodyError, curl.RequestException, CurlError),
}


def test_every_error_class_of_the_library_has_a_meaning() -> None:
    classes = {thing for thing in vars(curl).values() if isinstance(thing, type) and issubclass(thing, CurlError)}

    assert classes == UNREACHABLE | set(CURL_ERRORS)


@pytest.mark.parametrize("code", [code for code in CurlECode if code is not CurlECode.OK])
def test_every_code_becomes_a_fetch_error(code: CurlECode) -> None:
    kind = curl.code2error(code, "")

    assert isinstance(map_curl_error(kind("broken", code)), FetchError)


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

    assert type(map_curl_error(kind("broken", code))) is expected


@pytest.mark.parametrize("code", [code for code in CurlECode if code is not CurlECode.OK])
def test_an_error_that_has_only_a_code_means_what_its_class_would(code: CurlECode) -> None:
    kind = curl.code2error(code, "")

    assert type(map_curl_error(CurlError("broken", code))) is type(map_curl_error(kind("broken", code)))


def test_a_code_that_curl_has_yet_to_invent_is_a_connection_that_failed() -> None:
    unknown = max(CurlECode) + 1000
    kind = curl.code2error(unknown, "")  # type: ignore[arg-type] # just what a newer curl would do

    error = map_curl_error(kind("broken", unknown))

    assert (type(error), error.reason) == (SourceUnreachable, f"broken (curl {unknown})")


def test_the_reason_is_in_curls_words_without_the_librarys_advice() -> None:
    message = "Failed to perform, curl: (56) Recv failure. See https://curl.se/x first for more details."

    assert map_curl_error(curl.ConnectionError(message, CurlECode.RECV_ERROR)).reason == "Recv failure (curl 56)"


def test_an_error_class_from_elsewhere_means_what_its_parent_means() -> None:
    class Newcomer(curl.Timeout):
        pass

    assert type(map_curl_error(Newcomer("late"))) is FetchTimeout
