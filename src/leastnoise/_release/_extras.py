"""What a release can hold, of which tables and beside the unbiased answers; what it cannot is refused before anything is paid.

Of tables that are too large to write, their cells and prefix sums are written in their place, from which every interval follows. After the
payment nothing here may fail, and nothing may take hours: sizes are bounded from the plan alone, and whatever is iterated stops after a
bounded number of rounds and says how near it came.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

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
    public_of,
    sums_within,
)
from leastnoise._measurements import Measurements, Observation
from leastnoise._plan import Plan
from leastnoise._release._options import Options
from leastnoise._release._statements import check_statements
from leastnoise._workload import Product, QuerySet, Workload, all_ranges, identity, prefix

MOST_WRITTEN = 10_000_000
"""Answers of one table that are written; public."""
MOST_JOINT = 2**16
_MOST_SUMS = 2  # whole numbers with the sums of two partitions always exist
MOST_LOCAL = 2**22
_MOST_COVARIANCES = 2**11
_MOST_TABLES, _MOST_ANSWERS = 200, 1_000_000  # of a workbook, or of SDMX messages


def written(products: Sequence[Product]) -> tuple[Product, ...]:
    """What is written for some tables."""
    cells = tuple(_instead(product, identity()) if is_large(product) else product for product in products)
    return cells + tuple(_instead(product, prefix()) for product in products if is_large(product))


def is_large(product: Product) -> bool:
    """Whether a table has too many answers to be written, and few enough cells."""
    return product.rows > MOST_WRITTEN >= _instead(product, identity()).rows


def is_part(question: Product, asked: Product) -> bool:
    """Whether every query of a table is one of another table."""
    pairs = zip(question.query_sets, asked.query_sets, strict=False)
    return (question.measure, question.attributes) == (asked.measure, asked.attributes) and all(
        queries == other or (other == all_ranges() and queries.form.intervals) for queries, other in pairs
    )


def _instead(product: Product, instead: QuerySet) -> Product:
    sets = tuple(instead if queries == all_ranges() else queries for queries in product.query_sets)
    return replace(product, query_sets=sets)


def check_options(plan: Plan, options: Options) -> None:
    """Refuse optional results that this plan cannot give, before anything is paid for it."""
    tables = written(plan.workload.products)
    check_formats(options.formats, tables)
    check_statements(plan.workload, plan.privacy.unit_column, options.statements)
    for asked in plan.workload.statistics:
        if plan.measurements is None:
            raise InputError(
                f"The {asked.name} cannot be given by the strategy {plan.strategy!r}, which decides on the way what is measured, so that "
                "no interval is known. Leave it out, or choose strategy = 'auto'."
            )
    public = public_of(plan)
    if public and options.nnls:
        raise refuse("nnls", options.nnls, "left out where counts are public", "local_non_negative keeps their sums.")
    if options.integer and any(len(sums_within(one.attributes, one.shape, public)) > _MOST_SUMS for one in tables if one.measure is None):
        raise refuse("integer", options.integer, f"left out where a table has more than {_MOST_SUMS} tables of public counts in it")
    if not options.beside:
        return
    if plan.measurements is None:
        raise _not_linear(plan, options.beside)
    if options.nnls or options.local_non_negative:
        _check_biased(plan.measurements, plan.workload, joint=options.nnls, local=options.local_non_negative)
    for key in options.covariances:
        product = tables[table_position(tables, key)]
        if not product.rows <= _MOST_COVARIANCES:
            advice = "Take them from Python, with release.covariance."
            raise refuse(
                f"the table {key!r} whose covariances are written", product.rows, f"of at most {_MOST_COVARIANCES} answers", advice
            )
        if structure(plan.measurements, product.measure).solver_cells:
            raise InputError(
                f"The covariances of {key!r} are not known under the strategy {plan.strategy!r}, whose estimates need a linear solver. "
                "Choose another strategy."
            )


def check_formats(formats: Sequence[str], tables: Sequence[Product]) -> None:
    """Refuse formats that cannot hold a release."""
    for name in formats:
        if name == "xlsx":
            try:
                import xlsxwriter  # noqa: F401 - whether it is there
            except ImportError:
                raise InputError("Answers as xlsx need the extra 'excel': pip install 'leastnoise[excel]'.") from None
        if name in ("xlsx", "sdmx"):
            advice, answers = "Leave that format out, or ask for less.", sum(product.rows for product in tables)
            if not len(tables) <= _MOST_TABLES:
                raise refuse(f"a release in the format {name!r}", f"{len(tables)} tables", f"of at most {_MOST_TABLES} tables", advice)
            if not answers <= _MOST_ANSWERS:
                raise refuse(f"a release in the format {name!r}", f"{answers} answers", f"of at most {_MOST_ANSWERS} answers", advice)


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
        cells = max(_cells(measurements.domain, attributes_told(measurements, measure)) for measure in measures)
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
    # Whatever else could fail, such as cells that the measurements do not determine, fails now, on made-up numbers of the noise's size.
    sizes = [float(block.scale) * measurements.grid / block.scaling() for block in measurements.blocks]
    values = tuple(np.rint(size * np.cos(np.arange(len(size)))).astype(np.int64) for size in sizes)
    tried = Observation(measurements, values, "", private=False)
    if joint:
        with _of_the_option("nnls"):
            by_measure = joint_cells(tried, workload)
            for product in workload:
                if product.measure in by_measure:
                    by_measure[product.measure].values(product)
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


def table_position(products: Sequence[Product], key: str) -> int:
    """The position of a table, by id or by a name that only one table has."""
    if key[:1] == "q" and key[1:].isdecimal() and key == f"q{int(key[1:])}" and 1 <= int(key[1:]) <= len(products):
        return int(key[1:]) - 1
    named = [position for position, product in enumerate(products) if product.name == key]
    if len(named) == 1:
        return named[0]
    if named:
        listed = ", ".join(f"q{position + 1}" for position in named[:5]) + ", ..." * (len(named) > 5)
        raise InputError(f"Several tables are named {key!r}; take one by its id: {listed}.")
    some = ", ".join(f"q{number} ({product.name})" for number, product in enumerate(products[:5], 1)) + ", ..." * (len(products) > 5)
    raise InputError(f"A table must be called by its id or name; got {quoted(key)}. This release has {some}.")


def joint_cells(observation: Observation, workload: Workload) -> dict[str | None, NonNegativeCells]:
    """Non-negative least squares for every measure that cannot be negative; stopped after a bounded number of steps."""
    return {measure: nnls(observation, measure=measure, insist=False) for measure in _never_negative(workload)}


def local_tables(estimate: Estimate, workload: Workload) -> dict[str | None, LocallyNonNegative]:
    """Non-negative tables that agree, for every measure that cannot be negative; stopped after a bounded number of rounds."""
    by_measure = {}
    for measure in _never_negative(workload):
        tables = _tables(workload, measure)
        by_measure[measure] = locally_non_negative(estimate, tables, measure=measure)
    return by_measure


def _never_negative(workload: Workload) -> list[str | None]:
    measures = workload.domain.measures
    return [measure for measure in workload.measures if measure is None or measures[measure].low_units >= 0]


def _tables(workload: Workload, measure: str | None) -> list[tuple[str, ...]]:
    return list(dict.fromkeys(product.attributes for product in workload if product.measure == measure))


def _cells(domain: Domain, names: Iterable[str]) -> int:
    return math.prod(domain.kind(name).size for name in names)
