"""What a site could write into any text, records whose every text has it, and what of it reached an output raw.

This module decides what is raw by itself: shared code would share its mistakes.
"""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, TypeVar, cast
from unicodedata import category

import msgspec
from msgspec import Struct

NOW = datetime(2026, 3, 7, 14, 0, tzinfo=UTC)
T = TypeVar("T")

C0, DEL, C1 = map(chr, range(0x20)), "\x7f", map(chr, range(0x80, 0xA0))
BIDI = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
ZERO_WIDTH = (
    "\u00ad\u034f\u115f\u1160\u17b4\u180b\u180e\u200b\u200c\u200d\u2060\u2061\u206a\u3164\ufe00\ufe0f\ufeff\uffa0"
)
OTHERS = "\u2028\u2029\u2800\ue000\ufff9\ufdd0\ufffe\u0378\U000e0041\U000e0101\U0010fffd"
ESCAPES = "\x1b[2J\x1b]8;;http://evil.test\x1b\\link\x1b]8;;\x07\x9b31m\x1bP1$r\x1b\\"
FLOOD = "Z" + "\u0301\u0336\u20dd" * 10
#: All of it, each after a Latin letter, where no language needs it.
HOSTILE = "".join(f"a{each}" for each in (*C0, DEL, *C1, *BIDI, *ZERO_WIDTH, *OTHERS, ESCAPES, FLOOD, "[red]b[/red]"))
#: What neither JSON nor a database stores, but a program's memory and its arguments hold.
HOSTILE_IN_MEMORY = f"{HOSTILE}a\ud800a\udcff"
FORGED = "\r\nlongstop: all is well"

_BLANK = set("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0")
_BLANK |= {chr(code) for code in (*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0))}
_STYLES = re.compile(r"\x1b\[[0-9;]*m")


def raw(output: str) -> set[str]:
    """Return what is raw in an output: hidden characters other than newlines, and floods of marks."""
    found = {
        f"U+{ord(letter):04X}"
        for letter in output
        if letter != "\n" and (category(letter)[0] == "C" or category(letter) in ("Zl", "Zp") or letter in _BLANK)
    }
    marks = 0
    for letter in output:
        marks = marks + 1 if category(letter) in ("Mn", "Me") else 0
        if marks > 8:
            found.add("flood")
    return found


def without_styles(output: str) -> str:
    """Return what is left on a terminal of our own colours; nothing else of the kind is ours."""
    return _STYLES.sub("", output)


def filled(kind: type[T], text: str = HOSTILE) -> T:
    """Return a record of this type in which every text is the hostile one, however deep."""
    return cast(T, _value(msgspec.inspect.type_info(kind), text, ()))


def _value(info: msgspec.inspect.Type, text: str, above: tuple[type, ...]) -> Any:
    """Return a value of a type; `above` has the records around it, which must not contain themselves for ever."""
    match info:
        case msgspec.inspect.Metadata(type=inner):
            return _value(inner, text, above)
        case msgspec.inspect.StrType() | msgspec.inspect.AnyType() | msgspec.inspect.RawType():
            return text
        case msgspec.inspect.BytesType():
            return b"{}"
        case msgspec.inspect.IntType(ge=ge, gt=gt):
            return max(1, ge or 0, (gt or 0) + 1)
        case msgspec.inspect.FloatType():
            return 1.0
        case msgspec.inspect.BoolType():
            return True
        case msgspec.inspect.NoneType():
            return None
        case msgspec.inspect.DateTimeType():
            return NOW
        case msgspec.inspect.EnumType(cls=kind):
            return next(iter(kind))
        case msgspec.inspect.LiteralType(values=values):
            return values[0]
        case msgspec.inspect.UnionType(types=types):
            return _value(next(each for each in types if not isinstance(each, msgspec.inspect.NoneType)), text, above)
        case msgspec.inspect.DictType(key_type=key, value_type=value):
            return {_value(key, text, above): _value(value, text, above)}
        case msgspec.inspect.VarTupleType(item_type=item):
            return () if getattr(item, "cls", None) in above else (_value(item, text, above),)
        case msgspec.inspect.ListType(item_type=item) | msgspec.inspect.CollectionType(item_type=item):
            return [_value(item, text, above)]
        case msgspec.inspect.FrozenSetType(item_type=item):
            return frozenset({_value(item, text, above)})
        case msgspec.inspect.TupleType(item_types=items):
            return tuple(_value(item, text, above) for item in items)
        case msgspec.inspect.StructType(cls=kind, fields=fields):
            inside = {field.name: _value(field.type, text, (*above, kind)) for field in fields}
            return kind(**inside)
    raise NotImplementedError(f"say what a {info} holds")


def records_of(*modules: Any) -> Iterator[type[Struct]]:
    """Yield the records that these modules define."""
    for module in modules:
        for each in vars(module).values():
            if isinstance(each, type) and issubclass(each, Struct) and each.__module__ == module.__name__:
                yield each


def subclasses(kind: type[T]) -> Iterator[type[T]]:
    for each in kind.__subclasses__():
        yield each
        yield from subclasses(each)


def texts_in(value: Any) -> Iterator[str]:
    """Yield every text of a decoded JSON value, keys included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, each in value.items():
            yield key
            yield from texts_in(each)
    elif isinstance(value, list):
        for each in value:
            yield from texts_in(each)
