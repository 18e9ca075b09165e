"""Planners as a whole: what they propose can be fitted, promises what dense algebra says, and is never worse than what it contains."""

import itertools
import json
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from leastnoise._accounting import ZCDP, Budget, Noise, Privacy, PureDP
from leastnoise._accuracy import promised
from leastnoise._check import InputError
from leastnoise._domain import Coded, Domain, Integers, Measure
from leastnoise._families._dense import gaussian_optimum
from leastnoise._families._gram import gram_of
from leastnoise._families._tree import haar
from leastnoise._fitting import fit
from leastnoise._linop import AllRanges, Dense, Identity, Prefix, Ranges, Total, dense
from leastnoise._mechanisms import noises
from leastnoise._plan import Plan, Promise
from leastnoise._planner import PLANNERS
from leastnoise._planning import plan
from leastnoise._workload import QuerySet, Workload, identity, marginals, matrix, mean_queries, queries, ranges
from planner.proposals import proposal, total_squared_error
from simulated import releases

DOMAIN = Domain(a=Coded(3), b=Integers(0, 15), c=Integers(0, 7), measures={"pay": Measure("pay", 0, 9)})
NOISES = [(PureDP("1/100"), Noise.DISCRETE_LAPLACE, 1), (ZCDP("1/20000"), Noise.DISCRETE_GAUSSIAN, 2)]


def planned(name: str, workload: Workload, budget: PureDP | ZCDP) -> tuple[Plan, Promise]:
    strategy = proposal(name, workload, budget)
    plan = promised(workload, fit(workload.domain, Privacy(budget), noises(Privacy(budget))[0], strategy.blocks), strategy.name)
    return plan, plan.expected_error()


@pytest.mark.parametrize(("budget", "mechanism", "power"), NOISES, ids=["pure", "gaussian"])
def test_optimised_families_are_never_worse_than_what_they_contain(budget: PureDP | ZCDP, mechanism: str, power: int) -> None:
    names = ("identity", "hierarchy", "level_tree", "p_identity" if power == 1 else "gaussian_optimum")
    for asked in ("prefix", "all_ranges", ranges([(i, i + 3) for i in range(13)])):
        cells, hierarchy, by_level, best = (planned(name, queries(DOMAIN, b=asked), budget)[1].total_squared_error for name in names)
        assert by_level <= min(cells, hierarchy) * 1.0001
        assert best <= cells * 1.0001


def test_queries_that_do_not_tell_all_cells_apart_have_an_optimum_too() -> None:
    workload = queries(DOMAIN, b=ranges([(0, 7), (4, 11), (8, 15)]))
    promise = planned("gaussian_optimum", workload, ZCDP("1/20000"))[1]
    assert promise.total_squared_error <= promise.lower_bound * 1.1


def test_one_attribute_of_few_cells_and_the_total_can_be_searched() -> None:
    domain = Domain(a=Integers(0, 63))
    strategy = proposal("covering", marginals(domain, upto=1), PureDP(1))
    assert {block.attributes for block, _ in strategy.blocks} == {(), ("a",)}


@pytest.mark.parametrize(
    ("operator", "name"),
    [
        (Identity(9), "alone"),
        (Total(9), "pairs"),
        (Prefix(9), "pairs"),
        (AllRanges(9), "pairs"),
        (Ranges(9, [0, 2], [3, 4]), "given"),
        (Dense([[1, -2, 0], [0, 1, 1]]), "array"),
    ],
)
def test_gram_matrices_keep_their_structure(operator: object, name: str) -> None:
    gram = gram_of(operator)  # type: ignore[arg-type]
    rows = dense(operator).astype(float)  # type: ignore[arg-type]
    known = {"pairs": bool(gram.pairs), "alone": gram.alone > 0, "given": gram.given is not None, "array": gram.array is not None}
    assert [form for form, has in known.items() if has] == [name]
    np.testing.assert_allclose(gram.dense(), rows.T @ rows)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: gram_of(Dense(np.eye(1, 5000, dtype=np.int64))), "matrix of 5000 x 5000; at most 4096"),
        (lambda: haar(gram_of(Prefix(5000)), 2, 20), "matrix of 5000 x 5000; at most 4096"),
        (lambda: gaussian_optimum(gram_of(Prefix(5000)), 2), "matrix of 5000 x 5000; at most 4096"),
        (
            lambda: proposal("hierarchy", marginals(DOMAIN, ways=1), PureDP(1)),
            "only cells are asked for",
        ),
        (
            lambda: proposal("workload", queries(Domain(a=Integers(0, 4999)), a="all_ranges"), PureDP(1)),
            "has 12502500 queries; measured one by one at most 4194304 are allowed",
        ),
        (
            lambda: proposal("identity", marginals(Domain({f"a{i}": Coded(10) for i in range(9)}), ways=1), PureDP(1)),
            "has 1000000000 cells; at most 268435456 are allowed",
        ),
    ],
)
def test_what_cannot_be_planned_says_why(make: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make()  # type: ignore[operator]


def test_many_tables_under_laplace_noise_have_scales_that_can_be_drawn() -> None:
    """Weights that the optimiser leaves at next to nothing are dropped."""
    domain = Domain({f"a{place:02d}": Coded(10) for place in range(12)})
    workload = marginals(domain, upto=2)
    plan, promise = planned("marginals", workload, PureDP(1))
    assert len(plan.measured().blocks) == 66
    assert promise.total_squared_error > promise.lower_bound


@pytest.mark.parametrize("shuffled", [False, True], ids=["line", "permuted"])
def test_few_ranges_are_planned_on_the_cells_that_they_tell_apart(shuffled: bool) -> None:
    rng = np.random.default_rng(0)
    ends = np.sort(rng.integers(0, 256, (30, 2)), axis=1)
    order = rng.permutation(256) if shuffled else np.arange(256)
    rows = np.array([(np.arange(256) >= low) & (np.arange(256) <= high) for low, high in ends]).astype(int)[:, order]
    line = Domain(x=Integers(0, 255))
    workload = queries(line, x=matrix(rows.tolist()))
    plan, promise = planned("p_identity", workload, NOISES[0][0])
    assert plan.measured().blocks[0].factors[0].operator.rows < 120  # fewer than there are cells
    assert promise.tables[0].rmse / (np.sqrt(2) * 100) < 3.58  # 4.23 with every cell measured
    # The optimum for Gaussian noise, of rank 30: measured with nothing beside it, it is as good as its bound says.
    budget, mechanism, _ = NOISES[1]
    found = proposal("gaussian_optimum", workload, budget)
    made = fit(line, Privacy(budget), mechanism, found.blocks)
    promise = promised(workload, made, details=found.details).expected_error()
    assert 1 - 1e-6 <= promise.total_squared_error / promise.lower_bound < 1.0015
    matrix_rows = dense(made.blocks[0].factors[0].operator) * float(1 / made.blocks[0].scale)
    expected = np.trace(rows @ np.linalg.pinv(matrix_rows.T.astype(float) @ matrix_rows, rcond=1e-9) @ rows.T)
    assert promise.total_squared_error == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("budget", [PureDP(1), ZCDP("1/2")], ids=["pure", "rho"])
def test_given_ranges_on_a_long_attribute_are_planned_as_on_the_runs_that_their_ends_make(budget: Budget) -> None:
    ends = np.sort(np.random.default_rng(3).integers(0, 2**16, (12, 2)), axis=1)
    edges = np.unique([0, *ends[:, 0], *(ends[:, 1] + 1), 2**16])
    runs = np.searchsorted(edges, ends + np.array([0, 1])) - np.array([0, 1])
    long = queries(Domain(x=Integers(0, 2**16 - 1)), x={"ranges": ends.tolist()})
    short = queries(Domain(x=Integers(0, len(edges) - 2)), x={"ranges": runs.tolist()})
    for name in ("level_tree", "hierarchy", "p_identity", "p_identity_blocks", "toeplitz_root", "gaussian_optimum", "haar"):
        if noises(Privacy(budget))[0].norm in PLANNERS[name].norms:
            errors = [plan(asked, budget, strategy=name).expected_error() for asked in (long, short)]
            assert errors[0].total_squared_error == pytest.approx(errors[1].total_squared_error, rel=1e-9), name


@pytest.mark.parametrize("strategy", ["level_tree", "p_identity", "p_identity_blocks"])
def test_releases_of_given_ranges_err_as_their_plan_says(strategy: str) -> None:
    rng, size = np.random.default_rng(5), 6000
    ends, cells = np.sort(rng.integers(0, size, (30, 2)), axis=1), rng.integers(0, size, 20_000)
    rows, truth = pd.DataFrame({"x": cells}), [int(((cells >= low) & (cells <= high)).sum()) for low, high in ends]
    made = plan(queries(Domain(x=Integers(0, size - 1)), x={"ranges": ends.tolist()}), PureDP("1/20"), strategy=strategy)
    answers = [one.answers for one in releases(made, rows, range(40))]
    ratios = [((one["answer"] - truth) ** 2).mean() / (one["noise_std"] ** 2).mean() for one in answers]
    assert 0.8 < np.mean(ratios) < 1.25  # errors of ranges go together: a release's ratio has a standard deviation of about 0.5


def test_a_strategy_that_does_not_tell_all_cells_apart_says_what_it_cannot_answer() -> None:
    workload = queries(DOMAIN, b=matrix([[1] * 8 + [0] * 8, [0] * 8 + [1] * 8]), c="prefix")
    found = proposal("p_identity", workload, NOISES[0][0])
    plan = fit(DOMAIN, Privacy(NOISES[0][0]), Noise.DISCRETE_LAPLACE, found.blocks)
    assert total_squared_error(workload, plan) > 0
    with pytest.raises(InputError, match="do not determine"):
        total_squared_error(queries(DOMAIN, b="prefix"), plan)


def test_ranges_in_any_words_have_their_structure() -> None:
    n = 12
    low, high = np.triu_indices(n)
    shuffle = np.random.default_rng(0).permutation(len(low))
    assert gram_of(Ranges(n, low[shuffle], high[shuffle])) == gram_of(AllRanges(n))
    assert gram_of(Ranges(n, np.zeros(n, int), np.arange(n)[::-1])) == gram_of(Prefix(n))
    for ends in (([0] * n, [*range(n - 1), n - 2]), (low[:-1], high[:-1])):
        operator = Ranges(n, np.array(ends[0]), np.array(ends[1]))
        np.testing.assert_allclose(gram_of(operator).dense(), dense(operator).T @ dense(operator))
    asked = queries(Domain(x=Integers(0, 3)), x=matrix([[0, 1, 1, 0], [1, 0, 0, 0]])) + queries(
        Domain(x=Integers(0, 3)), x=matrix([[1, 0, 1, 0]])
    )
    assert asked.products[0].operators == (Ranges(4, np.array([1, 0]), np.array([2, 0])),)
    assert asked.products[1].operators == (Dense([[1, 0, 1, 0]]),)


GROUPED = Domain(sex=Coded(2), race=Coded(24), age=Integers(0, 29))
RACES = matrix([[1, *[0] * 23], [0, 1, *[0] * 22], [0, 0, *[1] * 22]])


@pytest.mark.parametrize(("budget", "mechanism", "power"), NOISES, ids=["pure", "gaussian"])
def test_two_tables_for_two_parts_of_what_is_asked(budget: PureDP | ZCDP, mechanism: str, power: int) -> None:
    workload = (
        queries(GROUPED, sex="identity", race=RACES, age="identity")
        + queries(GROUPED, race="identity", age=matrix([[0] * 18 + [1] * 12]))
        + queries(GROUPED, race=RACES, age="total")
        + queries(GROUPED, race="identity")
    )
    plan, promise = planned("union", workload, budget)
    assert len(plan.measured().blocks) == 2
    # What the planner says at unit noise is what the plan promises, up to rounding of scales and of the strategies' norms.
    found = proposal("union", workload, budget)
    unit = 2 * 100**2 if power == 1 else 1 / (2 * float(budget.rho))  # type: ignore[union-attr]
    assert promise.total_squared_error == pytest.approx(found.error * unit, rel=2e-3)
    others = [planned(name, workload, budget)[1].total_squared_error for name in ("identity", "marginals", "hierarchy")]
    assert promise.total_squared_error < 0.7 * min(others)


def test_what_cannot_be_parted_is_said() -> None:
    pure = Privacy(NOISES[0][0])
    with pytest.raises(InputError, match="only cells are asked"):
        proposal("union", marginals(GROUPED, ways=2), pure)
    with pytest.raises(InputError, match="nothing to part"):
        proposal("union", queries(GROUPED, age="prefix"), pure)
    with pytest.raises(InputError, match="nothing to part"):  # the same asked twice is asked once, with the sum of the weights
        proposal("union", queries(GROUPED, age="prefix") + queries(GROUPED, age="prefix", weight=2), pure)
    with pytest.raises(InputError, match="counts alone"):
        proposal("union", queries(DOMAIN, b="prefix") + marginals(DOMAIN, ways=1, sum="pay"), pure)
    with pytest.raises(InputError, match="better than one table"):
        proposal("union", queries(GROUPED, age="prefix") + queries(GROUPED, age="prefix", sex="identity"), pure)
    long = Domain(a=Coded(2000), b=Integers(0, 9))
    with pytest.raises(InputError, match="at most"):
        proposal("union", queries(long, a="identity") + queries(long, b="prefix"), pure)


LEVELS = Domain(a=Integers(0, 31, levels={"g": {"width": 8}}), b=Integers(0, 63), measures={"pay": Measure("pay", 0, 1000)})


@pytest.mark.parametrize("name", ["level_tree", "eigen_design", "gaussian_optimum", "tilted"])
def test_tables_of_other_attributes_count_by_the_errors_that_they_have(name: str) -> None:
    # Coefficients of 2^20 and more along b once made its queries look certain, and groups of a all that mattered along a.
    asked = queries(LEVELS, a={"level": "g"}) + queries(LEVELS, a="identity", b="prefix")
    assert planned(name, asked, ZCDP("1/2"))[1].total_squared_error < planned("hierarchy", asked, ZCDP("1/2"))[1].total_squared_error


@pytest.mark.parametrize(("name", "budget"), [("gaussian_optimum", ZCDP("1/2")), ("p_identity", PureDP(1))])
def test_sums_have_strategies_of_their_own(name: str, budget: PureDP | ZCDP) -> None:
    # With those of the counts, sums up to 1000 would take more bits than there are, and sums of cells be made of weighted sums.
    asked = queries(LEVELS, a="prefix", b="prefix") + queries(LEVELS, b="identity") + mean_queries(LEVELS, "pay", by=["a", "b"])
    made, promise = planned(name, asked, budget)
    sums = [block for block in made.measured().blocks if block.measure == "pay"]
    assert all(factor.operator == Identity(factor.operator.size) for block in sums for factor in block.factors)
    assert promise.total_squared_error < planned("marginals", asked, budget)[1].total_squared_error


# --- the Census SF1 person tables: attributes in detail here and in groups there ----------------------------------------------------------


_SCHEMA = Path(__file__).resolve().parents[3] / "shared" / "data" / "schemas" / "census_sf1_person.json"


def person_tables() -> Workload:
    schema = json.loads(_SCHEMA.read_text(encoding="utf-8"))
    sizes = {entry["name"]: entry["size"] for entry in schema["attributes"]}
    domain = Domain({name: Coded(size) for name, size in sizes.items()})

    def choices(name: str, word: str) -> list[QuerySet | None]:
        if word in schema["groups"]:
            rows = np.zeros((len(schema["groups"][word]["cells"]), sizes[name]), dtype=int)
            for row, cells in zip(rows, schema["groups"][word]["cells"], strict=True):
                row[cells] = 1
            return [matrix(rows.tolist())]
        return ([identity()] if word.startswith("identity") else []) + ([None] if word.endswith("total") else [])

    products = []
    for words in itertools.chain.from_iterable(schema["tables"].values()):
        for chosen in itertools.product(*(choices(name, word) for name, word in zip(sizes, words, strict=True))):
            asked = {name: queried for name, queried in zip(sizes, chosen, strict=True) if queried is not None}
            products += queries(domain, **asked).products
    return Workload(domain, tuple(products))


# The best of OPT_kron, OPT_M and OPT_+, measured with hdmm.
@pytest.mark.skipif(not _SCHEMA.exists(), reason=f"needs {_SCHEMA.name} beside the checkout")
@pytest.mark.parametrize(
    ("budget", "power", "reached", "published"), [(PureDP(1), 1, 4.345, 5.163), (ZCDP("1/2"), 2, 2.066, 2.321)], ids=["pure", "gaussian"]
)
def test_the_error_is_far_below_the_best_published(budget: PureDP | ZCDP, power: int, reached: float, published: float) -> None:
    workload = person_tables()
    assert workload.rows == 4151
    error = math.sqrt(proposal("union", workload, budget).error / workload.rows)
    assert error < reached < published
