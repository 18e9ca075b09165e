"""Define integer linear operators as small frozen values.

An operator represents an integer matrix with ``rows`` queries over ``size`` cells. An operator has
no noise: the noise scales of its rows belong to the plan. The functions of operators are in
``_operator_functions`` and are dispatched by the operator's class.
"""

from dataclasses import dataclass, field, fields
from itertools import pairwise
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from leastnoise._trusted.check import refuse, whole
from leastnoise._trusted.check.arrays import Array, IntArray

SignedArray: TypeAlias = npt.NDArray[np.signedinteger[Any]]

# Far from the limits of int64, so that absolute values and sums of two numbers cannot wrap around.
_MOST_ENTRY = 2**53


class Sealed(np.ndarray[Any, Any]):
    """An array whose memory cannot be viewed as another matrix.

    No function of NumPy can write its entries, because the memory belongs to a ``bytes`` object.
    The attributes and methods of the object cannot change shape, strides or type. The descriptors
    of NumPy's class (such as `np.ndarray.resize`) can change them. So no cost and no noise may rely
    on the assumption that sealed arrays are unchanged: the kernel computes the cost of the
    measurements again just before it draws (K5).

    >>> sealed_copy(np.array([1, 2])).shape = (2, 1)
    Traceback (most recent call last):
    AttributeError: a sealed array cannot be changed: 'shape' cannot be set
    >>> sealed_copy(np.array([1, 2])).resize((2, 1), refcheck=False)
    Traceback (most recent call last):
    AttributeError: a sealed array cannot be resized
    """

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a sealed array cannot be changed: {name!r} cannot be set")

    def resize(self, *_shape: Any, **_options: Any) -> None:
        """Raise an error, because the shape of sealed memory is fixed."""
        raise AttributeError("a sealed array cannot be resized")

    def __setstate__(self, _state: object) -> None:
        """Refuse a new state, which would replace the memory, shape and type."""
        raise AttributeError("a sealed array cannot be given a new state (__setstate__)")

    def __reduce__(self) -> tuple[Any, ...]:
        """Make copies and unpickled objects new sealed arrays."""
        return sealed_copy, (np.array(self),)

    def __array_wrap__(
        self,
        array: Array,
        context: Any = None,
        return_scalar: bool = False,  # noqa: FBT001, FBT002
    ) -> Any:
        if return_scalar:
            return array[()]
        return np.asarray(array)


def sealed_copy(array: Array) -> Array:
    """Return a copy of an array whose entries cannot be changed.

    The copy uses the memory of a ``bytes`` object, so NumPy refuses to make it writable again.

    >>> sealed_copy(np.array([1, 2])).setflags(write=True)
    Traceback (most recent call last):
    ValueError: cannot set WRITEABLE flag to True of this array
    """
    return np.frombuffer(array.tobytes(), dtype=array.dtype).reshape(array.shape).view(Sealed)


def as_int32_if_exact(array: IntArray) -> SignedArray:
    """Convert an int64 array to int32 if all its numbers fit.

    The conversion halves the memory and loses nothing. Otherwise the array is returned unchanged.

    >>> as_int32_if_exact(np.array([3, -4])).dtype, as_int32_if_exact(np.array([2**31])).dtype
    (dtype('int32'), dtype('int64'))
    """
    fits = array.size > 0 and int(array.min()) >= -(2**31) and int(array.max()) < 2**31
    if fits:
        return array.astype(np.int32)
    return array


def freeze_array(name: str, values: object, dimensions: int) -> IntArray:
    """Return a sealed int64 copy of a list of whole numbers.

    Args:
        name: the name of the list in messages.
        values: whole numbers from -2^53 to 2^53.
        dimensions: the number of axes that the array must have.

    Raises:
        InputError: the numbers have another type, or the array has another shape.

    >>> freeze_array("low", [1, 2], 1).tolist()
    [1, 2]
    """
    raw = np.asarray(values)
    if raw.ndim != dimensions or raw.size == 0 or raw.dtype.kind not in "iub":
        raise refuse(
            name,
            f"{raw.dtype} of shape {raw.shape}",
            f"a non-empty array of whole numbers with {dimensions} dimension(s)",
        )
    if not (int(raw.min()) >= -_MOST_ENTRY and int(raw.max()) <= _MOST_ENTRY):
        raise refuse(
            name,
            f"entries from {int(raw.min())} to {int(raw.max())}",
            "whole numbers between -2^53 and 2^53",
        )
    return sealed_copy(raw.astype(np.int64))


class Operator(Protocol):
    """An integer matrix; each class with a registered `apply` is an operator."""

    @property
    def size(self) -> int:
        """The number of cells, which are the columns of the matrix."""

    @property
    def rows(self) -> int:
        """Number of queries."""

    def __hash__(self) -> int: ...


class ValueEquality:
    """Base class of operators that have arrays and are compared by value.

    Two operators are equal if they have the same class and equal fields.
    """

    __slots__ = ()

    def _parts(self) -> tuple[object, ...]:
        """Return the values that decide equality, with arrays converted to bytes."""
        kind: type = type(self)
        values = (getattr(self, part.name) for part in fields(kind))
        return tuple(
            value.tobytes() if isinstance(value, np.ndarray) else value for value in values
        )

    def __eq__(self, other: object) -> bool:
        return self is other or (
            type(self) is type(other)
            and isinstance(other, ValueEquality)
            and self._parts() == other._parts()
        )

    def __hash__(self) -> int:
        return hash(self._parts())


@dataclass(frozen=True, slots=True)
class Sized:
    """Base class of operators with a stated number of cells, at least 1."""

    size: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", whole("size", self.size, 1))


@dataclass(frozen=True, slots=True)
class Identity(Sized):
    """The queries for every single cell: the n x n identity matrix.

    >>> Identity(3).rows
    3
    """

    @property
    def rows(self) -> int:
        """Number of queries."""
        return self.size


@dataclass(frozen=True, slots=True)
class Total(Sized):
    """The query for the sum of all cells: one row of ones.

    >>> Total(3).rows
    1
    """

    @property
    def rows(self) -> int:
        """Number of queries."""
        return 1


@dataclass(frozen=True, slots=True)
class Prefix(Sized):
    """The prefix sums; row i is the sum of the cells 0 to i.

    >>> Prefix(3).rows
    3
    """

    @property
    def rows(self) -> int:
        """Number of queries."""
        return self.size


@dataclass(frozen=True, slots=True)
class AllRanges(Sized):
    """The sums of all n (n + 1) / 2 intervals of consecutive cells.

    The rows are ordered by first cell, then by last cell.

    >>> AllRanges(3).rows
    6
    """

    @property
    def rows(self) -> int:
        """Number of queries."""
        return self.size * (self.size + 1) // 2


@dataclass(frozen=True, slots=True, eq=False)
class Ranges(ValueEquality, Sized):
    """The sums of listed intervals; row i is the sum of cells low[i] to high[i].

    >>> Ranges(5, [0, 2], [1, 4]).rows
    2
    """

    low: IntArray
    high: IntArray

    def __post_init__(self) -> None:
        Sized.__post_init__(self)
        object.__setattr__(self, "low", freeze_array("low", self.low, 1))
        object.__setattr__(self, "high", freeze_array("high", self.high, 1))
        if len(self.low) != len(self.high):
            raise refuse("high", f"{len(self.high)} ends", f"as long as low ({len(self.low)})")
        if not (
            np.all(self.low >= 0)
            and np.all(self.low <= self.high)
            and np.all(self.high < self.size)
        ):
            raise refuse(
                "ranges",
                "an interval outside the cells or with its ends exchanged",
                f"pairs 0 <= low <= high <= {self.size - 1}",
            )

    @property
    def rows(self) -> int:
        """Number of queries."""
        return len(self.low)


@dataclass(frozen=True, slots=True)
class Tree(Sized):
    """The sums of the blocks of nested partitions, the widest blocks first.

    Every level divides the cells into blocks of its width (the last block may be shorter). The rows
    are ordered by level, and from left to right. Every cell lies in exactly one row of every level,
    so all columns have the same norm.

    Args:
        size: number of cells.
        widths: strictly descending, each a multiple of the next.

    >>> Tree(5, (4, 1)).rows, Tree.full(5, 2).widths
    (7, (8, 4, 2, 1))
    """

    widths: tuple[int, ...]

    def __post_init__(self) -> None:
        Sized.__post_init__(self)
        widths = tuple(whole("width", width, 1, 2**40) for width in self.widths)
        if not widths or any(wide <= narrow or wide % narrow for wide, narrow in pairwise(widths)):
            raise refuse(
                "widths", list(widths), "descending whole numbers, each a multiple of the next"
            )
        object.__setattr__(self, "widths", widths)

    @staticmethod
    def full(size: int, branching: int) -> "Tree":
        """Return the tree whose block widths are all powers of ``branching``.

        The widths end with the first power that is at least the number of cells.

        >>> Tree.full(3, 2).rows
        6
        """
        whole("branching", branching, 2)
        widths = [1]
        while widths[0] < whole("size", size, 1):
            widths.insert(0, widths[0] * branching)
        return Tree(size, tuple(widths))

    @property
    def level_sizes(self) -> tuple[int, ...]:
        """Number of rows on each level, widest first."""
        return tuple(-(-self.size // width) for width in self.widths)

    @property
    def rows(self) -> int:
        """Number of queries."""
        return sum(self.level_sizes)


@dataclass(frozen=True, slots=True, eq=False)
class Dense:
    """An explicit integer matrix of shape (rows, size).

    >>> Dense([[1, 1, 0], [0, 1, -1]]).rows
    2
    """

    matrix: IntArray
    largest: int = field(init=False, repr=False)
    _hash: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "matrix", freeze_array("matrix", self.matrix, 2))
        object.__setattr__(self, "largest", int(np.abs(self.matrix).max()))
        object.__setattr__(self, "_hash", hash((self.matrix.shape, self.matrix.tobytes())))

    @property
    def rows(self) -> int:
        """Number of queries."""
        return int(self.matrix.shape[0])

    @property
    def size(self) -> int:
        """Number of cells."""
        return int(self.matrix.shape[1])

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, Dense) and np.array_equal(self.matrix, other.matrix)
        )

    def __hash__(self) -> int:
        return self._hash


@dataclass(frozen=True, slots=True, eq=False)
class DiagonalAndRows(ValueEquality):
    """A multiple of every cell, followed by a few dense rows.

    The strategies of p-Identity have this form.

    Args:
        diagonal: whole numbers other than 0, one for each cell, shape (size,).
        below: whole numbers, shape (p, size). These rows come after the rows of the single cells.

    >>> DiagonalAndRows([2, 3], [[1, 1]]).rows
    3
    """

    diagonal: IntArray
    below: IntArray

    def __post_init__(self) -> None:
        object.__setattr__(self, "diagonal", freeze_array("diagonal", self.diagonal, 1))
        object.__setattr__(self, "below", freeze_array("below", self.below, 2))
        if self.below.shape[1] != len(self.diagonal) or not self.diagonal.all():
            raise refuse(
                "diagonal",
                f"{len(self.diagonal)} numbers for rows of {self.below.shape[1]}",
                "as long as the rows, without a zero",
            )

    @property
    def size(self) -> int:
        """Number of cells."""
        return len(self.diagonal)

    @property
    def rows(self) -> int:
        """Number of queries."""
        return self.size + len(self.below)
