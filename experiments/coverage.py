"""Measure the coverage of all published intervals at a nominal level of 95%.

The study has all planners, budgets and estimates, and data-dependent mechanisms on data
of many shapes.

    leastnoise experiments coverage [--data ../shared/data] [--out DIR] [--quick]

Nominal 95%. Data are made up; with a folder of real ones their histograms and tables are read too.
Noise comes from a seed. The tables of `docs/results/coverage.md` are drawn from the file
`tables.md` that this writes.
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
    CUT,
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
# share below which a data set is drawn again, and how often
_DOUBTFUL = 0.92
_AGAIN = 32


def run(
    data: Path | None, out: Path, *, quick: bool = False, seed: int = 0, report: Report = print
) -> dict[str, list[Row]]:
    """Carry out the study.

    Args:
        data: the folder with ``hist1d`` and ``hist2d``; None for made-up data alone.
        out: where the tables go; made if it is not there.
        quick: few shapes and releases.
        seed: of noise and made-up data.
        report: called with every line to be shown.

    Returns:
        Rows of the two parts, as written: ``linear`` and ``aware``.
    """
    out.mkdir(parents=True, exist_ok=True)
    linear = planned(quick=quick, seed=seed)
    report(f"{len(linear)} planners, budgets, workloads and estimates")
    aware: list[Row] = []
    for found in looking(data, quick=quick, seed=seed):
        aware += found
        least = min(found, key=lambda row: float(row["coverage"]))
        report(
            f"{least['group']}, {least['of']}: least {least['coverage']:.3f} "
            f"({least['strategy']}, {least['data']}, {least['queries']})"
        )
        write(linear, aware, out)
    report(f"Tables are in {out}.")
    return {"linear": linear, "aware": aware}


def planned(*, quick: bool, seed: int) -> list[Row]:
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


def looking(data: Path | None, *, quick: bool, seed: int) -> Iterator[list[Row]]:
    """Run the data-dependent part, and yield the rows of each case."""
    with quick_strategies():
        for case in cases(data, quick=quick, seed=seed):
            found = drawn(case, seed)
            yield found if quick else drawn_again(case, found, seed + 1000)
        yield from summing(data, quick=quick, seed=seed)


def summing(data: Path | None, *, quick: bool, seed: int) -> Iterator[list[Row]]:
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
        if budget in CUT:
            cases.append((of_cut_values, replace(every, data=three, trials=20)))
        for of, case in cases:
            yield replaced(
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


def drawn(case: Case, seed: int) -> list[Row]:
    """Run the releases of a case and return its rows."""
    plane = next(iter(case.data.values())).ndim == 2
    return list((on_plane if plane else along)(case, seed))


def drawn_again(case: Case, rows: Sequence[Row], seed: int) -> list[Row]:
    """Run the doubtful strategies of a case again, with many releases and another seed.

    Doubtful strategies had a low share on a data set. Their rows are replaced.
    """

    def again() -> Iterator[Row]:
        """Yield the rows of the second run."""
        for strategy, name in _doubtful(rows):
            yield from drawn(
                replace(case, data={name: case.data[name]}, strategies=(strategy,), trials=_AGAIN),
                seed,
            )

    return replaced(rows, again)


def _doubtful(rows: Sequence[Row]) -> list[tuple[str, str]]:
    """Return the pairs of strategy and data set with a low share of covered answers."""
    return sorted(
        {
            (row["strategy"], row["data"])
            for row in rows
            if row["coverage"] < _DOUBTFUL and row["releases"] > 1
        }
    )


def replaced(rows: Sequence[Row], again: Callable[[], Iterable[Row]]) -> list[Row]:
    """Replace the rows of doubtful strategies by rows of a second run.

    All answers of a release share its noise, so the share of few releases is uncertain by several
    percent; the least of many shares is below what is true. The second draw does not know the
    first, so its shares are not chosen for being low or high.
    """
    doubtful = _doubtful(rows)
    kept = [row for row in rows if (row["strategy"], row["data"]) not in doubtful]
    return [
        *kept,
        *(
            row
            for row in (again() if doubtful else ())
            if (row["strategy"], row["data"]) in doubtful
        ),
    ]


def cases(data: Path | None, *, quick: bool, seed: int) -> Iterator[Case]:
    """Yield the cases of the data-dependent part.

    The shapes "looked at" were seen when the intervals were designed; the others were not.
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
        for alone in (False, True):
            more = ", queries of few cells" if alone else ""
            yield replace(plane, group=f"{plane.group}{more}", budget=PureDP(epsilon), few=alone)
            if data is not None:
                yield replace(
                    plane,
                    group=f"real tables{more}",
                    data=real_tables(data, 64),
                    budget=PureDP(epsilon),
                    few=alone,
                )
    seen = Case(
        group="made up, looked at",
        data=histograms(256, 10**5, seed),
        budget=PureDP("1/10"),
        trials=6,
    )
    yield seen
    yield replace(seen, data=histograms(256, 10**3, seed))
    held = replace(seen, group="made up, held back", strategies=ALL)
    yield replace(held, data=histograms(64, 10**3, seed + 1), budget=PureDP(1))
    easy = {
        name: x
        for name, x in histograms(4096, 10**5, seed + 4).items()
        if name in ("empty", "even", "sparse", "plateaus", "one cell")
    }
    yield replace(held, data=easy, budget=PureDP("1/100"), strategies=("dawa",))
    yield replace(held, data=histograms(150, 5000, seed + 2), budget=ZCDP("1/200"))
    yield replace(held, data=histograms(150, 5000, seed + 3), budget=ApproxDP("1/10", "1e-9"))
    yield replace(held, data=histograms(500, 10**6, seed + 1), strategies=ALL[:2])


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
        own = [row for row in rows if (row["estimate"], row["strategy"]) == (estimate, strategy)]
        shown = [
            _share([row for row in own if row["budget"] == budget], "worst table")
            for budget in budgets
        ]
        lines.append(f"| {estimate} | {strategy} | {' | '.join(shown)} |")
    return lines


def _share(rows: Sequence[Row], worst: str) -> str:
    """Return the share of covered answers, and the worst share in brackets."""
    if not rows:
        return ""
    return (
        f"{np.mean([row['coverage'] for row in rows]):.3f} ({min(row[worst] for row in rows):.2f})"
    )


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
        own = [row for row in rows if (row["strategy"], row["group"]) == (strategy, group)]
        releases = sum(row["releases"] for row in own)
        sets = [
            [row for row in own if _place(row) == place]
            for place in dict.fromkeys(_place(row) for row in own)
        ]
        worst = min(sets, key=_mean)
        told = (
            f"{_mean(worst):.3f} ({worst[0]['data']}, {worst[0]['queries']}) | "
            f"{sum(row['releases'] for row in worst)}"
        )
        lines.append(
            f"| {strategy} | {group} | {_mean(own):.3f} | {told} | "
            f"{sum(row['below'] for row in own) / releases:.1%} |"
        )
    return lines


def _place(row: Row) -> tuple[str, ...]:
    """Return the data set, the source of the data and the kind of query of a row."""
    return row["data"], row["of"], row["queries"]


def _mean(rows: Sequence[Row]) -> float:
    """Return the mean share of covered answers, weighted by releases."""
    return float(
        np.average([row["coverage"] for row in rows], weights=[row["releases"] for row in rows])
    )


def aware_table(rows: Sequence[Row]) -> list[str]:
    """Return a line per strategy, regime and budget.

    It has the mean share and the lowest of a data set and query with six releases or more.
    """
    lines = [
        (
            "| strategy | regime | budget | covered | worst data set | releases below 90% | width "
            "/ error |"
        ),
        "|---|---|---|--:|---|--:|--:|",
    ]
    keys = ("strategy", "regime", "budget")
    ways = dict.fromkeys(tuple(row[name] for name in keys) for row in rows)
    return lines + [
        f"| {' | '.join(way)} | "
        f"{_summary(row for row in rows if tuple(row[name] for name in keys) == way)} |"
        for way in ways
    ]


def _summary(rows: Iterable[Row]) -> str:
    """Return the mean and lowest share, the number of low releases, and the mean width."""
    own = list(rows)
    often = [row for row in own if row["releases"] >= 6]
    releases = sum(row["releases"] for row in own)
    if often:
        worst = min(often, key=lambda row: float(row["coverage"]))
    else:
        worst = None
    if worst:
        told = f"{worst['coverage']:.2f} ({worst['data']}, {worst['queries']})"
    else:
        told = "-"
    width = geometric_mean(row["width"] for row in own)
    return (
        f"{_mean(own):.3f} | {told} | {sum(row['below'] for row in own)} "
        f"of {releases} | {width:.1f}"
    )
