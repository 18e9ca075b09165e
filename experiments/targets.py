"""Check that the smallest budget for a workload's targets is enough, and 0.98 of it not.

Random workloads are released many times.

    leastnoise experiments targets [--out DIR] [--quick]

Every workload has one to four tables of random attributes, as cells or cumulated along one, counted
or summed, each with a random target; the budget is the least epsilon, rho, or epsilon with delta,
under both neighbour relations. Noise comes from a seed. `docs/results/targets.md` summarises the
table that this writes.
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
from leastnoise._planning._targets import balance_plan, ratios, table_goals
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
_DOUBT = 3.0  # standard deviations by which a share of releases may fall short by chance
_BATCHES = 10


@dataclass(frozen=True, slots=True)
class Asked:
    """A table of a random workload.

    Args:
        names: its attributes.
        along: the attribute along which it is cumulated; None for cells.
        measure: what is summed; None for counts.
        target: its keyword and value, as `Workload.within` takes them.
    """

    names: tuple[str, ...]
    along: str | None
    measure: str | None
    target: dict[str, int]

    def workload(self, domain: ln.Domain) -> ln.Workload:
        """Return the table as a workload with its target."""
        how = {name: "prefix" if name == self.along else "identity" for name in self.names}
        if self.measure is None:
            made = ln.queries(domain, **how)
        else:
            made = ln.queries(domain, sum=self.measure, **how)
        return made.within(**self.target)

    def truth(self, rows: pd.DataFrame, domain: ln.Domain) -> FloatArray:
        """Count the exact answers with numpy."""
        names = [name for name in domain.names if name in self.names]
        shape = tuple(domain.kind(name).size for name in names)
        places = np.ravel_multi_index([rows[name].to_numpy() for name in names], shape)
        cells = np.bincount(
            places, None if self.measure is None else rows[self.measure], minlength=math.prod(shape)
        ).reshape(shape)
        return np.asarray(
            cells if self.along is None else np.cumsum(cells, axis=names.index(self.along)),
            dtype=np.float64,
        ).reshape(-1)


def drawn(generator: np.random.Generator) -> tuple[ln.Domain, list[Asked]]:
    """Draw a random domain and tables.

    >>> domain, tables = drawn(np.random.default_rng(1))
    >>> 2 <= len(domain.names) <= 4, 1 <= len(tables) <= 4
    (True, True)
    """
    names = "abcd"[: generator.integers(2, 5)]
    pay = ln.Measure("pay", 0, int(generator.choice([10, 100])))
    domain = ln.Domain(
        {name: ln.Integers(0, int(generator.choice(SIZES)) - 1) for name in names},
        measures={"pay": pay},
    ).as_complete()
    every = [chosen for ways in (1, 2) for chosen in itertools.combinations(names, ways)]
    places = generator.choice(
        len(every), size=generator.integers(1, min(4, len(every)) + 1), replace=False
    )
    tables = []
    for place in places.tolist():
        chosen = every[place]
        if generator.random() < 0.4:
            along = str(generator.choice(chosen))
        else:
            along = None
        measure = "pay" if generator.random() < 0.25 else None
        unit = 1 if measure is None else pay.high
        target = {
            "margin" if generator.random() < 0.6 else "rmse": int(
                unit * int(generator.integers(8, 80))
            )
        }
        tables.append(Asked(tuple(chosen), along, measure, target))
    return domain, tables


def run(
    data: Path | None, out: Path, *, quick: bool = False, seed: int = 0, report: Report = print
) -> list[Row]:
    """Carry out the study.

    Args:
        data: not used.
        out: where the tables go; made if it is not there.
        quick: four workloads, forty releases each.
        seed: of workloads and noise.
        report: called with every line to be shown.

    Returns:
        A row a table, as written.
    """
    del data
    out.mkdir(parents=True, exist_ok=True)
    rows: list[Row] = []
    for number in range(4 if quick else 40):
        found = list(study(number, 40 if quick else 200, seed))
        rows += found
        least = found[0]
        report(
            f"{number}: {least['budget']}, {len(found)} tables, "
            f"{sum(not row['kept'] for row in found)} targets not kept"
        )
    write_csv(out / "targets.csv", rows)
    (out / "tables.md").write_text("\n".join(table(rows)) + "\n", encoding="utf-8")
    report(f"Tables are in {out}.")
    return rows


def study(number: int, releases: int, seed: int) -> Iterator[Row]:
    """Study one workload: its smallest budget, the errors of releases, and a smaller budget.

    Args:
        number: of the workload; its kind of budget follows from it.
        releases: how many.
        seed: of all.
    """
    generator = np.random.default_rng((seed, number))
    domain, tables = drawn(generator)
    privacy = BUDGETS[number % len(BUDGETS)]
    workload = sum((one.workload(domain) for one in tables[1:]), tables[0].workload(domain))
    plan = ln.plan(workload, privacy)
    rows = pd.DataFrame(
        {name: generator.integers(0, domain.kind(name).size, ROWS) for name in domain.names}
    )
    rows["pay"] = generator.integers(0, int(domain.measures["pay"].high) + 1, ROWS)
    errors: list[list[FloatArray]] = [[] for _ in tables]
    for draw in range(releases):
        made = ln.release(plan, rows, seed=10**6 * number + draw)
        for place, one in enumerate(tables):
            errors[place].append(made.tables[place].answer.reshape(-1) - one.truth(rows, domain))
    goals = table_goals(workload, privacy.level)
    size = plan.privacy.budget.to_json()[privacy.of]
    less = balance_plan(
        workload, privacy.privacy(Fraction(str(size)) * LESS), goals, Search(plan.strategy)
    )
    promised = np.sqrt(ratios(goals, plan))
    for place, one in enumerate(tables):
        ((kind, limit),) = one.target.items()
        reached, wanted, spread = held(kind, np.array(errors[place]), limit, privacy.level)
        yield {
            "workload": number,
            "table": workload.products[place].name,
            "strategy": plan.strategy,
            "budget": f"{privacy.of} = "
            f"{float(Fraction(str(size))):.4g}{'' if privacy.delta is None else ', delta = 1e-6'}",
            "neighbours": privacy.neighbours,
            "target": f"{kind} {limit}",
            "promised": float(promised[place]),
            "reached": reached,
            "wanted": wanted,
            "kept": reached >= wanted - _DOUBT * spread
            if kind == "margin"
            else reached <= wanted + _DOUBT * spread,
            "with 0.98": math.sqrt(less.ratio),
        }


def held(kind: str, errors: FloatArray, limit: float, level: float) -> tuple[float, float, float]:
    """Return the reached value, the wanted value, and the standard deviation of the first.

    Args:
        kind: "margin" or "rmse".
        errors: shape (releases, cells).
        limit: of the target.
        level: of the intervals.

    Returns:
        For a margin the share of answers no further off than it, and the level; for an error the
        root mean square over the target, and 1. Answers of one release share its noise, so the
        spread is that between batches of releases.

    >>> held("margin", np.arange(20.0).reshape(20, 1), 14, 0.8)[:2]
    (0.75, 0.8)
    """
    if kind == "margin":
        own = (np.abs(errors) <= limit * (1 + 1e-12)).astype(float)
    else:
        own = (errors / limit) ** 2
    batches = np.array([part.mean() for part in np.array_split(own, _BATCHES)])
    spread = float(batches.std(ddof=1)) / math.sqrt(_BATCHES)
    if kind == "margin":
        return float(own.mean()), level, spread
    return math.sqrt(float(own.mean())), 1.0, spread / 2


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
        own = [row for row in rows if row["workload"] == number]
        first = own[0]
        largest = max(row["promised"] for row in own)
        lines.append(
            f"| {number} | {len(own)} | {first['strategy']} | {first['budget']} | "
            f"{first['neighbours']} | {largest:.4f} "
            f"| {sum(row['kept'] for row in own)} of {len(own)} | {first['with 0.98']:.4f} |"
        )
    return lines
