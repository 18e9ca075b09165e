"""Changes by one unit in rows, sums, counts and totals as read, against the cost of plans.

Each unit is read by the readers themselves, with rows in every set of cells, so the bounds that the
cost relies on are those that are kept.
"""

import itertools
from collections.abc import Callable
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest

from behind_the_wall import exact_answers
from leastnoise._domain import Coded, Domain, Measure, PerCellBound, UnitCount, UnitTotal
from leastnoise._trusted.accounting import ZCDP, Noise, Privacy, PureDP
from leastnoise._trusted.linop import Identity, Operator, Prefix
from leastnoise._trusted.measurements import Block, Factor, Measurements
from leastnoise._trusted.reading import ReadRequest, read
from leastnoise._trusted.table import Table
from trusted.measurements.brute import claimed

SIZES = {"t": 3, "a": 2}
COUNTS = {
    "in all": UnitCount(),
    "by t": UnitCount("t"),
    "by a": UnitCount("a"),
    "by t x a": UnitCount(["t", "a"]),
}
GROUPS = {
    "by groups of t": UnitCount(["t"], [[[0, 1], [1, 2], [0, 1, 2]]]),
    "by groups of t x a": UnitCount(["t", "a"], [[[0, 1], [1, 2]], None]),
}
TOTALS = {
    "total in all": UnitTotal("pay", -3, 2),
    "total by t": UnitTotal("pay", 0, 5, by=["t"]),
    "total by t x a": UnitTotal("pay", 1, 3, by=["t", "a"]),
    "negative total by a": UnitTotal("pay", -4, -1, by=["a"]),
}
DOMAIN = Domain(
    {name: Coded(size) for name, size in SIZES.items()},
    measures={"pay": Measure("pay", 0, 2), **COUNTS, **GROUPS, **TOTALS},
)
BOUNDS = [
    (3, None),
    (2, PerCellBound(1, "t")),
    (3, PerCellBound(1, "t")),
    (6, PerCellBound(2, "t")),
    (6, PerCellBound(3, "t")),
    (4, PerCellBound(1, "a")),
    (4, PerCellBound(1, ["t", "a"])),
]
CELLS = list(itertools.product(*map(range, SIZES.values())))
UNITS = [
    cells for number in range(1, len(CELLS) + 1) for cells in itertools.combinations(CELLS, number)
]
TABLES: list[tuple[str, ...]] = [(), ("t",), ("a",), ("t", "a")]


def rows_of(cells, pay=2):
    """Return two rows of one unit in each of some cells."""
    rows = pd.DataFrame([*cells, *cells], columns=list(SIZES))
    return rows.assign(id="u", pay=pay)


def table_of(source, most, bound):
    measures = list(DOMAIN.measures)
    request = ReadRequest(
        attributes=list(SIZES),
        measures=measures,
        tables={name: [("t", "a")] for name in (None, *measures)},
    )
    return read(
        source, DOMAIN, read_request=request, unit_column="id", max_rows=most, max_per_cell=bound
    )


def blocks():
    """Yield each table of cells, and of prefix sums along t."""
    for names in TABLES:
        along_t: list[Callable[[int], Operator]] = [Identity]
        if "t" in names:
            along_t.append(Prefix)
        for operator in along_t:
            along = {"t": operator(SIZES["t"]), "a": Identity(SIZES["a"])}
            factors = tuple(Factor((name,), along[name]) for name in names)
            for measure in (None, *DOMAIN.measures):
                yield Block(factors, 1, measure)


def plans(block, most, bound, domain=DOMAIN):
    """Yield plans of one block, for both kinds of noise."""
    for budget, noise in ((PureDP(1), Noise.DISCRETE_LAPLACE), (ZCDP(1), Noise.DISCRETE_GAUSSIAN)):
        privacy = Privacy(budget, unit_column="id", max_rows=most, max_per_cell=bound)
        yield Measurements(domain=domain, privacy=privacy, noise=noise, blocks=(block,))


def answers_of(plan, table):
    """Return what the rows of a unit add to the queries."""
    ((_, answers),) = exact_answers(plan, table)
    return np.asarray(answers, dtype=np.float64).ravel()


@pytest.mark.slow
@pytest.mark.parametrize(("most", "bound"), BOUNDS, ids=str)
def test_no_unit_changes_more_than_its_plan_costs(most, bound):
    pays = (2, -90, 10**12, None)
    tables = [
        table_of(rows_of(cells, pay), most, bound)
        for cells, pay in itertools.product(UNITS, pays)
        if pay == 2 or len(cells) in (1, 2, len(CELLS))
    ]
    tables.append(table_of(duckdb.from_df(rows_of(tuple(CELLS))), most, bound))
    for block in blocks():
        laplace, gaussian = plans(block, most, bound)
        answers = np.stack([answers_of(laplace, table) for table in tables])
        # Exact answers do not depend on the noise.
        assert (answers_of(gaussian, tables[-1]) == answers[-1]).all()
        for plan in (laplace, gaussian):
            changes = (np.abs(answers) ** plan.noise.norm).sum(axis=1)
            assert changes.max() <= claimed(plan) * (1 + 1e-9), block


HIDDEN = Domain(
    {"t": Coded(2).with_hidden(True), "a": Coded(1).with_hidden(True)},
    measures={"pay": Measure("pay", 0, 2), **COUNTS, **TOTALS},
)


def unit_with_nulls(number, generator):
    """Return rows of a unit with nulls and values outside the domain in every column."""
    rows = {
        "t": generator.choice(np.array([0, 1, 7, None], dtype=object), number),
        "a": generator.choice(np.array([0, 0, 7, None], dtype=object), number),
        "pay": generator.choice(np.array([2, 2, -90, 10**9, None], dtype=object), number),
    }
    return pd.DataFrame(rows).astype("Int64").assign(id="u")


@pytest.mark.parametrize(
    ("most", "bound"), [(1, None), (2, PerCellBound(1, "t")), (4, PerCellBound(2, "a"))], ids=str
)
def test_no_unit_changes_more_by_rows_with_nulls(most, bound, tmp_path):
    """Rows in hidden cells are counted, chosen and bounded like any others."""
    measures = list(HIDDEN.measures)
    unit: dict[str, Any] = {"unit_column": "id", "max_rows": most, "max_per_cell": bound}
    generator = np.random.default_rng(most)
    tables: list[Table] = []
    for number in (1, 3, 30, 30):
        rows = unit_with_nulls(number, generator)
        file = tmp_path / f"{len(tables)}.csv"
        rows.to_csv(file, index=False)
        tables += [read(source, HIDDEN, **unit) for source in (file, duckdb.from_df(rows))]
    for names, measure in itertools.product(TABLES, (None, *measures)):
        factors = tuple(Factor((name,), Identity(HIDDEN.cells(name))) for name in names)
        for plan in plans(Block(factors, 1, measure), most, bound, HIDDEN):
            answers = np.stack([answers_of(plan, table) for table in tables])
            changes = (np.abs(answers) ** plan.noise.norm).sum(axis=1)
            assert changes.max() <= claimed(plan) * (1 + 1e-9), (names, measure)
