"""The model test for one mutant: generated runs without shrinking; the exit code is the result."""

from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.model.full_feed import FullFeed

SETTINGS = settings(
    max_examples=60,
    stateful_step_count=30,
    derandomize=True,
    deadline=None,
    database=None,
    phases=(Phase.generate,),
    suppress_health_check=list(HealthCheck),
)

if __name__ == "__main__":
    run_state_machine_as_test(FullFeed, settings=SETTINGS)
