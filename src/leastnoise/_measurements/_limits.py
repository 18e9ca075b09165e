"""Public limits on what one row may add to a sum, by the cell that the row is in."""

from dataclasses import dataclass

import numpy as np

from leastnoise._check import plain, refuse
from leastnoise._check.arrays import IntArray
from leastnoise._linop import sealed

_MOST = 2**53 - 1  # the most units that a measure's bound may have


@dataclass(frozen=True, slots=True, eq=False)
class Limits:
    """The most that a row adds to a sum: a value above its limit is counted as the limit.

    A row's limit is that of its own cell, so that a row outside a query never enters it, however its value was cut (filter first, then
    clip). The kernel enforces the limits and the cost of a plan is computed from them.

    Args:
        values: whole numbers of at least 0, one of them above, in units of the measure; one for each cell of the attribute, or a single
            one. int64 after construction, read only.
        attribute: whose cells the limits belong to; it need not be among the attributes of a block. None: one limit for all rows.

    Raises:
        InputError: values of another kind, or several of them without an attribute.

    >>> Limits([100, 250, 250], "age").values.tolist(), Limits([250]).attribute
    ([100, 250, 250], None)
    """

    values: IntArray
    attribute: str | None = None

    def __post_init__(self) -> None:
        given = np.array(self.values)
        if given.dtype.kind not in "iu" or given.ndim != 1 or not given.size:
            raise refuse("limits", f"{given.dtype} array of shape {given.shape}", "a flat array of whole numbers")
        low, high = int(given.min()), int(given.max())
        if not (low >= 0 and 1 <= high <= _MOST):
            raise refuse("limits", f"{low} to {high}", "from 0 to 2^53 - 1 units, one of them at least 1")
        if self.attribute is None and given.size != 1:
            raise refuse("limits without an attribute", f"{given.size} values", "one value", "Name the attribute whose cells they are for.")
        object.__setattr__(self, "attribute", plain(self.attribute))
        object.__setattr__(self, "values", sealed(given.astype(np.int64)))

    def key(self) -> tuple[str | None, bytes]:
        """A hashable value that is equal for equal limits."""
        return self.attribute, self.values.tobytes()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Limits) and self.key() == other.key()

    def __hash__(self) -> int:
        return hash(self.key())
