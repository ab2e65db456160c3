"""A short slice of the fuzzing; `scripts/fuzz` goes on for as long as you like."""

import random
from itertools import islice

from bench.fuzz import complaints, corpus

BODIES = 3_000


def test_every_page_of_the_corpus_is_read_well_as_it_is() -> None:
    from bench.fuzz import try_case

    cases = corpus()

    assert {case.source.name for case in cases} >= {"crex", "espncricinfo", "sofascore"}
    assert [wrong for case in cases if (wrong := try_case(case, case.body))] == []


def test_a_spoilt_body_is_a_reading_or_a_typed_error_and_nothing_else() -> None:
    wrong = [complaint for complaint in islice(complaints(corpus(), random.Random(7)), BODIES) if complaint]

    assert wrong == []
