"""A row of the conformance kit of mechanisms, and some workloads."""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from leastnoise._domain import Bins, Domain, Integers, Measure
from leastnoise._trusted.accounting import ZCDP, ApproxDP, Budget, PureDP
from leastnoise._trusted.table import Table
from leastnoise._workload import Workload, queries

ALL_BUDGETS = (PureDP("1/2"), ZCDP("1/8"), ApproxDP(1, "1e-6"))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Row:
    """A mechanism, by what it is asked.

    Args:
        mechanism: the name of its class.
        strategy: by which it is asked for.
        workload: that it answers.
        table: rows over the workload's domain, not secret.
        finding: the name of the class of the finding in which it ends for this table; every class
            of ``findings`` needs a row.
        budgets: that it takes.
        refused: a workload that it refuses, and with which words; None if it refuses none that a
            domain can have.
        looks: whether it decides on the way what to measure.
        audited: the steps that its audit must look at; a mechanism that cannot be audited is not
            released.
        leaves: the largest amount of each parameter of the budget that this branch may leave, such
            as ``{"delta": Fraction("1e-6")}`` for Laplace noise within (epsilon, delta). Other
            branches spend the whole budget.
    """

    mechanism: str
    strategy: str
    workload: Workload
    table: Table
    finding: str
    budgets: tuple[Budget, ...] = ALL_BUDGETS
    refused: tuple[Workload, str] | None = None
    looks: bool = True
    audited: AbstractSet[str]
    leaves: Mapping[str, Fraction | float] = field(default_factory=dict)


def table_over(domain, values=None):
    random = np.random.default_rng(4)
    codes = {name: random.integers(0, domain.kind(name).size, 300) for name in domain.names}
    return Table(
        domain,
        codes,
        {} if values is None else {name: 5 * codes[name_of] for name, name_of in values.items()},
    )


LINE = Domain(age=Integers(0, 15))
PLANE = Domain(age=Integers(0, 7), hours=Integers(0, 3))
CUBE = Domain(a=["x", "y"], b=["x", "y"], c=["x", "y"])
PAID = Domain(
    pay=Bins(0, 40, 8, closed="right"), sex=["F", "M"], measures={"wages": Measure("pay", 0, 40)}
)
ON_LINE = queries(LINE, age="prefix")
ON_PLANE = queries(PLANE, age="prefix", hours="identity")
ON_CUBE = queries(CUBE, a="identity", b="identity", c="identity")
SUMS = queries(PAID, pay="prefix", sum="wages")
SUMS_BY_GROUP = queries(PAID, sex="identity", pay="prefix", sum="wages")
LOTS = "this workload has queries on a and b and c"
