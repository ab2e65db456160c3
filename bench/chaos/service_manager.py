"""What a service manager does for a deployment: it starts another supervisor when one was killed."""

import asyncio
import sys
from asyncio.subprocess import DEVNULL, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import psutil

from longstop.settings import PARENT_FD_VARIABLE
from longstop.supervision.lifeline_and_heartbeat_pipes import lifeline
from longstop_lab.deployment import STOP_TIMEOUT, Deployment


class Service:
    """Starts supervisors on the data of a deployment, one after the other."""

    def __init__(self, deployment: Deployment, life_line: int) -> None:
        self._deployment = deployment
        self._life_line = life_line
        first = psutil.Process(deployment.up_pid).environ()
        self._environ = {**first, PARENT_FD_VARIABLE: str(life_line)}
        self._started: list[Process] = []

    async def start_up(self) -> None:
        """Start the next supervisor, which the deployment uses from now on."""
        log = self._deployment.log.with_name(f"longstop-{len(self._started) + 2}.log")
        with log.open("wb") as out:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "longstop", "up"),
                env=self._environ,
                pass_fds=(self._life_line,),
                stdin=DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )
        self._started.append(process)
        self._deployment.use_supervisor(process)

    async def aclose(self) -> None:
        """End the last one; all others were killed."""
        for process in self._started:
            with suppress(ProcessLookupError):
                process.terminate()
            try:
                async with asyncio.timeout(STOP_TIMEOUT):
                    await process.wait()
            except TimeoutError:
                process.kill()
                await process.wait()


@asynccontextmanager
async def serviced(deployment: Deployment) -> AsyncIterator[Service]:
    with lifeline() as life_line:
        service = Service(deployment, life_line)
        try:
            yield service
        finally:
            await service.aclose()
