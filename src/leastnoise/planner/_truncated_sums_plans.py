"""A workload of sums under limits: what is asked along the number, and what to measure."""

import numpy as np

from leastnoise.accounting import Privacy
from leastnoise.linop import Total
from leastnoise.planner._factors import MOST_DENSE, Fit, Fitted, _tree, gram_of, level_tree
from leastnoise.planner._gram import DenseGram, Gram, ScaledSum, Wholes, merge_equal_cells
from leastnoise.planner._kronecker import kronecker
from leastnoise.planner._marginals import marginals
from leastnoise.planner._strategy import NotApplicable, Strategy
from leastnoise.planner._truncated_sums_limited import fit_limited_tree
from leastnoise.workload import Workload


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


def limited_strategy(workload: Workload, attribute: str, limits: Wholes, privacy: Privacy, power: int) -> Strategy:
    """What to measure for sums under limits along a number: a hierarchy made for the limits along it, level trees along other attributes.

    Args:
        workload: sums.
        attribute: the number.
        limits: T_j, at least 1, shape (n,).
        privacy: of the plan.
        power: 1 for Laplace, 2 for Gaussian noise.

    Returns:
        The strategy; its blocks have no limits yet.

    Raises:
        NotApplicable: a table with over 2^28 cells.

    >>> from leastnoise.accounting import PureDP
    >>> from leastnoise.domain import Domain, Integers, Measure
    >>> from leastnoise.workload import queries
    >>> domain = Domain(pay=Integers(1, 64), measures={"wages": Measure("pay", 0, 64)})
    >>> found = limited_strategy(queries(domain, pay="prefix", sum="wages"), "pay", np.arange(1, 65), Privacy(PureDP(1)), 1)
    >>> found.blocks[0][0].rows > 64
    True
    """
    merged = _merged_limits(workload, attribute, limits)

    def along(name: str, gram: Gram, norm: int, bits: int = 20) -> Fitted:
        if name != attribute:
            return level_tree(name, gram, norm, bits)
        own = next((one for one in (limits, merged) if len(one) == gram.size), np.full(gram.size, int(limits.max())))
        found = fit_limited_tree(gram, own, norm)
        return _tree(name, gram.size, found.widths, found.scales)

    fit: Fit = along
    try:
        return kronecker("truncated_sums", fit, workload, privacy, power)
    except NotApplicable:
        return marginals(workload, privacy, power)


def _merged_limits(workload: Workload, attribute: str, limits: Wholes) -> Wholes:
    """The limits of the groups of cells that no query tells apart, which are planned as one: the largest of each."""
    gram, _ = asked_along(workload, attribute)
    if gram.size > MOST_DENSE:
        return limits
    small, group = merge_equal_cells(DenseGram(gram.dense(), gram.queries))
    merged = np.zeros(small.size, dtype=np.int64)
    np.maximum.at(merged, group, limits)
    return merged
