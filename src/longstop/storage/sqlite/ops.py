"""The operations tables on SQLite: errors, audit, commands and health log, in `ops.db`.

Standing orders are beside the commands and not in `matches.db`: that file says what a site shows and where a match
stands in our care, while these say what a person wants, also of a match that is not stored yet and of a whole source.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from threading import Lock
from typing import Any

import apsw
import msgspec
from msgspec import Struct
from msgspec.structs import asdict

from longstop.boot import is_another, this_boot
from longstop.clock import Clock, from_iso, to_iso
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
from longstop.storage.sqlite.connection import Database, Row, moment, queries, row, rows
from longstop.storage.sqlite.files import ReadOnlyDatabase, ReopenedDatabase

_SQL = queries("ops/queries.sql")


# --- errors -----------------------------------------------------------------------------------------------------------

#: Resolved errors are kept for this long after they were last seen, the health log from its rows' own time (NFR-017).
KEEP_FOR = timedelta(days=30)
#: However often a site changes its mind, this many rows are enough.
MAX_ERRORS = 100_000
#: An error that is back so soon was never over: a match that fails every other time makes one row, not thousands.
BACK_WITHIN = timedelta(seconds=60)


class ErrorFilter(Struct, frozen=True, kw_only=True):
    """Which errors are wanted; what is `None` asks for all."""

    match_id: int | None = None
    ref: str | None = None
    is_open: bool = False
    limit: int = 20


class ErrorWriter:
    """Writes errors; the file is opened when it is first needed, and again after every failure."""

    def __init__(self, path: Path, max_rows: int = MAX_ERRORS) -> None:
        self._file = ReopenedDatabase(path, Database.OPS)
        self._max_rows = max_rows

    @property
    def is_open(self) -> bool:
        return self._file.is_open

    def open_episodes(self) -> list[Episode]:
        """Return what is unresolved."""
        with self._file.connection() as connection:
            return [Episode(each["ref"], each["signature"]) for each in rows(connection, _SQL["open_episodes"])]

    def write(self, changes: Mapping[Episode, EpisodeChange]) -> None:
        """Write all changes or none."""
        with self._file.transaction() as connection:
            for episode, change in changes.items():
                _write_episode(connection, episode, change)

    def resolve(self, error_id: int, now: datetime) -> bool:
        """Mark an error as dealt with; return whether it was open."""
        with self._file.connection() as connection:
            return row(connection, _SQL["resolve_error"], {"id": error_id, "at": to_iso(now)}) is not None

    def prune(self, now: datetime) -> None:
        """Let go of what is old, and of what is too much."""
        with self._file.transaction() as connection:
            connection.execute(_SQL["prune_old"], {"before": to_iso(now - KEEP_FOR)})
            connection.execute(_SQL["prune_many"], {"max_rows": self._max_rows})

    def close(self) -> None:
        self._file.close()


class ErrorReader:
    """Reads errors while a scraper writes them, and when none runs."""

    def __init__(self, path: Path) -> None:
        self._file = ReadOnlyDatabase(path, Database.OPS)

    def errors(self, wanted: ErrorFilter) -> list[StoredError]:
        bindings = {
            "match_id": wanted.match_id,
            "ref": wanted.ref,
            "open": wanted.is_open or None,
            "limit": wanted.limit,
        }
        return [_stored_error(each) for each in self._file.rows(_SQL["errors"], bindings)]

    def close(self) -> None:
        self._file.close()


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


# --- audit ---

#: So many are kept: of every kind the newest, so that a storm of one does not push out the others.
RECOVERIES_KEPT = 100
#: Of the same kind and subject, so many; the last of them counts the older ones.
RECOVERIES_KEPT_OF_THE_SAME = 10


class RecoveryWriter:
    """Writes entries; one of the same id is written over."""

    def __init__(self, path: Path) -> None:
        self._file = ReopenedDatabase(path, Database.OPS)

    def write(self, recoveries: Iterable[Recovery]) -> None:
        """Write all or none, and let go of what is too much."""
        with self._file.transaction() as connection:
            for recovery in recoveries:
                connection.execute(_SQL["put_recovery"], _recovery_columns(recovery))
            connection.execute(_SQL["count_same_recoveries"], {"kept": RECOVERIES_KEPT_OF_THE_SAME})
            connection.execute(_SQL["prune_same_recoveries"], {"kept": RECOVERIES_KEPT_OF_THE_SAME})
            connection.execute(_SQL["prune_recoveries"], {"kept": RECOVERIES_KEPT})

    def give_up(self, process: str, observed: str) -> None:
        """Close what a process has begun and not seen through; for its next life, before that writes anything."""
        with self._file.transaction() as connection:
            connection.execute(_SQL["give_up_recoveries"], {"process": process, "observed": observed})

    def close(self) -> None:
        self._file.close()


class RecoveryReader:
    """Reads entries while others write them, and when nothing runs."""

    def __init__(self, path: Path) -> None:
        self._file = ReadOnlyDatabase(path, Database.OPS)

    def recoveries(self, limit: int = RECOVERIES_KEPT) -> list[Recovery]:
        """Return the newest first."""
        return [_recovery(each) for each in self._file.rows(_SQL["recoveries"], {"limit": limit})]

    def close(self) -> None:
        self._file.close()


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


# --- commands ---

#: Answered commands that are kept, the newest.
COMMANDS_KEPT = 1_000
#: More than these do not wait: whoever sends a thousand has a bug, or no scraper.
MAX_COMMANDS_WAITING = 100
#: Longer than any address of a match.
MAX_ARGUMENT_CHARACTERS = 2_000


class Question(Struct, frozen=True, kw_only=True):
    """What somebody asks for."""

    kind: CommandKind
    argument: str = ""
    asked_by: str


class CommandBook:
    """The list of commands. Safe to share between threads; each call is short, and one transaction."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self._file = ReopenedDatabase(path, Database.OPS)
        self._clock = clock
        self._lock = Lock()

    # --- whoever asks ----------------------------------------------------------------------------------------

    def ask(self, question: Question) -> Command:
        """Write a command down; raise where too many wait already."""
        if len(question.argument) > MAX_ARGUMENT_CHARACTERS:
            raise UsageError(f"what is asked for has more than {MAX_ARGUMENT_CHARACTERS} characters")
        with self._lock, self._file.transaction() as connection:
            self._settle(connection)
            [counted] = rows(connection, _SQL["count_pending_commands"])
            if counted["waiting"] >= MAX_COMMANDS_WAITING:
                raise UsageError(f"{MAX_COMMANDS_WAITING} commands are waiting already: start a scraper, or wait")
            connection.execute(_SQL["prune_commands"], {"kept": COMMANDS_KEPT})
            [asked] = rows(connection, _SQL["ask_command"], self._columns(question))
            return _command(asked)

    def command(self, command_id: int) -> Command | None:
        """Return a command as it is now; one that has waited too long is answered first."""
        with self._lock, self._file.connection() as connection:
            found = row(connection, _SQL["command"], {"id": command_id})
        if found is None or self._overdue(found) is None:
            return None if found is None else _command(found)
        with self._lock, self._file.transaction() as connection:
            self._settle(connection)
            [settled] = rows(connection, _SQL["command"], {"id": command_id})
            return _command(settled)

    # --- the scraper -----------------------------------------------------------------------------------------

    def take(self, limit: int) -> list[Command]:
        """Return commands that are the caller's from now on, oldest first; nobody gets one twice."""
        with self._lock:
            with self._file.connection() as connection:
                if not rows(connection, _SQL["open_commands"]):
                    return []
            with self._file.transaction() as connection:
                self._settle(connection)
                pending = [each for each in rows(connection, _SQL["open_commands"]) if each["state"] == "pending"]
                taken = (row(connection, _SQL["take_command"], {"id": each["id"]}) for each in pending[:limit])
                return [_command(each) for each in taken if each is not None]

    def answer(self, command: Command, reply: Reply) -> None:
        """Write down what came of a command that was taken."""
        check_move(CommandState.TAKEN, reply.state)
        with self._lock, self._file.transaction() as connection:
            self._answer(connection, command.id, CommandState.TAKEN, reply)

    def give_up_taken(self) -> None:
        """Answer what a former life of the scraper has taken and not answered; nobody knows how far it came."""
        with self._lock, self._file.transaction() as connection:
            for each in rows(connection, _SQL["open_commands"]):
                if each["state"] == "taken":
                    self._answer(connection, each["id"], CommandState.TAKEN, LOST)

    # --- standing orders -------------------------------------------------------------------------------------

    def standing(self) -> list[StandingOrder]:
        with self._lock, self._file.connection() as connection:
            return [_order(each) for each in rows(connection, _SQL["standing_orders"])]

    def put_order(self, kind: StandingKind, subject: str, asked_by: str) -> bool:
        """Put an order in force; durable on return. Return whether it was not before."""
        columns = {"kind": kind.value, "subject": subject, "since": to_iso(self._clock.now()), "asked_by": asked_by}
        with self._lock, self._file.transaction() as connection:
            put = row(connection, _SQL["put_standing_order"], columns)
        return put is not None

    def lift_order(self, kind: StandingKind, subject: str) -> bool:
        """Take an order back; return whether it was in force."""
        with self._lock, self._file.transaction() as connection:
            lifted = row(connection, _SQL["lift_standing_order"], {"kind": kind.value, "subject": subject})
        return lifted is not None

    def close(self) -> None:
        with self._lock:
            self._file.close()

    def _settle(self, connection: apsw.Connection) -> None:
        for each in rows(connection, _SQL["open_commands"]):
            reply = self._overdue(each)
            if reply is not None:
                self._answer(connection, each["id"], CommandState(each["state"]), reply)

    def _overdue(self, found: Row) -> Reply | None:
        age = None if is_another(found["boot"], this_boot()) else self._clock.monotonic() - found["asked_monotonic"]
        return overdue(CommandState(found["state"]), age)

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

    def _columns(self, question: Question) -> Row:
        return {
            "kind": question.kind.value,
            "argument": question.argument,
            "asked_by": question.asked_by,
            "asked_at": to_iso(self._clock.now()),
            "asked_monotonic": self._clock.monotonic(),
            "boot": this_boot(),
        }


class StandingReader:
    """Reads the standing orders; it makes no file and changes none."""

    def __init__(self, path: Path) -> None:
        self._file = ReadOnlyDatabase(path, Database.OPS)

    def standing(self) -> list[StandingOrder]:
        return [_order(each) for each in self._file.rows(_SQL["standing_orders"])]

    def close(self) -> None:
        self._file.close()


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


# --- health log ---

#: A month of a node's minutes, and ten times as many changes of matches.
MAX_HEALTH_ROWS = 500_000


class HealthRow(Struct, frozen=True, kw_only=True):
    """How a node or a match was, at one moment. What was not measured is `None`."""

    scraper_id: str
    timestamp: datetime
    health_status: str
    #: Of a match: failures in a row. Of a node: errors of the last minute.
    error_count: int
    #: `None` for the node as a whole.
    match_id: int | None = None
    ref: str | None = None
    memory_mb: float | None = None
    cpu_percent: float | None = None
    update_latency_ms: int | None = None
    polling_interval_seconds: float | None = None
    uptime_seconds: float | None = None
    last_update_age_seconds: float | None = None


class HealthLogWriter:
    """Adds rows, and lets go of old ones."""

    def __init__(self, path: Path, max_rows: int = MAX_HEALTH_ROWS) -> None:
        self._file = ReopenedDatabase(path, Database.OPS)
        self._max_rows = max_rows

    def write(self, rows: Iterable[HealthRow]) -> None:
        """Write all or none."""
        with self._file.transaction() as connection:
            for row in rows:
                connection.execute(_SQL["put_health"], asdict(row) | {"timestamp": to_iso(row.timestamp)})

    def prune(self, now: datetime) -> None:
        with self._file.transaction() as connection:
            connection.execute(_SQL["prune_old_health"], {"before": to_iso(now - KEEP_FOR)})
            connection.execute(_SQL["prune_many_health"], {"max_rows": self._max_rows})

    def close(self) -> None:
        self._file.close()


class HealthLogReader:
    """Reads rows while a scraper writes them, and when none runs."""

    def __init__(self, path: Path, patience_ms: int | None = None) -> None:
        self._file = ReadOnlyDatabase(path, Database.OPS, patience_ms)

    def rows(
        self, *, match_id: int | None = None, ref: str | None = None, since: datetime | None = None, limit: int = 100
    ) -> list[HealthRow]:
        """Return the newest first: of one match or of everything, all or those since a moment."""
        bindings = {"match_id": match_id, "ref": ref, "since": to_iso(since) if since else None, "limit": limit}
        found = self._file.rows(_SQL["health_log"], bindings)
        names = HealthRow.__struct_fields__
        return [
            HealthRow(**({name: each[name] for name in names} | {"timestamp": from_iso(each["timestamp"])}))
            for each in found
        ]

    def close(self) -> None:
        self._file.close()
