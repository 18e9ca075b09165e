"""Functions on private rows, counts and noise that only tests may import.

No package exports these names, so that nothing in the package that makes a release can use them.
Tests compare them with oracles, and count what a release draws.
"""

# ruff: noqa: F401
from leastnoise._trusted.kernel import _periods
from leastnoise._trusted.kernel._count import exact_marginals
from leastnoise._trusted.kernel._ledger_file import hash_row
from leastnoise._trusted.kernel._measurement import SAMPLERS, exact_answers, verified_cost
from leastnoise._trusted.kernel._noise import discrete_gaussian, discrete_laplace, rounded_gaussian
from leastnoise._trusted.kernel._plane import clip_counts
from leastnoise._trusted.reading._column import (
    Column,
    CountRequest,
    TextColumn,
    arrow_fields,
    to_column,
)
from leastnoise._trusted.reading._encode import amount_encoder, cell_encoder
from leastnoise._trusted.reading._engine import values_of
from leastnoise._trusted.reading._read import open_source
from leastnoise._trusted.reading._unit_keys import UnitNumbers, key_reader
from leastnoise._trusted.reading._units import Units, lacking_rows
from leastnoise._trusted.reading._value_rules import is_null, value_as_text
