"""The road of any sport, as the watching sees it: it looks, it keeps, and it says where a match stands in our care."""

from typing import Protocol

from longstop.pipeline.effort import Effort
from longstop.pipeline.held import HeldMatch
from longstop.storage.base import Receipt


class Looked(Protocol):
    """What came of one look."""

    @property
    def state(self) -> HeldMatch: ...

    @property
    def receipt(self) -> Receipt | None:
        """Return the proof of what was stored; `None` when there was nothing to store."""
        ...


class MatchRoad(Protocol):
    """Everything one look at a match needs, from asking to storing."""

    async def run(self, state: HeldMatch, *, is_whole: bool = False, effort: Effort | None = None) -> Looked:
        """Take one look, a whole one if asked to, and keep what it changed; when it fails, raise and change nothing."""
        ...

    async def reload(self, state: HeldMatch) -> HeldMatch:
        """Return the durable base of a match that is still ours."""
        ...

    async def finish(self, state: HeldMatch, effort: Effort) -> HeldMatch:
        """Read what is left of a match whose page is gone, and store that it is over."""
        ...

    async def pause(self, state: HeldMatch) -> HeldMatch:
        """Store that a match rests."""
        ...

    async def archive(self, state: HeldMatch) -> HeldMatch:
        """Store that a finished match needs no more looks."""
        ...
