"""Helpers that build encoders and read columns, keys and refusals of sources."""

import re
from contextlib import contextmanager

import numpy as np
import pytest

from behind_the_wall import cell_encoder as encoder_of_rule
from leastnoise._domain import rule_of
from leastnoise._trusted.check import InputError
from leastnoise._trusted.table import Keyed, open_content


def cell_encoder(kind):
    return encoder_of_rule(rule_of(kind))


def columns_of_chunks(source, names):
    """Return the number of rows and the columns of each chunk."""
    columns = []
    for rows, _, _ in source.encoded(
        [(name, lambda column: columns.append(column) or np.zeros(0)) for name in names]
    ):
        yield rows, [columns.pop(0) for _ in names]


def units_of(table):
    """Return the found keys, each with its number of units."""
    keyed = open_content(table, Keyed)
    return dict(zip(keyed.keys, keyed.units.tolist(), strict=True))


@contextmanager
def refused(message):
    """Check that the body is refused in one line, with no value and no library error."""
    with pytest.raises(InputError, match=re.escape(message)) as error:
        yield
    assert not re.search("MARK|division|\n", str(error.value))
    assert error.value.__cause__ is None
    assert error.value.__suppress_context__ or error.value.__context__ is None
