"""Measure what is asked, as it is asked."""

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from leastnoise._accounting import Privacy
from leastnoise._check.arrays import FloatArray
from leastnoise._domain import Domain
from leastnoise._linop import column_sums, dense
from leastnoise._plan import Block, Factor
from leastnoise._planner._strategy import NotApplicable, Strategy, block_norm
from leastnoise._planner.tables._grouping import optimal_budgets
from leastnoise._planner.tables._marginal_weights import Norm, grouped_budgets
from leastnoise._workload import Workload

_MOST_ROWS = 2**22
_MOST_COLUMNS = 2**14
_MOST_ENTRIES = 2**22
_LEAST_WEIGHT = 2**-20  # of the heaviest row


def measured_workload(workload: Workload, privacy: Privacy, power: int, *, even: bool = False) -> Strategy:
    """Every product of the workload as a measured table, with the best split of the budget between them.

    Args:
        workload: what is asked.
        privacy: not used; every planner takes it.
        power: 1 for Laplace, 2 for Gaussian.
        even: the same noise for all instead.

    Returns:
        The strategy. Tables that see every cell alike get their weights in closed form. Others, such as prefix sums or predicates, share
        the budget of every single cell as far as that programme is small; a single product along one attribute has a weight for every
        query.

    Raises:
        NotApplicable: more than 2^22 queries.

    Source: the strategies Q (``even``) and Q+ of Cormode et al. (arXiv 1207.6096); recovery by least squares comes on top.

    >>> measured_workload(queries(Domain(a=["x", "y"]), a="prefix"), Privacy(PureDP(1)), 1).blocks[0][0].rows
    2
    """
    name = "workload_even" if even else "workload"
    if not workload.rows <= _MOST_ROWS:
        raise NotApplicable(f"the workload has {workload.rows} queries; measured one by one at most {_MOST_ROWS} are allowed")
    blocks = [
        Block(
            tuple(Factor((one,), operator) for one, operator in zip(product.attributes, product.operators, strict=True)),
            Fraction(1),
            product.measure,
        )
        for product in workload
    ]
    if even:
        return Strategy(name, tuple((block, 1.0) for block in blocks))
    norm: Norm = "l1" if power == 1 else "l2"
    if len(blocks) == 1 and len(blocks[0].factors) == 1:
        return Strategy(name, ((_weighted_rows(blocks[0], norm), 1.0),))
    errors = np.array([product.importance * product.rows for product in workload])
    columns = _columns(workload.domain, blocks, power)
    if columns is None:
        weights = grouped_budgets(errors, [block_norm(workload.domain, block, power) for block in blocks], norm).theta
    else:
        weights = optimal_budgets(columns, errors, norm, gap=1e-4, steps=2000).theta
    return Strategy(name, tuple(zip(blocks, weights.tolist(), strict=True)))


def _weighted_rows(block: Block, norm: Norm) -> Block:
    """A table along one attribute with the best weight for every query, where they are few."""
    factor = block.factors[0]
    if not factor.operator.rows * factor.operator.size <= _MOST_ENTRIES:
        return block
    found = optimal_budgets(np.abs(dense(factor.operator)).astype(float), np.ones(factor.operator.rows), norm, gap=1e-4, steps=2000)
    shares = np.maximum(found.theta / found.theta.max(), _LEAST_WEIGHT)
    weights = np.rint(shares / _LEAST_WEIGHT).astype(np.int64)
    if (weights == weights[0]).all():
        return block
    return Block((Factor(factor.attributes, factor.operator, weights),), block.scale, block.measure)


def _columns(domain: Domain, blocks: Sequence[Block], power: int) -> FloatArray | None:
    """The column norms of every block over the joint cells of the attributes along which they differ, if some do and they are few."""
    parts = []
    for block in blocks:
        sums = {f.attributes[0]: column_sums(f.operator, f.weights**power, power).astype(float) ** (1 / power) for f in block.factors}
        parts.append({one: own if own.min() < own.max() else own[:1] for one, own in sums.items()})
    names = [one for one in domain.names if any(len(own.get(one, ())) > 1 for own in parts)]
    cells = math.prod(domain.kind(one).size for one in names)
    if not names or not (cells <= _MOST_COLUMNS and cells * len(blocks) <= _MOST_ENTRIES):
        return None
    columns = np.empty((len(blocks), cells))
    for row, block, own in zip(columns, blocks, parts, strict=True):
        cube = np.full([1] * len(names), 1.0 if block.measure is None else float(domain.measures[block.measure].largest))
        for one, sums_along in own.items():
            cube = cube * (sums_along.reshape([-1 if one == other else 1 for other in names]) if one in names else sums_along[0])
        row[:] = np.broadcast_to(cube, [domain.kind(one).size for one in names]).reshape(-1)
    return columns
