"""Bounds on the rows of a unit in one cell: specs, plans, releases and promised errors."""

import math

import numpy as np
import pandas as pd
import pytest

import leastnoise as ln
from leastnoise import Coded, Domain, InputError, PerCellBound, Privacy
from leastnoise._error import lower_bound
from leastnoise._mechanisms import release_contract, try_strategies
from leastnoise._session import plan_spec
from leastnoise._spec import parse_spec, plan_warnings
from leastnoise._trusted.accounting import Noise
from leastnoise._trusted.kernel import SeededEntropy, UnpaidSeries
from session.releasing import manifest, report
from simulated import read_table

pytestmark = pytest.mark.usefixtures("kept_plans")

DOMAIN = Domain(month=Coded(12), store=Coded(5), size=Coded(2)).as_complete()
BOTH = ln.queries(DOMAIN, month="identity", store="identity") + ln.queries(
    DOMAIN, month="identity", size="identity"
)
UNIT = {"unit_column": "id", "max_rows": 6}
HALF_RHO = ln.ZCDP("1/2")


def privacy(bound, neighbours="add_remove", budget=HALF_RHO):
    """Return the privacy of units with a bound of rows in one cell."""
    return Privacy(budget, neighbours, **UNIT, max_per_cell=bound)


def customers(rng, people=300):
    """Draw customers with 1 to 9 rows each, most of them in different months."""
    ids = np.repeat(np.arange(people), rng.integers(1, 10, people))
    months = np.concatenate(
        [rng.permutation(12)[:count] for count in np.unique(ids, return_counts=True)[1]]
    )
    return pd.DataFrame(
        {
            "id": ids,
            "month": months,
            "store": rng.integers(0, 5, len(ids)),
            "size": rng.integers(0, 2, len(ids)),
        }
    )


# --- planning -------------------------------------------------------------------------------------


@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
@pytest.mark.parametrize(
    "workload",
    [BOTH, ln.marginals(DOMAIN, upto=2), ln.queries(DOMAIN, month="prefix", store="identity")],
    ids=str,
)
def test_cell_bound_improves_plans_down_to_the_bound(workload, neighbours):
    names = ("identity", "marginals", "residual", "workload", "gaussian_optimum")
    for bound in (
        PerCellBound(1, "month"),
        PerCellBound(2, "month"),
        PerCellBound(1, ["month", "store"]),
    ):
        unit = privacy(bound, neighbours)
        free = []
        bounded = []
        for name in names:
            free += try_strategies(workload, privacy(None, neighbours), name)
            bounded += try_strategies(workload, unit, name)
        assert all(
            candidate.total >= lower_bound(workload, unit, candidate.noise) * (1 - 1e-9)
            for candidate in bounded
        )
        assert min(candidate.total for candidate in bounded) < 0.95 * min(
            candidate.total for candidate in free
        )


def test_residual_attains_the_bound_without_coarser_tables():
    """k^2 / n is small compared with the needs of coarser tables: the closed form is optimal."""
    domain = Domain(month=Coded(40), size=Coded(2)).as_complete()
    unit = Privacy(
        ln.ZCDP("1/2"), unit_column="id", max_rows=3, max_per_cell=PerCellBound(1, "month")
    )
    plan = ln.plan(ln.marginals(domain, upto=2), unit, strategy="residual")
    assert plan.expected_error().total_squared_error == pytest.approx(
        lower_bound(plan.workload, unit, Noise.DISCRETE_GAUSSIAN), rel=1e-3
    )


def test_cell_bound_helps_gaussian_noise_only():
    bounded, unbounded = (
        ln.plan(BOTH, privacy(bound, budget=ln.PureDP(1)), strategy="marginals")
        for bound in (None, PerCellBound(1, "month"))
    )
    assert bounded.expected_error().tables == unbounded.expected_error().tables
    gaussian = ln.plan(
        ln.queries(DOMAIN, month="identity", store="identity"),
        privacy(PerCellBound(1, "month"), budget=ln.ZCDP("1/8")),
        strategy="identity",
    )
    # Six rows in six different cells.
    assert gaussian.expected_error().tables[0].rmse == pytest.approx(2 * math.sqrt(6), rel=1e-3)


# --- releasing ------------------------------------------------------------------------------------


@pytest.mark.parametrize("attributes", ["", ["month", ""], [5], [], ["month", "month"]])
def test_cell_bound_refuses_attributes_without_distinct_names(attributes):
    with pytest.raises(InputError, match="the attributes of max_per_cell must be"):
        PerCellBound(1, attributes)


def test_table_read_without_cell_bound_is_refused():
    frame = customers(np.random.default_rng(3), 20)
    loose, tight = (ln.plan(BOTH, privacy(bound)) for bound in (None, PerCellBound(1, "month")))
    for plan, other_plan in (
        (tight, loose),
        (loose, tight),
        (tight, ln.plan(BOTH, privacy(PerCellBound(2, "month")))),
    ):
        with pytest.raises(InputError, match="read for another privacy unit"):
            UnpaidSeries(release_contract(plan), read_table(other_plan, frame), SeededEntropy(1))


def test_release_states_cut_rows_and_shares_its_ledger(tmp_path):
    frame = customers(np.random.default_rng(4))
    ledger = ln.Ledger.create(tmp_path / "shop.ledger", "shop", Privacy(ln.ZCDP(2), **UNIT))
    plan = ln.plan(BOTH, privacy(PerCellBound(1, "month")), guard="1/100")
    ln.release(plan, frame, ledger=ledger, options=ln.Options(guard="1/100"), out=tmp_path / "out")
    assert manifest(tmp_path / "out")["privacy"]["unit"]["max_per_cell"] == {
        "rows": 1,
        "attributes": ["month"],
    }
    assert "Of these at most one is in any one cell of month" in report(tmp_path / "out")
    assert "without looking at anything else" in report(tmp_path / "out")
    ln.release(ln.plan(BOTH, privacy(None)), frame, ledger=ledger)
    assert [entry.state for entry in ledger.entries()] == ["sealed"] * 3


def test_new_ledger_holds_the_unit_and_not_the_bound(tmp_path):
    ln.release(
        ln.plan(BOTH, privacy(PerCellBound(1, "month"))),
        customers(np.random.default_rng(4), 9),
        ledger=tmp_path / "a.ledger",
    )
    assert ln.Ledger.open(tmp_path / "a.ledger").privacy == privacy(None)


def test_check_counts_rows_beyond_the_cell_bound():
    frame = pd.DataFrame(
        {"id": ["a"] * 4 + ["b"] * 2, "month": [0, 0, 1, 2, 5, 5], "store": 0, "size": 0}
    )
    findings = ln.check(
        BOTH, frame, unit_column="id", max_rows=2, max_per_cell=PerCellBound(1, "month")
    ).fit
    assert (findings.rows, findings.cut, findings.used) == (6, 3, 3)


# --- the spec -------------------------------------------------------------------------------------

SPEC = """
[privacy]
rho = "1/2"
unit = {{ column = "id", max_rows = 6{unit} }}
[domain.month]
size = 12
[domain.store]
size = 5
[domain.size]
size = 2
"""
TABLES = """
[[workload]]
queries = { month = "identity", store = "identity" }
[[workload]]
queries = { month = "identity", size = "identity" }
"""


def bound(tmp_path, unit, tables=TABLES):
    return parse_spec(SPEC.format(unit=unit) + tables, tmp_path).privacy.max_per_cell


def test_cell_bound_defaults_to_attributes_of_all_tables(tmp_path):
    assert bound(tmp_path, "") is None
    assert bound(tmp_path, ", max_per_cell = 1") == PerCellBound(1, "month")
    assert bound(tmp_path, ', max_per_cell = 2, cell = "store"') == PerCellBound(2, "store")
    assert bound(tmp_path, ', max_per_cell = 2, cell = ["month", "size"]') == PerCellBound(
        2, ["month", "size"]
    )


@pytest.mark.parametrize(
    ("unit", "message"),
    [
        (', cell = "month"', "left out where there is no max_per_cell"),
        (
            ', max_per_cell = 0, cell = "month"',
            "max_per_cell must be a whole number of at least 1; got 0",
        ),
        (', max_per_cell = 7, cell = "month"', "max_per_cell must be at most max_rows"),
        (", max_per_cell = 1, cell = 3", "cell must be an attribute or a list of them"),
    ],
    ids=["cell without a bound", "bound of 0", "bound above max_rows", "cell is a number"],
)
def test_invalid_cell_bounds_of_specs_are_refused(tmp_path, unit, message):
    with pytest.raises(InputError, match=message):
        bound(tmp_path, unit)


def test_cell_bound_must_name_its_attributes(tmp_path):
    with pytest.raises(InputError, match="max_per_cell must name the attributes of a cell"):
        bound(tmp_path, ", max_per_cell = 1", "[[workload]]\nmarginals = { ways = 1 }")


def test_useless_cell_bounds_are_refused_unplanned():
    for bound, message in (
        (
            PerCellBound(1, ["store", "size"]),
            "must be attributes of one requested table; got 'store, size'",
        ),
        (PerCellBound(1, "shop"), "shop"),
        (PerCellBound(1, "store"), "max_rows must be at most 5: 1 in each cell of store; got 6"),
    ):
        for refused in (ln.plan, ln.compare):
            with pytest.raises(InputError, match=message):
                refused(BOTH, privacy(bound))


def test_cell_bound_without_laplace_gain_is_warned_about(tmp_path):
    monthly_workload = (
        '[[workload]]\nmarginals = { ways = 1, of = ["month"] }\n[plan]\nstrategy = "identity"'
    )
    warnings = []
    for budget in ('rho = "1/2"', "epsilon = 1", 'epsilon = 1\ndelta = "1e-9"'):
        parsed_spec = parse_spec(
            SPEC.format(unit=", max_per_cell = 1").replace('rho = "1/2"', budget)
            + monthly_workload,
            tmp_path,
        )
        warnings.append(
            [
                sentence
                for sentence in plan_warnings(parsed_spec, plan_spec(parsed_spec))
                if "max_per_cell" in sentence
            ]
        )
    assert warnings[0] == []
    assert (
        "drops rows from counts of rows and from sums. Remove it, or state a budget for Gaussian "
        "noise: rho, or epsilon and delta." in warnings[1][0]
    )
    assert warnings[2] == [
        warnings[1][0].replace(
            ", or state a budget for Gaussian noise: rho, or epsilon and delta",
            ": Gaussian noise would be larger here",
        )
    ]
