"""Groups of a level, of ranges and of sets of cells wherever an attribute can stand: compared with the truth, at other than unit noise."""

import numpy as np
import pandas as pd
import pytest

import leastnoise as ln
from leastnoise._check import InputError
from leastnoise._session._finish import read_table
from simulated import releases, simulations

REGION = {"a": "north", "b": "south", "c": "north", "d": "south", "e": "west"}
DOMAIN = ln.Domain(
    sex=["F", "M"],
    store=ln.Categories(list(REGION), levels={"region": REGION}),
    age=ln.Integers(0, 19, levels={"five": {"width": 5}}),
    measures={"pay": ln.Measure("pay", -20, 100, unit="0.5")},
)
RANGES = [(0, 2), (3, 19)]
WAYS = {
    "level": (ln.level("region"), "store", list(REGION.values())),
    "ranges": (ln.ranges(RANGES), "age", None),
    "predicates": (ln.predicates([["a", "b"], ["c", "d", "e"]]), "store", None),
}


@pytest.fixture(scope="module")
def rows():
    random = np.random.default_rng(4)
    made = pd.DataFrame({"sex": random.choice(["F", "M"], 4000, p=[0.8, 0.2]), "store": random.choice(list(REGION), 4000)})
    made["age"] = random.binomial(19, 0.3, 4000)
    made["pay"] = random.integers(-40, 201, 4000) / 2 * 0.5 + 5 * (made["store"] == "a")
    made["pay"] = (made["pay"] * 2).round() / 2
    return made


def group_of(rows, how):
    """The group of every row, by other means than the library's."""
    if how == "level":
        return rows["store"].map(REGION)
    if how == "ranges":
        return (rows["age"] > 2).astype(int)
    return (~rows["store"].isin(["a", "b"])).astype(int)


@pytest.mark.parametrize(
    ("how", "budget"),
    [("level", ln.PureDP("0.7")), ("ranges", ln.ZCDP("0.2")), ("predicates", ln.PureDP("0.7"))],
    ids=["level-pure", "ranges-rho", "predicates-pure"],
)
def test_means_of_groups_hold_the_truth_as_often_as_they_say(rows, how, budget) -> None:
    asked, name, _ = WAYS[how]
    weighted = ln.mean_queries(DOMAIN, "pay", by=["sex", {name: asked}], weight=3) + ln.queries(DOMAIN, age="prefix", weight="0.5")
    # One strategy of real numbers; the rest take no search.
    strategy = "workload" if isinstance(budget, ln.ZCDP) else "p_identity" if how == "predicates" else "marginals"
    plan = ln.plan(weighted, budget, strategy=strategy)
    (statistic,) = weighted.statistics
    assert statistic.name == "mean of pay by " + " x ".join(sorted(["sex", f"{name}:{asked.word}"], key=lambda one: one != "sex"))
    truth = rows.groupby(["sex", group_of(rows, how)])["pay"].mean()
    inside, errors, said = [], [], []
    for release in releases(plan, rows, range(60), ln.Options(level=0.9)):
        made = release.statistics[0]
        labels = [label if how == "level" else place for place, label in enumerate(made.labels[1])]
        exact = np.array([[truth[sex, label] for label in labels] for sex in made.labels[0]])
        inside.append((made.low <= exact) & (exact <= made.high))
        errors.append(made.values - exact)
        said.append(made.further["std_error"])
    again = ln.means(release, "pay", by={"sex": "identity", name: asked}, level=0.9)
    assert set(again.columns()) >= {"sex", "store:region" if how == "level" else name}
    assert np.array_equal(again.mean, made.values)
    assert np.mean(inside) > 0.87  # 240 or more intervals of 90%, of which four share noise
    assert 0.85 < np.sqrt(np.mean(np.square(np.divide(errors, said)))) < 1.15


@pytest.mark.parametrize("how", ["level", "predicates"])
def test_quantiles_and_distribution_functions_of_groups_hold_the_truth(rows, how) -> None:
    asked, name, _ = WAYS[how]
    by = [{name: asked}]
    both = ln.quantile_queries(DOMAIN, "age", ["0.25", "0.5"], by=by, weight=2) + ln.cdf_queries(DOMAIN, "age", by=by)
    plan = ln.plan(both + ln.queries(DOMAIN, sex="identity", weight=5), ln.PureDP("0.4"), strategy="workload")
    parts = {label: part["age"] for label, part in rows.groupby(group_of(rows, how))}
    release = ln.release(plan, rows, seed=1, options=ln.Options(level=0.9))
    estimate, labels = release.least_squares(), release.statistics[0].labels[0]
    assert release.statistics[0].low.reshape(-1).tolist() == [
        one.low for one in ln.quantiles(estimate, "age", [0.25, 0.5], by=by, level=0.9)
    ]
    held, bands = [], []
    for observation in simulations(plan.measured(), read_table(plan, rows), 48 // len(parts), seed=1):
        again = estimate.like(observation)
        functions = ln.cdf(again, "age", by=by, level=0.9, draws=19)
        quantiles = ln.quantiles(again, "age", [0.25, 0.5], by=by, level=0.9)
        ends = np.array([(one.low, one.high) for one in quantiles]).reshape(len(parts), 2, 2)
        for place, label in enumerate(labels):
            own = parts[label if how == "level" else place]
            exact = [np.quantile(own, share, method="inverted_cdf") for share in (0.25, 0.5)]
            held.append((ends[place, :, 0] <= exact) & (exact <= ends[place, :, 1]))
            share = [(own <= age).mean() for age in range(20)]
            bands.append(np.all((functions.low[place] <= share) & (share <= functions.high[place])))
    assert np.mean(held) >= 0.88  # of 96 intervals of 90%: one of 80% is seen
    assert np.mean(bands) >= 0.84


def test_only_rows_of_a_group_of_a_level_count(rows) -> None:
    release = ln.release(ln.plan(ln.queries(DOMAIN, store="identity", age="identity"), ln.PureDP(50)), rows, seed=1)
    north = rows[rows["store"].map(REGION) == "north"]["age"]
    (found,) = ln.quantiles(release, "age", [0.5], where={"store": {"region": "north"}})
    assert found == ln.quantiles(release, "age", [0.5], where={"store": ["a", "c"]})[0]
    assert found.low <= np.quantile(north, 0.5, method="inverted_cdf") <= found.high
    with pytest.raises(InputError, match="group of the level 'region' must be one of north, south, west; got 'east'"):
        ln.cdf(release, "age", where={"store": {"region": "east"}})


def test_a_plan_with_groups_is_read_again_as_it_was() -> None:
    by = ["sex", {"store": ln.level("region")}, {"age": ln.ranges(RANGES)}]
    asked = ln.mean_queries(DOMAIN, "pay", by=by, size=100, margin=5) + ln.cdf_queries(DOMAIN, "age", by=by[:2])
    plan = ln.plan(asked, ln.ZCDP(1), strategy="workload")
    again = ln.Plan.from_json(plan.to_json())
    assert again == plan
    assert again.workload.statistics[0].along == {"sex": ln.identity(), "store": ln.level("region"), "age": ln.ranges(RANGES)}


@pytest.mark.parametrize(
    ("by", "message"),
    [
        (["region"], "region is a level: ask for { store = { level = 'region' } }"),
        (["sexe"], "attributes of sex, store, age; got 'sexe'"),
        ([{"store": "region"}], "query set on store must be 'identity'"),
        ([{"store": ln.level("county")}], "a level must be one of 'region'; got 'county'"),
        ([{"age": "prefix"}], "by along age must be one of identity, level, ranges, predicates; got 'prefix'"),
        (["store", {"store": ln.level("region")}], "attributes without repetitions"),
        ([3], "a list of attributes"),
        ("sex", "a list of attributes"),
        (7, "a list of attributes"),
    ],
)
def test_what_is_no_group_is_refused(by, message) -> None:
    for ask in (lambda: ln.mean_queries(DOMAIN, "pay", by=by), lambda: ln.marginals(DOMAIN, ways=1, of=by)):
        with pytest.raises(InputError) as refused:
            ask()
        assert message.replace("by along", "") in str(refused.value).replace("by along", "").replace("of along", "")
