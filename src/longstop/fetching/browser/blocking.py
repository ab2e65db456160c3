"""What a page may load: only what lies on the source's hosts, and of that only what data needs. Pure.

Patterns are matched inside Chromium and cost nothing. What no pattern can tell (an image without a suffix, a document
on a foreign host) is paused and judged by its type.
"""

from collections.abc import Iterable
from typing import Any
from urllib.parse import urlsplit

from longstop.errors import ForbiddenTarget
from longstop.fetching.addresses import allowed_target

_ALWAYS_SUFFIXES = (
    *("png", "jpg", "jpeg", "gif", "webp", "avif", "ico", "svg", "bmp"),
    *("mp4", "webm", "mp3", "ogg", "m3u8", "ts", "wav"),
    *("woff", "woff2", "ttf", "otf", "eot"),
)
#: Folders of ads, trackers and map tiles on a site's own hosts.
_NEVER_FOLDERS = ("ads", "adserver", "analytics", "beacon", "collect", "pixel", "tiles", "track", "tracker", "trackers")
#: Resource types that are judged one by one where no pattern has stopped them.
_NEVER_TYPES = ("Image", "Media", "Font")
_STYLE_TYPE = "Stylesheet"
_JUDGED_TYPE = "Document"


def blocked_patterns(
    hosts: Iterable[str], *, allow_private_addresses: bool, is_style_blocked: bool
) -> list[dict[str, Any]]:
    """Return the ordered list for `Network.setBlockedURLs`: the first pattern that fits decides."""
    suffixes = (*_ALWAYS_SUFFIXES, "css") if is_style_blocked else _ALWAYS_SUFFIXES
    never = [f"*://*:*/*.{suffix}" for suffix in suffixes]
    for folder in _NEVER_FOLDERS:
        never += [f"*://*:*/{folder}/*", f"*://*:*/*/{folder}/*"]
    scheme = "http{s}?" if allow_private_addresses else "https"
    listed = [f"{scheme}://{host}/*" for host in hosts]
    return [
        *({"urlPattern": pattern, "block": True} for pattern in never),
        *({"urlPattern": pattern, "block": False} for pattern in listed),
        {"urlPattern": "*://*:*/*", "block": True},
    ]


def paused_patterns(*, is_style_blocked: bool) -> list[dict[str, Any]]:
    """Return the list for `Fetch.enable`: what is judged by its type."""
    types = [*_NEVER_TYPES, _JUDGED_TYPE, *([_STYLE_TYPE] if is_style_blocked else [])]
    return [{"urlPattern": "*", "resourceType": each, "requestStage": "Request"} for each in types]


def is_allowed(resource_type: str, url: str, hosts: Iterable[str], *, allow_private_addresses: bool) -> bool:
    """Return whether something that was paused may be loaded: a document of a listed host, and nothing else."""
    if resource_type != _JUDGED_TYPE:
        return False
    if urlsplit(url).scheme in ("about", "blob", "data"):
        return True
    try:
        allowed_target(url, hosts, allow_private_addresses)
    except ForbiddenTarget:
        return False
    return True
