"""The covariance of a plan's least squares estimate, and expected errors.

The covariance has product form if all blocks use one strategy along every attribute
(``_product_covariance``). Otherwise, two tables on a joint domain of more than 512 and at most 2^24
cells are inverted in a common basis (``_pair``). Any other blocks are inverted over their joint
cells (``_joint``). On at most 4096 cells, the inverse is one matrix; on at most 2^24 cells,
conjugate gradients are used.

The expected error of a workload is computed from the covariance. Planners, plans and error bars use
the same formula.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, singledispatch
from itertools import chain, combinations
from typing import Any, TypeAlias

import numpy as np

from leastnoise._domain import Domain, column_measures
from leastnoise._error._equations import (
    Covariance,
    Errors,
    Names,
    Structure,
    centred_quantities,
    centring_midpoint,
    check_noise,
    equations,
    explained_subsets,
    is_nontrivial,
    subsets,
)
from leastnoise._error._joint import MOST_JOINT, IterativeStructure, JointBlocks, dense_structure
from leastnoise._error._lower_bounds import lower_bound, pure_lower_bound
from leastnoise._error._moment_errors import expected_statistic_errors
from leastnoise._error._pair import pair_structure
from leastnoise._error._product_covariance import MOST_EXPLAINED, ProductStructure
from leastnoise._error._public_scales import r_squared_std_error
from leastnoise._error._undetermined import UnsupportedQuery
from leastnoise._error._variance_errors import variance_error
from leastnoise._families import (
    MOST_DENSE,
    MOST_LISTED,
    CellsInverse,
    GramInverse,
    GroupContrasts,
    Levels,
    UndeterminedQuery,
    contrast_strength,
    excludes_total,
    invert_contrast_gram,
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
    rho_of_cost,
)
from leastnoise._trusted.check import InputError, InternalError
from leastnoise._trusted.check.arrays import FloatArray
from leastnoise._trusted.linop import Identity, largest_entry
from leastnoise._trusted.measurements import Block, Factor, Measurements, cost
from leastnoise._workload import Product, Statistic, Workload

# The most cells of an attribute whose eigenvectors are affordable.
MOST_LONG = 2048
# The largest number of cells whose inverse takes a negligible time.
_MOST_QUICK_CELLS = 512
# The maximum number of entries of a matrix whose weights are found in a second.
_MOST_PRECISIONS = 2**22
# Tables of counts that are known without noise.
Exact: TypeAlias = Sequence[Block]
# The variance of exact counts divided by the least other variance. With a much smaller ratio, the
# other answers would be less accurate.
_EXACT_VARIANCE_RATIO = 2.0**-22
# When a variance is subtracted, this part of it remains. The part exceeds rounding errors, so the
# difference is never too small.
ROUNDING = 2.0**-46


def exact_variance(plan: Measurements) -> float:
    """Return the tiny noise variance with which public counts are modelled.

    The estimate is then corrected for the effect of this variance.
    """
    variances = []
    for table in equations(plan, None):
        entry = math.prod(largest_entry(factor.operator) for factor in table.block.factors)
        variances.append(table.variance / entry**2)
    return _EXACT_VARIANCE_RATIO * min(variances)


def measure_covariance(
    plan: Measurements, measure: str | None, public_counts: Exact = ()
) -> Covariance:
    """Return the least-squares covariance of counts or one measure's sums."""
    return combine_structures(
        plan,
        measure,
        {
            quantity: quantity_structure(plan, quantity, public_counts)
            for quantity in centred_quantities(plan, measure)
        },
    )


def combine_structures(
    plan: Measurements, measure: str | None, by_quantity: Mapping[str | None, Structure]
) -> Covariance:
    """Return the covariance of a measure, from centred sums and counts."""
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


def _unmeasured_message(plan: Measurements, quantity: str | None) -> str:
    """Return a message that lists the measured quantities, weighted ones first."""
    missing = quantity or "the counts of rows"
    names = list(dict.fromkeys(block.measure or "the counts of rows" for block in plan.blocks))
    names.sort(key=lambda name: not name.startswith(f"{missing} weighted by "))
    return (
        f"The plan measures nothing of {missing}. It measures {', '.join(map(repr, names))}: name "
        f"one of these, or request {missing} in the workload of another release."
    )


def quantity_structure(
    plan: Measurements, quantity: str | None, public_counts: Exact = ()
) -> Structure:
    """Return the least-squares form for counts, a sum or a centred sum.

    The form is computed from the blocks that measure this quantity, and from exact public counts.
    """
    domain = plan.domain
    tables = [(entry.block, entry.variance) for entry in equations(plan, quantity)]
    if not tables:
        raise UnsupportedQuery(_unmeasured_message(plan, quantity))
    if quantity is None:
        tables += [(block, exact_variance(plan)) for block in public_counts]
    factors_along = _factors_along_attributes(block for block, _ in tables)
    if factors_along is not None:
        try:
            structure = _product_structure(domain, tables, factors_along)
        except UndeterminedQuery:
            # A strategy may determine the queries without determining every cell.
            structure = None
        if structure is not None:
            return structure
    used = set(chain.from_iterable(block.attributes for block, _ in tables))
    sizes = {name: domain.kind(name).size for name in domain.names if name in used}
    if (
        len(tables) == 2
        and factors_along is not None
        and max(sizes.values(), default=1) <= MOST_LONG
        and _MOST_QUICK_CELLS < math.prod(sizes.values()) <= MOST_JOINT
    ):
        return pair_structure(sizes, tables)
    joint = JointBlocks.of(domain, tables)
    if joint.cells <= MOST_DENSE:
        return dense_structure(domain, joint)
    return IterativeStructure(joint)


def _factors_along_attributes(blocks: Iterable[Block]) -> dict[str, dict[Factor, None]] | None:
    """Return the distinct factors along each attribute; None for joint factors.

    Contrasts are replaced by queries that determine the total too. Factors that measure only the
    total are left out. The result is None if a factor measures several attributes.
    """
    # Many blocks share few factor objects, and objects are compared faster than factors.
    factors: dict[int, Factor] = {}
    for block in blocks:
        factors |= {id(factor): factor for factor in block.factors}
    factors_along: dict[str, dict[Factor, None]] = {}
    for factor in filter(is_nontrivial, dict.fromkeys(factors.values())):
        if len(factor.attributes) != 1:
            return None
        if isinstance(factor.operator, GroupContrasts):
            with_total = Factor(factor.attributes, factor.operator.partition)
        elif contrast_strength(factor) is not None:
            with_total = Factor(factor.attributes, Identity(factor.operator.size))
        else:
            with_total = factor
        factors_along.setdefault(factor.attributes[0], {})[with_total] = None
    return factors_along


def _product_structure(
    domain: Domain,
    tables: Sequence[tuple[Block, float]],
    strategies: Mapping[str, Mapping[Factor, None]],
) -> ProductStructure | None:
    """Return the least-squares form as a product; None if it has no such form.

    The result is also None if too many attribute sets have levels.
    """
    mixed = [name for name, factors in strategies.items() if len(factors) > 1]
    if len(mixed) > 1:
        return None
    measured = {name: next(iter(factors)) for name, factors in strategies.items()}
    with_contrasts = set()
    for block, _ in tables:
        for factor in block.factors:
            if isinstance(factor.operator, GroupContrasts):
                with_contrasts.add(factor.attributes)
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
        # This is a separate object, because bases are distinguished by object.
        bases[leveled] = CellsInverse.of_identity(levels.size)
    total_shares = {name: 1 / basis.kappa for name, basis in bases.items()}
    precisions = _Precisions(total_shares, leveled, levels)
    for block, variance in tables:
        if not precisions.add(block, variance):
            return None
    return ProductStructure(
        bases,
        precisions.by_attribute_set,
        tuple(precisions.wide_blocks),
        precisions.attributes_without_total(),
        leveled,
        levels,
    )


def _partitioned_attribute(measured: Mapping[str, Factor]) -> str | None:
    """Return the first attribute with measured groups, or None.

    A partition of the cells is treated as a level, which needs no matrix, however many groups there
    are.
    """
    for name, factor in measured.items():
        operator = factor.operator
        if operator.rows < operator.size and partition_groups(operator) is not None:
            return name
    return None


def _levels_along(
    domain: Domain,
    attribute: str,
    measured_factors: Mapping[Factor, None],
    tables: Sequence[tuple[Block, float]],
) -> Levels | None:
    """Return the nested levels that are measured along an attribute, or None.

    The result is None if the measured queries are not nested levels.

    Contrasts are not treated as a level, although together with equally weighted cells they act
    like cells.
    """
    for block, _ in tables:
        for factor in block.factors:
            if factor.attributes == (attribute,) and contrast_strength(factor) is not None:
                return None
    return nested_levels(
        domain.kind(attribute).size, [factor.operator for factor in measured_factors]
    )


@dataclass(frozen=True, slots=True)
class _FactorFacts:
    """The properties of a factor that determine the precision of its block.

    Attributes:
        precision_factor: the number by which the factor multiplies the precision of its block.
        names: the attribute of the factor, or an empty tuple if the factor measures only the total.
        names_without_total: the attribute of the factor if its rows leave out the total; otherwise
            an empty tuple.
    """

    precision_factor: float
    names: Names
    names_without_total: Names


class _Precisions:
    """The precision of each residual space tau, summed over blocks.

    Args:
        total_shares: the share of a block's precision that remains for its total along an
            attribute.
        leveled_attribute: the attribute along which levels are measured, if any.
        levels: the levels along that attribute.

    Attributes:
        by_attribute_set: the precision of each tau, or with levels a list with a precision for each
            level.
        wide_blocks: the blocks that contain too many sets tau. For each block: its attributes, the
            attributes without the total, and its precision.
    """

    def __init__(
        self,
        total_shares: Mapping[str, float],
        leveled_attribute: str | None,
        levels: Levels | None,
    ) -> None:
        self.by_attribute_set: dict[Names, Any] = {}
        self.wide_blocks: list[tuple[Names, Names, float]] = []
        self._total_shares = total_shares
        self._leveled_attribute = leveled_attribute
        self._levels = levels
        # Many blocks have few distinct factors, so the properties of each factor object are
        # computed once.
        self._facts: dict[int, _FactorFacts] = {}

    def attributes_without_total(self) -> frozenset[str]:
        """Return the attributes along which some block measures no total."""
        return frozenset(
            chain.from_iterable(facts.names_without_total for facts in self._facts.values())
        )

    def add(self, block: Block, variance: float) -> bool:
        """Add the precision of a block; return False if too many sets have levels."""
        precision = 1 / variance
        names: Names = ()
        names_without_total: Names = ()
        for factor in block.factors:
            if factor.attributes != (self._leveled_attribute,):
                facts = self._facts_of(factor)
                precision *= facts.precision_factor
                names += facts.names
                names_without_total += facts.names_without_total
        if self._levels is None and names == names_without_total:
            self.by_attribute_set[names] = self.by_attribute_set.get(names, 0.0) + precision
            return True
        if len(names) - len(names_without_total) > MOST_EXPLAINED:
            self.wide_blocks.append((names, names_without_total, precision))
            return self._levels is None
        with_total = tuple(name for name in names if name not in names_without_total)
        shares = zip(
            explained_subsets(names, names_without_total),
            _products_of_others(tuple(self._total_shares[name] for name in with_total)),
            strict=True,
        )
        if self._levels is None:
            for tau, share in shares:
                self.by_attribute_set[tau] = self.by_attribute_set.get(tau, 0.0) + precision * share
            return True
        level, weights = self._level_and_weights(block, self._levels)
        for tau, share in shares:
            level_weights = self.by_attribute_set.setdefault(tau, [0.0] * len(self._levels.groups))
            level_weights[level] += precision * share * weights
        return True

    def _facts_of(self, factor: Factor) -> _FactorFacts:
        """Return the properties of a factor, cached by object."""
        facts = self._facts.get(id(factor))
        if facts is None:
            names = (factor.attributes[0],) if is_nontrivial(factor) else ()
            names_without_total = names if excludes_total(factor.operator) else ()
            strength = contrast_strength(factor) or 1.0
            facts = _FactorFacts(strength, names, names_without_total)
            self._facts[id(factor)] = facts
        return facts

    def _level_and_weights(self, block: Block, levels: Levels) -> tuple[int, Any]:
        """Return the level index of a block, and its squared group weights."""
        for factor in block.factors:
            if factor.attributes == (self._leveled_attribute,):
                level = levels.level(factor.operator)
                if level is None:  # `nested_levels` made a level of every factor along it
                    raise InternalError("a measured level is not one of the nested levels.")
                weights = 1.0 if factor.row_weights is None else factor.scaling**2
                return level, weights
        return len(levels.groups) - 1, 1.0


def _bases(domain: Domain, factors: Mapping[str, Factor]) -> dict[str, GramInverse]:
    """Return the inverse Gram matrix of the strategy along each attribute.

    Equal factors get the same object. Tables with equal bases are recognised because they share
    this object.
    """
    measured: dict[object, GramInverse] = {}
    for factor in factors.values():
        if factor.key() not in measured:
            measured[factor.key()] = (
                invert_contrast_gram(factor)
                if excludes_total(factor.operator)
                else invert_gram(factor)
            )
    # Along an attribute that no block measures, only multiples of the total are determined.
    summed = {size: CellsInverse.of_identity(size) for size in domain.shape}
    return {
        name: measured[factors[name].key()] if name in factors else summed[domain.kind(name).size]
        for name in domain.names
    }


@lru_cache(maxsize=4096)
def _products_of_others(factors: tuple[float, ...]) -> tuple[float, ...]:
    """Return, for each subset of factors, the product of all other factors.

    The products are in the order of ``subsets``.
    """
    positions = range(len(factors))
    shares = []
    for size in range(len(factors) + 1):
        for subset in combinations(positions, size):
            others = [factors[at] for at in positions if at not in subset]
            shares.append(math.prod(others, start=1.0))
    return tuple(shares)


@dataclass(frozen=True, slots=True, eq=False)
class CentredSumCovariance(Covariance):
    """The covariance of sums, from centred sums and counts.

    A sum of v is the sum of v - m plus m times the count, with uncorrelated errors.
    """

    centred_sums: Covariance
    counts: Covariance
    midpoint: float

    @property
    def solver_cells(self) -> int:
        """The largest number of joint cells of the linear solvers in use."""
        return max(self.centred_sums.solver_cells, self.counts.solver_cells)

    def require(self, product: Product) -> None:
        """Raise unless the measurements determine every query of a product.

        Blocks with centred sums also measure the counts.
        """
        self.centred_sums.require(product)

    def variances(self, product: Product) -> FloatArray:
        """Return the variance of each answer, in squared units of the measure."""
        return self.centred_sums.variances(product) + self.midpoint**2 * self.counts.variances(
            product
        )

    def errors(self, product: Product) -> Errors:
        """Return the sum and the maximum of the variances of the answers.

        If there are very many answers, the second number is a bound on the largest variance.
        """
        centred = self.centred_sums.errors(product)
        counts = self.counts.errors(product)
        total = centred.total + self.midpoint**2 * counts.total
        if not self.midpoint or (product.rows <= MOST_LISTED and not self.solver_cells):
            if self.midpoint:
                return Errors(total, float(self.variances(product).max()))
            return centred
        return Errors(total, centred.largest + self.midpoint**2 * counts.largest, is_exact=False)

    def total(self, product: Product) -> float:
        """Return the sum of the variances of all answers."""
        return self.centred_sums.total(product) + self.midpoint**2 * self.counts.total(product)

    def covariance(self, product: Product, other: Product) -> FloatArray:
        """Return the covariance matrix between the answers of two products."""
        return self.centred_sums.covariance(
            product, other
        ) + self.midpoint**2 * self.counts.covariance(product, other)


def covariance_by_measure(
    workload: Workload, plan: Measurements, public_counts: Exact = ()
) -> dict[str | None, Covariance]:
    """Return the covariance of each measure of a workload (None: counts)."""
    quantities = dict.fromkeys(
        chain.from_iterable(centred_quantities(plan, measure) for measure in workload.measures)
    )
    by_quantity = {
        quantity: quantity_structure(plan, quantity, public_counts) for quantity in quantities
    }
    return {
        measure: combine_structures(plan, measure, by_quantity) for measure in workload.measures
    }


def evaluate_plan(
    workload: Workload,
    measurements: Measurements,
    strategy_name: str = "given",
    *,
    details: PlanDetails = NO_DETAILS,
    may_iterate: bool = True,
    public_counts: Exact = (),
    earlier: Sequence[EarlierRelease] = (),
) -> LinearPlan:
    """Compute the errors and the lower bound of measurements; return the plan.

    Args:
        workload: the queries to answer.
        measurements: the measured queries, with their noise.
        strategy_name: the name of the strategy.
        details: further details that the plan states.
        may_iterate: if True, error bars may use a slow linear solver over joint cells. If False,
            raise an error instead.
        public_counts: tables that are known without noise. If there are any, the lower bound is 0.
        earlier: earlier releases whose measurements are also used. The lower bound then holds for a
            single release with the total cost of all of them.

    Raises:
        InputError: the measurements do not determine a query; their noise vanishes; or error bars
            need a linear solver and ``may_iterate`` is false.
    """
    check_noise(measurements)
    measured = joint_measurements(measurements, earlier)
    covariances = covariance_by_measure(workload, measured, public_counts)
    for structure in covariances.values():
        if structure.solver_cells and not may_iterate:
            raise InputError(
                "its tables have no common product form, so that the error bars need a linear "
                f"solver over {structure.solver_cells} joint cells, which takes long; ask for it "
                f"by name: strategy = '{strategy_name}'"
            )
    total, tables = _table_errors(workload, covariances)
    bound = 0.0
    privacy = _privacy_of_all(measured) if earlier else measurements.privacy
    if measured.k_norm_groups() and not public_counts:
        bound = pure_lower_bound(workload, privacy)
    elif not public_counts:
        bound = lower_bound(workload, privacy, measured.noise, details.unit_bound)
    return LinearPlan(
        workload=workload,
        privacy=measurements.privacy,
        strategy=strategy_name,
        measurements=measurements,
        data_independent_error=ExpectedError(total, bound, tables),
        details=details,
        earlier=tuple(earlier),
    )


def _privacy_of_all(measured: Measurements) -> Privacy:
    """Return the combined privacy of several releases.

    The budget is the exact cost of all releases. The releases act as one strategy, so every bound
    for strategies of that cost applies.
    """
    spent = cost(measured)
    budget: Budget
    if isinstance(spent, PureCost):
        budget = PureDP(spent.epsilon)
    elif isinstance(spent, GaussianCost):
        budget = GDP(mu_squared=spent.mu_squared)
    else:
        budget = ZCDP(rho_of_cost(spent))
    return measured.privacy.within(budget)


@singledispatch
def _plain_product(structure: Structure) -> ProductStructure | None:  # noqa: ARG001 - another form
    """Return a structure if it is a product form without levels, else None."""
    return None


@_plain_product.register
def _(structure: ProductStructure) -> ProductStructure | None:
    """Return the product form; None with levels or blocks of many sets."""
    if structure.levels or structure.wide_blocks:
        return None
    return structure


def block_precisions(
    workload: Workload, plan: Measurements
) -> tuple[FloatArray, FloatArray] | None:
    """Return the squared error's coefficients by precision of blocks, or None.

    Let the precision of block b be p_b times its precision in the plan. Then the error is the sum
    of c / (K p) over the residual spaces.

    Returns:
        Two arrays: c, shape (spaces,), and K, shape (spaces, blocks). The result is None if the
        error has no such form: with sums of measures, with K-norm noise, with levels, or without a
        product form.
    """
    if workload.measures != (None,) or plan.k_norm_groups():
        return None
    structure = _plain_product(quantity_structure(plan, None))
    if structure is None:
        return None
    spaces = list(structure.precisions)
    row_of_space = {tau: row for row, tau in enumerate(spaces)}
    if len(spaces) * len(plan.blocks) > _MOST_PRECISIONS:
        return None
    precision = np.zeros((len(spaces), len(plan.blocks)))
    total_shares = {name: 1 / basis.kappa for name, basis in structure.bases.items()}
    for entry in equations(plan, None):
        block_shares = _Precisions(total_shares, None, None)
        block_shares.add(entry.block, entry.variance)
        for tau, share in block_shares.by_attribute_set.items():
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
    """Return the weighted total squared error, and the error of each table."""
    errors_by_measure = {
        measure: iter(structure.errors_of(workload.of(measure)))
        for measure, structure in covariances.items()
    }
    total = 0.0
    tables = []
    # Many tables have few distinct weights, so each weight object is converted once.
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
            largest_is_bound=not errors.is_exact,
        )
        tables.append(table)
    return total, tuple(tables)


@dataclass(frozen=True, slots=True, kw_only=True)
class StatisticError:
    """The expected error of a statistic under a plan.

    Attributes:
        statistic: the statistic.
        tables: the names of the tables from which it is computed.
        rows: the RMSE of the first of these tables, in rows or units of its measure.
        largest_rows: the largest standard error in the first table.
        std_error: the standard error of the statistic in a group of its public size; None without a
            size.
        parts: the standard error of each pair or term of correlations or a regression.
    """

    statistic: Statistic
    tables: tuple[str, ...]
    rows: float
    largest_rows: float
    std_error: float | None
    parts: tuple[tuple[str, float], ...] = ()


def statistic_errors(plan: Plan) -> tuple[StatisticError, ...]:
    """Return the expected errors of the statistics of a plan's workload.

    Only errors that do not depend on the data are included.
    """
    # `variance_error` has the formulas for variances, and `expected_statistic_errors` for several
    # measures. The error of a mean r = S / C is about (s - r c) / C. Here s and c are the errors of
    # the sum and the count, and C is the size. |r| is at most the larger of the absolute values of
    # its public bounds. Quantiles and distribution functions use the counts up to a cell. The error
    # of these counts is known, and so is the error of their shares of a known number of rows.
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
    """Return the expected error of correlations, a regression or R^2.

    ``std_error`` is the largest error over the pairs or terms.
    """
    parts: tuple[tuple[str, float], ...] = ()
    std_error: float | None = None
    stds = [table.rmse for table in tables]
    if statistic.size is not None and statistic.kind == "r_squared":
        std_error = r_squared_std_error(plan.measured(), statistic, stds)
    elif statistic.size is not None:
        parts = expected_statistic_errors(plan.measured(), statistic, stds, float(statistic.size))
        std_error = max(error for _, error in parts)
    return StatisticError(
        statistic=statistic,
        tables=tuple(table.name for table in tables),
        rows=tables[0].rmse,
        largest_rows=tables[0].largest_std,
        std_error=std_error,
        parts=parts,
    )


def mean_error(measured: Measurements, measure: str, count_std: float, sum_std: float) -> float:
    """Return the largest standard error of S - r C for a mean r = S / C.

    Args:
        measured: the measurements of a plan.
        measure: the measure of the sums S. If it has weights, C is the sum of the weights.
        count_std: the standard error of C, in units of the count or the weight.
        sum_std: the standard error of S, in units of the measure.
    """
    # The variance is (r - m)^2 c^2, plus the variance of the centred sums, s^2 - m^2 c^2. Here r is
    # the value farthest from m. If sums are not centred, m is 0; weighted sums are never centred.
    centre_offset = centring_midpoint(measured, measure) or 0.0
    variance = (
        sum_std**2
        + (largest_mean_deviation(measured, measure) ** 2 - (1 - ROUNDING) * centre_offset**2)
        * count_std**2
    )
    return math.sqrt(max(0.0, variance))


def largest_mean_deviation(measured: Measurements, measure: str) -> float:
    """Return the largest distance of a mean from the centre of the sums.

    The centre is the middle of the bounds if sums are centred, and 0 otherwise.

    The distance is in units of the averaged values, without their weights.
    """
    values, *_ = column_measures(measured.domain.measure(measure))
    centre_offset = centring_midpoint(measured, measure) or 0.0
    return max(abs(values.low_units - centre_offset), abs(values.high_units - centre_offset))
