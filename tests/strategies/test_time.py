"""The automatic choice of a strategy within a time limit."""

import math
from dataclasses import replace

import pytest

from leastnoise._domain import Coded, Domain, Integers
from leastnoise._error import bound_seconds
from leastnoise._families import eigen_design, gaussian_optimum, gram_of, invert_gram, p_identity
from leastnoise._mechanisms import (
    SECONDS,
    Search,
    _planning_time,
    choose_plan,
    tables_with_high_error,
    time_requests,
    try_strategies,
)
from leastnoise._plan import Plan
from leastnoise._planning import cached_choice
from leastnoise._spec import shared_budget_warnings, time_limit_warnings
from leastnoise._strategies import (
    PLANNERS,
    Deadline,
    Planner,
    PlanningProblem,
    attribute_costs,
    design_seconds,
    identity,
    time_limit,
)
from leastnoise._trusted.accounting import ZCDP, ApproxDP, Noise, Privacy, PureDP
from leastnoise._trusted.check import InputError
from leastnoise._trusted.linop import AllRanges, column_sums
from leastnoise._workload import marginals, queries
from strategies.proposals import prefix

LAPLACE = Noise.DISCRETE_LAPLACE
ROUNDED = Noise.ROUNDED_GAUSSIAN


def candidates_by_name(workload, privacy, **options):
    """Return the candidates of a search by the name of their strategy."""
    candidates = try_strategies(workload, privacy, **options)
    return {candidate.strategy: candidate for candidate in candidates}


class Ticking:
    """A clock that advances by one step at each reading."""

    def __init__(self, step):
        self.time = 0.0
        self.step = step

    def __call__(self):
        self.time += self.step
        return self.time


def granted(workload, privacy, seconds):
    """Return the seconds of every planner if no result excludes one."""
    seconds_left = seconds - bound_seconds(workload)
    shares = {}
    for request in time_requests(workload, privacy, seconds):
        share = request.granted(seconds_left)
        seconds_left -= share
        shares[request.planner.name, request.noise] = share
    return shares


def test_granted_seconds_fit_into_the_limit():
    for size in (64, 1024, 2048, 4096, 65536):
        for seconds in (SECONDS, 20.0, 60.0):
            for budget in (PureDP(1), ApproxDP(1, "1e-6")):
                shares = granted(prefix(size), Privacy(budget), seconds)
                optimum = shares.pop(("gaussian_optimum", ROUNDED), 0.0)
                assert sum(shares.values()) <= seconds + 1e-6
                assert optimum <= 4 * seconds


JOINT = Domain(age=Coded(100), income=Coded(1000))
SINGLE_AND_JOINT_QUERIES = (
    queries(JOINT, age="prefix")
    + queries(JOINT, income="prefix")
    + queries(JOINT, age="identity", income="identity")
)


@pytest.mark.parametrize(
    ("workload", "budget", "seconds", "tried", "left_out"),
    [
        (
            prefix(4096),
            PureDP(1),
            SECONDS,
            [("p_identity", LAPLACE), ("p_identity_blocks", LAPLACE)],
            [("haar", LAPLACE)],
        ),
        (prefix(1024), ApproxDP(1, "1e-6"), SECONDS, [("gaussian_optimum", ROUNDED)], []),
        # The usual noise comes first.
        (
            prefix(4096),
            ApproxDP(1, "1e-6"),
            SECONDS,
            [("gaussian_optimum", ROUNDED)],
            [("haar", LAPLACE)],
        ),
        (prefix(2**20), ZCDP(1), SECONDS, [("toeplitz_root", Noise.DISCRETE_GAUSSIAN)], []),
        # Its error is 1,358, where the others have 1,845.
        (SINGLE_AND_JOINT_QUERIES, PureDP(1), 20.0, [("union", LAPLACE)], []),
    ],
    ids=str,
)
def test_time_goes_to_likely_best_strategies(workload, budget, seconds, tried, left_out):
    granted_seconds = granted(workload, Privacy(budget), seconds)
    assert all(granted_seconds[key] > 1e-9 for key in tried)
    assert all(granted_seconds[key] < 1e-9 for key in left_out)


def test_estimates_decide_which_strategies_are_tried():
    workload = prefix(300)
    privacy = Privacy(PureDP(1))
    tried = candidates_by_name(workload, privacy, seconds=0.3, now=Ticking(1e-7))
    tried_slowly = candidates_by_name(workload, privacy, seconds=0.3, now=Ticking(1e-5))
    reasons = {name: candidate.reason for name, candidate in tried.items()}
    without_time = {
        name for name, reason in reasons.items() if "does not fit into the rest" in reason
    }

    assert without_time
    assert not any(tried[name].plan or tried[name].ended for name in without_time)
    assert tried["identity"].plan is not None
    assert not tried["identity"].useful_seconds
    assert {name: candidate.reason for name, candidate in tried_slowly.items()} == reasons


def test_slow_strategy_is_skipped_if_bound_proves_no_gain():
    workload = prefix(160)
    privacy = Privacy(ZCDP("1/1000"))
    tried = candidates_by_name(workload, privacy, seconds=1.0, try_all=False)
    tried_in_full = candidates_by_name(workload, privacy, seconds=1.0, try_all=True)
    assert tried["tilted"].left_out
    for name, candidate in tried.items():
        is_slow = PLANNERS[name].most_seconds(workload, 2) > 1.0 / 10
        # Cheap forms are tried in any case.
        assert is_slow or candidate.reason == tried_in_full[name].reason
        says_no_gain = "it can gain at most 0.2% of the squared error" in candidate.reason
        assert candidate.left_out == says_no_gain
        assert not tried_in_full[name].left_out

    plan, _ = choose_plan(workload, privacy, Search(seconds=1.0, every=False))
    plan_of_all, _ = choose_plan(workload, privacy, Search(seconds=1.0, every=True))
    assert plan.strategy == plan_of_all.strategy == "gaussian_optimum"
    error = plan.data_independent_error
    assert error == plan_of_all.data_independent_error
    assert error.total_squared_error <= (1 + 2e-3) * error.lower_bound

    # Where no bound is near, all strategies are tried.
    tried = candidates_by_name(prefix(64), Privacy(PureDP("1/1000")), seconds=1.0, try_all=False)
    assert not any(candidate.needless for candidate in tried.values())


def test_candidate_states_useful_extra_seconds():
    workload = prefix(24)
    candidate = candidates_by_name(workload, Privacy(PureDP(1)), seconds=2.0)["p_identity"]
    assert candidate.plan is not None
    assert candidate.useful_seconds == 0
    short = granted(prefix(8192), Privacy(PureDP(1)), 10.0)["p_identity", LAPLACE]
    planner = PLANNERS["p_identity"]
    assert planner.seconds(prefix(8192)) < short < planner.thorough_seconds(prefix(8192))


def test_estimates_use_the_product_of_attributes():
    domain = Domain(a=Integers(0, 1023), b=Integers(0, 1023), c=Integers(0, 4095))
    one_attribute = queries(domain, a="prefix")
    two_attributes = queries(domain, a="prefix", b="prefix")
    two_query_sets = two_attributes + queries(domain, a="identity", b="identity")
    cells = queries(domain, a="prefix", c="identity")
    for name in ("haar", "eigen_design", "p_identity", "gaussian_optimum", "tilted"):
        seconds = PLANNERS[name].seconds
        # Each of the two attributes has one query set to search for.
        assert seconds(two_attributes) > 1.8 * seconds(one_attribute)
        # A fit to the shares of two query sets is repeated at times; tilts are searched once.
        factor = 1.0 if name == "tilted" else 1.05
        assert seconds(two_query_sets) > factor * seconds(two_attributes)
        # Cells need no search.
        assert seconds(cells) == pytest.approx(seconds(one_attribute), abs=0.01)


def test_groups_of_a_level_are_as_quick_as_cells():
    domain = Domain(a=Integers(0, 31, levels={"g": {"width": 8}}))
    level_cost = attribute_costs(queries(domain, a={"level": "g"}))["a"]
    ranges_cost = attribute_costs(queries(domain, a={"ranges": [[0, 7], [8, 15]]}))["a"]
    assert level_cost.cells == 4
    assert level_cost.is_structured is True
    assert ranges_cost.cells == 3
    assert ranges_cost.is_structured is False


def pair_marginals(count):
    """Return all tables of two of `count` attributes with four cells each."""
    return marginals(Domain({f"a{place}": Coded(4) for place in range(count)}), ways=2)


def test_covering_estimate_grows_with_attributes():
    seconds = [
        PLANNERS["covering"].least_seconds(pair_marginals(count), 1) for count in (3, 6, 9, 40)
    ]
    assert seconds == sorted(seconds)
    assert PLANNERS["covering"].least_seconds(pair_marginals(8), 2) == 0  # made for other noise
    assert design_seconds(pair_marginals(8)) > 4 * PLANNERS["marginals"].seconds(pair_marginals(8))


def test_laplace_table_choice_states_its_time():
    domain = Domain({f"a{place}": Integers(0, 7) for place in range(8)})
    workload = sum(
        (
            queries(domain, {f"a{place}": "prefix", f"a{place + 1}": "identity"})
            for place in range(1, 7)
        ),
        queries(domain, a0="prefix"),
    )
    for name in (
        "hierarchy",
        "haar",
        "level_tree",
        "eigen_design",
        "p_identity",
        "p_identity_blocks",
    ):
        planner = PLANNERS[name]
        # The weights of a tree take less time there.
        least_seconds = design_seconds(workload) + 0.4 * planner.seconds(workload)
        assert planner.least_seconds(workload, 1) >= least_seconds
        assert planner.least_seconds(workload, 2) in {0.0, planner.seconds(workload)}


def test_joint_inverse_is_in_the_estimate():
    domain = Domain(a=Integers(0, 49), b=Integers(0, 49))
    joint_queries = queries(domain, a="prefix", b="identity")
    one_query_set_each = joint_queries + queries(domain, a="prefix")
    two_query_sets_of_a = joint_queries + queries(domain, a="identity")
    seconds = PLANNERS["workload"].seconds
    assert seconds(two_query_sets_of_a) > 5 + seconds(one_query_set_each)


@pytest.mark.parametrize("seconds", [0, -1, math.nan, math.inf, "20", True])
def test_seconds_are_a_number_above_0(seconds):
    with pytest.raises(InputError, match=r"seconds must be a number above 0, such as 5; got"):
        Search(seconds=seconds)


def test_more_time_finds_no_worse_strategies():
    workload = prefix(24)
    planner = PLANNERS["p_identity"]

    def plan_within(seconds):
        return planner.strategy(
            PlanningProblem(workload, Privacy(PureDP(1)), Noise.DISCRETE_LAPLACE, seconds)
        )

    unlimited = plan_within(math.inf)
    assert plan_within(planner.most_seconds(workload, 1)).blocks == unlimited.blocks
    assert plan_within(0.0).blocks != unlimited.blocks


def test_ended_search_is_reported_with_its_best():
    # No other test plans this size, whose searches would be cached.
    workload = prefix(45)
    privacy = Privacy(PureDP(1))
    ended = candidates_by_name(workload, privacy, now=Ticking(3.0))["p_identity"]
    assert ended.ended
    assert ended.plan is not None

    late = candidates_by_name(workload, privacy, seconds=2.0, now=Ticking(10.0))["p_identity"]
    assert "does not fit into the rest of the 2 CPU seconds" in late.reason
    assert late.ended
    assert late.plan is None

    completed = candidates_by_name(workload, privacy, now=Ticking(0.0))
    assert not any(candidate.ended for candidate in completed.values())
    assert completed["p_identity"].total < 1.001 * ended.total


def test_choice_with_an_ended_search_is_not_cached(monkeypatch, tmp_path):
    monkeypatch.setenv("LEASTNOISE_CACHE", "on")
    monkeypatch.setenv("LEASTNOISE_CACHE_DIR", str(tmp_path))
    # No other test plans this size, whose searches would be cached.
    workload = prefix(46)
    privacy = Privacy(PureDP(1))
    choice = cached_choice(workload, privacy, Search(now=Ticking(3.0)))
    # A search with more time may find a better plan.
    assert not any(tmp_path.iterdir())
    ended_early = choice.details.ended_early
    assert "p_identity" in ended_early
    (warning,) = time_limit_warnings(choice)
    names = ", ".join(ended_early)
    assert warning.startswith(f"Planning time ran out before the search of {names} ended")
    assert Plan.from_json(choice.to_json()).details.ended_early == ended_early

    completed = cached_choice(workload, privacy, Search(now=Ticking(0.0)))
    assert not [*time_limit_warnings(completed)]
    assert any(tmp_path.iterdir())


MIXED = prefix(29) + queries(prefix(29).domain, a="identity")


def test_plan_is_the_same_on_a_machine_under_load(monkeypatch):
    monkeypatch.setattr("leastnoise._families._gram._MOST_KEPT", 0)  # each plan searches anew
    privacy = Privacy(ApproxDP(1, "1e-6"))

    def choose(clock):
        search = Search(now=clock)
        plan, tried = choose_plan(MIXED, privacy, search)
        rows = [
            (candidate.strategy, candidate.noise, candidate.total, candidate.reason)
            for candidate in tried
        ]
        return plan, rows, tables_with_high_error(plan, search)

    idle = Ticking(1e-6)
    expected = choose(idle)
    readings = idle.time / idle.step
    busy = Ticking(4 * SECONDS / readings)  # four times as long as allowed
    assert choose(busy) == expected
    assert busy.time > 3 * SECONDS
    assert not expected[0].details.ended_early


def test_search_that_hangs_is_ended():
    clock = Ticking(SECONDS / 4)
    plan, _ = choose_plan(MIXED, Privacy(ApproxDP(1, "1e-6")), Search(now=clock))
    assert plan.details.ended_early
    assert clock.time <= 25 * SECONDS


def test_long_search_leaves_seconds_to_short_ones(monkeypatch):
    clock = Ticking(0.0)

    def planner(name, seconds, likely, thorough_seconds=None):
        def search(problem):
            clock.time += problem.seconds
            return replace(identity(problem), name=name)

        return Planner(
            name=name,
            propose=search,
            seconds=lambda _: seconds,
            relative_likelihood=lambda _: likely,
            measures="",
            made_for="",
            thorough_seconds=thorough_seconds and (lambda _: thorough_seconds),
        )

    short = [planner(f"short {number}", 0.6, 1 / 2) for number in range(4)]
    long = planner("long", 1.0, 4, thorough_seconds=100.0)
    endless = planner("endless", 6.0, 4)
    planners = {entry.name: entry for entry in (long, endless, *short)}
    monkeypatch.setattr(_planning_time, "PLANNERS", planners)
    tried = candidates_by_name(prefix(48), Privacy(PureDP(1)), seconds=5.0, now=clock)
    assert [name for name, candidate in tried.items() if candidate.plan is None] == ["endless"]
    assert tried["long"].useful_seconds == 100.0
    assert tried["endless"].useful_seconds == 6.0
    assert clock.time <= 5.0 + 0.01


# Two tables share the budget: the noise of each grows by this factor.
NOISE_GROWTH = {"pure": (PureDP(1), 2), "concentrated": (ZCDP("1/2"), math.sqrt(2))}


@pytest.mark.slow
@pytest.mark.parametrize(("budget", "growth"), NOISE_GROWTH.values(), ids=NOISE_GROWTH)
@pytest.mark.parametrize(
    ("other_queries", "is_crowded"),
    [({"b": "prefix"}, True), ({"c": "identity"}, False)],
    ids=["large table", "small table"],
)
def test_a_table_that_others_crowd_out_is_named(
    budget, growth, other_queries, is_crowded, monkeypatch, tmp_path
):
    monkeypatch.setenv("LEASTNOISE_CACHE", "on")
    monkeypatch.setenv("LEASTNOISE_CACHE_DIR", str(tmp_path))
    domain = Domain(a=Integers(0, 1), b=Integers(0, 99), c=Integers(0, 1))
    privacy = Privacy(budget)
    table = queries(domain, a="identity")
    plan_of_table, _ = choose_plan(table, privacy)
    workload = table + queries(domain, other_queries)
    choice = cached_choice(workload, privacy, Search(seconds=5.0, now=Ticking(0.0)))

    rmse = choice.expected_error().tables[0].rmse
    ratio = rmse / plan_of_table.expected_error().tables[0].rmse / growth
    assert (ratio > 2) is is_crowded
    warnings = shared_budget_warnings(choice)
    warned = ["share of the budget: a (" in warning for warning in warnings]
    if is_crowded:
        assert dict(choice.details.high_errors) == pytest.approx({"a": ratio}, rel=0.05)
        assert warned == [True]
    else:
        assert not choice.details.high_errors
        assert warned == []
    from_cache = cached_choice(workload, privacy, Search(seconds=5.0, now=Ticking(0.0)))
    assert from_cache.details == choice.details


@pytest.mark.parametrize(
    "fit", [p_identity, gaussian_optimum, eigen_design], ids=lambda fit: fit.__name__
)
def test_search_out_of_time_ends_with_its_best(fit):
    gram = gram_of(AllRanges(40))
    norm = 2 if fit is gaussian_optimum else 1
    with time_limit(Deadline(0.0, lambda: 1.0)) as clock:
        ended = fit(gram, norm, 20).factor("a")
    assert clock.ended
    completed = fit(gram, norm, 20).factor("a")
    # The weights of the eigen-design are best for another bound.
    assert error_of(completed, norm) <= error_of(ended, norm) * 1.05 < math.inf


def error_of(factor, norm):
    """Return the total variance of all ranges, with noise that protects the factor's rows."""
    return column_norm(factor, norm) ** 2 * invert_gram(factor).total_variance(AllRanges(40))


def column_norm(factor, norm):
    """Return the largest norm of a column of the weighted operator."""
    return float(column_sums(factor.operator, factor.weights**norm, norm).max()) ** (1 / norm)
