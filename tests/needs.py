"""What a test does without something that it needs."""

import os
from typing import NoReturn

import pytest


def lack(what: str) -> NoReturn:
    """Skip the test, and say for want of what; under CI=true it fails: nothing that it needs may be missing there."""
    if os.environ.get("CI") == "true":
        pytest.fail(what)
    pytest.skip(what)
