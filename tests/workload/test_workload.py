"""Workloads: the meaning of products, names, files, and refusals."""

import json
from fractions import Fraction

import numpy as np
import pytest

import leastnoise as ln
from leastnoise._trusted.linop import dense
from leastnoise._workload import QuerySet, from_json, query_set

DOMAIN = ln.Domain(
    sex=["F", "M"],
    age=ln.Integers(17, 21),
    income=ln.Bins(0, 100, 4),
    code=ln.Coded(3),
    measures={"pay": ln.Measure("income", -50, 200)},
)


def test_marginals_are_all_tables_of_k_attributes():
    names = [product.name for product in ln.marginals(DOMAIN, ways=2)]
    assert names == [
        "sex x age",
        "sex x income",
        "sex x code",
        "age x income",
        "age x code",
        "income x code",
    ]
    assert [product.name for product in ln.marginals(DOMAIN, upto=1)] == [
        "total",
        "sex",
        "age",
        "income",
        "code",
    ]
    assert [product.name for product in ln.marginals(DOMAIN, ways=1, of=["code", "sex"])] == [
        "sex",
        "code",
    ]


def test_attributes_follow_domain_order_without_totals():
    (product,) = ln.queries(
        DOMAIN, income="prefix", code=ln.total(), sex=ln.identity(), weight="1/2"
    )
    assert (product.attributes, product.shape, product.rows, product.weight) == (
        ("sex", "income"),
        (2, 4),
        8,
        Fraction(1, 2),
    )
    assert product.name == "sex x income:prefix"
    assert not product.is_marginal


def test_sum_importance_is_in_row_contributions():
    (product,) = ln.queries(DOMAIN, sum="pay", weight=3, sex="identity")
    assert product.importance == pytest.approx((3 / 200) ** 2)
    assert product.name == "sum of pay by sex"
    assert ln.queries(DOMAIN, sum="pay").products[0].name == "sum of pay"


@pytest.mark.parametrize(
    ("attribute", "query_set", "rows", "labels"),
    [
        ("sex", ln.identity(), [[1, 0], [0, 1]], ("F", "M")),
        ("sex", ln.prefix(), [[1, 0], [1, 1]], ("<= F", "<= M")),
        ("income", ln.prefix(), np.tril(np.ones((4, 4))), ("< 25", "< 50", "< 75", "<= 100")),
        (
            "code",
            ln.all_ranges(),
            [[1, 0, 0], [1, 1, 0], [1, 1, 1], [0, 1, 0], [0, 1, 1], [0, 0, 1]],
            ("0", "0 .. 1", "0 .. 2", "1", "1 .. 2", "2"),
        ),
        (
            "age",
            ln.ranges([(18, 20), (17, 17)]),
            [[0, 1, 1, 1, 0], [1, 0, 0, 0, 0]],
            ("18 .. 20", "17"),
        ),
        ("income", ln.ranges([(25, 75)]), [[0, 1, 1, 0]], ("[25, 50) .. [50, 75)",)),
        ("code", ln.ranges([(1, 2)]), [[0, 1, 1]], ("1 .. 2",)),
        (
            "age",
            ln.predicates([[17, 21], [18]]),
            [[1, 0, 0, 0, 1], [0, 1, 0, 0, 0]],
            ("17 or 21", "18"),
        ),
        (
            "age",
            ln.predicates([[21, 18, 17], [17, 18, 19, 21]]),
            [[1, 1, 0, 0, 1], [1, 1, 1, 0, 1]],
            ("17 .. 18 or 21", "17 .. 19 or 21"),
        ),
        ("code", ln.matrix([[2, 0, -1]]), [[2, 0, -1]], ("row 0",)),
    ],
)
def test_query_sets_mean_their_matrix(attribute, query_set, rows, labels):
    kind = DOMAIN.kind(attribute)
    np.testing.assert_array_equal(dense(query_set.operator(attribute, kind)), rows)
    assert query_set.labels(attribute, kind) == labels


def test_workload_json_round_trip():
    workload = (
        ln.marginals(DOMAIN, ways=1, weight=2)
        + ln.queries(DOMAIN, age=ln.ranges([(17, 18)]), sum="pay")
        + ln.queries(DOMAIN, code=ln.matrix([[1, 0, 1]]), sex=ln.predicates([["F"]]))
    )
    assert from_json(DOMAIN, json.loads(json.dumps(workload.to_json()))) == workload


def test_statistics_keep_groups_and_targets():
    age = ln.ranges([(17, 18)])
    workload = ln.mean_queries(
        DOMAIN, "pay", by={"sex": "identity", "age": age}, size=100, rmse="1/2"
    )
    workload += ln.quantile_queries(DOMAIN, "income", ["0.25", "1/2"], by=["code"])
    means, quantiles = (statistic.to_json() for statistic in workload.statistics)
    assert means == {
        "means": {"of": "pay", "by": ["sex", {"age": age.to_spec()}], "size": "100", "rmse": "1/2"}
    }
    assert quantiles == {"quantiles": {"of": "income", "at": ["1/4", "1/2"], "by": ["code"]}}
    assert from_json(workload.domain, workload.to_json(), [means, quantiles]) == workload


SETS = [
    ln.prefix(),
    ln.ranges([(17, 18)]),
    ln.matrix([[1, 0, 0, 0, 0]]),
    ln.predicates([[17, 18], [19]]),
    ln.level("five"),
    ln.change(2),
]


@pytest.mark.parametrize("expected", SETS, ids=str)
def test_spec_has_query_sets_as_words_or_tables(expected):
    assert query_set("age", expected.to_spec()) == expected == query_set("age", expected)


SEX = ln.marginals(DOMAIN, ways=1, of=["sex"])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ln.Workload(DOMAIN, ()), "workload is empty; ask for at least one query"),
        (lambda: ln.marginals(DOMAIN), "exactly one of ways and upto; got neither"),
        (lambda: ln.marginals(DOMAIN, ways=1, upto=1), "exactly one of ways and upto; got both"),
        (lambda: ln.marginals(DOMAIN, ways=5), "ways must be a whole number from 0 to 4; got 5"),
        (
            lambda: ln.marginals(DOMAIN, ways=1, of=["height"]),
            "of must be attributes of sex, age, income, code; got 'height'",
        ),
        (lambda: ln.marginals(DOMAIN, ways=1, of=["sex", "sex"]), "attributes without repetitions"),
        (lambda: ln.marginals(DOMAIN, ways=1, weight=0), "weight must be a number above 0; got 0"),
        (
            lambda: ln.queries(DOMAIN, sex="identity", weight=float("nan")),
            "weight must be a finite number",
        ),
        (
            lambda: ln.queries(DOMAIN, height="identity"),
            "an attribute of a query must be one of sex, age, income, code; got 'height'",
        ),
        (
            lambda: ln.queries(DOMAIN, sum="height"),
            "sum must be a measure of the domain \\(pay\\); got 'height'",
        ),
        (
            lambda: ln.queries(DOMAIN, sex="histogram"),
            "query set on sex must be 'identity', 'total', 'prefix', 'all_ranges', a table with",
        ),
        (
            lambda: ln.queries(DOMAIN, age=ln.ranges([(16, 18)])),
            "range on age must be two whole numbers with 17 <= low <= high <= 21; got \\[16, 18\\]",
        ),
        (lambda: ln.queries(DOMAIN, age=ln.ranges([(19, 18)])), "17 <= low <= high <= 21"),
        (
            lambda: ln.queries(DOMAIN, code=ln.ranges([(True, 2)])),
            "two whole numbers with 0 <= low <= high <= 2; got \\[True, 2\\]",
        ),
        (
            lambda: SEX.within(margin=5) + SEX.within(margin=6),
            "'sex' is requested twice with two targets or two sizes",
        ),
        (
            lambda: SEX.within(size=5) + SEX.within(size=6),
            "'sex' is requested twice with two targets or two sizes",
        ),
        (
            lambda: ln.queries(DOMAIN, income=ln.ranges([(0, 30)])),
            (
                "two different edges of its bins, the lower first; got \\[0, 30\\]. The bins are "
                "25 wide. The nearest edges are 25, 50."
            ),
        ),
        (lambda: ln.queries(DOMAIN, age=ln.ranges([])), "ranges must have at least one range"),
        (
            lambda: ln.queries(DOMAIN, age=QuerySet("prefix", ((1,),))),
            "prefix must have no arguments; got 1",
        ),
        (lambda: ln.queries(DOMAIN, age=ln.ranges([(1, 2, 3)])), "must be a pair"),
        (
            lambda: ln.queries(DOMAIN, sex=ln.predicates([["X"]])),
            "predicate on sex must be made of its cells \\(F, M\\); got 'X'",
        ),
        (
            lambda: ln.queries(DOMAIN, sex=ln.matrix([[1]])),
            "every row of the matrix on sex must be 2 whole numbers",
        ),
        (
            lambda: ln.queries(DOMAIN, sex=ln.matrix([[0.5, 1]])),
            "matrix must be rows of whole numbers",
        ),
        (lambda: QuerySet("spiral"), "a query set must be one of"),
        (
            lambda: ln.marginals(DOMAIN, ways=1) + ln.marginals(ln.Domain(a=["x"]), ways=1),
            "two different domains",
        ),
    ],
)
def test_workload_refuses_invalid_queries(make, message):
    with pytest.raises(ln.InputError, match=message):
        make()


STORES = ["Kiel", "Mainz", "Flensburg", "Worms"]
REGION = {"Kiel": "north", "Mainz": "south", "Flensburg": "north", "Worms": "south"}


def test_level_is_the_sums_of_its_cells():
    town = ln.Categories(STORES, outside="other", levels={"region": REGION})
    domain = ln.Domain(
        town=town,
        age=ln.Integers(13, 22, levels={"five": {"width": 5}}),
        month=ln.Dates("2024-02-01", "2025-01-31", "month"),
    )
    product = ln.queries(domain, town=ln.level("region"), age={"level": "five"}).products[0]
    assert product.name == "town:region x age:five"
    assert product.labels == (("north", "south", "other"), ("13 .. 14", "15 .. 19", "20 .. 22"))
    assert np.asarray(dense(product.operators[0])).tolist() == [
        [1, 0, 1, 0, 0],
        [0, 1, 0, 1, 0],
        [0, 0, 0, 0, 1],
    ]
    assert np.asarray(dense(product.operators[1])).sum(axis=1).tolist() == [2, 5, 3]
    quarters = ln.queries(domain, month=ln.level("quarter")).products[0]
    assert quarters.labels == (("2024-Q1", "2024-Q2", "2024-Q3", "2024-Q4", "2025-Q1"),)
    assert np.asarray(dense(quarters.operators[0])).sum(axis=1).tolist() == [2, 3, 3, 3, 1]
    assert from_json(domain, ln.queries(domain, town=ln.level("region")).to_json()) == ln.queries(
        domain, town=ln.level("region")
    )


def test_ranges_of_kinds_use_their_own_values():
    domain = ln.Domain(
        price=ln.Edges([0, "9.99", 50, 500]),
        height=ln.Decimals(1, 2, "0.5"),
        month=ln.Dates("2024-01-01", "2024-12-31", "month"),
    )
    product = ln.queries(
        domain,
        price=ln.ranges([("0", 50)]),
        height=ln.ranges([(1, "1.5")]),
        month=ln.ranges([("2024-02", "2024-04")]),
    ).products[0]
    assert [(op.low.tolist(), op.high.tolist()) for op in product.operators] == [
        ([0], [1]),
        ([0], [1]),
        ([1], [3]),
    ]
    assert ln.queries(domain, price="prefix").products[0].labels == (("< 9.99", "< 50", "<= 500"),)
    with pytest.raises(
        ln.InputError,
        match=(
            r"a range on height must be two of its cells \(1 to 2\), the lower first; got \[2, "
            r"1\].$"
        ),
    ):
        ln.queries(domain, height=ln.ranges([(2, 1)]))


@pytest.mark.parametrize(
    ("ranges", "message"),
    [
        ({"price": (0, 10)}, "got [0, 10]. The nearest edges are 9.99, 50."),
        ({"price": (-1, 600)}, "got [-1, 600]. The nearest edges are 0, 500."),
        ({"price": (7, "9.99")}, "got [7, '9.99']. The nearest edges are 0, 9.99."),
        ({"price": (50, 50)}, "got [50, 50]."),
        ({"third": (0, "0.34")}, "The bins are 1/3 wide. The nearest edges are 1/3, 2/3."),
        (
            {"height": ("1.2", 2)},
            "(1 to 2), the lower first; got ['1.2', 2]. The nearest values are 1, 1.5.",
        ),
        ({"height": (0, 3)}, "got [0, 3]. The nearest values are 1, 2."),
    ],
)
def test_range_off_the_edges_names_the_nearest(ranges, message):
    domain = ln.Domain(
        price=ln.Edges([0, "9.99", 50, 500]),
        third=ln.Bins(0, 1, 3),
        height=ln.Decimals(1, 2, "0.5"),
    )
    with pytest.raises(ln.InputError) as refused:
        ln.queries(domain, {name: ln.ranges([pair]) for name, pair in ranges.items()})
    assert str(refused.value).endswith(message)
