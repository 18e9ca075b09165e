"""Small plans of every structure, with their dense least squares, for the tests of accuracy and estimate."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from leastnoise._accounting import ApproxDP, Noise, Privacy, PureDP
from leastnoise._accuracy import block_rows, block_variance, joint_rows
from leastnoise._domain import Domain, Integers, Measure
from leastnoise._linop import Contrasts, Dense, DiagonalAndRows, Identity, Prefix, Total, Tree
from leastnoise._measurements import Block, Factor, Measurements
from leastnoise._workload import Product, Workload, marginals, matrix, queries

DOMAIN = Domain(a=["x", "y"], b=Integers(0, 4), c=["p", "q", "r"], measures={"pay": Measure("pay", 0, 50)})
NAMES = DOMAIN.names


@dataclass(frozen=True)
class Case:
    """A plan, a workload that it determines, and its explicit strategy over all cells."""

    name: str
    plan: Measurements
    workload: Workload

    def strategy(self, measure: str | None) -> tuple[np.ndarray, np.ndarray]:
        """Rows of the measured queries and the variance of their noise."""
        return dense_strategy(self.plan, measure)


def dense_strategy(plan: Measurements, measure: str | None) -> tuple[np.ndarray, np.ndarray]:
    """Rows of the measured queries over all cells, and the variance of their noise."""
    rows, variances = [], []
    for block in plan.blocks:
        if block.measure == measure:
            scaling = block.scaling()[:, None]
            rows.append(block_rows(plan.domain, plan.domain.names, block) / scaling)
            variances.append(np.full(block.rows, block_variance(plan, block)) / scaling[:, 0] ** 2)
    return np.vstack(rows), np.concatenate(variances)


def dense_product(product: Product) -> np.ndarray:
    """The queries of a product over all cells of a small domain."""
    known, domain = dict(zip(product.attributes, product.operators, strict=True)), product.domain
    return joint_rows([known.get(name, Total(domain.kind(name).size)) for name in domain.names])


def dense_error(workload: Workload, plan: Measurements) -> float:
    """The total squared error of least squares over the integers that are measured, by dense algebra on the joint cells."""
    expected = 0.0
    for measure in workload.measures:
        rows, variances = dense_strategy(plan, measure)
        covariance = np.linalg.pinv(rows.T @ (rows / variances[:, None]), rcond=1e-13, hermitian=True)
        for product in workload:
            if product.measure == measure:
                asked = dense_product(product)
                expected += product.importance * float(np.einsum("ij,jk,ik->", asked, covariance, asked))
    return expected


def factor(name: str, operator: object, weights: object = None) -> Factor:
    """One attribute's factor."""
    return Factor((name,), operator, None if weights is None else np.array(weights))  # type: ignore[arg-type]


A, B, C = factor("a", Identity(2)), factor("b", Identity(5)), factor("c", Identity(3))
TREE = factor("b", Tree.full(5, 2), [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11])
PLUS = factor("b", DiagonalAndRows([3, 2, 5, -4, 1], [[1, 0, 2, 2, 7], [0, 3, -1, 0, 4]]), [1, 2, 1, 3, 1, 2, 5])
ACROSS_B, ACROSS_C = factor("b", Contrasts(5)), factor("c", Contrasts(3))
# One row less than cells: what they do not see tilts the estimate from the total.
TILTED_B = factor("b", Dense([[7, -3, 0, 1, -2], [0, 6, -5, 1, 0], [1, 0, 4, -4, 2], [-1, 2, 0, 5, -4]]), [1, 3, 2, 1])
TILTED_C = factor("c", Dense([[5, -2, -2], [0, 3, -4]]))
SIGN_A = factor("a", Dense([[3, -3]]))
RANDOM = factor("c", Dense(np.random.default_rng(0).integers(-3, 4, (5, 3))))


def _plan(name: str, mechanism: str, *blocks: Block) -> Measurements:
    budget = ApproxDP(99, "1e-6") if mechanism == Noise.ROUNDED_GAUSSIAN else PureDP(99)  # ample: these scales are not fitted
    return Measurements(
        domain=DOMAIN,
        privacy=Privacy(budget),
        noise=mechanism,
        blocks=blocks,
        grid=4 if mechanism == Noise.ROUNDED_GAUSSIAN else 1,
    )


ALL = marginals(DOMAIN, upto=2) + queries(DOMAIN, b="prefix", weight=3) + queries(DOMAIN, b="all_ranges", a="identity", weight="1/3")

CASES = [
    Case("one marginal", _plan("m", Noise.DISCRETE_LAPLACE, Block((A, B), Fraction(5, 2))), marginals(DOMAIN, upto=2, of=["a", "b"])),
    Case(
        "marginals",
        _plan(
            "m",
            Noise.DISCRETE_LAPLACE,
            Block((A, B), Fraction(5)),
            Block((A, C), Fraction(7, 3)),
            Block((B, C), Fraction(9)),
            Block((), Fraction(1)),
        ),
        ALL,
    ),
    Case(
        "hierarchy along b",
        _plan(
            "h",
            Noise.ROUNDED_GAUSSIAN,
            Block((A, TREE), Fraction(11)),
            Block((TREE, C), Fraction(17)),
            Block((A, C), Fraction(4)),
            Block((TREE,), Fraction(3)),
        ),
        ALL,
    ),
    Case(
        "dense along c",
        _plan("d", Noise.ROUNDED_GAUSSIAN, Block((TREE, RANDOM), Fraction(9)), Block((RANDOM,), Fraction(2))),
        marginals(DOMAIN, upto=2, of=["b", "c"]),
    ),
    Case(
        "diagonal and rows along b",
        _plan("p", Noise.ROUNDED_GAUSSIAN, Block((A, PLUS), Fraction(9)), Block((PLUS, C), Fraction(12))),
        marginals(DOMAIN, upto=2, of=["b", "c"])
        + queries(DOMAIN, b="all_ranges", a="prefix")
        + queries(DOMAIN, b=matrix([[1, -2, 0, 3, 1]])),
    ),
    Case(
        "contrasts",
        _plan(
            "r",
            Noise.ROUNDED_GAUSSIAN,
            Block((A,), Fraction(90)),
            Block((A, ACROSS_C), Fraction(30)),
            Block((ACROSS_B,), Fraction(70)),
            Block((A, ACROSS_B), Fraction(50)),
            Block((A, ACROSS_B, ACROSS_C), Fraction(60)),
            Block((ACROSS_C,), Fraction(40)),
            Block((ACROSS_B, ACROSS_C), Fraction(80)),
        ),
        ALL,
    ),
    Case(
        "tilted",
        _plan(
            "t",
            Noise.ROUNDED_GAUSSIAN,
            Block((A,), Fraction(90)),
            Block((A, TILTED_C), Fraction(30)),
            Block((TILTED_B,), Fraction(70)),
            Block((A, TILTED_B), Fraction(50)),
            Block((A, TILTED_B, TILTED_C), Fraction(60)),
            Block((TILTED_C,), Fraction(40)),
            Block((TILTED_B, TILTED_C), Fraction(80)),
        ),
        ALL,
    ),
    Case(
        "signs beside cells",
        _plan(
            "s",
            Noise.DISCRETE_LAPLACE,
            Block((SIGN_A,), Fraction(20)),
            Block((SIGN_A, B), Fraction(30)),
            Block((A, C), Fraction(25)),
            Block((SIGN_A, B, C), Fraction(40)),
            Block((B, C), Fraction(60)),
        ),
        ALL,
    ),
    Case(
        "no product form",
        _plan(
            "n",
            Noise.DISCRETE_LAPLACE,
            Block((A, B), Fraction(5)),
            Block((A, factor("b", Prefix(5))), Fraction(3)),
            Block((factor("b", Total(5)), C), Fraction(2)),
        ),
        marginals(DOMAIN, upto=2, of=["a", "b"]) + marginals(DOMAIN, ways=1, of=["c"]),
    ),
    Case(
        "counts and sums",
        _plan("s", Noise.DISCRETE_LAPLACE, Block((A, C), Fraction(5)), Block((A,), Fraction(300), "pay"), Block((), Fraction(120), "pay")),
        marginals(DOMAIN, upto=2, of=["a", "c"]) + marginals(DOMAIN, upto=1, of=["a"], sum="pay"),
    ),
]
