"""Mutants of the rules for bad times: breakers, retries, time-outs, and the life of a match."""

from bench.mutant import broken_rule

_BREAKER, _RETRY, _GUARDS = "resilience/breaker.py", "resilience/retry.py", "fetching/guards.py"
_TIMEOUTS, _TAXONOMY = "resilience/timeouts.py", "resilience/taxonomy.py"
_MATCH = "model/match.py"


_BREAKERS = (
    broken_rule(
        "a late success closes a breaker",
        _BREAKER,
        "        is_of_now = permit.generation == self._generation\n"
        "        return is_of_now and (self._state is BreakerState.CLOSED or permit.number in self._probes)",
        "        return True",
    ),
    broken_rule(
        "a half-open breaker lets everybody try",
        _BREAKER,
        "len(self._probes) >= self.policy.max_probes",
        "False",
    ),
    broken_rule("those turned away are not counted", _BREAKER, "            self.rejected += 1\n", ""),
    broken_rule(
        "a failed probe counts as one of many",
        _BREAKER,
        "        if self._state is BreakerState.HALF_OPEN:\n            return self._open(",
        "        if False:\n            return self._open(",
    ),
    broken_rule(
        "a slow answer is a good one", _BREAKER, "        if self.policy.is_slow(seconds):", "        if False:"
    ),
    broken_rule(
        "one success closes a breaker",
        _BREAKER,
        "self._close() if self._successes >= self.policy.successes_to_close else None",
        "self._close()",
    ),
    broken_rule(
        "a probe given back keeps its place",
        _BREAKER,
        "        if self._is_current(permit):\n            self._probes.discard(permit.number)",
        "        pass",
    ),
    broken_rule("an open breaker never rests", _BREAKER, "now >= self._opens_until", "False"),
    broken_rule(
        "a success does not end a row of failures",
        _BREAKER,
        "        self._failed_at.clear()",
        "        pass",
    ),
    broken_rule(
        "a share is judged by a few attempts",
        _BREAKER,
        "attempts < self._rule.min_attempts or failures",
        "failures",
    ),
    broken_rule(
        "a share never forgets",
        _BREAKER,
        "if each.number > newest.number - SLICES]",
        "]",
    ),
    broken_rule(
        "a canary that failed keeps its place",
        _BREAKER,
        "        self.release(leave, now)\n        return ()\n",
        "        return ()\n",
    ),
    broken_rule(
        "a canary wakes its own host only",
        _BREAKER,
        "            woken = self._moved(host, breaker.half_open(now), now)",
        "            woken = self._moved(host, breaker.half_open(now), now) if host == canarys_host else ()",
    ),
    broken_rule(
        "as many canaries as requests",
        _BREAKER,
        "self._canary is None and now >= self._canary_due_at",
        "True",
    ),
    broken_rule(
        "the last wish for rest counts, not the longest",
        _BREAKER,
        "max(self._until, now + seconds)",
        "now + seconds",
    ),
)

_ASKING = (
    broken_rule("jitter shortens the wait", _RETRY, "(1.0 + JITTER_SHARE * jitter)", "(1.0 - JITTER_SHARE * jitter)"),
    broken_rule("a wait grows without end", _RETRY, "min(self.max_delay_seconds, ", "max(0.0, "),
    broken_rule("one attempt too many", _RETRY, "tried >= policy.attempts", "tried > policy.attempts"),
    broken_rule(
        "ten days of Retry-After are obeyed", _RETRY, "MAX_RETRY_AFTER = 1.0, 900.0", "MAX_RETRY_AFTER = 1.0, 9e5"
    ),
    broken_rule("no total deadline", _RETRY, "    return None if is_too_late else wait", "    return wait"),
    broken_rule(
        "a refusal is met with the same request at once",
        _RETRY,
        "        case FailureKind.CONNECTION | FailureKind.CONTENT:",
        "        case FailureKind.CONNECTION | FailureKind.CONTENT | FailureKind.REFUSAL:",
    ),
    broken_rule("retries cost nothing", _GUARDS, "        self._fifths -= self.COST\n", ""),
    broken_rule("savings for retries have no end", _GUARDS, "min(self._fifths + 1, self.MOST)", "self._fifths + 1"),
    broken_rule("a slow site is slow for ever", _TIMEOUTS, "mean >= NO_LONGER_SLOW_BELOW", "True"),
    broken_rule("time-outs swing around their limit", _TIMEOUTS, "mean >= NO_LONGER_SLOW_BELOW", "False"),
    broken_rule("time-outs have no floor", _TIMEOUTS, "page=max(_PAGE_FLOOR, min(", "page=max(0.0, min("),
    broken_rule("the mean is of all requests ever", _TIMEOUTS, "        self._sample.clear()\n", ""),
    broken_rule(
        "a time-out counts against the match",
        _TAXONOMY,
        "    FetchTimeout: Meaning(kind=FailureKind.CONNECTION,",
        "    FetchTimeout: Meaning(kind=FailureKind.REFUSAL,",
    ),
)

_LIFE = (
    broken_rule(
        "an archived match comes back",
        _MATCH,
        "    Phase.ARCHIVED: frozenset(),",
        "    Phase.ARCHIVED: frozenset({Phase.ACTIVE}),",
    ),
    broken_rule(
        "a result cannot be taken back",
        _MATCH,
        "frozenset({Phase.ACTIVE, Phase.ARCHIVED})",
        "frozenset({Phase.ARCHIVED})",
    ),
    broken_rule(
        "a match is put away amid the play",
        _MATCH,
        "    Phase.ACTIVE: frozenset({Phase.PAUSED, Phase.COMPLETED}),",
        "    Phase.ACTIVE: frozenset({Phase.PAUSED, Phase.COMPLETED, Phase.ARCHIVED}),",
    ),
    broken_rule(
        "a paused match is never over",
        _MATCH,
        "    Phase.PAUSED: frozenset({Phase.ACTIVE, Phase.COMPLETED}),",
        "    Phase.PAUSED: frozenset({Phase.ACTIVE}),",
    ),
    broken_rule("any move is legal", _MATCH, "    if to not in TRANSITIONS[current]:", "    if False:"),
)

RESILIENCE = (*_BREAKERS, *_ASKING, *_LIFE)
