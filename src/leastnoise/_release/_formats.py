"""Formats of answers beside the files that the database writes: one module and one line each, and what they are refused for."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from leastnoise._check import refuse
from leastnoise._release import _excel, _sdmx
from leastnoise._workload import Product

if TYPE_CHECKING:
    from leastnoise._release._release import Release
    from leastnoise._release._tables import Table

MOST_TABLES = 200
MOST_ANSWERS = 1_000_000


class Writer(Protocol):
    """Takes the tables of a release one by one."""

    def add(self, table: "Table", stem: str) -> None:
        """Write a table; ``stem`` is where its other files are, below the directory."""

    def close(self) -> None:
        """Finish, after all tables."""


@dataclass(frozen=True, slots=True)
class Format:
    """A format of answers."""

    check: Callable[[], None]
    open: Callable[["Release", Path], Writer]


WRITERS: Mapping[str, Format] = {"xlsx": Format(_excel.check, _excel.Workbook), "sdmx": Format(_sdmx.check, _sdmx.Messages)}


def check_formats(formats: Sequence[str], tables: Sequence[Product]) -> None:
    """Refuse formats that cannot hold a release, before anything is paid."""
    for name in formats:
        if name in WRITERS:
            WRITERS[name].check()
            advice = "Leave that format out, or ask for less."
            if not len(tables) <= MOST_TABLES:
                raise refuse(f"a release in the format {name!r}", f"{len(tables)} tables", f"of at most {MOST_TABLES} tables", advice)
            answers = sum(product.rows for product in tables)
            if not answers <= MOST_ANSWERS:
                raise refuse(f"a release in the format {name!r}", f"{answers} answers", f"of at most {MOST_ANSWERS} answers", advice)
