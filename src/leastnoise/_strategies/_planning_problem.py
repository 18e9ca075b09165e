"""The interface of planners: problem, planner and strategy."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from leastnoise._domain import Domain
from leastnoise._families import NotApplicable, first_cells
from leastnoise._plan import NO_DETAILS, PlanDetails
from leastnoise._trusted.accounting import Noise, Privacy
from leastnoise._trusted.linop import Operator, column_sums
from leastnoise._trusted.measurements import Block, Factor
from leastnoise._workload import Workload

# Contrasts are estimated to cost at least 1/16 of the cells; with a lower estimate, other contrasts
# would determine the cost.
_MOST_GAIN = 16
Seconds = Callable[[Workload], float]
LEAST_EFFORT = 0.01  # the least share of the steps of a full search
# Mean number of fits along an attribute if the weights of its query sets depend on the other
# attributes.
_MEAN_FITS = 1.3
# Maximum number of queries along an attribute whose errors are computed one by one.
_MOST_LISTED = 2**20
_MOST_SEARCHED = 1024  # cells
_MOST_STRUCTURED = 4096  # maximum number of cells of an attribute that is fitted within a minute
# These are CPU seconds, measured on one core of 2026.
_START_SECONDS = 0.005
_QUERY_SET_SECONDS = 0.002
_CELL_SECONDS = 1e-7
_FURTHER_QUERY_SECONDS = 1e-7  # of each query beyond the number of cells
_COUNTED_SUM_SECONDS = 0.02  # of splitting the budget between counts and sums


@dataclass(frozen=True, slots=True)
class Strategy:
    """The blocks to measure with relative weights, proposed by a planner.

    `fit_noise_scales` converts these weights to exact noise scales for a budget.
    """

    name: str
    blocks: tuple[tuple[Block, float], ...]
    details: PlanDetails = NO_DETAILS
    error: float = math.inf


@dataclass(frozen=True, slots=True)
class PlanningProblem:
    """The public input of a planner: workload, privacy, noise and time limit.

    ``seconds`` limits the CPU time of the search.
    """

    workload: Workload
    privacy: Privacy
    noise: Noise
    seconds: float = math.inf

    @property
    def norm(self) -> int:
        """The norm of the sensitivity: 1 for Laplace, 2 for Gaussian noise."""
        return self.noise.norm


Propose = Callable[[PlanningProblem], Strategy]


def cells_along(workload: Workload) -> Mapping[str, int]:
    """Return how many runs of cells the queries distinguish, by attribute.

    The mapping has all attributes of the workload.
    """
    operators_by_name: dict[str, list[Operator | None]] = {}
    for name, queries, operator in workload.along:
        operators_by_name.setdefault(name, []).append(None if queries.form.structured else operator)
    return {
        name: workload.domain.kind(name).size
        if None in operators
        else _count_runs(tuple(operators))
        for name, operators in operators_by_name.items()
    }


@lru_cache(maxsize=64)
def _count_runs(operators: Sequence[Operator]) -> int:
    """Return the number of runs of cells that no operator separates."""
    return len(np.unique(np.concatenate([first_cells(operator) for operator in operators])))


@dataclass(frozen=True, slots=True)
class AttributeCost:
    """The numbers from which the fitting time along an attribute is estimated.

    Attributes:
        cells: the runs of cells that the queries distinguish.
        is_structured: whether only cells, prefix sums and all ranges are requested.
        has_one_query_set: whether the workload requests only one query set.
        listed: the queries that are neither cells nor prefix sums nor all ranges.
        fits: the number of fits of a strategy. It is above 1 if the weights of several query sets
            change with the strategies of other attributes.
    """

    cells: int
    is_structured: bool
    has_one_query_set: bool
    listed: int
    fits: float


def attribute_costs(workload: Workload) -> dict[str, AttributeCost]:
    """Return the numbers that determine fitting times, by attribute.

    Attributes with only cell queries are left out.
    """
    costs = {}
    cells = cells_along(workload)
    for name in workload.beyond_cells:
        rows = {
            queries: operator.rows
            for attribute, queries, operator in workload.along
            if attribute == name
        }
        # A single query set with as many queries as runs requests the runs themselves, such as the
        # groups of a level.
        structured = all(queries.form.structured for queries in rows) or [*rows.values()] == [
            cells[name]
        ]
        costs[name] = AttributeCost(
            cells[name],
            structured,
            len(rows) == 1,
            sum(count for queries, count in rows.items() if not queries.form.structured),
            _MEAN_FITS if min(len(rows), len(workload.beyond_cells)) > 1 else 1.0,
        )
    return costs


def base_seconds(workload: Workload) -> float:
    """Estimate the CPU seconds of a strategy without a search.

    Such a strategy takes a few operations for every cell and query along each attribute.
    """
    cells = sum(workload.domain.kind(name).size for name in workload.attributes)
    beyond = sum(
        max(0, min(operator.rows, _MOST_LISTED) - operator.size)
        for _, _, operator in workload.along
    )
    seconds = (
        _START_SECONDS
        + _QUERY_SET_SECONDS * len(workload.along)
        + _CELL_SECONDS * cells
        + _FURTHER_QUERY_SECONDS * beyond
    )
    if workload.counted_sums:
        seconds += _COUNTED_SUM_SECONDS
    return seconds


def contained_planners(workload: Workload) -> tuple[str, ...]:
    """Return the planners that are never better than `covering` or `residual`.

    The result depends on the workload of the problem.
    """
    only_cells = not workload.beyond_cells and not workload.has_hidden
    if only_cells:
        return ("marginals", "workload")
    return ("marginals",)


def seconds_per_attribute(attribute_seconds: Callable[[AttributeCost], float]) -> Seconds:
    """Return a function that sums estimated CPU seconds over attributes.

    ``attribute_seconds`` estimates the CPU seconds for one attribute.
    """

    def together(workload: Workload) -> float:
        """Return the sum of the estimated CPU seconds over all attributes."""
        return base_seconds(workload) + sum(
            line.fits * attribute_seconds(line) for line in attribute_costs(workload).values()
        )

    return together


def fits_within_a_minute(workload: Workload) -> bool:
    """Return whether the fits of all attributes take less than a minute."""
    structured = all(query_set.form.structured for _, query_set, _ in workload.along)
    return max(cells_along(workload).values(), default=1) <= (
        _MOST_STRUCTURED if structured else _MOST_SEARCHED
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Planner:
    """A planner: its function, description, limits and time estimates.

    The automatic choice, ``compare``, the command line's help and the page of strategies use this
    record.

    Attributes:
        name: the name by which users choose the planner.
        propose: the function that computes the strategy.
        measures: the measured queries, in words.
        made_for: the workloads for which it is suitable.
        norms: the kinds of noise that it supports: 1 for Laplace, 2 for Gaussian noise.
        advice_for_other_noise: the advice for other noise, as text.
        limits: the largest workload that it supports, as text.
        paper: the paper that describes it, and its name in the paper; an empty text if there is no
            paper.
        automatic: whether the automatic choice tries it.
        seconds: estimated CPU seconds that it needs for any strategy.
        thorough_seconds: estimated CPU seconds after which more time does not improve its strategy.
            None if these are ``seconds``.
        contains: the planners whose strategies are never better than its own.
        extra_laplace_seconds: estimated additional CPU seconds with Laplace noise.
        relative_likelihood: the probability that it is the best planner, relative to the same
            probability of other planners.
        is_near_best: whether its error is usually near the error of the best planner. Plans of
            data-dependent mechanisms are compared with the plans of these planners.
        has_independent_noise: whether its plans obey the lower bounds for independent noise.
        reaches_bound: whether its error is close to the lower bound, within a small gap. The
            automatic choice then lets it exceed the seconds.
    """

    name: str
    propose: Propose
    measures: str
    made_for: str
    norms: tuple[int, ...] = (1, 2)
    advice_for_other_noise: str = ""
    limits: str = ""
    paper: str = ""
    automatic: bool = True
    seconds: Seconds = base_seconds
    thorough_seconds: Seconds | None = None
    contains: Callable[[Workload], Sequence[str]] = lambda _: ()
    extra_laplace_seconds: Seconds = lambda _: 0.0
    relative_likelihood: Callable[[Workload], float] = lambda _: 1.0
    is_near_best: Callable[[Workload], bool] = lambda _: False
    has_independent_noise: bool = True
    reaches_bound: Callable[[Workload], bool] = lambda _: False

    def least_seconds(self, workload: Workload, norm: int) -> float:
        """Estimate the least CPU seconds for noise of this norm.

        The estimate is 0 if the planner does not support this norm.
        """
        if norm not in self.norms:
            return 0.0
        return self.seconds(workload) + (self.extra_laplace_seconds(workload) if norm == 1 else 0.0)

    def most_seconds(self, workload: Workload, norm: int) -> float:
        """Estimate the CPU seconds of the most thorough search."""
        least = self.least_seconds(workload, norm)
        if self.thorough_seconds is None or norm not in self.norms:
            return least
        return least + self.thorough_seconds(workload) - self.seconds(workload)

    def strategy(self, problem: PlanningProblem) -> Strategy:
        """Return the proposed strategy, or raise NotApplicable."""
        if problem.norm not in self.norms:
            raise NotApplicable(self.advice_for_other_noise)
        return self.propose(problem)


def relative_sensitivity(
    privacy: Privacy, domain: Domain, names: Sequence[str], *, are_contrasts: bool = False
) -> float:
    """Return the squared L2 sensitivity of a block, relative to one cell.

    The sensitivity is relative to the sensitivity for a unit with all its rows in one cell.

    The result is below 1 only if the number of a unit's rows in each cell of the named attributes
    is bounded.
    """
    bound = privacy.max_per_cell
    if bound is None or not {*bound.attributes} <= {*names}:
        return 1.0
    share = privacy.squares / privacy.max_rows**2
    across = math.prod(1 - 1 / domain.kind(name).size for name in bound.attributes)
    if are_contrasts and across > 0:
        return max(1 - (1 - share) / across, share / _MOST_GAIN)
    return share


def block_norm(domain: Domain, block: Block, norm: int) -> float:
    """Return the largest column norm of a block at scale 1.

    The norm includes the largest value that a row adds to the block, under its limits.
    """
    height = 1.0
    along = [factor.attributes for factor in block.factors]
    if block.limits is None or (block.limits.attribute,) not in along:
        if block.limits is None:
            height = float(domain.largest_value(block.measure))
        else:
            height = float(block.limits.values.max())
    for factor in block.factors:
        # Every cell has its own limit.
        if block.limits is not None and factor.attributes == (block.limits.attribute,):
            columns = np.asarray(
                column_sums(factor.operator, factor.weights**norm, norm), dtype=np.float64
            )
            height *= float((columns * block.limits.values.astype(np.float64) ** norm).max()) ** (
                1 / norm
            )
        else:
            height *= _factor_norm(factor, norm)
    return height


@lru_cache(maxsize=256)
def _factor_norm(factor: Factor, norm: int) -> float:
    """Return the largest column norm of a factor, cached."""
    return float(np.max(column_sums(factor.operator, factor.weights**norm, norm))) ** (1 / norm)
