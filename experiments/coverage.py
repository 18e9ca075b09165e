"""Measure the coverage of all published intervals at a nominal level of 95%.

The study has all planners, budgets and estimates, and data-dependent mechanisms on data of many
shapes.

    leastnoise experiments coverage [--data DIR] [--out DIR] [--quick]

The data are synthetic; with a folder of real data the study also reads its histograms and tables.
Noise comes from a seed. The study writes the file `tables.md`, the source of the tables in
`docs/results/coverage.md`.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from experiments.common import Report, Row, geometric_mean, write_csv
from experiments.coverage_aware import Case, along, on_plane, quick_strategies
from experiments.coverage_linear import estimates, functions, planners
from experiments.coverage_shapes import histograms, real_histograms, real_tables, tables
from experiments.coverage_sums import BUDGETS as SUMS
from experiments.coverage_sums import (
    THRESHOLD_BUDGETS,
    amounts,
    of_all_values,
    of_cut_values,
    of_groups,
    real_amounts,
)
from leastnoise._trusted.accounting import ZCDP, ApproxDP, Budget, PureDP

BUDGETS: dict[str, Budget] = {
    "epsilon": PureDP("1/2"),
    "rho": ZCDP("1/3"),
    "epsilon, delta": ApproxDP(1, "1e-6"),
}
ALL = ("dawa", "dawa_levels")
_DOUBTFUL = 0.92  # share of covered answers below which a data set is simulated again
_AGAIN = 32  # releases of the second simulation


def run(
    data: Path | None, out: Path, *, quick: bool = False, seed: int = 0, report: Report = print
) -> dict[str, list[Row]]:
    """Carry out the study.

    Args:
        data: the folder with ``hist1d`` and ``hist2d``; None for only synthetic data.
        out: the folder for the tables, created if it is missing.
        quick: few shapes and releases.
        seed: seed of the noise and the synthetic data.
        report: called with every line of progress.

    Returns:
        The written rows of the two parts: ``linear`` and ``aware``.
    """
    out.mkdir(parents=True, exist_ok=True)
    linear = run_data_independent(quick=quick, seed=seed)
    report(f"{len(linear)} planners, budgets, workloads and estimates")
    aware: list[Row] = []
    for case_rows in run_data_dependent(data, quick=quick, seed=seed):
        aware += case_rows
        lowest = min(case_rows, key=lambda row: float(row["coverage"]))
        report(
            f"{lowest['group']}, {lowest['of']}: least {lowest['coverage']:.3f} "
            f"({lowest['strategy']}, {lowest['data']}, {lowest['queries']})"
        )
        write(linear, aware, out)
    report(f"Tables are in {out}.")
    return {"linear": linear, "aware": aware}


def run_data_independent(*, quick: bool, seed: int) -> list[Row]:
    """Run the part of the study that does not depend on data."""
    if quick:
        names = ("identity", "hierarchy", "residual")
    else:
        names = None
    rows = list(planners(BUDGETS, 8 if quick else 25, seed, names))
    return [
        *rows,
        *estimates(BUDGETS, 2 if quick else 20, seed),
        *functions(BUDGETS, 4 if quick else 60, seed),
    ]


def run_data_dependent(data: Path | None, *, quick: bool, seed: int) -> Iterator[list[Row]]:
    """Run the data-dependent part, and yield the rows of each case."""
    with quick_strategies():
        for case in cases(data, quick=quick, seed=seed):
            case_rows = simulate_case(case, seed)
            yield case_rows if quick else repeat_doubtful(case, case_rows, seed + 1000)
        yield from run_sums(data, quick=quick, seed=seed)


def run_sums(data: Path | None, *, quick: bool, seed: int) -> Iterator[list[Row]]:
    """Run sums of a number with a threshold and of all values, also by group."""
    shapes = amounts(seed)
    if quick:
        few = {name: shapes[name] for name in ("log-normal", "few large")}
        case = Case(group="made up", data=few, budget=PureDP("1/10"))
        yield [row for of in (of_cut_values, of_all_values, of_groups) for row in of(case, seed)]
        return
    three = {name: shapes[name] for name in ("log-normal", "few large", "Pareto 1.2")}
    for budget in SUMS:
        every = Case(group="made up", data=shapes, budget=budget, trials=40)
        cases: list[tuple[Callable[[Case, int], Iterator[Row]], Case]] = [
            (of_all_values, every),
            (of_groups, every),
        ]
        if data is not None:
            cases.append(
                (
                    of_all_values,
                    replace(every, group="real", data=real_amounts(data, seed), trials=20),
                )
            )
        if budget in THRESHOLD_BUDGETS:
            cases.append((of_cut_values, replace(every, data=three, trials=20)))
        for of, case in cases:
            yield replace_doubtful(
                list(of(case, seed)),
                partial(of, replace(case, trials=2 * case.trials), seed + 1000),
            )


def write(linear: Sequence[Row], aware: Sequence[Row], out: Path) -> None:
    """Write all rows, and the tables of the documentation."""
    for name, rows in (("linear", linear), ("aware", aware)):
        write_csv(out / f"{name}.csv", rows)
    (out / "tables.md").write_text(
        "\n".join([*linear_table(linear), "", *summary_table(aware), "", *aware_table(aware)])
        + "\n",
        encoding="utf-8",
    )


def simulate_case(case: Case, seed: int) -> list[Row]:
    """Run the releases of a case and return its rows."""
    plane = next(iter(case.data.values())).ndim == 2
    return list((on_plane if plane else along)(case, seed))


def repeat_doubtful(case: Case, rows: Sequence[Row], seed: int) -> list[Row]:
    """Run the doubtful strategies of a case again, with many releases and another seed.

    Doubtful strategies had a low share on a data set. Their rows are replaced.
    """

    def again() -> Iterator[Row]:
        """Yield the rows of the second run."""
        for strategy, name in _doubtful(rows):
            yield from simulate_case(
                replace(case, data={name: case.data[name]}, strategies=(strategy,), trials=_AGAIN),
                seed,
            )

    return replace_doubtful(rows, again)


def _doubtful(rows: Sequence[Row]) -> list[tuple[str, str]]:
    """Return the pairs of strategy and data set with a low share of covered answers."""
    return sorted(
        {
            (row["strategy"], row["data"])
            for row in rows
            if row["coverage"] < _DOUBTFUL and row["releases"] > 1
        }
    )


def replace_doubtful(rows: Sequence[Row], again: Callable[[], Iterable[Row]]) -> list[Row]:
    """Replace the rows of doubtful strategies by rows of a second run.

    All answers of a release share its noise, so the share of few releases is uncertain by several
    percent, and the smallest of many shares is below the true share. The second run is independent
    of the first, so its shares are not selected for being low or high.
    """
    doubtful = _doubtful(rows)
    reliable = [row for row in rows if (row["strategy"], row["data"]) not in doubtful]
    if not doubtful:
        return reliable
    repeated = [row for row in again() if (row["strategy"], row["data"]) in doubtful]
    return [*reliable, *repeated]


def cases(data: Path | None, *, quick: bool, seed: int) -> Iterator[Case]:
    """Yield the cases of the data-dependent part.

    The intervals were designed with the shapes "looked at", and without the shapes "held back".
    """
    if quick:
        few = {
            name: x
            for name, x in histograms(64, 2000, seed).items()
            if name in ("empty", "sparse", "plateaus", "rough")
        }
        yield Case(group="made up", data=few, budget=PureDP("1/2"), trials=6)
        few = {
            name: x
            for name, x in tables(16, 2000, seed).items()
            if name in ("sparse", "blocks", "rough")
        }
        yield Case(group="made-up tables", data=few, budget=PureDP(1), trials=6)
        return
    if data is not None:
        real = Case(
            group="real", data=real_histograms(data, 1024), budget=PureDP("1/10"), trials=12
        )
        yield real
        yield replace(real, budget=PureDP("1/100"))
        yield replace(real, data=real_histograms(data, 4096), budget=PureDP("1/100"), trials=6)
    plane = Case(
        group="made-up tables", data=tables(64, 10**5, seed), budget=PureDP("1/10"), trials=6
    )
    for epsilon in ("1/100", "1/10", "1"):
        for few_cells in (False, True):
            suffix = ", queries of few cells" if few_cells else ""
            yield replace(
                plane, group=f"{plane.group}{suffix}", budget=PureDP(epsilon), few=few_cells
            )
            if data is not None:
                yield replace(
                    plane,
                    group=f"real tables{suffix}",
                    data=real_tables(data, 64),
                    budget=PureDP(epsilon),
                    few=few_cells,
                )
    development = Case(
        group="made up, looked at",
        data=histograms(256, 10**5, seed),
        budget=PureDP("1/10"),
        trials=6,
    )
    yield development
    yield replace(development, data=histograms(256, 10**3, seed))
    validation = replace(development, group="made up, held back", strategies=ALL)
    yield replace(validation, data=histograms(64, 10**3, seed + 1), budget=PureDP(1))
    easy = {
        name: x
        for name, x in histograms(4096, 10**5, seed + 4).items()
        if name in ("empty", "even", "sparse", "plateaus", "one cell")
    }
    yield replace(validation, data=easy, budget=PureDP("1/100"), strategies=("dawa",))
    yield replace(validation, data=histograms(150, 5000, seed + 2), budget=ZCDP("1/200"))
    yield replace(validation, data=histograms(150, 5000, seed + 3), budget=ApproxDP("1/10", "1e-9"))
    yield replace(validation, data=histograms(500, 10**6, seed + 1), strategies=ALL[:2])


def linear_table(rows: Sequence[Row]) -> list[str]:
    """Return the table of linear strategies, with budgets as columns.

    Each line is an estimate and a strategy; brackets contain the worst table of any workload.
    """
    budgets = list(dict.fromkeys(row["budget"] for row in rows))
    lines = [
        f"| estimate | strategy | {' | '.join(budgets)} |",
        f"|---|---|{'--:|' * len(budgets)}",
    ]
    for estimate, strategy in dict.fromkeys((row["estimate"], row["strategy"]) for row in rows):
        matching = [
            row for row in rows if (row["estimate"], row["strategy"]) == (estimate, strategy)
        ]
        shown = [
            _share([row for row in matching if row["budget"] == budget], "worst table")
            for budget in budgets
        ]
        lines.append(f"| {estimate} | {strategy} | {' | '.join(shown)} |")
    return lines


def _share(rows: Sequence[Row], worst_column: str) -> str:
    """Return the share of covered answers, and the worst share in brackets."""
    if not rows:
        return ""
    mean = np.mean([row["coverage"] for row in rows])
    worst = min(row[worst_column] for row in rows)
    return f"{mean:.3f} ({worst:.2f})"


def summary_table(rows: Sequence[Row]) -> list[str]:
    """Return a line per strategy and group of data, over all regimes.

    It has the mean, the worst data set and kind of query, and the number of low releases.
    """
    lines = [
        (
            "| strategy | data | covered | worst data set and queries | its releases | releases "
            "below 90% |"
        ),
        "|---|---|--:|---|--:|--:|",
    ]
    for strategy, group in dict.fromkeys((row["strategy"], row["group"]) for row in rows):
        matching = [row for row in rows if (row["strategy"], row["group"]) == (strategy, group)]
        releases = sum(row["releases"] for row in matching)
        sets = [
            [row for row in matching if _query_source(row) == source]
            for source in dict.fromkeys(_query_source(row) for row in matching)
        ]
        lowest_rows = min(sets, key=_mean)
        lowest_text = (
            f"{_mean(lowest_rows):.3f} ({lowest_rows[0]['data']}, {lowest_rows[0]['queries']}) | "
            f"{sum(row['releases'] for row in lowest_rows)}"
        )
        lines.append(
            f"| {strategy} | {group} | {_mean(matching):.3f} | {lowest_text} | "
            f"{sum(row['below'] for row in matching) / releases:.1%} |"
        )
    return lines


def _query_source(row: Row) -> tuple[str, ...]:
    """Return the data set, the source of the data and the kind of query of a row."""
    return row["data"], row["of"], row["queries"]


def _mean(rows: Sequence[Row]) -> float:
    """Return the mean share of covered answers, weighted by releases."""
    return float(
        np.average([row["coverage"] for row in rows], weights=[row["releases"] for row in rows])
    )


def aware_table(rows: Sequence[Row]) -> list[str]:
    """Return a line per strategy, regime and budget.

    Each line has the mean share, and the lowest share of a data set and query with at least six
    releases.
    """
    lines = [
        (
            "| strategy | regime | budget | covered | worst data set | releases below 90% | width "
            "/ error |"
        ),
        "|---|---|---|--:|---|--:|--:|",
    ]
    keys = ("strategy", "regime", "budget")
    settings = dict.fromkeys(tuple(row[name] for name in keys) for row in rows)
    return lines + [
        f"| {' | '.join(setting)} | "
        f"{_summary(row for row in rows if tuple(row[name] for name in keys) == setting)} |"
        for setting in settings
    ]


def _summary(rows: Iterable[Row]) -> str:
    """Return the mean and lowest share, the number of low releases, and the mean width."""
    all_rows = list(rows)
    often = [row for row in all_rows if row["releases"] >= 6]
    releases = sum(row["releases"] for row in all_rows)
    if often:
        lowest = min(often, key=lambda row: float(row["coverage"]))
    else:
        lowest = None
    if lowest:
        lowest_text = f"{lowest['coverage']:.2f} ({lowest['data']}, {lowest['queries']})"
    else:
        lowest_text = "-"
    width = geometric_mean(row["width"] for row in all_rows)
    return (
        f"{_mean(all_rows):.3f} | {lowest_text} | {sum(row['below'] for row in all_rows)} "
        f"of {releases} | {width:.1f}"
    )
