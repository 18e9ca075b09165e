"""Row spaces against the ranks of explicit matrices."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest

from leastnoise._domain import Domain, Integers
from leastnoise._error import (
    IterativeStructure,
    PairStructure,
    UnsupportedQuery,
    _structure,
    measure_covariance,
)
from leastnoise._error._joint import _weighted_diagonal
from leastnoise._estimation import Estimate
from leastnoise._families import (
    CellsInverse,
    gram_diagonal,
    invert_gram,
    row_space,
    triangular_form,
)
from leastnoise._trusted.accounting import Noise, Privacy, PureDP
from leastnoise._trusted.check import InputError, InternalError
from leastnoise._trusted.linop import (
    Contrasts,
    Dense,
    Identity,
    Operator,
    Prefix,
    Total,
    apply,
    apply_transpose,
    dense,
)
from leastnoise._trusted.measurements import Block, Factor, Measurements, Observation
from leastnoise._workload import identity, matrix, prefix, queries
from trusted.linop.conformance import CASES

every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


def rank(matrix):
    return int(np.linalg.matrix_rank(matrix.astype(float), tol=1e-9)) if matrix.size else 0


@every_case
def test_rows_lie_in_space_if_rank_does_not_rise(case):
    space = row_space(case.operator)
    matrix = case.reference()
    for other in (other for other in CASES if other.operator.size == case.operator.size):
        same = rank(np.vstack([matrix, other.reference()])) == rank(matrix)
        assert space.contains(other.operator) == same, other.name
        assert space.includes(row_space(other.operator)) == same, other.name
        assert space.contains(Dense(other.reference())) == same, other.name


def test_nearly_full_spaces_are_compared_without_bases():
    """A basis of 50,000 cells would take 20 GB."""
    space = row_space(Contrasts(50_000))
    assert space is not None
    assert space.includes(space)
    assert not space.includes(row_space(Identity(50_000)))
    assert "basis" not in vars(space)


@every_case
def test_basis_spans_the_rows_with_their_rank(case):
    space = row_space(case.operator)
    matrix = case.reference()
    basis = space.basis
    np.testing.assert_allclose(basis.T @ basis, np.eye(basis.shape[1]), atol=1e-12)
    np.testing.assert_allclose(matrix @ basis @ basis.T, matrix, atol=1e-9)
    assert basis.shape[1] == space.dimension == rank(matrix)


@pytest.mark.parametrize(
    ("case", "weighted"),
    [
        pytest.param(case, weighted, id=f"{case.name}-{weighted}")
        for case in CASES
        for weighted in (False, True)
        # Contrasts take no weights.
        if not (weighted and isinstance(case.operator, Contrasts))
    ],
)
def test_operator_basis_spans_its_matrix(case, weighted):
    operator = case.operator
    weights = 1 + np.arange(operator.rows) % 3
    matrix = case.reference() * (weights[:, None] if weighted else 1)
    factor = Factor(("a",), operator, weights if weighted else None)
    if rank(np.vstack([matrix, np.ones(operator.size)])) > rank(matrix):
        with pytest.raises(InputError, match="do not determine its cells"):
            invert_gram(factor)
        return  # such a matrix has no inverse to compare
    structured_inverse = invert_gram(factor)
    inverse = np.linalg.pinv(matrix.T @ matrix)
    np.testing.assert_allclose(structured_inverse.kappa, inverse.sum(), rtol=1e-7)
    for other in (other for other in CASES if other.operator.size == operator.size):
        rows = other.reference()
        if rank(np.vstack([matrix, rows])) > rank(matrix):
            with pytest.raises(InputError, match="do not determine"):
                structured_inverse.variances(other.operator)
            continue
        variances = np.einsum("ij,jk,ik->i", rows, inverse, rows)
        np.testing.assert_allclose(
            structured_inverse.variances(other.operator), variances, rtol=1e-7, err_msg=other.name
        )
        np.testing.assert_allclose(
            structured_inverse.total_variance(other.operator),
            variances.sum(),
            rtol=1e-7,
            err_msg=other.name,
        )
        np.testing.assert_allclose(
            structured_inverse.largest_variance(other.operator),
            variances.max(),
            rtol=1e-7,
            err_msg=other.name,
        )


def test_one_outside_query_is_detected_despite_rounding():
    rows = np.ones((5000, 6), dtype=int)
    assert row_space(Dense([[1] * 6])).contains(Dense(rows))
    rows[4321, 2] = 2
    assert not row_space(Dense([[1] * 6])).contains(Dense(rows))
    assert row_space(Dense([[1, 2, 0], [0, 1, 1]])).contains(
        Dense([[10**9, 3 * 10**9, 10**9], [7 * 10**9, 15 * 10**9, 10**9]])
    )


def test_large_unclassified_operator_is_undecided():
    assert row_space(Dense(np.ones((1, 4097), dtype=int))) is None


@dataclass(frozen=True)
class Strange:
    """Twice the first cell: an operator nobody has listed."""

    size: int = 3
    rows: int = 1


@apply.register(Strange)
def _(operator, x):
    return 2 * x[:1]


@apply_transpose.register(Strange)
def _(operator, y):
    return np.concatenate([2 * y, np.zeros((operator.size - 1, *y.shape[1:]), dtype=y.dtype)])


def test_operator_without_entry_range_is_not_binary():
    strange: Operator = Strange()
    assert dense(strange).tolist() == [[2, 0, 0]]
    large = Factor(("a",), Strange(2000), np.array([2]))
    for function in (
        CellsInverse.of_identity(3).variances,
        gram_diagonal,
        lambda _: _weighted_diagonal(large),
    ):
        with pytest.raises(InternalError, match="Strange has not registered this function"):
            function(strange)


@pytest.mark.parametrize("blocks", [2, 3], ids=["two tables", "by a solver"])
def test_multiples_of_a_shared_total_are_answered(monkeypatch, blocks):
    for limit in ("MOST_DENSE", "_MOST_QUICK_CELLS"):
        monkeypatch.setattr(_structure, limit, 100)
    domain = Domain(a=Integers(0, 10), b=Integers(0, 10), c=["x", "y"])
    factors_of_tables = [
        (Factor(("a",), Prefix(11)), Factor(("b",), Identity(11))),
        (Factor(("a",), Identity(11)), Factor(("b",), Total(11))),
        (Factor(("b",), Prefix(11)),),
    ]
    tables = tuple(Block(factors, Fraction(2)) for factors in factors_of_tables[:blocks])
    plan = Measurements(
        domain=domain, privacy=Privacy(PureDP(99)), noise=Noise.DISCRETE_LAPLACE, blocks=tables
    )
    values = tuple(np.random.default_rng(table.rows).integers(0, 9, table.rows) for table in tables)
    estimate = Estimate(Observation(plan, values, "", private=False))
    covariance = measure_covariance(plan, None)
    assert isinstance(covariance, (PairStructure, IterativeStructure)[blocks - 2 : blocks - 1])
    (inner,) = queries(domain, a=prefix())
    (multiples,) = queries(domain, a=prefix(), c=matrix([[1, 1], [3, 3]]))
    np.testing.assert_allclose(
        estimate.values(multiples), estimate.values(inner)[:, None] * [1, 3], rtol=1e-9
    )
    np.testing.assert_allclose(
        estimate.estimate(multiples).noise_std,
        estimate.estimate(inner).noise_std[:, None] * [1, 3],
        rtol=1e-6,
    )
    assert covariance.total(multiples) == pytest.approx(10 * covariance.total(inner))
    assert covariance.errors(multiples).largest == pytest.approx(
        9 * covariance.errors(inner).largest
    )
    with pytest.raises(
        UnsupportedQuery, match=r"do not determine a:prefix x c\. Ask for the table a x c"
    ):
        estimate.values(queries(domain, a=prefix(), c=identity()).products[0])


@pytest.mark.parametrize(
    "matrix",
    [[[2, 5, -1], [0, 3, 4], [0, 0, 7]], [[2, 0, 0], [-5, 3, 0], [1, 4, 7]]],
    ids=["upper", "lower"],
)
def test_triangular_strategy_is_inverted(matrix):
    row_values = np.array(matrix)
    turned = row_values[::-1]  # the same rows in another order are no triangle
    for rows in (row_values, turned):
        inverse = invert_gram(Factor(("a",), Dense(rows)))
        np.testing.assert_allclose(
            inverse.inverse, np.linalg.inv(row_values.T @ row_values), rtol=1e-12
        )
        assert row_space(Dense(rows)).is_full
    assert triangular_form(Dense(row_values))[1] == 2 / 7
    assert triangular_form(Dense(turned)) is None


def test_singular_triangle_is_not_inverted():
    flat = Dense(np.array([[1, 1, 1], [0, 0, 1], [0, 0, 1]]))
    assert triangular_form(flat)[1] == 0
    assert row_space(flat).dimension == 2
