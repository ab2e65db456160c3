"""Measures a process and all that it has started."""

import os
import threading
from collections.abc import Callable
from contextlib import suppress

from longstop.model.resources import Resources
from longstop.process.processes import Identity, find_process, measure, process_tree


class Meter:
    """Measures now and then, in a thread of its own: to ask what a browser holds takes the kernel a while."""

    def __init__(self, monotonic: Callable[[], float], pid: int | None = None) -> None:
        self._monotonic = monotonic
        self._pid = os.getpid() if pid is None else pid
        self._peak: int | None = None
        self._cpu: dict[Identity, float] = {}
        self._measured_at: float | None = None
        self.newest: Resources | None = None

    def start(self, every_seconds: float) -> threading.Event:
        """Measure until the event that is returned is set."""
        ending = threading.Event()

        def work() -> None:
            while not ending.is_set():
                with suppress(OSError):  # no file is left to read it from: the last figures stand
                    self.newest = self.measure()
                ending.wait(every_seconds)

        threading.Thread(target=work, name="meter", daemon=True).start()
        return ending

    def measure(self) -> Resources | None:
        """Measure; `None` when there is no such process."""
        head = find_process(self._pid)
        if head is None:
            return None
        people = process_tree(head.identity)
        measured = measure(people)
        now = self._monotonic()
        own, percent = self._cpu_percents(head.identity, {each.identity: each.cpu_seconds for each in people}, now)
        if measured.rss_bytes is not None:
            self._peak = max(self._peak or 0, measured.rss_bytes)
        return Resources(
            pids=tuple(sorted(each.pid for each in people)),
            rss_bytes=measured.rss_bytes,
            pss_bytes=measured.pss_bytes,
            peak_rss_bytes=self._peak,
            cpu_percent=percent,
            own_pss_bytes=measure([head]).pss_bytes,
            own_cpu_percent=own,
        )

    def _cpu_percents(
        self, head: Identity, spent: dict[Identity, float], now: float
    ) -> tuple[float | None, float | None]:
        """Return what the first of them and all have spent since the last time; who is new has spent all since."""
        before, self._cpu = self._cpu, spent
        since, self._measured_at = self._measured_at, now
        if since is None or now <= since:
            return None, None
        percents = {who: 100 * (cpu - before.get(who, 0.0)) / (now - since) for who, cpu in spent.items()}
        return round(percents.get(head, 0.0), 1), round(sum(percents.values()), 1)
