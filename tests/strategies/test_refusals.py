"""Workloads that a planner cannot plan, and the messages."""

from functools import partial

import numpy as np
import pytest

from leastnoise._domain import Coded, Domain, Integers, Measure
from leastnoise._families import gaussian_optimum, gram_of, haar
from leastnoise._strategies import (
    PLANNERS,
    Deadline,
    NotApplicable,
    PlanningProblem,
    counts_and_sums,
    time_limit,
)
from leastnoise._trusted.accounting import ZCDP, Noise, Privacy, PureDP
from leastnoise._trusted.check import InputError
from leastnoise._trusted.linop import Dense, Prefix
from leastnoise._workload import marginals, matrix, mean_queries, queries
from strategies.proposals import prefix, proposal

PURE = PureDP(1)
RHO = ZCDP(1)
SMALL = Domain(
    a=Coded(3), b=Integers(0, 9), c=Integers(0, 5), measures={"pay": Measure("pay", 0, 9)}
)
CELLS = marginals(SMALL, ways=2)
PREFIX = queries(SMALL, b="prefix")
MIXED = CELLS + PREFIX + marginals(SMALL, ways=1, sum="pay")


def cells(count, size, ways):
    return marginals(Domain({f"a{place}": Coded(size) for place in range(count)}), ways=ways)


NINE = Domain({f"a{place}": Integers(0, 3) for place in range(9)})
LONG = Domain(a=Coded(2000), b=Integers(0, 9))
REFUSED = [
    ("hierarchy", CELLS, PURE, "only cells along every attribute"),
    ("tilted", CELLS, RHO, "only cells along every attribute"),
    ("union", CELLS, PURE, "cannot be split"),
    (
        "workload",
        queries(prefix(5000).domain, a="all_ranges"),
        PURE,
        "has 12502500 queries, but at most 4194304 can be measured one by one",
    ),
    ("identity", cells(9, 10, 1), PURE, "has 1000000000 cells; at most 268435456 are allowed"),
    ("fourier", prefix(2000), PURE, "coded in bits may have at most 1024"),
    ("fourier", cells(3, 1000, 3), PURE, "coefficients; at most"),
    ("cuboids", cells(50, 2, 3), PURE, "pairs of the two"),
    ("residual_max", MIXED, PURE, "choose cuboids"),
    ("residual_max", MIXED, RHO, "tables of counts; choose residual"),
    ("tilted", MIXED, PURE, "not spent evenly"),
    ("tilted", prefix(2000), RHO, r"2000 x 2000; at most 1024 cells"),
    (
        "tilted",
        queries(NINE, **dict.fromkeys(NINE.names, "prefix")),
        RHO,
        "leave too few bits for integer coefficients",
    ),
    ("tilted", queries(SMALL, b=matrix([[1] * 10])), RHO, "only multiples of its total"),
    ("union", PREFIX, PURE, "cannot be split"),
    # Equal tables become one, with the sum of the weights.
    ("union", PREFIX + queries(SMALL, b="prefix", weight=2), PURE, "cannot be split"),
    ("union", MIXED, PURE, "possible only for counts"),
    (
        "union",
        PREFIX + queries(SMALL, b="prefix", c="identity"),
        PURE,
        "no split of the workload has a smaller",
    ),
    ("union", queries(LONG, a="identity") + queries(LONG, b="prefix"), PURE, "at most"),
]


@pytest.mark.parametrize(("name", "workload", "budget", "message"), REFUSED)
def test_unplannable_workload_is_refused_with_reason(name, workload, budget, message):
    with pytest.raises(NotApplicable, match=message):
        proposal(name, workload, budget)


def test_gaussian_noise_is_refused_for_a_pure_budget():
    with pytest.raises(NotApplicable, match="does not give pure"):
        proposal("tilted", MIXED, PURE, Noise.DISCRETE_GAUSSIAN)


@pytest.mark.parametrize(
    "call",
    [
        partial(gram_of, Dense(np.eye(1, 5000, dtype=np.int64))),
        partial(haar, gram_of(Prefix(5000)), 2, 20),
        partial(gaussian_optimum, gram_of(Prefix(5000)), 2),
    ],
    ids=["Gram matrix", "haar", "gaussian_optimum"],
)
def test_large_dense_matrices_are_refused(call):
    with pytest.raises(InputError, match="matrix of 5000 x 5000; at most 4096"):
        call()


@pytest.mark.parametrize("name", ["gaussian_optimum", "tilted", "eigen_design"])
def test_search_without_strategy_ends_on_time(name):
    workload = queries(SMALL, b="prefix", c="prefix") + queries(SMALL, b="identity")
    with (
        time_limit(Deadline(0.0, lambda: 1.0)),
        pytest.raises(NotApplicable, match="before it found a strategy of this kind"),
    ):
        proposal(name, workload, RHO)


@pytest.mark.parametrize(
    ("name", "workload", "reason"),
    [
        ("marginals", MIXED, "no table has both counts and sums of one measure"),
        (
            "workload_even",
            mean_queries(SMALL, "pay", by=["a"]),
            "a strategy from a paper is used exactly as published",
        ),
    ],
)
def test_separate_measurement_states_its_reason(name, workload, reason):
    with pytest.raises(NotApplicable, match=reason):
        counts_and_sums(
            PLANNERS[name], PlanningProblem(workload, Privacy(PURE), Noise.DISCRETE_LAPLACE)
        )
