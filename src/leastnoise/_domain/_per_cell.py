"""A bound on the rows of a unit in one cell of some attributes."""

from collections.abc import Sequence
from dataclasses import dataclass

from leastnoise._check import plain, refuse, whole

_MOST_NAMES = 8  # blocks of contrasts are split along each of them


@dataclass(frozen=True, slots=True, init=False)
class PerCell:
    """A bound on the rows of one unit that fall into one cell: it makes tables that have all its attributes cheaper under Gaussian noise.

    Args:
        rows: at most so many rows of a unit count in one cell.
        attributes: one name or several, whose values together are the cell.

    Raises:
        InputError: rows below 1, no attribute, one twice, or more than 8.

    >>> ln.PerCell(1, "month")
    PerCell(rows=1, attributes=('month',))
    """

    rows: int
    attributes: tuple[str, ...]

    def __init__(self, rows: int, attributes: str | Sequence[str]) -> None:
        names = tuple(map(plain, (attributes,) if isinstance(attributes, str) else attributes))
        if not (0 < len(names) <= _MOST_NAMES and len(set(names)) == len(names) and all(isinstance(name, str) and name for name in names)):
            raise refuse("the attributes of max_per_cell", list(names), f"1 to {_MOST_NAMES} names of attributes, none twice")
        object.__setattr__(self, "rows", whole("max_per_cell", rows, 1))
        object.__setattr__(self, "attributes", names)

    def to_json(self) -> dict[str, int | list[str]]:
        """Give the values for a JSON object.

        >>> ln.PerCell(1, "month").to_json()
        {'rows': 1, 'attributes': ['month']}
        """
        return {"rows": self.rows, "attributes": list(self.attributes)}
