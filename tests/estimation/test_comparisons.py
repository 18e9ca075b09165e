"""Differences, ratios and shares of released numbers: errors, coverage and refusals."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import leastnoise as ln
from leastnoise._estimation import Estimate, pair_covariances
from leastnoise._trusted.check import InputError
from simulated import read_table, simulations

GROUPS = 40  # sites with equal rows: each is one more trial of every interval
DOMAIN = ln.Domain(
    arm=["A", "B"],
    site=ln.Integers(1, GROUPS),
    measures={"pay": ln.Measure("pay", -20, 100, unit="0.5")},
)
BUDGETS = [ln.PureDP(1), ln.ZCDP("1/20"), ln.ZCDP("1/2"), ln.PureDP(6)]
# Rows of both arms at every site: many, some, and nearly none.
SIZES = [(400, 500), (40, 60), (3, 8)]
PAY = {"A": [30.0, 50.5, 10.0], "B": [60.0, 41.0, 55.5]}


def rows(sizes):
    """Return rows of both arms, with the same pay at every site."""
    arms = []
    for arm, size in zip("AB", sizes, strict=True):
        pay = np.resize(PAY[arm], size)
        site = np.repeat(np.arange(1, GROUPS + 1), size)
        arms.append(pd.DataFrame({"arm": arm, "site": site, "pay": np.tile(pay, GROUPS)}))
    return pd.concat(arms)


def estimates(plan, table, count, seed):
    """Return the estimates of simulated releases."""
    observations = simulations(plan.measured(), read_table(plan, table), count, seed)
    estimate = Estimate(observations[0])
    return [estimate.for_observation(observation) for observation in observations]


def coverage(comparisons, name, truth):
    """Return the share of intervals that contain the true number."""
    low = np.array([numbers[f"{name}_low"] for numbers in comparisons])
    high = np.array([numbers[f"{name}_high"] for numbers in comparisons])
    return float(((low - 1e-9 <= truth) & (truth <= high + 1e-9)).mean())


def std_ratio(comparisons, name):
    """Return the standard deviation of a number, divided by its stated standard error."""
    values = np.array([numbers[name] for numbers in comparisons])
    std_errors = [numbers[f"{name}_std_error"] for numbers in comparisons]
    return float(np.nanstd(values) / np.nanmean(std_errors))


def means_plan(budget):
    workload = ln.mean_queries(DOMAIN, "pay", by=["arm", "site"]) + ln.marginals(DOMAIN, upto=2)
    return ln.plan(workload, budget, strategy="marginals")


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("budget", BUDGETS, ids=str)
def test_compare_groups_covers_counts_and_means(budget, sizes):
    table = rows(sizes)
    releases = estimates(means_plan(budget), table, 20, seed=3)
    pay_of_a = table[table["arm"] == "A"]["pay"]
    pay_of_b = table[table["arm"] == "B"]["pay"]
    # Numbers of arm A and of arm B at one site.
    truths = {
        "count": sizes,
        "mean": (pay_of_a.mean(), pay_of_b.mean()),
        "sum": (pay_of_a.sum() / GROUPS, pay_of_b.sum() / GROUPS),
    }
    for quantity, (number_of_a, number_of_b) in truths.items():
        difference = number_of_b - number_of_a
        ratio = number_of_b / number_of_a
        options = {} if quantity == "count" else {quantity: "pay"}
        compared = [
            ln.compare_groups(release, "arm", "B", "A", **options, by=["site"]).numbers
            for release in releases
        ]
        assert coverage(compared, "difference", difference) >= 0.93
        assert coverage(compared, "ratio", ratio) >= 0.93
        assert coverage(compared, "lift", ratio - 1) >= 0.93
        if min(sizes) >= 40:
            assert coverage(compared, "difference", difference) <= 0.995
            assert 0.85 < std_ratio(compared, "difference") < 1.15


@pytest.mark.slow
@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("budget", BUDGETS[:2], ids=str)
def test_shares_and_differences_of_shares_cover(budget, sizes):
    table = rows(sizes)
    releases = estimates(means_plan(budget), table, 20, seed=4)
    shares = [ln.shares(release, ["arm"], by=["site"]).numbers for release in releases]
    truth = sizes[0] / sum(sizes)
    covered = [
        (share["low"][0] <= truth + 1e-9) & (truth - 1e-9 <= share["high"][0]) for share in shares
    ]
    assert 0.93 <= np.mean(covered) <= 1

    releases = estimates(means_plan(budget), table, 120, seed=5)
    first_sites = {"site": list(range(1, 11))}
    compared = [
        ln.compare_groups(release, "arm", "B", "A", share=first_sites).numbers
        for release in releases
    ]
    assert coverage(compared, "difference", 0.0) >= 0.93
    assert coverage(compared, "ratio", 1.0) >= 0.93


@pytest.mark.parametrize("sizes", SIZES)
def test_compare_releases_adds_independent_variances(sizes):
    plan = means_plan(ln.PureDP(1))
    table = rows(sizes)
    releases = estimates(plan, table, 12, seed=6)
    later_releases = estimates(means_plan(ln.ZCDP("1/20")), table, 12, seed=7)
    pairs = list(zip(releases, later_releases, strict=True))
    by = ["arm", "site"]
    for mean in (None, "pay"):
        compared = [ln.compare_releases(*pair, mean=mean, by=by).numbers for pair in pairs]
        assert coverage(compared, "difference", 0.0) >= 0.93
        assert coverage(compared, "ratio", 1.0) >= 0.93
    product = ln.queries(plan.domain, arm="identity", site="identity").products[0]
    stds = [release.estimate(product).noise_std for release in pairs[0]]
    std_errors = ln.compare_releases(*pairs[0], by=by).numbers["difference_std_error"]
    assert np.allclose(std_errors, np.hypot(*stds))


def test_compare_releases_of_one_payment_is_wide():
    plan = ln.plan(ln.queries(DOMAIN, arm="identity"), ln.ZCDP(1))
    first, second = estimates(plan, rows((40, 60)), 2, seed=8)
    of_two = ln.compare_releases(first, second, by=["arm"]).numbers["difference_std_error"]
    of_one = ln.compare_releases(first, first, by=["arm"]).numbers["difference_std_error"]
    # Noise of one release is added twice, noise of two releases only once each.
    assert np.allclose(of_one, np.sqrt(2) * of_two)


def test_ratio_of_negative_means_covers():
    table = rows((40, 60))
    table.loc[table["arm"] == "A", "pay"] = np.resize([-15.0, -8.0, -18.5], 40 * GROUPS)
    means = table.groupby("arm")["pay"].mean()
    for group, against in (("B", "A"), ("A", "B")):
        compared = [
            ln.compare_groups(release, "arm", group, against, mean="pay", by=["site"]).numbers
            for release in estimates(means_plan(ln.PureDP(2)), table, 12, seed=10)
        ]
        assert 0.93 <= coverage(compared, "ratio", means[group] / means[against]) <= 0.99
        assert 0.93 <= coverage(compared, "difference", means[group] - means[against]) <= 0.99


def test_periods_of_one_payment_share_noise():
    plan = ln.plan(ln.queries(DOMAIN, arm="identity"), ln.ZCDP(1))
    first, second = estimates(plan, rows((40, 60)), 2, seed=8)
    stds = []
    for receipts in (("a", "b"), ("a", "a")):
        pair = [
            release.for_observation(replace(release.observation, receipt=receipt))
            for release, receipt in zip((first, second), receipts, strict=True)
        ]
        stds.append(ln.compare_releases(*pair, by=["arm"]).numbers["difference_std_error"])
    assert np.allclose(stds[1], np.sqrt(2) * stds[0])


def test_compare_releases_converts_units():
    releases = []
    for unit in ("1", "1/2"):
        domain = ln.Domain(arm=["A", "B"], measures={"pay": ln.Measure("pay", 0, 100, unit=unit)})
        plan = ln.plan(ln.mean_queries(domain, "pay", by=["arm"]), ln.PureDP(2))
        releases.append(ln.release(plan, rows((40, 60)), seed=len(releases)))
    for options in ({"mean": "pay"}, {"sum": "pay"}):
        compared = ln.compare_releases(*releases, **options, by=["arm"]).numbers
        assert (compared["difference_low"] < 0.3 * compared["value"]).all()
        assert compared["ratio"] == pytest.approx([1, 1], abs=0.05)


def test_weighted_means_are_compared():
    domain = ln.Domain(
        arm=["A", "B"],
        measures={"pay": ln.Measure("pay", 0, 100), "weight": ln.Measure("weight", 0, 5)},
    )
    workload = ln.mean_queries(domain, "pay", by=["arm"]).weighted_by("weight")
    table = rows((40, 60)).assign(weight=2)
    release = ln.release(ln.plan(workload, ln.PureDP(1)), table, seed=1)
    name = workload.statistics[0].of
    compared = ln.compare_groups(release, "arm", "B", "A", mean=name).numbers
    truth = table.groupby("arm")["pay"].mean()
    assert compared["difference_low"] < truth["B"] - truth["A"] < compared["difference_high"]
    with pytest.raises(InputError, match="without weights"):
        ln.ab_test(release, "arm", "B", "A", mean=name)


def test_paired_covariances_match_all_pairs():
    plan = ln.plan(ln.marginals(DOMAIN, upto=2), ln.PureDP(1), strategy="marginals")
    (estimate,) = estimates(plan, rows((3, 8)), 1, seed=1)
    pairs = pair_covariances(estimate)
    sets = [
        {"arm": ln.predicates([["A"]]), "site": ln.identity()},
        {"arm": ln.predicates([["B"]]), "site": ln.identity()},
        {"site": ln.identity()},
    ]
    products = [ln.queries(plan.domain, query_sets).products[0] for query_sets in sets]
    for first in products:
        for second in products:
            expected = np.diag(estimate.covariance_of(None).covariance(first, second))
            paired = pairs.between(first, second, ("arm", "site")).reshape(-1)
            assert paired == pytest.approx(expected)


def test_compare_groups_uses_the_exact_covariance():
    plan = ln.plan(ln.marginals(DOMAIN, upto=2), ln.PureDP(1), strategy="marginals")
    release = ln.release(plan, rows((40, 60)), seed=1)
    matrix = release.covariance("arm")
    compared = ln.compare_groups(release, "arm", "B", "A").numbers
    expected = np.sqrt(matrix[0, 0] + matrix[1, 1] - 2 * matrix[0, 1])
    assert compared["difference_std_error"] == pytest.approx(expected)
    table = release.tables["arm"]
    assert compared["difference"] == pytest.approx(table.answer[1] - table.answer[0])
    width = compared["difference_high"] - compared["difference_low"]
    (answer,) = release.answer(ln.queries(plan.domain, arm=ln.matrix([[-1, 1]])))
    assert width == pytest.approx((answer.high - answer.low).item())


def test_means_whose_sums_are_not_centred_are_compared():
    plan = ln.plan(
        ln.queries(DOMAIN, arm="identity", site="identity", sum="pay")
        + ln.queries(DOMAIN, arm="identity", site="identity", count="pay"),
        ln.PureDP(1),
        strategy="workload",
    )
    compared = [
        ln.compare_groups(release, "arm", "B", "A", mean="pay", by=["site"]).numbers
        for release in estimates(plan, rows((40, 60)), 12, seed=9)
    ]
    mean_of_a = np.mean(np.resize(PAY["A"], 40))
    mean_of_b = np.mean(np.resize(PAY["B"], 60))
    assert coverage(compared, "difference", mean_of_b - mean_of_a) >= 0.93
    assert coverage(compared, "ratio", mean_of_b / mean_of_a) >= 0.93


def test_compare_groups_along_dates_agrees_with_changes():
    domain = ln.Domain(month=ln.Dates("2024-01-01", "2024-03-31", "month"))
    plan = ln.plan(ln.queries(domain, month="prefix"), ln.PureDP(1))
    visits = pd.DataFrame({"month": ["2024-01-05"] * 40 + ["2024-02-05"] * 50 + ["2024-03-05"] * 9})
    release = ln.release(plan, visits, seed=3)
    changes = ln.changes(release, "month", 1).numbers
    compared = ln.compare_groups(release, "month", "2024-03", "2024-02").numbers
    for name in ("difference", "ratio", "ratio_low", "ratio_high"):
        assert compared[name] == pytest.approx(changes[name][1]), name
    assert compared["difference_low"] == pytest.approx(changes["low"][1])


def test_means_of_both_groups_match_the_means():
    release = ln.release(means_plan(ln.PureDP(1)), rows((40, 60)), seed=1)
    means = ln.means(release, "pay", by=["arm"])
    compared = ln.compare_groups(release, "arm", "B", "A", mean="pay").numbers
    mean_of_a = compared["against"].item()
    mean_of_b = compared["value"].item()
    assert [mean_of_a, mean_of_b] == pytest.approx(means.mean.tolist())


def test_ratio_without_an_end_reports_it():
    release = ln.release(means_plan(ln.PureDP("1/10")), rows((3, 8)), seed=1)
    compared = ln.compare_groups(release, "arm", "B", "A", by=["site"]).numbers
    is_open = compared["ratio_bounded"] == 0
    assert is_open.any()
    assert np.isinf(compared["ratio_high"][is_open]).all()
    assert np.isnan(compared["ratio"][is_open]).all()
    assert np.isfinite(compared["ratio_high"][~is_open]).all()


def test_shares_of_sums_and_levels_add_up():
    regions = {"a": "north", "b": "south", "c": "north"}
    domain = ln.Domain(
        store=ln.Categories(list(regions), levels={"region": regions}),
        measures={"sales": ln.Measure("sales", 0, 50)},
    )
    plan = ln.plan(ln.mean_queries(domain, "sales", by=["store"]), ln.PureDP(1))
    table = pd.DataFrame({"store": ["a"] * 300 + ["b"] * 200 + ["c"] * 500, "sales": 20})
    release = ln.release(plan, table, seed=1)
    region = {"store": ln.level("region")}
    compared = ln.shares(release, region, sum="sales")
    assert compared.labels == (("north", "south"),)
    assert compared.numbers["share"].sum() == pytest.approx(1)
    assert compared.numbers["low"][0] < 0.8 < compared.numbers["high"][0]


def test_share_leaves_out_rows_without_a_value():
    domain = ln.Domain(sex=["F", "M"], job=["x", "y"])
    plan = ln.plan(ln.marginals(domain, ways=1) + ln.marginals(domain, ways=2), ln.PureDP(50))
    table = pd.DataFrame({"sex": ["F", "M"] * 300, "job": ["x", "y", "x", None, "y", None] * 100})
    release = ln.release(plan, table, seed=1)
    compared = ln.shares(release, ["job"]).numbers["share"]
    assert compared == pytest.approx([0.5, 0.5], abs=0.01)
    by_sex = ln.compare_groups(release, "sex", "F", "M", share={"job": "x"}).numbers
    assert by_sex["value"] == pytest.approx(2 / 3, abs=0.01)
    assert by_sex["against"] == pytest.approx(0, abs=0.01)


def test_retention_of_units_by_cohort():
    months = ["2024-01", "2024-02", "2024-03"]
    domain = ln.Domain(joined=months, active=months)
    pairs = {("2024-01", "2024-01"): 200, ("2024-01", "2024-03"): 90, ("2024-02", "2024-02"): 300}
    visits = [(f"{cell}-{unit}", *cell) for cell, size in pairs.items() for unit in range(size)]
    table = pd.DataFrame(visits, columns=["person", "joined", "active"])
    privacy = ln.Privacy(ln.ZCDP(1), unit_column="person", max_rows=3)
    plan = ln.plan(ln.marginals(domain, ways=2, count="units"), privacy)
    release = ln.release(plan, table, seed=1)
    compared = ln.compare_groups(
        release,
        "active",
        "2024-03",
        "2024-01",
        count="units",
        by=[{"joined": ln.predicates([["2024-01"]])}],
    ).numbers
    assert compared["ratio_low"].item() < 0.45 < compared["ratio_high"].item()


def test_public_counts_have_no_error_in_shares(tmp_path):
    file = tmp_path / "people.toml"
    file.write_text(
        """
        [privacy]
        epsilon = "1"
        [domain.sex]
        categories = ["F", "M"]
        [domain.job]
        categories = ["x", "y"]
        complete = true
        [[workload]]
        marginals = { ways = 2 }
        [[public]]
        queries = { sex = "identity" }
        counts = [60, 40]
        """,
        encoding="utf-8",
    )
    spec = ln.read_spec(file)
    table = pd.DataFrame({"sex": ["F"] * 60 + ["M"] * 40, "job": ["x", "y"] * 50})
    release = ln.release(spec.plan(), table, seed=1)
    compared = ln.shares(release, ["sex"]).numbers
    assert compared["share"] == pytest.approx([0.6, 0.4])
    assert compared["high"] - compared["low"] == pytest.approx([0, 0], abs=1e-3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda r: ln.compare_groups(r, "arm", "B", "C"), "'C'"),
        (lambda r: ln.compare_groups(r, "arms", "B", "A"), "one of arm, site"),
        (lambda r: ln.compare_groups(r, "arm", ["A", "B"], "A"), "cell in common"),
        (lambda r: ln.compare_groups(r, "arm", "B", "A", mean="age"), "a measure of the domain"),
        (lambda r: ln.compare_groups(r, "arm", "B", "A", mean="pay", sum="pay"), "one of mean"),
        (lambda r: ln.compare_groups(r, "arm", "B", "A", by=["arm"]), "used twice"),
        (lambda r: ln.compare_groups(r, "arm", "B", "A", share={"arm": "A"}), "used twice"),
        (lambda r: ln.compare_groups(r, "arm", "B", "A", share={}), "a mapping"),
        (lambda r: ln.compare_groups(r, "arm", "B", "A", count="units"), "were not counted"),
        (lambda r: ln.compare_groups(r, "arm", "B", "A", level=2), "level"),
        (
            lambda r: ln.compare_releases(r, r, where={"arm": "A"}, by=["arm"]),
            "is in both where and by",
        ),
        (lambda r: ln.shares(r, ["arm"], by=["arm"]), "at least one attribute that is not in by"),
        (lambda r: ln.shares(r, []), "at least one attribute"),
        (lambda r: ln.shares(r, ["arm"], sum="pay"), "not negative"),
        (lambda r: ln.shares(r, {"site": ln.ranges([(1, 5)])}), "every cell once"),
        (lambda r: ln.ab_test(r, "arm", "B", "A", mean="pay", std=0), "above 0"),
    ],
)
def test_comparisons_refuse_meaningless_statistics(call, message):
    release = ln.release(means_plan(ln.PureDP(1)), rows((3, 8)), seed=1)
    with pytest.raises(InputError, match=message):
        call(release)


def test_compare_releases_refuses_other_bounds_and_groups():
    releases = []
    for high, sites in ((100, 5), (90, 5), (100, 4)):
        domain = ln.Domain(site=ln.Integers(1, sites), measures={"pay": ln.Measure("pay", 0, high)})
        plan = ln.plan(ln.mean_queries(domain, "pay", by=["site"]), ln.PureDP(1))
        releases.append(ln.release(plan, rows((3, 8)), seed=len(releases)))
    with pytest.raises(InputError, match="different bounds"):
        ln.compare_releases(releases[0], releases[1], mean="pay")
    with pytest.raises(InputError, match="same labels"):
        ln.compare_releases(releases[0], releases[2], mean="pay", by=["site"])


def test_data_dependent_release_is_refused():
    domain = ln.Domain(age=ln.Integers(1, 1024))
    plan = ln.plan(ln.queries(domain, age="identity"), ln.PureDP(1), strategy="dawa")
    table = pd.DataFrame({"age": np.repeat(np.arange(1, 513), 40)})
    release = ln.release(plan, table, seed=1)
    with pytest.raises(InputError, match="No interval is known"):
        ln.compare_groups(release, "age", 1, 2)


AB = ln.Domain(
    arm=["A", "B"], site=ln.Integers(1, GROUPS), measures={"paid": ln.Measure("paid", 0, 1)}
)


@pytest.mark.parametrize(
    ("size", "rates", "budget"),
    [
        (2000, (0.10, 0.13), ln.PureDP(1)),
        (300, (0.02, 0.05), ln.PureDP(1)),
        (300, (0.5, 0.4), ln.ZCDP("1/50")),
        (60, (0.1, 0.1), ln.ZCDP("1/20")),
    ],
)
def test_ab_test_covers_the_population_effect(size, rates, budget):
    plan = ln.plan(ln.mean_queries(AB, "paid", by=["arm", "site"]), budget)
    random = np.random.default_rng(size)
    cells = pd.DataFrame(
        [(arm, site) for arm in "AB" for site in range(1, GROUPS + 1)], columns=["arm", "site"]
    )
    table = cells.loc[cells.index.repeat(size)].reset_index(drop=True)
    rate = table["arm"].map(dict(zip("AB", rates, strict=True)))
    compared = []
    for trial in range(10):
        table["paid"] = (random.random(len(table)) < rate).astype(int)
        (estimate,) = estimates(plan, table, 1, seed=trial)
        compared.append(ln.ab_test(estimate, "arm", "B", "A", mean="paid", by=["site"]).numbers)
    assert 0.93 <= coverage(compared, "difference", rates[1] - rates[0]) <= 0.995
    assert coverage(compared, "lift", rates[1] / rates[0] - 1) >= 0.93


def test_ab_test_widens_for_rows_of_one_unit():
    workload = ln.mean_queries(AB, "paid", by=["arm"])
    table = pd.DataFrame({"arm": ["A", "B"] * 500, "paid": [0, 1, 1, 1] * 250, "id": range(1000)})
    stds = []
    for rows_of_unit in (1, 4):
        privacy = ln.Privacy(ln.PureDP(1), unit_column="id", max_rows=rows_of_unit)
        release = ln.release(ln.plan(workload, privacy), table, seed=1)
        test = ln.ab_test(release, "arm", "B", "A", mean="paid", std=0.5)
        stds.append(test.numbers["sampling_std"].item())
    assert stds[1] == pytest.approx(2 * stds[0], rel=0.05)


def test_ab_test_by_group_and_significance():
    release = ln.release(means_plan(ln.PureDP(1)), rows((400, 500)), seed=1)
    test_of_all = ln.ab_test(release, "arm", "B", "A", mean="pay", std=25)
    assert test_of_all.is_significant is True
    by_site = ln.ab_test(release, "arm", "B", "A", mean="pay", std=25, by=["site"])
    assert by_site.frame("pandas").shape[0] == GROUPS
    assert np.asarray(by_site.is_significant).shape == (GROUPS,)


ARMS = ln.Domain(
    arm=[*"ABCDE"], half=["x", "y"], measures={"paid": ln.Measure("paid", 0, 10, unit="0.5")}
)
RATES = np.linspace(2, 6, 5)  # the mean of every arm


def arm_rows(size, seed=0):
    """Return rows of every arm whose expected means are `RATES`."""
    random = np.random.default_rng(seed)
    arms = np.repeat(np.arange(5), size)
    paid = np.clip(RATES[arms] + random.normal(0, 1, len(arms)), 0, 10)
    half = np.where(np.arange(len(arms)) % 2, "x", "y")
    return pd.DataFrame({"arm": np.array([*"ABCDE"])[arms], "half": half, "paid": paid})


def share_of_covered_tables(tables, name, truth):
    """Return the share of tables whose intervals all contain the truth."""
    held = [
        ((each[f"{name}_low"] <= truth) & (truth <= each[f"{name}_high"])).all() for each in tables
    ]
    return float(np.mean(held))


@pytest.mark.slow
@pytest.mark.parametrize("mean", ["paid", None])
@pytest.mark.parametrize("budget", [ln.PureDP(1), ln.ZCDP("1/20")], ids=str)
def test_joint_intervals_of_differences_hold_together(budget, mean):
    """`python -m experiments.coverage_joint` has more draws, sizes and arms."""
    table = arm_rows(60)
    plan = ln.plan(ln.mean_queries(ARMS, "paid", by=["arm"]) + ln.marginals(ARMS, ways=1), budget)
    truth = np.full(5, 60.0)
    if mean is not None:
        truth = (np.rint(2 * table["paid"]) / 2).groupby(table["arm"]).mean().to_numpy()
    tables = [
        ln.compare_groups(each, "arm", [*"BCDE"], "A", mean=mean, each=True).numbers
        for each in estimates(plan, table, 40, seed=21)
    ]
    # With 40 releases the standard error of the coverage is 0.035.
    assert share_of_covered_tables(tables, "difference", truth[1:] - truth[0]) >= 0.85
    assert share_of_covered_tables(tables, "ratio", truth[1:] / truth[0]) >= 0.85


def test_joint_intervals_are_between_separate_ones_and_the_union_bound():
    plan = ln.plan(ln.mean_queries(ARMS, "paid", by=["arm"]), ln.ZCDP("1/20"))
    (estimate,) = estimates(plan, arm_rows(300), 1, seed=5)
    joint = ln.compare_groups(estimate, "arm", [*"BCDE"], "A", mean="paid", each=True)
    assert joint.title == "mean of paid, each arm against arm=A, joint 95% intervals"
    assert joint.labels == (tuple("BCDE"),)
    widths = [joint.numbers["difference_high"] - joint.numbers["difference_low"]]
    for level in (0.95, 1 - 0.05 / 4):
        separate = [
            ln.compare_groups(estimate, "arm", arm, "A", mean="paid", level=level).numbers
            for arm in "BCDE"
        ]
        widths.append(
            np.array([each["difference_high"] - each["difference_low"] for each in separate])
        )
        values = [each["difference"].item() for each in separate]
        assert joint.numbers["difference"] == pytest.approx(values)
    assert (1.1 * widths[1] < widths[0]).all()
    assert (widths[0] < widths[2]).all()


def test_joint_comparisons_of_large_tables_use_the_union_bound():
    sites = ln.Domain(arm=["A", "B", "C"], site=ln.Integers(1, 1000))
    table = pd.DataFrame({"arm": [*"ABC"] * 4000, "site": np.arange(12_000) % 1000 + 1})
    plan = ln.plan(ln.marginals(sites, ways=2), ln.PureDP(1), strategy="workload")
    (estimate,) = estimates(plan, table, 1, seed=5)
    joint = ln.compare_groups(estimate, "arm", ["B", "C"], "A", by=["site"], each=True).numbers
    separate = ln.compare_groups(estimate, "arm", "B", "A", by=["site"], level=1 - 0.05 / 2000)
    for end in ("low", "high"):
        assert joint[f"difference_{end}"][0] == pytest.approx(separate.numbers[f"difference_{end}"])


@pytest.mark.slow
def test_joint_ab_tests_cover_all_population_effects():
    plan = ln.plan(ln.mean_queries(ARMS, "paid", by=["arm"]), ln.PureDP(1))
    tables = []
    for trial in range(40):
        (estimate,) = estimates(plan, arm_rows(300, seed=trial), 1, seed=trial)
        test = ln.ab_test(estimate, "arm", [*"BCDE"], "A", mean="paid", std=1.0, each=True)
        tables.append(test.numbers)
    assert share_of_covered_tables(tables, "difference", RATES[1:] - RATES[0]) >= 0.85
    assert share_of_covered_tables(tables, "lift", RATES[1:] / RATES[0] - 1) >= 0.85
    assert np.asarray(test.is_significant).all()


def test_joint_comparisons_by_group_and_level():
    blocks = {"A": "old", "B": "old", "C": "new", "D": "new", "E": "late"}
    kinds = ln.Categories([*"ABCDE"], levels={"block": blocks})
    domain = ln.Domain(arm=kinds, half=["x", "y"], measures=ARMS.measures)
    plan = ln.plan(ln.mean_queries(domain, "paid", by=["arm", "half"]), ln.ZCDP(1))
    (estimate,) = estimates(plan, arm_rows(200), 1, seed=5)
    joint = ln.compare_groups(
        estimate,
        "arm",
        {"block": ["new", "late"]},
        {"block": "old"},
        mean="paid",
        by=["half"],
        each=True,
    )
    frame = joint.frame("pandas")
    assert frame[["arm:block", "half"]].values.tolist() == [
        ["new", "x"],
        ["new", "y"],
        ["late", "x"],
        ["late", "y"],
    ]
    test = ln.ab_test(estimate, "arm", ["B", ["C", "D"]], "A", mean="paid", std=1, each=True)
    assert test.frame("pandas")["arm"].tolist() == ["B", "C or D"]
    assert test.title.endswith("joint 95% intervals")
    for wrong in ("B", ["B", "B"], []):
        with pytest.raises(InputError, match="a list of groups, none twice"):
            ln.compare_groups(estimate, "arm", wrong, "A", each=True)
    with pytest.raises(InputError, match="without a common cell"):
        ln.compare_groups(estimate, "arm", ["B", "A"], "A", mean="paid", each=True)


def test_plot_draws_differences_and_a_line_at_zero():
    domain = ln.Domain(year=[2024, 2025], shop=["a", "b"])
    plan = ln.plan(ln.marginals(domain, ways=2), ln.PureDP(1), strategy="identity")
    rows = pd.DataFrame({"year": [2024, 2025] * 200, "shop": ["a", "a", "b", "b"] * 100})
    release = ln.release(plan, rows, seed=1)
    by_shop = ln.compare_groups(release, "year", 2025, 2024, by=["shop"])
    spec = by_shop.plot().to_dict()
    (drawn,) = spec["datasets"].values()
    assert [row["k0"] for row in drawn] == ["a", "b"]
    differences = by_shop.numbers["difference"]
    assert [row["value"] for row in drawn] == pytest.approx(differences.tolist())
    line, dots = spec["layer"]
    assert line["encoding"]["x"]["datum"] == 0
    assert line["encoding"]["x"]["scale"]["zero"] is True
    assert "y" in dots["encoding"]
    assert ln.compare_groups(release, "year", 2025, 2024).plot().to_dict()["layer"][0] == line
