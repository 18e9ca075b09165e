"""Families of blocks of points in which every pair or triple of points meets: families of tables to measure.

A few big tables that between them contain every small one are a covering design. The best known ones come from finite geometry. Attributes
are laid on the points: several on one point when there are more attributes than points, none on some when there are fewer.
"""

import itertools
from collections.abc import Iterator
from functools import cache

import numpy as np

from leastnoise._check.arrays import IntArray

Blocks = tuple[tuple[int, ...], ...]
# Field size -> (prime, degree, coefficients of x^degree as a combination of 1, x, ...).
_FIELDS = {
    2: (2, 1, ()),
    3: (3, 1, ()),
    4: (2, 2, (1, 1)),
    5: (5, 1, ()),
    7: (7, 1, ()),
    8: (2, 3, (1, 1, 0)),
    9: (3, 2, (1, 2)),
    11: (11, 1, ()),
}
FIELD_SIZES = tuple(_FIELDS)


@cache
def _field(size: int) -> tuple[IntArray, IntArray]:
    """Build the tables of addition and multiplication of a finite field; element 0 is zero."""
    prime, degree, reduction = _FIELDS[size]
    elements = list(itertools.product(range(prime), repeat=degree))
    number = {element: i for i, element in enumerate(elements)}

    def product(x: tuple[int, ...], y: tuple[int, ...]) -> tuple[int, ...]:
        power = [0] * (2 * degree - 1)
        for (i, a), (j, b) in itertools.product(enumerate(x), enumerate(y)):
            power[i + j] += a * b
        for k in range(2 * degree - 2, degree - 1, -1):
            for i in range(degree):
                power[k - degree + i] += power[k] * reduction[i]
        return tuple(v % prime for v in power[:degree])

    add = np.array([[number[tuple((a + b) % prime for a, b in zip(x, y, strict=True))] for y in elements] for x in elements])
    multiply = np.array([[number[product(x, y)] for y in elements] for x in elements])
    return add, multiply


def _points(size: int, dimension: int) -> IntArray:
    """List one vector for each point of a projective space: its first non-zero entry is the field's one."""
    _, multiply = _field(size)
    one = int(np.flatnonzero((multiply == np.arange(size)).all(axis=1))[0])
    vectors = np.array(list(itertools.product(range(size), repeat=dimension + 1)))[1:]
    leading = vectors[np.arange(len(vectors)), (vectors != 0).argmax(axis=1)]
    return vectors[leading == one]


def _planes(size: int, points: IntArray, dimension: int) -> Blocks:
    """Cut a set of projective points with all hyperplanes; keep the cuts with two points or more."""
    add, multiply = _field(size)
    total = multiply[_points(size, dimension)[:, None, 0], points[None, :, 0]]
    for i in range(1, dimension + 1):
        total = add[total, multiply[_points(size, dimension)[:, None, i], points[None, :, i]]]
    return tuple(block for row in total == 0 if len(block := tuple(np.flatnonzero(row).tolist())) > 1)


@cache
def projective_plane(size: int) -> tuple[int, Blocks]:
    """Return q^2 + q + 1 points and as many lines of q + 1 points; two points share one line."""
    points = _points(size, 2)
    return len(points), _planes(size, points, 2)


@cache
def affine_plane(size: int) -> tuple[int, Blocks]:
    """Return q^2 points and q^2 + q lines of q points; two points share one line."""
    points = _points(size, 2)
    points = points[points[:, 0] != 0]
    return len(points), _planes(size, points, 2)


@cache
def inversive_plane(size: int) -> tuple[int, Blocks]:
    """Return q^2 + 1 points and q^3 + q circles of q + 1 points; three points share one circle.

    The points are the elliptic quadric x0 x1 + f(x2, x3) = 0 with f irreducible, the circles its plane sections.
    """
    add, multiply = _field(size)
    space = _points(size, 3)
    first, second = space[:, 2], space[:, 3]
    for b, c in itertools.product(range(size), range(1, size)):
        form = add[add[multiply[first, first], multiply[b, multiply[first, second]]], multiply[c, multiply[second, second]]]
        if bool(np.all(form[(first != 0) | (second != 0)] != 0)):
            on = add[multiply[space[:, 0], space[:, 1]], form] == 0
            return int(on.sum()), _planes(size, space[on], 3)
    raise AssertionError("every finite field has an irreducible quadratic form")


@cache
def parallel_planes(dimension: int) -> tuple[int, Blocks]:
    """Return the 2^m bit strings and all quadruples that add up to zero; three points share one quadruple."""
    count = 1 << dimension
    return count, tuple((a, b, c, a ^ b ^ c) for a, b, c in itertools.combinations(range(count), 3) if a ^ b ^ c > c)


def zero_sum_blocks(count: int, size: int) -> IntArray:
    """Return all blocks of `size` points out of 0 .. count - 1 whose sum is a multiple of count.

    All but a few of the sets with one point less lie in exactly one block (those whose missing point is among them lie in none): close to
    a Steiner system for every number of points.
    """
    smaller = np.array(list(itertools.combinations(range(count), size - 1)), dtype=np.int64).reshape(-1, size - 1)
    last = -smaller.sum(axis=1) % count
    keep = last > smaller[:, -1]
    return np.column_stack([smaller[keep], last[keep]])


def designs(strength: int, attributes: int) -> Iterator[tuple[str, int, Blocks]]:
    """List covering designs for a number of attributes: name, points, blocks; every `strength` points lie together in a block."""
    for groups in range(strength, min(attributes, strength + 8) + 1):
        yield f"{strength} of {groups} groups", groups, tuple(itertools.combinations(range(groups), strength))
    most = 2.5 * attributes + 2
    if strength == 2:
        for size in FIELD_SIZES:
            for kind, make, points in (("affine", affine_plane, size**2), ("projective", projective_plane, size**2 + size + 1)):
                if points <= most:
                    yield f"{kind} plane of order {size}", *make(size)
    if strength == 3:
        for size in FIELD_SIZES[:-1]:
            if size**2 + 1 <= most:
                yield f"inversive plane of order {size}", *inversive_plane(size)
        for dimension in (3, 4, 5, 6):
            if 1 << dimension <= most:
                yield f"parallel planes of dimension {dimension}", *parallel_planes(dimension)
