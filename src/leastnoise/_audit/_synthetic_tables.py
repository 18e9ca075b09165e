"""Create unpaid series on synthetic rows and keys, for audits.

All tables are built from public lists of the caller. A private table cannot be passed.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from leastnoise._domain import Domain
from leastnoise._trusted.accounting import Privacy
from leastnoise._trusted.check.arrays import IntArray
from leastnoise._trusted.kernel import ReleaseContract, SeededEntropy, SystemEntropy, UnpaidSeries
from leastnoise._trusted.table import Table

EntropySource = SeededEntropy | SystemEntropy | None
Columns = Mapping[str, Sequence[int] | IntArray]


def series_on_rows(
    contract: ReleaseContract, codes: Columns, values: Columns, entropy: EntropySource
) -> UnpaidSeries:
    """Return an unpaid series on a table of synthetic rows.

    ``codes`` maps attributes to the cells of the rows, and ``values`` maps measures to their
    values.
    """
    return series_on_table(
        contract, synthetic_table(contract.domain, contract.privacy, codes, values), entropy
    )


def synthetic_table(domain: Domain, privacy: Privacy, codes: Columns, values: Columns) -> Table:
    """Return a private table that contains synthetic rows."""
    arrays = _integer_arrays(codes)
    amounts = _integer_arrays(values)
    rows = len(next(iter(arrays.values()), ()))
    unit = {
        "unit_column": privacy.unit_column,
        "max_rows": privacy.max_rows,
        "max_per_cell": privacy.max_per_cell,
    }
    return Table(domain, arrays, amounts, rows=rows, **unit)  # type: ignore[arg-type]


def _integer_arrays(columns: Columns) -> dict[str, IntArray]:
    """Return each column as an int64 array."""
    return {name: np.array(column, dtype=np.int64) for name, column in columns.items()}


def series_on_table(
    contract: ReleaseContract, table: Table, entropy: EntropySource
) -> UnpaidSeries:
    """Return an unpaid series on a table from `synthetic_table`."""
    return UnpaidSeries(contract, table, SystemEntropy() if entropy is None else entropy)


def series_on_keys(
    contract: ReleaseContract, units: Sequence[int], entropy: EntropySource
) -> UnpaidSeries:
    """Return an unpaid series on keys, given the number of units of each key."""
    unit = contract.privacy
    (attribute,) = contract.attributes
    numbers = np.array(units, dtype=np.int64)
    bounds = {"unit_column": unit.unit_column, "max_rows": unit.max_rows}
    table = Table.keyed(contract.domain, attribute, synthetic_keys(len(units)), numbers, **bounds)  # type: ignore[arg-type]
    return series_on_table(contract, table, entropy)


def synthetic_keys(count: int) -> list[str]:
    """Return ``count`` distinct keys of one character each."""
    return [chr(0x20000 + number) for number in range(count)]
