"""Executes the commands of operators, and stores the replies.

A command is taken in one transaction and answered in another: a taken command never runs twice, even when the scraper
dies in between.
"""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping

from longstop.clock import Clock
from longstop.errors import LongstopError, PageNotFound, ResourcesExhausted, SourceError, StorageError
from longstop.model.command_and_standing_order import (
    DONE_WITHIN_SECONDS,
    Command,
    CommandKind,
    CommandState,
    Refusal,
    Reply,
    StandingKind,
)
from longstop.model.match import MatchRef, Phase
from longstop.sources.bodies_and_urls import host_of, mapping_errors
from longstop.storage.base import CommandStore
from longstop.supervision.memory_for_new_matches import MemoryCheck
from longstop.telemetry.bus import Bus, failure_of
from longstop.telemetry.events import Telemetry
from longstop.telemetry.events.processes import CommandAnswered, PollPostponed, RecordsFailed
from longstop.watching.feed_polling import FeedWatch
from longstop.watching.source_scheduler import Scheduler

#: How often new commands are read.
POLL_SECONDS = 0.4
#: A hung disk must not block the start for ever.
READ_WITHIN_SECONDS = 10.0
#: How often the stored orders are compared with those in force.
KEEP_ORDERS_SECONDS = 1.0
#: How many commands run concurrently.
MAX_AT_ONCE = 8
#: Time limit of the first poll of a match that is to be watched.
FIRST_POLL_SECONDS = 10.0

#: Replaces the browsers of a source: the reason, and the source.
RecycleBrowsers = Callable[[str, str], None]


class CommandLoop:
    def __init__(
        self,
        store: CommandStore,
        schedulers: Mapping[str, Scheduler],
        *,
        recycle_browsers: RecycleBrowsers,
        memory_check: MemoryCheck,
        bus: Bus,
        clock: Clock,
    ) -> None:
        self._store = store
        self._schedulers = schedulers
        self._recycle_browsers = recycle_browsers
        self._memory_check = memory_check
        self._bus = bus
        self._clock = clock
        #: Each returns the answer, or raises `_Refused`.
        self._actions: dict[CommandKind, Callable[[Command], Awaitable[str]]] = {
            CommandKind.WATCH: self._watch,
            CommandKind.UNWATCH: self._unwatch,
            CommandKind.PAUSE_MATCH: self._pause_match,
            CommandKind.RESUME_MATCH: self._resume_match,
            CommandKind.PAUSE_SOURCE: self._pause_source,
            CommandKind.RESUME_SOURCE: self._resume_source,
            CommandKind.RECYCLE: self._recycle,
        }
        self._free = MAX_AT_ONCE
        #: Commands for one source run in the order in which they were issued.
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        #: The orders in force, by kind and subject, with who gave them. Nothing but a command changes them.
        self._orders: dict[tuple[StandingKind, str], str] = {}
        self._keep_orders_at = 0.0
        self._is_ready = False
        #: The type of the current storage error; `None` while there is none.
        self._failing: type[Exception] | None = None

    async def begin(self) -> None:
        """Apply the standing orders; raise if they cannot be read in time, for nothing may be polled without them."""
        await self._give_up_taken()
        try:
            async with asyncio.timeout(READ_WITHIN_SECONDS):
                orders = await self._store.standing()
        except TimeoutError as error:
            raise StorageError(
                f"the orders of operators cannot be read (no answer within {READ_WITHIN_SECONDS:.0f} s), so nothing is"
                " polled: check the disk, and start again"
            ) from error
        for order in orders:
            self._orders[order.kind, order.subject] = order.asked_by
            for source, scheduler in self._schedulers.items():
                if order.kind is StandingKind.UNWATCHED:
                    scheduler.unwatch(MatchRef.parse(order.subject))
                elif order.kind is StandingKind.PAUSED_MATCH:
                    scheduler.pause(MatchRef.parse(order.subject))
                elif order.subject == source:
                    scheduler.pause_source()

    async def _give_up_taken(self) -> None:
        """Answer what an earlier scraper took. Until that succeeds no command is taken; polling does not wait."""
        try:
            async with asyncio.timeout(READ_WITHIN_SECONDS):
                await self._store.give_up_taken()
        except Exception as error:
            self._report(error)
        else:
            self._is_ready, self._failing = True, None

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            while True:
                for command in await self._take():
                    self._free -= 1
                    group.create_task(self._execute(command), name=f"command {command.id}")
                await asyncio.sleep(POLL_SECONDS)

    async def _take(self) -> list[Command]:
        if not self._is_ready:
            await self._give_up_taken()
        if not (self._is_ready and self._free):
            return []
        try:
            await self._keep_orders()
            taken = await self._store.take(self._free)
        except Exception as error:
            self._report(error)
            return []
        self._failing = None
        return taken

    async def _keep_orders(self) -> None:
        """Store orders in force that the file has lost, since an older one was put in its place."""
        now = self._clock.monotonic()
        if now < self._keep_orders_at:
            return
        self._keep_orders_at = now + KEEP_ORDERS_SECONDS
        stored = {(order.kind, order.subject) for order in await self._store.standing()}
        for (kind, subject), asked_by in list(self._orders.items()):
            if (kind, subject) not in stored and (kind, subject) in self._orders:
                await self._store.put_order(kind, subject, asked_by)

    async def _put(self, kind: StandingKind, subject: str, asked_by: str) -> bool:
        is_new = await self._store.put_order(kind, subject, asked_by)
        self._orders[kind, subject] = asked_by
        return is_new

    async def _lift(self, kind: StandingKind, subject: str) -> bool:
        # First in memory: an order that is being lifted must not be stored again meanwhile.
        asked_by = self._orders.pop((kind, subject), None)
        try:
            return await self._store.lift_order(kind, subject) or asked_by is not None
        except BaseException:
            if asked_by is not None:
                self._orders[kind, subject] = asked_by
            raise

    async def _execute(self, command: Command) -> None:
        started = self._clock.monotonic()
        try:
            reply = await self._reply(command)
            await self._store.answer(command, reply)
            event = CommandAnswered(
                id=command.id,
                kind=command.kind.value,
                asked_by=command.asked_by,
                state=reply.state.value,
                answer=reply.answer,
                seconds=round(self._clock.monotonic() - started, 3),
            )
            self._bus.emit(event)
        except Exception as error:
            self._report(error)
        finally:
            self._free += 1

    async def _reply(self, command: Command) -> Reply:
        try:
            async with asyncio.timeout(DONE_WITHIN_SECONDS), self._locks[self._source_of(command)]:
                answer = await self._actions[command.kind](command)
                return Reply(state=CommandState.DONE, answer=answer)
        except _Refused as refused:
            return Reply(state=CommandState.REFUSED, answer=refused.sentence, refusal=refused.refusal)
        except TimeoutError:
            return _failed(f"Timed out after {DONE_WITHIN_SECONDS:.0f} s. Check the status before retrying.")
        except LongstopError as error:
            return _failed(f"Command failed: {error}.")
        except Exception as error:  # a bug in one command must stop neither the others nor polling
            failure = failure_of(error, f"command {command.kind}")
            self._bus.emit(failure)
            if isinstance(failure, PollPostponed):
                return _failed(f"Command failed: {ResourcesExhausted(failure.resource)}.")
            return _failed("Internal error; see task.failed in the log.")

    def _source_of(self, command: Command) -> str:
        """Return the source that a command concerns; empty for all sources."""
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
        if (watch := scheduler.find(ref.source_id)) is not None:
            paused = " It is paused; resume it to continue." if watch.record.is_on_hold else ""
            return f"{ref} is already watched, as match {watch.state.row.match_id}.{paused}"
        if scheduler.is_paused:
            raise _Refused(Refusal.CONFLICT, f"{ref.source} is paused: resume it first.")
        if (low := self._memory_check.shortage()) is not None:
            raise _Refused(Refusal.MEMORY, f"{low}.")
        warning = await _first_poll(scheduler, ref)
        await self._lift(StandingKind.UNWATCHED, str(ref))
        watch = await scheduler.watch(ref.source_id)
        if watch is None:
            raise _Refused(Refusal.CONFLICT, f"{ref} is finished and archived; it cannot be watched.")
        return f"Watching {ref} as match {watch.state.row.match_id}.{warning}"

    def _page(self, url: str) -> MatchRef:
        """Return the match that a URL shows."""
        for source, scheduler in self._schedulers.items():
            with mapping_errors(Exception, f"{source}: match_of() failed"):
                source_id = scheduler.client.source.match_of(url)
            if source_id is not None:
                return MatchRef(source, source_id)
        known = "; ".join(f"{name} ({', '.join(each.client.source.sites)})" for name, each in self._schedulers.items())
        what = f"This URL of {host_of(url)[:100]}" if host_of(url) else "This"
        raise _Refused(
            Refusal.NOT_KNOWN,
            f"{what} is not a supported match URL. Give the URL of a match's page. Supported sites: {known}.",
        )

    async def _unwatch(self, command: Command) -> str:
        ref, _ = self._match(command)
        await self._put(StandingKind.UNWATCHED, str(ref), command.asked_by)
        # A match that is watched again later should not start paused.
        await self._lift(StandingKind.PAUSED_MATCH, str(ref))
        unwatched = [each.unwatch(ref) for each in self._schedulers.values()]
        return f"Stopped watching {ref}." if any(unwatched) else f"{ref} was not watched, and will be ignored."

    async def _pause_match(self, command: Command) -> str:
        ref, _ = self._match(command)
        watch = self._watched(ref)
        is_new = await self._put(StandingKind.PAUSED_MATCH, str(ref), command.asked_by)
        for each in self._schedulers.values():
            each.pause(ref)
        await watch.store_pause()
        return _paused(str(ref), is_new)

    async def _resume_match(self, command: Command) -> str:
        ref, scheduler = self._match(command)
        watch = self._watched(ref)
        if scheduler.is_paused:
            raise _Refused(Refusal.CONFLICT, f"The whole source {ref.source} is paused: resume it first.")
        was_paused = await self._lift(StandingKind.PAUSED_MATCH, str(ref))
        for each in self._schedulers.values():
            each.resume(ref)
        if not was_paused and watch.record.phase is Phase.PAUSED:
            raise _Refused(
                Refusal.CONFLICT,
                f"Circuit open for {ref}: the site refused it, or it could not be parsed. It is retried automatically.",
            )
        return f"Resumed {ref}." if was_paused else f"{ref} was not paused."

    def _match(self, command: Command) -> tuple[MatchRef, Scheduler]:
        ref = MatchRef.parse(command.argument)
        return ref, self._scheduler(ref.source)

    def _watched(self, ref: MatchRef) -> FeedWatch:
        """Return a watch of the match; there is one for each of its feeds."""
        found = [watch for each in self._schedulers.values() for watch in each.watches_of(ref)]
        if not found:
            raise _Refused(Refusal.CONFLICT, f"{ref} is not watched.")
        return found[0]

    # --- sources ---------------------------------------------------------------------------------------------

    async def _pause_source(self, command: Command) -> str:
        scheduler = self._scheduler(command.argument)
        source = command.argument
        is_new = await self._put(StandingKind.PAUSED_SOURCE, source, command.asked_by)
        scheduler.pause_source()
        await scheduler.reconnect(True)
        return _paused(source, is_new)

    async def _resume_source(self, command: Command) -> str:
        scheduler = self._scheduler(command.argument)
        was_paused = await self._lift(StandingKind.PAUSED_SOURCE, command.argument)
        scheduler.resume_source()
        return f"Resumed {command.argument}." if was_paused else f"{command.argument} was not paused."

    async def _recycle(self, command: Command) -> str:
        """Restart what all sources are read with. Open circuits are probed at once: their cause may be gone."""
        active = {name: each for name, each in self._schedulers.items() if not each.is_paused}
        if not active:
            return "All sources are paused: nothing was restarted."
        was_open = []
        for source, scheduler in active.items():
            if await scheduler.retry_now():
                was_open.append(source)
            self._recycle_browsers(f"asked for by {command.asked_by}", source)
        retried = f" A circuit was open for {', '.join(was_open)}: it is tried again now." if was_open else ""
        return f"Restarted connections, browsers and polling of {', '.join(active)}.{retried}"

    def _scheduler(self, source: str) -> Scheduler:
        if source not in self._schedulers:
            known = ", ".join(self._schedulers)
            raise _Refused(Refusal.NOT_KNOWN, f"Source {source[:40]} is not enabled. Enabled sources: {known}.")
        return self._schedulers[source]

    def _report(self, error: Exception) -> None:
        """Report that commands cannot be read or stored, once until they can. Polling goes on."""
        is_news, self._failing = type(error) is not self._failing, type(error)
        if isinstance(error, StorageError):
            failure: Telemetry = RecordsFailed(records="commands", error_message=str(error))
        else:
            failure = failure_of(error, "commands")
        if is_news or isinstance(failure, PollPostponed):  # exhaustion counts as over when it is no longer reported
            self._bus.emit(failure)


class _Refused(Exception):
    """A command cannot be executed; nothing was changed."""

    def __init__(self, refusal: Refusal, sentence: str) -> None:
        super().__init__(sentence)
        self.refusal = refusal
        self.sentence = sentence


async def _first_poll(scheduler: Scheduler, ref: MatchRef) -> str:
    """Poll a match before it is watched; return a warning if that failed, or refuse a match that does not exist."""
    try:
        async with asyncio.timeout(FIRST_POLL_SECONDS):
            await scheduler.client.entry(ref.source_id)
    except PageNotFound:
        raise _Refused(Refusal.NOT_KNOWN, f"{ref.source} has no match {ref.source_id}.") from None
    except (SourceError, TimeoutError) as error:
        return f" The first poll failed ({type(error).__name__}); it is retried automatically."
    return ""


def _paused(what: str, is_new: bool) -> str:
    return f"Paused {what} until it is resumed, also across restarts." if is_new else f"{what} was already paused."


def _failed(sentence: str) -> Reply:
    return Reply(state=CommandState.FAILED, answer=sentence)
