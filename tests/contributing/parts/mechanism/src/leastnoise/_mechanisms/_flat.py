"""A table whose cells may all be alike: cells where they stand out of the noise, else their sum, spread evenly."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from leastnoise._error import block_variance
from leastnoise._estimation import BucketExpansion, Estimator, Outcome, join_observations
from leastnoise._fitting import fit_noise_scales
from leastnoise._mechanisms._choice import Search, noise_kinds
from leastnoise._mechanisms._protocol import (
    DataDependentFinding,
    Mechanism,
    NoStructureFinding,
    Run,
)
from leastnoise._plan import AdaptiveDetails, AdaptivePlan, Plan, Step
from leastnoise._trusted.accounting import Privacy
from leastnoise._trusted.check import InputError
from leastnoise._trusted.kernel import Series
from leastnoise._trusted.linop import Coarse, Identity
from leastnoise._trusted.measurements import Block, Factor, Measurements, Observation
from leastnoise._workload import Workload

STRATEGY = "flat"
LOOK = Fraction(1, 4)


@dataclass(frozen=True, slots=True, kw_only=True)
class Flat(DataDependentFinding):
    """No cell stood out: one bucket of all, within which cells may differ by what nothing tells."""

    regime = "flat"
    uncovered_error = "aware_unknown"

    buckets: int

    def estimator(self, observation: Observation) -> Estimator:
        """The same count in every cell."""
        return BucketExpansion.of(observation)


class FlatOrNot(Mechanism):
    """The mechanism for counts along one attribute that may not depend on it."""

    names = (STRATEGY,)
    findings = (Flat, NoStructureFinding)

    def plan(self, workload: Workload, privacy: Privacy, search: Search) -> Plan:
        """What will be done, and with which parts of the budget."""
        asked = {product.attributes for product in workload}
        if workload.measures != (None,) or len(asked) != 1 or len(min(asked)) != 1:
            raise InputError(
                f"{STRATEGY} answers counts along one attribute. Ask for other tables in a "
                "release of their own."
            )
        if search.progress is not None:
            search.progress(STRATEGY)
        steps = (
            Step("look", privacy.scaled(LOOK).budget),
            Step("counts", privacy.scaled(1 - LOOK).budget),
        )
        adaptive = AdaptiveDetails(noise=noise_kinds(privacy)[0], steps=steps)
        return AdaptivePlan(
            workload=workload,
            privacy=privacy,
            strategy=STRATEGY,
            adaptive=adaptive,
        )

    def prepare(self, plan: Plan) -> Run:
        """It must be what this version would plan."""
        if self.plan(plan.workload, plan.privacy, Search(STRATEGY)).digest() != plan.digest():
            raise InputError(
                "The details of the plan are not those of this version. Make the plan again; "
                "nothing was spent."
            )

        def run(series: Series) -> Outcome:
            look = measured(plan, LOOK, flat=False)
            first = series.measure(look)
            noise = block_variance(look, look.blocks[0])
            spread = float(np.var(first.values[0] / look.grid))
            flat = spread < 2 * noise
            test = {"records": spread**0.5, "in_noise": (spread / noise) ** 0.5}
            second = series.measure(measured(plan, 1 - LOOK, flat=flat))
            if flat:
                return Outcome(plan, second, Flat(test=test, buckets=1))
            return Outcome(
                plan,
                join_observations([first, second], plan.privacy),
                NoStructureFinding(test=test),
            )

        return run


def measured(plan: Plan, part: Fraction, *, flat: bool) -> Measurements:
    """The cells, or their sum, within a part of the budget.

    Args:
        plan: of counts along one attribute.
        part: of its budget.
        flat: whether to measure the sum alone.

    >>> made = FlatOrNot().plan(queries(Domain(age=Integers(0, 7)), age="prefix"), Privacy(PureDP(1)), Search("flat"))
    >>> measured(made, LOOK, flat=True).blocks[0].rows
    1
    """
    ((name,),) = {product.attributes for product in plan.workload}
    size = plan.domain.kind(name).size
    operator = Coarse(Identity(1), np.zeros(1, dtype=np.int64), size) if flat else Identity(size)
    block = Block((Factor((name,), operator),), Fraction(1))
    return fit_noise_scales(
        plan.domain, plan.privacy.scaled(part), noise_kinds(plan.privacy)[0], [(block, 1.0)]
    )
