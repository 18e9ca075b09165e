"""Measure the error and coverage of series, and compare three series with brute force.

Errors are compared with plans that release all periods at the end. The series in the comparison
with brute force have 24 months.

    python bench/series.py [--periods 8,24,64] [--months 24] [--seeds 10]
"""

import argparse
import datetime as dt
import os
import signal
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

import leastnoise as ln
from leastnoise._mechanisms import Search, release_contract
from leastnoise._plan import Plan
from leastnoise._planning import SeriesOptions, period_errors, series_plan, truncate_plan
from leastnoise._release import build_release
from leastnoise._session._release_job import read_table
from leastnoise._session._series_publication import combine_periods
from leastnoise._trusted.kernel import SeededEntropy, Series, UnpaidSeries
from leastnoise._trusted.kernel import _series as kernel

START = dt.date(2024, 1, 1)


def domain(days: int, groups: int = 1) -> ln.Domain:
    """Return a domain of days from 2024 on and groups."""
    return ln.Domain(
        day=ln.Dates(START, START + dt.timedelta(days - 1)), group=ln.Coded(groups)
    ).as_complete()


def workload(days: int, query_sets: Sequence[str], groups: int = 2) -> ln.Workload:
    """Build queries along time for all groups."""
    parts = [
        ln.queries(domain(days, groups), day=query_set, group="identity")
        for query_set in query_sets
    ]
    return sum(parts[1:], start=parts[0])


def plan_of_series(
    series_workload: ln.Workload, budget: ln.PureDP | ln.ZCDP | ln.ApproxDP, late_rows: str = "drop"
) -> Plan:
    """Plan a series."""
    return series_plan(
        series_workload, ln.Privacy(budget), SeriesOptions("day", late_rows), Search()
    )


def published(plan: Plan, values: Sequence[tuple[np.ndarray, ...]]) -> pd.DataFrame:
    """Return the answers of the periods drawn so far."""
    part = truncate_plan(plan, len(values))
    if part is None:
        return pd.DataFrame()
    return build_release(combine_periods(plan, part, values, "")).answers


def errors(periods: Sequence[int]) -> None:
    """Print the errors of the first published answers, and of the best plan at the end."""
    print(
        f"{'periods':>8} {'queries':16} {'budget':8} {'series':>10} {'at the end':>10} "
        f"{'ratio':>7} {'CPU s':>6}"
    )
    for days in periods:
        for query_sets in (("prefix",), ("identity",), ("prefix", "identity")):
            for budget in (ln.ZCDP("1/2"), ln.PureDP(1)):
                if isinstance(budget, ln.PureDP) and days > 128:
                    continue
                start = time.process_time()
                plan = plan_of_series(workload(days, query_sets), budget)
                seconds = time.process_time() - start
                rows = list(period_errors(plan).values())
                # Two groups have the same error.
                first_error = 2 * sum(
                    error**2 for row in rows for error in row if error is not None
                )
                error_at_end = ln.plan(plan.workload, budget).expected_error().total_squared_error
                name = type(budget).__name__
                ratio = first_error / error_at_end
                print(
                    f"{days:8} {'+'.join(query_sets):16} {name:8} {first_error:10.4g} "
                    f"{error_at_end:10.4g} {ratio:7.4f} {seconds:6.2f}"
                )


def coverage(days: int, seeds: int) -> None:
    """Print how many intervals contain the truth in the release of each period."""
    rng = np.random.default_rng(1)
    groups = 50
    frame = pd.DataFrame(
        {"day": pd.Timestamp(START) + pd.to_timedelta(rng.integers(days, size=20_000), "D")}
    )
    frame["group"] = rng.zipf(1.5, size=len(frame)) % groups
    for budget in (ln.ZCDP("1/8"), ln.ApproxDP(1, "1e-6"), ln.PureDP(1)):
        plan = plan_of_series(workload(days, ("prefix", "identity"), groups), budget)
        truth = (
            pd.crosstab(frame["group"], frame["day"])
            .reindex(index=range(groups), fill_value=0)
            .to_numpy()
            .T
        )
        table = read_table(plan, frame)
        covered = np.zeros(days)
        with tempfile.TemporaryDirectory() as folder:
            for seed in range(seeds):
                series = UnpaidSeries(release_contract(plan), table, SeededEntropy(seed))
                values = []
                for period in range(days):
                    values.append(series.period(Path(folder, str(seed))))
                    answers = published(plan, values)
                    right = np.concatenate(
                        [truth[: period + 1].cumsum(axis=0).ravel(), truth[: period + 1].ravel()]
                    )
                    covered[period] += (
                        (answers["low"] <= right) & (right <= answers["high"])
                    ).mean() / seeds
        print(
            f"coverage at 0.95 over {days} periods, {type(budget).__name__:8}: least "
            f"{covered.min():.4f}, mean {covered.mean():.4f}"
        )


def against_brute_force(months: int) -> None:
    """Compare series with brute force, with nearly no noise.

    Rows arrive late and disappear, periods are empty, and a run is killed.
    """
    for number, (late, empty) in enumerate(
        [("drop", False), ("arrival", False), ("arrival", True)]
    ):
        rng = np.random.default_rng(number)
        plan = plan_of_series(workload(months, ("identity",), 3), ln.ZCDP(2000), late)
        rows = pd.DataFrame({"day": [], "group": []})
        counted = np.zeros((months, 3), int)
        largest_counts = np.zeros((months, 3), int)
        with tempfile.TemporaryDirectory() as folder:
            ledger = ln.Ledger.create(Path(folder, "x.ledger"), "x", plan.privacy)
            state = Path(folder, "private")
            contract = release_contract(plan)
            values: list[tuple[np.ndarray, ...]] = []
            with ledger.running(2**20) as run:
                Series.paid(contract, None, ledger, output="nowhere", run=run)
            for month in range(months):
                if empty and month % 5 == 3:
                    fresh = 0
                else:
                    fresh = int(rng.integers(5, 40))
                dates = np.concatenate(
                    [np.full(fresh, month), rng.integers(0, month + 1, size=rng.integers(0, 8))]
                )
                arrivals = pd.DataFrame({"day": dates, "group": rng.integers(3, size=len(dates))})
                rows = pd.concat(
                    [rows.drop(rows.sample(frac=0.02, random_state=month).index), arrivals],
                    ignore_index=True,
                ).astype(int)
                now = (
                    pd.crosstab(rows["day"], rows["group"])
                    .reindex(index=range(months), columns=range(3), fill_value=0)
                    .to_numpy()
                )
                counted[month] = now[month]  # the expected counts, by the rule of each row
                if late == "arrival":
                    for before in range(month):
                        for group in range(3):
                            counted[month, group] += max(
                                0, now[before, group] - largest_counts[before, group]
                            )
                    largest_counts[: month + 1] = np.maximum(
                        largest_counts[: month + 1], now[: month + 1]
                    )
                frame = pd.DataFrame(
                    {
                        "day": pd.Timestamp(START) + pd.to_timedelta(rows["day"], "D"),
                        "group": rows["group"],
                    }
                )
                table = read_table(plan, frame)
                for killed in [True, False] if month == months // 2 else [False]:
                    series = Series.resumed(
                        contract,
                        table,
                        ledger,
                        receipt := ledger.take_over(ledger.entries()[0], f"{month} {killed}"),
                    )
                    if killed:  # after the private file was written, before the ledger has the rows
                        child = os.fork()
                        if not child:
                            setattr(  # noqa: B010
                                kernel,
                                "answers_of_last_period",
                                lambda *_: os.kill(os.getpid(), signal.SIGKILL),
                            )  # noqa: B010, RUF100
                            resumed = Series.resumed(contract, table, ledger, receipt)
                            for _ in range(month + 1):
                                resumed.period(state)
                        os.waitpid(child, 0)
                        continue
                    values = [series.period(state) for _ in range(month + 1)]
        answers = published(plan, values)["answer"].to_numpy().reshape(months, 3)
        wrong = int((np.rint(answers) != counted).sum())
        summary = (
            f"series {number + 1}, {months} months, late = {late}: "
            f"{wrong} of {counted.size} counts are wrong"
        )
        print(f"{'!' * bool(wrong)}{summary}")


def main() -> None:
    """Run all measurements."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--periods", default="8,24,64,365", help="numbers of periods for the table of errors"
    )
    parser.add_argument(
        "--months", type=int, default=24, help="length of the series in the brute force comparison"
    )
    parser.add_argument(
        "--seeds", type=int, default=10, help="runs for the coverage over 12 periods; 0 for none"
    )
    options = parser.parse_args()
    errors([int(text) for text in options.periods.split(",")])
    if options.seeds:
        coverage(12, options.seeds)
    against_brute_force(options.months)


if __name__ == "__main__":
    main()
