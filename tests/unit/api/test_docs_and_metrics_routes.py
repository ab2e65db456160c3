"""The index, the documentation page and the metrics: without a token, and without any other host."""

import re
from base64 import b64encode
from hashlib import sha256

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families


async def requests_of(client: httpx.AsyncClient) -> dict[tuple[str, str, str], float]:
    """Return the number of requests by route, method and status."""
    text = (await client.get("/metrics")).text
    return {
        (sample.labels["route"], sample.labels["method"], sample.labels["status"]): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == "longstop_api_requests_total"
    }


async def test_the_index_links_to_the_documentation(stranger: httpx.AsyncClient) -> None:
    answer = await stranger.get("/")

    assert answer.status_code == 200
    assert (answer.json()["name"], answer.json()["docs"]) == ("longstop", "/docs")
    for path in ("docs", "openapi", "health", "metrics"):
        assert (await stranger.get(answer.json()[path])).status_code == 200
    assert answer.json()["status"] == "/status"  # needs a token


async def test_the_documentation_page_loads_nothing_from_other_hosts(stranger: httpx.AsyncClient) -> None:
    answer = await stranger.get("/docs")

    assert (answer.status_code, answer.headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    assert "/openapi.json" in answer.text
    assert not re.search(r"https?://|\bsrc=|@import|<link", answer.text)


async def test_the_documentation_page_can_tell_admin_routes_by_their_tag(stranger: httpx.AsyncClient) -> None:
    paths = (await stranger.get("/openapi.json")).json()["paths"]

    tagged = {path for path, methods in paths.items() for route in methods.values() if "admin" in route.get("tags", ())}

    assert tagged == {path for path in paths if path.startswith("/admin/")} != set()
    assert '.includes("admin")' in (await stranger.get("/docs")).text


async def test_the_browser_may_run_the_script_of_the_page_and_no_other(stranger: httpx.AsyncClient) -> None:
    answer = await stranger.get("/docs")

    policy = answer.headers["Content-Security-Policy"]
    for kind in ("style", "script"):
        (content,) = re.findall(f"<{kind}>(.*?)</{kind}>", answer.text, re.DOTALL)
        assert f"{kind}-src 'sha256-{b64encode(sha256(content.encode()).digest()).decode()}'" in policy
    assert policy.startswith("default-src 'none'")
    assert "frame-ancestors 'none'" in policy


async def test_requests_are_counted_by_route_template_method_and_status(client: httpx.AsyncClient) -> None:
    for path in ("/cricket-data/match-info/1", "/cricket-data/match-info/crex_M1", "/cricket-data/match-info/99"):
        await client.get(path)

    counted = await requests_of(client)

    assert counted[("/cricket-data/match-info/{match_id}", "GET", "200")] == 2
    assert counted[("/cricket-data/match-info/{match_id}", "GET", "404")] == 1


@pytest.mark.parametrize("method", ["GET", "BREW", "PROPFIND"])
async def test_no_client_can_create_series_without_end(stranger: httpx.AsyncClient, method: str) -> None:
    for number in range(5):
        await stranger.request(method, f"/nothing/{number}")

    label = method if method == "GET" else "other"
    assert await requests_of(stranger) == {("unmatched", label, "404"): 5}


async def test_metrics_include_those_of_the_process(stranger: httpx.AsyncClient) -> None:
    text = (await stranger.get("/metrics")).text

    assert "process_resident_memory_bytes" in text
    assert "process_open_fds" in text
    assert 'longstop_api_request_seconds_bucket{le="0.005"' not in text  # no request has finished before this one
