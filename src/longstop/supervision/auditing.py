"""The sink that writes into the audit what the parts of a process do by themselves."""

import asyncio
from collections.abc import Collection

from longstop.clock import Clock
from longstop.model.recovery import RecoveryKind
from longstop.process import processes
from longstop.supervision.actions import Actions, Began, Entry, Key
from longstop.supervision.audit import Recoveries, Ticket
from longstop.telemetry.events import Telemetry

LOOK_SECONDS = 1.0
LAST_LOOK_SECONDS = 0.1


class Auditing:
    """Listens for actions; those who take them know nothing of the audit."""

    def __init__(self, recoveries: Recoveries, clock: Clock) -> None:
        self._recoveries = recoveries
        self._clock = clock
        self._actions = Actions()
        self._tickets: dict[Key, Ticket] = {}

    def take(self, event: Telemetry) -> None:
        self._write(self._actions.take(event, self._clock.monotonic()))

    async def run(self) -> None:
        """Look after what nothing is heard of any more, until cancelled."""
        while True:
            self.look()
            await asyncio.sleep(LOOK_SECONDS)

    async def see_out(self) -> None:
        """Look until the outcome of every sweep was seen: at the end of a process nobody else is going to."""
        self.look()
        while any(key.kind is RecoveryKind.SWEEP for key in self._tickets):
            await asyncio.sleep(LAST_LOOK_SECONDS)
            self.look()

    def look(self) -> None:
        self._write(self._actions.tick(self._clock.monotonic(), still_alive))

    def _write(self, entries: list[Entry]) -> None:
        for entry in entries:
            kind, subject = entry.key.kind, entry.key.subject
            if isinstance(entry, Began):
                self._tickets[entry.key] = self._recoveries.begin(
                    kind, trigger=entry.trigger, subject=subject, pids_before=entry.pids_before
                )
            else:
                self._recoveries.end(
                    self._tickets.pop(entry.key), entry.outcome, observed=entry.observed, pids_after=entry.pids_after
                )


def still_alive(pids: Collection[int]) -> Collection[int]:
    """Return which of these run; the dead whom nobody has waited for do not."""
    found = (processes.find_process(pid) for pid in pids)
    return [each.pid for each in found if each is not None and each.state != "Z"]
