"""A page as a browser gets it: one JSON script among much other content."""

from functools import cache
from html import escape
from random import Random

_RULES = 900
_SCRIPTS = 120
#: The page writes these characters of its JSON as escapes, so that no text in it can end the script.
_ESCAPES = ((b"&", b"\\u0026"), (b"<", b"\\u003c"), (b">", b"\\u003e"))


def next_page(title: str, page: str, data: bytes) -> bytes:
    """Return a whole page with `data`, which is JSON, at `props.appPageProps.data`."""
    props = b'{"props":{"appNextJsContext":{"lang":"en","country":"gb","edition":"gb"},"globalDetails":'
    props += _furniture() + b',"appPageProps":{"data":' + data + b',"layout":"default"}},"page":"'
    props += page.encode() + b'","query":{},"buildId":"simulated","isFallback":false,"gip":true,"scriptLoader":[]}'
    return b"".join(
        (
            b'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>',
            escape(title).encode(),
            b"</title>",
            _styles(),
            b'</head><body><div id="__next"><h1>',
            escape(title).encode(),
            b'</h1><div class="ad-slot" data-slot="top"></div></div>',
            _scripts(),
            b'<script id="__NEXT_DATA__" type="application/json">',
            escaped(props),
            b'</script><script src="/static/chunks/main.js" defer=""></script></body></html>',
        )
    )


def escaped(script: bytes) -> bytes:
    """Return JSON as it stands in a page."""
    for character, written in _ESCAPES:
        script = script.replace(character, written)
    return script


def not_found_page() -> bytes:
    return b"<!DOCTYPE html><html><head><title>Page not found</title></head><body><h1>404</h1></body></html>"


@cache
def _styles() -> bytes:
    dice = Random("styles")
    rules = (
        f".ds-{dice.randrange(1 << 20):x}{{margin:{dice.randrange(40)}px;color:#{dice.randrange(1 << 24):06x}}}"
        for _ in range(_RULES)
    )
    return f"<style>{''.join(rules)}</style>".encode()


@cache
def _scripts() -> bytes:
    """Return scripts besides the relevant one, some of them JSON as well."""
    dice = Random("scripts")
    settings = '<script type="application/json" id="ad-settings">{"slots":["top","side","foot"]}</script>'
    scripts = (
        f'<script>window.q=window.q||[];q.push(["slot-{nth}","{dice.getrandbits(2048):x}"]);</script>'
        for nth in range(_SCRIPTS)
    )
    return (settings + "".join(scripts)).encode()


@cache
def _furniture() -> bytes:
    items = ",".join(f'{{"title":"Menu {nth}","url":"/menu/{nth}","countryCodes":[]}}' for nth in range(60))
    return f'{{"followItems":[{items}]}}'.encode()
