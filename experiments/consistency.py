"""Noisy marginals made to agree with each other, in the least, the least squared or the least largest change; never a variable a data cell.

Tables agree when they are the marginals of one data vector, which may have negative cells. That vector is never needed. With tau a set of
attributes inside some table, the cells of the marginal tau in which no attribute takes its last value are independent of each other, and
every table is a whole number of each of them:

    along one attribute  cell j = b_j  (j < last),   last cell = total - sum of b_j

so a table is the product of these over its attributes. There are prod_{i in tau} (n_i - 1) such cells for each tau, as many as residual
(for two values: Fourier) coefficients, and together as many as the rank of all tables. Least squares needs no unknowns at all: it is
diagonal in the residual basis, where the tables' coefficients are averaged with weights.

Source: Cormode et al., 3.3 and 4.3, for attributes of any size.
"""

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from leastnoise._accuracy import subsets
from leastnoise._check import InputError, InternalError, exact_positive, one_of, refuse
from leastnoise._check.arrays import FloatArray
from leastnoise._estimate import from_residual_parts, residual_parts

Names = tuple[str, ...]
ConsistencyNorm = Literal["l1", "l2", "linf"]


@dataclass(frozen=True, slots=True)
class _Tables:
    """Tables over one ordered list of attributes, each with its axes in that order."""

    sizes: Mapping[str, int]
    cubes: Mapping[Names, FloatArray]  # by the names as given
    ordered: Mapping[Names, Names]  # names as given -> in the common order
    scales: Mapping[Names, float]

    def given(self, names: Names, cube: FloatArray) -> FloatArray:
        """A table in the common order with its axes as they were given."""
        order = self.ordered[names]
        return np.transpose(cube, [order.index(name) for name in names])

    def shape(self, names: Names) -> tuple[int, ...]:
        return tuple(self.sizes[name] for name in self.ordered[names])


def _read(tables: Mapping[Names, Any], scales: Mapping[Names, Any] | None) -> _Tables:
    sizes: dict[str, int] = {}
    arrays: dict[Names, FloatArray] = {}
    if not tables:
        raise InputError("consistent must be given at least one table; got none. Pass a mapping from attributes to arrays.")
    for names, values in tables.items():
        cube = np.asarray(values, dtype=np.float64)
        if not isinstance(names, tuple) or len(set(names)) != len(names) or cube.ndim != len(names):
            raise refuse(
                "a table", f"{names!r} with {cube.ndim} axes", "a tuple of different attribute names, one for each axis of its array"
            )
        if not np.isfinite(cube).all():
            raise refuse("the cells of a table", f"a value that is not finite in {' x '.join(names)}", "finite numbers")
        for name, n in zip(names, cube.shape, strict=True):
            if sizes.setdefault(name, n) != n or n == 0:
                raise refuse(f"the size of {name}", n, "the same in all tables, and at least 1")
        arrays[names] = cube
    places = {name: place for place, name in enumerate(sizes)}
    ordered = {names: tuple(sorted(names, key=places.__getitem__)) for names in arrays}
    cubes = {names: np.transpose(cube, [names.index(name) for name in ordered[names]]) for names, cube in arrays.items()}
    if scales is not None and set(scales) != set(arrays):
        raise refuse("scales", f"{len(scales)} tables", f"one number for each of the {len(arrays)} tables")
    found = {names: 1.0 if scales is None else float(exact_positive("scale", float(scales[names]))) for names in arrays}
    return _Tables(sizes, cubes, ordered, found)


def unknowns(shapes: Mapping[Names, Sequence[int]]) -> int:
    """How many independent numbers tables of given attributes hold: the variables of the linear programmes.

    Args:
        shapes: attributes of each table -> their sizes.

    Returns:
        The sum over all tau inside a table of prod_{i in tau} (n_i - 1): the rank of the tables' query matrix.

    >>> unknowns({("sex", "age"): (2, 3), ("age", "zone"): (3, 4)})
    15
    """
    sizes = {name: int(n) for names, shape in shapes.items() for name, n in zip(names, shape, strict=True)}
    every = {frozenset(tau) for names in shapes for tau in subsets(names)}
    return sum(math.prod(sizes[name] - 1 for name in tau) for tau in every)


def consistent(
    tables: Mapping[Names, Any], norm: ConsistencyNorm = "l2", *, scales: Mapping[Names, float] | None = None
) -> dict[Names, FloatArray]:
    """The nearest tables that agree with each other.

    Args:
        tables: attributes -> noisy cells, an array with one axis an attribute, in rows (or units of a measure). The order of attributes is
            free, and may differ between tables.
        norm: of the change over all cells: "l1" the sum of absolute values, "l2" the sum of squares, "linf" the largest.
        scales: for each table the standard error of its cells, by which changes are divided first; ones by default. With "l2" and the true
            ones this is generalised least squares: unbiased, and of least variance.

    Returns:
        Attributes -> cells, in the order and with the axes given. Cells may be negative.

    Raises:
        InputError: no tables, an attribute twice in a table or of two sizes, cells that are not finite, or scales that are not above 0.

    Guarantees: post-processing. All tables are marginals of one real data vector, up to rounding. In the norm chosen the error is at most
        twice what it was, and with "l2" at most what it was: the true tables agree, too.

    Edge cases: with "l1" and "linf" the nearest tables are often not unique; one of them is returned. "l1" solves a linear programme with
        as many variables as cells, "linf" with one more than `unknowns`.

    Source: Cormode et al., 3.3 and 4.3.

    >>> noisy = {("sex",): [6.0, 4.0], (): 13.0}
    >>> {names: cells.round(9).tolist() for names, cells in consistent(noisy).items()}
    {('sex',): [7.0, 5.0], (): 12.0}
    >>> {names: cells.round(9).tolist() for names, cells in consistent(noisy, "linf").items()}
    {('sex',): [7.0, 5.0], (): 12.0}
    """
    one_of("norm", norm, ("l1", "l2", "linf"))
    known = _read(tables, scales)
    return _least_squares(known) if norm == "l2" else _linear_programme(known, norm)


def _least_squares(known: _Tables) -> dict[Names, FloatArray]:
    """Every residual component is the average over the tables that have it, with weights 1 / (scale^2 times the cells summed over)."""
    sums: dict[Names, FloatArray] = {}
    weights: dict[Names, float] = {}
    for names, cube in known.cubes.items():
        for tau, part in residual_parts(cube, known.ordered[names]).items():
            weight = part.size / cube.size / known.scales[names] ** 2
            sums[tau] = sums[tau] + weight * part if tau in sums else weight * part
            weights[tau] = weights.get(tau, 0.0) + weight
    parts = {tau: total / weights[tau] for tau, total in sums.items()}
    return {names: known.given(names, from_residual_parts(parts, known.ordered[names], known.shape(names))) for names in known.cubes}


def _linear_programme(known: _Tables, norm: str) -> dict[Names, FloatArray]:
    """The cells of all tables are C b, b the independent cells; least L1 or L-infinity norm of (C b - noisy) / scale."""
    from scipy.optimize import linprog
    from scipy.sparse import csr_array, diags_array, hstack, vstack

    exact = _cells_of_independent(known)
    noisy = np.concatenate([cube.reshape(-1) for cube in known.cubes.values()])
    scale = np.concatenate([np.full(cube.size, known.scales[names]) for names, cube in known.cubes.items()])
    # Moved by one consistent solution and to the size of the changes, so that the programme's tolerances mean something.
    near = np.concatenate([np.transpose(cube, _order(known, names)).reshape(-1) for names, cube in _least_squares(known).items()])
    change = (noisy - near) / scale
    unit = float(np.abs(change).max())
    if not unit > 0:
        return {names: known.given(names, cube) for names, cube in known.cubes.items()}
    change = change / unit
    matrix = csr_array(diags_array(1 / scale) @ exact)
    if norm == "l1":
        # The dual, max change . y with matrix^T y = 0 and |y| <= 1: a variable a cell, and b are its multipliers.
        found = linprog(-change, A_eq=matrix.T, b_eq=np.zeros(matrix.shape[1]), bounds=(-1, 1), method="highs")
        solution = None if found.x is None else -np.asarray(found.eqlin.marginals)
    else:
        column = csr_array(np.ones((len(noisy), 1)))
        rows = vstack([hstack([matrix, -column]), hstack([-matrix, -column])], format="csr")
        price = np.zeros(matrix.shape[1] + 1)
        price[-1] = 1
        found = linprog(price, A_ub=rows, b_ub=np.concatenate([change, -change]), bounds=(None, None), method="highs")
        solution = None if found.x is None else np.asarray(found.x[:-1])
    if solution is None:
        raise InternalError(f"the linear programme of consistent tables, which always has a solution, was not solved: {found.message}")
    cells = near + exact @ (solution * unit)
    answer, start = {}, 0
    for names, cube in known.cubes.items():
        answer[names] = known.given(names, cells[start : start + cube.size].reshape(cube.shape))
        start += cube.size
    return answer


def _order(known: _Tables, names: Names) -> list[int]:
    return [names.index(name) for name in known.ordered[names]]


def _cells_of_independent(known: _Tables) -> Any:
    """C as a sparse matrix, entries 0 and +-1; shape (cells of all tables, unknowns)."""
    from scipy.sparse import block_array, csr_array, kron

    inside: dict[Names, None] = {}
    for names in known.cubes:
        inside.update(dict.fromkeys(subsets(known.ordered[names])))
    columns = {tau: math.prod(known.sizes[name] - 1 for name in tau) for tau in inside}
    kept = {name: csr_array(np.concatenate([np.eye(n - 1), -np.ones((1, n - 1))])) for name, n in known.sizes.items()}
    last = {name: csr_array(np.eye(n)[:, -1:]) for name, n in known.sizes.items()}
    rows = []
    for names in known.cubes:
        order = set(subsets(known.ordered[names]))
        row: list[Any] = []
        for tau, width in columns.items():
            if width == 0:
                continue
            if tau not in order:
                row.append(None)
                continue
            block = csr_array(np.ones((1, 1)))
            for name in known.ordered[names]:
                block = kron(block, kept[name] if name in tau else last[name], format="csr")
            row.append(block)
        rows.append(row)
    return block_array(rows, format="csr")


def disagreement(tables: Mapping[Names, Any]) -> float:
    """The largest difference between what two tables say about a cell that both determine, in rows (or units of a measure).

    Args:
        tables: attributes -> cells, as for `consistent`.

    >>> disagreement({("sex",): [6.0, 4.0], (): 13.0})
    3.0
    """
    known = _read(tables, None)
    most = 0.0
    for one, other in itertools.combinations(known.cubes, 2):
        shared = set(one) & set(other)
        sums = [_summed(known.cubes[names], known.ordered[names], shared) for names in (one, other)]
        most = max(most, float(np.abs(sums[0] - sums[1]).max()))
    return most


def _summed(cube: FloatArray, names: Names, kept: Iterable[str]) -> FloatArray:
    return np.asarray(cube.sum(axis=tuple(axis for axis, name in enumerate(names) if name not in kept)))
