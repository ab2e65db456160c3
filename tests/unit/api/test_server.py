import httpx


async def test_the_openapi_document_describes_every_route_with_its_answers(stranger: httpx.AsyncClient) -> None:
    document = (await stranger.get("/openapi.json")).json()

    assert sorted(path for path in document["paths"] if not path.startswith("/admin/")) == [
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
        "/status/history",
    ]
    for path, operations in document["paths"].items():
        for operation in operations.values():
            assert operation["description"], path
            assert "example" in operation["responses"]["200"]["content"]["application/json"], path


async def test_the_openapi_document_asks_for_a_token_where_one_is_needed(stranger: httpx.AsyncClient) -> None:
    document = (await stranger.get("/openapi.json")).json()

    (scheme,) = document["components"]["securitySchemes"]
    free = {
        path
        for path, operations in document["paths"].items()
        for operation in operations.values()
        if operation.get("security") != [{scheme: []}]
    }
    assert free == {"/health", "/live", "/ready"}
    assert document["components"]["securitySchemes"][scheme]["scheme"] == "bearer"


async def test_the_openapi_document_names_the_parameters_of_the_hot_route(stranger: httpx.AsyncClient) -> None:
    document = (await stranger.get("/openapi.json")).json()

    parameters = document["paths"]["/cricket-data/match-info/{match_id}"]["get"]["parameters"]
    assert [(each["name"], each["in"]) for each in parameters] == [("match_id", "path"), ("If-None-Match", "header")]
