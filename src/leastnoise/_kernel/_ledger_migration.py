"""Ledgers of the format 1, which held times of day, become ledgers of the format 2, which hold days."""

import json
import sqlite3
from pathlib import Path
from typing import cast

from leastnoise._check import LedgerError, one_of
from leastnoise._kernel._ledger_file import State, append, connected, damaged, digest_of, make_tables, writing

_ENTRIES = """SELECT number, id, charge, cost, declared, plan_digest, output, description, reserved_at, digest, state
    FROM old_entry ORDER BY number"""


def migrate(path: Path, timeout: float) -> None:
    """Bring a ledger to the format of this version, in one transaction; another process may do the same at the same time.

    Raises:
        LedgerError: the file is damaged, or cannot be written.

    Guarantees: all entries keep their number, identification and charge; the times of day are gone from the file's free pages too.
    """
    with writing(path, timeout) as connection:
        if connection.execute("PRAGMA user_version").fetchone()[0] != 1:
            return
        if connection.execute("PRAGMA integrity_check(1)").fetchall() != [("ok",)]:
            raise LedgerError(damaged(path, "its pages do not fit together"))
        for table in ("dataset", "entry"):
            connection.execute(f"ALTER TABLE {table} RENAME TO old_{table}")
        try:
            _copy(connection)
        except (ValueError, TypeError):
            raise LedgerError(damaged(path, "an entry is unreadable")) from None
        for table in ("dataset", "entry"):
            connection.execute(f"DROP TABLE old_{table}")
    with connected(path, timeout) as connection:
        connection.execute("VACUUM")


def _copy(connection: sqlite3.Connection) -> None:
    ((*head, digest),) = connection.execute("SELECT name, privacy, created_at, digest FROM old_dataset").fetchall()
    if digest != digest_of(head):
        raise ValueError
    make_tables(connection, head[0], json.dumps(json.loads(head[1])))
    ((last,),) = connection.execute("SELECT digest FROM head").fetchall()
    for place, (*row, digest, state) in enumerate(connection.execute(_ENTRIES).fetchall(), 1):
        if digest != digest_of(row) or row[0] != place:
            raise ValueError
        kept = cast(State, one_of("state", state, ["reserved", "sealed", "absent"]))
        last = append(connection, (*row[:8], row[8][:10]), last, kept, "")
