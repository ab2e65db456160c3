"""Mutants of the cricket pipeline: reading, aligning, committing and storing."""

from tests.mutation.mutant import Change, Mutant, always, drop, never, nth, swap

_TESTS = (
    "tests/unit/sports/cricket",
    "tests/unit/matches",
    "tests/unit/watching",
    "tests/contract/test_match_store.py",
)
_SAME = "SELECT * FROM event_versions WHERE match_id = :match_id AND key = :key AND content_hash = :content_hash"


def _mutant(name: str, module: str, symbol: str, change: Change) -> Mutant:
    return Mutant(name=name, module=module, symbol=symbol, change=change, tests=_TESTS, is_modelled=True)


PIPELINE = (
    _mutant(
        "the state advances although the commit failed",
        "matches.pipeline",
        "Pipeline.apply",
        swap(
            "receipt = await _1",
            "try:\n receipt = await _1\n"
            "except Exception:\n return PollResult(state=draft.state, receipt=None, trust=trust)",
        ),
    ),
    _mutant(
        "the state keeps only its newest events",
        "sports.base",
        "MatchState.after",
        swap("{**self.events, **_1}", "dict([*self.events.items(), *_1.items()][-4:])"),
    ),
    _mutant(
        "a commit of unknown outcome counts as failed",
        "matches.live_match_and_feeds",
        "LiveMatch._poll",
        swap("self.is_base_known = False", "self.is_base_known = True"),
    ),
    _mutant(
        "the first answers about a match are believed",
        "matches.pipeline",
        "Pipeline._judge",
        never("not trust.is_known and state.snapshot is None"),
    ),
    _mutant("one contradiction is enough to rebuild a match", "matches.trust", "Trust.has_agreed", always("_ and _")),
    _mutant(
        "the listing cannot back what is stored",
        "matches.trust",
        "judge_contradiction",
        never("listing and _ and _"),
    ),
    _mutant(
        "what a rebuilt match no longer shows stays",
        "matches.pipeline",
        "_rebuilt",
        swap("(*gone, *changed)", "(*changed,)"),
    ),
    _mutant("a suspect answer is stored", "matches.trust", "judge_suspect", always("kinds <= _")),
    _mutant(
        "only the newest events of a large diff are kept",
        "sports.cricket.align",
        "align",
        swap("_1.events.sort(key=_2)", "_1.events = sorted(_1.events, key=_2)[-3:]"),
    ),
    _mutant(
        "versions are distinguished by their content alone",
        "storage.sqlite.matches",
        "_save_events",
        swap(
            "_stored_before(_1, _2, _3)",
            f'next((stored_event(row, _3) for row in rows(_1, "{_SAME}", _2)), None)',
        ),
    ),
    _mutant("a writer of an older epoch may store", "storage.sqlite.matches", "_owned", never("_.epoch != _.epoch")),
    _mutant(
        "every correction is taken for an older copy",
        "matches.event_versions_and_confirmation",
        "Versions.replace",
        swap("self.put(old.key, content, _, _1)", "self.put(old.key, old.content, old.source_event_id, _1)"),
    ),
    _mutant(
        "a step back is accepted at the first poll",
        "matches.event_versions_and_confirmation",
        "awaited",
        always("_ in confirmed"),
    ),
    _mutant(
        "the newest ball is voided without the scoreboard's agreement",
        "sports.cricket.align",
        "_may_void",
        swap("_ and _1.may_step_back(_2, _3)", "_1.may_step_back(_2, _3)"),
    ),
    _mutant("nothing is ever voided", "sports.cricket.align", "_may_void", never("_ and _.may_step_back(...)")),
    _mutant(
        "a key is used again after a void",
        "matches.event_versions_and_confirmation",
        "Versions._last_numbers",
        swap("self.known", "[key for key, event in self.known.items() if event.is_live]"),
    ),
    _mutant(
        "positions are not recounted",
        "sports.cricket.align",
        "_align_deliveries",
        nth(
            1,
            swap("_1.put(known.key, _2, _3, position)", "_1.put(known.key, _2, _3, known.position)"),
        ),
    ),
    _mutant(
        "a result is accepted at the first poll",
        "sports.cricket.align",
        "_wants_two_polls",
        never("seen.kind == CricketKind.RESULT"),
    ),
    _mutant(
        "the walk stops at the first known ball, whatever the totals say",
        "sports.cricket.poll_requests",
        "walk",
        always("not _news(_, _)"),
    ),
    _mutant(
        "a start is no full sync",
        "sports.cricket.poll_requests",
        "read_back_to",
        nth(1, swap("return BEGINNING", "return None")),
    ),
    _mutant("sequence numbers have holes", "storage.sqlite.matches", "_save_events", swap("seq += 1", "seq += 2")),
    _mutant(
        "the snapshot is stored and the events are not",
        "storage.sqlite.matches",
        "_save_update",
        swap("_save_events(_, _, _1)", "((), _1.seq)"),
    ),
    _mutant(
        "differing totals are not reported",
        "sports.cricket.totals_gaps_and_derived_events",
        "find",
        swap("_mismatches(_)", "()"),
    ),
    _mutant("gaps are not reported", "sports.cricket.totals_gaps_and_derived_events", "find", swap("_gaps(_)", "()")),
    _mutant(
        "what fell out of a window is not summed up",
        "sports.cricket.totals_gaps_and_derived_events",
        "inferred",
        always("not _.is_window"),
    ),
    _mutant(
        "a sum stays when its balls turn up",
        "sports.cricket.sport",
        "_with_inferred",
        swap("(*_1.withdrawn, *_)", "_1.withdrawn"),
    ),
    _mutant(
        "an older board is served at once",
        "matches.event_versions_and_confirmation",
        "confirm_board",
        always("_ in suspects"),
    ),
    _mutant(
        "unchanged pages end a poll that should confirm a step back",
        "matches.pipeline",
        "_is_settled",
        always("not _.suspects"),
    ),
    _mutant(
        "unchanged pages end a full poll", "matches.pipeline", "Pipeline.observe", always("not (is_full or is_doubted)")
    ),
    _mutant(
        "digests of discarded pages are remembered",
        "matches.source_client_and_poll_attempt",
        "PollClient.forget",
        drop("self.digests.clear()"),
    ),
    _mutant(
        "one unchanged page counts for all pages",
        "matches.source_client_and_poll_attempt",
        "PollClient.are_unchanged",
        swap("all(_1)", "any(_1)"),
    ),
)
