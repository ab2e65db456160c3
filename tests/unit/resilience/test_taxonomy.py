"""What an error means."""

from collections.abc import Iterator

import pytest

from longstop.errors import (
    BodyTruncated,
    CircuitOpen,
    EmptyBody,
    EpochLost,
    FetchTimeout,
    LayoutChanged,
    MalformedBody,
    PageNotFound,
    SourceChallenged,
    SourceError,
    SourceFailed,
    SourceRefused,
    SourceUnreachable,
)
from longstop.resilience.taxonomy import MEANINGS, FailureKind, kind_of, meaning_of


def _below(kind: type[SourceError]) -> Iterator[type[SourceError]]:
    yield kind
    for each in kind.__subclasses__():
        if each.__module__ == "longstop.errors":
            yield from _below(each)


def test_every_error_of_a_request_stands_in_the_table_by_itself() -> None:
    assert set(_below(SourceError)) == set(MEANINGS)


@pytest.mark.req("CAP-8")
@pytest.mark.parametrize(
    ("error", "is_soft"),
    [
        (FetchTimeout("x"), True),
        (SourceRefused("403"), True),
        (SourceUnreachable("x"), True),
        (SourceFailed("503"), True),
        (BodyTruncated("x"), True),
        (EmptyBody("x"), True),
        (MalformedBody("x"), True),
        (LayoutChanged("x"), False),
        (PageNotFound("404"), False),
        (SourceChallenged("x"), False),
    ],
)
def test_what_may_pass_is_soft_and_what_stays_is_hard(error: SourceError, is_soft: bool) -> None:
    assert meaning_of(error).is_soft is is_soft


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (FetchTimeout("x"), FailureKind.CONNECTION),
        (SourceUnreachable("x"), FailureKind.CONNECTION),
        (SourceFailed("503"), FailureKind.CONNECTION),
        (SourceRefused("429"), FailureKind.REFUSAL),
        (SourceChallenged("x"), FailureKind.REFUSAL),
        (EmptyBody("x"), FailureKind.CONTENT),
        (LayoutChanged("x"), FailureKind.CONTENT),
        (PageNotFound("404"), FailureKind.GONE),
        (CircuitOpen("x"), FailureKind.HELD),
        (EpochLost("x"), FailureKind.OURS),
        (ZeroDivisionError(), FailureKind.OURS),
    ],
)
def test_each_failure_belongs_to_one_kind(error: Exception, kind: FailureKind) -> None:
    assert kind_of(error) is kind


def test_an_error_from_a_third_partys_source_means_what_its_parent_means() -> None:
    class Newcomer(SourceRefused):
        pass

    assert kind_of(Newcomer("x")) is FailureKind.REFUSAL
