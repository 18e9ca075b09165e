"""What may stand beside the unbiased answers: found out before anything is paid, and bounded in what it takes."""

import numpy as np
import pytest

from leastnoise._accounting import Noise, Privacy, PureDP
from leastnoise._accuracy import promised
from leastnoise._check import InputError
from leastnoise._domain import Domain, Integers
from leastnoise._estimate import Estimate, Outcome, locally_non_negative, nnls
from leastnoise._linop import Identity, Ranges
from leastnoise._measurements import Block, Factor, Measurements, Observation
from leastnoise._release import Options, _options, build, check_options
from leastnoise._workload import marginals, queries

DOMAIN = Domain(sex=["F", "M"], age=Integers(0, 7))


def planned(*blocks, asked=None):
    plan = Measurements(domain=DOMAIN, privacy=Privacy(PureDP(9)), noise=Noise.DISCRETE_LAPLACE, blocks=blocks)
    return promised(asked or marginals(DOMAIN, upto=2), plan)


CELLS = Block((Factor(("sex",), Identity(2)), Factor(("age",), Identity(8))), 5)
TWO_RANGES = Factor(("age",), Ranges(8, [0, 4], [3, 7]))


def test_what_can_be_given_is_not_refused():
    check_options(planned(CELLS), Options(nnls=True, local_non_negative=True, covariances=["q1", "sex x age"]))


def test_cells_that_are_not_determined_are_found_out_on_made_up_numbers():
    plan = planned(Block((TWO_RANGES,), 5), asked=queries(DOMAIN, age={"ranges": [[0, 3], [4, 7]]}))
    check_options(plan, Options())
    with pytest.raises(InputError, match="do not determine"):
        check_options(plan, Options(local_non_negative=True))


def test_covariances_that_need_a_solver_are_refused():
    domain = Domain(sex=["F", "M"], age=Integers(0, 4999))
    joint = Factor(("sex", "age"), Identity(10_000))
    made = Measurements(
        domain=domain,
        privacy=Privacy(PureDP(9)),
        noise=Noise.DISCRETE_LAPLACE,
        blocks=(Block((joint,), 5), Block((Factor(("sex",), Identity(2)),), 5)),
    )
    plan = promised(marginals(domain, ways=1, of=["sex"]), made, "odd")
    with pytest.raises(InputError, match="The covariances of 'sex' are not known under the strategy 'odd', whose estimates need a linear"):
        check_options(plan, Options(covariances=["sex"]))
    release = build(Outcome(plan, Observation(made, (np.zeros(10_000, dtype=int), np.zeros(2, dtype=int)), "", private=False)))
    with pytest.raises(InputError, match="Covariances of sex and sex are not known where estimates need a linear solver"):
        release.covariance("sex")


def test_ids_win_over_names_and_tables_of_one_name_need_them():
    domain = Domain(q2=["F", "M"], age=Integers(0, 7))
    products = (*marginals(domain, ways=1), *marginals(domain, ways=1, of=["age"]))
    assert [_options.table_position(products, key) for key in ("q1", "q2", "q3")] == [0, 1, 2]
    with pytest.raises(InputError, match="Several tables are named 'age'; take one by its id: q2, q3"):
        _options.table_position(products, "age")


def test_the_columns_are_those_of_the_functions():
    values = np.random.default_rng(5).integers(-9, 12, 16)
    plan = planned(CELLS)
    observation = Observation(plan.measured(), (values,), "", private=False)
    release = build(Outcome(plan, observation), Options(local_non_negative=True))
    both = release.tables["sex x age"]
    local = locally_non_negative(Estimate(observation), [("sex",), ("age",), ("sex", "age")])
    np.testing.assert_allclose(both.local, local.marginal(("sex", "age")))
    assert both.answer.min() < 0 <= both.local.min()
    np.testing.assert_allclose(release.tables["sex"].local, both.local.sum(axis=1))
    assert "answer_local" in release.long("pandas").columns


def test_nothing_that_is_iterated_fails_after_the_payment(monkeypatch):
    plan = planned(CELLS)
    observation = Observation(plan.measured(), (np.random.default_rng(5).integers(-9, 12, 16),), "", private=False)
    monkeypatch.setattr("leastnoise._estimate._non_negative._MOST_STEPS", 1)
    assert nnls(observation).gap > 1e-4
    stopped = build(Outcome(plan, observation), Options(nnls=True)).tables["sex x age"]
    assert stopped.nnls.min() >= 0
    assert np.isfinite(stopped.nnls_rmse).all()
    monkeypatch.setattr("leastnoise._estimate._local_non_negative._LEAST_ROUNDS", 0)
    monkeypatch.setattr("leastnoise._estimate._local_non_negative._ROUNDS_OF_CELLS", 0)
    assert build(Outcome(plan, observation), Options(local_non_negative=True)).tables["sex x age"].local.min() >= 0
