"""Where a request may go: the host list, the scheme, and addresses that are checked before they are connected to."""

import asyncio
import re
import socket
from collections.abc import Awaitable, Callable, Iterable
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from urllib.parse import SplitResult, urlsplit

from msgspec import Struct

from longstop.errors import FetchTimeout, ForbiddenTarget, SourceUnreachable
from longstop.exhaustion import exhausted

Address = IPv4Address | IPv6Address
Resolve = Callable[[str, int], Awaitable[tuple[Address, ...]]]

_DEFAULT_PORTS = {"http": 80, "https": 443}
_LABEL = r"(?!-)[a-z0-9-]{1,63}(?<!-)"
_NAME = re.compile(rf"{_LABEL}(\.{_LABEL})*")
#: Two URL parsers may see two hosts in a text that has one of these.
_AMBIGUOUS = re.compile(r"[\x00-\x20\x7f\\]")
#: The part of a URL that says where it leads.
_ORIGIN = re.compile(r"[A-Za-z]+://[^/?#]*")
#: Name lookups read 2130706433, 0x7f000001 and 127.1 as addresses, so a name must not end like a number.
_NUMERIC_LABEL = re.compile(r"[0-9]+|0x[0-9a-f]*")

# Our own list rather than `is_global`, whose answers differ between the patch releases of Python.
_CLOSED_V4 = tuple(
    IPv4Network(block)
    for block in (
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",  # shared by carriers, and used inside clouds
        "127.0.0.0/8",
        "169.254.0.0/16",  # link-local: cloud metadata lives here
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
_CLOSED_V6 = tuple(IPv6Network(block) for block in ("2001::/23", "2001:db8::/32", "3fff::/20"))
_NAT64 = IPv6Network("64:ff9b::/96")


class Target(Struct, frozen=True, kw_only=True):
    """A URL that has been read once and written again, so that curl connects to what was checked."""

    scheme: str
    #: Lower case; an IPv6 address without its brackets.
    host: str
    port: int
    #: Host and port as the URL has them, without the scheme's own port.
    authority: str
    url: str

    @property
    def literal(self) -> Address | None:
        """Return the address if the host is one, and no name."""
        return _literal(self.host)


def read_target(url: str) -> Target:
    """Read an http or https URL, or raise: nothing that two programs could read in two ways passes."""
    if _AMBIGUOUS.search(url):
        raise ForbiddenTarget("the URL has blanks, control characters or backslashes")
    found = _ORIGIN.match(url)
    start = found[0] if found else url
    scheme, host, port, authority = _read_origin(start)
    path, _, query = url[len(start) :].partition("#")[0].partition("?")
    query = f"?{query}" if query else ""
    written = f"{scheme}://{authority}{path or '/'}{query}"
    return Target(scheme=scheme, host=host, port=port, authority=authority, url=written)


def allowed_target(url: str, hosts: Iterable[str], allow_private_addresses: bool) -> Target:
    """Return the target of a URL that the source's host list allows, or raise `ForbiddenTarget`.

    An entry without a port stands for the scheme's own port only. Without TLS only a simulator is asked.
    """
    target = read_target(url)
    if target.scheme != "https" and not allow_private_addresses:
        raise ForbiddenTarget("only https is allowed for this source")
    listed = _listed(tuple(hosts))
    if target.authority not in listed and _authority(target.host, target.port) not in listed:
        raise ForbiddenTarget(f"{_authority(target.host, target.port)} is not in the source's host list")
    return target


# A source has few hosts, and each is read several times a request: what they mean is kept.


@lru_cache(maxsize=256)
def _read_origin(text: str) -> tuple[str, str, int, str]:
    """Return scheme, host, port and authority of a URL's beginning, or raise."""
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError as error:
        raise ForbiddenTarget(f"the URL cannot be read: {error}") from error
    if parts.scheme not in _DEFAULT_PORTS:
        raise ForbiddenTarget(f"only http and https are fetched, not {parts.scheme[:20]!r}")
    if "@" in parts.netloc:
        raise ForbiddenTarget("the URL carries a user name")
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


@lru_cache(maxsize=256)
def is_public(address: Address) -> bool:
    """Return whether an address belongs to the open internet; wrapped IPv4 is judged by what is inside."""
    if isinstance(address, IPv4Address):
        return not any(address in block for block in _CLOSED_V4)
    inner = address.ipv4_mapped or address.sixtofour or _nat64(address)
    if inner is not None:
        return is_public(inner)
    return address in _GLOBAL_UNICAST_V6 and not any(address in block for block in _CLOSED_V6)


async def resolve_by_system(host: str, port: int) -> tuple[Address, ...]:
    """Ask the system's resolver for all addresses of a name."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise exhausted(error) or SourceUnreachable(f"the name {host} has no address: {error}") from error
    except RuntimeError as error:  # it is asked in a thread, and the system may give none
        lack = exhausted(error)
        if lack is None:
            raise
        raise lack from error
    return tuple(dict.fromkeys(ip_address(str(entry[4][0]).partition("%")[0]) for entry in found))


async def checked_addresses(
    target: Target, *, allow_private_addresses: bool, resolve: Resolve, deadline_seconds: float
) -> tuple[Address, ...]:
    """Return the addresses to connect to; one that is not public among them refuses the whole name."""
    addresses = await _addresses(target, resolve, deadline_seconds)
    if not addresses:
        raise SourceUnreachable(f"the name {target.host} has no address")
    if not allow_private_addresses:
        for address in addresses:
            if not is_public(address):
                raise ForbiddenTarget(f"{target.host} leads to {address}, which is not a public address")
    return addresses


async def _addresses(target: Target, resolve: Resolve, deadline_seconds: float) -> tuple[Address, ...]:
    if target.literal is not None:
        return (target.literal,)
    try:
        async with asyncio.timeout(deadline_seconds):
            return await resolve(target.host, target.port)
    except TimeoutError as error:
        raise FetchTimeout(f"no address for {target.host} within {deadline_seconds:g} s") from error


def _read_host(parts: SplitResult) -> str:
    host = parts.hostname or ""
    address = _read_address(host, IPv6Address if parts.netloc.startswith("[") else IPv4Address)
    if address is not None:
        return str(address)
    if not _NAME.fullmatch(host) or len(host) > 253 or _NUMERIC_LABEL.fullmatch(host.rpartition(".")[2]):
        raise ForbiddenTarget(f"{host[:80]!r} is neither a host name nor a plainly written address")
    return host


def _read_address(host: str, family: type[Address]) -> Address | None:
    try:
        return None if "%" in host else family(host)
    except ValueError:
        return None


def _authority(host: str, port: int | None) -> str:
    shown = f"[{host}]" if ":" in host else host
    return shown if port is None else f"{shown}:{port}"


def _nat64(address: IPv6Address) -> IPv4Address | None:
    return IPv4Address(int(address) & 0xFFFFFFFF) if address in _NAT64 else None
