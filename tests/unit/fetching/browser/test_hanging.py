"""When the silence of a browser is enough."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longstop.fetching.browser.bulkhead import BulkheadPolicy
from longstop.fetching.browser.hanging import HangPolicy, verdict_seconds
from longstop.settings import Browser


@pytest.mark.req("FR-004")
def test_by_default_a_hung_browser_is_given_up_within_thirty_seconds_of_its_last_answer() -> None:
    policy = BulkheadPolicy().hanging

    # Two seconds are left for a machine that has other things to do.
    assert verdict_seconds(policy) <= 28
    assert policy.hung_seconds == Browser().timeouts.hung == 30


@pytest.mark.req("FR-004")
@given(hung=st.floats(10, 300))
def test_whatever_is_set_the_verdict_is_neither_late_nor_hasty(hung: float) -> None:
    policy = HangPolicy(hung_seconds=hung)

    late = verdict_seconds(policy)

    assert late <= max(hung, policy.check_seconds + policy.probe_seconds)
    assert late > hung - policy.recheck_seconds - policy.probe_seconds


def test_one_answer_that_is_late_is_no_verdict() -> None:
    policy = HangPolicy()

    assert not policy.is_hung(policy.check_seconds + policy.probe_seconds)
