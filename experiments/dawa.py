"""Repeat the comparison of the DAWA paper: ranges on histograms of 4096 cells.

The other mechanisms are published ones.

    leastnoise experiments dawa --data DIR [--out DIR] [--quick]
    python -m experiments.dawa --data DIR --full

The workloads are every cell; 2000 ranges anywhere; and 2000 ranges around five centres, whose ends
have a standard deviation of 256 or of 1024 cells. The error is the mean absolute error of a query,
in records. Our mechanisms are planned for all ranges, or for all cells. Noise comes from a seed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from baselines import ONE_DIMENSION, Baseline, Ranges
from experiments.common import Reals, Report, Row, Wholes, arguments, simulated
from experiments.dawa_comparison import (
    DATA_INDEPENDENT,
    OUR_MECHANISMS,
    Errors,
    add_error,
    line,
    summary,
    write,
)
from leastnoise._domain import Domain, Integers
from leastnoise._error import evaluate_plan
from leastnoise._estimation import Estimate
from leastnoise._fitting import rescale_noise
from leastnoise._mechanisms import try_strategies
from leastnoise._mechanisms._dawa import plan_dawa
from leastnoise._plan import Plan
from leastnoise._trusted.accounting import Privacy, PureDP
from leastnoise._trusted.check import InputError
from leastnoise._trusted.kernel import SeededEntropy, simulate
from leastnoise._trusted.table import Table
from leastnoise._workload import queries

MARKS = {
    "identity": ("#777777", "x"),
    "uniform": ("#111111", "D"),
    "clustered": ("#3b75af", "o"),
    "large clustered": ("#c8682d", "s"),
}
WORKLOADS = tuple(MARKS)
# These mechanisms measure linear queries that do not depend on the data, so their errors do not
# depend on the data either.
_FIXED_BASELINES = ("Identity", "Privelet", "H2", "HB", "GreedyH", "GreedyH, released reading")
_QUERIES = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """The numbers of data sets, budgets, queries and trials of a run.

    Args:
        names: names of the data sets, None for all.
        epsilons: budgets.
        scales: numbers of records, None for the number in the file.
        draws: number of random workloads.
        trials: number of trials of each workload.
        ours: names of our mechanisms.
    """

    names: tuple[str, ...] | None = None
    epsilons: tuple[str, ...] = ("0.01", "0.1")
    scales: tuple[int | None, ...] = (None,)
    draws: int = 1
    trials: int = 2
    ours: tuple[str, ...] = ("dawa",)


QUICK = Size(names=("ADULT", "HEPTH", "NETTRACE"), epsilons=("0.1",), trials=1)
DEFAULT = Size(trials=4)
FULL = Size(
    epsilons=("0.01", "0.05", "0.1", "0.5", "1"),
    scales=(None, 10**3, 10**4, 10**5, 10**6, 10**7),
    draws=5,
    trials=3,
    ours=OUR_MECHANISMS,
)


def run(
    data: Path,
    out: Path,
    *,
    quick: bool = False,
    seed: int = 0,
    report: Report = print,
    size: Size | None = None,
) -> list[Row]:
    """Carry out the experiment.

    Args:
        data: the folder with ``hist1d/*.n4096.npy``.
        out: the folder for tables and figures, created if it is missing.
        quick: three data sets, one budget, one trial.
        seed: seed of the noise and the random workloads.
        report: called with every line of progress.
        size: the size of the run; None for the default.

    Returns:
        One row for each data set, scale, budget and workload: the error of every mechanism, its
        standard error, and the ratio of our error to the best other one.
    """
    run_size = size or (QUICK if quick else DEFAULT)
    files = sorted((data / "hist1d").glob("*.n4096.npy"))
    if not files:
        raise InputError(
            f"The experiment needs histograms {data / 'hist1d'}/*.n4096.npy; got none. Say where "
            "they are: --data DIR."
        )
    out.mkdir(parents=True, exist_ok=True)
    histograms = {path.name.split(".")[0]: np.load(path).astype(np.int64) for path in files}
    histograms = {
        name: x
        for name, x in histograms.items()
        if run_size.names is None or name in run_size.names
    }
    rows: list[Row] = []
    for epsilon in run_size.epsilons:
        fixed = data_independent_errors(
            len(next(iter(histograms.values()))), epsilon, run_size, seed
        )
        for number, (name, x) in enumerate(histograms.items()):
            for scale in run_size.scales:
                if scale is None:
                    scaled = x
                else:
                    scaled = (
                        np.random.default_rng([seed, number])
                        .multinomial(scale, x / x.sum())
                        .astype(np.int64)
                    )
                errors_of_data = errors(scaled, epsilon, run_size, [seed, number, scale or 0])
                rows += summary(
                    {"data": name, "records": int(scaled.sum()), "epsilon": epsilon},
                    {**fixed, **errors_of_data},
                    WORKLOADS,
                )
            write(rows, out, MARKS, lambda _: None)
            report(f"epsilon {epsilon}, {name}: {line(rows, WORKLOADS)}")
    write(rows, out, MARKS, report)
    return rows


def ranges_of(workload: str, cells: int, seed: Sequence[int]) -> Ranges:
    """Draw a workload of the paper; clustered ranges are clipped at the ends.

    >>> ranges_of("identity", 3, [0]).high.tolist()
    [1, 2, 3]
    """
    generator = np.random.default_rng([*seed, WORKLOADS.index(workload)])
    if workload == "identity":
        return Ranges(np.arange(cells), np.arange(cells) + 1)
    if workload == "uniform":
        low, high = np.sort(generator.integers(0, cells, (2, _QUERIES)), axis=0)
        return Ranges(low, high + 1)
    deviation = 256 if workload == "clustered" else 1024
    centres = np.repeat(generator.integers(0, cells, 5), _QUERIES // 5)
    left, right = np.abs(generator.normal(0, deviation, (2, len(centres)))).astype(np.int64)
    return Ranges(np.maximum(centres - left, 0), np.minimum(centres + right, cells - 1) + 1)


@lru_cache(maxsize=4)
def best_data_independent(cells: int, query_set: str) -> Plan:
    """Return D: the best data-independent plan at epsilon 1."""
    name = "identity" if query_set == "identity" else "p_identity"
    candidate = next(
        iter(
            try_strategies(
                queries(Domain(cell=Integers(0, cells - 1)).as_complete(), cell=query_set),
                Privacy(PureDP(1)),
                name,
            )
        )
    )
    if candidate.plan is None:
        raise InputError(candidate.reason)
    return candidate.plan


@lru_cache(maxsize=64)
def plan_mechanism(cells: int, query_set: str, epsilon: str, strategy: str) -> Plan:
    """Plan our mechanism, which measures D if data-dependent choices do not help."""
    privacy = Privacy(PureDP(epsilon))
    workload = queries(Domain(cell=Integers(0, cells - 1)).as_complete(), cell=query_set)
    reference = evaluate_plan(
        workload, rescale_noise(best_data_independent(cells, query_set).measured(), privacy)
    )
    return plan_dawa(workload, privacy, strategy, reference=reference)


def errors(x: Wholes, epsilon: str, run_size: Size, seed: Sequence[int]) -> Errors:
    """Compute the errors of all data-dependent mechanisms."""
    cells = len(x)
    mechanism_errors = Errors()
    domain = Domain(cell=Integers(0, cells - 1)).as_complete()
    table = Table(domain, {"cell": np.repeat(np.arange(cells, dtype=np.int16), x)})
    product = queries(domain, cell="identity").products[0]
    for draw in range(run_size.draws):
        query_ranges = {
            workload: ranges_of(workload, cells, [*seed, draw]) for workload in WORKLOADS
        }
        for trial in range(run_size.trials):
            for number, strategy in enumerate(run_size.ours):
                for kind in ("identity", "all_ranges"):
                    entropy = _entropy([*seed, draw, trial, number, len(kind)])
                    estimate = (
                        simulated(plan_mechanism(cells, kind, epsilon, strategy), table, entropy)
                        .estimator()
                        .estimate(product)
                        .values
                    )
                    _add_of_kind(mechanism_errors, strategy, kind, query_ranges, estimate, x)
            for number, baseline in enumerate(ONE_DIMENSION):
                if baseline.name not in _FIXED_BASELINES:
                    _run(
                        mechanism_errors,
                        baseline,
                        x,
                        epsilon,
                        query_ranges,
                        [*seed, draw, trial, 100 + number],
                    )
    return mechanism_errors


def data_independent_errors(cells: int, epsilon: str, run_size: Size, seed: int) -> Errors:
    """Compute the errors of D and of other data-independent mechanisms.

    These errors do not depend on the data, so there are no records.
    """
    mechanism_errors = Errors()
    empty = np.zeros(cells, dtype=np.int64)
    table = Table(
        Domain(cell=Integers(0, cells - 1)).as_complete(), {"cell": np.zeros(0, dtype=np.int16)}
    )
    for trial in range(max(4, run_size.trials)):
        query_ranges = {
            workload: ranges_of(workload, cells, [seed, trial]) for workload in WORKLOADS
        }
        for number, baseline in enumerate(ONE_DIMENSION):
            if baseline.name in _FIXED_BASELINES and (trial < 2 or not baseline.aware):
                _run(
                    mechanism_errors, baseline, empty, epsilon, query_ranges, [seed, trial, number]
                )
        for kind in ("identity", "all_ranges"):
            measured = rescale_noise(
                best_data_independent(cells, kind).measured(), Privacy(PureDP(epsilon))
            )
            estimate = Estimate(simulate(measured, table, SeededEntropy(seed + trial))).marginal(
                ("cell",)
            )
            _add_of_kind(mechanism_errors, DATA_INDEPENDENT, kind, query_ranges, estimate, empty)
    return mechanism_errors


def _entropy(seed: Sequence[int]) -> SeededEntropy:
    """Return seeded noise."""
    return SeededEntropy(abs(hash(tuple(seed))) % 2**32)


def _add_of_kind(
    mechanism_errors: Errors,
    name: str,
    kind: str,
    query_ranges: Mapping[str, Ranges],
    estimate: Reals,
    x: Wholes,
) -> None:
    """Add the errors of the workloads for which a plan is optimised.

    These are cells (``identity``) or all ranges.
    """
    for workload, ranges in query_ranges.items():
        if (workload == "identity") == (kind == "identity"):
            add_error(mechanism_errors, name, workload, ranges, estimate, x)


def _run(
    mechanism_errors: Errors,
    baseline: Baseline,
    x: Wholes,
    epsilon: str,
    query_ranges: Mapping[str, Ranges],
    seed: Sequence[int],
) -> None:
    """Add the errors of a baseline.

    It runs once, or once per workload if it depends on the ranges.
    """
    if baseline.most_cells < len(x):
        return
    entropy = _entropy(seed)
    if baseline.aware:
        common = None
    else:
        common = baseline.run(x, epsilon, entropy)
    for workload, ranges in query_ranges.items():
        try:
            if common is None:
                estimate = baseline.run(x, epsilon, entropy, ranges)
            else:
                estimate = common
        except ValueError:
            # With few ranges, GreedyH can leave cells without any budget.
            continue
        add_error(mechanism_errors, baseline.label, workload, ranges, estimate, x)


if __name__ == "__main__":
    options = arguments(
        __doc__,
        data={"type": Path, "required": True},
        out={"type": Path, "default": Path("build/dawa")},
        full={
            "action": "store_true",
            "help": "all budgets, scales and mechanisms: a day of one core",
        },
        quick={"action": "store_true"},
    )
    run(
        options["data"],
        options["out"],
        quick=options["quick"],
        size=FULL if options["full"] else None,
    )
