"""Measure what is asked, as it is asked."""

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from leastnoise._check.arrays import FloatArray
from leastnoise._domain import Domain
from leastnoise._families import MOST_DENSE, NotApplicable
from leastnoise._linop import Identity, column_sums, dense
from leastnoise._measurements import Block, Factor
from leastnoise._planner._strategy import Planner, Strategy, Task, block_norm, shortly
from leastnoise._planner.tables._grouping import optimal_budgets
from leastnoise._planner.tables._marginal_weights import grouped_budgets
from leastnoise._workload import Workload

_MOST_ROWS = 2**22
_MOST_COLUMNS = 2**14
_MOST_ENTRIES = 2**22
_LEAST_WEIGHT = 2**-20  # of the heaviest row


def measured_workload(task: Task) -> Strategy:
    """Every product of the workload as a measured table, with the best split of the budget between them.

    Source: the strategy Q+ of Cormode et al. (arXiv 1207.6096); recovery by least squares comes on top.
    """
    workload, norm = task.workload, task.norm
    blocks = asked_blocks(workload)
    if len(blocks) == 1 and len(blocks[0].factors) == 1:
        return Strategy("workload", ((_weighted_rows(blocks[0], norm), 1.0),))
    errors = np.array([product.importance * product.rows for product in workload])
    columns = _columns(workload.domain, blocks, norm)
    if columns is None:
        weights = grouped_budgets(errors, [block_norm(workload.domain, block, norm) for block in blocks], norm).theta
    else:
        weights = optimal_budgets(columns, errors, norm, gap=1e-4, steps=2000).theta
    return Strategy("workload", tuple(zip(blocks, weights.tolist(), strict=True)))


def asked_blocks(workload: Workload) -> list[Block]:
    """Every product of a workload as a measured table."""
    if not workload.rows <= _MOST_ROWS:
        raise NotApplicable(f"the workload has {workload.rows} queries; measured one by one at most {_MOST_ROWS} are allowed")
    return [
        Block(
            tuple(Factor((one,), operator) for one, operator in zip(product.attributes, product.operators, strict=True)),
            Fraction(1),
            product.measure,
        )
        for product in workload
    ]


def _weighted_rows(block: Block, norm: int) -> Block:
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


def _columns(domain: Domain, blocks: Sequence[Block], norm: int) -> FloatArray | None:
    """The column norms of every block over the joint cells of the attributes along which they differ, if some do and they are few."""
    parts = []
    for block in blocks:
        sums = {f.attributes[0]: column_sums(f.operator, f.weights**norm, norm).astype(float) ** (1 / norm) for f in block.factors}
        parts.append({one: own if own.min() < own.max() else own[:1] for one, own in sums.items()})
    names = [one for one in domain.names if any(len(own.get(one, ())) > 1 for own in parts)]
    cells = math.prod(domain.kind(one).size for one in names)
    if not names or not (cells <= _MOST_COLUMNS and cells * len(blocks) <= _MOST_ENTRIES):
        return None
    columns = np.empty((len(blocks), cells))
    for row, block, own in zip(columns, blocks, parts, strict=True):
        cube = np.full([1] * len(names), float(domain.largest_value(block.measure)))
        for one, sums_along in own.items():
            cube = cube * (sums_along.reshape([-1 if one == other else 1 for other in names]) if one in names else sums_along[0])
        row[:] = np.broadcast_to(cube, [domain.kind(one).size for one in names]).reshape(-1)
    return columns


def _seconds(workload: Workload) -> float:
    """Estimated CPU seconds: of the programme for single queries, and of the inverses that the error bars need."""
    known = {operator for _, _, operator in workload.along if operator.rows > 1} - {
        Identity(workload.domain.kind(name).size) for name in workload.domain.names
    }
    entries = sum(operator.rows * operator.size for operator in known)
    alone = len(workload.products) == 1 and len(workload.products[0].operators) == 1 and entries <= _MOST_ENTRIES
    inverses = sum(0.25 * (min(operator.rows, operator.size) / 1024) ** 3 if operator.size <= MOST_DENSE else 0.3 for operator in known)
    return shortly(workload) + (1.8 * entries / 2**20 if alone else 0.0) + inverses + _joint_seconds(workload)


def _joint_seconds(workload: Workload) -> float:
    """Of the inverse over the joint cells, where an attribute is asked about in several ways."""
    ways = {(name, operator) for name, _, operator in workload.along}
    cells = math.prod(workload.domain.kind(name).size for name in workload.attributes)
    return 10 * (cells / 2880) ** 3 if len(ways) > len(workload.attributes) and cells <= MOST_DENSE else 0.0


WORKLOAD = Planner(
    name="workload",
    propose=measured_workload,
    measures="every query that is asked, as it is asked",
    made_for="few queries",
    limits="2^22 queries",
    seconds=_seconds,
    late=True,
)
