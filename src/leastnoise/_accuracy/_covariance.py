"""Covariances of least squares answers, table by table: never more than the two tables that are asked about."""

import math
from itertools import combinations

import numpy as np

from leastnoise._accuracy._determined import UnsupportedQuery
from leastnoise._accuracy._structure import DenseStructure, ProductStructure, Structure
from leastnoise._check import InputError
from leastnoise._check.arrays import FloatArray
from leastnoise._linop import Operator, Total, dense
from leastnoise._workload import Product

MOST_COVARIANCES = 2**24


def covariances(structure: Structure, one: Product, other: Product | None = None) -> FloatArray:
    """Covariance of every answer of a table with every answer of another, or of its own.

    Args:
        structure: of the measure that both ask about, from ``structure(plan, measure)``.
        one: a table.
        other: another one; None for the same.

    Returns:
        Array of shape (one.rows, other.rows), answers in row-major order, in squared rows (or units of the measure). The diagonal of a
        table with itself is what ``structure.variances`` says.

    Raises:
        InputError: the tables are of two measures, over 2^24 pairs are asked for, the measurements do not determine a table, or they
            have no form in which covariances are known.

    Source: docs/mathematics.md, (3): in q M^+ q'^T an attribute of tau that only one of the tables has gives 1^T R = 0.

    >>> domain = Domain(age=["a", "b"])
    >>> plan = Measurements(domain=domain, privacy=Privacy(PureDP(1)), noise=Noise.DISCRETE_LAPLACE,
    ...             blocks=(Block((Factor(("age",), Identity(2)),), scale=1),))
    >>> total, cells = marginals(domain, upto=1).products
    >>> covariances(structure(plan, None), cells).round(3).tolist(), covariances(structure(plan, None), cells, total).round(3).tolist()
    ([[1.841, 0.0], [0.0, 1.841]], [[1.841], [1.841]])
    """
    second = one if other is None else other
    if one.measure != second.measure:
        raise InputError(f"Covariances must be of one measure; got {one.name} and {second.name}. Their noise is independent.")
    if not one.rows * second.rows <= MOST_COVARIANCES:
        raise InputError(
            f"At most {MOST_COVARIANCES} covariances can be listed at once; got {one.rows} x {second.rows}. Ask for smaller tables."
        )
    structure.require(one), structure.require(second)
    if isinstance(structure, DenseStructure):
        return structure.rows(one) @ structure.covariance @ structure.rows(second).T
    if not isinstance(structure, ProductStructure):
        raise UnsupportedQuery("Covariances are not known where estimates need a linear solver. Choose a strategy with a product form.")
    return _product_covariances(structure, one, second)


def _product_covariances(structure: ProductStructure, one: Product, other: Product) -> FloatArray:
    operators: list[dict[str, Operator]] = [dict(zip(p.attributes, p.operators, strict=True)) for p in (one, other)]
    names = [name for name in one.domain.names if name in operators[0] or name in operators[1]]
    shared = [name for name in names if name in operators[0] and name in operators[1]]
    along: dict[str, FloatArray] = {}
    spread: dict[str, FloatArray] = {}
    for name in names:
        own = structure.bases[name]
        rows = [dense(each.get(name, Total(own.size))).astype(float) for each in operators]
        along[name] = np.outer(rows[0] @ own.mean, rows[1] @ own.mean)
        if name in shared:
            spread[name] = rows[0] @ own.residual(rows[1].T)
    answer = np.zeros((one.rows, other.rows))
    for size in range(len(shared) + 1):
        for tau in combinations(shared, size):
            term: FloatArray = np.ones((1, 1))
            for name in names:
                term = np.asarray(np.kron(term, spread[name] if name in tau else along[name]), dtype=np.float64)
            known = structure.strength(tau)
            if known > 0:
                answer += term / known
            elif math.sqrt(float((term**2).max())) > 1e-12:
                raise UnsupportedQuery(f"The measurements do not determine {one.name} and {other.name}.")
    return answer
