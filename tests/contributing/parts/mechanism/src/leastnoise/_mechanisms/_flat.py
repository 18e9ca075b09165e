"""A mechanism for counts that may be equal in all cells.

A first step looks at every cell with a part of the budget. If the cells differ by more than the
noise, the rest of the budget measures every cell; otherwise it measures their sum, which is divided
evenly.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from leastnoise._error import block_variance
from leastnoise._estimation import (
    BucketExpansion,
    DataIndependentEstimate,
    Estimate,
    Estimator,
    Outcome,
    join_observations,
)
from leastnoise._fitting import fit_noise_scales
from leastnoise._mechanisms._planning_time import noises_to_plan
from leastnoise._mechanisms._protocol import DataDependentFinding, Mechanism, Run
from leastnoise._mechanisms._search import Search
from leastnoise._plan import AdaptiveDetails, AdaptivePlan, Plan, Step
from leastnoise._trusted.accounting import Privacy
from leastnoise._trusted.check import InputError
from leastnoise._trusted.kernel import Series
from leastnoise._trusted.linop import Coarse, Identity, Operator
from leastnoise._trusted.measurements import Block, Factor, Measurements, Observation
from leastnoise._workload import Workload

STRATEGY = "flat"
LOOK = Fraction(1, 4)  # the part of the budget for the first step


@dataclass(frozen=True, slots=True, kw_only=True)
class Flat(DataDependentFinding):
    """No structure was found: all cells are one bucket.

    The differences of cells within the bucket are unknown.
    """

    regime = "flat"
    uncovered_error = "aware_unknown"

    buckets: int

    def estimator(self, observation: Observation) -> Estimator:
        """Return the estimator that gives every cell the same count."""
        return BucketExpansion.of(observation)


@dataclass(frozen=True, slots=True, kw_only=True)
class Uneven(DataDependentFinding):
    """Cells differ, so all are measured; answers come from least squares."""

    regime = "uneven"
    uncovered_error = "aware_independent"

    def estimator(self, observation: Observation) -> Estimator:
        """Return the least squares estimator."""
        return DataIndependentEstimate(Estimate(observation))


class FlatOrNot(Mechanism):
    """The mechanism for counts along one attribute that may not depend on it."""

    names = (STRATEGY,)
    findings = (Flat, Uneven)

    def plan(self, workload: Workload, privacy: Privacy, search: Search) -> Plan:
        """Return the plan: the steps and their parts of the budget."""
        attribute_sets = {product.attributes for product in workload}
        counts_only = workload.measures == (None,)
        if not counts_only or len(attribute_sets) != 1 or len(min(attribute_sets)) != 1:
            raise InputError(
                f"{STRATEGY} answers counts along one attribute. Request other tables in another "
                "release."
            )
        if search.progress is not None:
            search.progress(STRATEGY)
        steps = (
            Step("look", privacy.scaled(LOOK).budget),
            Step("counts", privacy.scaled(1 - LOOK).budget),
        )
        adaptive = AdaptiveDetails(noise=noises_to_plan(privacy)[0], steps=steps)
        return AdaptivePlan(
            workload=workload, privacy=privacy, strategy=STRATEGY, adaptive=adaptive
        )

    def prepare(self, plan: Plan) -> Run:
        """Return the steps, and refuse a plan of another version."""
        if self.plan(plan.workload, plan.privacy, Search(STRATEGY)).digest() != plan.digest():
            raise InputError(
                "The details of the plan are not those of this version. Make the plan again; "
                "nothing was spent."
            )

        def run(series: Series) -> Outcome:
            """Look at the cells, then measure the cells or their sum."""
            look = measurements(plan, LOOK, is_flat=False)
            first = series.measure(look)
            noise = block_variance(look, look.blocks[0])
            spread = float(np.var(first.values[0] / look.grid))
            is_flat = spread < 2 * noise
            test = {"records": spread**0.5, "in_noise": (spread / noise) ** 0.5}
            second = series.measure(measurements(plan, 1 - LOOK, is_flat=is_flat))
            if is_flat:
                return Outcome(plan, second, Flat(test=test, buckets=1))
            return Outcome(
                plan, join_observations([first, second], plan.privacy), Uneven(test=test)
            )

        return run


def measurements(plan: Plan, share: Fraction, *, is_flat: bool) -> Measurements:
    """Return the measurements of the cells, or of their sum.

    Args:
        plan: a plan of counts along one attribute.
        share: the share of its budget.
        is_flat: whether to measure only the sum.

    >>> workload = queries(Domain(age=Integers(0, 7)), age="prefix")
    >>> plan = FlatOrNot().plan(workload, Privacy(PureDP(1)), Search("flat"))
    >>> measurements(plan, LOOK, is_flat=True).blocks[0].rows
    1
    """
    ((name,),) = {product.attributes for product in plan.workload}
    size = plan.domain.kind(name).size
    operator: Operator = Identity(size)
    if is_flat:
        operator = Coarse(Identity(1), np.zeros(1, dtype=np.int64), size)
    block = Block((Factor((name,), operator),), Fraction(1))
    return fit_noise_scales(
        plan.domain, plan.privacy.scaled(share), noises_to_plan(plan.privacy)[0], [(block, 1.0)]
    )
