"""Who is left alone, as it is told to people."""

from datetime import datetime

from msgspec import Struct


class BreakerNote(Struct, frozen=True, kw_only=True):
    """One breaker that is not closed, a kind of page that cannot be read, or a site that rests."""

    #: What it guards: `target`, `match`, `source`, `layout` or `rest`.
    scope: str
    subject: str
    state: str
    since: datetime
    #: When it is tried again; `None` when that is not known.
    until: datetime | None = None
    #: How long that is from when this was told.
    left_seconds: float | None = None
    reason: str = ""
