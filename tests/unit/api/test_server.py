import httpx


async def test_the_openapi_document_describes_every_route_with_its_answers(stranger: httpx.AsyncClient) -> None:
    document = (await stranger.get("/openapi.json")).json()

    assert sorted(document["paths"]) == [
        *(
            f"/{sport}-data/{rest}"
            for sport in ("cricket", "football")
            for rest in (
                "match-info/{match_id}",
                "match-info/{match_id}/delta",
                "match-info/{match_id}/events",
                "match-info/{match_id}/findings",
                "match-info/{match_id}/history",
                "matches",
            )
        ),
        "/health",
        "/live",
        "/ready",
        "/recoveries",
        "/status",
    ]
    for path, operations in document["paths"].items():
        assert operations["get"]["summary"], path
        assert "example" in operations["get"]["responses"]["200"]["content"]["application/json"], path


async def test_the_openapi_document_asks_for_a_token_where_one_is_needed(stranger: httpx.AsyncClient) -> None:
    document = (await stranger.get("/openapi.json")).json()

    (scheme,) = document["components"]["securitySchemes"]
    guarded = {path for path, each in document["paths"].items() if each["get"].get("security") == [{scheme: []}]}
    assert guarded == {path for path in document["paths"] if "-data/" in path} | {"/recoveries", "/status"}
    assert document["components"]["securitySchemes"][scheme]["scheme"] == "bearer"


async def test_the_openapi_document_names_the_parameters_of_the_hot_route(stranger: httpx.AsyncClient) -> None:
    document = (await stranger.get("/openapi.json")).json()

    parameters = document["paths"]["/cricket-data/match-info/{match_id}"]["get"]["parameters"]
    assert [(each["name"], each["in"]) for each in parameters] == [("match_id", "path"), ("If-None-Match", "header")]
