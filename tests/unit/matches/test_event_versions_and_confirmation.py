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


def test_an_open_finding_stays_open_when_its_wording_changes() -> None:
    """A finding is its kind and place: closing it for one poll would show a gap as two."""
    reworded = Finding(kind=GAP.kind, place=GAP.place, detail="missing: ball 2, 3")

    assert confirm([reworded], (), (GAP,)) == ((reworded,), frozenset())


def test_the_same_place_with_another_kind_is_another_finding() -> None:
    mismatch = Finding(kind=FindingKind.MISMATCH, place=GAP.place, detail="+1 runs")

    findings, suspects = confirm([mismatch], (), (GAP,))

    assert findings == ()
    assert suspects
