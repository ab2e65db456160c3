"""A slice of the model in the suite: some hundred runs, always the same ones."""

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.model.full_feed import FullFeed
from tests.model.machine import Capture

SLICE = settings(
    max_examples=60,
    stateful_step_count=30,
    derandomize=True,
    database=None,
    # A failure is reported as it was found: shrinking it can take longer than the whole suite.
    phases=(Phase.generate,),
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.timeout(400)
@pytest.mark.req("NFR-009")
@pytest.mark.parametrize("machine", [FullFeed], ids=lambda machine: machine.__name__)
def test_whatever_happens_the_store_ends_as_the_source_or_says_what_is_missing(machine: type[Capture]) -> None:
    run_state_machine_as_test(machine, settings=SLICE)
