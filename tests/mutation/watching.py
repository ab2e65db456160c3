"""Mutants of the scheduler: when to poll, when to restart, what to believe, what to admit."""

from tests.mutation.mutant import always, drop, drop_argument, never, nth, rule, swap

_CADENCE, _STATE = "watching.poll_intervals_and_frozen_pages", "watching.polling_state_and_decisions"
_ADMISSION, _DISPATCHER = "watching.source_and_layout_breakers", "watching.poll_dispatcher"

_CADENCES = (
    rule(
        "errors speed up a match that is slow already",
        _STATE,
        "WatchState.interval",
        always("slowed > _.seconds"),
        _CADENCE,
    ),
    rule("errors do not slow", _STATE, "WatchState.interval", always("_.factor == 1.0"), _CADENCE),
    rule(
        "an important match never slows down in a break",
        _STATE,
        "WatchState._live_interval",
        swap("is_settled and _1", "not self.rules.is_important(match.row.title) and _1"),
        _CADENCE,
    ),
    rule(
        "news waits for the end of a break",
        _STATE,
        "WatchState.is_due",
        swap("max(_, min(_1.seconds, _))", "_1.seconds"),
        _CADENCE,
    ),
    rule("a result is read again only once", _CADENCE, "REREAD_AFTER", swap("(_1, _, _)", "(_1,)")),
    rule(
        "a match is archived before its last poll",
        _STATE,
        "WatchState.may_be_archived",
        always("not must_reread(...)"),
    ),
    rule(
        "an unreadable match is never archived",
        _STATE,
        "WatchState.may_be_archived",
        never("_ >= ARCHIVE_AFTER + ARCHIVE_PATIENCE"),
        _CADENCE,
    ),
    rule("ten unchanged polls are a break", _CADENCE, "Activity.is_break", always("status is MatchStatus.BREAK")),
    rule("the status alone is a break", _CADENCE, "Activity.is_break", always("self.is_quiet")),
    rule("no break without the status", _CADENCE, "Activity.is_break", never("_ - self.changed_at >= _")),
    rule(
        "a change does not end a break",
        _CADENCE,
        "Activity.after",
        swap("_ if _ else self.changed_at", "self.changed_at"),
    ),
    rule("half is more than half", _CADENCE, "Activity.is_busy", swap("_1 > _2", "_1 >= _2")),
    rule("a slow phase never ends", _CADENCE, "ErrorBackoff.after", never("_ - self.bad_at >= _")),
    rule(
        "every error in a slow phase is an isolated one",
        _CADENCE,
        "ErrorBackoff.after",
        always("_ >= GOOD_BETWEEN_ACCIDENTS"),
    ),
    rule(
        "no error in a slow phase is an isolated one",
        _CADENCE,
        "ErrorBackoff.after",
        never("_ >= GOOD_BETWEEN_ACCIDENTS"),
    ),
    rule("too few successes make an error isolated", _CADENCE, "GOOD_BETWEEN_ACCIDENTS", swap("7", "4")),
    rule(
        "errors of an hour count as those of a minute",
        _CADENCE,
        "ErrorBackoff.after",
        swap("_1 < MINUTE", "_1 < 60 * MINUTE"),
    ),
    rule(
        "a failed poll without errors calms the cadence",
        _STATE,
        "WatchState.after_failure",
        swap("_1 if errors > 0 else _", "_1"),
    ),
)

_WATCHES = (
    rule("a burst of 404s ends a match", _STATE, "WatchState.after_missing", always("_ - self.missing_at >= _")),
    rule("a listed match counts as gone", _STATE, "WatchState.is_gone", always("self.is_delisted")),
    rule(
        "staleness has no consequence",
        _STATE,
        "WatchState.restart_reason",
        swap("return RestartReason.STALE", "return None"),
    ),
    rule("a match that is not in play is stale", _STATE, "WatchState.is_stale", always("_ in IN_PLAY")),
    rule(
        "the tenth error restarts",
        _STATE,
        "WatchState.restart_reason",
        swap("_1 > MAX_FAILURES", "_1 >= MAX_FAILURES"),
    ),
    rule(
        "a watch waits for a quiet moment without limit",
        _STATE,
        "WatchState.restart_reason",
        swap("1 + PATIENCE", "99"),
        _CADENCE,
    ),
    rule(
        "a watch restarts during play",
        _STATE,
        "WatchState.restart_reason",
        swap("1 if _ else 1 + PATIENCE", "1"),
        _CADENCE,
    ),
    rule("a momentary disagreement is a frozen source", _CADENCE, "Lag.is_frozen", always("_ - self.since >= _")),
    rule(
        "a disagreement that returns has lasted all the time",
        _CADENCE,
        "Lag.after",
        swap("self if _ else replace(self, behind=_1, since=_2)", "replace(self, behind=_1, since=self.since or _2)"),
    ),
    rule("two silent sources are believed", _CADENCE, "page_behind", swap("Behind.BOTH if _ else _1", "_1")),
    rule("an announced break is a frozen source", _CADENCE, "page_behind", always("own.status is MatchStatus.LIVE")),
    rule("a frozen page makes a match fresh", _STATE, "WatchState._accepted", never("_.is_outdated(_)")),
    rule(
        "changes before a reset count for a frozen page",
        _CADENCE,
        "Lag.after_change",
        swap("_1 if _ else 1", "_1"),
        _STATE,
    ),
    rule(
        "a restart forgets the errors",
        _STATE,
        "WatchState.restarted",
        swap("return _1", "return replace(_1, backoff=ErrorBackoff())"),
    ),
    rule("a long poll is a dead one", _STATE, "WatchState.poll_progressed", drop_argument("progress_at")),
    rule("a paused match is restarted repeatedly", _STATE, "WatchState.restarted", drop_argument("is_paused")),
    rule("the queue ignores priorities", _DISPATCHER, "ScrapeQueue.take", swap("_.priority", "0")),
    rule("a request starts before its time", _DISPATCHER, "ScrapeQueue.take", always("_ <= now")),
    rule("two polls of one match run at once", _DISPATCHER, "ScrapeQueue.put", never("_ in self._taken")),
    rule("there is no limit of concurrent polls", _DISPATCHER, "Dispatcher.run", drop("self._free -= 1")),
    rule(
        "a cancelled poll keeps its place",
        _DISPATCHER,
        "Dispatcher._do",
        swap("self._free += 1", "self._free += __import__('sys').exception() is None"),
    ),
)

_ADMISSIONS = (
    rule("the tenth unreadable page stops a source", _ADMISSION, "MAX_UNREADABLE", swap("10", "9")),
    rule(
        "every unreadable page is reported",
        _ADMISSION,
        "SourceAdmission._record_unreadable",
        nth(2, swap("_1.length == MAX_UNREADABLE + 1", "_1.is_broken")),
    ),
    rule(
        "one kind of page stops all",
        _ADMISSION,
        "SourceAdmission.__init__",
        swap("_1(_UnreadableStreak)", "(lambda only: _1(lambda: only))(_UnreadableStreak())"),
    ),
    rule(
        "a broken layout is tried at every poll", _ADMISSION, "SourceAdmission._is_probe", never("_ < _.closed_until")
    ),
    rule("a broken layout is never tried again", _ADMISSION, "SourceAdmission._is_probe", always("_ < _.closed_until")),
    rule(
        "a readable page does not recover a source",
        _ADMISSION,
        "SourceAdmission._record",
        drop("self._record_readable(_, _, _)"),
    ),
    rule(
        "connection failures stop a source",
        _ADMISSION,
        "_COUNTED",
        swap("{FailureKind.REFUSAL, _1}", "{FailureKind.CONNECTION, FailureKind.REFUSAL, _1}"),
    ),
    rule(
        "an inconclusive try is used up",
        _ADMISSION,
        "SourceAdmission._record",
        never("is_probe and _is_inconclusive(_)"),
    ),
    rule(
        "an inconclusive probe keeps its place",
        _ADMISSION,
        "SourceAdmission._record",
        drop("self._breaker.release(...)"),
    ),
)

WATCHING = (*_CADENCES, *_WATCHES, *_ADMISSIONS)
