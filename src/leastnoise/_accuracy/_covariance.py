"""Covariances of least squares answers, table by table: never more than the two tables that are asked about."""

from leastnoise._accuracy._form import Known
from leastnoise._check import InputError
from leastnoise._check.arrays import FloatArray
from leastnoise._workload import Product

MOST_COVARIANCES = 2**24


def covariances(structure: Known, one: Product, other: Product | None = None) -> FloatArray:
    """Covariance of every answer of a table with every answer of another, or of its own."""
    second = one if other is None else other
    if one.measure != second.measure:
        raise InputError(f"Covariances must be of one measure; got {one.name} and {second.name}. Ask for each of them.")
    if not one.rows * second.rows <= MOST_COVARIANCES:
        raise InputError(
            f"At most {MOST_COVARIANCES} covariances can be listed at once; got {one.rows} x {second.rows}. Ask for smaller tables."
        )
    return structure.covariance(one, second)
