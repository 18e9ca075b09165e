"""Garbage collection pauses while very many tables are planned, and then resumes."""

import gc

import pytest

from leastnoise import Domain, Privacy, PureDP, marginals
from leastnoise._mechanisms import Search, _strategy_choice, choose_plan


@pytest.fixture
def small_workload():
    return marginals(Domain(a=["x", "y"], b=["x", "y"]), ways=1)


@pytest.mark.parametrize("collects", [True, False])
@pytest.mark.parametrize("most", [0, 1024])
def test_collector_pauses_while_many_tables_are_planned(
    small_workload, monkeypatch, most, *, collects
):
    monkeypatch.setattr(_strategy_choice, "MANY_TABLES", most)
    is_collector_on: list[bool] = []

    def stopped(_):
        is_collector_on.append(gc.isenabled())
        raise KeyboardInterrupt

    try:
        if not collects:
            gc.disable()
        with pytest.raises(KeyboardInterrupt):
            choose_plan(small_workload, Privacy(PureDP(1)), Search(progress=stopped))
        assert gc.isenabled() is collects
    finally:
        gc.enable()
    assert is_collector_on == [collects and most > 0]


def test_collector_resumes_after_threads_have_planned():
    first = _strategy_choice._gc_paused()
    second = _strategy_choice._gc_paused()
    try:
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        second.__exit__(None, None, None)
        assert gc.isenabled()
    finally:
        gc.enable()
