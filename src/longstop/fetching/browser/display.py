"""A virtual display for a browser with a window, on a machine without a screen."""

import asyncio
import os
import tempfile
from shutil import which

from longstop.errors import BrowserLost
from longstop.fetching.browser.closing import KILL_SECONDS, kill_trees
from longstop.process.processes import MARK_VARIABLE, Identity, find_process

START_SECONDS = 10.0
PROGRAM = "Xvfb"


class Display:
    """An Xvfb that we started."""

    def __init__(self, process: asyncio.subprocess.Process, identity: Identity, name: str) -> None:
        self._process = process
        self.identity = identity
        #: As in `DISPLAY`.
        self.name = name

    @classmethod
    async def start(cls, mark: str) -> "Display":
        """Start Xvfb, which picks a free display number and reports it."""
        program = which(PROGRAM)
        if program is None:
            raise BrowserLost("a browser with a window needs a display: run sudo apt-get install xvfb")
        reader, writer = os.pipe()
        try:
            process = await asyncio.create_subprocess_exec(
                program,
                *("-displayfd", str(writer), "-screen", "0", "1920x1080x24", "-nolisten", "tcp", "-noreset"),
                env={MARK_VARIABLE: mark, "PATH": os.defpath, "HOME": tempfile.gettempdir()},
                pass_fds=(writer,),
                start_new_session=True,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.DEVNULL,
            )
        finally:
            os.close(writer)
        process_seen = find_process(process.pid)
        display = cls(process, process_seen.identity if process_seen else Identity(process.pid, 0), "")
        try:
            display.name = f":{await _number(reader)}"
        except BaseException:
            await display.aclose()
            raise
        return display

    async def aclose(self) -> None:
        await kill_trees((self.identity,))
        async with asyncio.timeout(KILL_SECONDS):
            await self._process.wait()


async def _number(reader: int) -> int:
    """Read the display number; an empty line means that Xvfb has exited."""
    loop = asyncio.get_running_loop()
    stream = asyncio.StreamReader()
    transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(stream), os.fdopen(reader, "rb"))
    try:
        async with asyncio.timeout(START_SECONDS):
            return int(await stream.readline())
    except (TimeoutError, ValueError):
        raise BrowserLost(f"{PROGRAM} did not start within {START_SECONDS:g} s, or exited") from None
    finally:
        transport.close()
