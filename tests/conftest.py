"""What every test gets: a clean environment."""

import os

import pytest


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """A setting of the person at the keyboard never changes what a test sees."""
    for name in list(os.environ):
        if name.startswith(("LONGSTOP_", "SCRAPER_", "CIRCUIT_BREAKER_", "RETRY_")) and name != "LONGSTOP_RECORDED":
            monkeypatch.delenv(name)
