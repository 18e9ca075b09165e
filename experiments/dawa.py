"""The comparison of the DAWA paper, from our own runs: range queries on histograms of 4096 cells, against published mechanisms.

    leastnoise experiments dawa --data ../shared/data [--out DIR] [--quick]
    python -m experiments.dawa --data ../shared/data --full

Workloads: every cell; 2000 ranges anywhere; 2000 ranges around five centres, their ends a standard deviation of 256 or of 1024 cells away.
The error is the mean absolute error of a query, in records. Ours are planned for all ranges, or for all cells. Noise comes from a seed.
"""

import argparse
import csv
import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from baselines import ONE_DIMENSION, Baseline, Ranges
from experiments.dawa_figures import draw_ratios
from leastnoise._accounting import Privacy, PureDP
from leastnoise._accuracy import promised
from leastnoise._check import InputError
from leastnoise._domain import Domain, Integers
from leastnoise._fitting import rescaled
from leastnoise._kernel import SeededEntropy, UnpaidSeries
from leastnoise._mechanisms import candidates, mechanism_of, terms_of
from leastnoise._mechanisms._dawa import plan_dawa
from leastnoise._plan import Plan
from leastnoise._table import Table
from leastnoise._workload import queries

Row = dict[str, Any]
Report = Callable[[str], None]
Wholes = NDArray[np.int64]
Reals = NDArray[np.float64]
WORKLOADS = ("identity", "uniform", "clustered", "large clustered")
OURS = ("dawa", "dawa_levels")
# Their noise is added to linear measurements chosen without the data, so the data do not matter to their errors.
_FIXED = ("Identity", "Privelet", "H2", "HB", "GreedyH", "GreedyH, released reading")
_QUERIES = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How much is run.

    Args:
        names: of the data sets, None for all.
        epsilons: budgets.
        scales: numbers of records, None for as they are.
        draws: random workloads.
        trials: for each of them.
        ours: which of our mechanisms.
    """

    names: tuple[str, ...] | None = None
    epsilons: tuple[str, ...] = ("0.01", "0.1")
    scales: tuple[int | None, ...] = (None,)
    draws: int = 1
    trials: int = 2
    ours: tuple[str, ...] = ("dawa",)


QUICK = Size(names=("ADULT", "HEPTH", "NETTRACE"), epsilons=("0.1",), trials=1)
DEFAULT = Size(trials=4)
FULL = Size(epsilons=("0.01", "0.05", "0.1", "0.5", "1"), scales=(None, 10**3, 10**4, 10**5, 10**6, 10**7), draws=5, trials=3, ours=OURS)


def run(data: Path, out: Path, *, quick: bool = False, seed: int = 0, report: Report = print, size: Size | None = None) -> list[Row]:
    """Carry out the experiment.

    Args:
        data: the folder with ``hist1d/*.n4096.npy``.
        out: where tables and figures go; made if it is not there.
        quick: three data sets, one budget, one trial.
        seed: of noise and random workloads.
        report: called with every line to be shown.
        size: how much is run; None for the default.

    Returns:
        One row a data set, scale, budget and workload: the error of every mechanism, its standard error, and our ratio to the best other.
    """
    what = size or (QUICK if quick else DEFAULT)
    files = sorted((data / "hist1d").glob("*.n4096.npy"))
    if not files:
        raise InputError(f"The experiment needs histograms {data / 'hist1d'}/*.n4096.npy; got none. Say where they are: --data DIR.")
    out.mkdir(parents=True, exist_ok=True)
    known = {path.name.split(".")[0]: np.load(path).astype(np.int64) for path in files}
    known = {name: x for name, x in known.items() if what.names is None or name in what.names}
    rows: list[Row] = []
    for epsilon in what.epsilons:
        cells = len(next(iter(known.values())))
        fixed = fixed_errors(cells, epsilon, what, seed)
        for place, (name, x) in enumerate(known.items()):
            for scale in what.scales:
                scaled = x if scale is None else np.random.default_rng([seed, place]).multinomial(scale, x / x.sum()).astype(np.int64)
                found = errors(scaled, epsilon, what, [seed, place, scale or 0])
                rows += list(summary(name, int(scaled.sum()), epsilon, {**fixed, **found}))
            write(rows, out, lambda _: None)
            last = rows[-len(WORKLOADS) :]
            told = ", ".join(f"{row['workload']} {row['dawa']:.3g} ({row['ratio']:.2f})" for row in last)
            report(f"epsilon {epsilon}, {name}: {told}")
    write(rows, out, report)
    return rows


def write(rows: Sequence[Row], out: Path, report: Report) -> None:
    """Tables and figures."""
    columns = list(dict.fromkeys(column for row in rows for column in row))
    with (out / "errors.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    table = regret(rows)
    with (out / "regret.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(table[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(table)
    for row in table:
        report(json.dumps(row))
    draw_ratios(rows, out / "ratios")
    report(f"Tables and figures are in {out}.")


def ranges_of(workload: str, cells: int, seed: Sequence[int]) -> Ranges:
    """A workload of the paper; clustered ranges are cut off at the ends.

    >>> ranges_of("identity", 3, [0]).high.tolist()
    [1, 2, 3]
    """
    generator = np.random.default_rng([*seed, WORKLOADS.index(workload)])
    if workload == "identity":
        return Ranges(np.arange(cells), np.arange(cells) + 1)
    if workload == "uniform":
        low, high = np.sort(generator.integers(0, cells, (2, _QUERIES)), axis=0)
        return Ranges(low, high + 1)
    spread = 256 if workload == "clustered" else 1024
    centres = np.repeat(generator.integers(0, cells, 5), _QUERIES // 5)
    before, behind = np.abs(generator.normal(0, spread, (2, len(centres)))).astype(np.int64)
    return Ranges(np.maximum(centres - before, 0), np.minimum(centres + behind, cells - 1) + 1)


@lru_cache(maxsize=4)
def best_fixed(cells: int, asked: str) -> Plan:
    """D: the best data-independent plan, at epsilon 1."""
    domain = Domain(cell=Integers(0, cells - 1))
    names = ("identity",) if asked == "identity" else ("p_identity",)
    found = [one for name in names for one in candidates(queries(domain, cell=asked), Privacy(PureDP(1)), name)]
    plan = found[0].plan
    if plan is None:
        raise InputError(found[0].reason)
    return plan


@lru_cache(maxsize=64)
def planned(cells: int, asked: str, epsilon: str, strategy: str) -> Plan:
    """Our plan, with D as its way out."""
    privacy, workload = Privacy(PureDP(epsilon)), queries(Domain(cell=Integers(0, cells - 1)), cell=asked)
    reference = promised(workload, rescaled(best_fixed(cells, asked).measured(), privacy))
    return plan_dawa(workload, privacy, strategy, reference=reference)


def ours(table: Table, plan: Plan, seed: Sequence[int]) -> tuple[Reals, str]:
    """Cells as one of our mechanisms estimates them, and the regime."""
    series = UnpaidSeries(terms_of(plan), table, SeededEntropy(abs(hash(tuple(seed))) % 2**32))
    outcome = mechanism_of(plan).ready(plan)(series)
    product = queries(plan.domain, cell="identity").products[0]
    return outcome.estimator().estimate(product).values, outcome.finding.facts()["regime"]


def errors(x: Wholes, epsilon: str, what: Size, seed: Sequence[int]) -> dict[str, dict[str, list[float]]]:
    """Mean absolute errors by mechanism and workload, one a trial."""
    cells = len(x)
    found: dict[str, dict[str, list[float]]] = {}
    table = Table(Domain(cell=Integers(0, cells - 1)), {"cell": np.repeat(np.arange(cells, dtype=np.int16), x)})
    for draw in range(what.draws):
        asked = {workload: ranges_of(workload, cells, [*seed, draw]) for workload in WORKLOADS}
        for trial in range(what.trials):
            for place, strategy in enumerate(what.ours):
                per_kind = {
                    kind: ours(table, planned(cells, kind, epsilon, strategy), [*seed, draw, trial, place, len(kind)])[0]
                    for kind in ("identity", "all_ranges")
                }
                for workload, queries_asked in asked.items():
                    estimate = per_kind["identity" if workload == "identity" else "all_ranges"]
                    _add(found, strategy, workload, queries_asked, estimate, x)
            for number, baseline in enumerate(ONE_DIMENSION):
                if baseline.name not in _FIXED and baseline.most_cells >= cells:
                    _run(found, baseline, x, epsilon, asked, [*seed, draw, trial, 100 + number])
    return found


def fixed_errors(cells: int, epsilon: str, what: Size, seed: int) -> dict[str, dict[str, list[float]]]:
    """Errors of mechanisms to which the data do not matter: on no records at all."""
    found: dict[str, dict[str, list[float]]] = {}
    empty = np.zeros(cells, dtype=np.int64)
    domain = Domain(cell=Integers(0, cells - 1))
    for trial in range(max(4, what.trials)):
        asked = {workload: ranges_of(workload, cells, [seed, trial]) for workload in WORKLOADS}
        for number, baseline in enumerate(ONE_DIMENSION):
            if baseline.name in _FIXED and baseline.most_cells >= cells and (trial < 2 or not baseline.aware):
                _run(found, baseline, empty, epsilon, asked, [seed, trial, number])
        for kind in ("identity", "all_ranges"):
            estimate = _linear(cells, kind, epsilon, domain, seed + trial)
            for workload, queries_asked in asked.items():
                if (workload == "identity") == (kind == "identity"):
                    _add(found, "D", workload, queries_asked, estimate, empty)
    return found


def _linear(cells: int, kind: str, epsilon: str, domain: Domain, seed: int) -> Reals:
    """D on no records."""
    from leastnoise._estimate import Estimate
    from leastnoise._kernel import simulate

    plan = rescaled(best_fixed(cells, kind).measured(), Privacy(PureDP(epsilon)))
    observation = simulate(plan, Table(domain, {"cell": np.zeros(0, dtype=np.int16)}), SeededEntropy(seed))
    return Estimate(observation).marginal(("cell",))


def _run(found: dict[str, Any], baseline: Baseline, x: Wholes, epsilon: str, asked: dict[str, Ranges], seed: Sequence[int]) -> None:
    entropy = SeededEntropy(abs(hash(tuple(seed))) % 2**32)
    common = None if baseline.aware else baseline.run(x, epsilon, entropy)
    for workload, queries_asked in asked.items():
        try:
            estimate = baseline.run(x, epsilon, entropy, queries_asked) if common is None else common
        except ValueError:  # GreedyH where hardly anybody asks: its greedy leaves cells without any budget
            continue
        _add(found, baseline.label, workload, queries_asked, estimate, x)


def _add(found: dict[str, Any], name: str, workload: str, asked: Ranges, estimate: Reals, x: Wholes) -> None:
    found.setdefault(name, {}).setdefault(workload, []).append(float(np.abs(asked.answers(estimate - x)).mean()))


def summary(name: str, records: int, epsilon: str, found: dict[str, dict[str, list[float]]]) -> Iterator[Row]:
    """One row a workload."""
    for workload in WORKLOADS:
        means = {one: float(np.mean(values[workload])) for one, values in found.items() if workload in values}
        spread = {
            f"{one} se": float(np.std(v[workload], ddof=1) / math.sqrt(len(v[workload]))) if len(v[workload]) > 1 else math.nan
            for one, v in found.items()
            if workload in v
        }
        others = {one: mean for one, mean in means.items() if one not in OURS and one != "D" and "not private" not in one}
        best = min(others, key=lambda one: others[one])
        yield {
            "data": name,
            "records": records,
            "epsilon": epsilon,
            "workload": workload,
            "best other": best,
            "ratio": means["dawa"] / others[best],
            "ratio to D": means["dawa"] / means["D"],
            **means,
            **spread,
        }


def regret(rows: Sequence[Row]) -> list[Row]:
    """For every budget and workload the geometric mean, over data sets, of each mechanism's error over the least of all private ones."""
    out = []
    names = [one for one in rows[0] if f"{one} se" in rows[0] and "not private" not in one]
    for epsilon, workload in dict.fromkeys((row["epsilon"], row["workload"]) for row in rows):
        own = [row for row in rows if (row["epsilon"], row["workload"]) == (epsilon, workload)]
        ratios = {one: [row[one] / min(row[other] for other in names if other in row) for row in own if one in row] for one in names}
        out.append(
            {
                "epsilon": epsilon,
                "workload": workload,
                **{one: round(float(np.exp(np.mean(np.log(values)))), 3) for one, values in ratios.items()},
                "dawa, largest": round(max(ratios["dawa"]), 3),
            }
        )
    return out


def main() -> None:
    """The default, or all of the paper's grid."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path(__file__).parents[2] / "shared" / "data")
    parser.add_argument("--out", type=Path, default=Path("build/dawa"))
    parser.add_argument("--full", action="store_true", help="all budgets, scales and mechanisms: a day of one core")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    run(options.data, options.out, quick=options.quick, size=FULL if options.full else None)


if __name__ == "__main__":
    main()
