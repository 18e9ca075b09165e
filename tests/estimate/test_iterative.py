"""Iterative least squares against dense least squares, its residual check, and its simulated error bars."""

from fractions import Fraction

import numpy as np
import pytest

from accuracy.plans import factor
from leastnoise._accounting import Noise, Privacy, PureDP
from leastnoise._accuracy import (
    IterativeStructure,
    Joint,
    UnsupportedQuery,
    _structure,
    block_rows,
    block_variance,
    confidence_factor,
    promised,
    structure,
)
from leastnoise._accuracy._joint import dense_structure
from leastnoise._check import InputError
from leastnoise._domain import Domain, Integers
from leastnoise._estimate import Estimate
from leastnoise._linop import AllRanges, Dense, DiagonalAndRows, Haar, Identity, Prefix, Tree
from leastnoise._measurements import Block, Factor, Measurements, Observation
from leastnoise._workload import marginals, queries

SIZES = {"a": 4, "b": 6, "c": 3}


def plan_of(*blocks: Block, sizes: dict[str, int] | None = None) -> Measurements:
    domain = Domain({name: Integers(0, size - 1) for name, size in (sizes or SIZES).items()})
    return Measurements(domain=domain, privacy=Privacy(PureDP(99)), noise=Noise.DISCRETE_LAPLACE, blocks=blocks)


EVERY = tuple(factor(name, Identity(size)) for name, size in SIZES.items())
MIXED = plan_of(
    Block(EVERY, Fraction(5)),
    Block((factor("a", Prefix(4), [1, 2, 3, 4]), factor("b", Tree.full(6, 2))), Fraction(3)),
    Block((factor("b", Haar(6)), factor("c", Dense([[1, 0, -2], [3, 1, 1]]))), Fraction(7, 2)),
    Block((factor("b", AllRanges(6)),), Fraction(40)),
    Block((factor("c", DiagonalAndRows([1, 2, 3], [[1, 1, 0]])),), Fraction(2)),
    Block((Factor(("a", "b"), Dense(np.random.default_rng(3).integers(-2, 3, (5, 24)))),), Fraction(4)),
    Block((), Fraction(1)),
)
SEPARATE = plan_of(*(block for block in MIXED.blocks if all(len(f.attributes) == 1 for f in block.factors)))


def joint_of(plan: Measurements) -> Joint:
    return Joint.of(plan.domain, [(block, block_variance(plan, block)) for block in plan.blocks])


def dense_rows(plan: Measurements) -> tuple[np.ndarray, np.ndarray]:
    """Weighted rows of all blocks, and the standard deviations of rows of weight 1."""
    names = joint_of(plan).names
    rows = [block_rows(plan.domain, names, block) for block in plan.blocks]
    spreads = [np.full(block.rows, block_variance(plan, block) ** 0.5) for block in plan.blocks]
    return np.vstack(rows), np.concatenate(spreads)


@pytest.mark.parametrize("plan", [MIXED, SEPARATE], ids=["with a joint factor", "one factor an attribute"])
def test_the_implicit_operator_is_the_explicit_one(plan: Measurements) -> None:
    joint = joint_of(plan)
    rows, spreads = dense_rows(plan)
    scaled = rows / spreads[:, None]
    gram = scaled.T @ scaled
    x = np.random.default_rng(0).normal(size=(joint.cells, 3))
    np.testing.assert_allclose(joint.gram(x), gram @ x, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(joint.diagonal(), np.diag(gram), rtol=1e-10)
    values = [np.random.default_rng(place).normal(size=(block.rows, 2)) for place, block in enumerate(plan.blocks)]
    weights = np.concatenate([block.row_weights() for block in plan.blocks])
    expected = rows.T @ (np.vstack(values) * weights[:, None] / spreads[:, None] ** 2)
    np.testing.assert_allclose(joint.gather(values), expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(joint.solve(gram @ x, "a test"), x, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("plan", [MIXED, SEPARATE], ids=["with a joint factor", "one factor an attribute"])
def test_exact_variances_are_those_of_dense_least_squares(plan: Measurements) -> None:
    joint = joint_of(plan)
    iterative, dense = IterativeStructure(joint), dense_structure(plan.domain, joint)
    asked = marginals(plan.domain, upto=2) + queries(plan.domain, a="prefix", b="all_ranges")
    for product in asked:
        np.testing.assert_allclose(iterative.variances(product), dense.variances(product), rtol=1e-6)
        assert iterative.total(product) == pytest.approx(dense.total(product), rel=1e-6)


def test_simulated_variances_are_conservative_and_close(monkeypatch: pytest.MonkeyPatch) -> None:
    # 256 draws: the factor 1.335 makes an answer too small with probability 1 in 1000; of 24 + 84 answers, dependent ones, the false alarm
    # rate is below 0.11 by the union bound, and the seed is fixed.
    monkeypatch.setattr("leastnoise._accuracy._joint._MOST_EXACT", 0)
    joint = joint_of(SEPARATE)
    iterative, dense = IterativeStructure(joint), dense_structure(SEPARATE.domain, joint)
    for asked in (queries(SEPARATE.domain, a="prefix", b="identity"), queries(SEPARATE.domain, b="all_ranges", a="identity")):
        (product,) = asked
        found = iterative.variances(product) / dense.variances(product)
        assert found.min() > 1
        assert found.mean() == pytest.approx(confidence_factor(256), rel=0.15)  # over 5 standard deviations of one answer's own mean


def test_a_plan_without_product_form_on_many_cells_is_iterative_and_its_estimates_are_least_squares(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_structure, "MOST_DENSE", 200)
    blocks = (
        Block((factor("a", Identity(15)), factor("b", Identity(14))), Fraction(9)),
        Block((factor("a", Prefix(15)),), Fraction(4)),
        Block((factor("b", Tree.full(14, 4)),), Fraction(3)),
    )
    plan = plan_of(*blocks, sizes={"a": 15, "b": 14})
    known = structure(plan, None)
    assert isinstance(known, IterativeStructure)
    rng = np.random.default_rng(5)
    values = tuple(rng.integers(0, 200, block.rows) for block in blocks)
    estimate = Estimate(Observation(plan, values, "", private=False))
    cells = estimate.marginal(("a", "b"))
    gathered = known.joint.gather([rows[:, None].astype(float) for rows in values])
    np.testing.assert_allclose(known.joint.gram(cells.reshape(-1, 1)), gathered, atol=1e-6 * np.abs(gathered).max())
    np.testing.assert_allclose(cells.sum(axis=1), estimate.marginal(("a",)), rtol=1e-9)
    (product,) = queries(plan.domain, a="prefix")
    np.testing.assert_allclose(estimate.values(product), np.cumsum(estimate.marginal(("a",))), rtol=1e-9)
    made = promised(queries(plan.domain, a="prefix") + queries(plan.domain, b="identity"), plan)
    assert made.promise is not None
    assert [table.queries for table in made.promise.tables] == [15, 14]
    assert np.sqrt((estimate.estimate(product).noise_std ** 2).mean()) == pytest.approx(made.promise.tables[0].rmse)


def test_the_automatic_choice_may_refuse_to_iterate() -> None:
    plan = plan_of(
        Block((factor("a", Identity(90)), factor("b", Identity(90))), Fraction(9)),
        Block((factor("a", Prefix(90)),), Fraction(4)),
        Block((factor("b", Prefix(90)),), Fraction(5)),  # of two tables alone the error has a closed form
        sizes={"a": 90, "b": 90},
    )
    with pytest.raises(InputError, match="linear solver over 8100 joint cells, which takes long; ask for it by name: strategy = 'mixed'"):
        promised(queries(plan.domain, a="prefix"), plan, "mixed", iterate=False)


def test_what_the_measurements_do_not_determine_does_not_converge_and_is_said() -> None:
    plan = plan_of(Block((EVERY[0],), Fraction(1)), Block((EVERY[1],), Fraction(2)), Block((factor("a", Prefix(4)),), Fraction(3)))
    iterative = IterativeStructure(joint_of(plan))
    (known,), (unknown,) = queries(plan.domain, a="all_ranges"), queries(plan.domain, a="identity", b="identity")
    assert iterative.variances(known).shape == (10,)
    with pytest.raises(UnsupportedQuery, match=r"for a x b did not converge: the relative residual is .*do not determine it"):
        iterative.variances(unknown)
    (elsewhere,) = queries(plan.domain, c="identity")
    with pytest.raises(UnsupportedQuery, match="do not determine c"):
        iterative.variances(elsewhere)


def test_queries_without_a_coefficient_are_refused() -> None:
    plan = plan_of(Block((factor("a", Dense([[0, 0, 0, 0]])),), Fraction(1)))
    with pytest.raises(InputError, match="at least one query that sees a cell"):
        joint_of(plan).solve(np.ones((4, 1)), "a test")
