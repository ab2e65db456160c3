"""The operations tables on SQLite: errors, audit, commands and health log, in `ops.db`.

Standing orders are stored here and not in `matches.db`, because they are settings of an operator. They may concern a
whole source, or a match that is not stored yet.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import apsw
import msgspec
from msgspec.structs import asdict

from longstop.boot import is_another, this_boot
from longstop.clock import Clock, Moment, from_iso, to_iso
from longstop.errors import UsageError
from longstop.model.command import (
    LOST,
    Command,
    CommandKind,
    CommandState,
    Refusal,
    Reply,
    StandingKind,
    StandingOrder,
    age_of,
    check_move,
    overdue,
)
from longstop.model.episode import (
    Episode,
    EpisodeChange,
    ErrorSeen,
    ErrorType,
    Resolution,
    ResolutionMethod,
    StoredError,
)
from longstop.model.recovery import Recovery, RecoveryKind, RecoveryOutcome
from longstop.storage.base import (
    BACK_WITHIN,
    COMMANDS_KEPT,
    KEEP_FOR,
    MAX_ARGUMENT_CHARACTERS,
    MAX_COMMANDS_WAITING,
    RECOVERIES_KEPT,
    RECOVERIES_KEPT_OF_THE_SAME,
    CommandRequest,
    ErrorFilter,
    HealthRow,
    Operations,
)
from longstop.storage.sqlite.connection import ReadOnlyDatabase, ReopenedDatabase, Row, moment, row, rows, transaction
from longstop.storage.sqlite.schema import Database, queries

_SQL = queries("ops/queries.sql")


def open_operations(path: Path, clock: Clock) -> Operations:
    """Return the operations tables of a file; each opens its own connection and thread on first use."""
    return Operations(
        errors=SqliteErrors(path),
        audit=SqliteAudit(path),
        commands=SqliteCommands(path, clock),
        health_log=SqliteHealthLog(path),
    )


# --- errors -----------------------------------------------------------------------------------------------------------

#: Rows kept at most.
MAX_ERRORS = 100_000


class SqliteErrors:
    """Errors: written by the scraper, read and resolved by operators. Reading creates no file."""

    def __init__(self, path: Path, max_rows: int = MAX_ERRORS) -> None:
        self._file = ReopenedDatabase(path, Database.OPS)
        self._view = ReadOnlyDatabase(path, Database.OPS)
        self._max_rows = max_rows

    async def open_episodes(self) -> list[Episode]:
        found = await self._file.run(lambda connection: rows(connection, _SQL["open_episodes"]))
        return [Episode(each["ref"], each["signature"]) for each in found]

    async def write(self, changes: Mapping[Episode, EpisodeChange]) -> None:
        written = dict(changes)

        def write(connection: apsw.Connection) -> None:
            for episode, change in written.items():
                _write_episode(connection, episode, change)

        await self._file.transact(write)

    async def resolve(self, error_id: int, now: datetime) -> bool:
        columns = {"id": error_id, "at": to_iso(now)}
        resolved = await self._file.run(lambda connection: row(connection, _SQL["resolve_error"], columns))
        return resolved is not None

    async def recent(self, wanted: ErrorFilter) -> list[StoredError]:
        bindings = {
            "match_id": wanted.match_id,
            "ref": wanted.ref,
            "open": wanted.is_open or None,
            "limit": wanted.limit,
        }
        return await self._view.rows(_SQL["errors"], bindings, _stored_error)

    async def prune(self, now: datetime) -> None:
        def prune(connection: apsw.Connection) -> None:
            connection.execute(_SQL["prune_old"], {"before": to_iso(now - KEEP_FOR)})
            connection.execute(_SQL["prune_many"], {"max_rows": self._max_rows})

        await self._file.transact(prune)

    async def aclose(self) -> None:
        await asyncio.gather(self._file.aclose(), self._view.aclose())


def _write_episode(connection: apsw.Connection, episode: Episode, change: EpisodeChange) -> None:
    names = {"ref": episode.ref, "signature": episode.signature}
    if change.error is not None:
        _write_error(connection, change.error, change)
    if change.resolution is not None:
        at, method = to_iso(change.resolution.at), change.resolution.method.value
        connection.execute(_SQL["resolve_episode"], {**names, "at": at, "method": method})


def _write_error(connection: apsw.Connection, error: ErrorSeen, change: EpisodeChange) -> None:
    columns = {
        **_error_columns(error),
        "count": change.count,
        "last_seen": to_iso(change.last_seen or error.timestamp),
        "resolved_after": to_iso(error.timestamp - BACK_WITHIN),
    }
    if row(connection, _SQL["continue_episode"], columns) is None:
        connection.execute(_SQL["open_episode"], columns)


def _error_columns(error: ErrorSeen) -> dict[str, Any]:
    return {
        "ref": error.episode.ref,
        "signature": error.episode.signature,
        "scraper_id": error.scraper_id,
        "match_id": error.match_id,
        "timestamp": to_iso(error.timestamp),
        "error_type": error.error_type.value,
        "error_class": error.error_class,
        "error_message": error.error_message,
        "stack_trace": error.stack_trace,
        "source": error.source,
        "url": error.url,
        "operation": error.operation,
        "retry_attempt": error.retry_attempt,
        "snapshot": error.snapshot,
    }


def _stored_error(row: Row) -> StoredError:
    return StoredError(
        id=row["id"],
        episode=Episode(row["ref"], row["signature"]),
        scraper_id=row["scraper_id"],
        match_id=row["match_id"],
        timestamp=from_iso(row["timestamp"]),
        error_type=ErrorType(row["error_type"]),
        error_class=row["error_class"],
        error_message=row["error_message"],
        stack_trace=row["stack_trace"],
        source=row["source"],
        url=row["url"],
        operation=row["operation"],
        retry_attempt=row["retry_attempt"],
        snapshot=row["snapshot"],
        count=row["count"],
        last_seen=from_iso(row["last_seen"]),
        resolution=_resolution(row),
    )


def _resolution(row: Row) -> Resolution | None:
    if not row["resolved"]:
        return None
    return Resolution(at=from_iso(row["resolution_time"]), method=ResolutionMethod(row["resolution_method"]))


# --- audit ------------------------------------------------------------------------------------------------------------


class SqliteAudit:
    """The audit: every process writes its entries. Reading creates no file."""

    def __init__(self, path: Path) -> None:
        self._file = ReopenedDatabase(path, Database.OPS)
        self._view = ReadOnlyDatabase(path, Database.OPS)

    async def write(self, recoveries: Iterable[Recovery]) -> None:
        written = [_recovery_columns(each) for each in recoveries]

        def write(connection: apsw.Connection) -> None:
            for columns in written:
                connection.execute(_SQL["put_recovery"], columns)
            connection.execute(_SQL["count_same_recoveries"], {"kept": RECOVERIES_KEPT_OF_THE_SAME})
            connection.execute(_SQL["prune_same_recoveries"], {"kept": RECOVERIES_KEPT_OF_THE_SAME})
            connection.execute(_SQL["prune_recoveries"], {"kept": RECOVERIES_KEPT})

        await self._file.transact(write)

    async def give_up(self, process: str, observed: str) -> None:
        columns = {"process": process, "observed": observed}
        await self._file.transact(lambda connection: connection.execute(_SQL["give_up_recoveries"], columns))

    async def recent(self, limit: int = RECOVERIES_KEPT) -> list[Recovery]:
        return await self._view.rows(_SQL["recoveries"], {"limit": limit}, _recovery)

    async def aclose(self) -> None:
        await asyncio.gather(self._file.aclose(), self._view.aclose())


def _recovery_columns(recovery: Recovery) -> dict[str, Any]:
    after = recovery.pids_after
    return {
        "id": recovery.id,
        "kind": recovery.kind.value,
        "trigger": recovery.trigger,
        "subject": recovery.subject,
        "process": recovery.process,
        "began_at": to_iso(recovery.began_at),
        "duration_seconds": recovery.duration_seconds,
        "pids_before": msgspec.json.encode(recovery.pids_before).decode(),
        "pids_after": None if after is None else msgspec.json.encode(after).decode(),
        "outcome": recovery.outcome.value,
        "observed": recovery.observed,
        "count": recovery.count,
    }


def _recovery(row: Row) -> Recovery:
    return Recovery(
        id=row["id"],
        kind=RecoveryKind(row["kind"]),
        trigger=row["trigger"],
        subject=row["subject"],
        process=row["process"],
        began_at=from_iso(row["began_at"]),
        duration_seconds=row["duration_seconds"],
        pids_before=_pids(row["pids_before"]) or (),
        pids_after=_pids(row["pids_after"]),
        outcome=RecoveryOutcome(row["outcome"]),
        observed=row["observed"],
        count=row["count"],
    )


def _pids(text: str | None) -> tuple[int, ...] | None:
    return None if text is None else msgspec.json.decode(text, type=tuple[int, ...])


# --- commands ---------------------------------------------------------------------------------------------------------


class SqliteCommands:
    """Commands. Each call is short, and at most one transaction."""

    def __init__(self, path: Path, clock: Clock, boot: Callable[[], str | None] = this_boot) -> None:
        self._file = ReopenedDatabase(path, Database.OPS)
        self._clock = clock
        self._boot = boot

    # --- the client ---

    async def place(self, request: CommandRequest) -> Command:
        if len(request.argument) > MAX_ARGUMENT_CHARACTERS:
            raise UsageError(f"the argument has more than {MAX_ARGUMENT_CHARACTERS} characters: shorten it")

        def place(connection: apsw.Connection) -> Command:
            self._settle(connection)
            [counted] = rows(connection, _SQL["count_pending_commands"])
            if counted["waiting"] >= MAX_COMMANDS_WAITING:
                raise UsageError(f"{MAX_COMMANDS_WAITING} commands are already pending: start a scraper, or wait")
            connection.execute(_SQL["prune_commands"], {"kept": COMMANDS_KEPT})
            [placed] = rows(connection, _SQL["ask_command"], self._columns(request))
            return _command(placed)

        return await self._file.transact(place)

    async def find(self, command_id: int) -> Command | None:
        def find(connection: apsw.Connection) -> Command | None:
            found = row(connection, _SQL["command"], {"id": command_id})
            if found is not None and self._overdue(found) is not None:
                with transaction(connection):
                    self._settle(connection)
                found = row(connection, _SQL["command"], {"id": command_id})
            return None if found is None else _command(found)

        return await self._file.run(find)

    # --- the scraper ---

    async def take(self, limit: int) -> list[Command]:
        def take(connection: apsw.Connection) -> list[Command]:
            # Usually nothing is pending, and reading needs no lock.
            if not rows(connection, _SQL["open_commands"]):
                return []
            with transaction(connection):
                self._settle(connection)
                pending = [each for each in rows(connection, _SQL["open_commands"]) if each["state"] == "pending"]
                taken = [row(connection, _SQL["take_command"], {"id": each["id"]}) for each in pending[:limit]]
            return [_command(each) for each in taken if each is not None]

        return await self._file.run(take)

    async def answer(self, command: Command, reply: Reply) -> None:
        check_move(CommandState.TAKEN, reply.state)
        await self._file.transact(lambda connection: self._answer(connection, command.id, CommandState.TAKEN, reply))

    async def give_up_taken(self) -> None:
        def give_up(connection: apsw.Connection) -> None:
            for each in rows(connection, _SQL["open_commands"]):
                if each["state"] == "taken":
                    self._answer(connection, each["id"], CommandState.TAKEN, LOST)

        await self._file.transact(give_up)

    # --- standing orders ---

    async def standing(self) -> list[StandingOrder]:
        found = await self._file.run(lambda connection: rows(connection, _SQL["standing_orders"]))
        return [_order(each) for each in found]

    async def put_order(self, kind: StandingKind, subject: str, asked_by: str) -> bool:
        columns = {"kind": kind.value, "subject": subject, "since": to_iso(self._clock.now()), "asked_by": asked_by}
        put = await self._file.transact(lambda connection: row(connection, _SQL["put_standing_order"], columns))
        return put is not None

    async def lift_order(self, kind: StandingKind, subject: str) -> bool:
        columns = {"kind": kind.value, "subject": subject}
        lifted = await self._file.transact(lambda connection: row(connection, _SQL["lift_standing_order"], columns))
        return lifted is not None

    async def aclose(self) -> None:
        await self._file.aclose()

    def _settle(self, connection: apsw.Connection) -> None:
        """Answer expired commands."""
        for each in rows(connection, _SQL["open_commands"]):
            reply = self._overdue(each)
            if reply is not None:
                self._answer(connection, each["id"], CommandState(each["state"]), reply)

    def _overdue(self, found: Row) -> Reply | None:
        asked = Moment(from_iso(found["asked_at"]), found["asked_monotonic"])
        is_one_boot = not is_another(found["boot"], self._boot())
        return overdue(CommandState(found["state"]), age_of(asked, Moment.of(self._clock), is_one_boot=is_one_boot))

    def _answer(self, connection: apsw.Connection, command_id: int, before: CommandState, reply: Reply) -> None:
        columns = {
            "id": command_id,
            "before": before.value,
            "state": reply.state.value,
            "refusal": reply.refusal and reply.refusal.value,
            "answer": reply.answer,
            "at": to_iso(self._clock.now()),
        }
        connection.execute(_SQL["answer_command"], columns)

    def _columns(self, request: CommandRequest) -> Row:
        return {
            "kind": request.kind.value,
            "argument": request.argument,
            "asked_by": request.asked_by,
            "asked_at": to_iso(self._clock.now()),
            "asked_monotonic": self._clock.monotonic(),
            "boot": self._boot(),
        }


class SqliteStandingOrders:
    """Reads standing orders; creates and changes no file."""

    def __init__(self, path: Path) -> None:
        self._view = ReadOnlyDatabase(path, Database.OPS)

    async def standing(self) -> list[StandingOrder]:
        return await self._view.rows(_SQL["standing_orders"], None, _order)

    async def aclose(self) -> None:
        await self._view.aclose()


def _command(found: Row) -> Command:
    return Command(
        id=found["id"],
        kind=CommandKind(found["kind"]),
        argument=found["argument"],
        asked_by=found["asked_by"],
        asked_at=from_iso(found["asked_at"]),
        state=CommandState(found["state"]),
        refusal=Refusal(found["refusal"]) if found["refusal"] else None,
        answer=found["answer"],
        answered_at=moment(found["answered_at"]),
    )


def _order(found: Row) -> StandingOrder:
    return StandingOrder(
        kind=StandingKind(found["kind"]),
        subject=found["subject"],
        since=from_iso(found["since"]),
        asked_by=found["asked_by"],
    )


# --- health log -------------------------------------------------------------------------------------------------------

#: A month of minutes of a node, and ten times as many changes of matches.
MAX_HEALTH_ROWS = 500_000


class SqliteHealthLog:
    """The health log, written by the scraper. Reading creates no file."""

    def __init__(self, path: Path, max_rows: int = MAX_HEALTH_ROWS) -> None:
        self._file = ReopenedDatabase(path, Database.OPS)
        self._view = ReadOnlyDatabase(path, Database.OPS)
        self._max_rows = max_rows

    async def write(self, rows: Iterable[HealthRow]) -> None:
        written = [asdict(each) | {"timestamp": to_iso(each.timestamp)} for each in rows]

        def write(connection: apsw.Connection) -> None:
            for columns in written:
                connection.execute(_SQL["put_health"], columns)

        await self._file.transact(write)

    async def prune(self, now: datetime) -> None:
        def prune(connection: apsw.Connection) -> None:
            connection.execute(_SQL["prune_old_health"], {"before": to_iso(now - KEEP_FOR)})
            connection.execute(_SQL["prune_many_health"], {"max_rows": self._max_rows})

        await self._file.transact(prune)

    async def recent(
        self, *, match_id: int | None = None, ref: str | None = None, since: datetime | None = None, limit: int = 100
    ) -> list[HealthRow]:
        bindings = {"match_id": match_id, "ref": ref, "since": to_iso(since) if since else None, "limit": limit}
        return await self._view.rows(_SQL["health_log"], bindings, _health_row)

    async def aclose(self) -> None:
        await asyncio.gather(self._file.aclose(), self._view.aclose())


def _health_row(row: Row) -> HealthRow:
    columns = {name: row[name] for name in HealthRow.__struct_fields__}
    return HealthRow(**columns | {"timestamp": from_iso(row["timestamp"])})
