"""A workload of sums under limits: what is asked along the number, and what to measure."""

import math

import numpy as np

from leastnoise.linop import Total
from leastnoise.plan import Limits
from leastnoise.planner._factors import MOST_DENSE, Fitted, _tree, fitted, gram_of, level_tree
from leastnoise.planner._gram import DenseGram, Gram, ScaledSum, Wholes, merge_equal_cells
from leastnoise.planner._strategy import Strategy
from leastnoise.planner._tables import asked_tables, factor_along, weighted_strategy
from leastnoise.planner._truncated_sums_limited import fit_limited_tree
from leastnoise.workload import Workload

_MOST_JOINT = 2**24


def asked_along(workload: Workload, attribute: str) -> tuple[Gram, Gram]:
    """The Gram matrices of all queries along one attribute: for noise, and for losses.

    Args:
        workload: what is asked.
        attribute: the number; products that do not name it ask for its total.

    Returns:
        The sum over the products of M times the number of groups that they are asked for, because every group has noise; and that of M
        over this number, because groups that share a loss evenly have that much less of its square.

    Raises:
        NotApplicable: queries without a known structure along over 4096 cells.

    >>> from leastnoise.domain import Domain, Integers
    >>> from leastnoise.workload import queries
    >>> noise, loss = asked_along(queries(Domain(sex=["F", "M"], age=Integers(0, 1)), sex="identity", age="prefix"), "age")
    >>> noise.dense().tolist(), loss.dense().tolist()
    ([[4.0, 2.0], [2.0, 2.0]], [[1.0, 0.5], [0.5, 0.5]])
    """
    kind = workload.domain.kind(attribute)
    noise: list[tuple[float, Gram]] = []
    loss: list[tuple[float, Gram]] = []
    for product in workload:
        names = product.attributes
        operator = product.operators[names.index(attribute)] if attribute in names else Total(kind.size)
        groups, gram = product.rows // operator.rows, gram_of(operator)
        noise.append((product.importance * groups, gram))
        loss.append((product.importance / groups, gram))
    return ScaledSum(tuple(noise)), ScaledSum(tuple(loss))


def limited_strategy(workload: Workload, attribute: str, limits: Wholes, power: int) -> Strategy:
    """What to measure for sums under limits along a number: a hierarchy made for the limits along it, level trees along other attributes.

    Args:
        workload: sums of one measure, which is never negative.
        attribute: the number.
        limits: T_j, at least 1, shape (n,).
        power: 1 for Laplace, 2 for Gaussian noise.

    Returns:
        The strategy, with its limits: the tables that are asked for and the joint one, with the best weights.

    Raises:
        NotApplicable: a table with over 2^28 cells.

    >>> from leastnoise.domain import Domain, Integers, Measure
    >>> from leastnoise.workload import queries
    >>> domain = Domain(pay=Integers(1, 64), measures={"wages": Measure("pay", 0, 64)})
    >>> found = limited_strategy(queries(domain, pay="prefix", sum="wages"), "pay", np.arange(1, 65), 1)
    >>> found.blocks[0][0].rows > 64, found.blocks[0][0].limits.attribute
    (True, 'pay')
    """
    merged = _merged_limits(workload, attribute, limits)

    def fit_to(name: str, gram: Gram, norm: int, bits: int = 20) -> Fitted:
        if name != attribute:
            return level_tree(name, gram, norm, bits)
        own = next((one for one in (limits, merged) if len(one) == gram.size), np.full(gram.size, int(limits.max())))
        found = fit_limited_tree(gram, own, norm)
        return _tree(name, gram.size, found.widths, found.scales)

    along = {}
    for name in workload.domain.names:
        kinds = {q.kind for p in workload for one, q in zip(p.attributes, p.query_sets, strict=True) if one == name}
        if kinds - {"identity"} or (kinds and name == attribute):
            along[name] = fitted(fit_to, name, asked_along(workload, name)[0], power, 20).factor
    tables = asked_tables(workload)
    for sets in tables.values():
        joint = tuple(one for one in workload.domain.names if any(one in names for names in sets))
        if joint not in sets and math.prod(factor_along(workload.domain, one, along).operator.rows for one in joint) <= _MOST_JOINT:
            sets.append(joint)
    return weighted_strategy("truncated_sums", workload, along, tables, power, limits=Limits(limits, attribute))


def _merged_limits(workload: Workload, attribute: str, limits: Wholes) -> Wholes:
    """The limits of the groups of cells that no query tells apart, which are planned as one: the largest of each."""
    gram, _ = asked_along(workload, attribute)
    if gram.size > MOST_DENSE:
        return limits
    small, group = merge_equal_cells(DenseGram(gram.dense(), gram.queries))
    merged = np.zeros(small.size, dtype=np.int64)
    np.maximum.at(merged, group, limits)
    return merged
