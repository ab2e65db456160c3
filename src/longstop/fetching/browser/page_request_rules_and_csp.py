"""What a page may load: only from the source's hosts, and only what is needed for data.

1. URL patterns are matched inside Chromium and cost nothing.
2. What no pattern can express (an image without a suffix, a document on another host) is paused and judged by its type.
3. Requests of workers and WebSockets pass both, so every document gets an additional content security policy.
4. Speculation rules, by which Chromium loads pages ahead of time, pass all of these and are removed from the page.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit

from longstop.errors import ForbiddenTarget
from longstop.fetching.addresses import allowed_url

_BLOCKED_SUFFIXES = (
    *("png", "jpg", "jpeg", "gif", "webp", "avif", "ico", "svg", "bmp"),
    *("mp4", "webm", "mp3", "ogg", "m3u8", "ts", "wav"),
    *("woff", "woff2", "ttf", "otf", "eot"),
)
#: Folders of ads, trackers and map tiles on a site's own hosts.
_BLOCKED_FOLDERS = (
    *("ads", "adserver", "analytics", "beacon", "collect", "gtag", "pagead", "pixel", "tiles"),
    *("track", "tracker", "trackers"),
)
#: Tracking endpoints.
_BLOCKED_PATHS = ("beacon", "collect", "pixel", "tr")
#: Resource types that are paused where no pattern has blocked them.
_PAUSED_TYPES = ("Image", "Media", "Font")
_STYLE_TYPE = "Stylesheet"
_DOCUMENT_TYPE = "Document"
#: Headers of a document that make Chromium load other resources ahead of time.
_SPECULATION_HEADERS = frozenset({"link", "speculation-rules"})
#: The policy covers neither WebRTC, whose relays may be anywhere, nor speculation rules, so both are removed. Rules
#: apply in shadow roots as well, each of which needs its own observer. A closed root declared in the document's HTML is
#: not visible to any script.
_POLICY_SCRIPT = """(() => {
  for (const name of ['RTCPeerConnection', 'webkitRTCPeerConnection']) delete globalThis[name];
  const rules = 'script[type=speculationrules i]';
  const watched = new WeakSet();
  const removeRule = (each) => { if (each.nodeType === Node.ELEMENT_NODE && each.matches(rules)) each.remove(); };
  const search = (root) => {
    if (!root.querySelectorAll) return;
    root.querySelectorAll(rules).forEach(removeRule);
    for (const each of [root, ...root.querySelectorAll('*')]) if (each.shadowRoot) watch(each.shadowRoot);
  };
  const watch = (root) => {
    if (watched.has(root)) return;
    watched.add(root);
    search(root);
    new MutationObserver((changes) => {
      for (const {target, addedNodes} of changes) {
        removeRule(target);
        for (const each of addedNodes) { removeRule(each); search(each); }
      }
    }).observe(root, {childList: true, subtree: true});
  };
  watch(document);
  Element.prototype.attachShadow = new Proxy(Element.prototype.attachShadow, {
    apply(attach, host, options) {
      const root = Reflect.apply(attach, host, options);
      watch(root);
      return root;
    },
  });
  const addPolicy = () => {
    if (!document.head) return false;
    const meta = document.createElement('meta');
    meta.httpEquiv = 'Content-Security-Policy';
    meta.content = POLICY;
    document.head.append(meta);
    meta.remove();
    return true;
  };
  if (addPolicy()) return;
  const waiting = new MutationObserver(() => { if (addPolicy()) waiting.disconnect(); });
  waiting.observe(document, {childList: true, subtree: true});
})();"""


def blocked_patterns(
    hosts: Iterable[str], *, allow_private_addresses: bool, is_style_blocked: bool
) -> list[dict[str, Any]]:
    """Return the ordered list for `Network.setBlockedURLs`: the first matching pattern decides."""
    suffixes = (*_BLOCKED_SUFFIXES, "css") if is_style_blocked else _BLOCKED_SUFFIXES
    blocked = [f"*://*:*/*.{suffix}" for suffix in suffixes]
    for folder in _BLOCKED_FOLDERS:
        blocked += [f"*://*:*/{folder}/*", f"*://*:*/*/{folder}/*"]
    blocked += [f"*://*:*/{path}" for path in _BLOCKED_PATHS]
    scheme = "http{s}?" if allow_private_addresses else "https"
    listed = [f"{scheme}://{host}/*" for host in hosts]
    return [
        *({"urlPattern": pattern, "block": True} for pattern in blocked),
        *({"urlPattern": pattern, "block": False} for pattern in listed),
        {"urlPattern": "*://*:*/*", "block": True},
    ]


def paused_patterns(*, is_style_blocked: bool) -> list[dict[str, Any]]:
    """Return the list for `Fetch.enable`: requests judged by their type, and responses that are documents."""
    types = [*_PAUSED_TYPES, _DOCUMENT_TYPE, *([_STYLE_TYPE] if is_style_blocked else [])]
    return [
        *({"urlPattern": "*", "resourceType": each, "requestStage": "Request"} for each in types),
        {"urlPattern": "*", "resourceType": _DOCUMENT_TYPE, "requestStage": "Response"},
    ]


def without_speculation(headers: Iterable[Mapping[str, str]]) -> list[Mapping[str, str]] | None:
    """Return a document's headers without those that load ahead; `None` if it has none of them."""
    given = list(headers)
    kept = [each for each in given if each["name"].lower() not in _SPECULATION_HEADERS]
    return kept if len(kept) < len(given) else None


def security_policy(hosts: Iterable[str], *, allow_private_addresses: bool) -> str:
    """Return the content security policy of a document: no workers, and connections only to the listed hosts."""
    schemes = ("https", "wss", "http", "ws") if allow_private_addresses else ("https", "wss")
    sources = (f"{scheme}://{host}" for host in hosts for scheme in schemes)
    return f"worker-src 'none'; connect-src {' '.join(sources)} data: blob:"


def security_script(policy: str) -> str:
    """Return the script that adds the policy to a document before its own scripts run.

    The policy applies as soon as the document has a head, and stays when the element is removed again.
    """
    return _POLICY_SCRIPT.replace("POLICY", json.dumps(policy))


def is_allowed(
    resource_type: str, url: str, hosts: Iterable[str], *, is_main_frame: bool, allow_private_addresses: bool
) -> bool:
    """Return whether a paused request may continue: only the page itself, on a listed host.

    Frames inside a page show ads and cookie banners, and cost as much as a page each.
    """
    if resource_type != _DOCUMENT_TYPE or not is_main_frame:
        return False
    if urlsplit(url).scheme in ("about", "blob", "data"):
        return True
    try:
        allowed_url(url, hosts, allow_private_addresses)
    except ForbiddenTarget:
        return False
    return True
