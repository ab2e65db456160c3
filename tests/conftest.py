"""For every test: a clean environment, and no deadline for single Hypothesis examples."""

import os

import pytest
from hypothesis import settings

# The duration of one example depends on the load of the machine; whole tests have a time limit.
settings.register_profile("no-deadline", deadline=None)
settings.load_profile("no-deadline")


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove Longstop's variables of the developer's environment."""
    for name in list(os.environ):
        if name.startswith(("LONGSTOP_", "SCRAPER_", "CIRCUIT_BREAKER_", "RETRY_")) and name != "LONGSTOP_RECORDED":
            monkeypatch.delenv(name)
