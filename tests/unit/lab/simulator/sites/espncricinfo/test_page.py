from longstop_lab.simulator.sites.espncricinfo.page import next_page
from tests.unit.lab.simulator.recorded import next_data


def test_a_plain_pattern_finds_the_data_whatever_stands_in_it() -> None:
    page = next_page("x", "/x", b'{"name":"</script><b>R&D \xc3\x89lan</b>"}')

    assert next_data(page) == {"name": "</script><b>R&D Élan</b>"}
    script = page.rpartition(b'type="application/json">')[2].partition(b"</script>")[0]
    assert not set(b"<>&") & set(script)


def test_a_title_cannot_bring_markup() -> None:
    page = next_page("<script>alert(1)</script>", "/x", b"{}")

    assert b"alert(1)" in page
    assert b"<script>alert" not in page


def test_a_page_is_as_heavy_as_a_real_one() -> None:
    assert 100_000 < len(next_page("x", "/x", b"{}")) < 200_000
