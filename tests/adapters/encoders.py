"""The encoder of a kind of attribute."""

from leastnoise._adapters import _encode
from leastnoise._domain import rule_of


def cell_encoder(kind):
    return _encode.cell_encoder(rule_of(kind))
