"""What users depend on is as it was recorded; see `tests/golden/__init__.py` before you change a golden file."""

import pytest

from tests.golden.contracts import DOCUMENTS, MATCHES
from tests.golden.files import RECORDED, differences
from tests.golden.shape import shape


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_contract_is_as_it_was_recorded(name: str) -> None:
    assert not (found := differences(RECORDED / name, DOCUMENTS[name]())), f"{name} is not as recorded:\n{found}"


def test_every_kind_of_event_is_recorded() -> None:
    texts = [(RECORDED / "matches" / f"{name}.json").read_text(encoding="utf-8") for name in MATCHES]
    cricket = {"delivery", "inferred", "over", "innings", "result"}
    football = {"goal", "card", "substitution", "var", "missed_penalty", "period", "kick", "result"}

    assert {
        kind for kind in cricket | football if any(f'"key": "{kind}' in text for text in texts)
    } == cricket | football


def test_a_shape_is_of_fields_and_types() -> None:
    document = {"a": [{"b": 1, "c": "x"}, {"b": None}], "d": {"k1": True, "k2": False}, "e": []}

    assert shape(document, frozenset({".d"})) == {
        ".": "object",
        ".a": "array",
        ".a[]": "object",
        ".a[].b": "null | number",
        ".a[].c": "optional | string",
        ".d": "object",
        ".d{}": "boolean",
        ".e": "array",
    }
