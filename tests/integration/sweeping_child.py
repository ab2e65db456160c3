"""A supervisor that only sweeps and reads commands line by line: a process for tests of orphans."""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

from longstop.process.orphan_sweeps import OrphanSweep
from longstop.telemetry.bus import Bus

#: Starts a process and prints its pid; the parent ends, or waits.
LEAVE = "sleep 300 >/dev/null & echo $!"
STAY = "env -i sleep 300 >/dev/null & echo $!; wait"


def main(data: str, node: str) -> None:
    own: set[int] = set()
    sweep = OrphanSweep(lambda: frozenset(own), Bus(), data=Path(data), node=node)
    print(os.getpid(), flush=True)
    for line in sys.stdin:
        order = json.loads(line)
        if order["do"] == "leave":
            left = subprocess.run(["sh", "-c", LEAVE], env={**os.environ, **order["environ"]}, stdout=subprocess.PIPE)
            answer = int(left.stdout)
        elif order["do"] == "begin a child":
            child = subprocess.Popen(["sh", "-c", STAY], stdout=subprocess.PIPE)
            assert child.stdout is not None
            own.add(child.pid)
            answer = int(child.stdout.readline())
        elif order["do"] == "lose the child":
            child.kill()
            child.wait()
            own.clear()
            answer = 0
        else:
            answer = asyncio.run(sweep.sweep())
        print(answer, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
