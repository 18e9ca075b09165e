"""Fixtures of the kernel's tests."""

import pytest

from trusted.kernel.ledgers import open_new_ledger


@pytest.fixture
def ledger(tmp_path):
    """Return a new ledger with the budget epsilon 1."""
    return open_new_ledger(tmp_path)
