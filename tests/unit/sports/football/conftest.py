"""What the tests of football share."""

from datetime import timedelta

import pytest

from longstop.sports.football import sport
from tests.football_site import LookingAtFootball


@pytest.fixture
async def polling() -> LookingAtFootball:
    return await LookingAtFootball().start()


@pytest.fixture(autouse=True)
def squads_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let line-ups count as a witness at once; `test_new_squads.py` has the real time."""
    monkeypatch.setattr(sport, "SQUAD_KNOWN_AFTER", timedelta())
