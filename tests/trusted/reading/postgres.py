"""A PostgreSQL server for the tests, started from Debian's packages."""

import os
import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest

from leastnoise import DatabaseTable
from waiting import HANGS


def _programs():
    folders = [Path(path).parent for name in ("initdb", "pg_ctl") if (path := shutil.which(name))]
    return [*sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True), *folders]


@contextmanager
def server():
    """Yield the URL of a server with an empty database, or skip the test."""
    programs = next(
        (
            folder
            for folder in _programs()
            if (folder / "initdb").exists() and (folder / "pg_ctl").exists()
        ),
        None,
    )
    if programs is None:
        pytest.skip("PostgreSQL is not installed; apt-get install postgresql")
    folder = Path(tempfile.mkdtemp(prefix="leastnoise-postgres-", dir="/tmp"))
    # The server refuses to run as root.
    user = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
    if user:
        shutil.chown(folder, "postgres")

    def run(*command):
        subprocess.run(
            [*user, *map(str, command)],
            check=True,
            cwd=folder,
            stdout=subprocess.DEVNULL,
            timeout=HANGS,
        )

    try:
        # If possible, the database has a locale that does not sort and compare by bytes.
        run(
            programs / "initdb",
            "-D",
            folder / "data",
            "-A",
            "trust",
            "-U",
            "tester",
            "-E",
            "UTF8",
            "--locale=C.UTF-8",
            "--no-sync",
        )
        options = (
            f"-c listen_addresses= -c unix_socket_directories={folder} -c fsync=off -c "
            "log_statement=all"
        )
        run(
            programs / "pg_ctl",
            "-D",
            folder / "data",
            "-o",
            options,
            "-l",
            folder / "log",
            "-w",
            "start",
        )
        try:
            yield f"postgresql://tester:PASSWORDMARK@/postgres?host={folder}"
        finally:
            run(programs / "pg_ctl", "-D", folder / "data", "-m", "immediate", "-w", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def fill(url, sentences):
    """Execute SQL statements."""
    import adbc_driver_postgresql.dbapi as driver

    with driver.connect(url, autocommit=True) as connection, connection.cursor() as cursor:
        for sentence in sentences:
            cursor.execute(sentence)


def table(url, name, columns, rows):
    """Create a table from column types and rows of SQL literals."""
    listed = ", ".join(f"{column} {kind}" for column, kind in columns.items())
    lines = ", ".join(f"({', '.join(row)})" for row in rows)
    fill(
        url,
        [
            f"DROP TABLE IF EXISTS {name}",
            f"CREATE TABLE {name} ({listed})",
            f"INSERT INTO {name} VALUES {lines}",
        ],
    )
    return DatabaseTable(name, "env:VISITS_URL")
