"""The verb `parse`: reads a recorded body offline, for authors of sources."""

import json
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from longstop.cli.options_and_data_access import settings_for
from longstop.cli.output import say_json
from longstop.errors import LongstopError, UsageError
from longstop.model.source_queries_and_answers import LIST, LIVE, Listing, Query
from longstop.sources.base import Source
from longstop.sources.bodies_and_urls import mapping_errors, read_body
from longstop.sports.registry import sport_named
from longstop.yaml_validation import read_file

#: The fetcher rejects larger bodies, too.
MAX_FILE_BYTES = 5_000_000


def parse(
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="The source, such as crex.")],
    kind: Annotated[
        str, typer.Argument(metavar="KIND", help="What the body is: list, live, or another resource of the sport.")
    ],
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A recorded body.")],
    match: Annotated[
        str | None, typer.Option(metavar="KEY", help="The match that the body must be about; by default any.")
    ] = None,
) -> None:
    """Parse a recorded body offline and print the result as JSON, with why the body may be altered (`suspicions`)."""
    from longstop.sources.load_sources import source_for_parsing

    parser = source_for_parsing(source, settings_for(None).sources)
    known = (LIST, LIVE, *sport_named(parser.sport).resources)
    if kind not in known:
        offered = ", ".join(each for each in known if _offers(parser, each))
        raise UsageError(f"{source} has no bodies of kind {kind}: the kinds are {offered}")
    with mapping_errors(LongstopError, f"{source}: parse() failed"):
        view = read_body(parser, Query(resource=kind, source_id=match or ""), _read_body(file))
    wrong = f"{source} returned a view that is not a msgspec Struct of its sport that JSON can express"
    if view is None:
        raise UsageError(f"{wrong}: None")
    try:
        fields = msgspec.to_builtins(view)
        printed = {**fields, "suspicions": _suspicions(view)} if isinstance(fields, dict) else fields
        shown = json.dumps(printed, ensure_ascii=False, indent=2, allow_nan=False)
        shown.encode()  # a lone surrogate cannot be printed
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError(f"{wrong}: {error}") from error
    say_json(shown)


VERBS = (parse,)


def _suspicions(view: Any) -> list[str]:
    """Return why the body may be altered; for a list, why its entries may be."""
    if isinstance(view, Listing):
        return [f"{entry.source_id}: {each}" for entry in view.boards for each in entry.suspicions]
    return list(getattr(view, "suspicions", ()))


def _offers(source: Source, kind: str) -> bool:
    try:
        read_body(source, Query(resource=kind), b"")
    except (LongstopError, OSError) as error:
        return not isinstance(error, UsageError)
    return True


def _read_body(file: Path) -> bytes:
    try:
        return read_file(file, MAX_FILE_BYTES)
    except OSError as error:
        raise UsageError(f"cannot read {file}: {error.strerror}") from error
