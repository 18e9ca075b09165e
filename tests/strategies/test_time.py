"""The automatic choice of a strategy within a time limit."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from leastnoise._domain import Coded, Domain, Integers
from leastnoise._error import bound_seconds
from leastnoise._families import (
    FitFamily,
    eigen_design,
    gaussian_optimum,
    gram_of,
    invert_gram,
    p_identity,
)
from leastnoise._mechanisms import (
    SECONDS,
    Candidate,
    Search,
    _choice,
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
    Strategy,
    attribute_costs,
    design_seconds,
    identity,
    time_limit,
)
from leastnoise._trusted.accounting import ZCDP, ApproxDP, Budget, Noise, Privacy, PureDP
from leastnoise._trusted.check import InputError
from leastnoise._trusted.linop import AllRanges, column_sums
from leastnoise._trusted.measurements import Factor
from leastnoise._workload import Workload, marginals, queries
from strategies.proposals import prefix


def by_name(workload: Workload, privacy: Privacy, **given: Any) -> dict[str, Candidate]:
    return {
        candidate.strategy: candidate for candidate in try_strategies(workload, privacy, **given)
    }


class Ticking:
    """A clock that goes on by a step whenever somebody looks at it."""

    def __init__(self, step: float) -> None:
        self.time, self.step = 0.0, step

    def __call__(self) -> float:
        self.time += self.step
        return self.time


def granted(workload: Workload, privacy: Privacy, seconds: float) -> dict[tuple[str, Noise], float]:
    """The seconds of every planner, if results exclude none."""
    left = seconds - bound_seconds(workload)
    shares = {}
    for request in time_requests(workload, privacy, seconds):
        share = request.granted(left)
        left -= share
        shares[request.planner.name, request.noise] = share
    return shares


def test_granted_seconds_fit_into_the_limit() -> None:
    for size in (64, 1024, 2048, 4096, 65536):
        for seconds in (SECONDS, 20.0, 60.0):
            for budget in (PureDP(1), ApproxDP(1, "1e-6")):
                shares = granted(prefix(size), Privacy(budget), seconds)
                optimum = shares.pop(("gaussian_optimum", ROUNDED), 0.0)
                assert sum(shares.values()) <= seconds + 1e-6
                assert optimum <= 4 * seconds


JOINT = Domain(age=Coded(100), income=Coded(1000))
APART_AND_TOGETHER = (
    queries(JOINT, age="prefix")
    + queries(JOINT, income="prefix")
    + queries(JOINT, age="identity", income="identity")
)
LAPLACE, ROUNDED = Noise.DISCRETE_LAPLACE, Noise.ROUNDED_GAUSSIAN


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
        (
            prefix(1024),
            ApproxDP(1, "1e-6"),
            SECONDS,
            [("gaussian_optimum", ROUNDED)],
            [],
        ),
        # The usual noise comes first.
        (
            prefix(4096),
            ApproxDP(1, "1e-6"),
            SECONDS,
            [("gaussian_optimum", ROUNDED)],
            [("haar", LAPLACE)],
        ),
        (
            prefix(2**20),
            ZCDP(1),
            SECONDS,
            [("toeplitz_root", Noise.DISCRETE_GAUSSIAN)],
            [],
        ),
        # Its error is 1,358, where the others have 1,845.
        (
            APART_AND_TOGETHER,
            PureDP(1),
            20.0,
            [("union", LAPLACE)],
            [],
        ),
    ],
    ids=str,
)
def test_time_goes_to_likely_best_strategies(workload, budget, seconds, tried, left_out) -> None:  # type: ignore[no-untyped-def]
    granted_seconds = granted(workload, Privacy(budget), seconds)
    assert all(granted_seconds[key] > 1e-9 for key in tried)
    assert all(granted_seconds[key] < 1e-9 for key in left_out)


def test_estimates_decide_which_strategies_are_tried() -> None:
    workload, privacy = prefix(300), Privacy(PureDP(1))
    tried, slower = (
        by_name(workload, privacy, seconds=0.3, now=Ticking(step)) for step in (1e-7, 1e-5)
    )
    left = {
        name
        for name, candidate in tried.items()
        if "does not fit into the rest" in candidate.reason
    }
    assert left
    assert not any(tried[name].plan or tried[name].ended for name in left)
    assert tried["identity"].plan is not None
    assert not tried["identity"].useful_seconds
    assert {name: candidate.reason for name, candidate in slower.items()} == {
        name: candidate.reason for name, candidate in tried.items()
    }


def test_slow_strategy_is_skipped_if_bound_proves_no_gain() -> None:
    workload, privacy = prefix(160), Privacy(ZCDP("1/1000"))
    tried = {every: by_name(workload, privacy, seconds=1.0, every=every) for every in (False, True)}
    left = {name for name, candidate in tried[False].items() if candidate.left_out}
    assert "tilted" in left
    for name, candidate in tried[False].items():
        slow = PLANNERS[name].most_seconds(workload, 2) > 1.0 / 10
        # Cheap forms are tried in any case.
        assert slow or candidate.reason == tried[True][name].reason
        assert (name in left) == (
            "can gain no more than 0.2% of the squared error" in candidate.reason
        )
        assert not tried[True][name].left_out
    plans = [
        choose_plan(workload, privacy, Search(seconds=1.0, every=every))[0]
        for every in (False, True)
    ]
    assert [plan.strategy for plan in plans] == ["gaussian_optimum"] * 2
    assert plans[0].data_independent_error == plans[1].data_independent_error
    assert (
        plans[0].data_independent_error.total_squared_error
        <= (1 + 2e-3) * plans[0].data_independent_error.lower_bound
    )
    # Where no bound is near, all is tried.
    assert not any(
        candidate.needless
        for candidate in try_strategies(
            prefix(64), Privacy(PureDP("1/1000")), seconds=1.0, every=False
        )
    )


def test_candidate_states_useful_extra_seconds() -> None:
    workload = prefix(24)
    candidate = by_name(workload, Privacy(PureDP(1)), seconds=2.0)["p_identity"]
    assert candidate.plan is not None
    assert candidate.useful_seconds == 0
    short = granted(prefix(8192), Privacy(PureDP(1)), 10.0)["p_identity", LAPLACE]
    planner = PLANNERS["p_identity"]
    assert planner.seconds(prefix(8192)) < short < planner.thorough_seconds(prefix(8192))  # type: ignore[misc]


def test_estimates_use_the_product_of_attributes() -> None:
    domain = Domain(a=Integers(0, 1023), b=Integers(0, 1023), c=Integers(0, 4095))
    one = queries(domain, a="prefix")
    two = queries(domain, a="prefix", b="prefix")
    mixed = two + queries(domain, a="identity", b="identity")
    cells = queries(domain, a="prefix", c="identity")
    for name in ("haar", "eigen_design", "p_identity", "gaussian_optimum", "tilted"):
        seconds = PLANNERS[name].seconds
        assert seconds(two) > 1.8 * seconds(one)  # two attributes, each with one query set
        # and now and then fitted again to shares of two sets, where tilts are searched once
        assert seconds(mixed) > (1.0 if name == "tilted" else 1.05) * seconds(two)
        # Cells need no search.
        assert seconds(cells) == pytest.approx(seconds(one), abs=0.01)


def test_groups_of_a_level_are_as_quick_as_cells() -> None:
    domain = Domain(a=Integers(0, 31, levels={"g": {"width": 8}}))
    costs = [
        attribute_costs(queries(domain, a=query_set))["a"]
        for query_set in ({"level": "g"}, {"ranges": [[0, 7], [8, 15]]})
    ]
    assert [(line.cells, line.is_structured) for line in costs] == [(4, True), (3, False)]


def many(count: int, ways: int = 2) -> Workload:
    return marginals(Domain({f"a{place}": Coded(4) for place in range(count)}), ways=ways)


def test_covering_estimate_grows_with_attributes() -> None:
    seconds = [PLANNERS["covering"].least_seconds(many(count), 1) for count in (3, 6, 9, 40)]
    assert seconds == sorted(seconds)
    assert PLANNERS["covering"].least_seconds(many(8), 2) == 0  # made for other noise
    assert design_seconds(many(8)) > 4 * PLANNERS["marginals"].seconds(many(8))


def test_laplace_table_choice_states_its_time() -> None:
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
        assert planner.least_seconds(workload, 1) >= design_seconds(
            workload
        ) + 0.4 * planner.seconds(workload)
        assert planner.least_seconds(workload, 2) in {0.0, planner.seconds(workload)}


def test_joint_inverse_is_in_the_estimate() -> None:
    domain = Domain(a=Integers(0, 49), b=Integers(0, 49))
    alike, apart = (
        queries(domain, a="prefix", b="identity") + queries(domain, a=how)
        for how in ("prefix", "identity")
    )
    assert PLANNERS["workload"].seconds(apart) > 5 + PLANNERS["workload"].seconds(alike)


@pytest.mark.parametrize("seconds", [0, -1, math.nan, math.inf, "20", True])
def test_seconds_are_a_number_above_0(seconds: object) -> None:
    with pytest.raises(InputError, match=r"seconds must be a number above 0, such as 5; got"):
        Search(seconds=seconds)  # type: ignore[arg-type]


def test_more_time_finds_no_worse_strategies() -> None:
    workload, privacy, planner = prefix(24), Privacy(PureDP(1)), PLANNERS["p_identity"]
    limits = 0.0, planner.most_seconds(workload, 1), math.inf
    little, much, by_name = (
        planner.strategy(PlanningProblem(workload, privacy, Noise.DISCRETE_LAPLACE, time))
        for time in limits
    )
    assert much.blocks == by_name.blocks
    assert little.blocks != much.blocks


def test_ended_search_is_reported_with_its_best(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # No other test plans these sizes, whose searches would be cached.
    workload, other, privacy = prefix(45), prefix(46), Privacy(PureDP(1))
    tried = by_name(workload, privacy, now=Ticking(3.0))
    assert tried["p_identity"].ended
    assert tried["p_identity"].plan is not None
    (late,) = [
        candidate
        for candidate in try_strategies(workload, privacy, seconds=2.0, now=Ticking(10.0))
        if candidate.strategy == "p_identity"
    ]
    assert "does not fit into the rest of the 2 CPU seconds" in late.reason
    assert late.ended
    assert late.plan is None
    whole = by_name(workload, privacy, now=Ticking(0.0))
    assert not any(candidate.ended for candidate in whole.values())
    assert whole["p_identity"].total < 1.001 * tried["p_identity"].total
    monkeypatch.setenv("LEASTNOISE_CACHE", "on")
    monkeypatch.setenv("LEASTNOISE_CACHE_DIR", str(tmp_path))
    choice = cached_choice(other, privacy, Search(now=Ticking(3.0)))
    assert not any(tmp_path.iterdir())  # in more time more may be found
    assert "p_identity" in choice.details.ended_early
    (warning,) = time_limit_warnings(choice)
    assert warning.startswith(
        f"Planning time ran out before the search of {', '.join(choice.details.ended_early)} ended"
    )
    assert Plan.from_json(choice.to_json()).details.ended_early == choice.details.ended_early
    assert not [*time_limit_warnings(cached_choice(other, privacy, Search(now=Ticking(0.0))))]
    assert any(tmp_path.iterdir())


MIXED = prefix(29) + queries(prefix(29).domain, a="identity")


def test_plan_is_the_same_on_a_machine_under_load(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("leastnoise._families._gram._MOST_KEPT", 0)  # each plan searches anew
    privacy = Privacy(ApproxDP(1, "1e-6"))

    def choose(clock: Ticking) -> tuple[Plan, list[tuple[object, ...]], dict[str, float]]:
        search = Search(now=clock)
        plan, tried = choose_plan(MIXED, privacy, search)
        rows = [
            (candidate.strategy, candidate.noise, candidate.total, candidate.reason)
            for candidate in tried
        ]
        return plan, rows, tables_with_high_error(plan, search)

    idle = Ticking(1e-6)
    expected = choose(idle)
    looks = idle.time / idle.step
    busy = Ticking(4 * SECONDS / looks)  # four times as long as allowed
    assert choose(busy) == expected
    assert busy.time > 3 * SECONDS
    assert not expected[0].details.ended_early


def test_search_that_hangs_is_ended() -> None:
    clock = Ticking(SECONDS / 4)
    plan, _ = choose_plan(MIXED, Privacy(ApproxDP(1, "1e-6")), Search(now=clock))
    assert plan.details.ended_early
    assert clock.time <= 25 * SECONDS


def test_long_search_leaves_seconds_to_short_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Ticking(0.0)

    def planner(
        name: str, seconds: float, likely: float, thorough_seconds: float | None = None
    ) -> Planner:
        def search(problem: PlanningProblem) -> Strategy:
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
    monkeypatch.setattr(_choice, "PLANNERS", planners)
    tried = by_name(prefix(48), Privacy(PureDP(1)), seconds=5.0, now=clock)
    assert [name for name, candidate in tried.items() if candidate.plan is None] == ["endless"]
    assert tried["long"].useful_seconds == 100.0
    assert tried["endless"].useful_seconds == 6.0
    assert clock.time <= 5.0 + 0.01


@pytest.mark.parametrize(("budget", "parts"), [(PureDP(1), 2), (ZCDP("1/2"), math.sqrt(2))])
def test_a_table_that_others_crowd_out_is_named(
    budget: Budget, parts: float, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("LEASTNOISE_CACHE", "on")
    monkeypatch.setenv("LEASTNOISE_CACHE_DIR", str(tmp_path))
    domain, privacy = Domain(a=Integers(0, 1), b=Integers(0, 99), c=Integers(0, 1)), Privacy(budget)
    alone = choose_plan(queries(domain, a="identity"), privacy)[0].expected_error().tables[0].rmse
    for beside, is_crowded in (({"b": "prefix"}, True), ({"c": "identity"}, False)):
        workload = queries(domain, a="identity") + queries(domain, beside)
        choice = cached_choice(workload, privacy, Search(seconds=5.0, now=Ticking(0.0)))
        ratio = choice.expected_error().tables[0].rmse / alone / parts
        assert (ratio > 2) is is_crowded
        assert dict(choice.details.high_errors) == (
            pytest.approx({"a": ratio}, rel=0.05) if is_crowded else {}
        )
        assert [
            "share of the budget: a (" in warning for warning in shared_budget_warnings(choice)
        ] == [True] * is_crowded
        # The cache returns the same details.
        assert (
            cached_choice(workload, privacy, Search(seconds=5.0, now=Ticking(0.0))).details
            == choice.details
        )


@pytest.mark.parametrize(
    "fit", [p_identity, gaussian_optimum, eigen_design], ids=lambda fit: fit.__name__
)
def test_search_out_of_time_ends_with_its_best(fit: FitFamily) -> None:
    gram, norm = gram_of(AllRanges(40)), 2 if fit is gaussian_optimum else 1
    with time_limit(Deadline(0.0, lambda: 1.0)) as clock:
        ended = fit(gram, norm, 20).factor("a")
    assert clock.ended
    whole = fit(gram, norm, 20).factor("a")
    errors = [
        norm_of(factor, norm) ** 2 * invert_gram(factor).total_variance(AllRanges(40))
        for factor in (ended, whole)
    ]
    # The weights of the eigen-design are best for another bound.
    assert errors[1] <= errors[0] * 1.05 < math.inf


def norm_of(factor: Factor, norm: int) -> float:
    return float(column_sums(factor.operator, factor.weights**norm, norm).max()) ** (1 / norm)
