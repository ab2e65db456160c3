"""What a site shows of a football match. Applying a step returns the changes for the truth log."""

from longstop_lab.simulator.football.model import (
    AWAY,
    HOME,
    KIND_NAMES,
    FootballContent,
    FootballMatch,
    GoalTruth,
    StatusTruth,
)
from longstop_lab.simulator.football.script import FootballStep
from longstop_lab.simulator.truth import Change


class FootballBoard:
    """The public view of one match."""

    def __init__(self, match: FootballMatch) -> None:
        self.match = match
        #: What is shown, by id, in the order of first publication.
        self.live: dict[str, FootballContent] = {}
        #: Grows with every step, so that a renderer can cache by it.
        self.version = 0
        #: When something last changed, in seconds from the kick-off as first planned.
        self.changed_at = 0.0
        #: The ids of what the last change was about.
        self.changed: tuple[str, ...] = ()
        #: When the site last began to show each of the match's statuses, in the same seconds.
        self.since: dict[str, float] = {}

    @property
    def status(self) -> str:
        """Return the site's name of the status; empty before the match is listed."""
        shown = self.live.get("status")
        return shown.status if isinstance(shown, StatusTruth) else ""

    @property
    def score(self) -> tuple[int, int]:
        """Return goals home and away, without those of a shoot-out."""
        sides = [shown.side for shown in self.live.values() if isinstance(shown, GoalTruth)]
        return sides.count(HOME), sides.count(AWAY)

    def apply(self, step: FootballStep) -> list[Change]:
        self.version += 1
        known = self.live.get(step.id)
        if step.content == known:
            return []
        self._note(step)
        if step.content is None:
            gone = self.live.pop(step.id)
            return [Change(op="void", kind=KIND_NAMES[type(gone)], id=step.id, content=None)]
        self.live[step.id] = step.content
        kind = KIND_NAMES[type(step.content)]
        return [Change(op="update" if known else "insert", kind=kind, id=step.id, content=step.content)]

    def _note(self, step: FootballStep) -> None:
        is_same_moment = step.at == self.changed_at
        self.changed = (*self.changed, step.id) if is_same_moment else (step.id,)
        self.changed_at = step.at
        if isinstance(step.content, StatusTruth):
            self.since[step.content.status] = step.at
