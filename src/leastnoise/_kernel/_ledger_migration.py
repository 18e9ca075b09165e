"""Ledgers of earlier formats become ledgers of this one: the format 1 held times of day, the format 2 releases alone."""

import json
import sqlite3
from pathlib import Path
from typing import cast

from leastnoise._check import LedgerError, one_of
from leastnoise._kernel import _ledger_file as file
from leastnoise._kernel._ledger_file import digest_of

_ENTRIES = """SELECT number, id, charge, cost, declared, plan_digest, output, description, reserved_at, digest, state
    FROM old_entry ORDER BY number"""


def migrate(path: Path, timeout: float) -> None:
    """Bring a ledger to the format of this version, in one transaction; another process may do the same at the same time.

    Raises:
        LedgerError: the file is damaged, or cannot be written.

    Guarantees: all entries keep their number, identification and charge, those of the format 2 their digests too; the times of day of the
        format 1 are gone from the file's free pages too.
    """
    with file.connected(path, timeout) as connection:
        if _old(connection) == 0:
            return
    with file.writing(path, timeout) as connection:
        version = _old(connection)
        try:
            if version == 1:
                _copy(connection)
            elif version == 2:  # what is added has defaults, which are in no digest
                for column in file.ADDED:
                    connection.execute(f"ALTER TABLE entry ADD COLUMN {column}")
                connection.execute(f"PRAGMA user_version = {file.SCHEMA}")
        except (ValueError, TypeError):
            raise LedgerError(file.damaged(path, "an entry is unreadable")) from None
        file.content_of(connection, path)
    with file.connected(path, timeout) as connection:
        connection.execute("VACUUM")


def _old(connection: sqlite3.Connection) -> int:
    """The format of a ledger that an earlier version wrote; 0 for any other file."""
    application, version = (connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version"))
    return version if application == file.APPLICATION and version in (1, 2) else 0


def _copy(connection: sqlite3.Connection) -> None:
    for table in ("dataset", "entry"):
        connection.execute(f"ALTER TABLE {table} RENAME TO old_{table}")
    ((*head, digest),) = connection.execute("SELECT name, privacy, created_at, digest FROM old_dataset").fetchall()
    if digest != digest_of(head):
        raise ValueError
    file.make_tables(connection, head[0], json.dumps(json.loads(head[1])))
    ((last,),) = connection.execute("SELECT digest FROM head").fetchall()
    for place, (*row, digest, state) in enumerate(connection.execute(_ENTRIES).fetchall(), 1):
        if digest != digest_of(row) or row[0] != place:
            raise ValueError
        kept = cast(file.State, one_of("state", state, ["reserved", "sealed", "absent"]))
        last = file.append(connection, (*row[:8], row[8][:10]), last, kept)
    for table in ("dataset", "entry"):
        connection.execute(f"DROP TABLE old_{table}")
