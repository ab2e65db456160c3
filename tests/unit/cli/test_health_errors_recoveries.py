"""The exit code of `health`."""

import pytest

from longstop.cli.health_errors_recoveries import exit_code
from longstop.supervision.health_grade_and_recovery import Grade
from longstop.supervision.health_verdict import HealthStatus, HealthVerdict


@pytest.mark.parametrize(
    ("status", "grade", "code"),
    [
        (HealthStatus.HEALTHY, Grade.HEALTHY, 0),
        (HealthStatus.DEGRADED, Grade.HEALTHY, 1),
        (HealthStatus.DEGRADED, Grade.DEGRADED, 1),
        (HealthStatus.DEGRADED, Grade.RECOVERING, 1),
        (HealthStatus.DEGRADED, Grade.FAILING, 2),
        (HealthStatus.DOWN, Grade.DEGRADED, 2),
        (HealthStatus.DOWN, None, 2),
    ],
)
def test_the_exit_code_follows_the_grade(status: HealthStatus, grade: Grade | None, code: int) -> None:
    assert exit_code(HealthVerdict(status=status, grade=grade)) == code
