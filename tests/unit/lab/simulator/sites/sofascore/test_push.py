from longstop_lab.simulator.sites.sofascore.push import changed_fields


def test_only_changes_are_sent_by_dotted_path_with_the_whole_value() -> None:
    before = {"id": 7, "homeScore": {}, "status": {"code": 6, "type": "inprogress"}, "changes": {"changes": ["a"]}}
    after = {
        "id": 7,
        "homeScore": {"current": 1},
        "status": {"code": 31, "type": "inprogress"},
        "changes": {"changes": ["b"]},
    }

    fields = changed_fields(before, after)

    assert fields == {"homeScore.current": 1, "status.code": 31, "changes.changes": ["b"]}


def test_counts_of_followers_are_not_sent() -> None:
    before = {"homeTeam": {"userCount": 1, "name": "A"}}

    assert changed_fields(before, {"homeTeam": {"userCount": 2, "name": "A"}}) == {}
