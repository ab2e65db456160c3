"""What surrounds the data on a page: styles, scripts, images, fonts, ads and trackers."""

import struct
import zlib
from collections.abc import Callable
from functools import cache, lru_cache
from html import escape
from random import Random

from longstop_lab.simulator.http import Request, Response
from longstop_lab.simulator.pages.font import font

_CSS_RULES = 2_500
_JS_FUNCTIONS = 2_600
_PICTURE_PIXELS = 200
_KEPT = {"Cache-Control": "public, max-age=86400"}
#: A tracking pixel.
_PIXEL = b"GIF89a\x01\x00\x01\x00\x80\x00\x00\x00\x00\x00\xff\xff\xff!\xf9\x04\x01\x00\x00\x00\x00,"
_PIXEL += b"\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02D\x01\x00;"

_HEAD = """<link rel="stylesheet" href="/static/app.css">
<link rel="preload" href="/static/font/text.woff" as="font" type="font/woff" crossorigin>
<script src="/static/vendor.js" defer></script>
<script src="/gtag/js?id=G-SIMULATED" async></script>
<script src="/pagead/show.js" async></script>"""
_FOOT = """<img src="/static/img/banner.png" alt="" width="150" height="150">
<img src="/static/img/sponsor.png" alt="" width="150" height="150">
<iframe src="/pagead/frame?slot=side" title="ad" width="300" height="250"></iframe>
<iframe src="/pagead/frame?slot=foot" title="ad" width="300" height="250"></iframe>
<img src="/tr?ev=PageView" alt="" width="1" height="1">"""
_TRACKER = """
setInterval(() => navigator.sendBeacon("/collect?v=2&t=scroll"), 5000);
navigator.sendBeacon("/collect?v=2&t=pageview", document.title);
"""
_AD = """
document.querySelectorAll(".ad-slot").forEach((slot, nth) => {
  const picture = new Image();
  picture.src = `/pagead/banner-${nth}.png`;
  slot.append(picture);
});
"""
_FRAME = """<!doctype html><html><head><title>ad</title><link rel="stylesheet" href="/static/app.css"></head>
<body><img src="/pagead/banner-frame.png" alt=""><script>
setInterval(() => { new Image().src = "/tr?ev=viewable&at=" + Date.now(); }, 5000);
</script></body></html>"""


def whole_page(title: str, *, body: str, script: str, style: str = "") -> bytes:
    """Return a page with everything around its body, and its own script last."""
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>\n{_HEAD}\n'
        f"<style>{style}</style></head>\n<body>\n"
        f'<div class="ad-slot"></div>\n{body}\n<div class="ad-slot"></div>\n{_FOOT}\n'
        f"<script>\n{script}</script>\n</body></html>"
    ).encode()


def asset(request: Request) -> Response | None:
    """Return what stands around the pages of every site; `None` for a path that is none of it."""
    folder, _, name = request.path.removeprefix("/").rpartition("/")
    match folder, name:
        case "", "collect":
            return Response(status=204)
        case "", "tr":
            return Response(body=_PIXEL, content_type="image/gif", headers={"Cache-Control": "no-store"})
        case "", "favicon.ico":
            return _kept("image/png", _picture(name))
    made = _MAKERS.get(folder)
    return made(name) if made and request.method == "GET" else None


def _static(name: str) -> Response | None:
    match name:
        case "app.css":
            return _kept("text/css; charset=utf-8", _styles())
        case "vendor.js":
            return _kept("text/javascript; charset=utf-8", _scripts("vendor", _JS_FUNCTIONS))
    return None


def _advert(name: str) -> Response | None:
    match name:
        case "show.js":
            return _kept("text/javascript; charset=utf-8", _scripts("ads", 600) + _AD.encode())
        case "frame":
            return Response(body=_FRAME.encode(), content_type="text/html; charset=utf-8")
    return _kept("image/png", _picture(name)) if name.endswith(".png") else None


def _tag(name: str) -> Response | None:
    if name != "js":
        return None
    return _kept("text/javascript; charset=utf-8", _scripts("tags", 700) + _TRACKER.encode())


def _kept(content_type: str, body: bytes) -> Response:
    return Response(body=body, content_type=content_type, headers=_KEPT)


@cache
def _styles() -> bytes:
    dice = Random("page styles")
    rules = (
        f".u{nth}{{margin:{dice.randrange(40)}px;color:#{dice.randrange(1 << 24):06x}}}\n" for nth in range(_CSS_RULES)
    )
    face = '@font-face{font-family:"Text";src:url(/static/font/text.woff) format("woff")}\n'
    return (face + 'body{font-family:"Text",sans-serif;margin:1rem}\n' + "".join(rules)).encode()


@cache
def _scripts(name: str, functions: int) -> bytes:
    """Return a script that costs a browser something to read and does nothing."""
    dice = Random(name)
    written = (
        f"function {name}{nth}(a,b){{return a*{dice.randrange(9999)}+b.length%{dice.randrange(1, 99)}"
        f'+"{dice.getrandbits(160):x}".length;}}\n'
        for nth in range(functions)
    )
    return ("(()=>{" + "".join(written) + "})();\n").encode()


@lru_cache(maxsize=32)
def _picture(name: str) -> bytes:
    """Return a PNG of noise, which does not get smaller when it is packed."""
    dice, size = Random(name), _PICTURE_PIXELS
    rows = b"".join(b"\0" + dice.randbytes(3 * size) for _ in range(size))
    header = struct.pack(">IIBBBBB", size, size, 8, 2, 0, 0, 0)
    chunks = (_chunk(b"IHDR", header), _chunk(b"IDAT", zlib.compress(rows)), _chunk(b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


_MAKERS: dict[str, Callable[[str], Response | None]] = {
    "static": _static,
    "static/img": lambda name: _kept("image/png", _picture(name)) if name.endswith(".png") else None,
    "static/font": lambda name: _kept("font/woff", font()) if name.endswith(".woff") else None,
    "pagead": _advert,
    "gtag": _tag,
}
