"""What a page may load: only what lies on the source's hosts, and of that only what data needs.

Patterns are matched inside Chromium and cost nothing. What no pattern can tell (an image without a suffix, a document
on a foreign host) is paused and judged by its type. Neither sees what a worker asks for, nor a WebSocket: those are
held by a content security policy that every document is given beside its own. None of these holds the rules by which a
page foretells its visitor's next steps, and on which Chromium acts by itself: those are taken out of the page.
"""

import json
from collections.abc import Iterable, Mapping
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
_NEVER_FOLDERS = (
    *("ads", "adserver", "analytics", "beacon", "collect", "gtag", "pagead", "pixel", "tiles"),
    *("track", "tracker", "trackers"),
)
#: Addresses to which pages report what they have seen.
_NEVER_PATHS = ("beacon", "collect", "pixel", "tr")
#: Resource types that are judged one by one where no pattern has stopped them.
_NEVER_TYPES = ("Image", "Media", "Font")
_STYLE_TYPE = "Stylesheet"
_JUDGED_TYPE = "Document"
#: Heads of a document in which it foretells its visitor's next steps: Chromium acts on them without asking anybody.
_FORETELLING_HEADERS = frozenset({"link", "speculation-rules"})
#: No policy holds WebRTC, whose relays may be anywhere, nor what a page foretells by rules: a page does without them.
#: Rules count in shadow roots, too, which only observers of their own see. A closed root that stands in the document's
#: text is shown to no script.
_GIVE_POLICY = """(() => {
  for (const name of ['RTCPeerConnection', 'webkitRTCPeerConnection']) delete globalThis[name];
  const foretold = 'script[type=speculationrules i]';
  const watched = new WeakSet();
  const forget = (each) => { if (each.nodeType === Node.ELEMENT_NODE && each.matches(foretold)) each.remove(); };
  const search = (root) => {
    if (!root.querySelectorAll) return;
    root.querySelectorAll(foretold).forEach(forget);
    for (const each of [root, ...root.querySelectorAll('*')]) if (each.shadowRoot) watch(each.shadowRoot);
  };
  const watch = (root) => {
    if (watched.has(root)) return;
    watched.add(root);
    search(root);
    new MutationObserver((changes) => {
      for (const {target, addedNodes} of changes) {
        forget(target);
        for (const each of addedNodes) { forget(each); search(each); }
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
  const give = () => {
    if (!document.head) return false;
    const named = document.createElement('meta');
    named.httpEquiv = 'Content-Security-Policy';
    named.content = POLICY;
    document.head.append(named);
    named.remove();
    return true;
  };
  if (give()) return;
  const waiting = new MutationObserver(() => { if (give()) waiting.disconnect(); });
  waiting.observe(document, {childList: true, subtree: true});
})();"""


def blocked_patterns(
    hosts: Iterable[str], *, allow_private_addresses: bool, is_style_blocked: bool
) -> list[dict[str, Any]]:
    """Return the ordered list for `Network.setBlockedURLs`: the first pattern that fits decides."""
    suffixes = (*_ALWAYS_SUFFIXES, "css") if is_style_blocked else _ALWAYS_SUFFIXES
    never = [f"*://*:*/*.{suffix}" for suffix in suffixes]
    for folder in _NEVER_FOLDERS:
        never += [f"*://*:*/{folder}/*", f"*://*:*/*/{folder}/*"]
    never += [f"*://*:*/{path}" for path in _NEVER_PATHS]
    scheme = "http{s}?" if allow_private_addresses else "https"
    listed = [f"{scheme}://{host}/*" for host in hosts]
    return [
        *({"urlPattern": pattern, "block": True} for pattern in never),
        *({"urlPattern": pattern, "block": False} for pattern in listed),
        {"urlPattern": "*://*:*/*", "block": True},
    ]


def paused_patterns(*, is_style_blocked: bool) -> list[dict[str, Any]]:
    """Return the list for `Fetch.enable`: what is judged by its type, and documents once more by what they foretell."""
    types = [*_NEVER_TYPES, _JUDGED_TYPE, *([_STYLE_TYPE] if is_style_blocked else [])]
    return [
        *({"urlPattern": "*", "resourceType": each, "requestStage": "Request"} for each in types),
        {"urlPattern": "*", "resourceType": _JUDGED_TYPE, "requestStage": "Response"},
    ]


def without_foretelling(headers: Iterable[Mapping[str, str]]) -> list[Mapping[str, str]] | None:
    """Return a document's headers without those that foretell; `None` when there are none of them."""
    given = list(headers)
    kept = [each for each in given if each["name"].lower() not in _FORETELLING_HEADERS]
    return kept if len(kept) < len(given) else None


def security_policy(hosts: Iterable[str], *, allow_private_addresses: bool) -> str:
    """Return the policy that a document is given: no workers, and connections to the listed hosts only."""
    schemes = ("https", "wss", "http", "ws") if allow_private_addresses else ("https", "wss")
    sources = (f"{scheme}://{host}" for host in hosts for scheme in schemes)
    return f"worker-src 'none'; connect-src {' '.join(sources)} data: blob:"


def security_script(policy: str) -> str:
    """Return the script that gives a document the policy before any script of its own runs.

    The policy stands as soon as the document has a head, and stays when what named it is taken away again.
    """
    return _GIVE_POLICY.replace("POLICY", json.dumps(policy))


def is_allowed(
    resource_type: str, url: str, hosts: Iterable[str], *, is_main_frame: bool, allow_private_addresses: bool
) -> bool:
    """Return whether something that was paused may be loaded: the page itself, on a listed host, and nothing else.

    Frames within a page hold ads and questions about cookies; what they cost is a page each.
    """
    if resource_type != _JUDGED_TYPE or not is_main_frame:
        return False
    if urlsplit(url).scheme in ("about", "blob", "data"):
        return True
    try:
        allowed_target(url, hosts, allow_private_addresses)
    except ForbiddenTarget:
        return False
    return True
