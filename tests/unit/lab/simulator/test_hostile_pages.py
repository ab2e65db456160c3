import re

import pytest

from longstop_lab.simulator.cricket.world import play
from longstop_lab.simulator.faults import Fault, FaultKind
from longstop_lab.simulator.http import Request
from longstop_lab.simulator.pages.crex_page import CLASSES, key_of, match_page, page_path
from longstop_lab.simulator.pages.decoration import asset
from longstop_lab.simulator.pages.hostile import PAGE_FAULTS, PREFIX, break_page, hostile_answer, redesigned

GAME = play("t20", 1, 0)
PAGE = match_page(GAME, 4.0)


def get(path: str) -> Request:
    return Request(method="GET", path=path)


@pytest.mark.parametrize("kind", sorted(PAGE_FAULTS - {FaultKind.REDESIGNED}))
def test_a_page_that_means_harm_is_the_good_one_with_a_script_before_its_own(kind: FaultKind) -> None:
    spoilt = break_page(Fault(kind=kind, seconds=1.5), PAGE)

    head, script, rest = re.split(
        rb"(<script>\{ const seconds = 1\.5; .*? \}</script>)", spoilt, maxsplit=1, flags=re.DOTALL
    )
    assert head + rest == PAGE
    assert head.endswith(b"<head>")
    assert script


@pytest.mark.parametrize("kind", sorted(PAGE_FAULTS))
def test_every_harm_has_a_page_of_its_own(kind: FaultKind) -> None:
    answer = hostile_answer(get(f"{PREFIX}{kind}"))

    assert (answer.status, answer.content_type) == (200, "text/html; charset=utf-8")


def test_a_file_is_sent_as_one_and_an_unknown_name_is_not_found() -> None:
    file = hostile_answer(get(f"{PREFIX}file-1.bin"))

    assert file.headers["Content-Disposition"] == 'attachment; filename="file-1.bin"'
    assert hostile_answer(get(f"{PREFIX}dance")).status == 404


def test_a_redesigned_page_has_none_of_the_names_and_the_same_script_words() -> None:
    page = redesigned(PAGE)

    for name in CLASSES:
        assert f'class="{name}'.encode() not in page
        assert f'".{name}'.encode() not in page
    assert b"const [runs, overs]" in page
    assert redesigned(PAGE) == page


@pytest.mark.parametrize(
    ("path", "key"),
    [
        (page_path(GAME), GAME.key),
        (page_path(GAME).replace("/live", "/scorecard"), GAME.key),
        (f"/cricket-live-score/a-vs-b-match-updates-{GAME.key}", GAME.key),
        (f"/scoreboard/{GAME.key}", None),
        (f"/cricket-live-score/{GAME.key}", None),
    ],
)
def test_a_page_names_its_match_in_the_old_way_and_in_the_new_one(path: str, key: str | None) -> None:
    assert key_of(path) == key


@pytest.mark.parametrize("path", re.findall(r'(?:src|href)="(/[^"]+)"', PAGE.decode()))
def test_everything_that_a_page_loads_is_there(path: str) -> None:
    answer = asset(get(path.partition("?")[0]))

    assert answer is not None
    assert answer.body


def test_most_bytes_around_a_page_are_of_kinds_that_are_not_needed() -> None:
    paths = [path.partition("?")[0] for path in re.findall(r'(?:src|href)="(/[^"]+)"', PAGE.decode())]
    sizes = {path: len(answer.body) for path in paths if (answer := asset(get(path)))}
    needed = sizes["/static/vendor.js"] + len(PAGE)

    assert needed < 0.3 * (sum(sizes.values()) + len(PAGE))
