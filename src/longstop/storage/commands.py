"""Commands on SQLite: asked for by the API and the command line, taken and answered by the scraper, in `ops.db`.

Standing orders are beside them and not in `matches.db`: that file says what a site shows and where a match stands in
our care, while these say what a person wants, also of a match that is not stored yet and of a whole source.
"""

from pathlib import Path
from threading import Lock

import apsw
from msgspec import Struct

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
from longstop.storage.migrate import Database
from longstop.storage.queries import Row, queries, row, rows
from longstop.storage.readonly import ReadOnlyDatabase
from longstop.storage.reopened import ReopenedDatabase
from longstop.storage.rows import moment

_SQL = queries("ops/queries.sql")

#: Answered commands that are kept, the newest.
KEPT = 1_000
#: More than these do not wait: whoever sends a thousand has a bug, or no scraper.
MAX_WAITING = 100
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
            if counted["waiting"] >= MAX_WAITING:
                raise UsageError(f"{MAX_WAITING} commands are waiting already: start a scraper, or wait")
            connection.execute(_SQL["prune_commands"], {"kept": KEPT})
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
