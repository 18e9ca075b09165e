"""Improved answers of a release: their description, their limits, and early refusals."""

import json

import numpy as np
import pandas as pd
import pytest

import leastnoise as ln
from example_releases import write
from leastnoise._domain import Domain, Integers, Measure
from leastnoise._error import evaluate_plan
from leastnoise._estimation import Estimate, Outcome, locally_non_negative, nnls
from leastnoise._release import Options, build_release, check_options, find_table_position
from leastnoise._trusted.accounting import Noise, Privacy, PureDP
from leastnoise._trusted.check import InputError
from leastnoise._trusted.linop import Identity, Ranges, Tree
from leastnoise._trusted.measurements import Block, Factor, Measurements, Observation
from leastnoise._workload import marginals, queries

DOMAIN = Domain(
    sex=["F", "M"], age=Integers(0, 7), measures={"debt": Measure("debt", -3, 3)}
).as_complete()
SEX = Factor(("sex",), Identity(2))
AGE = Factor(("age",), Identity(8))
CELLS = Block((SEX, AGE), 5)
ODD = Domain(sex=["F", "M"], age=Integers(0, 4999)).as_complete()


def plan_of_blocks(workload, *blocks):
    """Return the plan that measures these blocks."""
    measured = Measurements(
        domain=workload.domain,
        privacy=Privacy(PureDP(9)),
        noise=Noise.DISCRETE_LAPLACE,
        blocks=blocks,
    )
    return evaluate_plan(workload, measured, "odd")


def observed(plan):
    """Return an outcome of a plan with random values."""
    random = np.random.default_rng(5)
    values = tuple(random.integers(-9, 12, block.rows) for block in plan.measured().blocks)
    return Outcome(plan, Observation(plan.measured(), values, "", private=False))


@pytest.fixture
def cells():
    """Noisy numbers of all cells."""
    return observed(plan_of_blocks(marginals(DOMAIN, upto=2), CELLS))


@pytest.fixture(scope="module")
def fitted():
    """Return non-negative least squares of cells, prefix sums, and sums that may be negative."""
    workload = (
        marginals(DOMAIN, ways=1, of=["age"])
        + queries(DOMAIN, age="prefix")
        + marginals(DOMAIN, ways=1, of=["age"], sum="debt")
    )
    return build_release(
        observed(
            plan_of_blocks(
                workload, Block((Factor(("age",), Tree.full(8, 2)),), 8), Block((AGE,), 30, "debt")
            )
        ),
        Options(nnls=True),
    )


def test_undetermined_queries_are_refused_and_no_others():
    check_options(
        plan_of_blocks(marginals(DOMAIN, upto=2), CELLS),
        Options(nnls=True, local_non_negative=True, covariances=["q1", "sex x age"]),
    )
    ranges = Block((Factor(("age",), Ranges(8, [0, 4], [3, 7])),), 5)
    plan = plan_of_blocks(queries(DOMAIN, age={"ranges": [[0, 3], [4, 7]]}), ranges)
    check_options(plan, Options())
    with pytest.raises(InputError, match="do not determine"):
        check_options(plan, Options(local_non_negative=True))


def test_covariances_that_need_a_solver_are_refused():
    joint = Block((Factor(("sex", "age"), Identity(10_000)),), 5)
    plan = plan_of_blocks(marginals(ODD, ways=1, of=["sex"]), joint, Block((SEX,), 5))
    with pytest.raises(
        InputError,
        match="The covariances of 'sex' are not known under the strategy 'odd', whose estimates "
        "need a linear",
    ):
        check_options(plan, Options(covariances=["sex"]))
    with pytest.raises(
        InputError, match="The covariances of sex and sex are not computed, because the estimates"
    ):
        build_release(observed(plan)).covariance("sex")


def test_ids_win_over_names():
    domain = Domain(q2=["F", "M"], age=Integers(0, 7)).as_complete()
    products = (*marginals(domain, ways=1), *marginals(domain, ways=1, of=["age"]))
    assert [find_table_position(products, key) for key in ("q1", "q2", "q3")] == [0, 1, 2]


def test_local_columns_match_the_function(cells):
    release = build_release(cells, Options(local_non_negative=True))
    both = release.tables["sex x age"]
    local = locally_non_negative(Estimate(cells.observation), [("sex",), ("age",), ("sex", "age")])
    np.testing.assert_allclose(both.local, local.marginal(("sex", "age")))
    assert both.answer.min() < 0 <= both.local.min()
    np.testing.assert_allclose(release.tables["sex"].local, both.local.sum(axis=1))
    assert "answer_local" in release.long("pandas").columns


def test_iterative_estimates_do_not_fail_after_payment(cells, monkeypatch):
    monkeypatch.setattr("leastnoise._estimation._non_negative._MOST_STEPS", 1)
    assert nnls(cells.observation).duality_gap > 1e-4
    stopped = build_release(cells, Options(nnls=True)).tables["sex x age"]
    assert stopped.nnls.min() >= 0
    assert np.isfinite(stopped.nnls_rmse).all()
    monkeypatch.setattr("leastnoise._estimation._local_non_negative._LEAST_ROUNDS", 0)
    monkeypatch.setattr("leastnoise._estimation._local_non_negative._ROUNDS_OF_CELLS", 0)
    assert (
        build_release(cells, Options(local_non_negative=True)).tables["sex x age"].local.min() >= 0
    )


def test_joint_columns_are_non_negative_least_squares(fitted):
    counts, sums, debt = fitted.tables
    np.testing.assert_allclose(counts.nnls, nnls(fitted.observation).cells)
    np.testing.assert_allclose(np.cumsum(counts.nnls), sums.nnls, atol=1e-9)
    assert counts.nnls.min() >= 0 > counts.answer.min()
    np.testing.assert_allclose(sums.nnls[-1], max(sums.answer[-1], 0))
    assert (counts.nnls_rmse >= 0).all()
    assert counts.nnls_rmse.shape == (8,)
    assert debt.nnls is None  # a sum that may be negative
    assert np.isnan(fitted.long("pandas")["answer_nnls"][16:]).all()


def test_release_describes_joint_columns_and_reads_them(fitted, tmp_path):
    folder = write(fitted, tmp_path / "out", "csv")
    description = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))[
        "post_processing"
    ]
    assert list(description["columns"]) == ["answer_nnls", "nnls_rmse"]
    assert (
        "in 50 simulated releases, in which the estimate itself was the truth"
        in description["columns"]["nnls_rmse"]
    )
    assert (
        "answer_nnls (non-negative least squares, the total fixed) has separate errors"
        in description["note"]
    )
    assert "non-negative least squares" in (folder / "report.html").read_text(encoding="utf-8")
    stored_table = ln.read_release(folder).tables[0]
    np.testing.assert_array_equal(
        [stored_table.nnls, stored_table.nnls_rmse],
        [fitted.tables[0].nnls, fitted.tables[0].nnls_rmse],
    )
    lines = [
        file.read_text(encoding="utf-8").splitlines()[0]
        for file in sorted((folder / "answers").iterdir())
    ]
    assert sum(line.endswith("low,high,answer_nnls,nnls_rmse") for line in lines) == 2


@pytest.mark.parametrize("strategy", ["marginals", "residual"])
def test_one_cell_attributes_do_not_fail_after_payment(strategy, tmp_path):
    domain = ln.Domain(
        one=["only"], sex=["F", "M"], year=ln.Dates("2024-01-01", "2024-12-31", by="year")
    ).as_complete()
    workload = ln.queries(domain, one="identity") + ln.queries(
        domain, one="all_ranges", sex="identity", year="identity"
    )
    plan = ln.plan(
        workload + ln.queries(domain, sex="total", year="identity"), ln.ZCDP(2), strategy=strategy
    )
    rows = pd.DataFrame({"one": ["only"] * 30, "sex": ["F", "M"] * 15, "year": ["2024-05-01"] * 30})
    release = ln.release(
        plan,
        rows,
        ledger=tmp_path / "rows.ledger",
        options=ln.Options(nnls=True, local_non_negative=True),
    )
    for table in release.tables:
        assert table.nnls == pytest.approx(table.answer, abs=15)
