"""All mutants."""

from tests.mutation.football import FOOTBALL
from tests.mutation.pipeline import PIPELINE
from tests.mutation.resilience import RESILIENCE
from tests.mutation.watching import WATCHING

MUTANTS = (*PIPELINE, *FOOTBALL, *RESILIENCE, *WATCHING)
