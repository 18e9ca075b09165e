"""The covariance of the least squares estimate from a plan's measurements, in a form that is never larger than the tables themselves.

Product form where along every attribute all blocks use one strategy (``_product``). Else two tables on a joint domain of more than 512 and
at most 2^24 cells are inverted in a common basis (``_pair``), and any other blocks over their joint cells (``_joint``): as one matrix on at
most 4096 of them; beyond, up to 2^24, by conjugate gradients.

From it follows what a plan promises: the expected error of a workload, by the same formula for planners, for plans and for error bars.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, combinations
from typing import Any, TypeAlias

from leastnoise._accuracy._bounds import lower_bound
from leastnoise._accuracy._determined import Span, UnsupportedQuery
from leastnoise._accuracy._form import Errors, Known, Structure
from leastnoise._accuracy._joint import MOST_JOINT, IterativeStructure, Joint, dense_structure
from leastnoise._accuracy._measured import Names, centre, explained, middles, told, used
from leastnoise._accuracy._pair import is_pair, pair_structure
from leastnoise._accuracy._product import ProductStructure
from leastnoise._check import InputError
from leastnoise._check.arrays import FloatArray
from leastnoise._domain import Domain
from leastnoise._families import (
    MOST_DENSE,
    MOST_LISTED,
    Basis,
    IdentityBasis,
    Levels,
    Undetermined,
    basis,
    basis_without_total,
    contrast_strength,
    leaves_out_total,
    nested_levels,
    partition,
)
from leastnoise._linop import Identity, Operator, largest_entry
from leastnoise._measurements import Block, Factor, Measurements
from leastnoise._plan import Plan, Promise, TableError
from leastnoise._workload import Product, Statistic, Workload

_MOST_LISTED = 10
_FEW = 512  # cells whose inverse takes no time
Exact: TypeAlias = Sequence[Block]
"""Tables of counts that are known without noise."""
_EXACT = 2.0**-22  # of the least variance: much less would take digits from the rest
ROUNDING = 2.0**-46
"""Of what is subtracted from a variance, at least the error of doing so in doubles: what is left is never too small."""


def exact_variance(plan: Measurements) -> float:
    """What stands for no noise at all beside the noise of counts; the estimate then moves its cells by what is still missing."""
    tables = [(entry.variance, math.prod(largest_entry(factor.operator) for factor in entry.block.factors)) for entry in told(plan, None)]
    return _EXACT * min(variance / entry**2 for variance, entry in tables)


def structure(plan: Measurements, measure: str | None, exact: Exact = ()) -> Known:
    """The covariance of least squares for the counts or the sums of one measure."""
    return combined(plan, measure, {quantity: quantity_structure(plan, quantity, exact) for quantity in middles(plan, measure)})


def combined(plan: Measurements, measure: str | None, known: Mapping[str | None, Structure]) -> Known:
    """What `structure` says, from the structures of the quantities that the sums are made of."""
    parts = middles(plan, measure)
    counted = [quantity for quantity in parts if quantity != measure]
    return SumKnown(known[measure], known[counted[0]], parts[counted[0]]) if counted else known[measure]


def quantity_structure(plan: Measurements, quantity: str | None, exact: Exact = ()) -> Structure:
    """The covariance of least squares, and its estimate, from the blocks that tell of one table of cells, and what is exact of counts."""
    tables = [(entry.block, entry.variance) for entry in told(plan, quantity)]
    if not tables:
        raise UnsupportedQuery(f"The plan measures nothing of {quantity or 'the counts'}.")
    if quantity is None:
        tables += [(block, exact_variance(plan)) for block in exact]
    blocks = [block for block, _ in tables]
    span = Span.of(plan.domain, blocks)
    along: dict[str, dict[Factor, None]] = {}
    apart = True
    for factor in filter(used, dict.fromkeys({id(factor): factor for block in blocks for factor in block.factors}.values())):
        known = Factor(factor.attributes, Identity(factor.operator.size)) if contrast_strength(factor) is not None else factor
        apart &= len(factor.attributes) == 1
        along.setdefault(factor.attributes[0], {})[known] = None
    mixed = [name for name, own in along.items() if len(own) > 1]
    mixed = mixed or [name for name, own in along.items() if _groups(next(iter(own)).operator)][:1]  # in any number, without a matrix
    if apart and len(mixed) <= 1:
        try:
            bases = _bases(plan.domain, {name: next(iter(own)) for name, own in along.items() if name not in mixed})
            levels = nested_levels(plan.domain.kind(mixed[0]).size, [factor.operator for factor in along[mixed[0]]]) if mixed else None
            structure = None if mixed and levels is None else _product_structure(tables, bases, span, *mixed, levels=levels)
        except Undetermined:  # a strategy that does not determine every cell may still determine the queries
            structure = None
        if structure is not None:
            return structure
    sizes = {name: plan.domain.kind(name).size for name in plan.domain.names if any(name in block.attributes for block in blocks)}
    if math.prod(sizes.values()) > _FEW and is_pair(sizes, blocks, MOST_JOINT):
        return pair_structure(sizes, tables, span)
    joint = Joint.of(plan.domain, tables)
    return dense_structure(plan.domain, joint, span) if joint.cells <= MOST_DENSE else IterativeStructure(joint, span)


def _groups(operator: Operator) -> bool:
    """Whether what is measured are groups of cells, each of which is in one."""
    return operator.rows < operator.size and partition(operator) is not None


def _bases(domain: Domain, factors: Mapping[str, Factor]) -> dict[str, Basis]:
    """The basis of every attribute; where what is measured is equal it is one object, by which tables are known to be alike."""
    measured: dict[object, Basis] = {}
    for factor in factors.values():
        if factor.key() not in measured:
            measured[factor.key()] = basis_without_total(factor) if leaves_out_total(factor) else basis(factor)
    # Along an attribute that nothing measures only multiples of the total are known.
    summed = {size: IdentityBasis(size) for size in domain.shape}
    bases = {name: measured[factors[name].key()] if name in factors else None for name in domain.names}
    return {name: summed[domain.kind(name).size] if of_attribute is None else of_attribute for name, of_attribute in bases.items()}


def _product_structure(
    tables: Sequence[tuple[Block, float]],
    bases: Mapping[str, Basis],
    span: Span,
    leveled: str | None = None,
    *,
    levels: Levels | None = None,
) -> ProductStructure | None:
    """The product form, with levels along one attribute where there are some; None where too many tau would have levels."""
    narrow: dict[Names, Any] = {}
    wide = []
    if leveled is not None and levels is not None:  # its own, by which tables with it are told from others
        bases = {**bases, leveled: IdentityBasis(levels.size)}
    # Few factors make very many blocks: what is known of each is looked up once, and found by the object.
    distinct = {id(factor): factor for block, _ in tables for factor in block.factors if factor.attributes != (leveled,)}
    strengths = {place: contrast_strength(factor) or 1.0 for place, factor in distinct.items()}
    along = {place: [factor.attributes[0]] if used(factor) else [] for place, factor in distinct.items()}
    apart = {place: along[place] if leaves_out_total(factor) else [] for place, factor in distinct.items()}
    shrink = {name: 1 / own.kappa for name, own in bases.items()}
    for block, variance in tables:
        own = [place for place in map(id, block.factors) if place in distinct]
        precision = math.prod(map(strengths.__getitem__, own), start=1 / variance)
        names, across = (tuple(chain.from_iterable(map(which.__getitem__, own))) for which in (along, apart))
        if levels is None and names == across:
            narrow[names] = narrow.get(names, 0.0) + precision
            continue
        if len(names) - len(across) > _MOST_LISTED:
            if levels is not None:
                return None
            wide.append((names, across, precision))
            continue
        shares = _shares(tuple(shrink[name] for name in names if name not in across))
        if levels is None:
            for tau, share in zip(explained(names, across), shares, strict=True):
                narrow[tau] = narrow.get(tau, 0.0) + precision * share
            continue
        factor = next((factor for factor in block.factors if factor.attributes == (leveled,)), None)
        level = len(levels.groups) - 1 if factor is None else levels.level(factor.operator) or 0
        weights = 1.0 if factor is None or factor.row_weights is None else factor.scaling**2
        for tau, share in zip(explained(names, across), shares, strict=True):
            known = narrow.setdefault(tau, [0.0] * len(levels.groups))
            known[level] = known[level] + precision * share * weights
    return ProductStructure(bases, narrow, tuple(wide), span, leveled, levels)


@lru_cache(maxsize=4096)
def _shares(shrinks: tuple[float, ...]) -> tuple[float, ...]:
    """For every subset of some attributes, in the order of ``subsets``, the product of what belongs to the others."""
    positions = range(len(shrinks))
    every = (subset for size in range(len(shrinks) + 1) for subset in combinations(positions, size))
    return tuple(math.prod([shrinks[at] for at in positions if at not in subset], start=1.0) for subset in every)


@dataclass(frozen=True, slots=True, eq=False)
class SumKnown(Known):
    """Sums of v as those of v - m plus m times counts, whose errors are uncorrelated."""

    centred: Known
    counts: Known
    middle: float

    @property
    def solver_cells(self) -> int:
        """The larger of the two."""
        return max(self.centred.solver_cells, self.counts.solver_cells)

    def require(self, product: Product) -> None:
        """Refuse a product that the measurements do not determine: whatever tells of centred sums tells of the counts too."""
        self.centred.require(product)

    def variances(self, product: Product) -> FloatArray:
        return self.centred.variances(product) + self.middle**2 * self.counts.variances(product)

    def errors(self, product: Product) -> Errors:
        """The sum and the largest of the variances of a product's answers; of very many answers a bound on the largest."""
        centred, counts = self.centred.errors(product), self.counts.errors(product)
        total = centred.total + self.middle**2 * counts.total
        if not self.middle or (product.rows <= MOST_LISTED and not self.solver_cells):
            return Errors(total, float(self.variances(product).max())) if self.middle else centred
        return Errors(total, centred.largest + self.middle**2 * counts.largest, exact=False)

    def total(self, product: Product) -> float:
        return self.centred.total(product) + self.middle**2 * self.counts.total(product)

    def covariance(self, product: Product, other: Product) -> FloatArray:
        return self.centred.covariance(product, other) + self.middle**2 * self.counts.covariance(product, other)


def structures(workload: Workload, plan: Measurements, exact: Exact = ()) -> dict[str | None, Known]:
    """The covariance structure of every measure that a workload asks about."""
    quantities = dict.fromkeys(quantity for measure in workload.measures for quantity in middles(plan, measure))
    known = {quantity: quantity_structure(plan, quantity, exact) for quantity in quantities}
    return {measure: combined(plan, measure, known) for measure in workload.measures}


def total_squared_error(workload: Workload, plan: Measurements) -> float:
    """Sum over all queries of their importance times the variance of their answer."""
    known = structures(workload, plan)
    return math.fsum(product.importance * known[product.measure].total(product) for product in workload)


def promised(
    workload: Workload,
    measurements: Measurements,
    strategy: str = "given",
    *,
    details: Mapping[str, Any] | None = None,
    iterate: bool = True,
    exact: Exact = (),
) -> Plan:
    """The plan of some measurements for a workload: with the expected error of its queries, and a lower bound of it."""
    # Where ``exact`` tables are known without noise, no bound is known but 0.
    known = structures(workload, measurements, exact)
    for structure in known.values():
        if structure.solver_cells and not iterate:
            raise InputError(
                "its tables have no common product form, so that the error bars need a linear solver over "
                f"{structure.solver_cells} joint cells, which takes long; ask for it by name: strategy = '{strategy}'"
            )
    errors: dict[str | None, Iterator[Errors]] = {}
    for measure, structure in known.items():
        errors[measure] = iter(structure.errors_of(workload.of(measure)))
    tables, total = [], 0.0
    worth: dict[tuple[int, str | None], tuple[float, float]] = {}  # very many tables share few weights
    for product in workload:
        found = next(errors[product.measure])
        key = id(product.weight), product.measure
        importance, weight = worth.get(key) or worth.setdefault(key, (product.importance, float(product.weight)))
        total += importance * found.total
        rows = product.rows
        mean = found.total / rows
        largest = math.sqrt(max(found.largest, mean))
        tables.append(TableError(product.name, rows, weight, math.sqrt(mean), largest, not found.exact))
    facts = dict(details or {})
    unit_bound = float(facts.get("unit_bound", 0.0))
    bound = 0.0 if exact else lower_bound(workload, measurements.privacy, measurements.noise, unit_bound)
    promise = Promise(total, bound, tuple(tables))
    return Plan(
        workload=workload, privacy=measurements.privacy, strategy=strategy, measurements=measurements, promise=promise, details=facts
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class StatisticError:
    """What a plan promises for a statistic."""

    statistic: Statistic
    tables: tuple[str, ...]
    rows: float
    largest_rows: float
    std_error: float | None


def statistic_errors(plan: Plan) -> tuple[StatisticError, ...]:
    """What is known beforehand of the statistics that a plan's workload asks for."""
    # The mean S / C has about the error (s - r c) / C, with the errors s and c of sum and count, C the size and r the mean itself: at most
    # the larger of its public bounds. Of quantiles and distribution functions, the counts up to a cell have a known error, and so has their
    # share of a known number of rows.
    if not plan.workload.statistics:
        return ()
    promised = plan.expected_error().tables
    numbers = {product.question: at for at, product in enumerate(plan.workload)}
    errors = []
    for asked in plan.workload.statistics:
        tables = [promised[numbers[product.question]] for product in plan.workload.tables_of(asked)]
        counts = tables[0]
        errors.append(
            StatisticError(
                statistic=asked,
                tables=tuple(table.name for table in tables),
                rows=counts.rmse,
                largest_rows=counts.largest_std,
                std_error=None if asked.size is None else _error(plan, asked, tables) / float(asked.size),
            )
        )
    return tuple(errors)


def _error(plan: Plan, asked: Statistic, tables: list[TableError]) -> float:
    """Of a share times the size in rows, or of a mean times the size in amounts, where it is largest."""
    if not asked.form.of_measure:
        return tables[0].rmse
    counts, sums = tables
    return mean_error(plan.measured(), asked.of, counts.rmse, sums.rmse) * float(plan.domain.measure(asked.of).unit)


def mean_error(measured: Measurements, measure: str, counts: float, sums: float) -> float:
    """Standard error of S - r C, sum and count of a group, at the mean r within the measure's bounds where it is largest."""
    # (r - m)^2 c^2 beside the centred sums' own, s^2 - m^2 c^2, at the r farthest from m; m is 0 where sums are not centred.
    apart = _middle(measured, measure)
    variance = sums**2 + (farthest(measured, measure) ** 2 - (1 - ROUNDING) * apart**2) * counts**2
    return math.sqrt(max(0.0, variance))


def farthest(measured: Measurements, measure: str) -> float:
    """How far a mean can be from the middle of the bounds, where sums are centred, else from 0; in units of the measure."""
    bounds, apart = measured.domain.measure(measure), _middle(measured, measure)
    return max(abs(bounds.low_units - apart), abs(bounds.high_units - apart))


def _middle(measured: Measurements, measure: str) -> float:
    return centre(measured, measure) or 0.0
