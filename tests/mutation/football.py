"""Mutants of football: new events, removed events, validation and the served payload."""

from tests.mutation.mutant import Change, Mutant, always, argument, drop, never, swap

_VERSIONS = "matches.event_versions_and_confirmation"
_ALIGN, _READ, _SPORT = "sports.football.align", "sports.football.poll_requests", "sports.football.sport"
_VALIDATE, _PAYLOAD = "sports.football.page_validation", "sports.football.payload"


def _mutant(name: str, module: str, symbol: str, change: Change) -> Mutant:
    return Mutant(
        name=f"football: {name}", module=module, symbol=symbol, change=change, tests=("tests/unit/sports/football",)
    )


FOOTBALL = (
    _mutant("a goal is removed at the first poll", _VERSIONS, "awaited", always("_ in confirmed")),
    _mutant("nothing is ever taken back", _ALIGN, "_align_incidents", never("not _ and _.may_step_back(...)")),
    _mutant(
        "a goal that the board still counts is taken back",
        _ALIGN,
        "_align_incidents",
        never("_.kind == _ and _ not in _"),
    ),
    _mutant("an event with a new id is a new event", _ALIGN, "_align_incidents", swap("_renamed(_, _)", "{}")),
    _mutant("a goal moved to the other side is stored twice", _ALIGN, "_move", drop("_.void(_)")),
    _mutant(
        "a key is used again",
        _VERSIONS,
        "Versions._last_numbers",
        swap("max(_1.get(_2, 0), _)", "_1.get(_2, 0) + self.known[key].is_live"),
    ),
    _mutant("an emptied list is believed", _ALIGN, "_align_incidents", never("len(_) > MAX_VANISHED")),
    _mutant(
        "a result is accepted at the first poll",
        _ALIGN,
        "_align_result",
        always("_.may_step_back(RESULT, content_hash(...))"),
    ),
    _mutant("an older copy of the board is served", _VERSIONS, "confirm_board", always("_ in suspects")),
    _mutant("the first list of another match is believed", _SPORT, "_believed_list", always("_ >= polls_needed(...)")),
    _mutant(
        "goals that board and list count differently are not reported",
        "sports.football.totals",
        "mismatches",
        swap("sorted(_)", "()"),
    ),
    _mutant("a match in doubt is in sync", _VERSIONS, "settle", always("not suspects")),
    _mutant(
        "incidents of another match are believed",
        _VALIDATE,
        "validate_incidents",
        never("_ and len(_) >= ENOUGH_PLAYERS and are_mostly_unknown(...)"),
    ),
    _mutant(
        "a number that two matches share confirms a list",
        _VALIDATE,
        "has_stored_event",
        swap("bool(_1 & _2)", "bool({row[1] for row in _1} & {row[1] for row in _2})"),
    ),
    _mutant(
        "players of two matches confirm a list of either",
        _VALIDATE,
        "polls_needed",
        swap("1 if _ else POLLS_UNKNOWN", "1"),
    ),
    _mutant(
        "a board without a score fits every list",
        _VALIDATE,
        "polls_needed",
        swap("_ is not None and fits(...)", "fits(board, incidents)"),
    ),
    _mutant(
        "a goal waits for the board although a stored event is listed",
        _VALIDATE,
        "polls_needed",
        never("has_stored_event(...)"),
    ),
    _mutant(
        "a doubt outlives the list", _SPORT, "_believed_list", swap("return (None, None)", "return (None, before)")
    ),
    _mutant(
        "a doubt outlives a poll of the rendered page", _SPORT, "Football.diff_dom", argument("doubt", "state.doubt")
    ),
    _mutant(
        "line-ups are not read while nothing else changes",
        _READ,
        "read",
        swap("not (are_parts_due or _1)", "not (is_full or _1)"),
    ),
    _mutant(
        "empty line-ups confirm any",
        _VALIDATE,
        "validate_again",
        swap("are_mostly_unknown(_1.keys, _2.keys)", "are_mostly_unknown(_2.keys, _1.keys)"),
    ),
    _mutant(
        "a list that contradicts the score is believed like any other",
        _VALIDATE,
        "polls_needed",
        never("not fits(...)"),
    ),
    _mutant(
        "line-ups of another match are believed", _VALIDATE, "validate_lineups", never("_ and are_mostly_unknown(...)")
    ),
    _mutant(
        "statistics of another match are believed",
        _VALIDATE,
        "_check_against",
        never("key == YELLOW_CARDS and _"),
    ),
    _mutant(
        "a result is served before its confirmation",
        _PAYLOAD,
        "status_of",
        swap("MatchStatus.UPCOMING if _ else MatchStatus.LIVE", "MatchStatus.COMPLETED"),
    ),
    _mutant(
        "line-ups vanish when they are not read",
        "sports.football.model",
        "FootballState.latest",
        swap("_1 or stored.lineups", "_1"),
    ),
    _mutant("the goals of a shoot-out are not served", _PAYLOAD, "_score", argument("penalties", "None")),
)
