"""Tests of ``leastnoise answer`` and ``show``: further answers from a release directory."""

import json
import re

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


@pytest.fixture
def release_folder(folder, run, prepare_once):
    """Return a release of counts and means, which all tests of it copy."""

    def write_release():
        rows = "".join(f"{i},{'FM'[i % 2]},{17 + i % 74},{i % 1000}\n" for i in range(2000))
        (folder / "people.csv").write_text("id,sex,age,income\n" + rows, encoding="utf-8")
        (folder / "people.toml").write_text(SPEC, encoding="utf-8")
        result = run.succeeds("release", "people.toml", "--out", "out", "--seed", "3")
        assert_contains(result.out, "Counts are of at most 2 rows of every value of 'id'")

    return prepare_once("people", write_release) / "out"


def answers(run, *arguments):
    """Return the answers that ``leastnoise answer`` gives from the release."""
    return run.json("answer", "out", *arguments)["answers"]


def test_answer_gives_exact_errors_for_conditions(release_folder, run):
    ranges = ("--ranges", "age=20..39", "--ranges", "age=40..90")
    both_sexes = answers(run, *ranges)
    women = answers(run, *ranges, "--where", "sex=F")
    assert [row["cell"] for row in both_sexes] == ["age=20 .. 39", "age=40 .. 90"]
    ages = [17 + i % 74 for i in range(2000)]
    exact_counts = [sum(20 <= age <= 39 for age in ages), sum(age >= 40 for age in ages)]
    for row, exact in zip(both_sexes, exact_counts, strict=True):
        assert abs(row["answer"] - exact) < 6 * row["noise_std"]
        assert 0 < row["noise_std"] < 10
    assert women[0]["noise_std"] < both_sexes[0]["noise_std"]

    release = ln.read_release(release_folder)
    (table,) = release.answer(ln.queries(release.plan.domain, age=ln.ranges([(20, 39), (40, 90)])))
    assert [row["answer"] for row in both_sexes] == pytest.approx(table.answer.tolist())
    keys = ["query", "age", "age_low", "age_high"]
    assert list(table.frame("polars").columns) == [*keys, "answer", "noise_std", "low", "high"]


def test_answer_fits_beside_a_long_condition(release_folder, run):
    ages = [word for age in range(20, 90, 2) for word in ("--where", f"age={age}")]
    line = run("answer", "out", *ages).out.splitlines()[3]
    assert line.startswith("age=20 or 22 or 24")
    assert " ... " in line
    assert len(line.split(" or 88 ")[1].split()) == 4
    (row,) = answers(run, *ages)
    assert row["cell"] == "age=" + " or ".join(map(str, range(20, 90, 2)))
    (row,) = answers(run, *[word for age in (20, 21, 22, 30) for word in ("--where", f"age={age}")])
    assert row["cell"] == "age=20 .. 22 or 30"


@pytest.mark.slow
def test_answer_gives_distributions(release_folder, run):
    first, *_, last = answers(run, "--cdf", "age", "--where", "sex=F", "--where", "sex=M")
    assert first["age"] == 17
    assert last["age"] == 90
    assert last["share"] == 1
    by_sex = answers(run, "--cdf", "age", "--cells", "sex")
    last_ages = [(row["cell"], row["age"], row["share"]) for row in by_sex[73::74]]
    assert last_ages == [("sex=F", 90, 1), ("sex=M", 90, 1)]


def test_cells_take_several_names_in_one_option(release_folder, run):
    together = answers(run, "--cells", "sex,age")
    assert together == answers(run, "--cells", "sex", "--cells", "age")
    assert len(together) == 2 * 74


def test_answer_covers_cdfs_quantiles_and_means(release_folder, run):
    (median,) = answers(run, "--quantiles", "age=0.5", "--level", "0.9")
    assert median["low"] <= 53 <= median["high"]
    women, men = answers(run, "--quantiles", "age=0.5", "--cells", "sex")
    assert women["cell"] == "sex=F"
    assert men["cell"] == "sex=M"
    assert women["low"] <= 53 <= women["high"]
    assert men["low"] <= 54 <= men["high"]

    women, men = answers(run, "--means", "pay", "--cells", "sex")
    assert women["cell"] == "sex=F"
    assert men["cell"] == "sex=M"
    assert women["low"] <= 499 <= women["high"]
    (total,) = answers(run, "--sum", "pay", "--where", "sex=F")
    assert total["low"] <= sum(i % 1000 for i in range(0, 2000, 2)) <= total["high"]


def test_answer_shows_whole_counts_and_exact_shares(release_folder, run):
    lines = run("answer", "out", "--quantiles", "age=0.25,0.5").out.splitlines()
    rows = [line.split() for line in lines[3:5]]
    assert [row[0] for row in rows] == ["0.25", "0.5"]
    for _, *numbers in rows:
        assert all(number.isdecimal() for number in numbers)
    first_row = run("answer", "out", "--cdf", "age").out.splitlines()[3].split()
    assert first_row[0] == "17"
    assert len(first_row[1].lstrip("0.")) == 4  # a share of four significant digits


def test_answer_refuses_means_without_sums(folder, run):
    edit(folder, ('[measures.pay]\ncolumn = "income"\nclip = [0, 1000]\n', ""))
    run.succeeds("release", "people.toml", "--out", "out", "--seed", "3")
    run.is_refused(
        "--means must be a measure whose sums the release has, but the release has no sums; got "
        "'age'",
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


def test_answer_of_rounded_release_is_unrounded(release_folder, run):
    (release_folder.parent / "people.toml").write_text(
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


ASK_FOR_TABLE = "Ask for the table sex x income in the workload of a release."


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
        # The refusal of an answer that was not measured says what to ask for.
        (("--cells", "income", "--where", "sex=F"), ASK_FOR_TABLE),
        (("--quantiles", "income=0.5", "--where", "sex=F"), ASK_FOR_TABLE),
        (("--means", "pay", "--cells", "age"), "Ask for the sums of pay by age in the workload"),
    ],
)
def test_bad_questions_are_one_sentence(release_folder, run, arguments, message):
    run.is_refused(message, "answer", "out", *arguments)


RANGES_SPEC = f"""
[source]
path = "people.csv"
[privacy]
epsilon = "1"
[domain.x]
integers = [0, {2**16 - 1}]
[[workload]]
queries = {{ x = "all_ranges" }}
[plan]
strategy = "hierarchy"
[output]
formats = ["parquet"]
"""


@pytest.fixture
def large_values():
    return np.random.default_rng(1).integers(0, 2**16, 5000)


@pytest.fixture
def ranges_release(folder, run, prepare_once, large_values):
    """Return a release of all ranges of 2**16 values, which are too many to write."""

    def write_release():
        lines = "\n".join(map(str, large_values))
        (folder / "people.csv").write_text(f"x\n{lines}\n", encoding="utf-8")
        (folder / "people.toml").write_text(RANGES_SPEC, encoding="utf-8")
        result = run.succeeds("release", "people.toml", "--out", "out", "--seed", "3")
        (folder / "output.txt").write_text(result.out)

    return prepare_once("ranges", write_release) / "out"


def test_unwritten_set_is_stated_everywhere(ranges_release):
    message = (
        "x (every range) has 2,147,516,416 answers, too many to write (over 10,000,000 a table). "
        "In its place are its cells (q1) and"
    )
    manifest = json.loads((ranges_release / "manifest.json").read_text(encoding="utf-8"))
    assert_contains(manifest["answers"]["too_large_to_write"][0], message)
    assert_contains((ranges_release / "report.html").read_text(encoding="utf-8"), message)
    assert_contains((ranges_release.parent / "output.txt").read_text(), message)
    assert manifest["expected_error"]["error_bars_are_as_promised"]
    assert files(ranges_release / "answers") == ["q1-x.parquet", "q2-x-prefix.parquet"]


def test_unwritten_set_is_answered_from_cells_and_prefixes(ranges_release, run, large_values):
    cells, prefix = ln.read_release(ranges_release).tables
    assert cells.name == "x"
    assert prefix.name == "x:prefix"
    np.testing.assert_allclose(np.cumsum(cells.answer), prefix.answer, atol=1e-6)
    wide, narrow = answers(run, "--ranges", "x=1000..50000", "--ranges", "x=7..7")
    assert wide["answer"] == pytest.approx(prefix.answer[50000] - prefix.answer[999])
    exact = ((large_values >= 1000) & (large_values <= 50000)).sum()
    assert abs(wide["answer"] - exact) < 6 * wide["noise_std"]
    assert wide["noise_std"] < np.hypot(prefix.noise_std[50000], prefix.noise_std[999])
    assert narrow["noise_std"] == pytest.approx(cells.noise_std[7])


def test_show_prints_a_release_or_one_table(release_folder, run):
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


def test_answer_prints_covariances_of_a_table(release_folder, run):
    rows = answers(run, "--covariances", "q2")
    matrix = ln.read_release(release_folder).covariance("q2")
    assert [row["covariance"] for row in rows] == [matrix[0, 0], matrix[0, 1], matrix[1, 1]]
    assert rows[1]["cell"] == "sex=F"
    assert rows[1]["other_cell"] == "sex=M"


REGIONS = ["store:region=north", "store:region=south"]


@pytest.fixture
def sales():
    """Return the store, the age and the pay of 3000 sales; stores 0 and 1 are in the north."""
    random = np.random.default_rng(5)
    store = random.integers(0, 6, 3000)
    age = random.integers(0, 10, 3000)
    return {"store": store, "age": age, "pay": 10 * age + store}


@pytest.fixture
def sales_release(folder, run, prepare_once, sales):
    """Return a release of statistics by the region of the store."""

    def write_release():
        rows = "".join(
            f"s{store},{age},{pay}\n" for store, age, pay in zip(*sales.values(), strict=True)
        )
        (folder / "sales.csv").write_text("store,age,pay\n" + rows, encoding="utf-8")
        spec = SALES.replace("BY", '[{ store = { level = "region" } }]')
        (folder / "sales.toml").write_text(spec, encoding="utf-8")
        run.succeeds("release", "sales.toml", "--out", "out", "--seed", "3")

    return prepare_once("sales", write_release) / "out"


def test_level_is_a_column_of_all_files(sales_release, run):
    shown = run("show", "out", "s1").out
    assert_contains(shown, "mean of pay by store:region", "north")
    assert re.search(r"store:region +mean", shown)
    report = (sales_release / "report.html").read_text(encoding="utf-8")
    assert "mean of pay by store:region" in report
    first_keys = {}
    for file in (sales_release / "answers").glob("*.csv"):
        first_keys[file.name[:2]] = file.read_text(encoding="utf-8").split(",")[1]
    assert first_keys.pop("q5") == "store"
    assert set(first_keys.values()) == {"store:region"}
    tables = json.loads((sales_release / "manifest.json").read_text())["answers"]["tables"]
    assert [table["key_columns"][0] for table in tables][:2] == ["store:region"] * 2


def test_levels_stand_wherever_attributes_do(sales_release, run, sales):
    is_north = sales["store"] < 2
    north, south = answers(run, "--means", "pay", "--cells", "store:region")
    assert [north["cell"], south["cell"]] == REGIONS
    assert abs(north["mean"] - sales["pay"][is_north].mean()) < 3
    assert abs(south["mean"] - sales["pay"][~is_north].mean()) < 3

    count, _ = answers(run, "--cells", "store:region", "--where", "age=3")
    exact = (is_north & (sales["age"] == 3)).sum()
    assert abs(count["answer"] - exact) < 6 * count["noise_std"]

    median = ("--quantiles", "age=0.5")
    of_region = answers(run, *median, "--where", "store:region=north")
    assert of_region == answers(run, *median, "--where", "store=s0", "--where", "store=s1")
    distributions = answers(run, "--cdf", "age", "--cells", "store:region")
    assert [row["cell"] for row in distributions[::10]] == REGIONS


def test_unknown_levels_and_groups_are_refused(sales_release, run):
    county = ("--means", "pay", "--cells", "store:county")
    run.is_refused("a level must be one of 'region'; got 'county'", "answer", "out", *county)
    east = ("--cells", "age", "--where", "store:region=east")
    run.is_refused("one of north, south; got 'east'", "answer", "out", *east)


FLATS = """\
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
    (folder / "flats.toml").write_text(FLATS, encoding="utf-8")
    correlation, regression = run.json("plan", "flats.toml")["statistics"]
    assert list(correlation["parts"]) == ["rent x area"]
    assert list(regression["parts"]) == ["(intercept)", "area"]

    run.succeeds("release", "flats.toml", "--out", "out", "--seed", "3")
    by_city = answers(run, "--correlations", "rent,area", "--cells", "city")
    assert [row["cell"] for row in by_city] == ["city=Kiel", "city=Mainz"]
    for row in by_city:
        assert row["low"] <= 1
        assert row["correlation"] > 0.9
    (determined,) = answers(run, "--r-squared", "rent=area")
    assert 0 <= determined["low"] <= determined["r_squared"] <= determined["high"] <= 1
    run.is_refused("--r-squared must be MEASURE=MEASURE", "answer", "out", "--r-squared", "rent")
    intercept, slope = answers(run, "--regression", "rent=area")
    assert intercept["term"] == "(intercept)"
    assert slope["term"] == "area"
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
