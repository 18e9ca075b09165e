"""Lower bounds on the total squared error of any unbiased plan, from singular values.

For a strategy A of Gram X and a workload of Gram M, the error at unit noise is tr(M X^-1) >= (tr M^(1/2))^2 / tr X, and tr X is at most n
times the squared sensitivity (Cauchy-Schwarz; Li and Miklau, arXiv 1202.3399). tr M^(1/2) is the nuclear norm of W, here always divided
by sqrt(n), so that domains of any size can be handled. It holds for pure DP too, because the L1 norm of a column is at least its L2 norm.

A union is split by orthogonal projectors on the left (its products) and on the right (the residual subspaces tau): the nuclear norm of W
is at least the sum of those of the parts, if every tau is given to one part; pinching never increases a nuclear norm. The marginals
together are diagonal in the tau; another product takes the tau of all its attributes, or, one product at most, all tau within its
attributes.

A unit of k rows of which at most m are in one cell of some attributes (``max_per_cell``, n cells) shifts the counts by a vector whose
mean square over random cells is k^2 times that of one row on the tau without these attributes, and on the others kappa^2 times it,
kappa^2 = (q n - k^2) / (n - 1), with q the sum of squares of the rows in a cell. So each part of the nuclear norm counts k or kappa fold
in place of k.

Source: Li and Miklau (arXiv 1202.3399), with closed forms for prefix sums, ranges and marginals; replace neighbours are derived in
docs/mathematics.md.
"""

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import compress
from typing import NamedTuple

import numpy as np

from leastnoise._accounting import Noise, Privacy
from leastnoise._accuracy._intervals import noise_variance
from leastnoise._accuracy._measured import Names, subsets
from leastnoise._check.arrays import FloatArray, IntArray
from leastnoise._domain import Domain, Measure, ValueCount
from leastnoise._families import apply_gram, gram_diagonal, interval_ends, singular_values
from leastnoise._fitting import allowed_epsilon, allowed_mu_squared
from leastnoise._linop import Identity, Operator
from leastnoise._measurements import rows_in_view
from leastnoise._workload import Product, Workload, numbered

_MOST_GRAM, _MOST_CLOSED = 2048, 1024
_SWEEPS = 2
_SHARES = [share / 50 for share in range(25, 51)]  # of a measure's values that are its larger end
_MOST_BITS = 62


@lru_cache(maxsize=256)
def nuclear_parts(operator: Operator) -> tuple[float, float]:
    """Nuclear norms over sqrt(n): of the matrix, and of its part along the total."""
    n = operator.size
    along = math.sqrt(float(np.sum(apply_gram(operator, np.ones(n))))) / n
    closed = singular_values(operator)
    if closed is not None:
        return float(closed.sum()) / math.sqrt(n), along
    if n <= _MOST_GRAM:
        return float(np.sqrt(np.maximum(np.linalg.eigvalsh(apply_gram(operator, np.eye(n))), 0)).sum()) / math.sqrt(n), along
    return math.sqrt(float(gram_diagonal(operator).sum()) / n), along


def bound_seconds(workload: Workload) -> float:
    """Estimated CPU seconds of the singular values that have no closed form, once for all strategies."""
    cubes = 0.0
    for _, queries, operator in workload.along:
        closed = queries.form.structured
        if operator.size <= (_MOST_CLOSED if closed else _MOST_GRAM) and operator != Identity(operator.size):
            cubes += ((not closed) + (len(workload.products) > 1)) * (operator.size / 1024) ** 3
    return 0.17 * cubes


@lru_cache(maxsize=256)
def nuclear_across(operator: Operator) -> float:
    """The nuclear norm over sqrt(n) of the part of a matrix across the total."""
    n, closed = operator.size, singular_values(operator) is not None
    if operator == Identity(n):
        return (n - 1) / math.sqrt(n)
    if n <= (_MOST_CLOSED if closed else _MOST_GRAM):
        gram = apply_gram(operator, np.eye(n))
        centred = gram - gram.mean(axis=0) - gram.mean(axis=1)[:, None] + gram.mean()
        return float(np.sqrt(np.maximum(np.linalg.eigvalsh(centred), 0)).sum()) / math.sqrt(n)
    whole, along = nuclear_parts(operator)
    return max(0.0, whole - along) if closed else math.sqrt(max(0.0, whole**2 - along**2))


def spread(privacy: Privacy, domain: Domain, names: Names) -> float:
    """By what the rows of a unit change the residual space of some attributes, beside one row: k, or less where they must be apart."""
    k, bound = privacy.max_rows, privacy.max_per_cell
    if bound is None or not {*names} & {*bound.attributes}:
        return float(k)
    n = math.prod(domain.kind(name).size for name in bound.attributes)
    return math.sqrt(max(0, privacy.squares * n - k**2) / (n - 1)) if n > 1 else float(k)


def nuclear_norm(products: Sequence[Product], worth: Callable[[Names], float] = lambda _: 1.0, *, total: bool = True) -> float:
    """A lower bound on the nuclear norm of weighted products over one data vector, over sqrt(cells).

    Exact for marginals, for equal groups of levels that lie in each other, and for single products.
    A sum's data are counted in the largest value that one row can add, so that a row
    changes them by 1 as it does a count.
    """

    def norm_of(product: Product, part: Callable[[Operator], float]) -> float:
        return worth(product.attributes) * float(product.weight) * math.prod(map(part, product.operators))

    if total and len(products) == 1 and not products[0].is_marginal:  # what lies across the total is not needed, and takes longest
        return norm_of(products[0], lambda one: nuclear_parts(one)[0])
    if all(product.is_marginal for product in products):
        others, best = [], _marginal_norms(products, worth)
    else:
        chains = _chains(products)
        nested = [
            all(_width(operator) in chains[name] for name, operator in zip(product.attributes, product.operators, strict=True))
            for product in products
        ]
        others = [product for product, one in zip(products, nested, strict=True) if not one]
        best = _level_norms([*compress(products, nested)], chains, worth)
    for product in others:
        best[product.attributes] = max(best.get(product.attributes, 0.0), norm_of(product, nuclear_across))
    summed = math.fsum(best.values())
    found = summed if total else summed - best.get((), 0.0)
    for product in others:
        rest = summed - math.fsum(best.get(tau, 0.0) for tau in subsets(product.attributes))
        own, along = norm_of(product, lambda one: nuclear_parts(one)[0]), norm_of(product, lambda one: nuclear_parts(one)[1])
        found = max(found, rest + own - (0.0 if total else along))
    return found


def _marginal_norms(products: Sequence[Product], worth: Callable[[Names], float]) -> dict[Names, float]:
    """The part of every residual space in the nuclear norm of marginals."""
    if not products:
        return {}
    domain, asked = products[0].domain, numbered(products)
    places = np.array([one.place for one in asked.along], dtype=np.int64)
    shape = np.array(domain.shape, dtype=np.float64)
    squares = {id(product.weight): float(product.weight) ** 2 for product in {id(one.weight): one for one in products}.values()}
    weights = np.array([squares[id(product.weight)] for product in products])
    terms = []
    for where, rows in asked.widths:
        sets = places[rows]
        terms.append(Terms(sets, np.ones(sets.shape), np.ones(sets.shape), weights[where] / shape[sets].prod(axis=1)))
    names = np.array(domain.names, dtype=object)
    found: dict[Names, float] = {}
    for sets, sums in subset_sums(terms, len(names)):
        parts = (shape[sets] - 1).prod(axis=1) * np.sqrt(sums)
        for tau, part in zip(map(tuple, names[sets].tolist()), parts.tolist(), strict=True):
            found[tau] = part * worth(tau)
    return found


@lru_cache(maxsize=256)
def _width(operator: Operator) -> int:
    """How many cells each group has, where an operator asks for equal groups of neighbouring cells; else 0."""
    ends = interval_ends(operator) if operator.size % max(operator.rows, 1) == 0 else None
    if ends is None:
        return 0
    width = operator.size // operator.rows
    starts = np.arange(0, operator.size, width)
    return width if np.array_equal(ends[0], starts) and np.array_equal(ends[1], starts + width - 1) else 0


def _chains(products: Sequence[Product]) -> dict[str, list[int]]:
    """The widths of groups that are asked along every attribute and lie in each other, from the finest to all cells."""
    asked: dict[str, set[int]] = {}
    for product in products:
        for name, operator in zip(product.attributes, product.operators, strict=True):
            asked.setdefault(name, {operator.size}).add(_width(operator))
    chains: dict[str, list[int]] = {}
    for name, widths in asked.items():
        for width in sorted(widths - {0}):
            if width % chains.setdefault(name, [width])[-1] == 0 and width != chains[name][-1]:
                chains[name].append(width)
    return chains


def _level_norms(products: Sequence[Product], chains: Mapping[str, Sequence[int]], worth: Callable[[Names], float]) -> dict[Names, float]:
    """The part of every residual space in the nuclear norm of levels: the details of a level over the next coarser one are a space each.

    The Gram matrix of groups of w cells has the eigenvalue w on the details of its own and all coarser levels (docs/mathematics.md).
    """
    squares: dict[tuple[tuple[str, int], ...], float] = {}  # by the widths whose details are a space
    for product in products:
        widths = [_width(operator) for operator in product.operators]
        own = float(product.weight) ** 2 * math.prod(
            width / operator.size for width, operator in zip(widths, product.operators, strict=True)
        )
        along = [[(name, w) for w in chains[name] if w >= width] for name, width in zip(product.attributes, widths, strict=True)]
        for space in itertools.product(*along):
            key = tuple((name, width) for name, width in space if width < chains[name][-1])
            squares[key] = squares.get(key, 0.0) + own
    found: dict[Names, float] = {}
    for space, square in squares.items():
        names = tuple(name for name, _ in space)
        sizes = [(chains[name][-1], width, chains[name][chains[name].index(width) + 1]) for name, width in space]
        details = math.prod(size // width - size // coarser for size, width, coarser in sizes)
        found[names] = found.get(names, 0.0) + details * math.sqrt(square) * worth(names)
    return found


def lower_bound(workload: Workload, privacy: Privacy, noise: Noise, unit_bound: float = 0.0) -> float:
    """A total squared error that no unbiased plan with this noise can go below.

    Guarantees: valid for every strategy with integer queries and least squares, at any dimension, also for one that measures counts and
        sums together; loose for Laplace noise.
    """
    units = {product.measure for product in workload if product.of_units} if workload.domain.measures else set()
    if units and (len(workload.measures) > 1 or rows_in_view(workload.domain, privacy, workload.measures[0]) != privacy):
        rest = tuple(product for product in workload if product.measure not in units)
        parts = [(rest, privacy), *((tuple(workload.of(name)), rows_in_view(workload.domain, privacy, name)) for name in units)]
        power = 3 if noise is Noise.DISCRETE_LAPLACE else 2  # of parts that share a budget, by shares s: the sum of error / s^(power - 1)
        alone = [_bound(Workload(workload.domain, own), rows, noise) for own, rows in parts if own]
        return math.fsum(one ** (1 / power) for one in alone) ** power
    return _bound(workload, privacy, noise, unit_bound)


def _bound(workload: Workload, privacy: Privacy, noise: Noise, unit_bound: float = 0.0) -> float:
    """The same for rows, or for one count of units by itself."""
    bound = privacy.max_per_cell if noise is not Noise.DISCRETE_LAPLACE else None
    rows = privacy.max_rows if bound is None else bound.rows  # of a unit in one cell: the least noise of a query is for so many

    def worth(names: Names) -> float:
        return 1.0 if bound is None else spread(privacy, workload.domain, names) / rows

    replace = privacy.neighbours == "replace"
    norms = {}
    for measure in workload.measures:
        norms[measure] = nuclear_norm(workload.of(measure), worth, total=not replace)
    norm = _together(workload.domain, norms)
    # For replace: the mean over pairs of |a_i - a_j|^2 is 2/n tr(X Q) n/(n-1), so the bound has a factor 2 and the total is free.
    unit = 2 * norm**2 if replace else max(norm**2, unit_bound)
    return unit * _least_variance(privacy, noise, rows)


def _together(domain: Domain, norms: Mapping[str | None, float]) -> float:
    """The nuclear norm of counts and sums together, from that of each; proved in docs/mathematics.md, section 8.

    Let a measure's values be their larger end with some probability and else the other, and M the matrix of E t_i t_j, t_0 = 1 for
    counts and else the value over the largest one. For any such probabilities the norm is at least the nuclear norm of diag(norms) M^(1/2).
    """
    if len(norms) == 1:
        return max(norms.values())
    # Rows without a value change less: the bound is that of rows which have one.
    far, near = np.array([(1.0, 1.0) if name is None else _ends(domain.measure(name)) for name in norms]).T
    weights = np.array(list(norms.values()))
    chosen, best = np.full(len(norms), 0.5), 0.0
    for place in [*range(len(norms))] * _SWEEPS:
        tried = np.tile(chosen, (len(_SHARES), 1))
        tried[:, place] = _SHARES
        mean, square = tried * far + (1 - tried) * near, tried * far**2 + (1 - tried) * near**2
        moments = mean[:, :, None] * mean[:, None, :] + np.maximum(square - mean**2, 0.0)[:, None, :] * np.eye(len(norms))
        found = np.sqrt(np.maximum(np.linalg.eigvalsh(weights[:, None] * moments * weights), 0.0)).sum(axis=1)
        if found.max() > best:
            best, chosen = float(found.max()), tried[found.argmax()]
    return best


def _ends(measure: Measure) -> tuple[float, float]:
    """Both ends of a measure's values over the largest absolute one, that one first; a value counts 1 whatever it is."""
    if isinstance(measure, ValueCount):
        return 1.0, 1.0
    low, high = measure.low_units / measure.largest, measure.high_units / measure.largest
    return (high, low) if abs(high) >= abs(low) else (low, high)


def _least_variance(privacy: Privacy, noise: Noise, rows: int) -> float:
    """Least noise variance of a query that one unit changes by ``rows``, over that change squared, times it."""
    budget = privacy.budget
    if noise is Noise.DISCRETE_LAPLACE:
        # A row with entries of at least 1 has a scale of at least rows / epsilon, and the discrete variance over 2 b^2 grows with b.
        return noise_variance(noise, rows / allowed_epsilon(budget))
    sigma = rows / math.sqrt(float(allowed_mu_squared(budget)))
    return noise_variance(noise, sigma) if noise is Noise.DISCRETE_GAUSSIAN else sigma**2


class Terms(NamedTuple):
    """Sets of one size, with a number for each of their subsets: weight times the product of what is inside and what is outside of it."""

    sets: IntArray
    inside: FloatArray
    outside: FloatArray
    weights: FloatArray


def subset_sums(terms: Iterable[Terms], count: int) -> list[tuple[IntArray, FloatArray]]:
    """For every subset of a set the sum of its numbers in all sets."""
    parts: dict[int, list[tuple[IntArray, FloatArray]]] = {}
    for one in terms:
        chosen: list[tuple[tuple[int, ...], FloatArray]] = [((), one.weights)]
        for column in range(one.sets.shape[1]):
            out, in_ = one.outside[:, column], one.inside[:, column]
            chosen = [(more, own * factor) for columns, own in chosen for more, factor in ((columns, out), ((*columns, column), in_))]
        for columns, own in chosen:
            parts.setdefault(len(columns), []).append((one.sets[:, list(columns)], own))
    found = []
    for size in sorted(parts):
        sets, sums = zip(*parts[size], strict=True)
        found.append(_added(np.concatenate(sets), np.concatenate(sums), count))
    return found


def _added(sets: IntArray, values: FloatArray, count: int) -> tuple[IntArray, FloatArray]:
    size = sets.shape[1]
    if size * math.log2(max(2, count)) < _MOST_BITS:
        keys = np.zeros(len(sets), dtype=np.int64)
        for column in sets.T:
            keys = keys * count + column
        _, first, place = np.unique(keys, return_index=True, return_inverse=True)
        distinct = sets[first]
    else:
        distinct, place = np.unique(sets, axis=0, return_inverse=True)
    return distinct, np.asarray(np.bincount(place.reshape(-1), values, len(distinct)), dtype=np.float64)
