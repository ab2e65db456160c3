"""Mutants of breakers, retries, time-outs, and the phases of a match."""

from tests.mutation.mutant import always, argument, drop, never, rule, swap

_BREAKER, _RETRY, _GUARDS = "resilience.breaker", "resilience.retry_policy", "fetching.guarded_and_replaceable_fetcher"
_TIMEOUTS, _TAXONOMY = "resilience.adaptive_timeouts", "resilience.taxonomy"
_MATCH = "model.match"

_BREAKERS = (
    rule("a late success closes a breaker", _BREAKER, "Breaker._is_current", swap("return _", "return True")),
    rule("a half-open breaker admits every request", _BREAKER, "Breaker.permit", never("_ >= self.policy.max_probes")),
    rule("rejected requests are not counted", _BREAKER, "Breaker.permit", drop("self.rejected += 1")),
    rule("a failed probe counts like any failure", _BREAKER, "Breaker.fail", never("_ is BreakerState.HALF_OPEN")),
    rule("a slow response is a success", _BREAKER, "Breaker.succeed", never("_.is_slow(_)")),
    rule("one success closes a breaker", _BREAKER, "Breaker.succeed", always("_ >= _.successes_to_close")),
    rule("a released probe keeps its place", _BREAKER, "Breaker.release", never("self._is_current(_)")),
    rule("an open breaker never tries again", _BREAKER, "Breaker._is_due", never("_ >= self._open_until")),
    rule("a success does not end a row of failures", _BREAKER, "_Streak.succeed", drop("self._failed_at.clear()")),
    rule("a failure rate is computed from few attempts", _BREAKER, "_Slices.fail", never("_ < _.min_attempts")),
    rule("a failure rate never forgets", _BREAKER, "_Slices.fail", always("_.number > _.number - SLICES")),
    rule("a failed canary keeps its place", _BREAKER, "HostBreakers.fail", drop("self.release(...)")),
    rule(
        "a canary wakes its own host only",
        _BREAKER,
        "HostBreakers._half_open_all",
        swap(
            "self._changed(_1.half_open(_2), _3)",
            "self._changed(_1.half_open(_2), _3) if host == canary_host else ()",
        ),
    ),
    rule(
        "every request may be a canary",
        _BREAKER,
        "HostBreakers.enter",
        swap("_1 and self._canary is None and _ >= _", "_1"),
    ),
    rule(
        "the last Retry-After counts, not the longest",
        _GUARDS,
        "GuardedFetcher._postpone_all",
        always("now + _ > self.postponed_until"),
    ),
)

_RETRIES = (
    rule(
        "jitter shortens the wait",
        _RETRY,
        "next_delay",
        swap("1.0 + JITTER_SHARE * _1", "1.0 - JITTER_SHARE * _1"),
    ),
    rule(
        "a wait grows without limit",
        _RETRY,
        "RetryPolicy.delay",
        swap("min(self.max_delay_seconds, _1)", "_1"),
    ),
    rule("one attempt too many", _RETRY, "next_delay", swap("_1 >= _2.attempts", "_1 > _2.attempts")),
    rule("ten days of Retry-After are obeyed", _RETRY, "MAX_RETRY_AFTER", swap("900.0", "9e5")),
    rule("there is no total deadline", _RETRY, "next_delay", swap("None if is_too_late else _1", "_1")),
    rule(
        "a refused request is repeated at once",
        _RETRY,
        "_is_retryable",
        swap("return False", "return meaning.is_soft and meaning.kind is FailureKind.REFUSAL"),
    ),
    rule("retries cost nothing", _GUARDS, "RetryBudget.spend", drop("_ -= self.COST")),
    rule("the retry budget has no limit", _GUARDS, "RetryBudget.earn", swap("min(_1, self.MOST)", "_1")),
    rule("a slow site stays slow", _TIMEOUTS, "speed_after", always("_ >= NO_LONGER_SLOW_BELOW")),
    rule("time-outs oscillate around their limit", _TIMEOUTS, "speed_after", never("_ >= NO_LONGER_SLOW_BELOW")),
    rule("time-outs have no lower limit", _TIMEOUTS, "_shortened", argument("page", "0.0")),
    rule("the mean covers all requests ever", _TIMEOUTS, "AdaptiveTimeouts.observe", drop("self._sample.clear()")),
    rule(
        "a time-out counts against the match",
        _TAXONOMY,
        "meaning_of",
        swap(
            "return _1",
            "return Meaning(kind=FailureKind.REFUSAL, is_soft=True) if isinstance(error, errors.FetchTimeout) else _1",
        ),
    ),
)

_PHASES = (
    rule("an archived match becomes active", _MATCH, "TRANSITIONS", swap("frozenset()", "frozenset({Phase.ACTIVE})")),
    rule(
        "a result cannot be taken back",
        _MATCH,
        "TRANSITIONS",
        swap("{Phase.ACTIVE, Phase.ARCHIVED}", "{Phase.ARCHIVED}"),
    ),
    rule(
        "a match is archived during play",
        _MATCH,
        "TRANSITIONS",
        swap("{Phase.PAUSED, Phase.COMPLETED}", "{Phase.PAUSED, Phase.COMPLETED, Phase.ARCHIVED}"),
    ),
    rule(
        "a paused match never completes",
        _MATCH,
        "TRANSITIONS",
        swap("{Phase.ACTIVE, Phase.COMPLETED}", "{Phase.ACTIVE}"),
    ),
    rule("any transition is legal", _MATCH, "move", never("_ not in TRANSITIONS[_]")),
)

RESILIENCE = (*_BREAKERS, *_RETRIES, *_PHASES)
