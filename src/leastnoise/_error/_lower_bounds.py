"""Lower bounds on the total squared error of any unbiased plan.

The bounds are computed from singular values and derived in docs/mathematics.md, section 3.

Let X be the Gram matrix of a strategy A, and M the Gram matrix of a workload W. The error at unit
noise is tr(M X^-1) >= (tr M^(1/2))^2 / tr X, and tr X is at most n times the squared sensitivity
(Li and Miklau, arXiv 1202.3399). tr M^(1/2) is the nuclear norm of W. All functions in this file
return the nuclear norm divided by sqrt(n), which is finite for domains of any size. The workload
matrix of several tables is split by orthogonal projectors. Projectors on the left select tables
(products), and projectors on the right select residual subspaces tau. Every residual subspace tau
is assigned to one part of the union. The joint Gram matrix of all marginals is a multiple of the
identity on every tau. Every other product is assigned the tau of all its attributes. Instead, one
product can be assigned all tau within its attributes. If a unit has several rows, each part is
multiplied by k or kappa.
"""

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain
from typing import NamedTuple

import numpy as np

from leastnoise._domain import (
    CompleteCount,
    DeviationProduct,
    Domain,
    Measure,
    PerCellBound,
    SquaredDeviation,
    ValueCount,
    Weighted,
)
from leastnoise._error._equations import Names, subsets
from leastnoise._error._noise_intervals import noise_variance
from leastnoise._families import (
    InvariantSubspace,
    Levels,
    apply_gram,
    dense_gram,
    fit_gaussian_optimum,
    gram_diagonal,
    partition_groups,
    singular_values,
    trace_of_root,
)
from leastnoise._fitting import allowed_epsilon, allowed_mu_squared
from leastnoise._trusted.accounting import Noise, Privacy
from leastnoise._trusted.check.arrays import FloatArray, IntArray
from leastnoise._trusted.linop import Identity, Operator, Total
from leastnoise._trusted.measurements import privacy_of_part
from leastnoise._workload import Product, Workload, index_queries

_MOST_GRAM = 2048  # maximum number of cells of an operator whose n x n spectrum is computed
_MOST_CLOSED = 1024  # the same limit if there is a closed form
_GAP_OF_CELL_WEIGHTS = 1e-4  # relative to the squared error; the bound may be lower by this share
_MOST_JOINT = 1536  # maximum number of directions of a joint spectrum: rows of a dense matrix
_MOST_DIRECTIONS = 2**62  # maximum number of directions, whose number must fit int64
_MOST_CORNER_VALUES = 11  # maximum number of values at their bounds; they have 2^11 corners
_MEASURE_SWEEPS = 2  # sweeps over the measures when their shares are chosen
# Tried shares of a measure's values at its larger end.
_CANDIDATE_SHARES = [share / 50 for share in range(25, 51)]
_MOST_BITS = 62  # maximum number of bits of a key that codes a set of attributes in int64
NormFactor = Callable[[Names], float]
"""The largest change that the rows of a unit cause in a residual space.

It is divided by the largest number of rows of a unit in one cell.
"""


@lru_cache(maxsize=256)
def nuclear_norm_parts(operator: Operator) -> tuple[float, float]:
    """Return the nuclear norms of a matrix and of its mean over cells.

    The norms are divided by sqrt(n). If the matrix is too large to decompose, the first number is a
    lower bound.
    """
    n = operator.size
    along = math.sqrt(float(np.sum(apply_gram(operator, np.ones(n))))) / n
    groups = partition_groups(operator)
    if groups is None:
        closed = singular_values(operator)
    else:
        closed = np.sqrt(np.bincount(groups))
    if closed is not None:
        return float(closed.sum()) / math.sqrt(n), along
    if n <= _MOST_GRAM:
        return float(
            np.sqrt(np.maximum(np.linalg.eigvalsh(apply_gram(operator, np.eye(n))), 0)).sum()
        ) / math.sqrt(n), along
    return math.sqrt(float(gram_diagonal(operator).sum()) / n), along


def bound_seconds(workload: Workload) -> float:
    """Estimate the CPU seconds that the singular values for the bound take.

    The singular values are computed once for all strategies.
    """
    cubes = 0.0
    for _, queries, operator in workload.along:
        closed = queries.form.structured or partition_groups(operator) is not None
        if operator.size <= (_MOST_CLOSED if closed else _MOST_GRAM) and operator != Identity(
            operator.size
        ):
            cubes += ((not closed) + (len(workload.products) > 1)) * (operator.size / 1024) ** 3
    return 0.17 * cubes


@lru_cache(maxsize=256)
def centred_nuclear_norm(operator: Operator) -> float:
    """Return the nuclear norm of a matrix with centred rows, over sqrt(n)."""
    n = operator.size
    groups = partition_groups(operator)
    if operator == Identity(n):
        return (n - 1) / math.sqrt(n)
    closed = groups is not None or singular_values(operator) is not None
    if groups is not None and operator.rows <= _MOST_CLOSED:
        sizes = np.bincount(groups).astype(np.float64)
        return trace_of_root(np.diag(sizes) - np.outer(sizes, sizes) / n) / math.sqrt(n)
    if n <= (_MOST_CLOSED if closed else _MOST_GRAM):
        gram = apply_gram(operator, np.eye(n))
        centred = gram - gram.mean(axis=0) - gram.mean(axis=1)[:, None] + gram.mean()
        return float(np.sqrt(np.maximum(np.linalg.eigvalsh(centred), 0)).sum()) / math.sqrt(n)
    all_norm, along = nuclear_norm_parts(operator)
    if closed:
        return max(0.0, all_norm - along)
    return math.sqrt(max(0.0, all_norm**2 - along**2))


@dataclass(frozen=True, slots=True)
class _TableNorms:
    """Nuclear norms of tables that share no residual spaces with other tables.

    All these tables have the same attributes.

    Attributes:
        names: the attributes.
        norm_without_total: the nuclear norm of the part without the total along all attributes.
        norm: the nuclear norm.
        norm_of_total: the norm of the part along the total.
    """

    names: Names
    norm_without_total: float
    norm: float
    norm_of_total: float


def nuclear_norm(
    products: Sequence[Product],
    norm_factor: NormFactor = lambda _: 1.0,
    *,
    with_total: bool = True,
    with_cell_weights: bool = False,
) -> float:
    """Return a lower bound on the nuclear norm of all queries of some tables.

    All products are queries on the same data vector. The norm is divided by sqrt(cells).

    The bound equals the nuclear norm for marginals and for single products. The bound also equals
    the nuclear norm for nested levels, unless the levels of several attributes are very large. Sums
    are in units of the largest value that one row can add. So a row changes sums and counts by at
    most
    1. If ``with_cell_weights`` is True, cells in unequal groups are multiplied by the square roots
    of weights whose mean is 1.

    Args:
        products: the tables of one quantity.
        norm_factor: a function that maps attributes to the factor by which the norm of tables on
            these attributes is multiplied.
        with_total: whether the total is included.
        with_cell_weights: whether cells in unequal groups have weights.
    """
    if with_total and len(products) == 1 and not products[0].adds_up:
        # The norm without the total is not needed, and is the slowest to compute.
        return _product_norm(
            products[0], norm_factor, lambda operator: nuclear_norm_parts(operator)[0]
        )
    if all(product.adds_up for product in products):
        norms = _marginal_norms(products, norm_factor)
        best = {tau: norm for tau, norm in norms.items() if tau or with_total}
        other_tables: list[_TableNorms] = []
    else:
        best, other_tables = _norms_with_levels(
            products, norm_factor, with_total=with_total, with_cell_weights=with_cell_weights
        )
    for table in other_tables:
        best[table.names] = max(best.get(table.names, 0.0), table.norm_without_total)
    sum_of_spaces = math.fsum(best.values())
    bound = sum_of_spaces
    for table in other_tables:
        # Replace the norms of the residual spaces on these attributes by the norm of one table.
        other_spaces = sum_of_spaces - math.fsum(best.get(tau, 0.0) for tau in subsets(table.names))
        own_norm = table.norm - (0.0 if with_total else table.norm_of_total)
        bound = max(bound, other_spaces + own_norm)
    return bound


def _product_norm(
    product: Product, norm_factor: NormFactor, operator_norm: Callable[[Operator], float]
) -> float:
    """Return the weighted product of the norms of a table's operators."""
    norms = math.prod(operator_norm(operator) for operator in product.operators)
    return norm_factor(product.attributes) * float(product.weight) * norms


def _norms_with_levels(
    products: Sequence[Product],
    norm_factor: NormFactor,
    *,
    with_total: bool,
    with_cell_weights: bool,
) -> tuple[dict[Names, float], list[_TableNorms]]:
    """Return norms of tables with levels by residual space, and of other tables.

    Tables of levels share residual spaces, so they have one common norm. If the residual spaces of
    levels cannot be joined, tables of levels on the same attributes have a common norm. Every other
    table has a separate norm.
    """
    levels_by_name = _levels(products)
    level_tables: list[Product] = []
    other_products: list[Product] = []
    for product in products:
        is_level_table = all(
            levels_by_name[name].level(operator) is not None
            for name, operator in zip(product.attributes, product.operators, strict=True)
        )
        if is_level_table:
            level_tables.append(product)
        else:
            other_products.append(product)
    spectra = {name: levels.spectrum for name, levels in levels_by_name.items()}
    wide = {name for name, parts in spectra.items() if parts[0].size > 1}
    other_tables: list[_TableNorms] = []
    if other_products or not _spaces_can_be_joined(spectra, level_tables, levels_by_name):
        grouped: dict[Names, list[Product]] = {}
        for product in level_tables:
            if wide & {*product.attributes}:
                grouped.setdefault(product.attributes, []).append(product)
        for names, group in grouped.items():
            other_tables.append(_group_norms(names, group, levels_by_name, norm_factor(names)))
        level_tables = [product for product in level_tables if not wide & {*product.attributes}]
        levels_by_name = {
            name: levels for name, levels in levels_by_name.items() if name not in wide
        }
    elif with_cell_weights:
        for name in wide:
            spectra[name] = _weighted_spectrum(level_tables, name, levels_by_name[name])
    best: dict[Names, float] = {}
    if level_tables:
        best = _level_norms(
            level_tables, levels_by_name, spectra, norm_factor, with_total=with_total
        )
    other_tables += [_norms_of_product(product, norm_factor) for product in other_products]
    return best, other_tables


def _spaces_can_be_joined(
    spectra: Mapping[str, Sequence[InvariantSubspace]],
    level_tables: Sequence[Product],
    levels_by_name: Mapping[str, Levels],
) -> bool:
    """Return whether the joint spectrum of levels is small enough to compute."""
    first_spaces = [parts[0] for parts in spectra.values()]
    level_keys = [*_terms(level_tables, levels_by_name)]
    return _measured_directions(first_spaces, level_keys) is not None


def _norms_of_product(product: Product, norm_factor: NormFactor) -> _TableNorms:
    """Return a table's nuclear norms: without the total, whole, total only."""
    return _TableNorms(
        product.attributes,
        _product_norm(product, norm_factor, centred_nuclear_norm),
        _product_norm(product, norm_factor, lambda operator: nuclear_norm_parts(operator)[0]),
        _product_norm(product, norm_factor, lambda operator: nuclear_norm_parts(operator)[1]),
    )


def _marginal_norms(products: Sequence[Product], norm_factor: NormFactor) -> dict[Names, float]:
    """Return the nuclear norm of the marginals in each residual space."""
    if not products:
        return {}
    domain = products[0].domain
    query_index = index_queries(products)
    positions = np.array([along.position for along in query_index.along], dtype=np.int64)
    shape = np.array(domain.shape, dtype=np.float64)
    weight_of_id = {id(product.weight): product.weight for product in products}
    squares = {key: float(weight) ** 2 for key, weight in weight_of_id.items()}
    weights = np.array([squares[id(product.weight)] for product in products])
    terms = []
    for where, rows in query_index.widths:
        sets = positions[rows]
        terms.append(
            AttributeSetTerms(
                sets,
                np.ones(sets.shape),
                np.ones(sets.shape),
                weights[where] / shape[sets].prod(axis=1),
            )
        )
    names = np.array(domain.names, dtype=object)
    norms: dict[Names, float] = {}
    for sets, sums in subset_sums(terms, len(names)):
        parts = (shape[sets] - 1).prod(axis=1) * np.sqrt(sums)
        norms |= {
            tau: part * norm_factor(tau)
            for tau, part in zip(map(tuple, names[sets].tolist()), parts.tolist(), strict=True)
        }
    return norms


def _levels(products: Sequence[Product]) -> dict[str, Levels]:
    """Return the nested levels that the queries use, keyed by attribute.

    The finest level comes first.
    """
    operators_by_name: dict[str, dict[Operator, None]] = {}
    for product in products:
        for name, operator in zip(product.attributes, product.operators, strict=True):
            operators_by_name.setdefault(name, {})[operator] = None
    levels = {}
    for name, operators in operators_by_name.items():
        levels[name] = Levels.cells_and_total(next(iter(operators)).size)
        for operator in sorted(operators, key=lambda level: -level.rows):
            more = levels[name].with_level(operator)
            if more is not None and more.spectrum:
                levels[name] = more
    return levels


def _terms(
    products: Sequence[Product], levels_by_name: Mapping[str, Levels]
) -> dict[tuple[int, ...], float]:
    """Return the summed squared weights of the products on each set of levels.

    The keys are the levels along all attributes.
    """
    terms: dict[tuple[int, ...], float] = {}
    for product in products:
        operators = dict(zip(product.attributes, product.operators, strict=True))
        key = tuple(
            levels.level(operators.get(name, Total(levels.size))) or 0
            for name, levels in levels_by_name.items()
        )
        terms[key] = terms.get(key, 0.0) + float(product.weight) ** 2
    return terms


def _weighted_spectrum(
    products: Sequence[Product], name: str, levels: Levels
) -> list[InvariantSubspace]:
    """Return invariant subspaces for the cell weights that maximise the bound.

    The maximised bound is the bound for a workload on only this attribute.
    """
    if levels.size > _MOST_CLOSED:
        return levels.spectrum
    gram = np.zeros((levels.size, levels.size))
    for product in products:
        operator = dict(zip(product.attributes, product.operators, strict=True)).get(name)
        if operator is not None:
            groups = levels.groups[levels.level(operator) or 0]
            gram += (
                product.importance * product.rows / operator.rows * np.equal.outer(groups, groups)
            )
    orbits = levels.orbits.orbit_of_group[0]
    optimum = fit_gaussian_optimum(dense_gram(gram, levels.size), gap=_GAP_OF_CELL_WEIGHTS)
    weights = optimum.dual_weights * levels.size
    return levels.weighted_spectrum(np.bincount(orbits, weights) / np.bincount(orbits))


def _level_norms(
    products: Sequence[Product],
    levels_by_name: Mapping[str, Levels],
    spectra: Mapping[str, Sequence[InvariantSubspace]],
    norm_factor: NormFactor,
    *,
    with_total: bool,
) -> dict[Names, float]:
    """Return the nuclear norm of tables with levels in each residual space.

    The key of a residual space is the tuple of attributes along which it excludes the total.
    """
    # All levels along an attribute share invariant subspaces (`InvariantSubspace`). Tables of
    # levels share the products of these subspaces.
    terms = _terms(products, levels_by_name)
    names = tuple(levels_by_name)
    norms: dict[Names, float] = {}
    for tau in dict.fromkeys(
        itertools.chain.from_iterable(subsets(product.attributes) for product in products)
    ):
        for roots in itertools.product(
            *(spectra[name][1:] if name in tau else spectra[name][:1] for name in names)
        ):
            wide = tuple(
                name
                for part, name in zip(roots, names, strict=True)
                if name not in tau and part.size > 1
            )
            least = math.inf
            for more in subsets(wide):
                across = tuple(name for name in names if name in tau or name in more)
                least = min(least, norm_factor(across))
            norms[tau] = norms.get(tau, 0.0) + least * _joint_root(
                roots, terms, with_total=with_total or bool(tau)
            )
    return norms


def _group_norms(
    names: Names,
    products: Sequence[Product],
    levels_by_name: Mapping[str, Levels],
    norm_factor: float,
) -> _TableNorms:
    """Return the nuclear norms of tables of levels on the same attributes."""
    spectra = [levels_by_name[name].spectrum for name in names]
    spectra_without_total = [_without_totals(spectrum) for spectrum in spectra]
    terms = _terms(products, {name: levels_by_name[name] for name in names})
    across = _sum_of_roots(spectra_without_total, terms)
    whole = _sum_of_roots(spectra, terms)
    squares_along = []
    for levels, weight in terms.items():
        first_entries = [
            parts[0].grams[level, 0, 0] for level, parts in zip(levels, spectra, strict=True)
        ]
        squares_along.append(weight * math.prod(first_entries))
    along = math.sqrt(math.fsum(squares_along))
    return _TableNorms(names, norm_factor * across, norm_factor * whole, norm_factor * along)


def _without_totals(spectrum: Sequence[InvariantSubspace]) -> list[InvariantSubspace]:
    """Return the invariant subspaces without the constant vector."""
    return [part.without_total for part in spectrum]


def _sum_of_roots(
    spectra: Sequence[Sequence[InvariantSubspace]], terms: Mapping[tuple[int, ...], float]
) -> float:
    """Return the sum of tr M^(1/2) over all products of subspaces.

    Each product consists of one subspace along each attribute.
    """
    return math.fsum(_joint_root(roots, terms) for roots in itertools.product(*spectra))


def _directions_along(
    parts: Sequence[InvariantSubspace], levels: tuple[int, ...]
) -> list[IntArray]:
    """Return, for each attribute, the directions that a table of levels measures."""
    return [part.directions_of_level(level) for part, level in zip(parts, levels, strict=True)]


def _measured_directions(
    parts: Sequence[InvariantSubspace], keys: Sequence[tuple[int, ...]]
) -> list[IntArray] | None:
    """Return the directions that each table of levels measures, or None.

    The directions lie in one subspace, which is a product of subspaces along the attributes. The
    result is None if there are too many directions.
    """
    axes = [_directions_along(parts, key) for key in keys]
    sizes = [part.size for part in parts]
    if (
        math.prod(sizes) > _MOST_DIRECTIONS
        or max(math.prod(map(len, along)) for along in axes) > _MOST_JOINT
    ):
        return None
    directions = [np.ravel_multi_index(np.ix_(*along), sizes).reshape(-1) for along in axes]
    if len(np.unique(np.concatenate(directions))) <= _MOST_JOINT:
        return directions
    return None


def _joint_root(
    parts: Sequence[InvariantSubspace],
    terms: Mapping[tuple[int, ...], float],
    *,
    with_total: bool = True,
) -> float:
    """Return tr M^(1/2) for a weighted sum M of Kronecker products.

    If M is too large, the result is a lower bound.
    """
    wide = [part for part in parts if part.size != 1]
    weights = _weights_on_wide_parts(parts, terms)
    multiplicity = math.prod(part.multiplicity for part in parts)
    if not weights or not (wide or with_total):
        return 0.0
    if not wide:
        return multiplicity * math.sqrt(weights[()])
    measured_directions = _measured_directions(wide, [*weights])
    if measured_directions is not None:
        gram = _joint_gram(wide, weights, measured_directions)
        if not with_total:
            gram = gram[1:, 1:]  # the first direction is the constant vector
        return multiplicity * trace_of_root(gram)
    return multiplicity * _bound_of_joint_root(wide, weights)


def _weights_on_wide_parts(
    parts: Sequence[InvariantSubspace], terms: Mapping[tuple[int, ...], float]
) -> dict[tuple[int, ...], float]:
    """Return the weights of terms over the subspaces of more than one dimension.

    A one-dimensional subspace multiplies the weight of a term by a number. Terms with weight 0 are
    dropped.
    """
    positions = [position for position, part in enumerate(parts) if part.size != 1]
    weights = dict[tuple[int, ...], float]()
    for levels, weight in terms.items():
        factor = 1.0
        for part, level in zip(parts, levels, strict=True):
            if part.size == 1:
                factor *= float(part.grams[level, 0, 0])
        scale = weight * factor
        key = tuple(levels[position] for position in positions)
        is_nonzero = all(parts[position].grams[levels[position]].any() for position in positions)
        if scale > 0 and is_nonzero:
            weights[key] = weights.get(key, 0.0) + scale
    return weights


def _joint_gram(
    parts: Sequence[InvariantSubspace],
    weights: Mapping[tuple[int, ...], float],
    measured_directions: Sequence[IntArray],
) -> FloatArray:
    """Return the weighted sum of Kronecker products on measured directions."""
    directions = np.unique(np.concatenate(measured_directions))
    gram = np.zeros((len(directions), len(directions)))
    for (key, weight), measured in zip(weights.items(), measured_directions, strict=True):
        rows = np.searchsorted(directions, measured)
        term = np.ones((1, 1))
        for part, level in zip(parts, key, strict=True):
            level_directions = part.directions_of_level(level)
            term = np.kron(term, part.grams[level][np.ix_(level_directions, level_directions)])
        gram[np.ix_(rows, rows)] += weight * term
    return gram


def _bound_of_joint_root(
    subspaces: Sequence[InvariantSubspace], weights: Mapping[tuple[int, ...], float]
) -> float:
    """Return a lower bound on tr M^(1/2) from traces along single attributes.

    Each single term of M gives a lower bound. A Kronecker product of sums along the attributes
    gives another lower bound, after scaling so that it lies below the sum of all terms.
    """
    singles = []
    for key, weight in weights.items():
        traces = [
            trace_of_root(part.grams[level]) for part, level in zip(subspaces, key, strict=True)
        ]
        singles.append(math.sqrt(weight) * math.prod(traces))
    largest_single = max(singles)
    sums: list[dict[int, float]] = [{} for _ in subspaces]
    for key, weight in weights.items():
        for axis, level in zip(sums, key, strict=True):
            axis[level] = axis.get(level, 0.0) + weight
    least = math.inf
    for key in itertools.product(*sums):
        split = math.prod(axis[level] for axis, level in zip(sums, key, strict=True))
        least = min(least, weights.get(key, 0.0) / split)
    roots = []
    for part, axis in zip(subspaces, sums, strict=True):
        weighted_gram = sum(weight * part.grams[level] for level, weight in axis.items())
        roots.append(trace_of_root(np.asarray(weighted_gram)))
    return max(largest_single, math.sqrt(least) * math.prod(roots))


_LARGE_EPSILON = 200.0  # above this epsilon, the bound for pure releases is practically 0


def lower_bound(
    workload: Workload, privacy: Privacy, noise: Noise, unit_bound: float = 0.0
) -> float:
    """Return a lower bound on the total squared error for one kind of noise.

    The bound holds for every unbiased plan.
    """
    # The bound holds for every strategy of integer queries with least squares, including strategies
    # that measure counts and sums jointly. It is loose for Laplace noise.
    if workload.domain.measures:
        units = {product.measure for product in workload if product.is_per_unit}
    else:
        units = set()
    if units and (
        len(workload.measures) > 1
        or privacy_of_part(workload.domain, privacy, workload.measures[0]) != privacy
    ):
        row_products = tuple(product for product in workload if product.measure not in units)
        # The error of parts with budget shares s is: sum of error / s^(power - 1).
        power = 3 if noise is Noise.DISCRETE_LAPLACE else 2
        separate_bounds = []
        for name in units:
            quantity = Workload(workload.domain, tuple(workload.of(name)))
            bounds = [
                _bound_of_quantity(quantity, possible, noise)
                for possible in _attainable_bounds(workload.domain, privacy, name, noise)
            ]
            separate_bounds.append(max(bounds))
        if row_products:
            separate_bounds.append(
                _bound_of_quantity(Workload(workload.domain, row_products), privacy, noise)
            )
        return math.fsum(bound ** (1 / power) for bound in separate_bounds) ** power
    return _bound_of_quantity(workload, privacy, noise, unit_bound)


def pure_lower_bound(workload: Workload, privacy: Privacy) -> float:
    """Return a lower bound on the squared error of unbiased pure-DP releases.

    The bound holds for all noise distributions that do not depend on the data. The result is 0 for
    queries for which no bound is known.
    """
    # The proof uses the bound of Hammersley, Chapman and Robbins. For a change of the counts that
    # costs epsilon, the ratio of the probabilities is within exp(-+epsilon) and has the mean 1. So
    # its variance is at most (exp(epsilon) - 1) (1 - exp(-epsilon)) = 4 sinh(epsilon / 2)^2
    # (Bhatia, Davis). This number replaces the squared length of a column in the bound for Gaussian
    # noise.
    if privacy.max_per_cell is not None or any(product.is_per_unit for product in workload):
        return 0.0
    epsilon = allowed_epsilon(privacy.budget)
    if epsilon > _LARGE_EPSILON:
        return 0.0
    norm = _joint_measures_norm(workload, privacy, in_different_cells=False)
    unit = (2 if privacy.neighbours == "replace" else 1) * norm**2
    return unit * privacy.max_rows**2 / (4 * math.sinh(epsilon / 2) ** 2)


def _attainable_bounds(
    domain: Domain, privacy: Privacy, measure: str | None, noise: Noise
) -> list[Privacy]:
    """Return privacy parameters for each extreme distribution of a unit's rows."""
    bound = privacy.max_per_cell
    view = privacy_of_part(domain, privacy, measure)
    # Every row costs as much as the row of largest cost.
    if bound is None and noise is Noise.DISCRETE_LAPLACE:
        return [replace(view, max_per_cell=None)]
    if bound is None or view.max_per_cell is None:
        return [view]
    # A unit has either as many rows as one cell may have, in any cells, or one row in each cell of
    # the bound.
    possible = [replace(view, max_rows=min(bound.rows, view.max_rows))]
    if {*bound.attributes} <= {*view.max_per_cell.attributes}:
        cells = math.prod(map(domain.cells, bound.attributes))
        one_in_each = PerCellBound(1, bound.attributes)
        rows = min(cells, privacy.max_rows)
        possible.append(replace(view, max_rows=rows, max_per_cell=one_in_each))
    return possible


def _bound_of_quantity(
    workload: Workload, privacy: Privacy, noise: Noise, unit_bound: float = 0.0
) -> float:
    """Return a lower bound on the total squared error for one quantity."""
    rows_apart = privacy.max_per_cell is not None and noise is not Noise.DISCRETE_LAPLACE
    norm = _joint_measures_norm(workload, privacy, in_different_cells=rows_apart)
    # For ``replace``, the mean over pairs of |a_i - a_j|^2 is 2/n tr(X Q) n/(n-1). So the bound has
    # a factor 2, and the total costs nothing.
    if privacy.neighbours == "replace":
        times = 2
    else:
        times = 1
    if privacy.neighbours == "replace":
        unit = 2 * norm**2
    else:
        unit = max(norm**2, unit_bound)
    # A query needs at least the noise that protects all rows of a unit in one cell.
    if privacy.max_per_cell is None:
        rows = privacy.max_rows
    else:
        rows = privacy.max_per_cell.rows
    if noise is Noise.DISCRETE_LAPLACE:
        # A query with entries of at least 1 has a scale of at least rows / epsilon. The ratio of
        # the discrete variance to 2 b^2 grows with b.
        cells = times * norm**2 * _several_cells_factor(workload, privacy)
        return max(unit, cells) * noise_variance(noise, rows / allowed_epsilon(privacy.budget))
    sigma = rows / math.sqrt(float(allowed_mu_squared(privacy.budget)))
    return unit * (noise_variance(noise, sigma) if noise is Noise.DISCRETE_GAUSSIAN else sigma**2)


def _several_cells_factor(workload: Workload, privacy: Privacy) -> float:
    """Return the factor of the bound if a unit has rows in several cells.

    The cost of the unit is the sum of the column lengths for its m cells. The sum of the squares of
    all n lengths is then largest for one long column, or for n columns that share the cost evenly.
    The second case applies if every table distinguishes the cells, because then each cell needs a
    column.
    """
    bound = privacy.max_per_cell
    if bound is None:
        return 1.0
    cells = math.prod(map(workload.domain.cells, bound.attributes))
    filled = min(cells, privacy.max_rows / bound.rows)
    for product in workload:
        operators = dict(zip(product.attributes, product.operators, strict=True))
        if any(
            operators.get(name) != Identity(workload.domain.cells(name))
            for name in bound.attributes
        ):
            return min(cells, filled**2)
    return filled**2


@lru_cache(maxsize=8)
def _joint_measures_norm(
    workload: Workload, privacy: Privacy, *, in_different_cells: bool
) -> float:
    """Return the joint nuclear norm of counts and all sums.

    The rows of a unit may be in one cell, or must be in different ones (``in_different_cells``).
    """
    bound = privacy.max_per_cell
    if not in_different_cells or bound is None:
        return _norm_of_all(workload, privacy)
    cells = math.prod(map(workload.domain.cells, bound.attributes))
    # A unit may have fewer rows than its bound. Rows in half of the cells distinguish the cells
    # best.
    most = min(privacy.max_rows, bound.rows * cells)
    numbers = {most, min(most, bound.rows * max(1, cells // 2)), bound.rows}
    return max(_norm_apart(workload, privacy, rows, cells) for rows in numbers)


def _norm_apart(workload: Workload, privacy: Privacy, rows: int, cells: int) -> float:
    """Return the nuclear norm for units with rows in random different cells.

    Args:
        workload: a workload on one or several measures.
        privacy: the privacy, with a bound on the rows in a cell.
        rows: the number of rows of a unit, in all cells.
        cells: the number of cells of the attributes of the bound.
    """
    bound = privacy.max_per_cell or PerCellBound(rows, workload.domain.names[0])
    along = rows / bound.rows
    squares = replace(privacy, max_rows=rows).squares
    across = along
    if cells > 1:
        across = math.sqrt(max(0, squares * cells - rows**2) / (cells - 1)) / bound.rows

    def factor_of_table(names: Names) -> float:
        """Return the factor of the norm of tables on these attributes."""
        if {*names} & {*bound.attributes}:
            return across
        return along

    add_remove = privacy.neighbours != "replace"
    norms = dict[str | None, float]()
    for name in workload.measures:
        products = workload.of(name)
        norms[name] = nuclear_norm(products, factor_of_table, with_total=add_remove)
        if add_remove and len(bound.attributes) == 1 and cells <= _MOST_CLOSED:
            by_itself = _norm_along(products, bound.attributes[0], along, across)
            norms[name] = max(norms[name], by_itself)
    return _joint_norm(workload.domain, norms)


def _norm_along(
    products: Sequence[Product], attribute: str, total_factor: float, contrast_factor: float
) -> float:
    """Return a nuclear norm bound for units with rows spread along an attribute.

    The bound is the largest norm of tables with equal queries on all other attributes.

    Args:
        products: the tables.
        attribute: the attribute along which the rows of a unit are in different cells.
        total_factor: the square root of the effect of a unit's rows on the total of the cells.
        contrast_factor: the square root of the effect of these rows on all other directions.
    """
    grams: dict[tuple[tuple[str, Operator], ...], tuple[float, FloatArray]] = {}
    for product in products:
        operators = dict(zip(product.attributes, product.operators, strict=True))
        if attribute not in operators:
            continue
        operator = operators.pop(attribute)
        gram = float(product.weight) ** 2 * apply_gram(operator, np.eye(operator.size))
        key = tuple(operators.items())
        others = math.prod(nuclear_norm_parts(other)[0] for other in operators.values())
        grams[key] = others, grams.get(key, (0.0, np.zeros_like(gram)))[1] + gram
    norms = [0.0]
    for others, gram in grams.values():
        n = len(gram)
        root = contrast_factor * np.eye(n) + (total_factor - contrast_factor) / n
        norms.append(others * trace_of_root(root @ gram @ root) / math.sqrt(n))
    return max(norms)


def _norm_of_all(workload: Workload, privacy: Privacy) -> float:
    """Return the joint nuclear norm of all measures for rows in one cell."""
    total = privacy.neighbours != "replace"
    weighted = len(workload.measures) == 1  # cell weights suit only one measure
    norms = {
        name: nuclear_norm(workload.of(name), with_total=total, with_cell_weights=weighted)
        for name in workload.measures
    }
    return _joint_norm(workload.domain, norms)


def _joint_norm(domain: Domain, norms: Mapping[str | None, float]) -> float:
    """Return a lower bound on the joint nuclear norm of counts and sums.

    The bound is computed from the norms of the single quantities. The proof is in
    docs/mathematics.md, section 8.
    """
    # Let every value of a measure be its larger end with some probability, and else its other end.
    # Let M be the matrix of E t_i t_j with t_0 = 1 for counts, and otherwise t_i the value over the
    # largest value. For any such probabilities, the norm is at least the nuclear norm of
    # diag(norms) M^(1/2).
    measures = {name: None if name is None else domain.measure(name) for name in norms}
    relative_ends = _ends_of_independent_values(measures)
    if not relative_ends:  # all values are weights
        return max(norms.values())
    if len(relative_ends) == 1:
        return max(norms[name] for name in relative_ends)
    larger, smaller = np.array([*relative_ends.values()]).T
    weights = np.array([norms[name] for name in relative_ends])
    return max(_norm_at_best_shares(weights, larger, smaller), _norm_at_corners(measures, norms))


def _ends_of_independent_values(
    measures: Mapping[str | None, Measure | None],
) -> dict[str | None, tuple[float, float]]:
    """Return the ends of the ranges of quantities with independent values.

    Only rows of the largest weight are considered. If a measure occurs with and without
    weights, in squares and in products, the result has only its first occurrence. The ends are
    divided by the largest absolute value; the end that is farther from 0 comes first.
    """
    heaviest = {measure.weight for measure in measures.values() if isinstance(measure, Weighted)}
    values: set[Measure] = set(heaviest)
    relative_ends: dict[str | None, tuple[float, float]] = {}
    for name, measure in measures.items():
        value = measure.of if isinstance(measure, (Weighted, SquaredDeviation)) else measure
        # Rows without a value and rows of smaller weights change less. The bound is for rows with a
        # value and the largest weight.
        is_count = measure is None or measure in heaviest
        is_count |= isinstance(value, (CompleteCount, ValueCount))
        if isinstance(measure, DeviationProduct):
            if values.intersection(measure.factors):
                continue
            values.update(measure.factors)
        if not is_count and type(value) is Measure:
            if value in values:
                continue
            values.add(value)
        if isinstance(measure, SquaredDeviation):
            # The least value is 0, the largest is the square of the bound farther from 0.
            value = measure
        if is_count or value is None:
            relative_ends[name] = (1.0, 1.0)
        else:
            ends = (value.low_units / value.largest, value.high_units / value.largest)
            relative_ends[name] = ends if abs(ends[0]) > abs(ends[1]) else (ends[1], ends[0])
    return relative_ends


def _norm_at_best_shares(weights: FloatArray, larger: FloatArray, smaller: FloatArray) -> float:
    """Maximise the bound of `_joint_norm` over the shares of values at each end.

    The share of a quantity is the part of its values that are at its larger end. The search varies
    the share of one quantity after the other, with the other shares fixed.

    Args:
        weights: the norm of each quantity.
        larger: the end of each quantity that is farther from 0, over the largest absolute value.
        smaller: the other end, over the largest absolute value.
    """
    count = len(weights)
    shares = np.full(count, 0.5)
    best = 0.0
    for position in [*range(count)] * _MEASURE_SWEEPS:
        candidates = np.tile(shares, (len(_CANDIDATE_SHARES), 1))
        candidates[:, position] = _CANDIDATE_SHARES
        means = candidates * larger + (1 - candidates) * smaller
        squares = candidates * larger**2 + (1 - candidates) * smaller**2
        variances = np.maximum(squares - means**2, 0.0)
        moments = means[:, :, None] * means[:, None, :] + variances[:, None, :] * np.eye(count)
        eigenvalues = np.linalg.eigvalsh(weights[:, None] * moments * weights)
        norms = np.sqrt(np.maximum(eigenvalues, 0.0)).sum(axis=1)
        if norms.max() > best:
            best = float(norms.max())
            shares = candidates[norms.argmax()]
    return best


def _norm_at_corners(
    measures: Mapping[str | None, Measure | None], norms: Mapping[str | None, float]
) -> float:
    """Return the bound of `_joint_norm` if all values are at their bounds.

    Every value is at each of its two bounds with probability 1/2. So products of different values
    are uncorrelated if the values are symmetric around their centres. The bound is 0 if there are
    no products of deviations, or too many values.
    """
    products = [measure for measure in measures.values() if isinstance(measure, DeviationProduct)]
    bases = [*dict.fromkeys(chain.from_iterable(measure.factors for measure in products))]
    if not 0 < len(bases) <= _MOST_CORNER_VALUES:
        return 0.0
    ends = [(base.low_units, base.high_units) for base in bases]
    corners = np.array([*itertools.product(*ends)], dtype=np.float64)
    values = dict(zip(bases, corners.T, strict=True))
    rows = []
    for name, measure in measures.items():
        contributions = _contributions_at_corners(measure, values, len(corners))
        if contributions is not None:
            rows.append(norms[name] * contributions)
    matrix = np.stack(rows)
    moments = matrix @ matrix.T / len(corners)
    return float(np.sqrt(np.maximum(np.linalg.eigvalsh(moments), 0.0)).sum())


def _contributions_at_corners(
    measure: Measure | None, values: Mapping[Measure, FloatArray], count: int
) -> FloatArray | None:
    """Return a row's relative contribution to a quantity by corner, or None.

    The contribution is divided by its largest absolute value. At a corner, every value is at one of
    its bounds. The result is None if the quantity depends on other values than ``values``.
    """
    if measure is None or isinstance(measure, (CompleteCount, ValueCount)):
        return np.ones(count)
    if isinstance(measure, DeviationProduct):
        contributions = np.ones(count)
        for factor, centre in zip(measure.factors, measure.centres, strict=True):
            contributions = contributions * (values[factor] - centre)
        return np.floor(contributions / measure.divisor + 0.5) / measure.largest
    if measure in values:
        return values[measure] / measure.largest
    return None


class AttributeSetTerms(NamedTuple):
    """Attribute sets of one size, and the factors that determine subset values.

    The value of a subset is a product: the weight, times ``member_factors`` of its members, times
    ``other_factors`` of the remaining members of the set.
    """

    sets: IntArray
    member_factors: FloatArray
    other_factors: FloatArray
    weights: FloatArray


def subset_sums(
    terms: Iterable[AttributeSetTerms], count: int
) -> list[tuple[IntArray, FloatArray]]:
    """Return all subsets of the sets by size, and their summed values."""
    parts: dict[int, list[tuple[IntArray, FloatArray]]] = {}
    for term in terms:
        directions: list[tuple[tuple[int, ...], FloatArray]] = [((), term.weights)]
        for column in range(term.sets.shape[1]):
            outside = term.other_factors[:, column]
            in_ = term.member_factors[:, column]
            extended_directions = []
            for columns, value in directions:
                extended_directions.append((columns, value * outside))
                extended_directions.append(((*columns, column), value * in_))
            directions = extended_directions
        for columns, value in directions:
            parts.setdefault(len(columns), []).append((term.sets[:, list(columns)], value))
    added = []
    for size in sorted(parts):
        sets, values = (np.concatenate(listed) for listed in zip(*parts[size], strict=True))
        if size * math.log2(max(2, count)) < _MOST_BITS:
            keys = np.zeros(len(sets), dtype=np.int64)
            for column in sets.T:
                keys = keys * count + column
            _, first, group = np.unique(keys, return_index=True, return_inverse=True)
            distinct = sets[first]
        else:
            distinct, group = np.unique(sets, axis=0, return_inverse=True)
        added.append(
            (
                distinct,
                np.asarray(np.bincount(group.reshape(-1), values, len(distinct)), dtype=np.float64),
            )
        )
    return added
