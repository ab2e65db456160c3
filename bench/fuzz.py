"""Parsers against bodies that no site should send: the answer is a reading or a typed error, soon, and nothing else.

The corpus is every page under `tests/pages/<source>/`, named for its resource (`live_….json`), or `match_…`
when it answers every question, and the recorded bodies where they are present. A new source joins by its pages.
"""

import argparse
import json
import os
import random
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct

from bench.reporting import Report, run, say
from longstop.errors import ObservationError, ParseError, SourceChallenged
from longstop.model.source_queries_and_answers import LIST, LIVE, Query
from longstop.sources.base import Source
from longstop.sources.bodies_and_urls import read_body
from longstop.sources.load_sources import offline_source
from longstop.sports.cricket.model import BALLS, NAMES, SCORECARD
from longstop.sports.football.model import INCIDENTS, LINEUPS, STATISTICS

ROOT = Path(__file__).parents[1]
PAGES = ROOT / "tests" / "pages"
#: The longest that one body of any kind may take.
PARSE_WITHIN = 1.0
#: Put where a value was.
STRANGE: tuple[Any, ...] = (
    *(None, True, 0, -1, 10**30, 1e308, [], {}, [[]], {"a": 1}),
    *("", "0", "NaN", "\u0000", "٣", "9" * 5000, "305/8(50.0", "^2"),
)
#: Put where a byte was.
BYTES = (b"", b"\x00", b"\xff", b'"', b"{", b"]", b"NaN", b"\\ud800", b"1e400", b"\xef\xbb\xbf", b"<html>")


class Case(Struct, frozen=True, kw_only=True):
    """A body that is read well, and how it is asked for."""

    source: Source
    resource: str
    body: bytes
    name: str


def corpus() -> list[Case]:
    """Return every page we have, one case each."""
    cases = []
    for folder in sorted(path for path in PAGES.iterdir() if path.is_dir()):
        source = offline_source(folder.name)
        for file in sorted(folder.iterdir()):
            cases += [
                Case(source=source, resource=resource, body=file.read_bytes(), name=file.name)
                for resource in _resources(file.name)
            ]
    return cases + list(_recorded())


_WORDS: dict[str, tuple[str, ...]] = {
    "ball_feed": (BALLS,),
    "live_list": (LIST,),
    "live": (LIVE,),
    "scorecard": (SCORECARD,),
    "names": (NAMES,),
    "incidents": (INCIDENTS,),
    "lineups": (LINEUPS,),
    "statistics": (STATISTICS,),
    "match": (LIVE, BALLS, SCORECARD, NAMES),
}


def _resources(name: str) -> tuple[str, ...]:
    """Return what a page answers."""
    return next(resources for word, resources in _WORDS.items() if name.startswith(word))


def _recorded() -> Iterator[Case]:
    folder = Path(os.environ.get("LONGSTOP_RECORDED", ROOT.parent / "shared" / "data"))
    files = {"ball_feed_11HD.json": BALLS, "sc4_11HD_early.json": SCORECARD}
    for name, resource in files.items():
        if (file := folder / "crex" / name).exists():
            yield Case(source=offline_source("crex"), resource=resource, body=file.read_bytes(), name=name)


def mutated(case: Case, dice: random.Random) -> bytes:
    """Return the body with something wrong."""
    way = dice.choice([_cut, _flip, _splice, _restructure, _restructure, _restructure, _nest, _reencode])
    return way(case.body, dice)


def _cut(body: bytes, dice: random.Random) -> bytes:
    return body[: dice.randrange(len(body))]


def _flip(body: bytes, dice: random.Random) -> bytes:
    spoilt = bytearray(body)
    for _ in range(dice.randint(1, 8)):
        spoilt[dice.randrange(len(spoilt))] ^= 1 << dice.randrange(8)
    return bytes(spoilt)


def _splice(body: bytes, dice: random.Random) -> bytes:
    at = dice.randrange(len(body))
    return body[:at] + dice.choice(BYTES) + body[at + dice.randint(0, 3) :]


def _nest(body: bytes, dice: random.Random) -> bytes:
    at = dice.randrange(len(body))
    return body[:at] + b"[" * 100_000 + body[at:]


def _reencode(body: bytes, dice: random.Random) -> bytes:
    return body.decode("utf-8", "replace").encode(dice.choice(["utf-16", "utf-32", "latin-1", "cp500"]), "replace")


def _restructure(body: bytes, dice: random.Random) -> bytes:
    """Change one value somewhere in the JSON: the shape stays nearly right, which is the worst."""
    start, end = _json_span(body)
    try:
        tree = json.loads(body[start:end])
    except ValueError:
        return _flip(body, dice)
    for _ in range(dice.randint(1, 3)):
        tree = _changed(tree, dice)
    return body[:start] + json.dumps(tree).encode() + body[end:]


def _json_span(body: bytes) -> tuple[int, int]:
    marker = b'type="application/json">'
    if marker not in body:
        return 0, len(body)
    start = body.index(marker) + len(marker)
    return start, body.index(b"</script>", start)


def _changed(tree: Any, dice: random.Random) -> Any:
    if not isinstance(tree, dict | list) or not tree or dice.random() < 0.1:
        return dice.choice(STRANGE)
    if isinstance(tree, list):
        at = dice.randrange(len(tree))
        ways: list[Callable[[], list[Any]]] = [
            lambda: [*tree[:at], _changed(tree[at], dice), *tree[at + 1 :]],
            lambda: [*tree[:at], *tree[at + 1 :]],
            lambda: [*tree, tree[at]],
        ]
        return dice.choices(ways, [8, 1, 1])[0]()
    name = dice.choice(list(tree))
    if dice.random() < 0.15:
        return {key: value for key, value in tree.items() if key != name}
    return {**tree, name: _changed(tree[name], dice)}


def try_case(case: Case, body: bytes) -> str | None:
    """Return what is wrong with how a body is taken; `None` when it is a reading or a typed error, in time."""
    query, began = Query(resource=case.resource, source_id=""), time.perf_counter()
    try:
        case.source.digest(query, body)
    except (ParseError, ObservationError, SourceChallenged):
        pass  # then the whole body counts
    except Exception as error:
        return f"{case.name}: the digest of {case.resource} raised {error!r} for {body[:120]!r}"
    try:
        read_body(case.source, query, body)
    except (ParseError, ObservationError) as error:
        if not (error.source and error.request):
            return f"{case.name}: {error!r} names neither source nor request"
    except Exception as error:  # what we are looking for
        return f"{case.name}: {case.resource} raised {error!r} for {body[:120]!r}"
    seconds = time.perf_counter() - began
    return f"{case.name}: {case.resource} took {seconds:.1f} s" if seconds > PARSE_WITHIN else None


def complaints(cases: Iterable[Case], dice: random.Random) -> Iterator[str | None]:
    """Yield the verdict on one mutated body after the other, without end."""
    chosen = list(cases)
    while True:
        case = dice.choice(chosen)
        yield try_case(case, mutated(case, dice))


async def fuzz(seconds: float, seed: int) -> Report:
    cases = corpus()
    say(f"{len(cases)} cases, seed {seed}, {seconds:g} s")
    tried, wrong = 0, []
    until = time.monotonic() + seconds
    for complaint in complaints(cases, random.Random(seed)):
        tried += 1
        wrong += [complaint] if complaint else []
        if time.monotonic() >= until or len(wrong) >= 20:
            break
    return Report(suite="fuzz", is_ok=not wrong, figures={"bodies": tried, "wrong": len(wrong)}, details=wrong)


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/fuzz", description="Feed the parsers what no site should send.")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    return run("fuzz", fuzz(chosen.seconds, chosen.seed))


if __name__ == "__main__":
    sys.exit(main())
