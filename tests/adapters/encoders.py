"""What encodes the cells of an attribute, from its kind; and the columns of a source, before anything is encoded."""

import numpy as np

from leastnoise._adapters import _encode
from leastnoise._domain import rule_of


def cell_encoder(kind):
    return _encode.cell_encoder(rule_of(kind))


def columns_of_chunks(source, names):
    """For each chunk its number of rows and its columns."""
    held = []
    for rows, _ in source.encoded([(name, lambda column: held.append(column) or np.zeros(0)) for name in names]):
        yield rows, [held.pop(0) for _ in names]
