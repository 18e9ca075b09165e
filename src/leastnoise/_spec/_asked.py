"""Which columns are asked about."""

from leastnoise._check import refuse
from leastnoise._domain import Measure
from leastnoise._plan import Plan
from leastnoise._planning import looks
from leastnoise._spec._spec import Spec
from leastnoise._workload import Workload


def asked_about(what: object) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The attributes and measured columns that a release of a spec, a plan or a workload reads, in the order of the domain."""
    if isinstance(what, Plan):
        return what.used()
    workload = what.workload if isinstance(what, Spec) else what
    if not isinstance(workload, Workload):
        raise refuse("what to check", type(what).__name__, "a spec, a plan or a workload")
    names = {name for product in workload for name in product.attributes}
    if isinstance(what, Spec) and looks(what.strategy):
        from leastnoise._mechanisms import mechanism_for  # with all that carries such plans out

        names.update(mechanism_for(what.strategy, workload).decides_along(workload))
    return (
        tuple(name for name in workload.domain.names if name in names),
        tuple(name for name, measure in workload.domain.measures.items() if name in workload.measures and type(measure) is Measure),
    )
