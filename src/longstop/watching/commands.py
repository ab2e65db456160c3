"""Carries out what people ask of a running scraper, and writes the answers back.

A command is taken in one transaction and answered in another: one that was taken is never done a second time, also
when the scraper dies in between.
"""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping

from longstop.clock import Clock
from longstop.errors import LongstopError, PageNotFound, ResourcesExhausted, SourceError, StorageError
from longstop.model.command import (
    DONE_WITHIN_SECONDS,
    Command,
    CommandKind,
    CommandState,
    Refusal,
    Reply,
    StandingKind,
    StandingOrder,
)
from longstop.model.match import MatchRef, Phase
from longstop.sources.parsing import host_of
from longstop.storage.base import CommandStore
from longstop.supervision.resources import MemoryCheck
from longstop.telemetry.bus import Bus, failure_of
from longstop.telemetry.events import Telemetry
from longstop.telemetry.events.processes import CommandAnswered, PollPostponed, RecordsFailed
from longstop.watching.feed_watch import FeedWatch
from longstop.watching.scheduler import Scheduler

#: How long a command waits at most before it is seen.
POLL_SECONDS = 0.4
#: How many are done at the same time.
MAX_AT_ONCE = 8
#: How long the first look at a match may take before it is watched without it.
FIRST_LOOK_SECONDS = 10.0

#: Makes afresh all that is asked with; it is told why.
Recycle = Callable[[str], Awaitable[None]]


class CommandLoop:
    """The one who takes commands for the schedulers of a scraper."""

    def __init__(
        self,
        store: CommandStore,
        schedulers: Mapping[str, Scheduler],
        *,
        recycle: Recycle,
        memory_check: MemoryCheck | None,
        bus: Bus,
        clock: Clock,
    ) -> None:
        self._store = store
        self._schedulers = schedulers
        self._recycle = recycle
        self._memory_check = memory_check
        self._bus = bus
        self._clock = clock
        self._free = MAX_AT_ONCE
        #: What is asked of one source is done in the order in which it was asked: the last word counts.
        self._turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._is_begun = False
        #: What goes wrong with the file at present; `None` while nothing does.
        self._failing: type[Exception] | None = None

    async def begin(self) -> None:
        """Put in force what was ordered before; a file that cannot be read is told, and tried again by `run`.

        Matches are watched meanwhile: a broken file of wishes must not stop the work.
        """
        try:
            await self._store.give_up_taken()
            orders = await self._store.standing()
        except Exception as error:
            self._complain(error)
            return
        for source, scheduler in self._schedulers.items():
            scheduler.obey(
                unwatched=_matches(orders, StandingKind.UNWATCHED),
                paused=_matches(orders, StandingKind.PAUSED_MATCH),
                is_resting=any(each.kind is StandingKind.PAUSED_SOURCE and each.subject == source for each in orders),
            )
        self._is_begun, self._failing = True, None

    async def run(self) -> None:
        """Go on until cancelled."""
        async with asyncio.TaskGroup() as group:
            while True:
                for command in await self._take():
                    self._free -= 1
                    group.create_task(self._carry_out(command), name=f"command {command.id}")
                await asyncio.sleep(POLL_SECONDS)

    async def _take(self) -> list[Command]:
        if not self._is_begun:
            await self.begin()
        if not (self._is_begun and self._free):
            return []
        try:
            taken = await self._store.take(self._free)
        except Exception as error:
            self._complain(error)
            return []
        self._failing = None
        return taken

    async def _carry_out(self, command: Command) -> None:
        began = self._clock.monotonic()
        try:
            reply = await self._reply(command)
            await self._store.answer(command, reply)
            self._bus.emit(
                CommandAnswered(
                    id=command.id,
                    kind=command.kind.value,
                    asked_by=command.asked_by,
                    state=reply.state.value,
                    answer=reply.answer,
                    seconds=round(self._clock.monotonic() - began, 3),
                )
            )
        except Exception as error:
            self._complain(error)
        finally:
            self._free += 1

    async def _reply(self, command: Command) -> Reply:
        try:
            async with asyncio.timeout(DONE_WITHIN_SECONDS), self._turns[self._source_of(command)]:
                return _done(await self._do(command))
        except _Refused as refused:
            return Reply(state=CommandState.REFUSED, answer=refused.sentence, refusal=refused.refusal)
        except TimeoutError:
            return _failed(f"This was not done within {DONE_WITHIN_SECONDS:.0f} s: look how things are, and ask again.")
        except LongstopError as error:
            return _failed(f"This could not be done: {error}.")
        except Exception as error:  # a bug in one command must end neither the others nor the watching
            told = failure_of(error, f"command {command.kind}")
            self._bus.emit(told)
            if isinstance(told, PollPostponed):
                return _failed(f"This could not be done: {ResourcesExhausted(told.resource)}.")
            return _failed("This met a bug; it is in the log as task.failed.")

    async def _do(self, command: Command) -> str:
        """Do a command; return what to say of it, or raise `_Refused`."""
        match command.kind:
            case CommandKind.WATCH:
                return await self._watch(command)
            case CommandKind.UNWATCH:
                return await self._unwatch(command)
            case CommandKind.PAUSE_MATCH:
                return await self._pause_match(command)
            case CommandKind.RESUME_MATCH:
                return await self._resume_match(command)
            case CommandKind.PAUSE_SOURCE:
                return await self._pause_source(command)
            case CommandKind.RESUME_SOURCE:
                return await self._resume_source(command)
            case CommandKind.RECYCLE:
                await self._recycle(f"asked for by {command.asked_by}")
                return "Connections and browsers are made afresh."

    def _source_of(self, command: Command) -> str:
        """Return the source that a command speaks of; empty for all of them."""
        match command.kind:
            case CommandKind.WATCH:
                return self._page(command.argument).source
            case CommandKind.UNWATCH | CommandKind.PAUSE_MATCH | CommandKind.RESUME_MATCH:
                return MatchRef.parse(command.argument).source
            case CommandKind.PAUSE_SOURCE | CommandKind.RESUME_SOURCE:
                return command.argument
            case CommandKind.RECYCLE:
                return ""

    # --- matches ---------------------------------------------------------------------------------------------

    async def _watch(self, command: Command) -> str:
        ref = self._page(command.argument)
        scheduler = self._schedulers[ref.source]
        if (watcher := scheduler.find(ref.source_id)) is not None:
            rests = " It is paused: resume it, and it goes on." if watcher.record.is_on_hold else ""
            return f"{ref} is watched already, as match {watcher.state.row.match_id}.{rests}"
        if scheduler.is_resting:
            raise _Refused(Refusal.CONFLICT, f"{ref.source} is paused: resume it first.")
        if self._memory_check is not None and (full := self._memory_check.shortage()) is not None:
            raise _Refused(Refusal.MEMORY, f"{full}.")
        trouble = await _trouble_at(scheduler, ref)
        await self._store.lift_order(StandingKind.UNWATCHED, str(ref))
        watcher = await scheduler.watch(ref.source_id)
        if watcher is None:
            raise _Refused(Refusal.CONFLICT, f"{ref} is over and archived: there is nothing left to watch.")
        return f"{ref} is watched from now on, as match {watcher.state.row.match_id}.{trouble}"

    def _page(self, url: str) -> MatchRef:
        """Return the match whose page an address leads to."""
        for source, scheduler in self._schedulers.items():
            if (source_id := scheduler.client.source.match_of(url)) is not None:
                return MatchRef(source, source_id)
        known = "; ".join(f"{name} ({', '.join(each.client.source.sites)})" for name, each in self._schedulers.items())
        where = host_of(url) or "What was given"
        raise _Refused(
            Refusal.NOT_KNOWN,
            f"{where[:100]} leads to no match that is known here: give the address of a match's page. Known: {known}.",
        )

    async def _unwatch(self, command: Command) -> str:
        ref, _ = self._match(command)
        await self._store.put_order(StandingKind.UNWATCHED, str(ref), command.asked_by)
        # Whoever wants it back wants it to be looked at.
        await self._store.lift_order(StandingKind.PAUSED_MATCH, str(ref))
        unwatched = [each.unwatch(ref) for each in self._schedulers.values()]
        return f"{ref} is not watched any more." if any(unwatched) else f"{ref} was not watched, and will not be."

    async def _pause_match(self, command: Command) -> str:
        ref, _ = self._match(command)
        watcher = self._watched(ref)
        is_new = await self._store.put_order(StandingKind.PAUSED_MATCH, str(ref), command.asked_by)
        for each in self._schedulers.values():
            each.pause(ref)
        await watcher.keep_paused()
        return f"{ref} is paused until it is resumed." if is_new else f"{ref} was paused already."

    async def _resume_match(self, command: Command) -> str:
        ref, scheduler = self._match(command)
        watcher = self._watched(ref)
        if scheduler.is_resting:
            raise _Refused(Refusal.CONFLICT, f"{ref.source} as a whole is paused: resume it first.")
        was_paused = await self._store.lift_order(StandingKind.PAUSED_MATCH, str(ref))
        for each in self._schedulers.values():
            each.resume(ref)
        if not was_paused and watcher.record.phase is Phase.PAUSED:
            raise _Refused(
                Refusal.CONFLICT, f"{ref} rests since it was refused or could not be read; it is tried again by itself."
            )
        return f"{ref} goes on." if was_paused else f"{ref} was not paused."

    def _match(self, command: Command) -> tuple[MatchRef, Scheduler]:
        ref = MatchRef.parse(command.argument)
        return ref, self._scheduler(ref.source)

    def _watched(self, ref: MatchRef) -> FeedWatch:
        """Return a watch of the match; it may have one for each of its feeds."""
        found = [watcher for each in self._schedulers.values() for watcher in each.of_match(ref)]
        if not found:
            raise _Refused(Refusal.CONFLICT, f"{ref} is not watched.")
        return found[0]

    # --- sources ---------------------------------------------------------------------------------------------

    async def _pause_source(self, command: Command) -> str:
        scheduler = self._scheduler(command.argument)
        source = command.argument
        is_new = await self._store.put_order(StandingKind.PAUSED_SOURCE, source, command.asked_by)
        scheduler.rest()
        await scheduler.renew()
        if not is_new:
            return f"{source} was paused already."
        return f"{source} is left alone until it is resumed, also after a restart."

    async def _resume_source(self, command: Command) -> str:
        scheduler = self._scheduler(command.argument)
        was_resting = await self._store.lift_order(StandingKind.PAUSED_SOURCE, command.argument)
        scheduler.wake()
        return f"{command.argument} is read again." if was_resting else f"{command.argument} was not paused."

    def _scheduler(self, source: str) -> Scheduler:
        if source not in self._schedulers:
            known = ", ".join(self._schedulers)
            raise _Refused(Refusal.NOT_KNOWN, f"There is no source {source[:40]} at work here. Known: {known}.")
        return self._schedulers[source]

    def _complain(self, error: Exception) -> None:
        """Tell that the file cannot be used, once until it can; whatever it is, the matches are watched on."""
        is_news, self._failing = type(error) is not self._failing, type(error)
        if isinstance(error, StorageError):
            told: Telemetry = RecordsFailed(records="commands", error_message=str(error))
        else:
            told = failure_of(error, "orders")
        if is_news or isinstance(told, PollPostponed):  # a lack lasts as long as it is told
            self._bus.emit(told)


class _Refused(Exception):
    """A command cannot be done, and nothing was."""

    def __init__(self, refusal: Refusal, sentence: str) -> None:
        super().__init__(sentence)
        self.refusal = refusal
        self.sentence = sentence


async def _trouble_at(scheduler: Scheduler, ref: MatchRef) -> str:
    """Look at a match before it is watched; return what went wrong with that, or raise when the site has none such."""
    try:
        async with asyncio.timeout(FIRST_LOOK_SECONDS):
            await scheduler.client.line(ref.source_id)
    except PageNotFound:
        raise _Refused(Refusal.NOT_KNOWN, f"{ref.source} shows no match {ref.source_id}.") from None
    except (SourceError, TimeoutError) as error:
        return f" A first look failed ({type(error).__name__}); others follow by themselves."
    return ""


def _matches(orders: list[StandingOrder], kind: StandingKind) -> list[MatchRef]:
    """Return the matches that an order of this kind is about."""
    return [MatchRef.parse(each.subject) for each in orders if each.kind is kind]


def _done(sentence: str) -> Reply:
    return Reply(state=CommandState.DONE, answer=sentence)


def _failed(sentence: str) -> Reply:
    return Reply(state=CommandState.FAILED, answer=sentence)
