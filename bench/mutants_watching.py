"""Mutants of the rules of watching: when to look, when to begin anew, what to believe, whom to let in."""

from bench.mutant import broken_rule

_CADENCE, _WATCH_STATE, _RESTARTS = "watching/cadence.py", "watching/watch_state.py", "watching/cadence.py"
_GATE, _DISPATCHER = "watching/gate.py", "watching/dispatcher.py"

_WHEN = (
    broken_rule(
        "errors hurry a match that is slow already",
        _CADENCE,
        "    if slowed > usual.seconds:",
        "    if True:",
    ),
    broken_rule("errors do not slow", _CADENCE, "    if course.pace.factor == 1.0:", "    if True:"),
    broken_rule(
        "an important match never rests",
        _CADENCE,
        "    if not course.failures and course.rhythm.is_break(",
        "    if not course.is_important and course.rhythm.is_break(",
    ),
    broken_rule(
        "news waits for the end of a break",
        _CADENCE,
        "max(tempo.at_least, min(tempo.seconds, cadence.live))",
        "tempo.seconds",
    ),
    broken_rule(
        "a result is read again once only",
        _CADENCE,
        "timedelta(hours=2), timedelta(hours=6), timedelta(hours=24))",
        "timedelta(hours=2),)",
    ),
    broken_rule(
        "a match is put away before its last reading",
        _CADENCE,
        "    return not must_reread(completed_at, read_at, now) or",
        "    return True or",
    ),
    broken_rule(
        "a match that cannot be read is kept for ever",
        _CADENCE,
        " or now - completed_at >= ARCHIVE_AFTER + ARCHIVE_PATIENCE",
        "",
    ),
    broken_rule(
        "ten equal cycles are a break", _CADENCE, "status is MatchStatus.BREAK and self.is_quiet", "self.is_quiet"
    ),
    broken_rule(
        "the word alone is a break",
        _CADENCE,
        "status is MatchStatus.BREAK and self.is_quiet",
        "status is MatchStatus.BREAK",
    ),
    broken_rule(
        "no break without the word",
        _CADENCE,
        "        return now - self.changed_at >= break_after",
        "        return False",
    ),
    broken_rule(
        "a change does not end a break",
        _CADENCE,
        "changed_at=now if is_news else self.changed_at",
        "changed_at=self.changed_at",
    ),
    broken_rule("half is more than half", _CADENCE, "sum(self.news) > BUSY_SHARE", "sum(self.news) >= BUSY_SHARE"),
    broken_rule("a bad spell never ends", _CADENCE, "now - self.bad_at >= calm_after", "False"),
    broken_rule(
        "every error in a spell is an accident",
        _CADENCE,
        "        elif self.good >= GOOD_BETWEEN_ACCIDENTS:",
        "        elif True:",
    ),
    broken_rule(
        "no error in a spell is an accident",
        _CADENCE,
        "        elif self.good >= GOOD_BETWEEN_ACCIDENTS:",
        "        elif False:",
    ),
    broken_rule(
        "what begins a spell is rare within it", _CADENCE, "GOOD_BETWEEN_ACCIDENTS = 7", "GOOD_BETWEEN_ACCIDENTS = 4"
    ),
    broken_rule(
        "errors of an hour count as those of a minute", _CADENCE, "if now - at < MINUTE)", "if now - at < 60 * MINUTE)"
    ),
    broken_rule("a failed look of which nothing is known calms", _WATCH_STATE, " if errors else self.pace", ""),
)

_WATCHES = (
    broken_rule(
        "a burst of not-found ends a match",
        _WATCH_STATE,
        "        if self.times and now - self.counted_at < apart:",
        "        if False:",
    ),
    broken_rule("a match that is listed is taken for gone", _WATCH_STATE, " and not is_listed", ""),
    broken_rule(
        "stale is noticed and nothing follows", _RESTARTS, "        return RestartReason.STALE", "        return None"
    ),
    broken_rule(
        "a match that is not in play is stale",
        _RESTARTS,
        "        return self.is_in_play and now",
        "        return now",
    ),
    broken_rule("the tenth error restarts", _RESTARTS, "life.failures > MAX_FAILURES", "life.failures >= MAX_FAILURES"),
    broken_rule(
        "a watch waits for a quiet moment for ever",
        _RESTARTS,
        "1 if life.is_quiet else 1 + PATIENCE",
        "1 if life.is_quiet else 99",
    ),
    broken_rule("a watch ends amid the play", _RESTARTS, "1 if life.is_quiet else 1 + PATIENCE", "1"),
    broken_rule(
        "a disagreement of one moment is a frozen feed", _WATCH_STATE, " and now - self.since >= frozen_after", ""
    ),
    broken_rule(
        "a disagreement that comes back has lasted all the time",
        _WATCH_STATE,
        "        return self if behind is self.behind else Lag(behind=behind, since=now)",
        "        return Lag(behind=behind, since=self.since or now)",
    ),
    broken_rule(
        "two silent witnesses are believed for ever",
        _WATCH_STATE,
        "    return Behind.BOTH if is_silent else Behind.NOBODY",
        "    return Behind.NOBODY",
    ),
    broken_rule(
        "an announced break is a frozen feed",
        _WATCH_STATE,
        "own.status is MatchStatus.LIVE and unchanged_seconds",
        "unchanged_seconds",
    ),
    broken_rule(
        "a frozen page makes a match young",
        _WATCH_STATE,
        "good_at=self.good_at if state.is_blind(at) else at,",
        "good_at=at,",
    ),
    broken_rule(
        "moves of before a change count for a frozen page",
        _WATCH_STATE,
        "moves=self.moves + 1 if still is self.still else 1)",
        "moves=self.moves + 1)",
    ),
    broken_rule(
        "a restart forgets the errors",
        _WATCH_STATE,
        "            polled_at=None,\n            failures=0,\n",
        "            polled_at=None,\n            failures=0,\n            pace=Pace(),\n",
    ),
    broken_rule(
        "a long look is a dead one",
        _WATCH_STATE,
        "replace(self, answers=answers, progress_at=now.monotonic)",
        "replace(self, answers=answers)",
    ),
    broken_rule(
        "a paused match is begun anew again and again",
        _WATCH_STATE,
        "            is_paused=False,\n",
        "",
    ),
    broken_rule(
        "the order goes by time alone",
        _DISPATCHER,
        "(request.priority, scheduled_at, count, request)",
        "(0, scheduled_at, count, request)",
    ),
    broken_rule(
        "a request begins before its time", _DISPATCHER, "self._later and self._later[0][0] <= now", "self._later"
    ),
    broken_rule(
        "two looks at one match at once",
        _DISPATCHER,
        "        if request.slot in self._taken:\n            return False\n",
        "",
    ),
    broken_rule("no cap", _DISPATCHER, "            self._free -= 1\n", "            pass\n"),
    broken_rule(
        "a cancelled look keeps its place",
        _DISPATCHER,
        "        finally:\n            self._free += 1\n",
        "        else:\n            self._free += 1\n",
    ),
    broken_rule("the tenth unreadable page closes the gate", _GATE, "MAX_UNREADABLE = 10", "MAX_UNREADABLE = 9"),
    broken_rule(
        "every unreadable page is told",
        _GATE,
        "        if streak.length == MAX_UNREADABLE + 1:\n            self._bus",
        "        if streak.is_broken:\n            self._bus",
    ),
    broken_rule(
        "one kind of page closes all",
        _GATE,
        "self._streaks = defaultdict[str, _Streak](_Streak)",
        "only = _Streak()\n        self._streaks = defaultdict[str, _Streak](lambda: only)",
    ),
    broken_rule(
        "a broken layout is tried at every poll", _GATE, "        if now < streak.closed_until:", "        if False:"
    ),
    broken_rule(
        "a broken layout is never tried again", _GATE, "        if now < streak.closed_until:", "        if True:"
    ),
    broken_rule("a readable page does not mend", _GATE, "            self._readable(resource)\n", ""),
    broken_rule(
        "connection failures close the gate",
        _GATE,
        "_COUNTED = frozenset({FailureKind.REFUSAL,",
        "_COUNTED = frozenset({FailureKind.CONNECTION, FailureKind.REFUSAL,",
    ),
    broken_rule(
        "a try that says nothing is used up",
        _GATE,
        "        if passed.is_try and _says_nothing(error):",
        "        if False:",
    ),
    broken_rule(
        "a probe that says nothing keeps its place", _GATE, "        self._breaker.release(passed.permit, now)\n", ""
    ),
)

WATCHING = (*_WHEN, *_WATCHES)
