"""The covariance of a plan's least squares estimate, and expected errors.

The covariance has product form if all blocks use one strategy along every attribute (``_product``).
Otherwise, two tables on a joint domain of more than 512 and at most 2^24 cells are inverted in a
common basis (``_pair``). Any other blocks are inverted over their joint cells (``_joint``): as one
matrix on at most 4096 cells, and by conjugate gradients on at most 2^24 cells.

The expected error of a workload follows from the covariance. Planners, plans and error bars use the
same formula.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, singledispatch
from itertools import combinations
from typing import Any, TypeAlias

import numpy as np

from leastnoise._domain import Domain, factor_measures
from leastnoise._error._bounds import lower_bound, pure_lower_bound
from leastnoise._error._equations import (
    Covariance,
    Errors,
    Names,
    Structure,
    centred_quantities,
    centring_midpoint,
    equations,
    explained_subsets,
    is_nontrivial,
    subsets,
)
from leastnoise._error._joint import MOST_JOINT, IterativeStructure, JointBlocks, dense_structure
from leastnoise._error._moments import expected_statistic_errors
from leastnoise._error._pair import pair_structure
from leastnoise._error._product import MOST_EXPLAINED, ProductStructure
from leastnoise._error._undetermined import UnsupportedQuery
from leastnoise._error._variances import variance_error
from leastnoise._families import (
    MOST_DENSE,
    MOST_LISTED,
    GramInverse,
    GroupContrasts,
    IdentityInverse,
    Levels,
    UndeterminedQuery,
    contrast_basis,
    contrast_strength,
    excludes_total,
    invert_gram,
    nested_levels,
    partition_groups,
)
from leastnoise._plan import (
    NO_DETAILS,
    EarlierRelease,
    ExpectedError,
    LinearPlan,
    Plan,
    PlanDetails,
    TableError,
    joint_measurements,
)
from leastnoise._trusted.accounting import (
    GDP,
    ZCDP,
    Budget,
    GaussianCost,
    Privacy,
    PureCost,
    PureDP,
    rho_of,
)
from leastnoise._trusted.check import InputError
from leastnoise._trusted.check.arrays import FloatArray
from leastnoise._trusted.linop import Identity, largest_entry
from leastnoise._trusted.measurements import Block, Factor, Measurements, cost
from leastnoise._workload import Product, Statistic, Workload

MOST_LONG = 2048
"""The most cells of an attribute whose eigenvectors are affordable."""
_FEW = 512  # the most cells whose inverse takes almost no time
_MOST_PRECISIONS = 2**22  # the most numbers of a matrix whose weights are found in a second
Exact: TypeAlias = Sequence[Block]
"""Tables of counts that are known without noise."""
# the variance of exact counts over the least other variance; with a much smaller ratio, the other
# answers would lose digits
_EXACT = 2.0**-22
ROUNDING = 2.0**-46
"""When a variance is subtracted, this part of it remains. The part exceeds rounding errors, so the
difference is never too small."""


def exact_variance(plan: Measurements) -> float:
    """Return the tiny variance with which exact counts enter least squares.

    The estimate corrects the effect of this variance.
    """
    variances = []
    for table in equations(plan, None):
        entry = math.prod(largest_entry(factor.operator) for factor in table.block.factors)
        variances.append(table.variance / entry**2)
    return _EXACT * min(variances)


def measure_covariance(plan: Measurements, measure: str | None, exact: Exact = ()) -> Covariance:
    """Return the covariance of least squares for counts or one measure's sums."""
    return combine_structures(
        plan,
        measure,
        {
            quantity: quantity_structure(plan, quantity, exact)
            for quantity in centred_quantities(plan, measure)
        },
    )


def combine_structures(
    plan: Measurements, measure: str | None, by_quantity: Mapping[str | None, Structure]
) -> Covariance:
    """Return the covariance of a measure from its centred quantities."""
    counted_blocks = [
        (quantity, factor)
        for quantity, factor in centred_quantities(plan, measure).items()
        if quantity != measure
    ]
    if counted_blocks:
        return CentredSumCovariance(
            by_quantity[measure], by_quantity[counted_blocks[0][0]], counted_blocks[0][1]
        )
    return by_quantity[measure]


def quantity_structure(plan: Measurements, quantity: str | None, exact: Exact = ()) -> Structure:
    """Return the least-squares structure of counts, a sum or a centred sum.

    It follows from the blocks that measure one table of cells, and from exact public counts.
    """
    domain = plan.domain
    tables = [(entry.block, entry.variance) for entry in equations(plan, quantity)]
    if not tables:
        raise UnsupportedQuery(f"The plan measures nothing of {quantity or 'the counts'}.")
    if quantity is None:
        tables += [(block, exact_variance(plan)) for block in exact]
    blocks = [block for block, _ in tables]
    along: dict[str, dict[Factor, None]] = {}
    factors = {id(factor): factor for block in blocks for factor in block.factors}.values()
    is_product = True
    for factor in filter(is_nontrivial, dict.fromkeys(factors)):
        is_product &= len(factor.attributes) == 1
        if isinstance(factor.operator, GroupContrasts):
            with_total = Factor(factor.attributes, factor.operator.partition)
        elif contrast_strength(factor) is not None:
            with_total = Factor(factor.attributes, Identity(factor.operator.size))
        else:
            with_total = factor
        along.setdefault(factor.attributes[0], {})[with_total] = None
    if is_product:
        try:
            structure = _product_structure(domain, tables, along)
        except (
            UndeterminedQuery
        ):  # a strategy that does not determine every cell may determine the queries
            structure = None
        if structure is not None:
            return structure
    used = {name for block in blocks for name in block.attributes}
    sizes = {name: domain.kind(name).size for name in domain.names if name in used}
    if (
        len(blocks) == 2
        and is_product
        and max(sizes.values(), default=1) <= MOST_LONG
        and _FEW < math.prod(sizes.values()) <= MOST_JOINT
    ):
        return pair_structure(sizes, tables)
    joint = JointBlocks.of(domain, tables)
    if joint.cells <= MOST_DENSE:
        return dense_structure(domain, joint)
    return IterativeStructure(joint)


def _product_structure(
    domain: Domain,
    tables: Sequence[tuple[Block, float]],
    strategies: Mapping[str, Mapping[Factor, None]],
) -> ProductStructure | None:
    """Return the covariance in product form; None if it has no such form.

    It is also None if too many sets of attributes have levels.
    """
    mixed = [name for name, factors in strategies.items() if len(factors) > 1]
    if len(mixed) > 1:
        return None
    measured = {name: next(iter(factors)) for name, factors in strategies.items()}
    with_contrasts = {
        factor.attributes
        for block, _ in tables
        for factor in block.factors
        if isinstance(factor.operator, GroupContrasts)
    }
    without_contrasts = {
        name: factor for name, factor in measured.items() if (name,) not in with_contrasts
    }
    leveled = mixed[0] if mixed else _partitioned_attribute(without_contrasts)
    bases = _bases(domain, {name: factor for name, factor in measured.items() if name != leveled})
    levels = None
    if leveled is not None:
        levels = _levels_along(domain, leveled, strategies[leveled], tables)
        if levels is None:
            return None
        # a separate object, because bases are distinguished by object
        bases[leveled] = IdentityInverse.of_identity(levels.size)
    shrink = {name: 1 / basis.kappa for name, basis in bases.items()}
    precisions = _Precisions(shrink, leveled, levels)
    for block, variance in tables:
        if not precisions.add(block, variance):
            return None
    return ProductStructure(
        bases,
        precisions.narrow,
        tuple(precisions.wide),
        precisions.attributes_without_total(),
        leveled,
        levels,
    )


def _partitioned_attribute(measured: Mapping[str, Factor]) -> str | None:
    """Return the first attribute with measured groups; None without one.

    A partition of the cells is a level, which needs no matrix for any number of groups.
    """
    for name, factor in measured.items():
        operator = factor.operator
        if operator.rows < operator.size and partition_groups(operator) is not None:
            return name
    return None


def _levels_along(
    domain: Domain,
    attribute: str,
    factors: Mapping[Factor, None],
    tables: Sequence[tuple[Block, float]],
) -> Levels | None:
    """Return the nested levels that are measured along an attribute.

    The result is None if the measured queries are not nested levels.

    Contrasts are not a level, although in combination with evenly weighted cells they act as cells.
    """
    for block, _ in tables:
        for factor in block.factors:
            if factor.attributes == (attribute,) and contrast_strength(factor) is not None:
                return None
    return nested_levels(domain.kind(attribute).size, [factor.operator for factor in factors])


@dataclass(frozen=True, slots=True)
class _FactorFacts:
    """The terms of one factor that determine the precision of a block.

    Attributes:
        strength: the number by which the factor multiplies the precision.
        names: the attribute of the factor; empty if it measures only the total.
        names_without_total: the attribute of the factor if its rows leave out the total; else
            empty.
    """

    strength: float
    names: Names
    names_without_total: Names


class _Precisions:
    """The precision that blocks give to each tau, added up block by block.

    Args:
        shrink: the share of a block's precision that its total along an attribute keeps.
        leveled: the attribute along which levels are measured, if any.
        levels: the levels along that attribute.

    Attributes:
        narrow: the precision of each tau, or with levels a list with a precision for each level.
        wide: the blocks that contain too many tau: for each, its attributes, the attributes without
            the total, and its precision.
    """

    def __init__(
        self, shrink: Mapping[str, float], leveled: str | None, levels: Levels | None
    ) -> None:
        self.narrow: dict[Names, Any] = {}
        self.wide: list[tuple[Names, Names, float]] = []
        self._shrink = shrink
        self._leveled = leveled
        self._levels = levels
        # Very many blocks share few factors, so the facts of each factor are computed once, by
        # object.
        self._facts: dict[int, _FactorFacts] = {}

    def attributes_without_total(self) -> frozenset[str]:
        """Return the attributes along which some block leaves out the total."""
        return frozenset(
            name for facts in self._facts.values() for name in facts.names_without_total
        )

    def add(self, block: Block, variance: float) -> bool:
        """Add a block's precision; return False if too many sets have levels."""
        precision = 1 / variance
        names: Names = ()
        names_without_total: Names = ()
        for factor in block.factors:
            if factor.attributes != (self._leveled,):
                facts = self._facts_of(factor)
                precision *= facts.strength
                names += facts.names
                names_without_total += facts.names_without_total
        if self._levels is None and names == names_without_total:
            self.narrow[names] = self.narrow.get(names, 0.0) + precision
            return True
        if len(names) - len(names_without_total) > MOST_EXPLAINED:
            self.wide.append((names, names_without_total, precision))
            return self._levels is None
        with_total = tuple(name for name in names if name not in names_without_total)
        shares = zip(
            explained_subsets(names, names_without_total),
            _products_of_others(tuple(self._shrink[name] for name in with_total)),
            strict=True,
        )
        if self._levels is None:
            for tau, share in shares:
                self.narrow[tau] = self.narrow.get(tau, 0.0) + precision * share
            return True
        level, weights = self._level_and_weights(block, self._levels)
        for tau, share in shares:
            level_weights = self.narrow.setdefault(tau, [0.0] * len(self._levels.groups))
            level_weights[level] = level_weights[level] + precision * share * weights
        return True

    def _facts_of(self, factor: Factor) -> _FactorFacts:
        """Return the strength and names of a factor, computed once."""
        facts = self._facts.get(id(factor))
        if facts is None:
            names = (factor.attributes[0],) if is_nontrivial(factor) else ()
            names_without_total = names if excludes_total(factor.operator) else ()
            strength = contrast_strength(factor) or 1.0
            facts = _FactorFacts(strength, names, names_without_total)
            self._facts[id(factor)] = facts
        return facts

    def _level_and_weights(self, block: Block, levels: Levels) -> tuple[int, Any]:
        """Return the level of a block, and the squared weights of its groups."""
        for factor in block.factors:
            if factor.attributes == (self._leveled,):
                weights = 1.0 if factor.row_weights is None else factor.scaling**2
                return levels.level(factor.operator) or 0, weights
        return len(levels.groups) - 1, 1.0


def _bases(domain: Domain, factors: Mapping[str, Factor]) -> dict[str, GramInverse]:
    """Return the inverse Gram matrix of the strategy along each attribute.

    Equal factors share one object, which shows that tables have the same bases.
    """
    measured: dict[object, GramInverse] = {}
    for factor in factors.values():
        if factor.key() not in measured:
            measured[factor.key()] = (
                contrast_basis(factor) if excludes_total(factor.operator) else invert_gram(factor)
            )
    # Along an attribute that no block measures, only multiples of the total are determined.
    summed = {size: IdentityInverse.of_identity(size) for size in domain.shape}
    return {
        name: measured[factors[name].key()] if name in factors else summed[domain.kind(name).size]
        for name in domain.names
    }


@lru_cache(maxsize=4096)
def _products_of_others(shrinks: tuple[float, ...]) -> tuple[float, ...]:
    """Return, for each subset of numbers, the product of all other numbers.

    The products are in the order of ``subsets``.
    """
    positions = range(len(shrinks))
    shares = []
    for size in range(len(shrinks) + 1):
        for subset in combinations(positions, size):
            others = [shrinks[at] for at in positions if at not in subset]
            shares.append(math.prod(others, start=1.0))
    return tuple(shares)


@dataclass(frozen=True, slots=True, eq=False)
class CentredSumCovariance(Covariance):
    """The covariance of sums of v from centred sums and counts.

    A sum of v is the sum of v - m plus m times the count, with uncorrelated errors.
    """

    centred: Covariance
    counts: Covariance
    middle: float

    @property
    def solver_cells(self) -> int:
        """The number of cells of the larger of the two solvers."""
        return max(self.centred.solver_cells, self.counts.solver_cells)

    def require(self, product: Product) -> None:
        """Raise unless the measurements determine a product.

        Blocks with centred sums also have the counts.
        """
        self.centred.require(product)

    def variances(self, product: Product) -> FloatArray:
        """Return the variance of each answer, in squared units of the measure."""
        return self.centred.variances(product) + self.middle**2 * self.counts.variances(product)

    def errors(self, product: Product) -> Errors:
        """Return the total and the largest variance of the answers.

        If there are very many answers, the second number is a bound on the largest variance.
        """
        centred = self.centred.errors(product)
        counts = self.counts.errors(product)
        total = centred.total + self.middle**2 * counts.total
        if not self.middle or (product.rows <= MOST_LISTED and not self.solver_cells):
            if self.middle:
                return Errors(total, float(self.variances(product).max()))
            return centred
        return Errors(total, centred.largest + self.middle**2 * counts.largest, exact=False)

    def total(self, product: Product) -> float:
        """Return the sum of the variances of all answers."""
        return self.centred.total(product) + self.middle**2 * self.counts.total(product)

    def covariance(self, product: Product, other: Product) -> FloatArray:
        """Return the covariances of all pairs of answers to two products."""
        return self.centred.covariance(product, other) + self.middle**2 * self.counts.covariance(
            product, other
        )


def covariance_by_measure(
    workload: Workload, plan: Measurements, exact: Exact = ()
) -> dict[str | None, Covariance]:
    """Return the covariance of every measure of a workload."""
    quantities = dict.fromkeys(
        quantity for measure in workload.measures for quantity in centred_quantities(plan, measure)
    )
    by_quantity = {quantity: quantity_structure(plan, quantity, exact) for quantity in quantities}
    return {
        measure: combine_structures(plan, measure, by_quantity) for measure in workload.measures
    }


def evaluate_plan(
    workload: Workload,
    measurements: Measurements,
    strategy: str = "given",
    *,
    details: PlanDetails = NO_DETAILS,
    iterate: bool = True,
    exact: Exact = (),
    earlier: Sequence[EarlierRelease] = (),
) -> LinearPlan:
    """Return the plan with some measurements, for a workload.

    The plan has expected errors and a lower bound.

    Args:
        workload: the queries to answer.
        measurements: the measured queries, with their noise.
        strategy: the name of the strategy.
        details: further facts of the plan.
        iterate: whether error bars may need a linear solver over joint cells, which takes long.
        exact: tables that are known without noise; the lower bound is 0 then.
        earlier: earlier releases whose measurements are used too. The lower bound then holds for
            one release that costs as much as all of them together.

    Raises:
        InputError: the measurements do not determine a query, or error bars need a linear solver
            and ``iterate`` is false.
    """
    measured = joint_measurements(measurements, earlier)
    covariances = covariance_by_measure(workload, measured, exact)
    for structure in covariances.values():
        if structure.solver_cells and not iterate:
            raise InputError(
                "its tables have no common product form, so that the error bars need a linear "
                "solver over "
                f"{structure.solver_cells} joint cells, which takes long; ask for it by name: "
                f"strategy = '{strategy}'"
            )
    total, tables = _table_errors(workload, covariances)
    bound = 0.0
    privacy = _privacy_of_all(measured) if earlier else measurements.privacy
    if measured.k_norm_groups() and not exact:
        bound = pure_lower_bound(workload, privacy)
    elif not exact:
        bound = lower_bound(workload, privacy, measured.noise, details.unit_bound)
    return LinearPlan(
        workload=workload,
        privacy=measurements.privacy,
        strategy=strategy,
        measurements=measurements,
        data_independent_error=ExpectedError(total, bound, tables),
        details=details,
        earlier=tuple(earlier),
    )


def _privacy_of_all(measured: Measurements) -> Privacy:
    """Return the privacy of several releases as one release.

    The budget is the exact cost of all releases. Together they are one strategy, so every bound for
    strategies of that cost applies.
    """
    spent = cost(measured)
    budget: Budget
    if isinstance(spent, PureCost):
        budget = PureDP(spent.epsilon)
    elif isinstance(spent, GaussianCost):
        budget = GDP(mu_squared=spent.mu_squared)
    else:
        budget = ZCDP(rho_of(spent))
    return measured.privacy.within(budget)


@singledispatch
def _plain_product(structure: Structure) -> ProductStructure | None:  # noqa: ARG001 - another form
    """Return a structure with errors by residual space; None for others."""
    return None


@_plain_product.register
def _(structure: ProductStructure) -> ProductStructure | None:
    if structure.levels or structure.wide:
        return None
    return structure


def block_precisions(
    workload: Workload, plan: Measurements
) -> tuple[FloatArray, FloatArray] | None:
    """Return the squared error of counts as a function of block precisions.

    If the precision of block b is p_b times its precision in the plan, the error is the sum of c /
    (K p) over the residual spaces.

    Returns:
        c, shape (spaces,), and K, shape (spaces, blocks). None if the error has no such form: with
        sums of measures, with K-norm noise, with levels, or without a product form.
    """
    if workload.measures != (None,) or plan.k_norm_groups():
        return None
    structure = _plain_product(quantity_structure(plan, None))
    if structure is None:
        return None
    spaces = list(structure.narrow)
    row_of_space = {tau: row for row, tau in enumerate(spaces)}
    if len(spaces) * len(plan.blocks) > _MOST_PRECISIONS:
        return None
    precision = np.zeros((len(spaces), len(plan.blocks)))
    shrink = {name: 1 / basis.kappa for name, basis in structure.bases.items()}
    for entry in equations(plan, None):
        of_block = _Precisions(shrink, None, None)
        of_block.add(entry.block, entry.variance)
        for tau, share in of_block.narrow.items():
            precision[row_of_space[tau], entry.index] += share
    coefficient = np.zeros(len(spaces))
    for product in workload:
        along = zip(product.attributes, product.operators, strict=True)
        sums = {name: structure.sums(name, operator) for name, operator in along}
        for tau in subsets(product.attributes):
            if tau in row_of_space:
                parts = [sums[name][name in tau] for name in product.attributes]
                coefficient[row_of_space[tau]] += product.importance * math.prod(parts)
    return coefficient, precision


def _table_errors(
    workload: Workload, covariances: Mapping[str | None, Covariance]
) -> tuple[float, tuple[TableError, ...]]:
    """Return the weighted total squared error, and the error of every table."""
    errors_by_measure = {
        measure: iter(structure.errors_of(workload.of(measure)))
        for measure, structure in covariances.items()
    }
    total = 0.0
    tables = []
    # Very many tables share few weights, so each weight is converted once, by object.
    converted: dict[tuple[int, str | None], tuple[float, float]] = {}
    for product in workload:
        errors = next(errors_by_measure[product.measure])
        key = id(product.weight), product.measure
        if key not in converted:
            converted[key] = product.importance, float(product.weight)
        importance, weight = converted[key]
        total += importance * errors.total
        mean = errors.total / product.rows
        table = TableError(
            name=product.name,
            queries=product.rows,
            weight=weight,
            rmse=math.sqrt(mean),
            largest_std=math.sqrt(max(errors.largest, mean)),
            largest_is_bound=not errors.exact,
        )
        tables.append(table)
    return total, tuple(tables)


@dataclass(frozen=True, slots=True, kw_only=True)
class StatisticError:
    """The expected error of a statistic under a plan."""

    statistic: Statistic
    tables: tuple[str, ...]
    rows: float
    largest_rows: float
    std_error: float | None
    parts: tuple[tuple[str, float], ...] = ()
    """The standard error of each pair or term of a statistic of several measures."""


def statistic_errors(plan: Plan) -> tuple[StatisticError, ...]:
    """Return the expected errors of the statistics of a plan's workload.

    Only errors that are known before the release are included.
    """
    # `variance_error` has the formulas for variances, and `expected_statistic_errors` for several
    # measures. The error of a mean r = S / C is about (s - r c) / C, where s and c are the errors
    # of sum and count and C is the size; |r| is at most the larger of its public bounds. For
    # quantiles and distribution functions, the counts up to a cell have a known error, and so have
    # their shares of a known number of rows.
    if not plan.workload.statistics:
        return ()
    expected = plan.expected_error().tables
    numbers = {product.table_key: at for at, product in enumerate(plan.workload)}
    errors = []
    for statistic in plan.workload.statistics:
        tables = [
            expected[numbers[product.table_key]] for product in plan.workload.tables_of(statistic)
        ]
        if statistic.form.of_several:
            errors.append(_several_measures_error(plan, statistic, tables))
            continue
        error = tables[0].rmse
        if statistic.size is not None and statistic.kind == "variances":
            rmse_of_tables = [table.rmse for table in tables]
            error = variance_error(plan.measured(), statistic.of, *rmse_of_tables)
        elif statistic.size is not None and statistic.form.of_measure:
            unit = float(plan.domain.measure(statistic.of).unit)
            error = unit * mean_error(plan.measured(), statistic.of, error, tables[1].rmse)
        elif statistic.weighted_by is not None:
            error *= float(plan.domain.measure(statistic.weighted_by).unit)
        errors.append(
            StatisticError(
                statistic=statistic,
                tables=tuple(table.name for table in tables),
                rows=tables[0].rmse,
                largest_rows=tables[0].largest_std,
                std_error=None if statistic.size is None else error / float(statistic.size),
            )
        )
    return tuple(errors)


def _several_measures_error(
    plan: Plan, statistic: Statistic, tables: Sequence[TableError]
) -> StatisticError:
    """Return the expected error of correlations or of a regression.

    ``std_error`` is the largest error over the pairs or terms.
    """
    parts: tuple[tuple[str, float], ...] = ()
    if statistic.size is not None:
        stds = [table.rmse for table in tables]
        parts = expected_statistic_errors(plan.measured(), statistic, stds, float(statistic.size))
    return StatisticError(
        statistic=statistic,
        tables=tuple(table.name for table in tables),
        rows=tables[0].rmse,
        largest_rows=tables[0].largest_std,
        std_error=max((error for _, error in parts), default=None),
        parts=parts,
    )


def mean_error(measured: Measurements, measure: str, counts: float, sums: float) -> float:
    """Return the largest standard error of a mean's numerator, S - r C.

    Args:
        measured: the measurements of a plan.
        measure: the measure of the sums S. If it has weights, C is the sum of the weights.
        counts: the standard error of C, in units of the count or the weight.
        sums: the standard error of S, in units of the measure.
    """
    # The variance is (r - m)^2 c^2 plus the variance of the centred sums, s^2 - m^2 c^2, at the r
    # farthest from m. If sums are not centred, m is 0; weighted sums are never centred.
    centre_offset = centring_midpoint(measured, measure) or 0.0
    variance = (
        sums**2
        + (largest_mean_deviation(measured, measure) ** 2 - (1 - ROUNDING) * centre_offset**2)
        * counts**2
    )
    return math.sqrt(max(0.0, variance))


def largest_mean_deviation(measured: Measurements, measure: str) -> float:
    """Return the largest distance of a mean from the centre of its sums.

    The centre is the middle of the bounds if sums are centred, and 0 otherwise.

    The distance is in units of the averaged values, without their weights.
    """
    values, *_ = factor_measures(measured.domain.measure(measure))
    centre_offset = centring_midpoint(measured, measure) or 0.0
    return max(abs(values.low_units - centre_offset), abs(values.high_units - centre_offset))
