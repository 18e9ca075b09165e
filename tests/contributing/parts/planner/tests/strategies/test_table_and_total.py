"""The strategy of one table and its total."""

import pytest

import leastnoise as ln


def test_table_and_total_measures_both():
    domain = ln.Domain(sex=["F", "M"], age=ln.Integers(0, 9))
    plan = ln.plan(ln.marginals(domain, upto=2), ln.PureDP(1), strategy="table_and_total")
    # Both attributes have one more cell, for other values.
    assert sorted(block.rows for block in plan.measurements.blocks) == [1, 3 * 11]


def test_table_and_total_refuses_large_tables():
    domain = ln.Domain(left=ln.Integers(0, 2**12), right=ln.Integers(0, 2**12))
    workload = ln.queries(domain, left="identity", right="identity")
    with pytest.raises(ln.InputError, match="at most 4194304 are allowed"):
        ln.plan(workload, ln.PureDP(1), strategy="table_and_total")
