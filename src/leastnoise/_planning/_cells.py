"""Which attributes the cells are of in which a unit has few rows, and what is refused: docs/decisions/privacy.md."""

import math
from collections.abc import Sequence
from dataclasses import replace

from leastnoise._accounting import Privacy
from leastnoise._check import InputError, refuse
from leastnoise._domain import PerCell
from leastnoise._planning._targets import Least
from leastnoise._workload import Workload

_MOST_DIGITS = 10


def per_cell(workload: Workload, rows: int, attributes: Sequence[str] | str | None) -> PerCell:
    """The bound on a unit's rows in a cell; of the attributes that every table has, if none are named, so that all tables gain by it."""
    if attributes is not None:
        return PerCell(rows, attributes)
    shared = set.intersection(*({*product.attributes} for product in workload))
    if not shared:
        raise InputError(
            'max_per_cell must say of which attributes a cell is, such as cell = ["month"], where the tables have no attribute in common: '
            "only tables with all attributes of the cell have less noise by it, and rows are cut for all of them."
        )
    return PerCell(rows, [name for name in workload.domain.names if name in shared])


def check_cell(workload: Workload, privacy: Privacy | Least) -> None:
    """Refuse a bound on the rows in a cell from which no table can gain, or of more rows than the cells can hold."""
    bound = privacy.max_per_cell
    if bound is None:
        return
    cells = bound.rows * math.prod(workload.domain.kind(name).size for name in bound.attributes)
    names = ", ".join(bound.attributes)
    if not any({*bound.attributes} <= {*product.attributes} for product in workload):
        advice = "Tables without all its attributes have the noise of max_rows, so that rows would be cut for nothing; leave it out."
        raise refuse("the cell of max_per_cell", names, "attributes of one table that is asked for", advice)
    if not privacy.max_rows <= cells:
        raise refuse("max_rows", privacy.max_rows, f"at most {cells}: {bound.rows} in each cell of {names}", "More cannot be kept.")


def with_max_rows(privacy: Privacy | Least, size: str) -> Privacy | Least:
    """The same where another number of rows of a unit count; no more of them in a cell than in all."""
    if privacy.unit_column is None:
        raise InputError("--max-rows is for units of several rows; got a spec in which every row is a unit. Name the unit's column in it.")
    if not size.isascii() or not size.isdigit() or len(size) > _MOST_DIGITS:
        raise refuse("max_rows", size, "a whole number of at least 1")
    rows, bound = int(size), privacy.max_per_cell
    cell = None if bound is None else PerCell(max(1, min(bound.rows, rows)), bound.attributes)
    return replace(privacy, max_rows=rows, max_per_cell=cell)


def protected(privacy: Privacy) -> Privacy:
    """The same without a bound on the rows in a cell, which is about cells of the table that is asked for."""
    return Privacy(privacy.budget, privacy.neighbours, privacy.unit_column, privacy.max_rows)
