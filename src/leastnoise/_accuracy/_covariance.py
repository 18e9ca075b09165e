"""Covariances of least squares answers, table by table: never more than the two tables that are asked about."""

from leastnoise._accuracy._form import Known
from leastnoise._check import InputError
from leastnoise._check.arrays import FloatArray
from leastnoise._workload import Product

MOST_COVARIANCES = 2**24


def covariances(structure: Known, one: Product, other: Product | None = None) -> FloatArray:
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

    >>> domain = Domain(age=["a", "b"])
    >>> plan = Measurements(domain=domain, privacy=Privacy(PureDP(1)), noise=Noise.DISCRETE_LAPLACE,
    ...             blocks=(Block((Factor(("age",), Identity(2)),), scale=1),))
    >>> total, cells = marginals(domain, upto=1).products
    >>> covariances(structure(plan, None), cells).round(3).tolist(), covariances(structure(plan, None), cells, total).round(3).tolist()
    ([[1.841, 0.0], [0.0, 1.841]], [[1.841], [1.841]])
    """
    second = one if other is None else other
    if one.measure != second.measure:
        raise InputError(f"Covariances must be of one measure; got {one.name} and {second.name}. Ask for each of them.")
    if not one.rows * second.rows <= MOST_COVARIANCES:
        raise InputError(
            f"At most {MOST_COVARIANCES} covariances can be listed at once; got {one.rows} x {second.rows}. Ask for smaller tables."
        )
    return structure.covariance(one, second)
