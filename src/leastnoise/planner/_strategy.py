"""What a planner returns, and the closed-form split of a budget between the tables of a strategy."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from leastnoise._check import InputError
from leastnoise.accounting import Privacy
from leastnoise.accuracy import basis
from leastnoise.domain import Domain
from leastnoise.linop import column_sums
from leastnoise.plan import Block
from leastnoise.workload import Product, Workload


class NotApplicable(InputError):
    """A strategy cannot be used for a workload; the message says why."""


@dataclass(frozen=True, slots=True)
class Strategy:
    """What to measure, with relative weights; the exact scales are fitted to the budget afterwards.

    Args:
        name: for people.
        blocks: pairs of a block (its scale is ignored) and a weight above 0; noise scales become proportional to 1 / weight.
        details: public facts to keep with the plan.
    """

    name: str
    blocks: tuple[tuple[Block, float], ...]
    details: Mapping[str, Any] = field(default_factory=dict)


# A planner proposes a strategy for a workload and the power of the sensitivity norm: 1 for Laplace noise, 2 for Gaussian noise.
Planner = Callable[[Workload, Privacy, int], Strategy]


def proportional_weights(norms: Sequence[float], errors: Sequence[float], power: int) -> list[float]:
    """The best weights of tables that are answered each from its own measurements.

    Args:
        norms: how much one row adds to the sensitivity norm of a table at weight 1: its largest column L1 norm, or L2 norm for ``power`` 2.
        errors: what a table contributes to the total squared error at noise variance 1; 0 for a table that nobody asks about.
        power: 1 for Laplace, 2 for Gaussian.

    Returns:
        Weights that minimise sum errors / weight^2 with sum norms * weight = 1, or sum (norms * weight)^2 = 1.

    Source: Cormode et al. (arXiv 1207.6096) Cor. 3.3, generalised to unequal norms: FORMULAS 4.2.

    >>> [round(w, 4) for w in proportional_weights([1, 1], [8, 1], 1)]
    [0.6667, 0.3333]
    """
    if power == 1:
        raw = [(error / norm) ** (1 / 3) for norm, error in zip(norms, errors, strict=True)]
        total = math.fsum(norm * weight for norm, weight in zip(norms, raw, strict=True))
    else:
        raw = [math.sqrt(math.sqrt(error) / norm) for norm, error in zip(norms, errors, strict=True)]
        total = math.sqrt(math.fsum((norm * weight) ** 2 for norm, weight in zip(norms, raw, strict=True)))
    return [weight / total for weight in raw]


def block_norm(domain: Domain, block: Block, power: int) -> float:
    """The largest column norm of a block at scale 1, times the most that one row adds.

    >>> from leastnoise.linop import Tree
    >>> from leastnoise.plan import Factor
    >>> block_norm(Domain(age=["a", "b", "c"]), Block((Factor(("age",), Tree.full(3, 2)),), 1), 1)
    3.0
    """
    largest = 1 if block.measure is None else domain.measures[block.measure].largest
    norm = math.prod(float(np.max(column_sums(factor.operator, factor.weights**power, power))) ** (1 / power) for factor in block.factors)
    return largest * norm


def own_error(product: Product, block: Block) -> float:
    """Total squared error of a product that is answered from one block alone, at noise variance 1.

    >>> from leastnoise.linop import Identity
    >>> from leastnoise.plan import Factor
    >>> from leastnoise.workload import marginals
    >>> domain = Domain(a=["x", "y"], b=["x", "y", "z"])
    >>> block = Block((Factor(("a",), Identity(2)), Factor(("b",), Identity(3))), 1)
    >>> own_error(marginals(domain, ways=1).products[0], block)
    6.0
    """
    operators = dict(zip(product.attributes, product.operators, strict=True))
    terms = []
    for factor in block.factors:
        known = basis(factor)
        operator = operators.get(factor.attributes[0])
        terms.append(known.kappa if operator is None else float(known.variances(operator).sum()))
    return product.importance * math.prod(terms)


def weighted_tables(name: str, domain: Domain, tables: Iterable[tuple[Block, Sequence[Product]]], power: int) -> Strategy:
    """A strategy of tables, each with the closed-form weight for the products that are answered from it.

    Args:
        name: for people.
        domain: the domain.
        tables: pairs of a block and its products.
        power: 1 for Laplace, 2 for Gaussian.

    >>> from leastnoise.workload import marginals
    >>> domain = Domain(a=["x", "y"])
    >>> weighted_tables("total", domain, [(Block((), 1), marginals(domain, ways=0).products)], 1).blocks[0][1]
    1.0
    """
    pairs = list(tables)
    norms = [block_norm(domain, block, power) for block, _ in pairs]
    errors = [math.fsum(own_error(product, block) for product in products) for block, products in pairs]
    weights = proportional_weights(norms, errors, power)
    return Strategy(name, tuple((block, weight) for (block, _), weight in zip(pairs, weights, strict=True)))
