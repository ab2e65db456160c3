"""The operator of `hostile`: stops, damages, starts, and restores a backup if the product refuses to start."""

import asyncio
import sys
from asyncio.subprocess import PIPE, STDOUT
from collections.abc import Collection
from contextlib import suppress
from datetime import datetime
from enum import StrEnum
from time import monotonic

import psutil
from msgspec import Struct

from bench.chaos.hostile_files import FILES, damage
from bench.chaos.hostile_schedule import REBUILT, WHILE_RUNNING, Damage
from bench.chaos.hostile_watch import TRACEBACK, logs
from bench.chaos.recovery import are_all_fresh
from bench.chaos.service_manager import Service
from bench.reporting import say
from longstop.clock import SystemClock
from longstop.errors import UsageError
from longstop.settings import PARENT_FD_VARIABLE
from longstop.supervision.exit_codes import Exit
from longstop_lab.client import ReadsApi, list_matches
from longstop_lab.deployment import STOP_TIMEOUT, Deployment
from longstop_lab.version_log import VersionLog

#: How long the product may take to refuse, to notice, or to be fresh again.
OUTCOME_WITHIN = 20.0
RECOVER_WITHIN = 30.0
COMMAND_TIMEOUT = 60.0
#: A start that went on without what it needs has this long to show what it does, such as polling a paused match.
SILENT_SECONDS = 5.0
_POLL_SECONDS = 0.2


class Ending(StrEnum):
    """What the product made of a damage."""

    #: It ended by itself.
    REFUSED = "refused"
    #: It runs and is not ready.
    NOTICED = "noticed"
    #: It went on, and all matches are fresh.
    WENT_ON = "went-on"
    #: It says that it is ready, and the matches are not fresh.
    UNNOTICED = "unnoticed"


class Outcome(Struct, frozen=True, kw_only=True):
    """What the product made of a damage, and whether its last words name file and command."""

    damage: Damage
    ending: Ending
    exit_code: int | None = None
    names_file: bool = False
    names_command: bool = False

    @property
    def sentence(self) -> str:
        if self.ending is not Ending.REFUSED:
            return f"{self.damage}: {self.ending}{'' if self.is_right else ', which is wrong'}"
        unnamed = [
            what for what, is_named in (("file", self.names_file), ("command", self.names_command)) if not is_named
        ]
        missing = f", without naming {' or '.join(unnamed)}" if unnamed else ""
        return f"{self.damage}: refused with {self.exit_code}{missing}{'' if self.is_right else ', which is wrong'}"

    @property
    def is_right(self) -> bool:
        """Return whether it is what the damage demands."""
        if self.damage in REBUILT:
            return self.ending is Ending.WENT_ON
        if self.ending is Ending.REFUSED:
            return self.exit_code == Exit.STORAGE and self.names_file and self.names_command
        return self.ending is Ending.NOTICED


class CommandOutput(Struct, frozen=True, kw_only=True):
    exit_code: int
    text: bytes


class StoreOperator:
    """Damages the store of a deployment, and brings it back."""

    def __init__(
        self,
        deployment: Deployment,
        site: ReadsApi,
        service: Service,
        version_log: VersionLog,
        others: Collection[str],
    ) -> None:
        self.outcomes: list[Outcome] = []
        self.restores = 0
        self.failed_restores = 0
        self.never_recovered = 0
        #: Tracebacks in the output of commands.
        self.tracebacks = 0
        self._deployment = deployment
        self._site = site
        self._service = service
        self._version_log = version_log
        self._others = others
        self._backups = 0
        environ = psutil.Process(deployment.up_pid).environ()
        self._environ = {name: value for name, value in environ.items() if name != PARENT_FD_VARIABLE}

    async def damage(self, kind: Damage, *, is_killed: bool, left: float) -> None:
        """Do one damage, and return when all matches are fresh again."""
        backup = await self._back_up()
        if kind not in WHILE_RUNNING:
            await self._stop(is_killed=is_killed)
        since = SystemClock().now()
        damage(self._deployment.data, kind, left=left)
        if kind not in WHILE_RUNNING:
            if FILES[kind] == "matches.db":
                # What is read again has other sequence numbers: only versions from here on must stay.
                self._version_log.clear()
            await self._service.start_up()
        outcome = await self._outcome(kind, since)
        self.outcomes.append(outcome)
        say(outcome.sentence)
        # These read the damaged files, too.
        await asyncio.gather(self.command("health"), self.command("matches"))
        if outcome.ending is Ending.WENT_ON and kind not in REBUILT:
            await asyncio.sleep(SILENT_SECONDS)
        if outcome.ending is not Ending.WENT_ON or kind not in REBUILT:
            since = await self._restart(None if kind in REBUILT and outcome.ending is not Ending.REFUSED else backup)
        await self._recover(backup, since)

    async def command(self, *arguments: str) -> CommandOutput:
        """Run a verb as an operator does."""
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "longstop", *arguments, "--data", str(self._deployment.data)),
            env=self._environ,
            stdout=PIPE,
            stderr=STDOUT,
        )
        try:
            async with asyncio.timeout(COMMAND_TIMEOUT):
                text, _ = await process.communicate()
        except TimeoutError:
            process.kill()
            text, _ = await process.communicate()
        self.tracebacks += text.count(TRACEBACK)
        return CommandOutput(exit_code=process.returncode or 0, text=text)

    async def _back_up(self) -> str:
        self._backups += 1
        folder = str(self._deployment.data.with_name(f"backup-{self._backups}"))
        saved = await self.command("backup", folder)
        if saved.exit_code:
            raise UsageError(f"the backup failed: {saved.text.decode(errors='replace')[-300:]}")
        return folder

    async def _stop(self, *, is_killed: bool = False) -> None:
        """Stop everything in order, or kill all processes at once as a power cut would."""
        ended = asyncio.create_task(self._deployment.wait())
        await asyncio.wait((ended,), timeout=0)
        if ended.done():
            return
        up = psutil.Process(self._deployment.up_pid)
        family = up.children(recursive=True)
        if is_killed:
            _kill(up, *family)
        else:
            up.terminate()
        await asyncio.wait((ended,), timeout=STOP_TIMEOUT)
        if not ended.done():
            _kill(up)
            await ended
        _kill(*(await asyncio.to_thread(psutil.wait_procs, family, 5))[1])

    async def _outcome(self, kind: Damage, since: datetime) -> Outcome:
        """Wait until the product refuses, notices or goes on."""
        started, was_ready = monotonic(), False
        ended = asyncio.create_task(self._deployment.wait())
        try:
            while monotonic() - started < OUTCOME_WITHIN:
                await asyncio.wait((ended,), timeout=_POLL_SECONDS)
                if ended.done():
                    return self._refusal(kind, ended.result())
                is_ready = await self._deployment.api.responds("/ready")
                was_ready = was_ready or is_ready
                # While it runs, damage to what cannot be rebuilt must be noticed, however fresh the matches are.
                must_notice = kind in WHILE_RUNNING and kind not in REBUILT
                if must_notice and not is_ready and self._deployment.process("api") is not None:
                    return Outcome(damage=kind, ending=Ending.NOTICED)
                if not must_notice and await self._is_fresh(since):
                    return Outcome(damage=kind, ending=Ending.WENT_ON)
            is_ready = await self._deployment.api.responds("/ready")
            return Outcome(damage=kind, ending=Ending.UNNOTICED if is_ready else Ending.NOTICED)
        finally:
            ended.cancel()

    def _refusal(self, kind: Damage, exit_code: int) -> Outcome:
        words = logs(self._deployment)[-1].read_bytes()[-20_000:]
        return Outcome(
            damage=kind,
            ending=Ending.REFUSED,
            exit_code=exit_code,
            names_file=FILES[kind].encode() in words,
            names_command=b"longstop restore" in words,
        )

    async def _restart(self, backup: str | None) -> datetime:
        """Stop what still runs, restore a backup if there is one, start, and return the time of the start."""
        await self._stop()
        if backup is not None:
            restored = await self.command("restore", backup, "--force")
            self.restores += 1
            if restored.exit_code:
                self.failed_restores += 1
                say(f"the restore failed: {restored.text.decode(errors='replace')[-300:]}")
            # A restore removes what came after its backup.
            self._version_log.clear()
        await self._service.start_up()
        return SystemClock().now()

    async def _recover(self, backup: str, since: datetime) -> None:
        """Wait until all matches are fresh; what does not recover by itself is restored."""
        if await self._is_fresh_within(RECOVER_WITHIN, since):
            return
        self.never_recovered += 1
        say("not recovered; restoring the backup")
        await self._is_fresh_within(RECOVER_WITHIN, await self._restart(backup))

    async def _is_fresh_within(self, seconds: float, since: datetime) -> bool:
        started = monotonic()
        while monotonic() - started < seconds:
            if await self._is_fresh(since):
                return True
            await asyncio.sleep(_POLL_SECONDS)
        return False

    async def _is_fresh(self, since: datetime) -> bool:
        """Return whether the API shows a poll since then of every match in play, without `others`."""
        with suppress(UsageError):
            entries = await list_matches(self._site)
            return are_all_fresh([entry for entry in entries if entry["match_id"] not in self._others], since)
        return False


def _kill(*processes: psutil.Process) -> None:
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.kill()
