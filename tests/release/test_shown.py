"""Representations of values in notebooks, and sums of released cells."""

import altair as alt
import numpy as np
import pandas as pd
import pytest

import leastnoise as ln
from example_releases import example_plan, example_release
from leastnoise._planning import plan as planned
from leastnoise._trusted.check import InputError


def test_release_repr_is_short_with_size_and_error(release):
    assert repr(release).startswith("Release(31 answers in 9 tables; ")
    assert "NOT PRIVATE" in repr(release)
    table = release.tables["q4"]
    assert repr(table).startswith("AnswerTable(q4 'age:prefix': 5 answers, typical margin ")
    assert len(repr(release.workload)) < 80
    for value in (release, table, release.tables["q1"]):
        page = value._repr_html_()
        assert page.startswith("<table>")
        assert "<b>a" not in page
        assert len(page) < 5000
    ages = ln.queries(ln.Domain(age=ln.Integers(0, 99)).as_complete(), age="identity")
    assert "88 more" in example_release(example_plan(ages)).tables[0]._repr_html_()


def test_plan_repr_shows_queries_cost_and_errors():
    plan = example_plan()
    assert repr(plan).startswith("Plan(size: 31 answers in 9 tables, error / least possible: ")
    assert f"error / least possible: {plan.expected_error().times_least:.3f}" in repr(plan)
    assert "standard error" in plan._repr_html_()
    one_table = ln.plan(
        ln.queries(ln.Domain(sex=["F", "M"]).as_complete(), sex="identity"), ln.PureDP(1)
    )
    assert repr(one_table).startswith("Plan(size: 2 answers in one table, error / least possible: ")
    women = ln.release(one_table, pd.DataFrame({"sex": ["F"] * 1200}), seed=1).sum(
        "sex", where={"sex": ["F"]}
    )
    assert repr(women).startswith(f"AnswerTable(q1 'sex:predicates': {women.answer.item():,.0f} ± ")
    assert isinstance(plan.plot(), alt.TopLevelMixin)
    drawn = {row["k0"]: row["typical"] for row in plan.plot().to_dict()["datasets"].popitem()[1]}
    assert drawn["age:prefix"] == pytest.approx(
        plan.data_independent_error.tables[3].rmse, rel=1e-5
    )
    assert "sum of pay by sex" not in drawn


def test_every_table_but_a_number_is_a_live_chart(release):
    for table in release.tables[1:]:
        assert isinstance(release.plot(table.id), alt.TopLevelMixin)
    with pytest.raises(InputError, match="single number"):
        release.plot("q1")


def test_frames_have_numbers_and_dates():
    domain = ln.Domain(
        pay=ln.Bins(0, 10, 4), day=ln.Dates("2024-01-01", "2024-04-30", "month"), sex=["F", "M"]
    ).as_complete()
    release = example_release(
        example_plan(
            ln.queries(domain, pay="prefix", sex="identity") + ln.queries(domain, day="identity")
        )
    )
    frame = release.tables[0].frame("polars")
    days = release.frame("q2", "polars")["day_start"]
    assert frame.columns == [
        "query",
        "pay",
        "pay_low",
        "pay_high",
        "sex",
        "answer",
        "noise_std",
        "low",
        "high",
    ]
    assert frame["pay_high"].unique().sort().to_list() == [2.5, 5.0, 7.5, 10.0]
    assert days.dtype.is_temporal()
    assert str(days[1])[:10] == "2024-02-01"


def test_sums_of_cells_have_the_error_of_a_sum():
    domain = ln.Domain(sex=["F", "M"], age=ln.Integers(17, 21)).as_complete()
    plan = planned(
        ln.queries(domain, sex="identity", age="identity", weight=3)
        + ln.queries(domain, age="prefix"),
        ln.PureDP("1/3"),
    )
    release = example_release(plan)
    chosen = np.zeros((2, 5))
    chosen[1, 1:4] = 1
    cell_sum = release.sum("sex x age", {"sex": "M", "age": (18, 20)})
    answers = release.tables["sex x age"].answer
    covariance = release.covariance("sex x age")
    assert cell_sum.answer.item() == pytest.approx((answers * chosen).sum())
    assert cell_sum.noise_std.item() ** 2 == pytest.approx(
        chosen.reshape(-1) @ covariance @ chosen.reshape(-1)
    )
    for where in (None, {"sex": ["F", "M"]}):
        assert release.sum("sex x age", where).answer.item() == pytest.approx(answers.sum())


@pytest.mark.parametrize("where", [{"zone": "x"}, {"sex": "x"}, {"sex": []}])
def test_sums_of_missing_cells_are_refused(release, where):
    with pytest.raises(InputError):
        release.sum("q2", where)


def test_means_have_labels_and_a_chart_of_dots():
    domain = ln.Domain(
        sex=["F", "M"], measures={"pay": ln.Measure("pay", 0, 500, unit="0.25")}
    ).as_complete()
    people = pd.DataFrame({"sex": ["F", "M"] * 90, "pay": [90, None] * 90})
    means = ln.means(
        ln.release(
            ln.plan(ln.mean_queries(domain, "pay", by=["sex"]), ln.PureDP(1)), people, seed=1
        ),
        "pay",
        by=["sex"],
    )
    assert [row[:2] for row in means.rows()] == [("sex=F", means.mean[0]), ("sex=M", means.mean[1])]
    assert "mean of pay by sex" in means._repr_html_()
    assert "<td>F</td>" in means._repr_html_()
    assert isinstance(means.plot(), alt.TopLevelMixin)
