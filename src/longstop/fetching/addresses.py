"""Where a request may go: the host list, the scheme, and IP addresses that are checked before connecting."""

import asyncio
import re
import socket
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from urllib.parse import SplitResult, urlsplit

from msgspec import Struct

from longstop.errors import FetchTimeout, ForbiddenTarget, SourceUnreachable
from longstop.exhaustion import exhausted, mapping_exhaustion

Address = IPv4Address | IPv6Address
Resolve = Callable[[str, int], Awaitable[tuple[Address, ...]]]

_DEFAULT_PORTS = {"http": 80, "https": 443}
_LABEL = r"(?!-)[a-z0-9-]{1,63}(?<!-)"
_NAME = re.compile(rf"{_LABEL}(\.{_LABEL})*")
#: With one of these characters two URL parsers may find different hosts.
_AMBIGUOUS = re.compile(r"[\x00-\x20\x7f\\]")
#: Scheme and authority of a URL.
_ORIGIN = re.compile(r"[A-Za-z]+://[^/?#]*")
#: Resolvers read 2130706433, 0x7f000001 and 127.1 as IP addresses, so a host name must not end in a number.
_NUMERIC_LABEL = re.compile(r"[0-9]+|0x[0-9a-f]*")

# Our own list: the results of `is_global` differ between patch releases of Python.
_PRIVATE_V4 = tuple(
    IPv4Network(block)
    for block in (
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",  # carrier-grade NAT, and used inside clouds
        "127.0.0.0/8",
        "169.254.0.0/16",  # link-local: cloud metadata services
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.88.99.0/24",
        "192.168.0.0/16",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",
        "240.0.0.0/4",
    )
)
_GLOBAL_UNICAST_V6 = IPv6Network("2000::/3")
_PRIVATE_V6 = tuple(IPv6Network(block) for block in ("2001::/23", "2001:db8::/32", "3fff::/20"))
_NAT64 = IPv6Network("64:ff9b::/96")


class ParsedUrl(Struct, frozen=True, kw_only=True):
    """A URL parsed once and written again, so that curl connects to what was checked."""

    scheme: str
    #: Lower case; an IPv6 address without its brackets.
    host: str
    port: int
    #: Host and port, without the scheme's default port.
    authority: str
    url: str

    @property
    def literal(self) -> Address | None:
        """The IP address if the host is one; `None` if it is a name."""
        return _literal(self.host)


def parse_url(url: str) -> ParsedUrl:
    """Parse an http or https URL; raise `ForbiddenTarget` if two programs could parse it differently."""
    if _AMBIGUOUS.search(url):
        raise ForbiddenTarget("the URL contains spaces, control characters or backslashes")
    found = _ORIGIN.match(url)
    start = found[0] if found else url
    scheme, host, port, authority = _read_origin(start)
    path, _, query = url[len(start) :].partition("#")[0].partition("?")
    query = f"?{query}" if query else ""
    written = f"{scheme}://{authority}{path or '/'}{query}"
    return ParsedUrl(scheme=scheme, host=host, port=port, authority=authority, url=written)


def allowed_url(url: str, hosts: Iterable[str], allow_private_addresses: bool) -> ParsedUrl:
    """Parse a URL that the source's host list allows; raise `ForbiddenTarget` for any other.

    An entry without a port allows only the scheme's default port. Plain http is allowed only for a simulator.
    """
    target = parse_url(url)
    if target.scheme != "https" and not allow_private_addresses:
        raise ForbiddenTarget("only https is allowed for this source")
    listed = _listed(tuple(hosts))
    if target.authority not in listed and _authority(target.host, target.port) not in listed:
        raise ForbiddenTarget(f"{_authority(target.host, target.port)} is not in the source's host list")
    return target


# A source has few hosts, and each is parsed several times per request: results are cached.


@lru_cache(maxsize=256)
def _read_origin(text: str) -> tuple[str, str, int, str]:
    """Return scheme, host, port and authority of a URL; raise `ForbiddenTarget` if it has none."""
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError as error:
        raise ForbiddenTarget(f"the URL is invalid: {error}") from error
    if parts.scheme not in _DEFAULT_PORTS:
        raise ForbiddenTarget(f"only http and https URLs are allowed, not {parts.scheme[:20]!r}")
    if "@" in parts.netloc:
        raise ForbiddenTarget("the URL contains a user name")
    host, default = _read_host(parts), _DEFAULT_PORTS[parts.scheme]
    authority = _authority(host, None if port in (None, default) else port)
    return parts.scheme, host, default if port is None else port, authority


@lru_cache(maxsize=256)
def _listed(hosts: tuple[str, ...]) -> frozenset[str]:
    return frozenset(entry.lower() for entry in hosts)


@lru_cache(maxsize=256)
def _literal(host: str) -> Address | None:
    try:
        return ip_address(host)
    except ValueError:
        return None


def may_be_public(entry: str) -> bool:
    """Return whether a host entry may lead to another machine's site: any name but `localhost`, any public address."""
    host = urlsplit(f"//{entry}").hostname or ""
    address = _literal(host)
    return is_public(address) if address else host != "localhost"


@lru_cache(maxsize=256)
def is_public(address: Address) -> bool:
    """Return whether an address is public; embedded IPv4 addresses are checked themselves."""
    if isinstance(address, IPv4Address):
        return not any(address in block for block in _PRIVATE_V4)
    inner = address.ipv4_mapped or address.sixtofour or _nat64(address)
    if inner is not None:
        return is_public(inner)
    return address in _GLOBAL_UNICAST_V6 and not any(address in block for block in _PRIVATE_V6)


async def resolve_by_system(host: str, port: int) -> tuple[Address, ...]:
    try:
        with mapping_exhaustion():  # the resolver runs in a thread, which the system may refuse
            found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise exhausted(error) or SourceUnreachable(f"{host} cannot be resolved: {error}") from error
    return tuple(dict.fromkeys(ip_address(str(entry[4][0]).partition("%")[0]) for entry in found))


async def checked_addresses(
    target: ParsedUrl, *, allow_private_addresses: bool, resolve: Resolve, deadline_seconds: float
) -> tuple[Address, ...]:
    """Return the IP addresses to connect to; a private one among them forbids the host."""
    addresses: tuple[Address, ...] = (target.literal,) if target.literal else ()
    if not addresses:
        try:
            async with asyncio.timeout(deadline_seconds):
                addresses = await resolve(target.host, target.port)
        except TimeoutError as error:
            raise FetchTimeout(f"{target.host} was not resolved within {deadline_seconds:g} s") from error
    if not addresses:
        raise SourceUnreachable(f"{target.host} has no IP address")
    if not allow_private_addresses:
        for address in addresses:
            if not is_public(address):
                raise ForbiddenTarget(f"{target.host} resolves to {address}, which is not a public address")
    return addresses


def _read_host(parts: SplitResult) -> str:
    host = parts.hostname or ""
    with suppress(ValueError):
        if "%" not in host:
            return str(IPv6Address(host) if parts.netloc.startswith("[") else IPv4Address(host))
    if not _NAME.fullmatch(host) or len(host) > 253 or _NUMERIC_LABEL.fullmatch(host.rpartition(".")[2]):
        raise ForbiddenTarget(f"{host[:80]!r} is neither a host name nor an IP address in standard notation")
    return host


def _authority(host: str, port: int | None) -> str:
    shown = f"[{host}]" if ":" in host else host
    return shown if port is None else f"{shown}:{port}"


def _nat64(address: IPv6Address) -> IPv4Address | None:
    return IPv4Address(int(address) & 0xFFFFFFFF) if address in _NAT64 else None
