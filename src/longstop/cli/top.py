"""The verb that shows the status continuously: top."""

import asyncio
import os
import select
import sys
import termios
import time
import tty
from collections.abc import Iterator
from contextlib import aclosing, contextmanager, suppress
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console, RenderableType
from rich.live import Live
from rich.text import Text

from longstop.cli.options import Data, existing_data
from longstop.cli.status_snapshot import StatusReader
from longstop.cli.top_view import screen
from longstop.clock import SystemClock
from longstop.errors import StorageError

REFRESH_SECONDS = 1.0
#: Keys that end it besides Ctrl-C: q, Ctrl-D, end of input.
_END_KEYS = frozenset({b"q", b"Q", b"\x04", b""})


def top(
    data: Data = None,
    once: Annotated[bool, typer.Option("--once", help="Print the status once and exit, for scripts.")] = False,
) -> None:
    """Show grades, matches by staleness, open circuits, memory and recoveries until q or Ctrl-C."""
    with suppress(KeyboardInterrupt):
        asyncio.run(_top(existing_data(data).data, once=once))


VERBS = (top,)


async def _top(data: Path, *, once: bool) -> None:
    console = Console()
    async with aclosing(StatusReader(data, SystemClock())) as reader:
        if once or not (sys.stdin.isatty() and console.is_terminal):
            console.print(screen(await reader.read(), console.width, height=10_000))
        else:
            await _show(reader, console)


async def _show(reader: StatusReader, console: Console) -> None:
    with _keys() as keyboard, Live(console=console, screen=True, auto_refresh=False, vertical_overflow="crop") as live:
        while True:
            live.update(await _current(reader, console), refresh=True)
            if _is_ended(keyboard, time.monotonic() + REFRESH_SECONDS):
                return


async def _current(reader: StatusReader, console: Console) -> RenderableType:
    try:
        return screen(await reader.read(), console.width, console.height)
    except StorageError as error:  # often temporary: the next refresh may succeed
        return Text(f"longstop: {error}", "bold red")


def _is_ended(keyboard: int, until: float) -> bool:
    """Wait for the next refresh; return whether an end key was pressed."""
    while (left := until - time.monotonic()) > 0:
        ready, _, _ = select.select([keyboard], [], [], left)
        if ready and os.read(keyboard, 1) in _END_KEYS:
            return True
    return False


@contextmanager
def _keys() -> Iterator[int]:
    """Yield the keyboard in a mode without line buffering and echo."""
    keyboard = sys.stdin.fileno()
    before = termios.tcgetattr(keyboard)
    try:
        tty.setcbreak(keyboard)
        yield keyboard
    finally:
        termios.tcsetattr(keyboard, termios.TCSADRAIN, before)
