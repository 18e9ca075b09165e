"""Read public knowledge about rows: impossible combinations and counts."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from leastnoise._domain import Bins, Dates, Decimals, Domain, Edges, Integers, checked_keys
from leastnoise._estimation import public_counts, read_public
from leastnoise._spec._checks import prefix_errors
from leastnoise._spec._public_files import PublicFiles
from leastnoise._trusted.check import refuse
from leastnoise._trusted.linop import apply_transpose
from leastnoise._workload import groups_of, queries


def impossible_from_spec(domain: Domain, value: object) -> tuple[dict[str, tuple[int, ...]], ...]:
    """Return the combinations in ``[[impossible]]``: cell numbers by attribute.

    Each entry of the spec lists values that do not occur together. For numbers and dates the entry
    states a first and a last value, for other attributes a list of values.
    """
    if not isinstance(value, list) or not all(
        isinstance(entry, Mapping) and entry for entry in value
    ):
        raise refuse(
            "[[impossible]]",
            value,
            ("tables of attributes with impossible combinations of values, such as age = [0, 14]"),
        )
    impossible = []
    for number, entry in enumerate(value, 1):
        subject = f"[[impossible]] number {number}"
        sets_by_attribute = dict[str, object]()
        for name, values in entry.items():
            is_interval = name in domain.names and isinstance(
                domain.kind(name), (Integers, Decimals, Bins, Edges, Dates)
            )
            kind_of_set = "ranges" if is_interval else "predicates"
            sets_by_attribute[name] = {kind_of_set: [values]}
        sets = groups_of(domain, sets_by_attribute, subject)
        cells = {}
        for name, query_set in sets.items():
            operator = query_set.operator(name, domain.kind(name))
            row = apply_transpose(operator, np.ones(1, dtype=np.int64))
            cells[name] = tuple(np.flatnonzero(row).tolist())
        impossible.append(cells)
    return tuple(impossible)


def public_from_spec(
    domain: Domain, value: object, files: PublicFiles
) -> tuple[dict[str, Any], ...]:
    """Return the public counts of ``[[public]]`` as records for a plan.

    Each record has a table, which is a workload as JSON, and its counts in the order of the cells.
    """
    if not isinstance(value, list) or not all(isinstance(entry, Mapping) for entry in value):
        raise refuse(
            "[[public]]",
            value,
            'tables with counts, such as queries = { sex = "identity" } and counts = [120, 130]',
        )
    public_tables = []
    for number, entry in enumerate(value, 1):
        subject = f"[[public]] number {number}"
        settings: dict[str, Any] = checked_keys(subject, entry, ["queries", "counts"])
        workload = queries(domain, settings.get("queries", {}))
        (product,) = workload.products
        counts = settings.get("counts")
        with prefix_errors(f"{subject}: "):
            if isinstance(counts, Mapping):
                counts = files.counts(f"counts of {subject}", counts, product)
            numbers = public_counts(product, _flatten(counts)).sums.counts
        public_tables.append(
            {
                "table": workload.to_json()[0],
                "counts": [int(count) for count in numbers.reshape(-1)],
            }
        )
    read_public(domain, public_tables)
    return tuple(public_tables)


def _flatten(counts: object) -> list[object]:
    """Flatten nested lists into one list."""
    if not isinstance(counts, list):
        return [counts]
    flat = []
    for inner in counts:
        flat += _flatten(inner)
    return flat
