"""Small plans of every structure, with their dense least squares, for the tests of accuracy and estimate."""

from dataclasses import dataclass
from fractions import Fraction
from functools import reduce

import numpy as np

from leastnoise._accounting import ApproxDP, Noise, Privacy, PureDP
from leastnoise._accuracy import block_rows, block_variance
from leastnoise._domain import Domain, Integers, Measure
from leastnoise._linop import Contrasts, Dense, DiagonalAndRows, Identity, Prefix, Total, Tree, dense
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
    return reduce(np.kron, [dense(known.get(name, Total(domain.kind(name).size))).astype(float) for name in domain.names])


def dense_rows(workload: Workload, *, total: bool = True) -> np.ndarray:
    """The weighted queries of a workload over all cells, or what of them lies across equal cells."""
    rows = np.vstack([float(product.importance) ** 0.5 * dense_product(product) for product in workload])
    return rows if total else rows - rows.mean(axis=1, keepdims=True)


def dense_nuclear(workload: Workload, *, total: bool = True) -> float:
    """The nuclear norm over sqrt(cells), from the matrix."""
    rows = dense_rows(workload, total=total)
    return float(np.linalg.svd(rows, compute_uv=False).sum() / np.sqrt(rows.shape[1]))


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


def _case(name: str, mechanism: Noise, workload: Workload, *blocks: tuple[tuple[Factor, ...], int | str] | Block) -> Case:
    """Blocks by their factors and scales."""
    rounded = mechanism is Noise.ROUNDED_GAUSSIAN
    budget = ApproxDP(99, "1e-6") if rounded else PureDP(99)  # ample: these scales are not fitted
    made = tuple(block if isinstance(block, Block) else Block(block[0], Fraction(block[1])) for block in blocks)
    plan = Measurements(domain=DOMAIN, privacy=Privacy(budget), noise=mechanism, blocks=made, grid=4 if rounded else 1)
    return Case(name, plan, workload)


LAPLACE, ROUNDED = Noise.DISCRETE_LAPLACE, Noise.ROUNDED_GAUSSIAN
ALL = marginals(DOMAIN, upto=2) + queries(DOMAIN, b="prefix", weight=3) + queries(DOMAIN, b="all_ranges", a="identity", weight="1/3")
ALONG_B_AND_C = marginals(DOMAIN, upto=2, of=["b", "c"])
RANGES_OF_B = queries(DOMAIN, b="all_ranges", a="prefix") + queries(DOMAIN, b=matrix([[1, -2, 0, 3, 1]]))
A_AND_B, SUMS = marginals(DOMAIN, upto=2, of=["a", "b"]), marginals(DOMAIN, upto=1, of=["a"], sum="pay")


def _residuals(b: Factor, c: Factor) -> list[tuple[tuple[Factor, ...], int]]:
    """Every set of attributes with rows of its own along b and c."""
    return [((A,), 90), ((A, c), 30), ((b,), 70), ((A, b), 50), ((A, b, c), 60), ((c,), 40), ((b, c), 80)]


CASES = [
    _case("one marginal", LAPLACE, A_AND_B, ((A, B), "5/2")),
    _case("marginals", LAPLACE, ALL, ((A, B), 5), ((A, C), "7/3"), ((B, C), 9), ((), 1)),
    _case("hierarchy along b", ROUNDED, ALL, ((A, TREE), 11), ((TREE, C), 17), ((A, C), 4), ((TREE,), 3)),
    _case("dense along c", ROUNDED, ALONG_B_AND_C, ((TREE, RANDOM), 9), ((RANDOM,), 2)),
    _case("diagonal and rows along b", ROUNDED, ALONG_B_AND_C + RANGES_OF_B, ((A, PLUS), 9), ((PLUS, C), 12)),
    _case("contrasts", ROUNDED, ALL, *_residuals(ACROSS_B, ACROSS_C)),
    _case("tilted", ROUNDED, ALL, *_residuals(TILTED_B, TILTED_C)),
    _case("signs beside cells", LAPLACE, ALL, ((SIGN_A,), 20), ((SIGN_A, B), 30), ((A, C), 25), ((SIGN_A, B, C), 40), ((B, C), 60)),
    _case(
        "no product form",
        LAPLACE,
        A_AND_B + marginals(DOMAIN, ways=1, of=["c"]),
        *[((A, B), 5), ((A, factor("b", Prefix(5))), 3), ((factor("b", Total(5)), C), 2)],
    ),
    _case(
        "counts and sums",
        LAPLACE,
        marginals(DOMAIN, upto=2, of=["a", "c"]) + SUMS,
        *[((A, C), 5), Block((A,), Fraction(300), "pay"), Block((), Fraction(120), "pay")],
    ),
]
