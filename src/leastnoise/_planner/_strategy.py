"""What a planner is and what it returns."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

from leastnoise._accounting import Noise, Privacy
from leastnoise._check import InputError
from leastnoise._domain import Domain
from leastnoise._linop import column_sums
from leastnoise._measurements import Block, Factor, Limits
from leastnoise._workload import Workload

_MOST_GAIN = 16  # contrasts that seem to cost less would cost more: what they take from the cost of others is never more than there is


class NotApplicable(InputError):
    """A strategy cannot be used for a workload; the message says why."""


@dataclass(frozen=True, slots=True)
class Strategy:
    """What to measure, with relative weights; the exact scales are fitted to the budget afterwards.

    Args:
        name: for people.
        blocks: pairs of a block (its scale is ignored) and a weight above 0; noise scales become proportional to 1 / weight.
        details: public facts to keep with the plan.
        error: total squared error at privacy cost 1 and unit noise, where it is known; to compare strategies of one kind of noise.
    """

    name: str
    blocks: tuple[tuple[Block, float], ...]
    details: Mapping[str, Any] = field(default_factory=dict)
    error: float = math.inf


@dataclass(frozen=True, slots=True)
class Task:
    """What a strategy is wanted for; public, as no planner sees data.

    Args:
        workload: what is asked.
        privacy: the budget to plan for.
        noise: its kind.
        seconds: about how many CPU seconds the planner may take; where it counts, it is by estimates, never by a clock: the same task has
            the same strategy everywhere.
    """

    workload: Workload
    privacy: Privacy
    noise: Noise
    seconds: float = math.inf

    @property
    def norm(self) -> int:
        """p of the norm in which the strategy pays: 1 for Laplace noise, 2 for Gaussian noise."""
        return self.noise.norm


Propose = Callable[[Task], Strategy]
Seconds = Callable[[Workload], float]
SWEEPS = 3
_MOST_SEARCHED, _MOST_STRUCTURED = 1024, 4096  # cells


def rich(workload: Workload) -> list[str]:
    """The attributes that are asked about by more than their cells, in the order of the domain.

    >>> rich(queries(Domain(a=Integers(0, 9), b=["x", "y"]), a="prefix", b="identity"))
    ['a']
    """
    return list(workload.beyond_cells)


def sweeps(workload: Workload) -> int:
    """How often a strategy along each attribute is fitted, with those along the others fixed.

    >>> sweeps(queries(Domain(a=Integers(0, 9)), a="prefix"))
    1
    """
    return SWEEPS if len(rich(workload)) > 1 else 1


def shortly(workload: Workload) -> float:
    """Estimated CPU seconds of what takes a few operations a cell along every attribute.

    >>> shortly(queries(Domain(a=Integers(0, 9)), a="prefix"))
    0.02002
    """
    return 0.02 + 2e-6 * sum(workload.domain.kind(name).size for name in workload.attributes)


def tables_of_cells(workload: Workload) -> tuple[str, ...]:
    """The planners that measure no more than tables of cells which are asked about.

    >>> tables_of_cells(queries(Domain(a=Integers(0, 9)), a="identity")), tables_of_cells(queries(Domain(a=Integers(0, 9)), a="prefix"))
    (('marginals', 'workload'), ('marginals',))
    """
    return ("marginals",) if rich(workload) else ("marginals", "workload")


def each_attribute(seconds: Callable[[int], float]) -> Seconds:
    """Estimated CPU seconds of a strategy along every attribute, from those of one with so many cells.

    >>> two = queries(Domain(a=Integers(0, 9), b=Integers(0, 9)), a="prefix", b="prefix")
    >>> round(each_attribute(lambda cells: cells / 10)(two) - shortly(two), 9)
    6.0
    """

    def together(workload: Workload) -> float:
        return shortly(workload) + sweeps(workload) * sum(seconds(workload.domain.kind(name).size) for name in rich(workload))

    return together


def structured(workload: Workload) -> bool:
    """Whether only cells, prefix sums and all ranges are asked for along every attribute.

    >>> structured(queries(Domain(a=Integers(0, 9)), a="prefix")), structured(queries(Domain(a=Integers(0, 9)), a=ranges([(0, 9)])))
    (True, False)
    """
    return all(asked.form.structured for _, asked, _ in workload.along)


def searched(workload: Workload) -> bool:
    """Whether every attribute is so short that the best strategy along it is found in seconds; at the most cells in a minute.

    >>> searched(queries(Domain(a=Integers(0, 2047)), a="prefix")), searched(queries(Domain(a=Integers(0, 2047)), a=ranges([(0, 9)])))
    (True, False)
    """
    longest = max((workload.domain.kind(name).size for name in workload.attributes), default=1)
    return longest <= (_MOST_STRUCTURED if structured(workload) else _MOST_SEARCHED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Planner:
    """What is known of a planner: the automatic choice, ``compare``, the command line's help and the page of strategies read it here.

    Args:
        name: what users type.
        propose: makes the strategy, or raises NotApplicable.
        measures: for people: what is measured.
        made_for: for people: where it is good; of a strategy of a paper, its name there.
        norms: of the kinds of noise that it is made for.
        instead: why it is not made for other noise, and what to choose.
        limits: for people: up to which size it can be used.
        automatic: whether the automatic choice tries it.
        seconds: about how many CPU seconds it takes for a workload, at least.
        contains: of a workload, the planners whose strategies are among those that it chooses from; where there are very many tables,
            what one that was tried contains is left out.
        late: whether it is tried in the time that all others leave, because one of them is mostly better.
        most: with about how many it finds the best that it can; None where that are always the same.
        laplace: about how many more it takes under Laplace noise, for tables that are searched for.
        reference: whether the answers to a workload are compared with it where a mechanism looks at the data.
    """

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
    late: bool = False
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
        """What it proposes.

        Raises:
            NotApplicable: it cannot be used for the task, or takes longer than the task allows.
        """
        if task.norm not in self.norms:
            raise NotApplicable(self.instead)
        least = self.least_seconds(task.workload, task.norm)
        if task.seconds < least:
            raise NotApplicable(
                f"it takes about {least:.2g} CPU seconds; give the plan more seconds, or ask for it by name: strategy = '{self.name}'"
            )
        return self.propose(task)


def spread_share(privacy: Privacy, domain: Domain, names: Sequence[str], *, contrasts: bool = False) -> float:
    """What a unit can change a block of cells by, squared, over the same for rows in one cell: below 1 where few may be in one.

    Args:
        privacy: with the unit.
        domain: of the attributes.
        names: the attributes of a block of cells, or of contrasts.
        contrasts: which of them; the share of contrasts is what they add to the cost of the blocks on fewer attributes.

    >>> privacy = Privacy(ZCDP(1), unit_column="id", max_rows=4, max_per_cell=ln.PerCell(1, "month"))
    >>> [round(spread_share(privacy, Domain(month=Coded(8)), ["month"], contrasts=own), 4) for own in (False, True)]
    [0.25, 0.1429]
    """
    bound = privacy.max_per_cell
    if bound is None or not {*bound.attributes} <= {*names}:
        return 1.0
    share = privacy.squares / privacy.max_rows**2
    across = math.prod(1 - 1 / domain.kind(name).size for name in bound.attributes)
    return max(1 - (1 - share) / across, share / _MOST_GAIN) if contrasts and across > 0 else share


def block_norm(domain: Domain, block: Block, norm: int) -> float:
    """The largest column norm of a block at scale 1, times the most that one row adds.

    >>> block_norm(Domain(age=["a", "b", "c"]), Block((Factor(("age",), Tree.full(3, 2)),), 1), 1)
    3.0
    """
    if block.limits is not None:
        return _limited_norm(domain, block, block.limits, norm)
    largest = domain.largest_value(block.measure)
    return largest * math.prod(_factor_norm(factor, norm) for factor in block.factors)


def _limited_norm(domain: Domain, block: Block, limits: Limits, norm: int) -> float:
    """The same under limits from 0 that belong to the cells of one attribute."""
    names = [factor.attributes for factor in block.factors]
    if limits.attribute is None or (limits.attribute,) not in names:
        return float(limits.values.max()) * math.prod(_factor_norm(factor, norm) for factor in block.factors)
    height = 1.0
    for factor in block.factors:
        if factor.attributes == (limits.attribute,):
            columns = np.asarray(column_sums(factor.operator, factor.weights**norm, norm), dtype=np.float64)
            height *= float((columns * limits.values.astype(np.float64) ** norm).max()) ** (1 / norm)
        else:
            height *= _factor_norm(factor, norm)
    return height


@lru_cache(maxsize=256)
def _factor_norm(factor: Factor, norm: int) -> float:
    return float(np.max(column_sums(factor.operator, factor.weights**norm, norm))) ** (1 / norm)
