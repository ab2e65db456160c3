"""What a page may load."""

import json

import pytest

from longstop.fetching.browser.page_request_rules_and_csp import (
    blocked_patterns,
    is_allowed,
    paused_patterns,
    security_policy,
    security_script,
    without_speculation,
)

HOSTS = ("site.example", "127.0.0.1:8000")


@pytest.mark.req("CAP-2")
def test_what_no_pattern_lets_through_is_blocked_last() -> None:
    patterns = blocked_patterns(HOSTS, allow_private_addresses=False, is_style_blocked=True)

    let_through = [each["urlPattern"] for each in patterns if not each["block"]]
    assert let_through == ["https://site.example/*", "https://127.0.0.1:8000/*"]
    assert patterns[-1] == {"urlPattern": "*://*:*/*", "block": True}
    assert patterns.index({"urlPattern": "*://*:*/*.png", "block": True}) < len(patterns) - 3


@pytest.mark.parametrize("is_style_blocked", [True, False])
def test_styles_are_blocked_only_if_the_source_can_do_without(is_style_blocked: bool) -> None:
    patterns = blocked_patterns(HOSTS, allow_private_addresses=True, is_style_blocked=is_style_blocked)
    types = {each["resourceType"] for each in paused_patterns(is_style_blocked=is_style_blocked)}

    assert ({"urlPattern": "*://*:*/*.css", "block": True} in patterns) is is_style_blocked
    assert ("Stylesheet" in types) is is_style_blocked
    assert {"Image", "Media", "Font", "Document"} <= types


@pytest.mark.req("CAP-2")
@pytest.mark.parametrize(
    ("kind", "url", "expected"),
    [
        ("Document", "https://site.example/match/1", True),
        ("Document", "about:blank", True),
        ("Document", "https://ads.example/frame", False),
        ("Document", "http://site.example/match/1", False),
        ("Document", "https://site.example@evil.example/", False),
        ("Document", "file:///etc/passwd", False),
        ("Image", "https://site.example/logo", False),
        ("Font", "https://site.example/letters", False),
    ],
)
def test_only_documents_of_listed_hosts_pass(kind: str, url: str, expected: bool) -> None:
    assert is_allowed(kind, url, HOSTS, is_main_frame=True, allow_private_addresses=False) is expected
    assert not is_allowed(kind, url, HOSTS, is_main_frame=False, allow_private_addresses=False)


def test_a_documents_policy_names_the_listed_hosts_and_no_workers() -> None:
    policy = security_policy(("site.example",), allow_private_addresses=False)

    assert policy == "worker-src 'none'; connect-src https://site.example wss://site.example data: blob:"
    assert f"content = {json.dumps(policy)}" in security_script(policy)


@pytest.mark.req("CAP-2")
def test_a_document_is_passed_on_without_speculation_headers() -> None:
    plain = [{"name": "Content-Type", "value": "text/html"}, {"name": "Set-Cookie", "value": "a=b"}]
    ahead = [
        {"name": "link", "value": "</ahead>; rel=prefetch"},
        {"name": "Speculation-Rules", "value": '"/rules"'},
    ]

    assert without_speculation([*ahead, *plain]) == plain
    assert without_speculation(plain) is None
