"""What needs more memory than there is is refused with its size, before anything is paid."""

import os
import subprocess
import sys
from dataclasses import replace

import pandas as pd
import pytest

import leastnoise as ln
from leastnoise._accuracy import _memory, available_memory, require_memory
from leastnoise._mechanisms import candidates
from leastnoise._planner import PLANNERS
from leastnoise._session._payments import release_memory
from waiting import HANGS


@pytest.fixture
def little(monkeypatch) -> None:
    monkeypatch.setenv("LEASTNOISE_MEMORY", "100M")


def long(cells: int = 200_000) -> ln.Workload:
    return ln.queries(ln.Domain(x=ln.Coded(cells)), x="identity")


@pytest.mark.usefixtures("little")
def test_a_release_that_needs_more_than_there_is_is_refused_before_it_is_paid(tmp_path) -> None:
    made = ln.plan(long(), ln.PureDP(1))
    with pytest.raises(ln.InputError, match=r"This release needs about 20\d\.\d MiB of memory; 100\.0 MiB is available"):
        ln.release(made, pd.DataFrame({"x": [1, 2]}), ledger=tmp_path / "a.ledger", out=tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_a_set_too_large_to_write_is_counted_as_its_cells_and_prefix_sums() -> None:
    made = ln.plan(ln.queries(ln.Domain(x=ln.Coded(5000)), x="all_ranges"), ln.PureDP(1), strategy="identity")
    assert release_memory(made, in_files=True) < 10e6


def test_a_limit_is_a_size(monkeypatch) -> None:
    for given, size in (("1000", 1000), ("2k", 2048), ("1.5GiB", 3 * 2**29), ("1T", 2**40)):
        monkeypatch.setenv("LEASTNOISE_MEMORY", given)
        assert available_memory() == size
    for given in ("8 apples", "-1", "G", "1e9", "1" * 40):
        monkeypatch.setenv("LEASTNOISE_MEMORY", given)
        with pytest.raises(ln.InputError, match="LEASTNOISE_MEMORY must be a size such as 8G"):
            available_memory()


def test_a_limit_of_a_control_group_counts_and_its_cached_files_are_free(tmp_path) -> None:
    def free(folder: str, **files: str) -> int | None:
        (tmp_path / folder).mkdir(exist_ok=True)
        for name, text in files.items():
            (tmp_path / folder / f"memory.{name}").write_text(text)
        return _memory._free_of_group(str(tmp_path / folder))

    assert free("group", max="1000\n", current="900\n", stat="anon 500\ninactive_file 300\n") == 400
    assert free("group", max="max\n") is None
    assert free("older", limit_in_bytes="1000", usage_in_bytes="1200") == 0


@pytest.mark.usefixtures("little")
def test_what_needs_too_much_is_refused_with_its_size() -> None:
    with pytest.raises(ln.InputError, match=r"A matrix needs about 4.0 GiB"):
        require_memory(2**32, "A matrix", "")
    require_memory(2**20, "Little", "")


def test_a_strategy_that_runs_out_of_memory_does_not_take_the_others_down(monkeypatch) -> None:
    def greedy(*_: object) -> None:
        raise MemoryError("Unable to allocate 32.0 GiB for an array with shape (2098176, 2048) and data type int64")

    monkeypatch.setitem(PLANNERS, "workload", replace(PLANNERS["workload"], propose=greedy))
    (failed,) = candidates(long(4), ln.plan(long(4), ln.PureDP(1)).privacy, "workload")
    assert failed.reason == "it needs more memory than there is (unable to allocate 32.0 GiB at once); ask for fewer or smaller tables"
    with pytest.raises(ln.InputError, match="workload: it needs more memory than there is"):
        ln.plan(long(4), ln.PureDP(1), strategy="workload")


@pytest.mark.skipif(sys.platform != "linux", reason="limits of memory are set on Linux")
def test_planning_in_the_command_line_cannot_take_more_than_there_is() -> None:
    program = """
import numpy, resource
from leastnoise._accuracy import within_memory
before = resource.getrlimit(resource.RLIMIT_DATA)
with within_memory():
    numpy.ones(2**20)
    try:
        numpy.ones(2**26)
    except MemoryError:
        print("refused")
assert resource.getrlimit(resource.RLIMIT_DATA) == before
numpy.ones(2**26)
"""
    environment = {**os.environ, "LEASTNOISE_MEMORY": "100M", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=True, timeout=HANGS)
    assert done.stdout == "refused\n"
