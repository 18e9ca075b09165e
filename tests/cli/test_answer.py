"""``leastnoise answer``: further answers from a release directory, through the program."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import leastnoise as ln
from cli.conftest import assert_contains, edit, files

SPEC = """\
[source]
path = "people.csv"
[privacy]
epsilon = "20"
unit = { column = "id", max_rows = 2 }
[domain.sex]
categories = ["F", "M"]
[domain.age]
integers = [17, 90]
[domain.income]
bins = { low = 0, high = 1000, count = 10 }
[measures.pay]
column = "income"
clip = [0, 1000]
[[workload]]
queries = { sex = "identity", age = "identity" }
[[workload]]
means = { of = "pay", by = ["sex"] }
[[workload]]
queries = { income = "identity" }
[plan]
strategy = "workload"
"""
SALES = """\
[source]
path = "sales.csv"
[privacy]
epsilon = "least"
[domain.store]
categories = ["s0", "s1", "s2", "s3", "s4", "s5"]
levels.region = { groups = { north = ["s0", "s1"], south = ["s2", "s3", "s4", "s5"] } }
[domain.age]
integers = [0, 9]
outside = "clip"
[measures.pay]
clip = [0, 100]
[[workload]]
means = { of = "pay", by = BY }
size = 1000
margin = 2
[[workload]]
quantiles = { of = "age", at = ["0.5"], by = BY }
[[workload]]
cdf = { of = "age", by = BY }
[[workload]]
marginals = { ways = 1, of = BY }
rmse = 20
[[workload]]
queries = { age = "identity", store = "identity" }
margin = 40
[plan]
strategy = "workload"
[output]
formats = ["csv", "xlsx", "parquet"]
"""


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    return tmp_path_factory.mktemp("kept") / "people"


@pytest.fixture
def released(folder, run, kept) -> Path:
    """Return a copy of a release."""
    if not kept.exists():
        rows = "".join(f"{i},{'FM'[i % 2]},{17 + i % 74},{i % 1000}\n" for i in range(2000))
        (folder / "people.csv").write_text("id,sex,age,income\n" + rows, encoding="utf-8")
        (folder / "people.toml").write_text(SPEC, encoding="utf-8")
        result = run.succeeds("release", "people.toml", "--out", "out", "--seed", "3")
        assert_contains(result.out, "Counts are of at most 2 rows of every value of 'id'")
        shutil.copytree(folder, kept)
    shutil.copytree(kept, folder, dirs_exist_ok=True)
    return folder / "out"


def answers(run, *arguments: str) -> list[dict[str, Any]]:
    return run.json("answer", "out", *arguments)["answers"]


def test_answer_gives_exact_errors_for_conditions(released, run):
    ranges = ("--ranges", "age=20..39", "--ranges", "age=40..90")
    both_sexes, women = answers(run, *ranges), answers(run, *ranges, "--where", "sex=F")
    assert [row["cell"] for row in both_sexes] == ["age=20 .. 39", "age=40 .. 90"]
    truth = [
        sum(20 <= 17 + i % 74 <= 39 for i in range(2000)),
        sum(17 + i % 74 >= 40 for i in range(2000)),
    ]
    assert all(
        abs(row["answer"] - exact) < 6 * row["noise_std"]
        for row, exact in zip(both_sexes, truth, strict=True)
    )
    assert all(0 < row["noise_std"] < 10 for row in both_sexes)
    assert women[0]["noise_std"] < both_sexes[0]["noise_std"]
    release = ln.read_release(released)
    (table,) = release.answer(ln.queries(release.plan.domain, age=ln.ranges([(20, 39), (40, 90)])))
    assert [row["answer"] for row in both_sexes] == pytest.approx(table.answer.tolist())
    assert list(table.frame("polars").columns) == [
        "query",
        "age",
        "age_low",
        "age_high",
        "answer",
        "noise_std",
        "low",
        "high",
    ]


def test_answer_fits_beside_a_long_condition(released, run):
    ages = [word for age in range(20, 90, 2) for word in ("--where", f"age={age}")]
    line = run("answer", "out", *ages).out.splitlines()[3]
    assert line.startswith("age=20 or 22 or 24")
    assert " ... " in line
    assert len(line.split(" or 88 ")[1].split()) == 4
    (row,) = answers(run, *ages)
    assert row["cell"] == "age=" + " or ".join(map(str, range(20, 90, 2)))
    (row,) = answers(run, *[word for age in (20, 21, 22, 30) for word in ("--where", f"age={age}")])
    assert row["cell"] == "age=20 .. 22 or 30"


def test_answer_covers_cdfs_quantiles_and_means(released, run):
    band = answers(run, "--cdf", "age", "--where", "sex=F", "--where", "sex=M")
    assert (band[0]["age"], band[-1]["age"], band[-1]["share"]) == (17, 90, 1)
    (median,) = answers(run, "--quantiles", "age=0.5", "--level", "0.9")
    assert median["low"] <= 53 <= median["high"]
    halves, means = (
        answers(run, "--quantiles", "age=0.5", "--cells", "sex"),
        answers(run, "--means", "pay", "--cells", "sex"),
    )
    assert [row["cell"] for row in halves] == [row["cell"] for row in means] == ["sex=F", "sex=M"]
    assert all(
        row["low"] <= exact <= row["high"] for row, exact in zip(halves, (53, 54), strict=True)
    )
    assert means[0]["low"] <= 499 <= means[0]["high"]
    bands = answers(run, "--cdf", "age", "--cells", "sex")
    assert [(row["cell"], row["age"], row["share"]) for row in bands[73::74]] == [
        ("sex=F", 90, 1),
        ("sex=M", 90, 1),
    ]
    (total,) = answers(run, "--sum", "pay", "--where", "sex=F")
    assert total["low"] <= sum(i % 1000 for i in range(0, 2000, 2)) <= total["high"]


def test_answer_shows_whole_counts_and_exact_shares(released, run):
    rows = [
        line.split()
        for line in run("answer", "out", "--quantiles", "age=0.25,0.5").out.splitlines()[3:5]
    ]
    assert [row[0] for row in rows] == ["0.25", "0.5"]
    assert all(number.isdecimal() for row in rows for number in row[1:])
    first_row = run("answer", "out", "--cdf", "age").out.splitlines()[3].split()
    assert first_row[0] == "17"
    assert len(first_row[1].lstrip("0.")) == 4  # a share of which four digits count


def test_answer_refuses_means_without_sums(folder, run):
    edit(folder, ('[measures.pay]\ncolumn = "income"\nclip = [0, 1000]\n', ""))
    run.succeeds("release", "people.toml", "--out", "out", "--seed", "3")
    run.is_refused(
        "--means must be a measure that the release sums, and it sums none; got 'age'",
        "answer",
        "out",
        "--means",
        "age",
    )


def test_answer_takes_date_ranges_by_period(folder, run):
    (folder / "people.csv").write_text(
        "day;pay\n" + "2024-02-03;1.000,5 EUR\n" * 50, encoding="utf-8"
    )
    dates = (
        "[privacy]\nepsilon = 20\n[domain.day]\n"
        'dates = { from = "2024-01-01", to = "2024-12-31", by = "month" }\n'
        '[measures.pay]\nclip = [0, 2000]\n[[workload]]\nqueries = { day = "identity" }\n'
        'sum = "pay"\n'
    )
    source = '[source]\npath = "people.csv"\ndecimal = ","\nthousands = "."\ncurrency = ["EUR"]\n'
    (folder / "people.toml").write_text(
        source + dates + "[[workload]]\nmarginals = { ways = 1 }\n", encoding="utf-8"
    )
    run.succeeds("release", "people.toml", "--out", "out", "--seed", "3")
    (first_quarter,) = answers(run, "--ranges", "day=2024-01..2024-03")
    assert first_quarter["cell"] == "day=2024-01 .. 2024-03"
    assert first_quarter["low"] <= 50 <= first_quarter["high"]
    # The format of numbers is read again with the plan.
    (total,) = answers(run, "--ranges", "day=2024-01..2024-03", "--sum", "pay")
    assert total["low"] <= 50_025 <= total["high"]
    for ends in ("2024-01..2024-13", "1..3"):
        message = "a range on day must be two of its cells (2024-01 to 2024-12), the lower first"
        run.is_refused(message, "answer", "out", "--ranges", f"day={ends}")


def test_answer_of_rounded_release_is_unrounded(released, run):
    (released.parent / "people.toml").write_text(
        SPEC + "[output]\nround = 5\nbelow = 10\n", encoding="utf-8"
    )
    run.succeeds("release", "people.toml", "--out", "rounded", "--seed", "3")
    output = run.json("answer", "rounded", "--cells", "age")
    assert any(row["answer"] % 5 for row in output["answers"])
    notes = " ".join(output["notes"])
    assert_contains(
        notes,
        "Counts are of at most 2 rows of every value of 'id'",
        "these answers are not rounded",
    )
    assert "Answers are rounded" not in notes


ASK = "Ask for the table sex x income in the workload of a release."


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "Choose one: --cells"),
        (("--cdf", "age", "--means", "pay"), "answer computes one kind of answer per call"),
        (("--ranges", "age=20-30"), "must be NAME=LOW..HIGH, such as age=20..39"),
        (("--ranges", "ages=20..30"), "with one of sex, age, income"),
        (("--ranges", "age=a..30"), "an end of a range on age must be a finite number"),
        (("--ranges", "age=20..99"), "a range on age must be"),
        (
            ("--ranges", "income=0..0.5"),
            "two different edges of its bins, the lower first; got [0, '0.5']",
        ),
        (("--where", "sex=X"), "a predicate on sex must be"),
        (("--where", "age=20", "--cells", "age"), "age is selected twice"),
        (("--quantiles", "age"), "with one of sex, age, income; got 'age'.\n"),
        (("--quantiles", "age=half"), "with numbers, such as age=0.25,0.5,0.75"),
        (("--quantiles", "age=0"), "a quantile must be a number above 0"),
        (("--cells", "zone"), "zone"),
        (("--means", "pay", "--where", "sex=F"), "Means cannot be restricted with --where"),
        (("--cells", "sex", "--level", "2"), "level must be"),
        (("--cells", "sex", "--sum", "height"), "height"),
        # what was not measured is refused with what to ask for
        (("--cells", "income", "--where", "sex=F"), ASK),
        (("--quantiles", "income=0.5", "--where", "sex=F"), ASK),
        (("--means", "pay", "--cells", "age"), "Ask for the sums of pay by age in the workload"),
    ],
)
def test_bad_questions_are_one_sentence(released, run, arguments, message):
    run.is_refused(message, "answer", "out", *arguments)


def test_unwritten_set_is_answered_from_cells_and_prefixes(folder, run):
    values = np.random.default_rng(1).integers(0, 2**16, 5000)
    (folder / "people.csv").write_text("x\n" + "\n".join(map(str, values)) + "\n", encoding="utf-8")
    spec = (
        '[source]\npath = "people.csv"\n[privacy]\nepsilon = "1"\n[domain.x]\n'
        f"integers = [0, {2**16 - 1}]\n"
        '[[workload]]\nqueries = { x = "all_ranges" }\n[plan]\nstrategy = "hierarchy"\n[output]\n'
        'formats = ["parquet"]\n'
    )
    (folder / "people.toml").write_text(spec, encoding="utf-8")
    result = run.succeeds("release", "people.toml", "--out", "out", "--seed", "3")
    message = (
        "x (every range) has 2,147,516,416 answers, too many to write (over 10,000,000 a table). "
    )
    message += "In its place are its cells (q1) and"
    manifest = json.loads((folder / "out" / "manifest.json").read_text(encoding="utf-8"))
    for page in (
        result.out,
        manifest["answers"]["too_large_to_write"][0],
        (folder / "out/report.html").read_text(encoding="utf-8"),
    ):
        assert_contains(page, message)
    assert manifest["expected_error"]["error_bars_are_as_promised"]
    assert files(folder / "out" / "answers") == ["q1-x.parquet", "q2-x-prefix.parquet"]
    cells, prefix = ln.read_release(folder / "out").tables
    assert (cells.name, prefix.name) == ("x", "x:prefix")
    np.testing.assert_allclose(np.cumsum(cells.answer), prefix.answer, atol=1e-6)
    wide_range, narrow_range = answers(run, "--ranges", "x=1000..50000", "--ranges", "x=7..7")
    assert wide_range["answer"] == pytest.approx(prefix.answer[50000] - prefix.answer[999])
    assert (
        abs(wide_range["answer"] - ((values >= 1000) & (values <= 50000)).sum())
        < 6 * wide_range["noise_std"]
    )
    assert wide_range["noise_std"] < np.hypot(prefix.noise_std[50000], prefix.noise_std[999])
    assert narrow_range["noise_std"] == pytest.approx(cells.noise_std[7])


def test_show_prints_a_release_or_one_table(released, run):
    parts = (
        "162 answers in 4 tables",
        "epsilon = 20",
        "NOT PRIVATE",
        "Counts are of at most 2 rows",
        "sum of pay by sex",
        "█",
    )
    assert_contains(run.succeeds("show", "out").out, *parts)
    assert_contains(
        run("show", "out", "sex x age").out, "sex=F, age=17", "The first 60 of 148 answers"
    )
    assert run("show", "out", "zip").code == 2
    for command in (("show", "nowhere"), ("answer", "nowhere", "--cells", "sex")):
        run.is_refused("There is no release in 'nowhere'", *command)


def test_covariances_of_a_table_are_told(released, run):
    rows = answers(run, "--covariances", "q2")
    matrix = ln.read_release(released).covariance("q2")
    assert [row["covariance"] for row in rows] == [matrix[0, 0], matrix[0, 1], matrix[1, 1]]
    assert (rows[1]["cell"], rows[1]["other_cell"]) == ("sex=F", "sex=M")


def test_levels_stand_wherever_attributes_do(folder, run):
    random = np.random.default_rng(5)
    store, age = random.integers(0, 6, 3000), random.integers(0, 10, 3000)
    rows = "".join(
        f"s{store_number},{age_number},{10 * age_number + store_number}\n"
        for store_number, age_number in zip(store, age, strict=True)
    )
    (folder / "sales.csv").write_text("store,age,pay\n" + rows, encoding="utf-8")
    (folder / "sales.toml").write_text(
        SALES.replace("BY", '[{ store = { level = "region" } }]'), encoding="utf-8"
    )
    run.succeeds("release", "sales.toml", "--out", "out", "--seed", "3")
    shown = run("show", "out", "s1").out
    assert_contains(shown, "mean of pay by store:region", "north")
    assert re.search(r"store:region +mean", shown)
    assert "mean of pay by store:region" in (folder / "out" / "report.html").read_text(
        encoding="utf-8"
    )
    heads = {
        file.name[:2]: file.read_text(encoding="utf-8").split(",")[1]
        for file in (folder / "out" / "answers").glob("*.csv")
    }
    assert heads == dict.fromkeys(heads, "store:region") | {"q5": "store"}
    tables = json.loads((folder / "out/manifest.json").read_text())["answers"]["tables"]
    assert [table["key_columns"][0] for table in tables][:2] == ["store:region"] * 2
    north, pay, regions = store < 2, 10 * age + store, ["store:region=north", "store:region=south"]
    means = answers(run, "--means", "pay", "--cells", "store:region")
    assert [row["cell"] for row in means] == regions
    assert all(
        abs(row["mean"] - pay[rows_of_region].mean()) < 3
        for row, rows_of_region in zip(means, (north, ~north), strict=True)
    )
    count = answers(run, "--cells", "store:region", "--where", "age=3")[0]
    assert abs(count["answer"] - (north & (age == 3)).sum()) < 6 * count["noise_std"]
    conditional = answers(run, "--quantiles", "age=0.5", "--where", "store:region=north")
    assert conditional == answers(
        run, "--quantiles", "age=0.5", "--where", "store=s0", "--where", "store=s1"
    )
    assert [
        row["cell"] for row in answers(run, "--cdf", "age", "--cells", "store:region")[::10]
    ] == regions
    run.is_refused(
        "a level must be one of 'region'; got 'county'",
        "answer",
        "out",
        "--means",
        "pay",
        "--cells",
        "store:county",
    )
    run.is_refused(
        "one of north, south; got 'east'",
        "answer",
        "out",
        "--cells",
        "age",
        "--where",
        "store:region=east",
    )


LINE = """\
[source]
path = "flats.csv"
[privacy]
rho = "20"
[domain.city]
categories = ["Kiel", "Mainz"]
[measures.rent]
clip = [0, 1000]
[measures.area]
clip = [0, 100]
[[workload]]
correlations = { of = ["rent", "area"], by = ["city"] }
size = 500
[[workload]]
regression = { of = "rent", on = ["area"] }
size = 1000
[plan]
strategy = "workload"
"""


def test_answer_gives_correlations_and_regressions(folder, run):
    rows = [(("Kiel", "Mainz")[i % 2], 100 + 7 * (i % 90), i % 90) for i in range(1000)]
    lines = "".join(f"{city},{rent},{area}\n" for city, rent, area in rows)
    (folder / "flats.csv").write_text("city,rent,area\n" + lines + "Kiel,,50\n", encoding="utf-8")
    (folder / "flats.toml").write_text(LINE, encoding="utf-8")
    planned = run.json("plan", "flats.toml")["statistics"]
    assert [[*statistic["parts"]] for statistic in planned] == [
        ["rent x area"],
        ["(intercept)", "area"],
    ]
    run.succeeds("release", "flats.toml", "--out", "out", "--seed", "3")
    by_city = answers(run, "--correlations", "rent,area", "--cells", "city")
    assert [row["cell"] for row in by_city] == ["city=Kiel", "city=Mainz"]
    assert all(row["low"] <= 1 and row["correlation"] > 0.9 for row in by_city)
    (determined,) = answers(run, "--r-squared", "rent=area")
    assert 0 <= determined["low"] <= determined["r_squared"] <= determined["high"] <= 1
    run.refused("--r-squared must be MEASURE=MEASURE", "answer", "out", "--r-squared", "rent")
    intercept, slope = answers(run, "--regression", "rent=area")
    assert (intercept["term"], slope["term"]) == ("(intercept)", "area")
    assert abs(slope["coefficient"] - 7) < 5 * slope["std_error"]
    assert abs(intercept["coefficient"] - 100) < 5 * intercept["std_error"]
    assert_contains(run("show", "out", "s2").out, "regression of rent on area", "(intercept)")
    run.is_refused("--regression must be MEASURE=MEASURE", "answer", "out", "--regression", "rent")
    run.is_refused("2 to 11 measures", "answer", "out", "--correlations", "rent")


def test_further_answers_name_the_rows_they_leave_out(folder, run):
    """Every table has both attributes, so answers on one lack rows without the other."""
    (folder / "two.csv").write_text("g,h\n" + "a,x\na,\nb,y\n" * 50, encoding="utf-8")
    (folder / "two.toml").write_text(
        '[source]\npath = "two.csv"\n[privacy]\nepsilon = "100"\n[domain.g]\n'
        'categories = ["a", "b"]\n'
        'complete = true\n[domain.h]\ncategories = ["x", "y"]\n[[workload]]\n'
        "marginals = { ways = 2 }\n",
        encoding="utf-8",
    )
    assert run("release", "two.toml", "--out", "two", "--seed", "1").code == 0
    sentence = "Rows with a missing or outside value of g or h are in no table."
    for arguments in (["answer", "two", "--cells", "g"], ["show", "two", "q1"]):
        assert sentence in " ".join(run(*arguments).out.split())
    notes = json.loads(run("difference", "two", "g=a", "g=b", "--json").out)["notes"]
    assert sentence in notes
