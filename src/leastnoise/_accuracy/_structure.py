"""The covariance of the least squares estimate from a plan's measurements, in a form that is never larger than the tables themselves.

Product form where along every attribute all blocks use one strategy (``_product``). Else two tables on a joint domain of more than 512 and
at most 2^24 cells are inverted in a common basis (`PairStructure`), and any other blocks over their joint cells (``_joint``): as one matrix
on at most 4096 of them; beyond, up to 2^24, by conjugate gradients.

Two tables: two forms along an attribute always are diagonal in one basis. In that basis V the information matrix of both tables has the
entries lambda(k) = p prod_i a_i[k_i] + q prod_i b_i[k_i], p and q one over the noise variances; a query has the variance sum over k of
prod_i (q_i V_i^+)[k_i]^2 / lambda(k), and is determined if it has no part outside the space of V and none where lambda is 0.

From the covariance follows what a plan promises: the expected error of a workload, by the same formula for planners, for plans and for
error bars.

Source: simultaneous diagonalisation of two quadratic forms; docs/mathematics.md, section 6.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, combinations
from typing import Any, TypeAlias

import numpy as np

from leastnoise._accuracy._bounds import lower_bound
from leastnoise._accuracy._determined import Span, UnsupportedQuery, require, split, undetermined
from leastnoise._accuracy._joint import MOST_JOINT, IterativeStructure, Joint, JointStructure, Turned, dense_structure
from leastnoise._accuracy._measured import Errors, JointCells, Known, Measured, Names, Structure, centre, explained, middles, told, used
from leastnoise._accuracy._product import ProductStructure
from leastnoise._check import InputError
from leastnoise._check.arrays import FloatArray
from leastnoise._domain import Domain
from leastnoise._families import (
    MOST_DENSE,
    MOST_LISTED,
    Basis,
    CellsBasis,
    DenseBasis,
    Levels,
    Undetermined,
    applied_in_parts,
    apply_gram,
    basis,
    basis_without_total,
    contrast_strength,
    leaves_out_total,
    nested_levels,
    partition,
    weighted_gram,
)
from leastnoise._linop import Identity, Operator, largest_entry
from leastnoise._measurements import Block, Factor, Measurements
from leastnoise._plan import Plan, Promise, TableError
from leastnoise._workload import Product, Statistic, Workload

MOST_LONG = 2048
"""The longest attribute whose eigenvectors are affordable."""
_ZERO = 1e-9
_NUMBERS = 2**24  # at a time


@dataclass(frozen=True, slots=True, eq=False)
class PairAxis:
    """Two strategies along one attribute in their common basis of r vectors."""

    outward: FloatArray
    shares: tuple[FloatArray, FloatArray]
    determined: FloatArray | None

    @property
    def size(self) -> int:
        """Number of cells."""
        return len(self.outward)

    def sees(self, operator: Operator) -> bool:
        """Whether the rows of an operator are within what is seen."""
        if self.determined is None:
            return True
        asked, seen = (float(np.trace(apply_gram(operator, part))) for part in (np.eye(self.size), self.determined))
        return asked - seen <= _ZERO * asked

    def squares(self, operator: Operator) -> Iterator[tuple[slice, FloatArray]]:
        """(q V^+)^2 for some rows q at a time: which, and an array of shape (rows, r)."""
        for part, rows in applied_in_parts(operator, self.outward):
            yield part, rows**2

    def largest(self, operator: Operator) -> float:
        """The largest sum of the squares of a row."""
        return DenseBasis(self.outward @ self.outward.T).largest_variance(operator)

    def summed(self, operator: Operator) -> FloatArray:
        """The sum of ``squares`` over the rows, without listing them, shape (r,)."""
        return np.maximum((self.outward * apply_gram(operator, self.outward)).sum(axis=0), 0.0)


def pair_axis(size: int, factors: tuple[Factor | None, Factor | None]) -> PairAxis:
    """The common basis of two strategies along an attribute; None is for summing over it."""
    forms = [np.ones((size, size)) if factor is None else weighted_gram(factor) for factor in factors]
    # Forms of like size: which of the two a vector belongs to is then seen from its shares.
    sizes = [float(np.trace(form)) / size for form in forms]
    first, second = (form / scale for form, scale in zip(forms, sizes, strict=True))
    values, vectors = np.linalg.eigh(first + second)
    kept = values > 1e-10 * values[-1]
    whitened = vectors[:, kept] / np.sqrt(values[kept])
    shares, turn = np.linalg.eigh(whitened.T @ first @ whitened)
    # From the largest share of the first on; rounding errors of 0 are 0.
    shares, outward = np.clip(shares[::-1], 0.0, 1.0), whitened @ turn[:, ::-1]
    a, b = (np.where(share > _ZERO, share, 0.0) for share in (shares, 1 - shares))
    projector = None if kept.all() else vectors[:, kept] @ vectors[:, kept].T
    return PairAxis(outward, (a * sizes[0], b * sizes[1]), projector)


@dataclass(frozen=True, slots=True, eq=False)
class PairStructure(JointStructure):
    """Covariance of least squares from two tables."""

    joint: Joint
    axes: Mapping[str, PairAxis]
    information: FloatArray
    span: Span | None = None

    def asked(self, product: Product) -> FloatArray:
        """What each entry of one over ``information`` adds to the total variance of a product's answers, of that shape."""
        return _outer(self._summed(self.operators(product)))

    def inverse(self) -> FloatArray:
        """One over lambda, 0 where nothing is known."""
        return np.divide(1.0, self.information, out=np.zeros_like(self.information), where=self.information > 0)

    def require(self, product: Product) -> None:
        """Refuse a product that the measurements do not determine, or only with noise too unequal for the solver."""
        inner, _, _ = split(product, self.joint.names)
        weights, unknown = self._summed(self.operators(inner)), self.information <= 0
        if unknown.any():
            lost, whole = (_contracted(cube, weights) for cube in (unknown.astype(float), np.ones(unknown.shape)))
            if not lost <= _ZERO * whole:
                raise undetermined(product)

    def listed(self, product: Product) -> FloatArray:
        cube = self.inverse()
        operators = enumerate(zip(self.axes.values(), self.joint.operators(product), strict=True))
        # What shrinks the array most comes first.
        for axis_number, (axis, operator) in sorted(operators, key=lambda pair: pair[1][1].rows / pair[1][1].size):
            moved = np.moveaxis(cube, axis_number, 0)
            answer = np.empty((operator.rows, *moved.shape[1:]))
            for part, weight in axis.squares(operator):
                answer[part] = np.tensordot(weight, moved, axes=(1, 0))
            cube = np.moveaxis(answer, 0, axis_number)
        return cube

    def summed(self, product: Product) -> float:
        return _contracted(self.inverse(), self._summed(self.joint.operators(product)))

    def most(self, product: Product) -> float:
        each = zip(self.axes.values(), self.joint.operators(product), strict=True)
        return float(self.inverse().max()) * math.prod(axis.largest(operator) for axis, operator in each)

    def solve(self, gathered: FloatArray) -> FloatArray:
        return Turned(self.joint.shape, tuple(axis.outward for axis in self.axes.values()), self.inverse()[..., None]).apply(gathered)

    def cells(self, measured: Sequence[Measured]) -> JointCells:
        """What rounding left of the residual, where weights are very unequal, is solved for again."""
        values = [table.values[:, None] for table in measured]
        cells = self.solve(self.joint.gather(values))
        left = [column - self.joint.answers(block, cells) for column, (block, _) in zip(values, self.joint.blocks, strict=True)]
        return JointCells(self.joint.names, (cells + self.solve(self.joint.gather(left))).reshape(self.joint.shape))

    def operators(self, product: Product) -> list[Operator]:
        """The queries along every attribute that a table measures."""
        require(self.span, product)
        operators = self.joint.operators(product)
        if not all(axis.sees(operator) for axis, operator in zip(self.axes.values(), operators, strict=True)):
            raise undetermined(product)
        return operators

    def _summed(self, operators: Sequence[Operator]) -> list[FloatArray]:
        return [axis.summed(operator) for axis, operator in zip(self.axes.values(), operators, strict=True)]


def _contracted(cube: FloatArray, weights: Sequence[FloatArray]) -> float:
    for weight in weights:
        cube = np.tensordot(weight, cube, axes=(0, 0))
    return float(cube)


def pair_structure(sizes: Mapping[str, int], tables: Sequence[tuple[Block, float]], span: Span | None = None) -> PairStructure:
    """The structure of two tables."""
    along_each = [{factor.attributes[0]: factor for factor in block.factors} for block, _ in tables]
    axes = {name: pair_axis(size, (along_each[0].get(name), along_each[1].get(name))) for name, size in sizes.items()}
    first, second = (term / variance for term, (_, variance) in zip(pair_terms(axes), tables, strict=True))
    return PairStructure(Joint(tuple(sizes), tuple(sizes.values()), tuple(tables)), axes, first + second, span)


def pair_terms(axes: Mapping[str, PairAxis]) -> tuple[FloatArray, FloatArray]:
    """What each table adds to the information per unit of precision, two arrays of its shape."""
    first, second = (_outer([axis.shares[end] for axis in axes.values()]) for end in (0, 1))
    return first, second


def _outer(parts: Sequence[FloatArray]) -> FloatArray:
    whole: FloatArray = np.ones(())
    for part in parts:
        whole = np.multiply.outer(whole, part)
    return whole


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
    mixed = [name for name, factors in along.items() if len(factors) > 1]
    measured = {name: next(iter(factors)).operator for name, factors in along.items()}
    # groups of cells, each of which is in one: in any number, without a matrix
    mixed = mixed or [name for name, matrix in measured.items() if matrix.rows < matrix.size and partition(matrix) is not None][:1]
    if apart and len(mixed) <= 1:
        try:
            bases = _bases(plan.domain, {name: next(iter(factors)) for name, factors in along.items() if name not in mixed})
            levels = nested_levels(plan.domain.kind(mixed[0]).size, [factor.operator for factor in along[mixed[0]]]) if mixed else None
            structure = None if mixed and levels is None else _product_structure(tables, bases, span, *mixed, levels=levels)
        except Undetermined:  # a strategy that does not determine every cell may still determine the queries
            structure = None
        if structure is not None:
            return structure
    sizes = {name: plan.domain.kind(name).size for name in plan.domain.names if any(name in block.attributes for block in blocks)}
    alone = all(len(factor.attributes) == 1 for block in blocks for factor in block.factors)
    if len(blocks) == 2 and alone and max(sizes.values(), default=1) <= MOST_LONG and _FEW < math.prod(sizes.values()) <= MOST_JOINT:
        return pair_structure(sizes, tables, span)
    joint = Joint.of(plan.domain, tables)
    return dense_structure(plan.domain, joint, span) if joint.cells <= MOST_DENSE else IterativeStructure(joint, span)


def _bases(domain: Domain, factors: Mapping[str, Factor]) -> dict[str, Basis]:
    """The basis of every attribute; where what is measured is equal it is one object, by which tables are known to be alike."""
    measured: dict[object, Basis] = {}
    for factor in factors.values():
        if factor.key() not in measured:
            measured[factor.key()] = basis_without_total(factor) if leaves_out_total(factor.operator) else basis(factor)
    # Along an attribute that nothing measures only multiples of the total are known.
    summed = {size: CellsBasis.plain(size) for size in domain.shape}
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
        bases = {**bases, leveled: CellsBasis.plain(levels.size)}
    # Few factors make very many blocks: what is known of each is looked up once, and found by the object.
    distinct = {id(factor): factor for block, _ in tables for factor in block.factors if factor.attributes != (leveled,)}
    strengths = {key: contrast_strength(factor) or 1.0 for key, factor in distinct.items()}
    along = {key: [factor.attributes[0]] if used(factor) else [] for key, factor in distinct.items()}
    apart = {key: along[key] if leaves_out_total(factor.operator) else [] for key, factor in distinct.items()}
    shrink = {name: 1 / basis.kappa for name, basis in bases.items()}
    for block, variance in tables:
        keys = [key for key in map(id, block.factors) if key in distinct]
        precision = math.prod(map(strengths.__getitem__, keys), start=1 / variance)
        names, across = (tuple(chain.from_iterable(map(which.__getitem__, keys))) for which in (along, apart))
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
        error = next(errors[product.measure])
        key = id(product.weight), product.measure
        importance, weight = worth.get(key) or worth.setdefault(key, (product.importance, float(product.weight)))
        total += importance * error.total
        rows = product.rows
        mean = error.total / rows
        largest = math.sqrt(max(error.largest, mean))
        tables.append(TableError(product.name, rows, weight, math.sqrt(mean), largest, not error.exact))
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
