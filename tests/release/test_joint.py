"""The columns of non-negative least squares: beside the unbiased answers, with errors from a simulation that is said."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import leastnoise as ln
from leastnoise._accounting import Noise, Privacy, PureDP
from leastnoise._accuracy import promised
from leastnoise._domain import Domain, Integers, Measure
from leastnoise._estimate import Outcome, nnls
from leastnoise._linop import Identity, Tree
from leastnoise._measurements import Block, Factor, Measurements, Observation
from leastnoise._release import Options, Release, build
from leastnoise._session import read_release as read
from leastnoise._workload import marginals, queries
from release.conftest import write

DOMAIN = Domain(x=Integers(0, 7), measures={"debt": Measure("debt", -3, 3)})


def observed() -> Outcome:
    asked = marginals(DOMAIN, ways=1) + queries(DOMAIN, x="prefix") + marginals(DOMAIN, ways=1, sum="debt")
    blocks = (Block((Factor(("x",), Tree.full(8, 2)),), 8), Block((Factor(("x",), Identity(8)),), 30, "debt"))
    plan = Measurements(domain=DOMAIN, privacy=Privacy(PureDP(9)), noise=Noise.DISCRETE_LAPLACE, blocks=blocks)
    rng = np.random.default_rng(3)
    values = tuple(rng.integers(-9, 20, block.rows) for block in blocks)
    return Outcome(promised(asked, plan), Observation(plan, values, "", private=False))


def made() -> Release:
    return build(observed(), Options(nnls=True))


def test_the_columns_are_those_of_non_negative_least_squares() -> None:
    cells, sums, debt = made().tables
    np.testing.assert_allclose(cells.nnls, nnls(observed().observation).cells)
    np.testing.assert_allclose(np.cumsum(cells.nnls), sums.nnls, atol=1e-9)
    assert cells.nnls.min() >= 0 > cells.answer.min()
    np.testing.assert_allclose(sums.nnls[-1], max(sums.answer[-1], 0))
    assert (cells.nnls_rmse >= 0).all()
    assert cells.nnls_rmse.shape == (8,)
    assert debt.nnls is None  # a sum that may be negative
    assert np.isnan(made().long("pandas")["answer_nnls"][16:]).all()


def test_the_release_says_it_and_reads_back(tmp_path: Path) -> None:
    folder = write(made(), tmp_path / "out", "csv")
    said = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))["post_processing"]
    assert list(said["columns"]) == ["answer_nnls", "nnls_rmse"]
    assert "in 50 simulated releases in which the estimate itself was the truth" in said["columns"]["nnls_rmse"]
    assert "answer_nnls (non-negative least squares, the total fixed) has errors of its own" in said["note"]
    assert "non-negative least squares" in (folder / "report.html").read_text(encoding="utf-8")
    again = read(folder)
    np.testing.assert_array_equal(again.tables[0].nnls, made().tables[0].nnls)
    np.testing.assert_array_equal(again.tables[0].nnls_rmse, made().tables[0].nnls_rmse)
    lines = [file.read_text(encoding="utf-8").splitlines()[0] for file in sorted((folder / "answers").iterdir())]
    assert sum(line.endswith("low,high,answer_nnls,nnls_rmse") for line in lines) == 2


@pytest.mark.parametrize("strategy", ["marginals", "residual"])
def test_attributes_of_one_cell_are_no_reason_to_fail_after_payment(strategy, tmp_path):
    domain = ln.Domain(one=["only"], sex=["F", "M"], year=ln.Dates("2024-01-01", "2024-12-31", by="year"))
    asked = ln.queries(domain, one="identity") + ln.queries(domain, one="all_ranges", sex="identity", year="identity")
    plan = ln.plan(asked + ln.queries(domain, sex="total", year="identity"), ln.ZCDP(2), strategy=strategy)
    rows = pd.DataFrame({"one": ["only"] * 30, "sex": ["F", "M"] * 15, "year": ["2024-05-01"] * 30})
    release = ln.release(plan, rows, ledger=tmp_path / "rows.ledger", options=ln.Options(nnls=True, local_non_negative=True))
    for table in release.tables:
        assert table.nnls.shape == table.answer.shape
        assert table.nnls == pytest.approx(table.answer, abs=15)
