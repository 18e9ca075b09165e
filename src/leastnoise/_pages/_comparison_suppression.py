"""Find the numbers of a comparison that its releases do not publish.

A release suppresses small answers (``below``), and answers with a large CV if its survey says so. A
comparison must not reveal these numbers, whether it compares cells, unions of cells, shares, counts
of units or selected rows. A compared number is left out in three cases:

- A table or statistic of the release has this number and suppresses it.
- No table has it, and it adds up cells of which a table suppresses one.
- No table has it, and it is smaller than ``below``. A share and a mean are left out with their
  numerator or their denominator.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeAlias

import numpy as np

from leastnoise._error import expand
from leastnoise._estimation import ABTest, ComparisonSubject, Differences, axes_of
from leastnoise._release import Release, product_rounding
from leastnoise._trusted.check import InputError
from leastnoise._trusted.check.arrays import BoolArray
from leastnoise._trusted.linop import apply, dense
from leastnoise._workload import Product, QuerySet, Quotient, read_comparison, selected_cells

ComparisonResult: TypeAlias = Differences | ABTest
_SETS_OF_CELLS = ("identity", "level", "predicates", "ranges")  # kinds whose queries add up cells
_MOST_ENTRIES = 2**24  # coefficients of the compared groups along an attribute; 128 MiB of floats


class _Published(NamedTuple):
    """A table or statistic of a release: its groups, and which are suppressed."""

    product: Product
    is_suppressed: BoolArray


def releases_of(comparison: ComparisonResult) -> tuple[Release, ...]:
    """Return the releases of a comparison.

    Raises:
        InputError: the comparison is of estimates, which have no titles and no options.
    """
    releases = []
    for source in comparison.subject.sources:
        if not isinstance(source, Release):
            raise InputError(
                "The page of a comparison needs finished releases; got an estimate. Compare values "
                "that `leastnoise.release` or `leastnoise.read_release` returned."
            )
        releases.append(source)
    return tuple(releases)


def without_suppressed(comparison: ComparisonResult) -> ComparisonResult:
    """Return a comparison without the numbers that a release does not publish."""
    is_suppressed = _find_suppressed(comparison)
    if not is_suppressed.any():
        return comparison
    numbers = {
        name: np.where(is_suppressed.reshape(values.shape), np.nan, values)
        for name, values in comparison.numbers.items()
    }
    return replace(comparison, numbers=numbers)


def _find_suppressed(comparison: ComparisonResult) -> BoolArray:
    """Return a mask of the differences of which a release suppresses a number."""
    subject = comparison.subject
    shape = comparison.numbers["difference"].shape
    is_suppressed = np.zeros(shape, dtype=np.bool_)
    releases = releases_of(comparison)
    if len(releases) > 1:
        for release, groups in zip(releases, subject.by_of_sources, strict=True):
            quotient = _selected_quotient(release, subject, groups)
            is_suppressed |= _suppressed_groups(release, subject, quotient).reshape(shape)
        return is_suppressed
    (release,) = releases
    masks = []
    for selection in subject.selections:
        compared = read_comparison(
            release.plan.domain,
            subject.along,
            selection,
            subject.against,
            by=dict(subject.by),
            quantity=subject.quantity,
        )
        first, second = (
            _suppressed_groups(release, subject, side)
            for side in compared.sides(release.plan.domain)
        )
        masks.append(first | second)
    return np.stack(masks).reshape(shape)


def _selected_quotient(
    release: Release, subject: ComparisonSubject, groups: Mapping[str, QuerySet]
) -> Quotient:
    """Return the queries of the compared quantity in one of two releases."""
    domain = release.plan.domain
    conditions = {
        name: selected_cells(domain, name, cells, "where") for name, cells in subject.where.items()
    }
    return subject.quantity.over(domain, {**groups, **conditions})


def _suppressed_groups(
    release: Release, subject: ComparisonSubject, quotient: Quotient
) -> BoolArray:
    """Return which groups have a suppressed numerator, denominator or mean."""
    parts = [quotient.numerator]
    if quotient.denominator is not None:
        parts.append(quotient.denominator)
    names = axes_of(release.plan.domain, *parts)
    masks = [expand(part, _suppressed_answers(release, part), names) for part in parts]
    if subject.quantity.kind in ("mean", "sum"):
        # Anyone can compute a mean from its sum and the number of its values, and the reverse.
        means = _published_means(release, str(subject.quantity.measure))
        masks.append(expand(parts[0], _suppressed_parts(parts[0], [*means]), names))
    return np.asarray(np.logical_or.reduce(np.broadcast_arrays(*masks)))


def _suppressed_answers(release: Release, product: Product) -> BoolArray:
    """Return a mask of a product's suppressed answers, an axis per attribute."""
    tables = list(_published_tables(release, product.measure))
    for table in tables:
        if table.product.along == product.along:
            return table.is_suppressed
    is_suppressed = _suppressed_parts(product, tables)
    _, bound = product_rounding(release.options, product)
    if bound is not None:
        (answer,) = release.least_squares().answers([product])
        amounts = np.asarray(answer.values).reshape(product.shape) * float(product.unit)
        is_suppressed = is_suppressed | (amounts < float(bound))
    return is_suppressed


def _published_tables(release: Release, measure: str | None) -> Iterator[_Published]:
    """Yield the tables of a quantity that may have suppressed answers."""
    options = release.options
    if options.below is None and not options.suppresses_by_cv:
        return
    for position, product in enumerate(release.workload.products):
        if product.measure == measure and _adds_up_cells(product):
            yield _Published(product, np.isnan(release.tables[position].answer))


def _published_means(release: Release, measure: str) -> Iterator[_Published]:
    """Yield the means of a measure that may have suppressed values."""
    options = release.options
    if options.below is None and not options.suppresses_by_cv:
        return
    for position, statistic in enumerate(release.plan.workload.statistics):
        if (statistic.kind, statistic.of) != ("means", measure):
            continue
        product = Product(
            domain=release.plan.domain, attributes=statistic.by, query_sets=statistic.groups
        )
        if _adds_up_cells(product):
            is_suppressed = np.isnan(release.statistics[position].values)
            yield _Published(product, is_suppressed.reshape(product.shape))


def _adds_up_cells(product: Product) -> bool:
    """Return whether all queries of a table add up cells."""
    return all(query_set.kind in _SETS_OF_CELLS for query_set in product.query_sets)


def _suppressed_parts(product: Product, tables: Sequence[_Published]) -> BoolArray:
    """Return which answers to a product add up a suppressed answer of a table.

    An attribute of which the product adds up all cells does not count: totals are published even if
    some of their parts are not.
    """
    is_suppressed = np.zeros(product.shape, dtype=np.bool_)
    split = [name for name in product.attributes if not _is_total(product, name)]
    for table in tables:
        if [*table.product.attributes] != split:
            continue
        mask = table.is_suppressed.reshape(table.product.shape)
        for axis, name in enumerate(split):
            mask = _any_along(mask, axis, product, table.product, name)
        sizes = [
            size if name in split else 1
            for name, size in zip(product.attributes, product.shape, strict=True)
        ]
        is_suppressed = is_suppressed | mask.reshape(sizes)
    return is_suppressed


def _is_total(product: Product, name: str) -> bool:
    """Return whether a product has only the total along an attribute."""
    operator = product.operators[product.attributes.index(name)]
    if operator.rows > 1:
        return False
    kind = product.domain.kind(name)
    return bool((dense(operator)[0, : kind.published] != 0).all())


def _any_along(
    mask: BoolArray, axis: int, product: Product, table: Product, name: str
) -> BoolArray:
    """Return, along an axis, which queries of a product contain a marked group.

    If the queries have over 2^24 coefficients, each counts as containing every marked group.

    Args:
        mask: the marked groups of the table, with an axis per attribute.
        axis: the axis of the attribute.
        product: the product.
        table: the table.
        name: the attribute.
    """
    if product.along[name] == table.along[name]:
        return mask
    queries = product.operators[product.attributes.index(name)]
    groups = table.operators[axis]
    marked = np.moveaxis(mask, axis, 0)
    if queries.rows * queries.size > _MOST_ENTRIES:
        # Too many to compare: each query may contain a marked group.
        shape = (queries.rows, *marked.shape[1:])
        return np.moveaxis(np.broadcast_to(marked.any(axis=0), shape), 0, axis)
    sizes = apply(groups, np.ones(groups.size))
    answers = []
    for row in dense(queries):
        is_inside = (apply(groups, row.astype(np.float64)) == sizes) & (sizes > 0)
        answers.append(marked[is_inside].any(axis=0))
    return np.moveaxis(np.stack(answers), 0, axis)
