"""Compare tables from a model with the best data-independent plan.

The experiment measures the rows that each method puts into wrong cells, and CPU seconds.

    leastnoise experiments model --data DIR [--out DIR] [--quick]
    python -m experiments.model --data DIR [--names adult14_pgm ...] [--epsilon 0.1 1 10] [--noise
    pure delta] [--ways 2 3] [--seeds 5]

The data are the coded microdata, and five synthetic tables of known structure: independent
attributes, five kinds of rows, a chain, pairs that only a third attribute explains, and 1,000 codes
in random order. The error is half the L1 distance of shares, as a mean over all tables with the
requested number of attributes and at most 10^4 cells. "delta" is epsilon and delta 1e-9. Noise
comes from a seed, so nothing here is private.
"""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from experiments.common import Reals, Report, Row, Wholes, arguments, simulated, write_csv
from leastnoise._domain import Domain, Integers
from leastnoise._estimation import Estimate, Outcome, locally_non_negative
from leastnoise._fitting import rescale_noise
from leastnoise._mechanisms import Search, mechanism_for, release_contract
from leastnoise._mechanisms._model_mechanism import fit_on_bins, setting_from_plan
from leastnoise._mechanisms._protocol import reference_measurements
from leastnoise._plan import Plan
from leastnoise._release import Options, build_release, make_records
from leastnoise._trusted.accounting import ApproxDP, Privacy, PureDP
from leastnoise._trusted.check import InputError
from leastnoise._trusted.kernel import SeededEntropy, UnpaidSeries, simulate
from leastnoise._trusted.table import Table
from leastnoise._workload import Workload, marginals

# Settings of the mechanism were chosen with these data sets.
TUNED = (
    "adult14_pgm",
    "nltcs",
    "nursery",
    "rochdale",
    "mildew",
    "cps_coded",
    "adult8",
    "kinds",
    "parity",
    "chain",
)
CODED = (
    "adult14_pgm",
    "adult8",
    "adult8_full",
    "cps_coded",
    "nltcs",
    "nursery",
    "transfusion",
    "us_households_7puma",
)
TABLES = ("czech", "mildew", "rochdale")
SYNTHETIC = ("independent", "kinds", "chain", "parity", "codes")
SIZES_OF_CELLS = (5, 50, 500)
_MOST_CELLS = 10**4


@dataclass(frozen=True, eq=False)
class People:
    """Coded rows: an integer for every attribute."""

    domain: Domain
    codes: Wholes

    @property
    def table(self) -> Table:
        """Return the rows as a table of the kernel."""
        return Table(
            self.domain,
            dict(zip(self.domain.names, self.codes.T, strict=True)),
            rows=len(self.codes),
        )

    def cells(self, names: Sequence[str]) -> Reals:
        """Return the true counts of a table."""
        sizes = [self.domain.kind(name).size for name in names]
        positions = np.ravel_multi_index(
            [self.codes[:, self.domain.names.index(name)] for name in names], sizes
        )
        return (
            np.bincount(positions, minlength=int(np.prod(sizes))).reshape(sizes).astype(np.float64)
        )


def people(data: Path | None, name: str) -> People:
    """Read real rows from a file by name, or generate rows."""
    if name in SYNTHETIC:
        return generate_rows(name)
    if data is None:
        raise InputError(
            f"The data set {name!r} is read from a folder. Say where it is: --data DIR."
        )
    if name in TABLES:
        (file,) = (data / "contingency").glob(f"{name}.*.npy")
        counts = np.load(file)
        bits = np.arange(counts.size.bit_length() - 1)
        return _coded(
            np.repeat(np.arange(counts.size)[:, None] >> bits & 1, counts.reshape(-1), axis=0)
        )
    codes: Wholes = np.loadtxt(
        data / "microdata" / f"{name}.csv", delimiter=",", skiprows=1, dtype=np.int64
    )
    if name == "us_households_7puma":
        codes = np.repeat(codes[:, :-1], codes[:, -1], axis=0)
        return _coded(
            np.stack(
                [
                    np.unique(column, return_inverse=True)[1]
                    for column in codes.T
                    if len(set(column.tolist())) > 1
                ],
                axis=1,
            )
        )
    if name == "transfusion":  # amounts of blood are multiples of 250
        return _coded(codes // np.array([1, 1, 250, 1, 1]))
    description = json.loads(
        (data / "microdata" / f"{name.removesuffix('_coded')}.domain.json").read_text(
            encoding="utf-8"
        )
    )
    kinds: dict[str, Any] = {
        attribute["name"].replace("-", "_"): Integers(0, attribute["size"] - 1)
        for attribute in description["attributes"]
    }
    return People(Domain(**kinds).as_complete(), codes)


def _coded(codes: Wholes) -> People:
    """Return rows of attributes without names; each has a cell per value."""
    kinds: dict[str, Any] = {
        f"a{number}": Integers(0, int(column.max())) for number, column in enumerate(codes.T)
    }
    return People(Domain(**kinds).as_complete(), codes)


def generate_rows(name: str, rows: int = 20_000, attributes: int = 8, cells: int = 10) -> People:
    """Generate rows with a known structure."""
    random = np.random.default_rng(SYNTHETIC.index(name))
    if name == "codes":
        return _of_many_codes(random)
    codes = np.zeros((rows, attributes), dtype=np.int64)
    kinds = random.choice(5, rows, p=random.dirichlet(np.ones(5)))
    for number in range(attributes):
        if name == "independent":
            codes[:, number] = random.choice(cells, rows, p=random.dirichlet(np.full(cells, 0.7)))
        elif name == "kinds":
            shares = random.dirichlet(np.full(cells, 0.5), 5)
            codes[:, number] = (
                (random.random(rows)[:, None] > np.cumsum(shares, axis=1)[kinds])
                .sum(axis=1)
                .clip(max=cells - 1)
            )
        elif name == "chain":
            if number:
                before = codes[:, number - 1]
            else:
                before = random.integers(0, cells, rows)
            codes[:, number] = np.where(
                random.random(rows) < 0.6,
                before,
                random.integers(0, cells, rows) * (number % 3) // 2,
            )
        else:
            mixed = (codes[:, number - 1] + codes[:, number - 2]) % cells
            codes[:, number] = mixed if number % 3 == 2 else random.integers(0, cells, rows)
    names: dict[str, Any] = {f"a{number}": Integers(0, cells - 1) for number in range(attributes)}
    return People(Domain(**names).as_complete(), codes)


def _of_many_codes(
    random: np.random.Generator,
    rows: int = 50_000,
    many: int = 1000,
    groups: int = 20,
    attributes: int = 5,
) -> People:
    """Generate codes in random order with a Zipf law.

    A hidden group of each code determines the distributions of five attributes of ten cells.
    """
    shares = 1 / np.arange(1, many + 1) ** 1.1
    codes = random.choice(many, rows, p=random.permutation(shares / shares.sum()))
    group = random.integers(0, groups, many)
    parts = [
        np.cumsum(random.dirichlet(np.full(10, 0.5), groups), axis=1)[group[codes]]
        for _ in range(attributes)
    ]
    columns = [
        codes,
        *((random.random(rows)[:, None] > part).sum(axis=1).clip(max=9) for part in parts),
    ]
    names: dict[str, Any] = {
        "code": Integers(0, many - 1),
        **{f"a{number}": Integers(0, 9) for number in range(attributes)},
    }
    return People(Domain(**names).as_complete(), np.stack(columns, axis=1))


def budget_of(epsilon: str, noise: str) -> Privacy:
    """Return a budget of this epsilon, without delta or with delta 1e-9."""
    return Privacy(PureDP(epsilon) if noise == "pure" else ApproxDP(epsilon, "1e-9"))


def tables_of(domain: Domain, ways: int) -> Workload:
    """Build all tables of ``ways`` attributes with at most 10^4 cells."""
    every = marginals(domain, ways=ways)
    return Workload(domain, tuple(table for table in every if table.rows <= _MOST_CELLS))


def plan_of(workload: Workload, privacy: Privacy) -> Plan:
    """Plan a release from a model, with the best data-independent plan as alternative."""
    return mechanism_for("model", workload).plan(workload, privacy, Search("model", seconds=5))


def misplaced(rows: People, tables: Mapping[tuple[str, ...], Reals]) -> float:
    """Return the mean share of rows in wrong cells."""
    return float(
        np.mean(
            [
                0.5 * np.abs(cells - rows.cells(names)).sum() / len(rows.codes)
                for names, cells in tables.items()
            ]
        )
    )


def model_error(outcome: Outcome, rows: People) -> tuple[float, list[tuple[int, int]]]:
    """Return the error, and the numbers of cells and of covered cells by size.

    The intervals have a level of 95%.
    """
    counts = np.zeros((len(SIZES_OF_CELLS) + 1, 2), dtype=np.int64)
    tables = {}
    for table in build_release(outcome, Options(level=0.95)).tables:
        exact = rows.cells(table.attributes)
        tables[table.attributes] = table.answer.reshape(exact.shape)
        inside = (
            (table.low.reshape(exact.shape) <= exact) & (exact <= table.high.reshape(exact.shape))
        ).reshape(-1)
        size = np.searchsorted(SIZES_OF_CELLS, exact.reshape(-1), side="right")
        counts += np.stack(
            [
                np.bincount(size, minlength=len(counts)),
                np.bincount(size, inside, len(counts)).astype(np.int64),
            ],
            axis=1,
        )
    return misplaced(rows, tables), [(int(total), int(inside)) for total, inside in counts]


def pair_model_error(plan: Plan, rows: People, seed: int) -> float:
    """Return the error of the pair model on bins without later steps."""
    series = UnpaidSeries(release_contract(plan), rows.table, SeededEntropy(seed))
    setting = setting_from_plan(plan)
    if setting.counting_share:
        # The noise is the same as in the release.
        series.measure(setting.row_count(setting.counting_share))
    estimator = fit_on_bins(setting, series, None, "model_bins").estimator()
    measured = estimator.measured  # type: ignore[attr-defined]
    mixture = measured.mixture()
    return misplaced(
        rows,
        {table.attributes: measured.counts(mixture, table.attributes) for table in plan.workload},
    )


def records_error(outcome: Outcome, rows: People) -> float:
    """Return the error of synthetic records from the release."""
    records = make_records(outcome)
    scale = len(rows.codes) / len(records.codes)
    return misplaced(
        rows, {table.attributes: scale * records.counts(table) for table in outcome.plan.workload}
    )


def least_squares_error(plan: Plan, rows: People, seed: int) -> float:
    """Return the error of the nearest non-negative tables to a data-independent plan.

    The data-independent plan spends the whole budget.
    """
    observation = simulate(
        rescale_noise(reference_measurements(plan), plan.privacy), rows.table, SeededEntropy(seed)
    )
    names = [table.attributes for table in plan.workload]
    nearest = locally_non_negative(Estimate(observation), names)
    return misplaced(rows, {name: nearest.marginal(name) for name in names})


def independence_error(rows: People, workload: Workload) -> float:
    """Return the error of tables computed from exact one-way counts by independence."""
    tables = {}
    for table in workload:
        cells = np.ones(())
        for name in table.attributes:
            cells = np.multiply.outer(cells, rows.cells([name]) / len(rows.codes))
        tables[table.attributes] = len(rows.codes) * cells
    return misplaced(rows, tables)


def release_errors(plan: Plan, rows: People, seed: int) -> Row:
    """Return all compared errors with the noise of one seed."""
    start = time.process_time()
    outcome = simulated(plan, rows.table, seed)
    error, counts_by_size = model_error(outcome, rows)
    seconds = time.process_time() - start
    sizes = ("few", "5", "50", "500")
    return {
        "non-negative": round(least_squares_error(plan, rows, seed), 5),
        "model alone": round(pair_model_error(plan, rows, seed), 5),
        "model": round(error, 5),
        "records": round(records_error(outcome, rows), 5),
        "regime": str(outcome.finding.facts()["regime"]),
        "CPU seconds": round(seconds, 1),
        **{f"{size} cells": total for size, (total, _) in zip(sizes, counts_by_size, strict=True)},
        **{f"{size} held": inside for size, (_, inside) in zip(sizes, counts_by_size, strict=True)},
    }


def run(
    data: Path,
    out: Path,
    *,
    quick: bool = False,
    report: Report = print,
    names: Sequence[str] = (*CODED, *TABLES, *SYNTHETIC),
    epsilons: Sequence[str] = ("0.1", "1", "10"),
    noises: Sequence[str] = ("delta", "pure"),
    ways: Sequence[int] = (2, 3),
    seeds: int = 5,
) -> list[Row]:
    """Carry out the experiment.

    Args:
        data: the folder with ``microdata``.
        out: the folder for the table, created if it is missing; the table is rewritten after every
            row.
        quick: one synthetic data set, one budget, one seed.
        report: called with every row.
        names: names of data sets.
        epsilons: budgets.
        noises: "delta" or "pure".
        ways: numbers of attributes of a table.
        seeds: number of releases of each plan.
    """
    if quick:
        names = ("kinds",)
        epsilons = ("1",)
        noises = ("delta",)
        ways = (2,)
        seeds = 1
    out.mkdir(parents=True, exist_ok=True)
    rows: list[Row] = []
    for name in names:
        people_rows = people(data, name)
        for count in ways:
            workload = tables_of(people_rows.domain, count)
            independent = round(independence_error(people_rows, workload), 4)
            for noise, epsilon in product(noises, epsilons):
                plan = plan_of(workload, budget_of(epsilon, noise))
                for seed in range(seeds):
                    head = {
                        "data": name,
                        "tuned": name in TUNED,
                        "ways": count,
                        "noise": noise,
                        "epsilon": epsilon,
                        "seed": seed,
                    }
                    rows.append(
                        {
                            **head,
                            "independent": independent,
                            **release_errors(plan, people_rows, seed),
                        }
                    )
                    write_csv(out / "model.csv", rows)
                    report(", ".join(f"{key} {value}" for key, value in rows[-1].items()))
    return rows


if __name__ == "__main__":
    options = arguments(
        __doc__,
        data={"type": Path, "required": True},
        out={"type": Path, "default": Path("build/model")},
        names={
            "nargs": "+",
            "default": [*CODED, *TABLES, *SYNTHETIC],
            "choices": [*CODED, *TABLES, *SYNTHETIC],
        },
        epsilon={"nargs": "+", "default": ["0.1", "1", "10"], "dest": "epsilons"},
        noise={
            "nargs": "+",
            "default": ["delta", "pure"],
            "choices": ["delta", "pure"],
            "dest": "noises",
        },
        ways={"nargs": "+", "type": int, "default": [2, 3]},
        seeds={"type": int, "default": 5},
    )
    run(**options)
