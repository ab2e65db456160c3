"""Versions of events, and findings that two polls agree on."""

from longstop.matches.event_versions_and_confirmation import confirm
from longstop.model.data_finding import Finding, FindingKind

GAP = Finding(kind=FindingKind.GAP, place="1:0", detail="missing: ball 2")


def test_a_finding_opens_when_two_polls_agree_and_then_stays() -> None:
    findings, suspects = confirm([GAP], (), ())

    assert findings == ()
    assert confirm([GAP], suspects, ()) == ((GAP,), frozenset())
    assert confirm([GAP], (), (GAP,)) == ((GAP,), frozenset())
    assert confirm([], suspects, (GAP,)) == ((), frozenset())


def test_another_detail_is_another_doubt() -> None:
    before = Finding(kind=FindingKind.MISMATCH, place="1", detail="+1 runs")
    after = Finding(kind=FindingKind.MISMATCH, place="1", detail="+2 runs")
    _, suspects = confirm([before], (), ())

    findings, doubts = confirm([after], suspects, ())

    assert findings == ()
    assert doubts
    assert doubts != suspects
