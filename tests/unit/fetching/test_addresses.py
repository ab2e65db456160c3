"""Where a request may go."""

import asyncio
from contextlib import suppress
from ipaddress import ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longstop.errors import FetchTimeout, ForbiddenTarget, SourceUnreachable
from longstop.fetching.addresses import Address, ParsedUrl, allowed_url, checked_addresses, is_public, parse_url
from longstop.testing import run_virtual

HOSTS = ("crex.com", "API.crex.com", "odd.crex.com:8443")


@pytest.mark.parametrize(
    "address",
    [
        "0.0.0.0",  # noqa: S104 - refused, not bound
        "10.1.2.3",
        "100.64.0.1",
        "100.127.255.255",
        "127.0.0.1",
        "127.255.255.254",
        "169.254.169.254",
        "172.16.0.1",
        "172.31.255.255",
        "192.0.0.8",
        "192.0.2.1",
        "192.168.1.1",
        "198.18.0.1",
        "203.0.113.9",
        "224.0.0.1",
        "239.255.255.255",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::7f00:1",  # IPv4-compatible 127.0.0.1
        "::ffff:127.0.0.1",
        "::ffff:169.254.169.254",
        "64:ff9b::10.0.0.1",
        "64:ff9b:1::1",
        "100::1",
        "2001::1",  # Teredo
        "2001:db8::1",
        "2002:a00:1::",  # 6to4 of 10.0.0.1
        "2002:7f00:1::1",
        "3fff::1",
        "fc00::1",
        "fd00:ec2::254",
        "fe80::1",
        "fec0::1",
        "ff02::1",
    ],
)
def test_an_address_that_is_not_on_the_open_internet_is_not_public(address: str) -> None:
    assert not is_public(ip_address(address))


@pytest.mark.parametrize(
    "address",
    [
        "1.1.1.1",
        "100.63.255.255",
        "100.128.0.0",
        "172.15.255.255",
        "172.32.0.0",
        "8.8.8.8",
        "223.255.255.255",
        "::ffff:8.8.8.8",
        "64:ff9b::8.8.8.8",
        "2002:808:808::1",
        "2606:4700:4700::1111",
        "2a00:1450:4001::5",
    ],
)
def test_an_address_of_the_open_internet_is_public(address: str) -> None:
    assert is_public(ip_address(address))


@pytest.mark.parametrize(
    "url",
    [
        "https://crex.com/live",
        "https://CREX.com/live",
        "https://crex.com:443/live",
        "https://api.crex.com/x?y=1",
        "https://odd.crex.com:8443/",
    ],
)
def test_a_listed_host_is_allowed(url: str) -> None:
    target = allowed_url(url, HOSTS, allow_private_addresses=False)

    assert target.scheme == "https"


@pytest.mark.parametrize(
    "url",
    [
        "https://evil.com/",
        "https://crex.com.evil.com/",
        "https://notcrex.com/",
        "https://crex.com:8443/",  # the entry stands for the scheme's own port
        "https://odd.crex.com/",  # and this one for its port only
        "https://crex.com./",
        "https://crex.com@evil.com/",
        "https://evil.com@crex.com/",
        "https://evil.com\\@crex.com/",
        "https://crex.com\\.evil.com/",
        "https://crex.com\t.evil.com/",
        "https://crex.com /",
        "https://crex\t.com/",  # Python's parser drops the tab
        "https://crex.com/a\r\nHost: evil.com",
        "https://crex.com/a\\b",
        "https://cr%65x.com/",
        "https://crеx.com/",  # a Cyrillic letter
        "https:///live",
        "https://",
        "//crex.com/",
        "/live",
        "",
        "http://crex.com/",
        "ftp://crex.com/",
        "file:///etc/passwd",
        "gopher://crex.com/",
        "javascript:alert(1)",
        "https://crex.com:99999/",
        "https://crex.com:x/",
        "https://[::1/",
    ],
)
def test_anything_but_https_to_a_listed_host_is_refused(url: str) -> None:
    with pytest.raises(ForbiddenTarget):
        allowed_url(url, HOSTS, allow_private_addresses=False)


@pytest.mark.parametrize(
    "host",
    ["2130706433", "0x7f000001", "0x7f.1", "017700000001", "0177.0.0.1", "127.1", "127.0.1", "127.0.0.01", "1.0x7f"],
)
def test_an_address_in_an_odd_spelling_is_refused_even_when_listed(host: str) -> None:
    with pytest.raises(ForbiddenTarget, match="standard notation"):
        allowed_url(f"http://{host}/", (host,), allow_private_addresses=True)


def test_plain_http_is_for_sources_with_private_addresses_only() -> None:
    target = allowed_url("http://127.0.0.1:8001/live", ("127.0.0.1:8001",), allow_private_addresses=True)

    assert (target.host, target.port, target.url) == ("127.0.0.1", 8001, "http://127.0.0.1:8001/live")
    with pytest.raises(ForbiddenTarget, match="only https"):
        allowed_url("http://127.0.0.1:8001/live", ("127.0.0.1:8001",), allow_private_addresses=False)


def test_an_ipv6_host_keeps_its_brackets_in_the_url_and_loses_them_in_the_host() -> None:
    target = allowed_url("http://[0:0::1]:8001", ("[::1]:8001",), allow_private_addresses=True)

    assert (target.host, target.url) == ("::1", "http://[::1]:8001/")


def test_a_zone_is_refused() -> None:
    with pytest.raises(ForbiddenTarget):
        parse_url("http://[fe80::1%25eth0]/")


def test_a_target_is_written_again_without_its_fragment() -> None:
    assert parse_url("HTTPS://Crex.com:443#@evil.com").url == "https://crex.com/"


@given(st.text())
def test_any_text_is_a_target_or_forbidden(text: str) -> None:
    with suppress(ForbiddenTarget):
        target = parse_url(f"https://{text}")

        assert parse_url(target.url) == target


def _target(host: str = "crex.com") -> ParsedUrl:
    return parse_url(f"https://{host}/")


def _check(*found: str, target: ParsedUrl | None = None, allow_private_addresses: bool = False) -> tuple[Address, ...]:
    async def resolve(_host: str, _port: int) -> tuple[Address, ...]:
        return tuple(map(ip_address, found))

    return run_virtual(
        checked_addresses(
            target or _target(),
            allow_private_addresses=allow_private_addresses,
            resolve=resolve,
            deadline_seconds=10,
        )
    )


def test_all_public_addresses_of_a_name_are_given_on() -> None:
    assert _check("1.1.1.1", "2606:4700::1") == (ip_address("1.1.1.1"), ip_address("2606:4700::1"))


def test_one_private_address_among_public_ones_refuses_the_name() -> None:
    with pytest.raises(ForbiddenTarget, match=r"crex\.com resolves to 10\.0\.0\.1"):
        _check("1.1.1.1", "10.0.0.1")


def test_private_addresses_pass_where_the_source_is_configured_so() -> None:
    assert _check("10.0.0.1", allow_private_addresses=True) == (ip_address("10.0.0.1"),)


def test_an_address_in_place_of_a_name_is_checked_without_a_lookup() -> None:
    assert _check("10.0.0.1", target=_target("1.1.1.1")) == (ip_address("1.1.1.1"),)
    with pytest.raises(ForbiddenTarget):
        _check("1.1.1.1", target=_target("169.254.169.254"))


def test_a_name_without_addresses_is_unreachable() -> None:
    with pytest.raises(SourceUnreachable):
        _check()


def test_a_lookup_that_does_not_answer_is_ended_by_its_deadline() -> None:
    async def never(_host: str, _port: int) -> tuple[Address, ...]:
        await asyncio.sleep(3600)
        return ()

    async def check() -> float:
        with pytest.raises(FetchTimeout):
            await checked_addresses(_target(), allow_private_addresses=False, resolve=never, deadline_seconds=3)
        return asyncio.get_running_loop().time()

    assert run_virtual(check()) == 3
