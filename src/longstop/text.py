"""Shows what a text hides: characters that would act on a terminal, reorder a line, or have no glyph. Pure.

Texts of a site are stored and served as they are. They pass through here where they reach a terminal, a log or a chat.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from unicodedata import category

#: Controls, formats such as bidi overrides, surrogates, private use, unassigned, line and paragraph separators.
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
#: Letters, marks and symbols without a glyph.
_BLANK = frozenset(
    "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0"
    + "".join(map(chr, (*range(0xFE00, 0xFE0E), *range(0xE0100, 0xE01F0))))
)
#: Zero-width (non-)joiner and the two common variation selectors: Persian, Hindi and emoji need them.
_JOINERS = frozenset("\u200c\u200d\ufe0e\ufe0f")
#: Latin, Greek, Cyrillic and Hebrew, which precede this letter, need no joiners.
_FIRST_JOINED = "\u0600"
_NOT_ASCII = re.compile(r"[^ -~]+")
_MARKS = frozenset({"Mn", "Me"})
#: The categories that marks belong on: letters, spacing marks, digits, symbols.
_BEARERS = "LMNS"
#: More marks on one letter cover the lines around it. Real languages stack up to four.
_MAX_MARKS = 4


def printable(text: str) -> str:
    r"""Return one line of text in which such characters are visible as escapes: `\x1b`, `\u202e`, `\n`."""
    return _escaped(text, lambda letter: letter.encode("unicode_escape").decode())


def printable_lines(text: str) -> str:
    """Return the same of a text whose line breaks are ours."""
    return "\n".join(map(printable, text.split("\n"))) if "\n" in text else printable(text)


def printable_json(encoded: str) -> str:
    r"""Return JSON of the same value with such characters as `\uXXXX`; line breaks between its tokens stay."""
    return "\n".join(_escaped(line, lambda letter: json.dumps(letter)[1:-1]) for line in encoded.split("\n"))


def change_texts(value: Any, change: Callable[[str], str]) -> Any:
    """Return a value with every text in it changed, also inside tuples, lists and mappings."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {change_texts(name, change): change_texts(each, change) for name, each in value.items()}
    if isinstance(value, tuple | list):
        return [change_texts(each, change) for each in value]
    return value


def _escaped(text: str, escape: Callable[[str], str]) -> str:
    if text.isascii() and text.isprintable():
        return text

    def shown(run: re.Match[str]) -> str:
        before = text[max(0, run.start() - 1) : run.start()]
        return "".join(letter if is_shown else escape(letter) for letter, is_shown in _shown(run.group(), before))

    return _NOT_ASCII.sub(shown, text)


def _shown(run: str, before: str) -> Iterator[tuple[str, bool]]:
    """Yield each character of a run, and whether it may be shown as it is; `before` is the one that precedes it.

    A joiner is, directly after a letter, mark or symbol of a script that needs it; a mark, on a letter, digit or
    symbol that does not carry too many.
    """
    takes_joiner, marks = False, 0 if before and category(before)[0] in _BEARERS else _MAX_MARKS
    for letter in run:
        kind = category(letter)
        if letter in _JOINERS:
            is_shown, takes_joiner = takes_joiner, False
        else:
            is_shown = kind not in _HIDDEN and letter not in _BLANK
            if kind in _MARKS:
                is_shown = is_shown and marks < _MAX_MARKS
                marks += 1
            else:
                marks = 0 if is_shown and kind[0] in _BEARERS else _MAX_MARKS
            takes_joiner = is_shown and kind[0] in "LMS" and letter >= _FIRST_JOINED
        yield letter, is_shown
