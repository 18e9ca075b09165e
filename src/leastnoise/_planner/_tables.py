"""Which tables to measure with what weight, when every attribute has its strategy: the programme that is diagonal in the residual basis.

With the notation of ``accuracy``: measuring the product of the attributes' strategies over a set S with weight theta adds theta^2 times
the product of 1 / kappa_i over S without tau to lambda(tau), and the workload's total squared error is the sum over tau of c(tau) /
lambda(tau). Sums over a measure are a second data vector with the same budget.

Planners on top of it: ``identity`` measures every cell of the joint table, ``marginals`` the tables that are asked about. ``residual`` is
optimal for marginals under Gaussian noise: every residual space is measured by itself, with noise of its own. For a set tau of attributes
the contrasts along all of them are measured, each row with noise in proportion to its norm, so that the noise of the residual table is that
of independent cells, projected. Sums of variances are then least among all mechanisms for marginals.

Source: Cormode et al. (arXiv 1207.6096), budgets and recovery together; docs/mathematics.md for general strategies along the attributes;
Xiao, He, Zhang, Kifer, ResidualPlanner (arXiv 2305.08175), with integer contrasts in place of their floating-point basis.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import chain

import numpy as np

from leastnoise._accounting import Privacy
from leastnoise._accuracy import Terms, subset_sums
from leastnoise._check.arrays import FloatArray, IntArray
from leastnoise._domain import Domain
from leastnoise._families import NotApplicable, basis
from leastnoise._linop import Contrasts, Dense, Identity
from leastnoise._measurements import MOST_TABLE_CELLS, Block, Factor, Limits
from leastnoise._planner._residual_algebra import closed, grouped_budgets, incidence, optimal_weights
from leastnoise._planner._strategy import Planner, Strategy, Task, block_norm, spread_share, tables_of_cells
from leastnoise._workload import Product, Workload, numbered

Names = tuple[str, ...]
_LEAST_SHARE = 1e-8
_DIFFERENCE = Dense(np.array([[1, -1]]))


def factor_along(domain: Domain, name: str, along: Mapping[str, Factor]) -> Factor:
    """The strategy along an attribute: the given one, or every cell."""
    return along.get(name) or Factor((name,), Identity(domain.kind(name).size))


def error_sums(products: Sequence[Product], factors: Mapping[str, Factor]) -> list[tuple[IntArray, FloatArray]]:
    """c(tau): what each residual space contributes to the total squared error, per unit of 1 / lambda(tau)."""
    domain = products[0].domain
    asked = numbered(products)
    parts = []
    for one in asked.along:
        own = basis(factors[one.name])
        mean = own.mean_squares(one.operator)
        parts.append((mean, max(0.0, own.total_variance(one.operator) - own.kappa * mean)))
    means, spreads = np.array(parts).reshape(-1, 2).T
    places = np.array([one.place for one in asked.along], dtype=np.int64)
    importance = np.array([product.importance for product in products])
    # An attribute of one cell has no differences, and a design may leave it out.
    single = np.array(domain.shape)[places] == 1
    terms = []
    for where, rows in asked.widths:
        weights = importance[where] * np.where(single[rows], means[rows], 1.0).prod(axis=1)
        for kept in np.unique(~single[rows], axis=0) if single.any() else np.ones((1, rows.shape[1]), dtype=bool):
            some = (~single[rows] == kept).all(axis=1)
            left = rows[some][:, kept]
            terms.append(Terms(places[left], spreads[left], means[left], weights[some]))
    return subset_sums(terms, len(domain.names))


@dataclass(frozen=True, slots=True)
class Candidates:
    """Tables that may be measured, by measure."""

    tables: Mapping[str | None, Sequence[Names]]
    start: Mapping[str | None, Sequence[float]] | None = None
    signed: Mapping[str | None, Sequence[Names]] | None = None


def weighted_strategy(
    name: str,
    workload: Workload,
    along: Mapping[str, Factor],
    candidates: Candidates,
    norm: int,
    limits: Limits | None = None,
    privacy: Privacy | None = None,
) -> Strategy:
    """The best weights of given tables, recovery by least squares included."""
    domain, tables = workload.domain, candidates.tables
    places = {one: place for place, one in enumerate(domain.names)}
    blocks: list[Block] = []
    matrices, coefficients = [], []
    for measure, sets in tables.items():
        products = workload.of(measure)
        asked = {*chain.from_iterable(sets), *workload.used[measure]}
        factors = {one: factor_along(domain, one, along) for one in asked}
        across = None if candidates.signed is None else candidates.signed[measure]
        blocks += _tables(sets, across or [()] * len(sets), factors, measure, limits)
        sums = error_sums(products, factors)
        closure = closed(domain.shape, [taus for taus, _ in sums])
        kappa = {one: basis(factor).kappa for one, factor in factors.items()}
        # lambda(tau) times the product of 1 / kappa over tau has the same entry in all rows of a table's column.
        share = {one: domain.kind(one).size / kappa[one] for one in factors}
        columns = [math.prod([share[one] for one in names]) for names in sets]
        numbered = [tuple([places[one] for one in names]) for names in sets]
        signed = None if across is None else [tuple([places[one] for one in names]) for names in across]
        matrices.append(incidence(closure, numbered, signed) * np.array(columns))
        coefficients.append(shrunk(domain, kappa, sums))
    cost = np.array([block_norm(domain, block, norm) for block in blocks], dtype=np.float64)
    if privacy is not None and privacy.max_per_cell is not None and norm == 2:
        bare = [[f.attributes[0] for f in block.factors if f.operator == Identity(f.operator.size)] for block in blocks]
        cost *= np.sqrt([spread_share(privacy, domain, names) for names in bare])
    if len(blocks) == 1:
        error = float((coefficients[0] / (np.asarray(matrices[0] @ np.ones(1)))).sum() * cost[0] ** 2)
        return Strategy(name, ((blocks[0], 1.0),), error=error)
    matrix, c = _diagonal(matrices), np.concatenate(coefficients)
    start = candidates.start
    first = 1 / cost if start is None else np.concatenate([np.asarray(start[measure], dtype=float) for measure in tables])
    found = optimal_weights(matrix, c, norm=norm, cost=cost, starts=[first])
    # A table with next to none of the budget tells next to nothing, and its scale could not be drawn.
    shares = found.theta * cost
    used = shares > _LEAST_SHARE * shares.max()
    kept = tuple((block, float(weight)) for block, weight, use in zip(blocks, found.theta, used, strict=True) if use)
    return Strategy(name, kept, error=found.error)


def shrunk(domain: Domain, kappa: Mapping[str, float], sums: Sequence[tuple[IntArray, FloatArray]]) -> FloatArray:
    """c(tau) over the product of kappa over tau, in the order of the closure."""
    along = np.array([kappa.get(name, 1.0) for name in domain.names])
    return np.concatenate([values / along[taus].prod(axis=1) for taus, values in sums])


def _tables(
    sets: Sequence[Names], signed: Sequence[Names], factors: Mapping[str, Factor], measure: str | None, limits: Limits | None
) -> list[Block]:
    """Tables on sets of attributes, some of which are measured by the difference of their two cells."""
    differences = {one: Factor((one,), _DIFFERENCE) for one in {*chain.from_iterable(signed)}}
    found = []
    for names, signs in zip(sets, signed, strict=True):
        own = [(differences if one in signs else factors)[one] for one in names]
        rows, cells = math.prod([factor.operator.rows for factor in own]), math.prod([factor.operator.size for factor in own])
        if not max(rows, cells) <= MOST_TABLE_CELLS:
            raise NotApplicable(f"the table of {' x '.join(names)} has over {MOST_TABLE_CELLS} cells")
        found.append(Block(tuple(own), Fraction(1), measure, limits))
    return found


def reweighted_strategy(name: str, workload: Workload, blocks: Sequence[Block], norm: int) -> Strategy:
    """The best weights of the tables of a strategy for a workload with other weights, without a search for other tables."""
    along: dict[str, Factor] = {}
    tables: dict[str | None, list[Names]] = {}
    signed: dict[str | None, list[Names]] = {}
    start: dict[str | None, list[float]] = {}
    for block in blocks:
        signs = tuple(factor.attributes[0] for factor in block.factors if factor.operator == _DIFFERENCE)
        plain = [factor for factor in block.factors if factor.operator != _DIFFERENCE]
        apart = all(len(factor.attributes) == 1 for factor in block.factors)
        if not apart or block.limits is not None or block.ends or any(along.setdefault(one.attributes[0], one) != one for one in plain):
            raise NotApplicable("the strategy is none of tables with one strategy along every attribute")
        tables.setdefault(block.measure, []).append(block.attributes)
        signed.setdefault(block.measure, []).append(signs)
        start.setdefault(block.measure, []).append(1 / float(block.scale))
    for product in workload:
        if not any(set(product.attributes) <= set(names) for names in tables.get(product.measure, [])):
            raise NotApplicable(f"the strategy has no table that contains {product.name}")
    asked = {measure: tables[measure] for measure in dict.fromkeys(product.measure for product in workload)}
    return weighted_strategy(name, workload, along, Candidates(asked, start, signed), norm)


def _diagonal(matrices: Sequence[object]) -> object:
    if len(matrices) == 1:
        return matrices[0]
    from scipy.sparse import block_diag

    return block_diag(matrices, format="csr")


def asked_tables(workload: Workload) -> dict[str | None, list[Names]]:
    """The attribute sets that a workload asks about, by measure, as lists that others may be added to."""
    return {measure: list(sets) for measure, sets in workload.tables.items()}


def identity(task: Task) -> Strategy:
    """The cells of the joint table, one table a measure.

    Source: the strategy I of Cormode et al. (arXiv 1207.6096).
    """
    workload, norm = task.workload, task.norm
    tables: dict[str | None, list[tuple[str, ...]]] = {}
    for measure in workload.measures:
        asked = {name for product in workload if product.measure == measure for name in product.attributes}
        names = tuple(name for name in workload.domain.names if name in asked)
        cells = math.prod(workload.domain.kind(name).size for name in names)
        if not cells <= MOST_TABLE_CELLS:
            raise NotApplicable(f"the joint table of {' x '.join(names)} has {cells} cells; at most {MOST_TABLE_CELLS} are allowed")
        tables[measure] = [names]
    return weighted_strategy("identity", workload, {}, Candidates(tables), norm, privacy=task.privacy)


IDENTITY = Planner(
    name="identity",
    propose=identity,
    measures="every cell of the joint table of all attributes asked about",
    made_for="few cells",
    limits="a joint table of 2^28 cells",
    reference=lambda _: True,
)


def marginals(task: Task) -> Strategy:
    """One table of cells for every set of attributes that a product asks about.

    Source: Cormode et al. (arXiv 1207.6096), strategy Q+, here with weights that are best after recovery.
    """
    workload, norm = task.workload, task.norm
    return weighted_strategy("marginals", workload, {}, Candidates(workload.tables), norm, privacy=task.privacy)


MARGINALS = Planner(
    name="marginals",
    propose=marginals,
    measures="the tables of cells that are asked about, with the best weights",
    made_for="marginals",
    limits="tables of 2^28 cells",
)
_UNIT = Fraction(1)


def residual(task: Task) -> Strategy:
    """Measure the residual spaces of all asked tables, each with its best share of the budget."""
    workload = task.workload
    domain = workload.domain
    blocks: list[Block] = []
    errors, norms = [], []
    across = 1 - 1 / np.array(domain.shape, dtype=np.float64)
    cells = {name: factor_along(domain, name, {}) for name in workload.attributes}
    for measure in workload.measures:
        for sets, sums in error_sums(workload.of(measure), cells):
            asked = sums > 0
            norm = across[sets[asked]].prod(axis=1)
            taus = sets[asked].tolist()
            if task.privacy.max_per_cell is not None:
                norm *= [spread_share(task.privacy, domain, [domain.names[place] for place in tau], contrasts=True) for tau in taus]
            blocks += contrasts(domain, taus, measure)
            errors.append(sums[asked])
            norms.append(domain.largest_value(measure) * np.sqrt(norm))
    weights = grouped_budgets(np.concatenate(errors), np.concatenate(norms), 2).theta.tolist()
    return Strategy("residual", tuple(zip(blocks, weights, strict=True)))


def contrasts(domain: Domain, taus: Sequence[Sequence[int]], measure: str | None) -> list[Block]:
    """The contrasts along sets of attributes, of counts or of a measure."""
    factors = {place: _contrasts(domain.names[place], domain.shape[place]) for place in {*chain.from_iterable(taus)}}
    return [Block(tuple([factors[place] for place in tau]), _UNIT, measure) for tau in taus]


@lru_cache(maxsize=1024)
def _contrasts(name: str, size: int) -> Factor:
    """Few factors make very many blocks."""
    return Factor((name,), Contrasts(size))


RESIDUAL = Planner(
    name="residual",
    propose=residual,
    measures="integer contrasts of every set of attributes, each set with its own noise: optimal for marginals",
    made_for="marginals under Gaussian noise",
    norms=(2,),
    instead="residual spaces are measured by contrasts, on which Laplace noise is not spent evenly; choose covering",
    limits="tables of 2^28 cells",
    contains=tables_of_cells,
)
