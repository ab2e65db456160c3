"""`python -m tests.golden.make_data_directory NAME`: write a data directory and a file with its contents.

Once for each version whose directories later ones must open; a directory that is there already is never written over.
"""

import asyncio
import sys
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import apsw

from tests.golden import product
from tests.golden.contracts import ANSWERED
from tests.golden.files import DIRECTORIES, write
from tests.golden.product import Plan
from tests.golden.tables import dump

#: One match in play with corrections, a withdrawn ball and a closed gap; one with a gap that stays; one of football.
MATCHES = (
    Plan(source="crex", seed=7, index=5, overs=3, mistakes=0.2, until=0.8),
    Plan(source="espncricinfo", seed=7, index=1, overs=5, mistakes=0.2, every=12),
    Plan(source="sofascore", seed=9, index=6),
)
#: Responses whose values are all golden: those about matches, except an error message.
SERVED = tuple(path for path in ANSWERED if path.startswith(("/cricket-data", "/football-data")) and "999" not in path)
#: Our own headers, whose values are golden as well.
HEADERS = ("etag", "x-data-freshness", "x-data-age-seconds", "x-data-sync")


def make(directory: Path) -> datetime:
    """Write a data directory; return the moment of the last poll."""
    product.name_node(directory)
    ended = max(asyncio.run(_poll_all(directory)))
    first = dump(directory)["matches"][0]
    product.operate(directory, ended, f"{first['source']}_{first['source_id']}")
    _tidy(directory)
    return ended


async def _poll_all(directory: Path) -> list[datetime]:
    return [await product.poll(directory, plan) for plan in MATCHES]


def _tidy(directory: Path) -> None:
    """Remove the boot id of this machine from the files, and all temporary files."""
    for name, tables in (("matches.db", ()), ("ops.db", ("commands",)), ("hot.db", ("views", "beats"))):
        connection = apsw.Connection(str(directory / name))
        for table in tables:
            connection.execute(f"UPDATE {table} SET boot = 'a former boot'")  # noqa: S608, our own names
        connection.execute("VACUUM")
        connection.close()
    for left in (*directory.glob("*-wal"), *directory.glob("*-shm")):
        left.unlink()


async def served(directory: Path, now: datetime) -> dict[str, Any]:
    """Return the API's responses about the matches of a data directory."""
    found = {}
    async with product.client(directory, now) as client:
        for path in SERVED:
            answer = await client.get(path)
            headers = {name: answer.headers[name] for name in HEADERS if name in answer.headers}
            found[path] = {"status": answer.status_code, "headers": headers, "body": answer.json()}
    return found


def main() -> None:
    directory = DIRECTORIES / sys.argv[1]
    DIRECTORIES.mkdir(parents=True, exist_ok=True)
    now = make(directory) + timedelta(seconds=5)
    document = {"now": now.isoformat(), "tables": dump(directory), "answers": asyncio.run(served(directory, now))}
    write(DIRECTORIES / f"{directory.name}.json", document)
    _tidy(directory)  # reading has left something, too


if __name__ == "__main__":
    main()
