"""The operations tables on SQLite: errors, audit, commands, health log and pauses, in `ops.db`.

Standing orders are stored here and not in `matches.db`, because they are settings of an operator. They may concern a
whole source, or a match that is not stored yet.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from functools import partial
from hashlib import sha256
from pathlib import Path

import apsw
import msgspec

from longstop.clock import Clock, Moment, from_iso, iso_or_none, this_boot, to_iso
from longstop.errors import StoreDamaged, UsageError
from longstop.model.command_and_standing_order import (
    LOST,
    Command,
    CommandKind,
    CommandState,
    Reply,
    StandingKind,
    StandingOrder,
    age_of,
    check_move,
    overdue,
)
from longstop.model.episode import Episode, EpisodeChange, ErrorSeen, StoredError
from longstop.model.match import MatchRef
from longstop.model.recovery import Recovery
from longstop.model.request_pause import RequestPause
from longstop.storage.base import (
    BACK_WITHIN,
    COMMANDS_KEPT,
    KEEP_FOR,
    MAX_ARGUMENT_CHARACTERS,
    MAX_COMMANDS_WAITING,
    MAX_ERRORS,
    MAX_HEALTH_ROWS,
    RECOVERIES_KEPT,
    RECOVERIES_KEPT_OF_THE_SAME,
    ErrorFilter,
    HealthRow,
    Operations,
)
from longstop.storage.sqlite.connection import (
    ReadOnlyDatabase,
    ReopenedDatabase,
    Row,
    check_readable,
    columns_of,
    first_or_none,
    records,
    row,
    rows,
    to_record,
)
from longstop.storage.sqlite.load_sql_and_migrate import Database, queries, transaction

_SQL = queries("ops/queries.sql")
#: The migration that creates the table of standing orders.
_ORDERS_SINCE = 3


def open_operations(path: Path, clock: Clock) -> Operations:
    """Return the operations tables of a file; each opens its own connection and thread on first use."""
    return Operations(
        errors=SqliteErrors(path),
        audit=SqliteAudit(path),
        commands=SqliteCommands(path, clock),
        health_log=SqliteHealthLog(path),
        pauses=SqlitePauses(path),
    )


class _OpsTable:
    """One of the operations tables. Reading creates no file."""

    def __init__(self, path: Path) -> None:
        self._file = ReopenedDatabase(path, Database.OPS)
        self._view = ReadOnlyDatabase(path, Database.OPS)

    async def aclose(self) -> None:
        await asyncio.gather(self._file.aclose(), self._view.aclose())

    async def _prune(self, old: str, many: str, now: datetime, max_rows: int) -> None:
        def prune(connection: apsw.Connection) -> None:
            connection.execute(_SQL[old], {"before": to_iso(now - KEEP_FOR)})
            connection.execute(_SQL[many], {"max_rows": max_rows})

        await self._file.transact(prune)


# --- errors -----------------------------------------------------------------------------------------------------------


class SqliteErrors(_OpsTable):
    """Errors: written by the scraper, read and resolved by operators."""

    async def open_episodes(self) -> list[Episode]:
        decode = partial(to_record, Episode)
        return await self._file.run(lambda connection: records(connection, _SQL["open_episodes"], None, decode))

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
        bindings = columns_of(wanted) | {"open": wanted.is_open or None}
        return await self._view.rows(_SQL["errors"], bindings, _stored_error)

    async def prune(self, now: datetime, max_rows: int = MAX_ERRORS) -> None:
        await self._prune("prune_old", "prune_many", now, max_rows)


def _write_episode(connection: apsw.Connection, episode: Episode, change: EpisodeChange) -> None:
    if change.error is not None:
        _write_error(connection, change.error, change)
    if change.resolution is not None:
        connection.execute(_SQL["resolve_episode"], columns_of(episode) | columns_of(change.resolution))


def _write_error(connection: apsw.Connection, error: ErrorSeen, change: EpisodeChange) -> None:
    columns = {
        **columns_of(error),
        **columns_of(error.episode),
        "count": change.count,
        "last_seen": to_iso(change.last_seen or error.timestamp),
        "resolved_after": to_iso(error.timestamp - BACK_WITHIN),
    }
    if row(connection, _SQL["continue_episode"], columns) is None:
        connection.execute(_SQL["open_episode"], columns)


def _stored_error(row: Row) -> StoredError:
    episode = {"ref": row["ref"], "signature": row["signature"]}
    resolution = {"at": row["resolution_time"], "method": row["resolution_method"]} if row["resolved"] else None
    return to_record(StoredError, row | {"episode": episode, "resolution": resolution})


# --- audit ------------------------------------------------------------------------------------------------------------


class SqliteAudit(_OpsTable):
    """The audit: every process writes its entries."""

    async def write(self, recoveries: Iterable[Recovery]) -> None:
        written = [_recovery_columns(each) for each in recoveries]

        def write(connection: apsw.Connection) -> None:
            connection.executemany(_SQL["put_recovery"], written)
            connection.execute(_SQL["count_same_recoveries"], {"kept": RECOVERIES_KEPT_OF_THE_SAME})
            connection.execute(_SQL["prune_same_recoveries"], {"kept": RECOVERIES_KEPT_OF_THE_SAME})
            connection.execute(_SQL["prune_recoveries"], {"kept": RECOVERIES_KEPT})

        await self._file.transact(write)

    async def give_up(self, process: str, observed: str) -> None:
        columns = {"process": process, "observed": observed}
        await self._file.transact(lambda connection: connection.execute(_SQL["give_up_recoveries"], columns))

    async def recent(self, limit: int = RECOVERIES_KEPT) -> list[Recovery]:
        return await self._view.rows(_SQL["recoveries"], {"limit": limit}, _recovery)


def _recovery_columns(recovery: Recovery) -> Row:
    pids = {"pids_before": recovery.pids_before, "pids_after": recovery.pids_after}
    encoded = {name: each if each is None else msgspec.json.encode(each).decode() for name, each in pids.items()}
    return columns_of(recovery) | encoded


def _recovery(row: Row) -> Recovery:
    pids = {name: row[name] and msgspec.json.decode(row[name]) for name in ("pids_before", "pids_after")}
    return to_record(Recovery, row | pids)


# --- commands ---------------------------------------------------------------------------------------------------------


class SqliteCommands(_OpsTable):
    """Commands and standing orders. Each call is short, and at most one transaction."""

    def __init__(self, path: Path, clock: Clock, boot: Callable[[], str | None] = this_boot) -> None:
        super().__init__(path)
        self._clock = clock
        self._boot = boot

    # --- the client ---

    async def place(self, kind: CommandKind, argument: str, asked_by: str) -> Command:
        if len(argument) > MAX_ARGUMENT_CHARACTERS:
            raise UsageError(f"the argument has more than {MAX_ARGUMENT_CHARACTERS} characters: shorten it")
        now = Moment.of(self._clock)
        asked = {"asked_by": asked_by, "asked_at": to_iso(now.wall), "asked_monotonic": now.monotonic}
        columns = {"kind": kind, "argument": argument, **asked, "boot": self._boot()}

        def place(connection: apsw.Connection) -> Command:
            self._settle(connection)
            [counted] = rows(connection, _SQL["count_pending_commands"])
            if counted["waiting"] >= MAX_COMMANDS_WAITING:
                raise UsageError(f"{MAX_COMMANDS_WAITING} commands are already pending: start a scraper, or wait")
            connection.execute(_SQL["prune_commands"], {"kept": COMMANDS_KEPT})
            [placed] = records(connection, _SQL["ask_command"], columns, _command)
            return placed

        return await self._file.transact(place)

    async def find(self, command_id: int) -> Command | None:
        def find(connection: apsw.Connection) -> Command | None:
            wanted = {"id": command_id}
            if any(records(connection, _SQL["command"], wanted, self._overdue)):
                with transaction(connection):
                    self._settle(connection)
            return first_or_none(records(connection, _SQL["command"], wanted, _command))

        return await self._file.run(find)

    # --- the scraper ---

    async def take(self, limit: int) -> list[Command]:
        def take(connection: apsw.Connection) -> list[Command]:
            # Usually nothing is pending, and reading needs no lock.
            if not rows(connection, _SQL["open_commands"]):
                return []
            with transaction(connection):
                self._settle(connection)
                pending = [each["id"] for each in rows(connection, _SQL["open_commands"]) if each["state"] == "pending"]
                ids = [{"id": each} for each in pending[:limit]]
                return [each for one in ids for each in records(connection, _SQL["take_command"], one, _command)]

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
        return await self._view.rows(_SQL["standing_orders"], None, _order)

    async def protect_orders(self) -> None:
        """Add the checksum to orders of an earlier version."""

        def protect(connection: apsw.Connection) -> None:
            found = records(connection, _SQL["unprotected_orders"], None, _order)
            if not found:
                return
            with transaction(connection):
                for order in found:
                    columns = {"kind": order.kind, "subject": order.subject, "checksum": _checksum(order)}
                    connection.execute(_SQL["protect_order"], columns)
            connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)

        await self._file.run(protect)

    async def put_order(self, kind: StandingKind, subject: str, asked_by: str) -> bool:
        order = StandingOrder(kind=kind, subject=subject, since=self._clock.now(), asked_by=asked_by)
        return await self._change_order("put_standing_order", columns_of(order) | {"checksum": _checksum(order)})

    async def lift_order(self, kind: StandingKind, subject: str) -> bool:
        return await self._change_order("lift_standing_order", {"kind": kind, "subject": subject})

    async def _change_order(self, statement: str, columns: Row) -> bool:
        """Put or lift an order; return whether that changed anything."""

        def change(connection: apsw.Connection) -> bool:
            with transaction(connection):
                is_changed = row(connection, _SQL[statement], columns) is not None
            # Into the file itself: an order must not depend on the log.
            connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
            return is_changed

        return await self._file.run(change)

    def _settle(self, connection: apsw.Connection) -> None:
        """Answer expired commands."""

        def settle(found: Row) -> None:
            if (reply := self._overdue(found)) is not None:
                self._answer(connection, found["id"], CommandState(found["state"]), reply)

        records(connection, _SQL["open_commands"], None, settle)

    def _overdue(self, found: Row) -> Reply | None:
        asked = Moment(from_iso(found["asked_at"]), found["asked_monotonic"])
        # An unknown boot id may be the same.
        is_one_boot = len({found["boot"], self._boot()} - {None}) <= 1
        return overdue(CommandState(found["state"]), age_of(asked, Moment.of(self._clock), is_one_boot=is_one_boot))

    def _answer(self, connection: apsw.Connection, command_id: int, before: CommandState, reply: Reply) -> None:
        given = {"id": command_id, "before": before, "at": to_iso(self._clock.now())}
        connection.execute(_SQL["answer_command"], columns_of(reply) | given)


_command = partial(to_record, Command)


def check_operations(path: Path) -> list[StandingOrder]:
    """Return the orders in force; raise if the file, or an order, cannot be read. Before the first start it is missing.

    They are read in a file of an earlier version, too.
    """
    orders: list[StandingOrder] = []
    check_readable(
        path,
        Database.OPS,
        lambda connection: orders.extend(records(connection, _SQL["standing_orders"], None, _order)),
        rows_since=_ORDERS_SINCE,
    )
    return orders


def _order(row: Row) -> StandingOrder:
    """Return an order whose every character is the operator's: another subject would lift the pause."""
    order = to_record(StandingOrder, row)
    if row.get("checksum") not in (None, _checksum(order)):  # orders of an earlier version have none
        raise StoreDamaged("the order does not have its checksum")
    if order.kind is not StandingKind.PAUSED_SOURCE:
        MatchRef.parse(order.subject)
    return order


def _checksum(order: StandingOrder) -> str:
    return sha256(f"{order.kind.value} {order.subject}".encode()).hexdigest()


# --- health log -------------------------------------------------------------------------------------------------------


class SqliteHealthLog(_OpsTable):
    """The health log, written by the scraper."""

    async def write(self, rows: Iterable[HealthRow]) -> None:
        written = [columns_of(each) for each in rows]
        await self._file.transact(lambda connection: connection.executemany(_SQL["put_health"], written))

    async def prune(self, now: datetime, max_rows: int = MAX_HEALTH_ROWS) -> None:
        await self._prune("prune_old_health", "prune_many_health", now, max_rows)

    async def recent(
        self, *, match_id: int | None = None, ref: str | None = None, since: datetime | None = None, limit: int = 100
    ) -> list[HealthRow]:
        bindings = {"match_id": match_id, "ref": ref, "since": iso_or_none(since), "limit": limit}
        return await self._view.rows(_SQL["health_log"], bindings, partial(to_record, HealthRow))


# --- pauses of requests -----------------------------------------------------------------------------------------------


class SqlitePauses(_OpsTable):
    """The pauses. They are few, so that all are written at once: that also removes a damaged row."""

    async def read(self) -> list[RequestPause]:
        # With the writer, which migrates the file of an older version.
        decode = partial(to_record, RequestPause)
        return await self._file.run(lambda connection: records(connection, _SQL["request_pauses"], None, decode))

    async def replace(self, pauses: Iterable[RequestPause]) -> None:
        written = [columns_of(each) for each in pauses]

        def replace(connection: apsw.Connection) -> None:
            connection.execute(_SQL["clear_request_pauses"])
            connection.executemany(_SQL["put_request_pause"], written)

        await self._file.transact(replace)
