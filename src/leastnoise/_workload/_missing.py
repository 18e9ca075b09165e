"""Hidden cells keep rows with a missing value in tables of other attributes.

A row counts in each table if it has a value in all columns of the table. If some tables do not use
an attribute, the measurements must therefore include the rows whose value of this attribute cannot
be used. These rows are counted in a last cell of the attribute, which is measured and never
published. Only the workload and public declarations decide which attributes need such a cell.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain

from leastnoise._domain import Domain
from leastnoise._trusted.linop import Operator
from leastnoise._workload._product import Product
from leastnoise._workload._query_sets import (
    QuerySet,
    all_cells,
    hidden_cell,
    identity,
    with_hidden_group,
)
from leastnoise._workload._workload import Workload


def with_hidden_cells(
    workload: Workload, complete: Iterable[str] = (), decision_attributes: Iterable[str] = ()
) -> Workload:
    """Return the workload over a domain with the hidden cells that it needs.

    Args:
        workload: the queries to answer.
        complete: attributes that have no missing values; they are added to the attributes that are
            declared complete.
        decision_attributes: attributes that a mechanism reads, even if no table has them.

    Returns:
        The workload over a domain with hidden cells. An attribute needs a hidden cell if two
        conditions hold: its values may be dropped, and it is in some tables but not in all.

    >>> domain = ln.Domain(sex=["F", "M"], age=ln.Integers(0, 9), zone=ln.Coded(3, complete=True))
    >>> asked = ln.marginals(domain, ways=1) + ln.queries(domain, sex="identity", age="prefix")
    >>> with_hidden_cells(asked).domain.shape
    (3, 11, 3)
    """
    names = incomplete_attributes(workload, complete, decision_attributes)
    return workload_over(workload, with_hidden(workload.domain, names))


def incomplete_attributes(
    workload: Workload, complete: Iterable[str] = (), decision_attributes: Iterable[str] = ()
) -> tuple[str, ...]:
    """Return the attributes that need a hidden cell for dropped values.

    >>> domain = ln.Domain(sex=["F", "M"], age=ln.Integers(0, 9))
    >>> incomplete_attributes(ln.queries(domain, sex="identity") + ln.marginals(domain, ways=2))
    ('age',)
    """
    tables = Counter(chain.from_iterable(product.attributes for product in workload))
    read = {*workload.read_attributes, *decision_attributes}
    taken = {*complete}
    return tuple(
        name
        for name in workload.domain.names
        if name in read
        and name not in taken
        and tables[name] < len(workload.products)
        and workload.domain.kind(name).may_drop
    )


def leaves_out(product: Product) -> tuple[str, ...]:
    """Return the attributes whose missing values make a table omit rows.

    >>> domain = ln.Domain(sex=["F", "M"], age=ln.Coded(9, null="other"))
    >>> leaves_out(ln.marginals(domain, ways=2).products[0])
    ('sex', 'age')
    """
    kinds = {name: product.domain.kind(name) for name in product.attributes}
    return tuple(name for name, kind in kinds.items() if "drop" in (kind.null, kind.outside))


def with_hidden(domain: Domain, names: Iterable[str]) -> Domain:
    """Return the domain in which only ``names`` have a cell for dropped values."""
    hidden = {*names}
    if hidden == {name for name in domain.names if domain.kind(name).hidden}:
        return domain
    kinds = {name: domain.kind(name).with_hidden(name in hidden) for name in domain.names}
    return Domain(kinds, measures=domain.measures)


def without_hidden_cells(domain: Domain) -> Domain:
    """Return the domain without hidden cells, as it was declared."""
    return with_hidden(domain, ())


def workload_over(workload: Workload, domain: Domain) -> Workload:
    """Return the workload over a domain that differs only in its hidden cells."""
    if workload.domain is domain:
        return workload
    # Many tables share few query sets, so each operator is made only once.
    operators: dict[tuple[str, int], Operator] = {}

    def operator(name: str, query_set: QuerySet) -> Operator:
        """Return the operator of a query set, from a cache."""
        key = name, id(query_set)
        if key not in operators:
            operators[key] = query_set.operator(name, domain.kind(name))
        return operators[key]

    def table_over(product: Product) -> Product:
        """Return a table over the other domain."""
        product_in_domain = replace(product, domain=domain)
        if product.counts_groups:
            return product_in_domain
        return product_in_domain.with_operators(
            tuple(operator(name, query_set) for name, query_set in product.along.items())
        )

    return replace(workload, domain=domain, products=tuple(map(table_over, workload)))


def table_of_all_cells(domain: Domain, names: Sequence[str], measure: str | None = None) -> Product:
    """Return the table of all cells of some attributes, including hidden cells.

    Only estimates use this table; no release shows it.

    >>> domain = with_hidden(ln.Domain(sex=["F", "M"], age=ln.Integers(0, 9)), ["age"])
    >>> table_of_all_cells(domain, ["sex", "age"]).shape
    (2, 11)
    """
    attributes = tuple(name for name in domain.names if name in names)
    query_sets = tuple(
        all_cells() if domain.kind(name).hidden else identity() for name in attributes
    )
    return Product(domain=domain, attributes=attributes, query_sets=query_sets, measure=measure)


def rows_left_out(domain: Domain, name: str) -> Product:
    """Return a query that counts the rows that an attribute's tables omit.

    >>> domain = with_hidden(ln.Domain(sex=["F", "M"], age=ln.Integers(0, 9)), ["age"])
    >>> rows_left_out(domain, "age").shape
    (1,)
    """
    return Product(domain=domain, attributes=(name,), query_sets=(hidden_cell(),), measure=None)


def with_hidden_groups(product: Product) -> Product:
    """Return a table in which the hidden cells are additional groups.

    A count of units in cells or in groups of cells is returned unchanged, because its groups do not
    add up to other tables.
    """
    if not product.has_hidden or product.counts_units_in_cells:
        return product
    query_sets = tuple(
        with_hidden_group(query_set, product.domain.kind(name))
        for name, query_set in product.along.items()
    )
    return replace(product, query_sets=query_sets)
