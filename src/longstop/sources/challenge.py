"""Detects CAPTCHA pages. Pure."""

import re

#: Words and class names of CAPTCHA pages; no page of data has them near its top.
_CHALLENGE_MARKS = re.compile(
    rb"captcha|challenge-form|challenge-platform|cf-chl|turnstile|datadome|px-block|"
    rb"verify (?:that )?you are (?:a )?human|are you a robot|unusual traffic|just a moment\.\.\.|access denied",
    re.IGNORECASE,
)
_CHALLENGE_SEARCH_BYTES = 16_384
_HTML = re.compile(rb"\s*<(?:!doctype html|html|head|body|script|title)", re.IGNORECASE)


def is_challenge(body: bytes | memoryview) -> bool:
    """Return whether the body is an HTML page with a CAPTCHA or bot check."""
    top = bytes(body[:_CHALLENGE_SEARCH_BYTES])
    return _HTML.match(top) is not None and _CHALLENGE_MARKS.search(top) is not None
