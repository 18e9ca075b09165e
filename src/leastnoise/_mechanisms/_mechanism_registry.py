"""The registry of mechanisms, with one line for each mechanism.

The first mechanism that supports a strategy and a workload is used.
"""

from itertools import chain

from leastnoise._mechanisms._dawa import Dawa
from leastnoise._mechanisms._linear import Linear
from leastnoise._mechanisms._model_mechanism import Model
from leastnoise._mechanisms._protocol import Mechanism
from leastnoise._mechanisms._quantile_mechanism import SelectedQuantiles
from leastnoise._mechanisms._sums_mechanism import TruncatedSums
from leastnoise._plan import Plan
from leastnoise._workload import Workload

MECHANISMS: tuple[Mechanism, ...] = (
    Dawa(),
    TruncatedSums(),
    Model(),
    SelectedQuantiles(),
    Linear(),
)
BY_NAME = tuple(dict.fromkeys(chain.from_iterable(mechanism.names for mechanism in MECHANISMS)))
"""The strategies that are used only by name, because their error depends on the data."""


def mechanism_for(strategy: str, workload: Workload) -> Mechanism:
    """Return the first mechanism that supports a strategy and a workload."""
    return next(mechanism for mechanism in MECHANISMS if mechanism.supports(strategy, workload))


def mechanism_of(plan: Plan) -> Mechanism:
    """Return the mechanism that made a plan and carries it out."""
    return mechanism_for(plan.strategy, plan.workload)
