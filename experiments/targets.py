"""Check that the smallest budget for a workload's targets is enough, and 0.98 of it not.

The experiment releases random workloads many times.

    leastnoise experiments targets [--out DIR] [--quick]

Every workload has one to four tables of random attributes: cells or prefix sums along one
attribute, counts or sums, each with a random target. The budget is the smallest epsilon, rho, or
epsilon with delta, under both neighbour relations. Noise comes from a seed.
`docs/results/targets.md` summarises the written table.
"""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd

import leastnoise as ln
from experiments.common import Report, Row, write_csv
from leastnoise._mechanisms import Search
from leastnoise._planning._targets import balance_plan, squared_ratios, table_goals
from leastnoise._trusted.check.arrays import FloatArray

SIZES = (2, 3, 5, 8, 12, 16)
ROWS = 500
BUDGETS = (
    ln.Least(),
    ln.Least("rho"),
    ln.Least(delta="1e-6"),
    ln.Least(neighbours="replace"),
    ln.Least(level=0.8),
)
LESS = Fraction(98, 100)
_DOUBT = 3.0  # standard deviations by which a share of releases may miss its target by chance
_BATCHES = 10  # batches of releases for the standard deviation


@dataclass(frozen=True, slots=True)
class RequestedTable:
    """A table of a random workload.

    Args:
        names: the attributes of the table.
        along: the attribute of the prefix sums; None for cells.
        measure: the measure of the sums; None for counts.
        target: keyword and value of the target, for `Workload.within`.
    """

    names: tuple[str, ...]
    along: str | None
    measure: str | None
    target: dict[str, int]

    def workload(self, domain: ln.Domain) -> ln.Workload:
        """Return the table as a workload with its target."""
        query_sets = {name: "prefix" if name == self.along else "identity" for name in self.names}
        if self.measure is None:
            workload = ln.queries(domain, **query_sets)
        else:
            workload = ln.queries(domain, sum=self.measure, **query_sets)
        return workload.within(**self.target)

    def truth(self, rows: pd.DataFrame, domain: ln.Domain) -> FloatArray:
        """Count the exact answers with numpy."""
        names = [name for name in domain.names if name in self.names]
        shape = tuple(domain.kind(name).size for name in names)
        positions = np.ravel_multi_index([rows[name].to_numpy() for name in names], shape)
        cells = np.bincount(
            positions,
            None if self.measure is None else rows[self.measure],
            minlength=math.prod(shape),
        ).reshape(shape)
        return np.asarray(
            cells if self.along is None else np.cumsum(cells, axis=names.index(self.along)),
            dtype=np.float64,
        ).reshape(-1)


def draw_tables(generator: np.random.Generator) -> tuple[ln.Domain, list[RequestedTable]]:
    """Draw a random domain and tables.

    >>> domain, tables = draw_tables(np.random.default_rng(1))
    >>> 2 <= len(domain.names) <= 4, 1 <= len(tables) <= 4
    (True, True)
    """
    names = "abcd"[: generator.integers(2, 5)]
    pay = ln.Measure("pay", 0, int(generator.choice([10, 100])))
    domain = ln.Domain(
        {name: ln.Integers(0, int(generator.choice(SIZES)) - 1) for name in names},
        measures={"pay": pay},
    ).as_complete()
    attribute_sets = [chosen for ways in (1, 2) for chosen in itertools.combinations(names, ways)]
    numbers = generator.choice(
        len(attribute_sets),
        size=generator.integers(1, min(4, len(attribute_sets)) + 1),
        replace=False,
    )
    tables = []
    for number in numbers.tolist():
        chosen = attribute_sets[number]
        if generator.random() < 0.4:
            along = str(generator.choice(chosen))
        else:
            along = None
        measure = "pay" if generator.random() < 0.25 else None
        unit = 1 if measure is None else pay.high
        kind = "margin" if generator.random() < 0.6 else "rmse"
        target = {kind: int(unit * int(generator.integers(8, 80)))}
        tables.append(RequestedTable(tuple(chosen), along, measure, target))
    return domain, tables


def run(
    data: Path | None, out: Path, *, quick: bool = False, seed: int = 0, report: Report = print
) -> list[Row]:
    """Carry out the study.

    Args:
        data: not used.
        out: the folder for the tables, created if it is missing.
        quick: four workloads, forty releases each.
        seed: seed of the workloads and the noise.
        report: called with every line of progress.

    Returns:
        The written rows, one for each table.
    """
    del data
    out.mkdir(parents=True, exist_ok=True)
    rows: list[Row] = []
    for number in range(4 if quick else 40):
        table_rows = list(study(number, 40 if quick else 200, seed))
        rows += table_rows
        first_row = table_rows[0]
        report(
            f"{number}: {first_row['budget']}, {len(table_rows)} tables, "
            f"{sum(not row['kept'] for row in table_rows)} targets not kept"
        )
    write_csv(out / "targets.csv", rows)
    (out / "tables.md").write_text("\n".join(table(rows)) + "\n", encoding="utf-8")
    report(f"Tables are in {out}.")
    return rows


def study(number: int, releases: int, seed: int) -> Iterator[Row]:
    """Study one workload: its smallest budget, the errors of releases, and a smaller budget.

    Args:
        number: number of the workload, which determines the kind of budget.
        releases: number of releases.
        seed: seed of the workload and the noise.
    """
    generator = np.random.default_rng((seed, number))
    domain, tables = draw_tables(generator)
    privacy = BUDGETS[number % len(BUDGETS)]
    workload = sum(
        (requested.workload(domain) for requested in tables[1:]), tables[0].workload(domain)
    )
    plan = ln.plan(workload, privacy)
    rows = pd.DataFrame(
        {name: generator.integers(0, domain.kind(name).size, ROWS) for name in domain.names}
    )
    rows["pay"] = generator.integers(0, int(domain.measures["pay"].high) + 1, ROWS)
    errors: list[list[FloatArray]] = [[] for _ in tables]
    for draw in range(releases):
        release = ln.release(plan, rows, seed=10**6 * number + draw)
        for index, requested in enumerate(tables):
            errors[index].append(
                release.tables[index].answer.reshape(-1) - requested.truth(rows, domain)
            )
    goals = table_goals(workload, privacy.level)
    size = plan.privacy.budget.to_json()[privacy.of]
    less = balance_plan(
        workload, privacy.privacy(Fraction(str(size)) * LESS), goals, Search(plan.strategy)
    )
    promised = np.sqrt(squared_ratios(goals, plan))
    for index, requested in enumerate(tables):
        ((kind, limit),) = requested.target.items()
        reached, goal, deviation = reached_target(
            kind, np.array(errors[index]), limit, privacy.level
        )
        slack = _DOUBT * deviation
        if kind == "margin":
            is_met = reached >= goal - slack
        else:
            is_met = reached <= goal + slack
        budget = f"{privacy.of} = {float(Fraction(str(size))):.4g}"
        if privacy.delta is not None:
            budget += ", delta = 1e-6"
        yield {
            "workload": number,
            "table": workload.products[index].name,
            "strategy": plan.strategy,
            "budget": budget,
            "neighbours": privacy.neighbours,
            "target": f"{kind} {limit}",
            "promised": float(promised[index]),
            "reached": reached,
            "wanted": goal,
            "kept": is_met,
            "with 0.98": math.sqrt(less.largest_squared_ratio),
        }


def reached_target(
    kind: str, errors: FloatArray, limit: float, level: float
) -> tuple[float, float, float]:
    """Return the reached value, its goal, and the standard deviation of the first.

    Args:
        kind: "margin" or "rmse".
        errors: shape (releases, cells).
        limit: value of the target.
        level: level of the intervals.

    Returns:
        For a margin, the share of answers within it, and the level. For an error, the root mean
        square error over the target, and 1. Answers of one release share its noise, so the standard
        deviation is computed from batches of releases.

    >>> reached_target("margin", np.arange(20.0).reshape(20, 1), 14, 0.8)[:2]
    (0.75, 0.8)
    """
    if kind == "margin":
        scores = (np.abs(errors) <= limit * (1 + 1e-12)).astype(float)
    else:
        scores = (errors / limit) ** 2
    batches = np.array([part.mean() for part in np.array_split(scores, _BATCHES)])
    deviation = float(batches.std(ddof=1)) / math.sqrt(_BATCHES)
    if kind == "margin":
        return float(scores.mean()), level, deviation
    return math.sqrt(float(scores.mean())), 1.0, deviation / 2


def table(rows: Sequence[Row]) -> list[str]:
    """Return a line per workload with the worst results of its tables."""
    lines = [
        (
            "| workload | tables | strategy | least budget | neighbours | largest promise | "
            "targets kept | largest with 0.98 |"
        )
    ]
    lines.append("|--:|--:|---|---|---|--:|--:|--:|")
    for number in dict.fromkeys(row["workload"] for row in rows):
        matching = [row for row in rows if row["workload"] == number]
        first = matching[0]
        largest = max(row["promised"] for row in matching)
        lines.append(
            f"| {number} | {len(matching)} | {first['strategy']} | {first['budget']} | "
            f"{first['neighbours']} | {largest:.4f} "
            f"| {sum(row['kept'] for row in matching)} of {len(matching)} "
            f"| {first['with 0.98']:.4f} |"
        )
    return lines
