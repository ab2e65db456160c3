"""Pages that want proof of a person, told by their marks: such a page is a refusal, whatever its status says."""

import re

#: Words and names that such pages carry; no page of data has them near its top.
_MARKS = re.compile(
    rb"captcha|challenge-form|challenge-platform|cf-chl|turnstile|datadome|px-block|"
    rb"verify (?:that )?you are (?:a )?human|are you a robot|unusual traffic|just a moment\.\.\.|access denied",
    re.IGNORECASE,
)
_LOOKED_AT_BYTES = 16_384
_HTML = re.compile(rb"\s*<(?:!doctype html|html|head|body|script|title)", re.IGNORECASE)


def is_challenge(body: bytes | memoryview) -> bool:
    """Return whether a body that should have been data is a page for people that asks for a person."""
    top = bytes(body[:_LOOKED_AT_BYTES])
    return _HTML.match(top) is not None and _MARKS.search(top) is not None
