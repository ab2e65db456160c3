"""Pages that mean harm: what is put into a good page so that it spins, leaks, asks, opens, or says nothing."""

import re
from functools import cache
from random import Random

from longstop_lab.simulator.faults import Fault, FaultKind
from longstop_lab.simulator.http import Request, Response
from longstop_lab.simulator.pages.crex_page import CLASSES as CREX_CLASSES
from longstop_lab.simulator.sites.sofascore.page import CLASSES as SOFASCORE_CLASSES

PREFIX = "/_hostile/"
_HTML = "text/html; charset=utf-8"
_HEAD = b"<head>"
_PLAIN = b"<!doctype html><html><head><title>Hostile</title></head><body><h1>Scores</h1></body></html>"
_POPUPS = 5
_DOWNLOADS = 3
_DOWNLOAD_BYTES = 200_000

#: Each is run before the page's own script; `seconds` is the fault's.
_SCRIPTS = {
    FaultKind.SPIN: "addEventListener('DOMContentLoaded', () => setTimeout(() => { for (;;); }, seconds * 1000));",
    FaultKind.LEAK: """
window.leaked = [];
setInterval(() => leaked.push(new Uint8Array(1_000_000).fill(7)), 100);""",
    # Longer than any array may be: the renderer gives up at once, and needs no more than the string's 134 MB.
    FaultKind.CRASH: "setTimeout(() => 'x'.repeat(2 ** 27 + 8).split(''), seconds * 1000);",
    FaultKind.DIALOGS: """
addEventListener('beforeunload', (event) => { event.preventDefault(); event.returnValue = 'Stay?'; });
setTimeout(() => { alert('Welcome'); confirm('Cookies?'); prompt('Your name?'); }, seconds * 1000);
setInterval(() => alert('Still here?'), 3000);""",
    FaultKind.POPUPS: f"""
let opened = 0;
const opening = setInterval(() => {{
  if (opened++ < {_POPUPS}) window.open('{PREFIX}plain?popup=' + opened); else clearInterval(opening);
}}, 200);""",
    FaultKind.DOWNLOADS: f"""
addEventListener('DOMContentLoaded', () => {{
  for (let nth = 1; nth <= {_DOWNLOADS}; nth++) setTimeout(() => {{
    const link = Object.assign(document.createElement('a'), {{ href: '{PREFIX}file-' + nth + '.bin', download: '' }});
    document.body.append(link);
    link.click();
  }}, 300 * nth);
}});""",
    FaultKind.BUSY: f"setInterval(() => fetch('{PREFIX}tick?at=' + Date.now()).catch(() => {{}}), 100);",
    FaultKind.LATE_CALLS: """
const fetchAtOnce = window.fetch.bind(window);
window.fetch = async (...asked) => {
  await new Promise((resolve) => setTimeout(resolve, seconds * 1000));
  return fetchAtOnce(...asked);
};""",
    FaultKind.NO_CALLS: "window.fetch = () => new Promise(() => {});",
}
#: Faults that befall a page; to what is no page they do nothing.
PAGE_FAULTS = frozenset({*_SCRIPTS, FaultKind.REDESIGNED})


def break_page(fault: Fault, page: bytes) -> bytes:
    """Return a page as the fault has it."""
    if fault.kind is FaultKind.REDESIGNED:
        return redesigned(page)
    script = f"<script>{{ const seconds = {fault.seconds}; {_SCRIPTS[fault.kind]} }}</script>"
    return page.replace(_HEAD, _HEAD + script.encode(), 1)


def redesigned(page: bytes) -> bytes:
    """Return a page that looks the same and has other class names."""
    return _class_names().sub(lambda found: _other_name(found[0]), page)


def hostile_answer(request: Request) -> Response:
    """Return a page that means harm, by its name: that of a fault, `plain`, or what such pages ask for."""
    name = request.path.removeprefix(PREFIX)
    if name == "plain":
        return Response(body=_PLAIN, content_type=_HTML)
    if name == "tick":
        return Response(body=b"{}", headers={"Cache-Control": "no-store"})
    if re.fullmatch(r"file-\d\.bin", name):
        attached = {"Content-Disposition": f'attachment; filename="{name}"'}
        return Response(body=bytes(_DOWNLOAD_BYTES), content_type="application/octet-stream", headers=attached)
    kinds = {kind.value: kind for kind in PAGE_FAULTS}
    if name not in kinds:
        return Response(status=404, body=_PLAIN, content_type=_HTML)
    fault = Fault(kind=kinds[name], seconds=_seconds(request.query.get("seconds", "")))
    return Response(body=break_page(fault, _PLAIN), content_type=_HTML)


def _seconds(text: str) -> float:
    return float(text) if re.fullmatch(r"\d{1,3}(\.\d{1,3})?", text) else 0.0


@cache
def _class_names() -> re.Pattern[bytes]:
    names = sorted((*CREX_CLASSES, *SOFASCORE_CLASSES), key=len, reverse=True)
    # As names of classes and elements they follow a quote, a dot and the like; as words of the script they do not.
    return re.compile(rb"(?<=[\"'.#</])(?:" + "|".join(names).encode() + rb")(?![\w-])")


@cache
def _other_name(name: bytes) -> bytes:
    # A hyphen, so that an element's name stays one that a page may give.
    return f"x-{Random(name).getrandbits(40):010x}".encode()
