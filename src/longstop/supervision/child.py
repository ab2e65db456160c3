"""A child process that is ours from its birth on: whatever is lacking for watching it, it is never out of hand.

`asyncio` sets about watching a child when it is born already, and forgets it when no thread or descriptor is left for
that: then it would live on, and its next life beside it.
"""

import asyncio
import os
import signal
import subprocess
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress

#: How often a child is looked after whose end the kernel cannot tell us, for want of a descriptor.
POLL_SECONDS = 0.1


class Child:
    """One life of one process. Whoever waits for its end may be many."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.pid = process.pid
        self._process = process
        self._ended = asyncio.Event()
        self._handle: int | None = None
        self._polling: asyncio.Task[None] | None = None
        try:
            self._handle = os.pidfd_open(process.pid)
            asyncio.get_running_loop().add_reader(self._handle, self._end)
        except OSError:  # no descriptor or memory is left for it, or the kernel is an old one
            self.let_go()
            self._polling = asyncio.create_task(self._poll(), name=f"poll {process.pid}")

    @classmethod
    def start(cls, argv: Sequence[str], env: Mapping[str, str], pass_fds: Collection[int] = ()) -> "Child":
        """Start a program, in a session of its own: Ctrl-C reaches the supervisor alone."""
        return cls(
            subprocess.Popen(  # noqa: S603 - what is started is written in this package
                argv, env=env, stdin=subprocess.DEVNULL, pass_fds=tuple(pass_fds), start_new_session=True
            )
        )

    @property
    def exit_code(self) -> int | None:
        """`None` while it lives; below zero a signal's number."""
        return self._process.poll()

    async def wait(self) -> int:
        """Return its exit code when it has ended."""
        await self._ended.wait()
        exit_code = self.exit_code
        assert exit_code is not None  # noqa: S101 - it has ended
        return exit_code

    def ask_to_stop(self) -> None:
        self._process.terminate()

    def kill_group(self) -> None:
        """Kill it with its process group, as long as it lives: later the number may be somebody else's."""
        if self.exit_code is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)

    def let_go(self) -> None:
        """Wait for its end no longer; whoever still does is left waiting."""
        if self._polling is not None:
            self._polling.cancel()
        handle, self._handle = self._handle, None
        if handle is not None:
            asyncio.get_running_loop().remove_reader(handle)
            os.close(handle)

    async def _poll(self) -> None:
        while self.exit_code is None:  # noqa: ASYNC110 - nothing tells us of it
            await asyncio.sleep(POLL_SECONDS)
        self._ended.set()

    def _end(self) -> None:
        if self.exit_code is not None:
            self.let_go()
            self._ended.set()
