"""Which columns are asked about."""

from leastnoise._check import refuse
from leastnoise._plan import Plan
from leastnoise._workload import Workload


def asked_about(what: object) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The attributes and measures that a plan or a workload asks about, in the order of the domain.

    Args:
        what: the plan or workload.

    Raises:
        InputError: something else.

    >>> asked_about(ln.queries(ln.Domain(sex=["F", "M"], age=[1, 2]), age="identity"))
    (('age',), ())
    """
    if isinstance(what, Plan):
        return what.used()
    if not isinstance(what, Workload):
        raise refuse("what to check", type(what).__name__, "a spec, a plan or a workload")
    names = {name for product in what for name in product.attributes}
    return (
        tuple(name for name in what.domain.names if name in names),
        tuple(name for name in what.domain.measures if name in what.measures),
    )
