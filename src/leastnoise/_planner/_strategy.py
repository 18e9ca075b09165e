"""What a planner is and what it returns."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

from leastnoise._accounting import Noise, Privacy
from leastnoise._domain import Domain
from leastnoise._families import NotApplicable, first_cells
from leastnoise._linop import Operator, column_sums
from leastnoise._measurements import Block, Factor
from leastnoise._workload import QuerySet, Workload

_MOST_GAIN = 16  # contrasts that seem to cost less would cost more: what they take from the cost of others is never more than there is
Seconds = Callable[[Workload], float]
LEAST_EFFORT = 0.01  # of the steps of a search
_FITS = 1.3  # of a strategy whose sets' shares change with those along other attributes
_MOST_LISTED = 2**20  # queries along an attribute whose errors are listed
_MOST_SEARCHED, _MOST_STRUCTURED = 1024, 4096  # cells


@dataclass(frozen=True, slots=True)
class Strategy:
    """What to measure, with relative weights; the exact scales are fitted to the budget afterwards."""

    name: str
    blocks: tuple[tuple[Block, float], ...]
    details: Mapping[str, Any] = field(default_factory=dict)
    error: float = math.inf


@dataclass(frozen=True, slots=True)
class Task:
    """What a strategy is wanted for; public, as no planner sees data."""

    workload: Workload
    privacy: Privacy
    noise: Noise
    seconds: float = math.inf

    @property
    def norm(self) -> int:
        """p of the norm in which the strategy pays: 1 for Laplace noise, 2 for Gaussian noise."""
        return self.noise.norm


Propose = Callable[[Task], Strategy]


def cells_along(workload: Workload) -> Mapping[str, int]:
    """How many runs of cells the queries tell apart along every attribute that is asked about."""
    asked: dict[str, list[Operator | None]] = {}
    for name, queries, operator in workload.along:
        asked.setdefault(name, []).append(None if queries.form.structured else operator)
    return {name: workload.domain.kind(name).size if None in operators else _runs(tuple(operators)) for name, operators in asked.items()}


@lru_cache(maxsize=64)
def _runs(operators: Sequence[Operator]) -> int:
    return len(np.unique(np.concatenate([first_cells(operator) for operator in operators])))


@dataclass(frozen=True, slots=True)
class Line:
    """What is asked along an attribute, as far as the time for a strategy along it depends on it."""

    cells: int  # how many runs of cells the queries tell apart
    structured: bool  # whether only cells, prefix sums and all ranges are asked
    one_set: bool  # whether one query set is asked alone
    fits: float  # how often a strategy is fitted to it: again where the weights of several sets change with those along other attributes


def lines(workload: Workload) -> dict[str, Line]:
    """The attributes that are asked about by more than their cells."""
    cells, asked = cells_along(workload), {name: dict[QuerySet, int]() for name in workload.beyond_cells}
    for name, queries, operator in workload.along:
        if name in asked:
            asked[name][queries] = operator.rows
    again = _FITS if len(asked) > 1 else 1.0
    return {
        name: Line(
            cells[name],
            all(query_set.form.structured for query_set in sets)
            or [*sets.values()] == [cells[name]],  # each run by itself, as the groups of a level
            len(sets) == 1,
            1.0 if len(sets) == 1 else again,
        )
        for name, sets in asked.items()
    }


def shortly(workload: Workload) -> float:
    """Estimated CPU seconds of what takes a few operations a cell, and a query, along every attribute; twice measured together more."""
    cells = sum(workload.domain.kind(name).size for name in workload.attributes)
    beyond = sum(max(0, min(operator.rows, _MOST_LISTED) - operator.size) for _, _, operator in workload.along)
    return 0.01 + 0.004 * len(workload.along) + 3e-7 * cells + 4e-7 * beyond + (0.05 if workload.counted_sums else 0.0)


def tables_of_cells(workload: Workload) -> tuple[str, ...]:
    """The planners that measure no more than tables of cells which are asked about."""
    return ("marginals",) if workload.beyond_cells else ("marginals", "workload")


def each_attribute(seconds: Callable[[Line], float]) -> Seconds:
    """Estimated CPU seconds of a strategy along every attribute, from those of one."""

    def together(workload: Workload) -> float:
        return shortly(workload) + sum(line.fits * seconds(line) for line in lines(workload).values())

    return together


def searched(workload: Workload) -> bool:
    """Whether every attribute is so short that the best strategy along it is found in seconds; at the most cells in a minute."""
    structured = all(asked.form.structured for _, asked, _ in workload.along)  # only cells, prefix sums and all ranges
    return max(cells_along(workload).values(), default=1) <= (_MOST_STRUCTURED if structured else _MOST_SEARCHED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Planner:
    """What is known of a planner: the automatic choice, ``compare``, the command line's help and the page of strategies read it here."""

    name: str
    propose: Propose
    measures: str
    made_for: str
    norms: tuple[int, ...] = (1, 2)
    instead: str = ""
    limits: str = ""
    automatic: bool = True
    seconds: Seconds = shortly
    most: Seconds | None = None
    contains: Callable[[Workload], Sequence[str]] = lambda _: ()
    laplace: Seconds = lambda _: 0.0
    step: Seconds = lambda _: 0.0
    likely: Callable[[Workload], float] = lambda _: 1.0  # to be the best, in proportion to others
    reference: Callable[[Workload], bool] = lambda _: False

    def least_seconds(self, workload: Workload, norm: int) -> float:
        """About how many CPU seconds it takes at least, under noise of this norm; 0 where it is not made for it."""
        if norm not in self.norms:
            return 0.0
        return self.seconds(workload) + (self.laplace(workload) if norm == 1 else 0.0)

    def most_seconds(self, workload: Workload, norm: int) -> float:
        """With about how many it finds the best that it can."""
        least = self.least_seconds(workload, norm)
        return least if self.most is None or norm not in self.norms else least + self.most(workload) - self.seconds(workload)

    def strategy(self, task: Task) -> Strategy:
        """What it proposes."""
        if task.norm not in self.norms:
            raise NotApplicable(self.instead)
        return self.propose(task)


def spread_share(privacy: Privacy, domain: Domain, names: Sequence[str], *, contrasts: bool = False) -> float:
    """What a unit can change a block of cells by, squared, over the same for rows in one cell: below 1 where few may be in one."""
    bound = privacy.max_per_cell
    if bound is None or not {*bound.attributes} <= {*names}:
        return 1.0
    share = privacy.squares / privacy.max_rows**2
    across = math.prod(1 - 1 / domain.kind(name).size for name in bound.attributes)
    return max(1 - (1 - share) / across, share / _MOST_GAIN) if contrasts and across > 0 else share


def block_norm(domain: Domain, block: Block, norm: int) -> float:
    """The largest column norm of a block at scale 1, times the most that one row adds: under limits from 0, what they allow."""
    height, along = 1.0, [factor.attributes for factor in block.factors]
    if block.limits is None or (block.limits.attribute,) not in along:
        height = float(domain.largest_value(block.measure) if block.limits is None else block.limits.values.max())
    for factor in block.factors:
        if block.limits is not None and factor.attributes == (block.limits.attribute,):  # each cell has its own
            columns = np.asarray(column_sums(factor.operator, factor.weights**norm, norm), dtype=np.float64)
            height *= float((columns * block.limits.values.astype(np.float64) ** norm).max()) ** (1 / norm)
        else:
            height *= _factor_norm(factor, norm)
    return height


@lru_cache(maxsize=256)
def _factor_norm(factor: Factor, norm: int) -> float:
    """Of one factor, worked out once for the many tables that have it."""
    return float(np.max(column_sums(factor.operator, factor.weights**norm, norm))) ** (1 / norm)
