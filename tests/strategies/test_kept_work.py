"""The caches of planners, fits and errors: every field of the input is part of the key."""

import random

import pytest

import leastnoise as ln
from caches import cached_functions
from leastnoise._mechanisms import MECHANISMS
from leastnoise._strategies import PLANNERS

LINE = ln.Domain(a=ln.Integers(0, 7))
LONGER = ln.Domain(a=ln.Integers(0, 8))
TABLES = ln.Domain(
    a=ln.Integers(0, 3), b=["x", "y", "z"], c=["F", "M"], measures={"m": ln.Measure("pay", 0, 9)}
)
OTHERS = ln.Domain(
    a=ln.Integers(0, 2), b=["x", "y", "z"], c=["F", "M"], measures={"m": ln.Measure("pay", 0, 8)}
)
WORKLOADS = [
    *(
        ln.queries(domain, a=query_set)
        for domain in (LINE, LONGER)
        for query_set in ("identity", "prefix", "all_ranges")
    ),
    ln.queries(LINE, a="prefix") + ln.queries(LINE),
    *(ln.marginals(domain, ways=ways) for domain in (TABLES, OTHERS) for ways in (1, 2)),
    ln.marginals(TABLES, upto=2),
    ln.queries(TABLES, a="prefix", b="identity"),
    ln.queries(TABLES, a="all_ranges", b="identity"),
    *(ln.queries(domain, c="identity", sum="m") for domain in (TABLES, OTHERS)),
]
PRIVACIES = [
    ln.Privacy(ln.PureDP(1)),
    ln.Privacy(ln.PureDP(2)),
    ln.Privacy(ln.PureDP(1), "replace"),
    ln.Privacy(ln.PureDP(1), unit_column="id", max_rows=3),
    ln.Privacy(ln.PureDP(1), unit_column="id", max_rows=3, max_per_cell=ln.PerCellBound(1, "a")),
    ln.Privacy(ln.ZCDP(1)),
    ln.Privacy(ln.ZCDP(1), "replace"),
    ln.Privacy(ln.ApproxDP(1, "1e-6")),
    ln.Privacy(ln.ApproxDP(1, "1e-7")),
]
NAMES = dict.fromkeys([*PLANNERS, *(name for mechanism in MECHANISMS for name in mechanism.names)])


def plan_text(name, workload, privacy):
    """Return the plan as text, or None if the strategy does not fit."""
    try:
        return ln.plan(workload, privacy, strategy=name).to_json()
    except ln.InputError:
        return None


@pytest.mark.parametrize("name", NAMES)
def test_plan_does_not_depend_on_the_plans_before_it(name):
    rng = random.Random(name)
    base = rng.choice(WORKLOADS), rng.choice(PRIVACIES)
    cases = [(workload, base[1]) for workload in rng.sample(WORKLOADS, 2)] + [
        (base[0], privacy) for privacy in rng.sample(PRIVACIES, 2)
    ]
    fresh = []
    for case in cases:
        for function in cached_functions():
            function.cache_clear()
        fresh.append(plan_text(name, *case))
    order = rng.sample(range(len(cases)), len(cases))
    warm = {place: plan_text(name, *cases[place]) for place in order}
    assert [place for place in order if warm[place] != fresh[place]] == []
