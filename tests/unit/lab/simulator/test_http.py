import pytest

from longstop_lab.simulator.http import Request

POSTED = b'{"matchKey":"1ABC","lastDocId":null}'


@pytest.mark.parametrize(
    ("request_", "key"),
    [
        (Request(method="GET", path="/api/v3/getSV3", query={"key": "1ABC"}), "1ABC"),
        (Request(method="POST", path="/commentary/v1/getBallFeeds", body=POSTED), "1ABC"),
        (Request(method="GET", path="/scoreboard/1ABC/1S0/1-Match/A/B/a-v-b/live"), "1ABC"),
        (Request(method="GET", path="/cricket-live-score/a-v-b-match-updates-1ABC"), "1ABC"),
        (Request(method="GET", path="/api/v1/event/11400003"), "11400003"),
        (Request(method="GET", path="/api/v1/event/11400003/lineups"), "11400003"),
        (Request(method="GET", path="/event/a-b/11400003"), "11400003"),
        (Request(method="GET", path="/push/11400003"), "11400003"),
        (Request(method="GET", path="/series/x-1/y-1464328/full-scorecard"), "1DMW"),
        (Request(method="GET", path="/api/v1/sport/football/events/live"), None),
        (Request(method="GET", path="/static/img/team-11400003.png"), None),
    ],
)
def test_a_request_names_its_match_in_the_way_of_its_site(request_: Request, key: str | None) -> None:
    assert request_.match_key == key


@pytest.mark.parametrize(
    "request_",
    [
        Request(method="GET", path="/api/v3/getSV3", query={"key": "1ABC"}),
        Request(method="POST", path="/commentary/v1/getBallFeeds", body=POSTED),
        Request(method="GET", path="/scoreboard/1ABC/1S0/1-Match/A/B/a-v-b/live"),
        Request(method="GET", path="/series/x-1/y-1464328/full-scorecard"),
        Request(method="GET", path="/api/v1/event/11400003/lineups"),
    ],
)
def test_the_same_request_can_be_about_another_match(request_: Request) -> None:
    other = "11400004" if "event" in request_.path else "1XYZ"

    assert request_.about(other).match_key == other
    assert request_.about(other).about(request_.match_key or "") == request_
