"""Mutants of football's road: what is new, what is gone, what is believed, what is served."""

from bench.mutant import PYTEST, Mutant

_VERSIONS = "matches/versions.py"
_ALIGN, _READ, _SPORT = "sports/football/align.py", "sports/football/read.py", "sports/football/sport.py"
_VALIDATE, _TOTALS, _PAYLOAD = "sports/football/validate.py", "sports/football/totals.py", "sports/football/payload.py"

_HUNTERS = (("football", (*PYTEST, "tests/unit/sports/football")),)


def _mutant(name: str, file: str, old: str, new: str) -> Mutant:
    return Mutant(name=f"football: {name}", file=file, old=old, new=new, hunters=_HUNTERS)


FOOTBALL = (
    _mutant(
        "a goal is gone at the first look",
        _VERSIONS,
        "        if token in self._confirmed:",
        "        if token:",
    ),
    _mutant(
        "nothing is ever taken back",
        _ALIGN,
        '        if not is_counted and versions.may_step_back(event.key, "void"):',
        "        if False:",
    ),
    _mutant(
        "a goal that the board still counts is taken back",
        _ALIGN,
        "        is_counted = event.key.kind == Kind.GOAL and Side(event.key.side) not in settled",
        "        is_counted = False",
    ),
    _mutant(
        "an event under a new id is a new event",
        _ALIGN,
        "    renamed = _renamed(vanished, unknown)",
        "    renamed: dict[str, Event] = {}",
    ),
    _mutant(
        "a goal that goes over to the other side is there twice",
        _ALIGN,
        "        versions.void(old)\n        _add(versions, seen)",
        "        _add(versions, seen)",
    ),
    _mutant(
        "a key is used again",
        _VERSIONS,
        "self._last[group] = max(self._last.get(group, 0), key.numbers[-1] if key.numbers else 0)",
        "self._last[group] = self._last.get(group, 0) + self.known[key].is_live",
    ),
    _mutant(
        "a list that lost everything is believed",
        _ALIGN,
        "    if len(gone) > MAX_VANISHED:",
        "    if False:",
    ),
    _mutant(
        "a result counts at the first look",
        _ALIGN,
        "    elif versions.may_step_back(RESULT, content_hash(result, None)):",
        "    else:",
    ),
    _mutant(
        "an older copy of the board is served",
        _SPORT,
        "    if state.board is None or token in state.suspects or not shown.shows_less_than(state.board):",
        "    if True:",
    ),
    _mutant(
        "the first list of strangers is believed",
        _SPORT,
        "    if polls >= polls_needed(state, seen.board, shown):",
        "    if True:",
    ),
    _mutant(
        "goals that board and list count differently are not told",
        _TOTALS,
        "    for side, listed, shown in sorted(off):",
        "    for side, listed, shown in ():",
    ),
    _mutant(
        "a match in doubt is in sync",
        _SPORT,
        "    if state.sync is SyncState.IN_SYNC or (is_compared and not is_in_doubt):",
        "    if state.sync is SyncState.IN_SYNC or is_compared:",
    ),
    _mutant(
        "incidents of another match are believed",
        _VALIDATE,
        "    if state.people & playing and len(named) >= ENOUGH_PEOPLE and are_strangers(named, playing):",
        "    if False:",
    ),
    _mutant(
        "a number that two matches share vouches for a list",
        _VALIDATE,
        "    return bool(held & shown)",
        "    return bool({row[1] for row in held} & {row[1] for row in shown})",
    ),
    _mutant(
        "people who play in two matches vouch for a list of either",
        _VALIDATE,
        "        return 1 if board.score is not None and fits(board, incidents) else POLLS_UNKNOWN",
        "        return 1",
    ),
    _mutant(
        "a board without a score fits every list",
        _VALIDATE,
        "        return 1 if board.score is not None and fits(board, incidents) else POLLS_UNKNOWN",
        "        return 1 if fits(board, incidents) else POLLS_UNKNOWN",
    ),
    _mutant(
        "a goal waits for the board beside an event that we hold",
        _VALIDATE,
        "    if not incidents.items or has_held_event(state, incidents):",
        "    if not incidents.items:",
    ),
    _mutant(
        "a doubt outlives the list",
        _SPORT,
        "        return None, None\n",
        "        return None, before\n",
    ),
    _mutant(
        "a doubt outlives a look at the drawn page",
        _SPORT,
        "        doubt=None,\n",
        "",
    ),
    _mutant(
        "line-ups are not read as long as nothing else changes",
        _READ,
        "not (are_parts_due or stand_in)",
        "not (is_full or stand_in)",
    ),
    _mutant(
        "empty line-ups confirm any",
        _VALIDATE,
        "    if are_strangers(squad_keys(first), squad_keys(second)):",
        "    if are_strangers(squad_keys(second), squad_keys(first)):",
    ),
    _mutant(
        "a list that contradicts the score is believed as soon as any",
        _VALIDATE,
        " or not fits(board, incidents)",
        "",
    ),
    _mutant(
        "line-ups of another match are believed",
        _VALIDATE,
        "    if shown and are_strangers(named, set(keys)):",
        "    if False:",
    ),
    _mutant(
        "statistics of another match are believed",
        _VALIDATE,
        "        if figure.key == YELLOW_CARDS and abs(counted - cards) > 1:",
        "        if False:",
    ),
    _mutant(
        "a result is served when it is first glimpsed",
        _PAYLOAD,
        "    return MatchStatus.UPCOMING if board.score is None else MatchStatus.LIVE",
        "    return MatchStatus.COMPLETED",
    ),
    _mutant(
        "line-ups vanish when they are not read",
        _PAYLOAD,
        "        **_parts_before(state),\n",
        "",
    ),
    _mutant(
        "the goals of a shoot-out are not served",
        _PAYLOAD,
        "    if board.penalties:",
        "    if False:",
    ),
)
