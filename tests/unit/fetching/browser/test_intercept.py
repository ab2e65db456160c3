"""Which responses of a page are captured."""

import pytest

from longstop.fetching.base import FetchRequest
from longstop.fetching.browser.intercept import is_json, is_listed, pattern_of

REQUEST = FetchRequest(source="crex", url="https://api.example/v3/state?key=11HD&x=")


@pytest.mark.req("CAP-1")
@pytest.mark.parametrize(
    ("method", "url", "expected"),
    [
        ("GET", "https://api.example/v3/state?key=11HD&x=", True),
        ("GET", "https://api.example/v3/state?x=&t=123&key=11HD", True),
        ("GET", "https://api.example/v3/state?key=22AB&x=", False),
        ("GET", "https://api.example/v3/state?x=", False),
        ("GET", "https://api.example/v3/state/more?key=11HD&x=", False),
        ("GET", "https://api.example.evil.example/v3/state?key=11HD&x=", False),
        ("GET", "http://api.example/v3/state?key=11HD&x=", False),
        ("POST", "https://api.example/v3/state?key=11HD&x=", False),
    ],
)
def test_only_the_response_to_the_same_request_matches(method: str, url: str, expected: bool) -> None:
    assert pattern_of(REQUEST).matches(method, url) is expected


@pytest.mark.req("CAP-1")
@pytest.mark.parametrize(
    ("url", "content_type", "expected"),
    [
        ("https://api.example/v1/event/7/lineups", "application/json; charset=utf-8", True),
        ("https://api.example/v1/event/7/lineups", "text/html", False),
        ("https://api.example/v1/user", "application/json", False),
        ("https://other.example/v1/event/7", "application/json", False),
    ],
)
def test_the_capture_list_admits_json_of_listed_hosts_and_paths(url: str, content_type: str, expected: bool) -> None:
    assert is_listed(url, content_type, hosts=("api.example",), paths=("/v1/event/*",)) is expected


def test_without_paths_only_requested_responses_are_captured() -> None:
    assert not is_listed("https://api.example/v1/event/7", "application/json", hosts=("api.example",), paths=())


@pytest.mark.parametrize(
    ("content_type", "expected"),
    [
        ("application/json", True),
        ("Application/LD+JSON;x=y", True),
        ("text/json", True),
        ("text/plain", False),
        ("", False),
    ],
)
def test_json_is_recognised_by_its_content_type(content_type: str, expected: bool) -> None:
    assert is_json(content_type) is expected
