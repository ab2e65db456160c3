"""What the tests of football share."""

import pytest

from tests.football_site import LookingAtFootball


@pytest.fixture
async def polling() -> LookingAtFootball:
    return await LookingAtFootball().start()
