"""What a listing says: who is new, who needs a closer look, who is as before, and of whom it is silent."""

from collections.abc import Callable, Collection

from msgspec import Struct

from longstop.sources.base import Line, Listing


class Plan(Struct, frozen=True, kw_only=True):
    """A listing, sorted out. A match it does not show is not finished: it is looked at by itself."""

    new: tuple[Line, ...]
    changed: tuple[Line, ...]
    unchanged: tuple[Line, ...]
    missing: tuple[str, ...]


def sort_out(
    listing: Listing, *, watched: Collection[str], ignored: Collection[str], is_news: Callable[[Line], bool]
) -> Plan:
    """Return what to do about each match of a listing and each match that we watch."""
    boards = [board for board in listing.boards if board.source_id not in ignored]
    known = [board for board in boards if board.source_id in watched]
    news = [is_news(board) for board in known]
    return Plan(
        new=tuple(board for board in boards if board.source_id not in watched),
        changed=tuple(board for board, is_changed in zip(known, news, strict=True) if is_changed),
        unchanged=tuple(board for board, is_changed in zip(known, news, strict=True) if not is_changed),
        missing=tuple(sorted(set(watched) - {board.source_id for board in boards})),
    )
