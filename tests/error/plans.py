"""Small plans of every structure, and their dense least squares."""

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce

import numpy as np

from leastnoise._domain import Coded, Domain, Integers, Measure, ValueCount
from leastnoise._error import block_rows, block_variance, k_norm_variances
from leastnoise._fitting import fit_noise_scales
from leastnoise._trusted.accounting import ZCDP, ApproxDP, Noise, Privacy, PureDP
from leastnoise._trusted.linop import (
    AllRanges,
    Contrasts,
    Dense,
    DiagonalAndRows,
    Haar,
    Identity,
    Prefix,
    Total,
    Tree,
    dense,
)
from leastnoise._trusted.measurements import Block, Factor, Measurements
from leastnoise._workload import Workload, level, marginals, matrix, queries, ranges, together

DOMAIN = Domain(
    a=["x", "y"], b=Integers(0, 4), c=["p", "q", "r"], measures={"pay": Measure("pay", 0, 50)}
)
NAMES = DOMAIN.names


@dataclass(frozen=True)
class Case:
    """A plan and a workload that it determines."""

    name: str
    plan: Measurements
    workload: Workload


def _whitening_of_group(plan, group):
    """Return the inverse root of the covariance of K-norm noise of tables with one total."""
    blocks = [plan.blocks[at] for at in group]
    sizes = [block.rows for block in blocks]
    variances = k_norm_variances(tuple(sorted(sizes)), blocks[0].scale)
    shares = np.concatenate([np.full(size, 1 / size) for size in sizes])
    covariance = variances.total * np.outer(shares, shares)
    for size, end in zip(sizes, np.cumsum(sizes), strict=True):
        contrast = variances.contrast(size) if size > 1 else 0.0
        group_rows = slice(end - size, end)
        covariance[group_rows, group_rows] += contrast * (np.eye(size) - 1 / size)
    values, vectors = np.linalg.eigh(covariance)
    roots = np.where(values > 1e-9 * values.max(), 1 / np.sqrt(np.maximum(values, 1e-300)), 0.0)
    return np.asarray(vectors * roots @ vectors.T)


class LeastSquares:
    """Least squares over the measured integers by one matrix of all cells and measures."""

    def __init__(self, plan):
        self.plan = plan
        domain = plan.domain
        counts_of_ends = [
            domain.count_of(str(block.measure)) for block in plan.blocks if block.ends
        ]
        measures = [block.measure for block in plan.blocks]
        self.measures = list(dict.fromkeys([*counts_of_ends, *measures]))
        rows = []
        variances = []
        for block in plan.blocks:
            scaling = block.scaling()[:, None]
            rows.append(self._rows_of_measures(block) / scaling)
            variances.append(block_variance(plan, block) / scaling[:, 0] ** 2)
        self.noise_std = np.sqrt(np.concatenate(variances))
        self.rows = self.whitened(np.vstack(rows))  # of unit noise
        self.inverse = np.linalg.pinv(self.rows, rcond=1e-12)

    def _rows_of_measures(self, block):
        """Return the rows of a block over the cells of all measures, one measure after another.

        A block of both ends has the distances of values from the lower bound, then from the upper.
        """
        domain = self.plan.domain
        cells = block_rows(domain, domain.names, replace(block, ends=False))
        coefficients: list[dict[str | None, float]] = [{block.measure: 1.0}]
        if block.ends:
            measure = str(block.measure)
            bounds = domain.measure(measure)
            count = domain.count_of(measure)
            coefficients = [
                {count: -bounds.low_units, measure: 1.0},
                {count: bounds.high_units, measure: -1.0},
            ]
        rows = []
        for coefficient_of in coefficients:
            along_measures = [coefficient_of.get(name, 0.0) * cells for name in self.measures]
            rows.append(np.hstack(along_measures))
        return np.vstack(rows)

    def whitened(self, measured):
        """Return the measured rows in units of their noise, also of noise that blocks share."""
        scaled = measured / self.noise_std.reshape(-1, *[1] * (measured.ndim - 1))
        ends = np.cumsum([block.rows for block in self.plan.blocks])
        for group in self.plan.k_norm_groups().values():
            places = [np.arange(ends[at] - self.plan.blocks[at].rows, ends[at]) for at in group]
            shared = np.concatenate(places)
            scaled[shared] = np.tensordot(
                _whitening_of_group(self.plan, group), measured[shared], 1
            )
        return scaled

    def weights(self, product):
        """Return the matrix from measured integers, in units of their noise, to answers."""
        query_matrix = dense_product(product)
        matrices = [query_matrix * (measure == product.measure) for measure in self.measures]
        return np.hstack(matrices) @ self.inverse

    def error(self, workload):
        """Return the total squared error."""
        return sum(
            float(product.importance) * float((self.weights(product) ** 2).sum())
            for product in workload
        )

    def answers(self, product, values):
        """Return answers from the integers of all blocks, whose first axis is the block's rows."""
        measured = self.whitened(np.concatenate(values))
        return np.tensordot(self.weights(product) / self.plan.grid, measured, 1)


def dense_product(product):
    """Return the queries of a product over all cells of a small domain."""
    operators = dict(zip(product.attributes, product.operators, strict=True))
    matrices = []
    for name in product.domain.names:
        operator = operators.get(name, Total(product.domain.kind(name).size))
        matrices.append(dense(operator).astype(float))
    return reduce(np.kron, matrices)


def dense_rows(workload, *, total=True):
    """Return the weighted queries over all cells, or their parts across equal cells."""
    rows = np.vstack(
        [float(product.importance) ** 0.5 * dense_product(product) for product in workload]
    )
    return rows if total else rows - rows.mean(axis=1, keepdims=True)


def dense_nuclear(workload, *, total=True):
    """Return the nuclear norm over sqrt(cells), from the matrix."""
    rows = dense_rows(workload, total=total)
    return float(np.linalg.svd(rows, compute_uv=False).sum() / np.sqrt(rows.shape[1]))


def factor(name, operator, weights=None):
    """Return the factor of one attribute."""
    return Factor((name,), operator, None if weights is None else np.array(weights))


A = factor("a", Identity(2))
B = factor("b", Identity(5))
C = factor("c", Identity(3))
TREE = factor("b", Tree.full(5, 2), [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11])
PLUS = factor(
    "b",
    DiagonalAndRows([3, 2, 5, -4, 1], [[1, 0, 2, 2, 7], [0, 3, -1, 0, 4]]),
    [1, 2, 1, 3, 1, 2, 5],
)
ACROSS_B = factor("b", Contrasts(5))
ACROSS_C = factor("c", Contrasts(3))
# One row less than cells: the direction without a measurement is not the total.
TILTED_B = factor(
    "b",
    Dense([[7, -3, 0, 1, -2], [0, 6, -5, 1, 0], [1, 0, 4, -4, 2], [-1, 2, 0, 5, -4]]),
    [1, 3, 2, 1],
)
TILTED_C = factor("c", Dense([[5, -2, -2], [0, 3, -4]]))
SIGN_A = factor("a", Dense([[3, -3]]))
RANDOM = factor("c", Dense(np.random.default_rng(0).integers(-3, 4, (5, 3))))


def _case(name, mechanism, workload, *blocks):
    """Return a case whose blocks are stated by their factors and scales."""
    rounded = mechanism is Noise.ROUNDED_GAUSSIAN
    # The budget allows all of the scales, which are not fitted to it.
    budget = ApproxDP(99, "1e-6") if rounded else PureDP(99)
    all_blocks = tuple(
        block if isinstance(block, Block) else Block(block[0], Fraction(block[1]))
        for block in blocks
    )
    plan = Measurements(
        domain=workload.domain,
        privacy=Privacy(budget),
        noise=mechanism,
        blocks=all_blocks,
        grid=4 if rounded else 1,
    )
    return Case(name, plan, workload)


LAPLACE = Noise.DISCRETE_LAPLACE
ROUNDED = Noise.ROUNDED_GAUSSIAN
ALL = (
    marginals(DOMAIN, upto=2)
    + queries(DOMAIN, b="prefix", weight=3)
    + queries(DOMAIN, b="all_ranges", a="identity", weight="1/3")
)
ALONG_B_AND_C = marginals(DOMAIN, upto=2, of=["b", "c"])
RANGES_OF_B = queries(DOMAIN, b="all_ranges", a="prefix") + queries(
    DOMAIN, b=matrix([[1, -2, 0, 3, 1]])
)
A_AND_B = marginals(DOMAIN, upto=2, of=["a", "b"])
SUMS = marginals(DOMAIN, upto=1, of=["a"], sum="pay")


def _residuals(b, c):
    """Return blocks of every set of attributes, with these rows along b and c."""
    return [
        ((A,), 90),
        ((A, c), 30),
        ((b,), 70),
        ((A, b), 50),
        ((A, b, c), 60),
        ((c,), 40),
        ((b, c), 80),
    ]


CASES = [
    _case("one marginal", LAPLACE, A_AND_B, ((A, B), "5/2")),
    _case("marginals", LAPLACE, ALL, ((A, B), 5), ((A, C), "7/3"), ((B, C), 9), ((), 1)),
    _case(
        "hierarchy along b",
        ROUNDED,
        ALL,
        ((A, TREE), 11),
        ((TREE, C), 17),
        ((A, C), 4),
        ((TREE,), 3),
    ),
    _case("dense along c", ROUNDED, ALONG_B_AND_C, ((TREE, RANDOM), 9), ((RANDOM,), 2)),
    _case(
        "diagonal and rows along b",
        ROUNDED,
        ALONG_B_AND_C + RANGES_OF_B,
        ((A, PLUS), 9),
        ((PLUS, C), 12),
    ),
    _case("contrasts", ROUNDED, ALL, *_residuals(ACROSS_B, ACROSS_C)),
    _case("tilted", ROUNDED, ALL, *_residuals(TILTED_B, TILTED_C)),
    _case(
        "signs beside cells",
        LAPLACE,
        ALL,
        ((SIGN_A,), 20),
        ((SIGN_A, B), 30),
        ((A, C), 25),
        ((SIGN_A, B, C), 40),
        ((B, C), 60),
    ),
    _case(
        "no product form",
        LAPLACE,
        A_AND_B + marginals(DOMAIN, ways=1, of=["c"]),
        ((A, B), 5),
        ((A, factor("b", Prefix(5))), 3),
        ((factor("b", Total(5)), C), 2),
    ),
    _case(
        "counts and sums",
        LAPLACE,
        marginals(DOMAIN, upto=2, of=["a", "c"]) + SUMS,
        ((A, C), 5),
        Block((A,), Fraction(300), "pay"),
        Block((), Fraction(120), "pay"),
    ),
]

# Two tables of different strategies, which have a form of their own where they are large.
PAIR = Domain(a=Integers(0, 4), b=Coded(3), c=Integers(0, 5))
GROUPS = factor("a", Dense([[1, 1, 0, 0, 0], [0, 0, 1, 1, 1]]))
WEIGHTED = factor(
    "c", Tree.full(6, 3), np.random.default_rng(0).integers(1, 9, Tree.full(6, 3).rows)
)
MERGED = [
    (GROUPS, factor("b", Dense([[2, 1, 0], [0, 1, 1], [1, 0, 3]])), WEIGHTED),
    (factor("a", Prefix(5)),),
]
OF_GROUPS = (
    queries(PAIR, a=matrix([[1, 1, 0, 0, 0]]), b="identity", c=ranges([(1, 3), (0, 5)]))
    + queries(PAIR, a="prefix")
    + queries(PAIR)
)
CASES += [
    _case(
        "two tables",
        LAPLACE,
        queries(PAIR, a="identity", c="prefix") + OF_GROUPS,
        ((factor("a", Identity(5)), factor("b", Identity(3)), factor("c", Prefix(6))), "7/3"),
        ((GROUPS, WEIGHTED), 3),
    ),
    _case(
        "two tables of which neither has all cells",
        LAPLACE,
        OF_GROUPS,
        (MERGED[0], "7/3"),
        (MERGED[1], 3),
    ),
]

# Strategies of every kind on one domain: if it is large, only a linear solver estimates its cells.
SOLVED = Domain(a=Integers(0, 3), b=Integers(0, 5), c=Integers(0, 2))
_SOLVED_BLOCKS = [
    (tuple(factor(name, Identity(SOLVED.kind(name).size)) for name in SOLVED.names), 5),
    ((factor("a", Prefix(4), [1, 2, 3, 4]), factor("b", Tree.full(6, 2))), 3),
    ((factor("b", Haar(6)), factor("c", Dense([[1, 0, -2], [3, 1, 1]]))), "7/2"),
    ((factor("b", AllRanges(6)),), 40),
    ((factor("c", DiagonalAndRows([1, 2, 3], [[1, 1, 0]])),), 2),
    ((), 1),
]
_JOINT = (Factor(("a", "b"), Dense(np.random.default_rng(3).integers(-2, 3, (5, 24)))),)
_SOLVED_WORKLOAD = marginals(SOLVED, upto=2) + queries(SOLVED, a="prefix", b="all_ranges")
SEPARATE = _case("many tables", LAPLACE, _SOLVED_WORKLOAD, *_SOLVED_BLOCKS)
MIXED = _case("a joint factor", LAPLACE, _SOLVED_WORKLOAD, *_SOLVED_BLOCKS, (_JOINT, 4))
CASES += [SEPARATE, MIXED]

# Counts and sums together, by the distances of values from both ends.
TIPS = Measure("tips", 1, 5)
ENDS = Domain(
    a=Coded(3),
    b=Integers(0, 3),
    measures={"pay": Measure("pay", -2, 6), "tips": TIPS, "count of tips": ValueCount(TIPS)},
)
_ALONG_A = factor("a", Identity(3))
_ALONG_B = factor("b", Identity(4))


def ends(factors, measure):
    """Return a block of distances of values from both ends."""
    return Block(factors, Fraction(1), measure, ends=True)


_OF_ENDS = {
    "both ends alone": [(ends((_ALONG_A,), "pay"), 1.0)],
    "both ends and counts": [
        (ends((_ALONG_A,), "pay"), 1.0),
        (Block((_ALONG_A, _ALONG_B), Fraction(1)), 3.0),
        (ends((_ALONG_A, _ALONG_B), "pay"), 0.4),
        (Block((), Fraction(1)), 2.0),
    ],
    "both ends of two measures": [
        (ends((_ALONG_A,), "pay"), 1.0),
        (ends((_ALONG_A,), "tips"), 2.0),
        (ends((), "tips"), 0.7),
    ],
    "both ends of no product form": [
        (ends((_ALONG_A, factor("b", Prefix(4), [1, 3, 2, 1])), "pay"), 1.0),
        (ends((factor("b", Tree.full(4, 2)),), "pay"), 2.0),
        (Block((_ALONG_B,), Fraction(1)), 1.5),
    ],
}
KINDS = {
    "Laplace": (Privacy(PureDP("1/3")), LAPLACE),
    "Gaussian": (Privacy(ZCDP("1/7")), Noise.DISCRETE_GAUSSIAN),
}
for _name, _blocks in _OF_ENDS.items():
    for _noise, _kind in KINDS.items():
        _plan = fit_noise_scales(ENDS, *_kind, _blocks)
        _sums = together(
            [queries(ENDS, a="identity", sum=measure) for measure in LeastSquares(_plan).measures]
        )
        CASES.append(Case(f"{_name}, {_noise}", _plan, _sums))

# Levels of one attribute, of unequal groups.
IN_ORDER = [0, 0, 0, 1, 1, 2, 3, 3, 3, 3]
SHUFFLED = [0, 1, 0, 2, 3, 3, 1, 0, 3, 3]


def leveled(groups, *, with_prefix=True):
    """Return a workload of places in unequal groups and regions, by sex and age."""
    regions = np.array([0, 0, 1, 1])[groups]
    levels = {"group": dict(enumerate(groups)), "region": dict(enumerate(regions.tolist()))}
    domain = Domain(sex=Coded(2), place=Coded(len(groups), levels=levels), age=Coded(3))
    others = [dict.fromkeys(names, "identity") for names in ([], ["sex"], ["sex", "age"])]
    along = ["identity", level("group"), level("region"), "total"]
    products = [
        queries(domain, place=query_set, weight=1 + place, **other)
        for place, query_set in enumerate(along)
        for other in others
    ]
    if with_prefix:
        products.append(queries(domain, sex="identity", place="prefix", age="prefix"))
    return together(products)


def level_tables(workload, *, with_weights=False):
    """Return measurements of cells, groups and regions with unequal weights.

    The rows of groups by age and of places may each have their own weight.
    """
    along = {query_set: operator for name, query_set, operator in workload.along if name == "place"}
    sex, place, age = (
        factor(name, Identity(size)) for name, size in (("sex", 2), ("place", 10), ("age", 3))
    )
    group = factor("place", along[level("group")])
    region = factor("place", along[level("region")])
    places = place
    if with_weights:
        group = factor("place", group.operator, range(1, group.operator.rows + 1))
        places = factor("place", place.operator, range(1, place.operator.rows + 1))
    tables = [
        ((sex, place, age), 1.0),
        ((group, age), 0.7),
        ((factor("sex", Contrasts(2)), region), 0.4),
        ((age,), 0.3),
        ((places,), 0.2),
    ]
    return [(Block(factors, Fraction(1)), weight) for factors, weight in tables]


def level_plan(workload, *, with_weights=False):
    """Return a plan of these measurements under rho = 1 / 2."""
    tables = level_tables(workload, with_weights=with_weights)
    privacy = Privacy(ZCDP("1/2"))
    return fit_noise_scales(workload.domain, privacy, Noise.DISCRETE_GAUSSIAN, tables)


for _groups in (IN_ORDER, SHUFFLED):
    for _with_weights in (False, True):
        _workload = leveled(_groups)
        _plan = level_plan(_workload, with_weights=_with_weights)
        CASES.append(Case(f"levels {_groups[1]} {_with_weights}", _plan, _workload))
