"""Fixtures of the kernel's tests."""

from pathlib import Path

import pytest

from leastnoise._trusted.kernel import Ledger
from trusted.kernel.ledgers import opened


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    """Return a new ledger with the budget epsilon 1."""
    return opened(tmp_path)
