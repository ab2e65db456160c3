"""What every test gets: a clean environment, and no deadline for single examples."""

import os

import pytest
from hypothesis import settings

# How long one example takes says more about a busy machine than about the code; tests as a whole have a time limit.
settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """A setting of the person at the keyboard never changes what a test sees."""
    for name in list(os.environ):
        if name.startswith(("LONGSTOP_", "SCRAPER_", "CIRCUIT_BREAKER_", "RETRY_")) and name != "LONGSTOP_RECORDED":
            monkeypatch.delenv(name)
