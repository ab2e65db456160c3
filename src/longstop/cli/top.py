"""The verb that shows how it goes, all the time: top."""

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
from longstop.cli.picture import Camera
from longstop.cli.top_view import screen
from longstop.clock import SystemClock
from longstop.errors import StorageError

REFRESH_SECONDS = 1.0
#: What ends it, beside Ctrl-C: q, and the end of what is typed.
_ENDS = frozenset({b"q", b"Q", b"\x04", b""})


def top(
    data: Data = None,
    once: Annotated[bool, typer.Option("--once", help="Print it once and end, for scripts.")] = False,
) -> None:
    """Show grades, matches by staleness, breakers, memory and what was mended, until q or Ctrl-C."""
    with suppress(KeyboardInterrupt):  # that is how one leaves
        asyncio.run(_top(existing_data(data).data, once=once))


VERBS = (top,)


async def _top(data: Path, *, once: bool) -> None:
    console = Console()
    async with aclosing(Camera(data, SystemClock())) as camera:
        if once or not (sys.stdin.isatty() and console.is_terminal):
            console.print(screen(await camera.take(), console.width, height=10_000))
        else:
            await _show(camera, console)


async def _show(camera: Camera, console: Console) -> None:
    with _keys() as keyboard, Live(console=console, screen=True, auto_refresh=False, vertical_overflow="crop") as live:
        while True:
            live.update(await _seen(camera, console), refresh=True)
            if _is_over(keyboard, time.monotonic() + REFRESH_SECONDS):
                return


async def _seen(camera: Camera, console: Console) -> RenderableType:
    try:
        return screen(await camera.take(), console.width, console.height)
    except StorageError as error:  # it may be back in a second
        return Text(f"longstop: {error}", "bold red")


def _is_over(keyboard: int, until: float) -> bool:
    """Wait for the next refresh; return whether somebody wants to leave."""
    while (left := until - time.monotonic()) > 0:
        ready, _, _ = select.select([keyboard], [], [], left)
        if ready and os.read(keyboard, 1) in _ENDS:
            return True
    return False


@contextmanager
def _keys() -> Iterator[int]:
    """Give the keyboard, letter by letter and without showing what is typed."""
    keyboard = sys.stdin.fileno()
    before = termios.tcgetattr(keyboard)
    try:
        tty.setcbreak(keyboard)
        yield keyboard
    finally:
        termios.tcsetattr(keyboard, termios.TCSADRAIN, before)
