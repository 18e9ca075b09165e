"""Random SQL statements have the answers of DuckDB; `make differential` runs thousands."""

import pytest

from differential.compare import run

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("seed", range(1, 5))
def test_random_statements_are_answered_as_duckdb_does(seed):
    tally = run(50, seed)
    assert tally.different == []
    assert tally.accepted == 50
    assert 0 < tally.with_rows_left_out < 50
    assert tally.released > 0
