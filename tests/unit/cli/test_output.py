"""The console that all verbs print through."""

from io import StringIO

import pytest
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from longstop.cli.output import TextConsole, plain
from tests.security.hostile_texts import HOSTILE_IN_MEMORY, raw


def shown(what: object, width: int = 60, **options: object) -> str:
    console = TextConsole(file=StringIO(), width=width, color_system=None, **options)
    console.print(what)
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize(
    "make",
    [
        str,
        Text,
        plain,
        Panel,
        lambda text: Panel("x", title=Text(text)),
        lambda text: Text("a", style="b") + Text(text),
    ],
    ids=["str", "text", "cell", "panel", "title", "sum"],
)
@pytest.mark.parametrize("is_terminal", [False, True])
def test_whatever_is_printed_nothing_is_raw(make: object, is_terminal: bool) -> None:
    assert callable(make)

    assert raw(shown(make(HOSTILE_IN_MEMORY), force_terminal=is_terminal)) == set()


@pytest.mark.parametrize("text", ["[red]a[/red]", "[link=http://evil.test]a[/link]", ":boom:", "[/]", "\\[b]"])
def test_markup_is_shown_as_it_is(text: str) -> None:
    table = Table(text)
    table.add_row(text)

    assert shown(text) == f"{text}\n"
    assert shown(table).count(text) == 2


@pytest.mark.parametrize("cell", [str, plain], ids=["str", "cell"])
def test_escapes_are_as_wide_as_they_look_so_that_a_table_stays_whole(cell: type[str]) -> None:
    table = Table("a", "b")
    table.add_row(cell("\x1b\u202e\u200b" * 20), "x")
    table.add_row("x", cell("中国" * 30))
    table.add_row(cell("two\nlines\tand a tab"), "x")

    lines = shown(table).splitlines()

    ours = [line for line in lines if "中" not in line]
    assert {len(line) for line in ours} == {len(lines[0])}
    assert all(line.endswith(("┓", "┃", "┩", "│", "┘")) for line in lines)
