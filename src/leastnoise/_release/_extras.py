"""What a release may hold beside the unbiased answers: tables without negative cells, and covariances. Refused before anything is paid.

After the payment nothing here may fail, and nothing may take hours: sizes are bounded from the plan alone, and whatever is iterated stops
after a bounded number of rounds and says how near it came.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from leastnoise._accuracy import attributes_told, structure
from leastnoise._check import InputError, quoted, refuse
from leastnoise._domain import Domain
from leastnoise._estimate import (
    Estimate,
    LocallyNonNegative,
    NonNegativeCells,
    Outcome,
    locally_non_negative,
    nnls,
)
from leastnoise._measurements import Measurements, Observation
from leastnoise._plan import Plan
from leastnoise._release._formats import check_formats
from leastnoise._release._large import written
from leastnoise._release._options import Options
from leastnoise._workload import Product, Workload

MOST_JOINT = 2**16
MOST_LOCAL = 2**22
MOST_LISTED = 2**11
_ROUNDS = 2**27  # rounds times cells of the local projection


def check_options(plan: Plan, options: Options) -> None:
    """Refuse optional results that this plan cannot give, before anything is paid for it."""
    check_formats(options.formats, written(plan.workload.products))
    _check_statistics(plan)
    if not options.beside:
        return
    if plan.measurements is None:
        raise _not_linear(plan, options.beside)
    if options.nnls or options.local_non_negative:
        _check_biased(plan.measurements, plan.workload, joint=options.nnls, local=options.local_non_negative)
    tables = written(plan.workload.products)
    for key in options.covariances:
        product = tables[table_place(tables, key)]
        if not product.rows <= MOST_LISTED:
            advice = "Take them from Python, with release.covariance."
            raise refuse(f"the table {key!r} whose covariances are written", product.rows, f"of at most {MOST_LISTED} answers", advice)
        if structure(plan.measurements, product.measure).solver_cells:
            raise InputError(
                f"The covariances of {key!r} are not known under the strategy {plan.strategy!r}, whose estimates need a linear solver. "
                "Choose another strategy."
            )


def _check_statistics(plan: Plan) -> None:
    """Refuse statistics that a plan cannot give."""
    for asked in plan.workload.statistics:
        if plan.measurements is None:
            raise InputError(
                f"The {asked.name} cannot be given by the strategy {plan.strategy!r}, which decides on the way what is measured, so that "
                "no interval is known. Leave it out, or choose strategy = 'auto'."
            )


def check_linear(outcome: Outcome, *asked: str) -> None:
    """Refuse what only linear estimates have."""
    if not outcome.finding.linear:
        raise _not_linear(outcome.plan, asked)


def _not_linear(plan: Plan, asked: Sequence[str]) -> InputError:
    return InputError(
        f"{' and '.join(asked)} cannot be given by the strategy {plan.strategy!r}, whose answers are no linear estimates. Leave that out, "
        "or choose strategy = 'auto'."
    )


def _check_biased(measurements: Measurements, workload: Workload, *, joint: bool, local: bool) -> None:
    measures = _never_negative(workload)
    if not measures:
        raise InputError("Answers without negative cells can be asked for counts and for measures whose lowest value is at least 0.")
    if joint:
        cells = max(_joint_cells(measurements, measure) for measure in measures)
        if not cells <= MOST_JOINT:
            raise refuse(
                "the joint table of non-negative least squares",
                cells,
                f"of at most {MOST_JOINT} cells",
                "Leave out nnls, ask for local_non_negative, or take it from the finished release, with release.with_nnls().",
            )
    if local:
        total = sum(_cells(measurements.domain, names) for measure in measures for names in _tables(workload, measure))
        if not total <= MOST_LOCAL:
            advice = "Leave out local_non_negative, or ask for fewer or coarser tables."
            raise refuse("the tables of the local projection", total, f"of at most {MOST_LOCAL} cells", advice)
    # Whatever else could fail, such as cells that the measurements do not determine, fails now, on made-up numbers.
    tried = _made_up(measurements)
    if joint:
        with _of_the_option("nnls"):
            found = joint_cells(tried, workload)
            for product in workload:
                if product.measure in found:
                    found[product.measure].values(product)
    for measure in measures if local else ():
        with _of_the_option("local_non_negative"):
            locally_non_negative(Estimate(tried), _tables(workload, measure), measure=measure, rounds=0)


@contextmanager
def _of_the_option(name: str) -> Iterator[None]:
    """Say which option needs what cannot be given: it needs cells, also where only sums of them were asked for."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{name} needs every cell of the attributes that a table is about. {error} Or leave out {name}.") from error


def table_place(products: Sequence[Product], key: str) -> int:
    """The position of a table, by id or by a name that only one table has."""
    if key[:1] == "q" and key[1:].isdecimal() and key == f"q{int(key[1:])}" and 1 <= int(key[1:]) <= len(products):
        return int(key[1:]) - 1
    found = [place for place, product in enumerate(products) if product.name == key]
    if len(found) == 1:
        return found[0]
    if found:
        listed = ", ".join(f"q{place + 1}" for place in found[:5]) + ", ..." * (len(found) > 5)
        raise InputError(f"Several tables are named {key!r}; take one by its id: {listed}.")
    some = ", ".join(f"q{place + 1} ({product.name})" for place, product in enumerate(products[:5]))
    some += ", ..." * (len(products) > 5)
    raise InputError(f"A table must be called by its id or name; got {quoted(key)}. This release has {some}.")


def joint_cells(observation: Observation, workload: Workload) -> dict[str | None, NonNegativeCells]:
    """Non-negative least squares for every measure that cannot be negative; stopped after a bounded number of steps."""
    return {measure: nnls(observation, measure=measure, insist=False) for measure in _never_negative(workload)}


def local_tables(estimate: Estimate, workload: Workload) -> dict[str | None, LocallyNonNegative]:
    """Non-negative tables that agree, for every measure that cannot be negative; stopped after a bounded number of rounds."""
    found = {}
    for measure in _never_negative(workload):
        tables = _tables(workload, measure)
        cells = sum(_cells(estimate.observation.measurements.domain, names) for names in tables)
        found[measure] = locally_non_negative(estimate, tables, measure=measure, rounds=max(30, min(2000, _ROUNDS // cells)))
    return found


def _made_up(measurements: Measurements) -> Observation:
    """An observation of no data at all, of about the size of the noise."""
    sizes = [float(block.scale) * measurements.grid / block.scaling() for block in measurements.blocks]
    values = tuple(np.rint(size * np.cos(np.arange(len(size)))).astype(np.int64) for size in sizes)
    return Observation(measurements, values, "", private=False)


def _never_negative(workload: Workload) -> list[str | None]:
    measures = workload.domain.measures
    return [one for one in workload.measures if one is None or measures[one].low_units >= 0]


def _tables(workload: Workload, measure: str | None) -> list[tuple[str, ...]]:
    return list(dict.fromkeys(product.attributes for product in workload if product.measure == measure))


def _cells(domain: Domain, names: Iterable[str]) -> int:
    return math.prod(domain.kind(name).size for name in names)


def _joint_cells(measurements: Measurements, measure: str | None) -> int:
    return _cells(measurements.domain, attributes_told(measurements, measure))
