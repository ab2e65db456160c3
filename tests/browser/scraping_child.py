"""A scraper process for tests of orphans: it opens a page, prints its processes, and waits to be killed."""

import asyncio
import json
import os
import sys
from pathlib import Path

from longstop.fetching.browser.browser_policy_and_stats import BrowserKind
from longstop.fetching.browser.browser_pool_and_orphan_sweep import BrowserPool, PoolPlan
from longstop.telemetry.bus import Bus


async def main(registry: str, node: str, kind: str, is_cdp: bool) -> None:
    plan = PoolPlan(registry=Path(registry), node=node, is_cdp=is_cdp, environment=dict(os.environ))
    pool = BrowserPool(plan, Bus())
    engine = await pool.browser("crex", BrowserKind(kind)).acquire()
    context = await engine.new_context()
    await context.new_page()
    print(json.dumps([each.pid for each in engine.processes()]), flush=True)
    await asyncio.sleep(120)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4] == "cdp"))
