"""Fixtures of the kernel's tests."""

from pathlib import Path

import pytest

from kernel.ledgers import opened
from leastnoise._kernel import Ledger


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    """A new ledger with the budget epsilon 1."""
    return opened(tmp_path)
