"""One look as an attempt: how far it came, its requests, and the errors on the way, also those made good."""

from longstop.errors import SourceError
from longstop.fetching.base import Page
from longstop.resilience.taxonomy import AttemptState, FailureKind, kind_of, step


class Effort:
    """The requests of one look. It is filled while the look goes on, so that a failed look shows its own too."""

    def __init__(self) -> None:
        self.answers = 0
        #: How far the look has come.
        self.state = AttemptState.INIT
        #: How many errors of each type were met.
        self.errors: dict[str, int] = {}
        self._last: SourceError | None = None

    def reach(self, state: AttemptState) -> None:
        """Take the next step of the attempt, unless it is there already."""
        if state is not self.state:
            self.state = step(self.state, state)

    def answered(self, page: Page) -> None:
        self.answers += 1
        if page.retries:
            self._count("Retried", page.retries)

    def failed(self, error: SourceError) -> None:
        """Count an error once, and the tries before it; a canary's, or one for which nobody was asked, is no news."""
        is_counted, self._last = error is self._last, error
        if kind_of(error) is not FailureKind.HELD and not (error.is_canary or is_counted):
            self._count(type(error).__name__, 1 + error.retries)

    @property
    def error_count(self) -> int:
        return sum(self.errors.values())

    def _count(self, kind: str, times: int) -> None:
        self.errors[kind] = self.errors.get(kind, 0) + times
