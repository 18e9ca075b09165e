"""What a planner is and what it returns."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

from leastnoise._accounting import Privacy
from leastnoise._check import InputError
from leastnoise._domain import Domain
from leastnoise._linop import column_sums
from leastnoise._plan import Block, Factor, Limits
from leastnoise._workload import Workload


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


# A planner proposes a strategy for a workload and the power of the sensitivity norm: 1 for Laplace noise, 2 for Gaussian noise.
Planner = Callable[[Workload, Privacy, int], Strategy]


def block_norm(domain: Domain, block: Block, power: int) -> float:
    """The largest column norm of a block at scale 1, times the most that one row adds.

    >>> block_norm(Domain(age=["a", "b", "c"]), Block((Factor(("age",), Tree.full(3, 2)),), 1), 1)
    3.0
    """
    if block.limits is not None:
        return _limited_norm(domain, block, block.limits, power)
    largest = 1 if block.measure is None else domain.measures[block.measure].largest
    return largest * math.prod(_factor_norm(factor, power) for factor in block.factors)


def _limited_norm(domain: Domain, block: Block, limits: Limits, power: int) -> float:
    """The same under limits from 0 that belong to the cells of one attribute."""
    names = [factor.attributes for factor in block.factors]
    if limits.attribute is None or (limits.attribute,) not in names:
        return float(limits.values.max()) * math.prod(_factor_norm(factor, power) for factor in block.factors)
    norm = 1.0
    for factor in block.factors:
        if factor.attributes == (limits.attribute,):
            columns = np.asarray(column_sums(factor.operator, factor.weights**power, power), dtype=np.float64)
            norm *= float((columns * limits.values.astype(np.float64) ** power).max()) ** (1 / power)
        else:
            norm *= _factor_norm(factor, power)
    return norm


@lru_cache(maxsize=256)
def _factor_norm(factor: Factor, power: int) -> float:
    return float(np.max(column_sums(factor.operator, factor.weights**power, power))) ** (1 / power)
