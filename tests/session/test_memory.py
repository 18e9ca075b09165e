"""Work beyond the memory is refused unpaid; huge query sets are planned without a list."""

import os
import subprocess
import sys
import tracemalloc
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import leastnoise as ln
from leastnoise._error import _memory, available_memory, pair_structure, require_memory
from leastnoise._families import invert_gram
from leastnoise._mechanisms import mechanism_of, try_strategies
from leastnoise._session import estimate_release_memory
from leastnoise._strategies import PLANNERS
from leastnoise._trusted.accounting import Privacy
from leastnoise._trusted.linop import AllRanges, Identity, Prefix
from leastnoise._trusted.measurements import Block, Factor
from waiting import HANGS


@pytest.fixture
def little_memory(monkeypatch):
    monkeypatch.setenv("LEASTNOISE_MEMORY", "100M")


def long_table(cells=200_000):
    return ln.queries(ln.Domain(x=ln.Coded(cells)), x="identity")


@pytest.mark.usefixtures("little_memory")
def test_release_beyond_memory_is_refused_unpaid(tmp_path):
    plan = ln.plan(long_table(), ln.PureDP(1))
    with pytest.raises(
        ln.InputError,
        match=r"This release needs about 20\d\.\d MiB of memory; 100\.0 MiB is available",
    ):
        ln.release(
            plan, pd.DataFrame({"x": [1, 2]}), ledger=tmp_path / "a.ledger", out=tmp_path / "out"
        )
    assert list(tmp_path.iterdir()) == []


def test_unwritten_set_is_counted_by_cells_and_prefixes():
    plan = ln.plan(
        ln.queries(ln.Domain(x=ln.Coded(5000)), x="all_ranges"), ln.PureDP(1), strategy="identity"
    )
    assert estimate_release_memory(plan, in_files=True) < 10e6


@pytest.mark.parametrize(
    ("setting", "size"), [("1000", 1000), ("2k", 2048), ("1.5GiB", 3 * 2**29), ("1T", 2**40)]
)
def test_memory_limit_is_a_size(monkeypatch, setting, size):
    monkeypatch.setenv("LEASTNOISE_MEMORY", setting)
    assert available_memory() == size


@pytest.mark.parametrize("setting", ["8 apples", "-1", "G", "1e9", "1" * 40])
def test_invalid_memory_limit_is_refused(monkeypatch, setting):
    monkeypatch.setenv("LEASTNOISE_MEMORY", setting)
    with pytest.raises(ln.InputError, match="LEASTNOISE_MEMORY must be a size such as 8G"):
        available_memory()


def test_control_group_limit_counts_without_cache(tmp_path):
    def free(folder, **files):
        (tmp_path / folder).mkdir(exist_ok=True)
        for name, text in files.items():
            (tmp_path / folder / f"memory.{name}").write_text(text)
        return _memory._free_of_group(str(tmp_path / folder))

    assert free("group", max="1000\n", current="900\n", stat="anon 500\ninactive_file 300\n") == 400
    assert free("group", max="max\n") is None
    assert free("older", limit_in_bytes="1000", usage_in_bytes="1200") == 0


@pytest.mark.usefixtures("little_memory")
def test_oversized_requests_are_refused_with_size():
    with pytest.raises(ln.InputError, match=r"A matrix needs about 4.0 GiB"):
        require_memory(2**32, "A matrix", "")
    require_memory(2**20, "Little", "")


def test_strategy_out_of_memory_spares_the_others(monkeypatch):
    def greedy(*_):
        raise MemoryError(
            "Unable to allocate 32.0 GiB for an array with shape (2098176, 2048) and data type "
            "int64"
        )

    monkeypatch.setitem(PLANNERS, "workload", replace(PLANNERS["workload"], propose=greedy))
    (failed,) = try_strategies(
        long_table(4), ln.plan(long_table(4), ln.PureDP(1)).privacy, "workload"
    )
    assert (
        failed.reason
        == "it needs more memory than is available (unable to allocate 32.0 GiB at once); ask for "
        "fewer or smaller tables"
    )
    with pytest.raises(ln.InputError, match="workload: it needs more memory than is available"):
        ln.plan(long_table(4), ln.PureDP(1), strategy="workload")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="limits of memory are set on Linux")
def test_command_planning_is_limited_to_free_memory():
    program = """
import numpy, resource
from leastnoise._error import memory_limit
before = resource.getrlimit(resource.RLIMIT_DATA)
with memory_limit():
    numpy.ones(2**20)
    try:
        numpy.ones(2**26)
    except MemoryError:
        print("refused")
assert resource.getrlimit(resource.RLIMIT_DATA) == before
numpy.ones(2**26)
"""
    environment = {
        **os.environ,
        "LEASTNOISE_MEMORY": "100M",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }
    result = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        env=environment,
        check=True,
        timeout=HANGS,
    )
    assert result.stdout == "refused\n"


# --- sets of queries that are too many to list ---


@contextmanager
def at_most(size):
    """Check that Python takes less memory than ``size`` bytes in the body."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < size
    finally:
        tracemalloc.stop()


@pytest.fixture(autouse=True)
def _without_listing(monkeypatch):
    """Fail where a test lists the ranges of many cells."""
    true = np.triu_indices

    def few(size):
        assert size <= 4096, "the ranges of many cells were listed"
        return true(size)

    monkeypatch.setattr(np, "triu_indices", few)


@pytest.mark.parametrize(
    ("budget", "strategy", "cells"),
    [
        (ln.PureDP(1), "identity", 2**16),
        (ln.ApproxDP(1, "1e-6"), "identity", 2**16),
        (ln.ZCDP("1/2"), "hierarchy", 2**13),
    ],
    ids=["pure", "approximate", "concentrated"],
)
def test_all_ranges_of_many_cells_are_planned(budget, strategy, cells):
    workload = ln.queries(ln.Domain(x=ln.Integers(0, cells - 1)), x=ln.all_ranges())
    with at_most(700e6):
        candidates = [
            candidate
            for candidate in try_strategies(workload, Privacy(budget), strategy)
            if candidate.plan
        ]
    plan = min(candidates, key=lambda candidate: candidate.total).plan
    expected_error = plan.expected_error()
    (table,) = expected_error.tables
    assert table.queries == cells * (cells + 1) // 2
    assert expected_error.total_squared_error == pytest.approx(table.queries * table.rmse**2)
    assert expected_error.lower_bound < expected_error.total_squared_error
    assert table.largest_is_bound
    assert table.rmse < table.largest_std < 2 * table.rmse
    reread = ln.Plan.from_json(plan.to_json())
    assert reread == plan
    assert mechanism_of(reread).prepare(reread)


@pytest.mark.parametrize(
    "second", [ln.all_ranges(), ln.prefix(), ln.identity()], ids=lambda queries: queries.kind
)
def test_products_too_large_to_list_are_promised(second):
    domain = ln.Domain(x=ln.Coded(3000), y=ln.Coded(3000))
    workload = ln.queries(domain, x=ln.all_ranges(), y=second)
    (candidate,) = try_strategies(workload, Privacy(ln.PureDP(1)), "hierarchy")
    assert candidate.plan is not None, candidate.reason
    (table,) = candidate.plan.expected_error().tables
    assert table.queries == workload.rows
    assert table.largest_is_bound
    assert table.rmse < table.largest_std < 10 * table.rmse
    assert mechanism_of(candidate.plan).prepare(candidate.plan)


def test_measured_ranges_use_a_gram_matrix():
    with at_most(150e6):  # a matrix of them would have 4 GB
        assert invert_gram(Factor(("x",), AllRanges(1000))).largest_variance(AllRanges(1000)) > 0


def test_ranges_in_common_basis_are_batched():
    # All 80,200 ranges in the basis of 400 vectors would have 257 MB.
    domain = ln.Domain(x=ln.Coded(400), y=ln.Coded(4))
    blocks = (
        Block((Factor(("x",), Identity(400)),), 1),
        Block((Factor(("x",), Prefix(400)), Factor(("y",), Identity(4))), 1),
    )
    structure = pair_structure({"x": 400, "y": 4}, [(blocks[0], 1.0), (blocks[1], 2.0)])
    product = ln.queries(domain, x=ln.all_ranges()).products[0]
    with at_most(200e6):
        errors = structure.errors(product)
    assert errors.total == pytest.approx(structure.total(product), rel=1e-9)
