"""All that a verb prints goes out here: nothing of a site reaches the terminal raw."""

import sys
from collections.abc import Iterable
from shutil import get_terminal_size
from textwrap import TextWrapper
from typing import Any, TextIO

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from longstop.errors import SettingsError
from longstop.text import printable, printable_json, printable_lines

#: On a narrower terminal a table would show nothing.
MIN_COLUMNS = 20


class TextConsole(Console):
    """Shows texts literally: without markup, emoji codes and control characters."""

    def __init__(self, **options: Any) -> None:
        super().__init__(markup=False, emoji=False, **options)
        if self.width < MIN_COLUMNS:  # such as COLUMNS=0
            self.width = MIN_COLUMNS

    def render_str(self, text: str, **options: Any) -> Text:
        # Before the layout: an escape is wider than the character. A string is one line; a `Text` may have several.
        return super().render_str(printable(text), **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        # Control segments move the cursor of a live table: they are ours.
        for segment in super().render(renderable, options):
            text = segment.text if segment.control else printable_lines(segment.text)
            yield segment if text == segment.text else segment._replace(text=text)


def plain(text: str, style: str = "") -> Text:
    """Return a cell of one line that shows a text literally."""
    return Text(printable(text), style)


def say(text: str, file: TextIO | None = None, hanging: int = 2) -> None:
    """Print lines of our own with texts of a site in them, wrapped at words on a terminal."""
    file = file or sys.stdout
    print(wrapped(text, file, hanging), file=file, flush=True)


def say_error(error: BaseException, prefix: str = "longstop: ") -> None:
    """Print an error on stderr. Only those of settings have several lines: another's may quote a site."""
    text = str(error) or type(error).__name__
    say(prefix + (text if isinstance(error, SettingsError) else printable(text)), sys.stderr)


def say_json(encoded: str) -> None:
    """Print JSON, ready for a terminal."""
    print(printable_json(encoded), flush=True)


def wrapped(text: str, file: TextIO, hanging: int = 2) -> str:
    """Return printable text; on a terminal its lines wrap at words, with a hanging indent."""
    lines = printable_lines(text)
    if not file.isatty():
        return lines
    wrapper = TextWrapper(
        max(MIN_COLUMNS, get_terminal_size().columns),
        subsequent_indent=" " * hanging,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return "\n".join(map(wrapper.fill, lines.split("\n")))
