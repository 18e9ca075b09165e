"""Fixtures of the kernel's tests."""

import pytest

from trusted.kernel.ledgers import opened


@pytest.fixture
def ledger(tmp_path):
    """Return a new ledger with the budget epsilon 1."""
    return opened(tmp_path)
