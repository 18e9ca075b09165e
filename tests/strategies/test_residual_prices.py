"""Budgets of contrasts and totals for units with few rows in a cell."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize_scalar

import leastnoise as ln
from simulated import releases

pytestmark = pytest.mark.usefixtures("kept_plans")


def months_plan(months, rows, in_cell, **options):
    domain = ln.Domain(month=ln.Coded(months))
    privacy = ln.Privacy(
        ln.ZCDP("1/50"),
        unit_column="id",
        max_rows=rows,
        max_per_cell=ln.PerCellBound(in_cell, "month"),
    )
    return ln.plan(ln.queries(domain, month="identity"), privacy, **options)


def least_rmse(months, rows, in_cell):
    """Return the least error of contrasts and a total for the worst number of rows."""
    numbers = np.arange(rows + 1)
    squares = numbers // in_cell * in_cell**2 + (numbers % in_cell) ** 2

    def variance(log_share):
        share = math.exp(log_share)
        cost = (squares - (1 - share) / months * numbers**2).max()
        return float(cost * (months - 1 + 1 / share) / months)

    tried = [
        minimize_scalar(variance, bounds=(low, low + 3), method="bounded") for low in range(-9, 9)
    ]
    return math.sqrt(min(candidate.fun for candidate in tried) / (2 / 50))


@pytest.mark.parametrize(
    ("months", "rows", "in_cell"), [(50, 50, 1), (12, 12, 1), (12, 17, 2), (7, 3, 3), (2, 2, 1)]
)
def test_auto_finds_the_best_share_of_the_total(months, rows, in_cell):
    rmse = months_plan(months, rows, in_cell).expected_error().tables[0].rmse
    assert rmse <= least_rmse(months, rows, in_cell) * 1.001


def test_residual_of_fifty_months_is_near_the_lower_bound():
    """Cells of fifty months have an error 1.768 times the lower bound."""
    expected_error = months_plan(50, 50, 1).expected_error()
    assert expected_error.total_squared_error < 1.01**2 * expected_error.lower_bound
    cells = months_plan(50, 50, 1, strategy="identity").expected_error()
    assert cells.total_squared_error > 3 * expected_error.total_squared_error


def test_unit_counts_share_the_budget_as_rows_in_months_do():
    domain = ln.Domain(month=ln.Coded(50))
    privacy = ln.Privacy(ln.ZCDP("1/50"), unit_column="id", max_rows=50)
    plan = ln.plan(ln.queries(domain, month="identity", count="units"), privacy)
    of_rows = months_plan(50, 50, 1).expected_error().tables[0].rmse
    assert plan.expected_error().tables[0].rmse == pytest.approx(of_rows, rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("units", [False, True], ids=["sums", "units"])
def test_several_tables_have_the_errors_promised(units):
    """Answers about no rows are noise, the mean square of which is the variance."""
    domain = ln.Domain(
        month=ln.Coded(24), sex=ln.Coded(2), measures={"pay": ln.Measure("pay", 0, 9)}
    )
    workload = ln.marginals(domain, upto=1) + ln.queries(domain, month="identity", sex="identity")
    bound = None
    if units:
        workload += ln.queries(domain, month="identity", count="units")
    else:
        workload += ln.queries(domain, month="identity", sum="pay")
        bound = ln.PerCellBound(1, "month")
    privacy = ln.Privacy(ln.ZCDP("1/50"), unit_column="id", max_rows=24, max_per_cell=bound)
    plan = ln.plan(workload, privacy)
    expected_error = plan.expected_error()
    assert plan.strategy == "residual"
    assert expected_error.lower_bound <= expected_error.total_squared_error
    nobody = pd.DataFrame({"id": [], "month": [], "sex": [], "pay": []}).astype("int64")
    runs = [*releases(plan, nobody, range(100))]
    for place, table in enumerate(expected_error.tables):
        squares = np.mean([run.tables[place].answer ** 2 for run in runs])
        assert np.sqrt(squares) == pytest.approx(table.rmse, rel=0.35 if place == 0 else 0.12)


def test_spaces_of_other_attributes_share_the_budget():
    domain = ln.Domain(month=ln.Coded(12), sex=ln.Coded(2), age=ln.Coded(10))
    privacy = ln.Privacy(
        ln.ZCDP("1/50"), unit_column="id", max_rows=12, max_per_cell=ln.PerCellBound(1, "month")
    )
    for workload, gain in (
        (ln.marginals(domain, ways=1), 1.4),
        (ln.marginals(domain, ways=3), 1.03),
    ):
        errors = [
            ln.plan(workload, privacy, strategy=name).expected_error().total_squared_error
            for name in ("residual", "identity")
        ]
        assert gain**2 * errors[0] < errors[1]
