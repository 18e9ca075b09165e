"""The registry of planners, and what is made from it."""

import pytest
from contracts.strategies import PAGE, page

from leastnoise._accounting import Noise, Privacy, PureDP
from leastnoise._domain import Domain, Integers
from leastnoise._planner import PLANNERS, NotApplicable, Task
from leastnoise._workload import Workload, marginals, queries


def prefix(size: int) -> Workload:
    return queries(Domain(a=Integers(0, size - 1)), a="prefix")


def test_the_page_of_strategies_is_made_from_the_registry() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert page(text) == text


def test_names_are_those_of_the_records_and_each_says_what_it_measures() -> None:
    for name, planner in PLANNERS.items():
        assert planner.name == name
        assert planner.measures
        assert planner.made_for
        assert planner.norms == (1, 2) or planner.instead
        assert planner.seconds(prefix(4)) <= planner.seconds(prefix(1024)) <= (planner.most or planner.seconds)(prefix(1024))


def test_noise_that_a_planner_is_not_made_for_is_refused_with_what_to_choose() -> None:
    workload = marginals(Domain(a=["x", "y"]), ways=1)
    for planner in PLANNERS.values():
        for noise in Noise:
            if noise.norm not in planner.norms:
                with pytest.raises(NotApplicable, match=r"never worse|; (for pure differential privacy )?choose \w+"):
                    planner.strategy(Task(workload, Privacy(PureDP(1)), noise))
