"""Measure what is asked, as it is asked."""

from fractions import Fraction

from leastnoise.accounting import Privacy
from leastnoise.plan import Block, Factor
from leastnoise.planner._marginal_weights import grouped_budgets
from leastnoise.planner._strategy import NotApplicable, Strategy, block_norm
from leastnoise.workload import Workload

_MOST_ROWS = 2**22


def measured_workload(workload: Workload, privacy: Privacy, power: int) -> Strategy:
    """Every product of the workload as a measured table, with the best split of the budget between them.

    Args:
        workload: what is asked.
        privacy: not used; every planner takes it.
        power: 1 for Laplace, 2 for Gaussian.

    Raises:
        NotApplicable: more than 2^22 queries.

    Source: the strategies Q and Q+ of Cormode et al. (arXiv 1207.6096); recovery by least squares comes on top.

    >>> from leastnoise.accounting import PureDP
    >>> from leastnoise.domain import Domain
    >>> from leastnoise.workload import queries
    >>> measured_workload(queries(Domain(a=["x", "y"]), a="prefix"), Privacy(PureDP(1)), 1).blocks[0][0].rows
    2
    """
    if not workload.rows <= _MOST_ROWS:
        raise NotApplicable(f"the workload has {workload.rows} queries; measured one by one at most {_MOST_ROWS} are allowed")
    blocks = [
        Block(
            tuple(Factor((name,), operator) for name, operator in zip(product.attributes, product.operators, strict=True)),
            Fraction(1),
            product.measure,
        )
        for product in workload
    ]
    norms = [block_norm(workload.domain, block, power) for block in blocks]
    errors = [product.importance * product.rows for product in workload]
    weights = grouped_budgets(errors, norms, "l1" if power == 1 else "l2").theta.tolist()
    return Strategy("workload", tuple(zip(blocks, weights, strict=True)))
