"""Means leave rows without a value out of sum and count, and releases report clipping."""

from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import leastnoise as ln
from leastnoise._spec import parse_spec
from leastnoise._texts import load_catalogue
from leastnoise._trusted.check import InputError
from session.releasing import manifest, report

RNG = np.random.default_rng(6)
ROWS = 5_000
SEX = RNG.choice(["f", "m"], ROWS)
PAY = np.where(SEX == "f", 29_000, 36_000) + RNG.integers(-9_000, 9_000, ROWS)
MISSING = RNG.random(ROWS) < 0.06
PEOPLE = pd.DataFrame({"sex": SEX, "pay": np.where(MISSING, np.nan, PAY)})
SPEC = """
[privacy]
epsilon = "100"
[domain.sex]
categories = ["f", "m"]
[domain.pay]
bins = { low = LOW, high = 90000, count = 90 }
outside = "clip"
null = "other"
[measures.pay]
clip = [LOW, 90000]
[[workload]]
means = { of = "pay", by = ["sex"] }
[[workload]]
quantiles = { of = "pay", at = ["0.5"], by = ["sex"] }
[[workload]]
cdf = { of = "pay", by = ["sex"] }
"""


def make_spec(low, null="other"):
    """Return the spec with a lower bound of pay and a rule for missing values."""
    return parse_spec(
        SPEC.replace("LOW", str(low)).replace('null = "other"', f'null = "{null}"'),
        Path("/nowhere"),
    )


def sources():
    """Return the same rows in each kind of source."""
    text = pd.DataFrame({"sex": SEX, "pay": np.where(MISSING, "unknown", PAY.astype(str))})
    return {
        "pandas": PEOPLE,
        "polars": pl.DataFrame(
            {
                "sex": SEX,
                "pay": [
                    None if is_missing else int(pay)
                    for pay, is_missing in zip(PAY, MISSING, strict=True)
                ],
            }
        ),
        "arrow": pa.table({"sex": SEX, "pay": pa.array(PAY.astype(float), mask=MISSING)}),
        "text that is no number": text,
        "engine": duckdb.from_arrow(pa.table({"sex": SEX, "pay": pa.array(PAY, mask=MISSING)})),
    }


@pytest.mark.slow
@pytest.mark.parametrize(("low", "null"), [(0, "other"), (10_000, "other"), (0, "drop")])
def test_means_and_medians_use_values_of_any_rows(low, null):
    """Six in a hundred rows lack a value; medians and shares leave them out as well."""
    spec = make_spec(low, null=null)
    plan = ln.plan(spec.workload, spec.privacy, strategy="identity")
    assert {block.measure for block in plan.measured().blocks if block.ends} == {"pay"}
    all_sources = sources()
    for name in all_sources if (low, null) == (0, "other") else ("pandas", "engine"):
        release = ln.release(plan, all_sources[name], seed=3)
        means, medians, shares = (release.statistics[number] for number in range(3))
        for number, sex in enumerate(("f", "m")):
            values = PAY[(sex == SEX) & ~MISSING]
            assert means.low[number] <= values.mean() <= means.high[number], name
            assert means.high[number] - means.low[number] < 20
            assert release.tables["count of pay by sex"].answer[number] == pytest.approx(
                len(values), abs=30
            )
            assert release.tables["sum of pay by sex"].answer[number] == pytest.approx(
                values.sum(), rel=2e-4
            )
            assert medians.values[number, 0] == pytest.approx(np.median(values), abs=1_100)
            assert shares.values[number, -1] == 1
        assert release.tables["count of pay by sex"].product.values_of == "pay"


@pytest.fixture(scope="module")
def plan_of_means():
    """Return a plan of means, medians and shares of pay, which is clipped at 10,000."""
    spec = make_spec(10_000)
    return ln.plan(spec.workload, spec.privacy, strategy="identity")


@pytest.fixture(scope="module")
def folder_of_release(plan_of_means, tmp_path_factory):
    """Return the folder of a release of means."""
    folder = tmp_path_factory.mktemp("means") / "out"
    ln.release(plan_of_means, PEOPLE, seed=1, out=folder)
    return folder


def test_manifest_names_the_count_of_values(folder_of_release):
    record = manifest(folder_of_release)
    (entry,) = [
        table for table in record["answers"]["tables"] if table["measure"] == "count of pay"
    ]
    assert (entry["name"], entry["unit"]) == ("count of pay by sex", "row")
    assert any(
        "a null, and text that is no number, is none" in rule for rule in record["domain"]["rules"]
    )


def test_report_states_count_of_values_and_clipping(folder_of_release, plan_of_means):
    page = report(folder_of_release)
    assert (
        "In means and sums of pay a value below 10,000 counts as 10,000 and one above 90,000 as "
        "90,000; rows without a value" in page
    )
    assert "rows without a value add nothing to a sum and are left out of a mean" in (
        plan_of_means._repr_html_()
    )
    assert "rows with a value of pay" in page
    assert "Rows without a value are left out of both" in page


def test_clipping_is_stated_in_german():
    german = load_catalogue("de").say("clipped_means", name="pay", low="1", high="2")
    assert german.startswith("In Mittelwerten und Summen von pay zählt ein Wert unter 1")


PAY_BY_SEX = ln.Domain(sex=["f", "m"], measures={"pay": ln.Measure("pay", 0, 90_000)})


def test_mean_without_a_count_of_values_is_refused():
    rows = ln.queries(PAY_BY_SEX, sex="identity")
    sums = ln.queries(PAY_BY_SEX, sex="identity", sum="pay")
    release = ln.release(ln.plan(rows + sums, ln.PureDP(1)), PEOPLE, seed=1)
    with pytest.raises(
        InputError,
        match=(
            r"A mean of pay needs measurements of its sums and of the number of its values.*"
            r"count = \"pay\""
        ),
    ):
        ln.means(release, "pay", by=["sex"])


def test_count_of_values_can_be_requested_separately():
    rows = ln.queries(PAY_BY_SEX, sex="identity")
    sums = ln.queries(PAY_BY_SEX, sex="identity", sum="pay")
    counted = ln.queries(PAY_BY_SEX, sex="identity", count="pay")
    assert [table.name for table in rows + counted] == ["sex", "count of pay by sex"]
    release_of_both = ln.release(ln.plan(counted + sums, ln.PureDP(100)), PEOPLE, seed=1)
    assert ln.means(release_of_both, "pay", by=["sex"]).mean[0] == pytest.approx(
        PAY[(SEX == "f") & ~MISSING].mean(), abs=30
    )


def test_count_and_sum_of_one_query_are_refused():
    with pytest.raises(
        InputError,
        match="count must be left out or \"rows\", because a measure is summed; got 'pay'",
    ):
        ln.queries(PAY_BY_SEX, sum="pay", count="pay")


def test_measure_with_the_name_of_a_count_is_refused():
    domain_with_both_names = ln.Domain(
        sex=["f"], measures={"pay": ln.Measure("pay", 0, 9), "count of pay": ln.Measure("x", 0, 5)}
    )
    with pytest.raises(
        InputError,
        match="the name of a measure must be another one, as a count of units or of values has it",
    ):
        ln.mean_queries(domain_with_both_names, "pay")
