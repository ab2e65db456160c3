"""Which characters are shown as they are, and how the others look."""

import json
from unicodedata import category

import pytest

from longstop.text import change_texts, printable, printable_json, printable_lines
from tests.security.hostile_texts import HOSTILE_IN_MEMORY, raw

ALL = [
    "".join(map(chr, range(first, first + 0x1000)))
    for first in (*range(0, 0x20000, 0x1000), 0xE0000, 0xF0000, 0x10F000)
]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "R. Müller-Łukasiewicz, Þórður, Nguyễn, O’Brien & Søn – 120/3 (15.2)",
        "Ѐлена Щербакова, Ολυμπιακός, Հայաստան",
        "محمد صلاح",
        "می\u200cخواهم",  # Persian: the non-joiner is part of the spelling
        "भारत, क्\u200dष, श्री",  # Hindi: a joiner after a virama
        "বাংলাদেশ, தமிழ், ไทย, ខ្មែរ, སངས་རྒྱས",
        "שָׁלוֹם",
        "中国, 日本 代表, 대한민국, カタカナ",
        "⚽\ufe0f 🏏 👨\u200d👩\u200d👧 🤽🏽\u200d♀",
        "Z\u0301\u030c\u0323\u0308",  # four marks
        "\u00a0narrow\u202fspaces\u3000are\u2009blank",
        "[red]a[/red] :boom: │",
    ],
)
def test_letters_of_all_scripts_stay_as_they_are(text: str) -> None:
    assert printable(text) == text
    assert json.loads(printable_json(json.dumps(text, ensure_ascii=False))) == text
    assert printable_json(json.dumps(text, ensure_ascii=False)) == json.dumps(text, ensure_ascii=False)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\x1b[31m\x07\x7f\x9b", r"a\x1b[31m\x07\x7f\x9b"),
        ("a\nb\r\tc", r"a\nb\r\tc"),
        ("user\u202egpj.exe", r"user\u202egpj.exe"),
        ("\u2066a\u2069\u061c\u200e\u200f", r"\u2066a\u2069\u061c\u200e\u200f"),
        ("\u200b\u2060\ufeff\u00ad", r"\u200b\u2060\ufeff\xad"),
        ("a\u2028b\u2029c", r"a\u2028b\u2029c"),
        ("\ud800 \udcff", r"\ud800 \udcff"),
        ("\ue000\u0378\ufffe\U0010fffd", r"\ue000\u0378\ufffe\U0010fffd"),
        ("\u3164\u115f\u2800\U000e0101\ufe00", r"\u3164\u115f\u2800\U000e0101\ufe00"),
        ("🏴\U000e0067\U000e007f", r"🏴\U000e0067\U000e007f"),  # the flags of England and of anything hidden
        # Joiners where no language needs them: names that look equal and are not.
        ("Re\u200dd", r"Re\u200dd"),
        ("\u200cRed", r"\u200cRed"),
        ("می\u200c\u200c\u200cخ", "می\u200c\\u200c\\u200cخ"),
        ("\ufe0f1\ufe0f", r"\ufe0f1\ufe0f"),
        # Marks that would cover what is printed before a text, and the lines around it.
        ("\u0301a", r"\u0301a"),
        ("(\u0301", r"(\u0301"),
        ("a" + "\u0301" * 6, "a" + "\u0301" * 4 + r"\u0301\u0301"),
    ],
)
def test_what_acts_on_a_terminal_or_cannot_be_seen_is_shown_as_an_escape(text: str, shown: str) -> None:
    assert printable(text) == shown
    assert printable(printable(text)) == printable(text)


@pytest.mark.parametrize("text", ALL, ids=lambda text: f"{ord(text[0]):06x}")
def test_no_character_of_unicode_is_raw_and_json_keeps_all_of_them(text: str) -> None:
    spaced = " ".join(text)  # a joiner or mark after a blank belongs to nothing

    assert raw(printable(spaced)) == set()
    encoded = json.dumps(spaced, ensure_ascii=False)
    assert raw(printable_json(encoded)) == set()
    assert json.loads(printable_json(encoded)) == spaced
    letters = [each for each in text if category(each) in ("Lu", "Ll", "Lt", "Lm", "Lo", "Nd") and not raw(each)]
    assert printable("".join(letters)) == "".join(letters)


def test_our_own_line_breaks_stay() -> None:
    assert printable_lines("a\x07\nb\u2028") == "a\\x07\nb\\u2028"
    assert printable_json('{\n  "a": "\x85\u202e"\n}') == '{\n  "a": "\\u0085\\u202e"\n}'


def test_json_writes_a_character_beyond_16_bits_as_a_pair() -> None:
    assert printable_json('"\U000e0001\U0010fffd\x7f"') == r'"\udb40\udc01\udbff\udffd\u007f"'


def test_texts_are_changed_wherever_they_are() -> None:
    value = {"a": ("b", 1, None, ["c"], {"d": "e"})}

    assert change_texts(value, str.upper) == {"A": ["B", 1, None, ["C"], {"D": "E"}]}


def test_a_long_hostile_text_grows_by_a_constant_factor_only() -> None:
    assert len(printable(HOSTILE_IN_MEMORY * 1000)) <= 10 * len(HOSTILE_IN_MEMORY * 1000)
