"""Mutants of football's road: what is new, what is gone, what is believed, what is served."""

from bench.mutant import PYTEST, Mutant

_DIFF, _COMPARED = "pipeline/football/diff.py", "pipeline/football/compared.py"
_VALIDATE, _NORMALISE = "pipeline/football/validate.py", "pipeline/football/normalise.py"
_DRAWN = "pipeline/football/drawn.py"

_HUNTERS = (("football", (*PYTEST, "tests/unit/pipeline/football")),)


def _mutant(name: str, file: str, old: str, new: str) -> Mutant:
    return Mutant(name=f"football: {name}", file=file, old=old, new=new, hunters=_HUNTERS)


FOOTBALL = (
    _mutant(
        "a goal is gone at the first look",
        _DIFF,
        "        if token in self._confirmed:",
        "        if token:",
    ),
    _mutant(
        "nothing is ever taken back",
        _DIFF,
        '        if not is_counted and builder.may_step_back(event.key, "void"):',
        "        if False:",
    ),
    _mutant(
        "a goal that the board still counts is taken back",
        _DIFF,
        "        is_counted = event.key.kind is EventKind.GOAL and Side(event.key.side) not in settled",
        "        is_counted = False",
    ),
    _mutant(
        "an event under a new id is a new event",
        _DIFF,
        "    renamed = _renamed(vanished, unknown)",
        "    renamed: dict[str, Event] = {}",
    ),
    _mutant(
        "a goal that goes over to the other side is there twice",
        _DIFF,
        "            self.void(old)\n            self.add(seen)",
        "            self.add(seen)",
    ),
    _mutant(
        "a key is used again",
        _DIFF,
        "            self._used[key.kind, key.side] = max(self._used[key.kind, key.side], key.nth)",
        "            self._used[key.kind, key.side] += known[key].is_live",
    ),
    _mutant(
        "a list that lost everything is believed",
        _DIFF,
        "    if len(gone) > MAX_VANISHED:",
        "    if False:",
    ),
    _mutant(
        "a result counts at the first look",
        _DIFF,
        "    elif builder.may_step_back(RESULT, content_hash(result, None)):",
        "    else:",
    ),
    _mutant(
        "an older copy of the board is served",
        _COMPARED,
        "    if state.board is None or token in state.suspects or not steps_back(state.board, shown):",
        "    if True:",
    ),
    _mutant(
        "the first list of strangers is believed",
        _COMPARED,
        "    if looks >= looks_needed(state, seen.board, shown):",
        "    if True:",
    ),
    _mutant(
        "goals that board and list count differently are not told",
        _COMPARED,
        "    for side, listed, shown in sorted(off):",
        "    for side, listed, shown in ():",
    ),
    _mutant(
        "a match in doubt is in sync",
        _COMPARED,
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
        "        return 1 if board.score is not None and fits(board, incidents) else LOOKS_UNKNOWN",
        "        return 1",
    ),
    _mutant(
        "a board without a score fits every list",
        _VALIDATE,
        "        return 1 if board.score is not None and fits(board, incidents) else LOOKS_UNKNOWN",
        "        return 1 if fits(board, incidents) else LOOKS_UNKNOWN",
    ),
    _mutant(
        "a goal waits for the board beside an event that we hold",
        _VALIDATE,
        "    if not incidents.items or has_held_event(state, incidents):",
        "    if not incidents.items:",
    ),
    _mutant(
        "a doubt outlives the list",
        _COMPARED,
        "        return None, None\n",
        "        return None, before\n",
    ),
    _mutant(
        "a doubt outlives a look at the drawn page",
        _DRAWN,
        "        doubt=None,\n",
        "",
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
        _NORMALISE,
        "    return MatchStatus.UPCOMING if board.score is None else MatchStatus.LIVE",
        "    return MatchStatus.COMPLETED",
    ),
    _mutant(
        "line-ups vanish when they are not read",
        _NORMALISE,
        "        **_parts_before(state),\n",
        "",
    ),
    _mutant(
        "the goals of a shoot-out are not served",
        _NORMALISE,
        "    if board.penalties:",
        "    if False:",
    ),
)
