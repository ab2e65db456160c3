"""Snapshots: one spelling, one checksum, and the difference between two."""

import json
from hashlib import sha256
from typing import Any

import pytest

from longstop.model.snapshot import Snapshot, canonical, checksum, delta
from tests.builders import NOW


def snapshot(sequence: int, **payload: Any) -> Snapshot:
    body = canonical(payload)
    return Snapshot(
        match_id=1,
        sequence=sequence,
        checksum=checksum(body),
        payload=body,
        provenance={},
        created_at=NOW,
        scraper_id="node-a",
        update_latency_ms=3,
    )


@pytest.mark.req("MON-4")
def test_equal_payloads_have_one_spelling_and_one_checksum() -> None:
    one, other = canonical({"b": {"z": 1, "a": "é"}, "a": [1, 2]}), canonical({"a": [1, 2], "b": {"a": "é", "z": 1}})

    assert one == other == '{"a":[1,2],"b":{"a":"é","z":1}}'.encode()
    assert checksum(one) == sha256(one).hexdigest()


@pytest.mark.req("MON-4")
def test_the_order_of_a_list_matters() -> None:
    assert checksum(canonical({"a": [1, 2]})) != checksum(canonical({"a": [2, 1]}))


@pytest.mark.req("MON-4")
def test_the_first_delta_is_the_whole() -> None:
    assert delta(None, snapshot(1, title="x")) == {"_diff_type": "initial", "_sequence_delta": 1, "title": "x"}


@pytest.mark.req("MON-4", "FLD-3")
def test_a_delta_says_what_changed_and_what_is_gone() -> None:
    found = delta(snapshot(3, same=1, changed=0, gone=1), snapshot(5, same=1, changed=2, new=None))

    assert found == {
        "_diff_type": "update",
        "_sequence_delta": 2,
        "_removed": ["gone"],
        "changed": 2,
        "new": None,
    }


@pytest.mark.req("FLD-3")
def test_null_zero_and_absent_are_three_things() -> None:
    bodies = {canonical({}), canonical({"a": None}), canonical({"a": 0})}

    assert len(bodies) == 3
    assert delta(snapshot(1), snapshot(2, a=None))["a"] is None
    assert delta(snapshot(1, a=None), snapshot(2))["_removed"] == ["a"]
    assert json.loads(snapshot(1, a=0).payload) == {"a": 0}
