"""``leastnoise answer``: further answers from a release directory, through the program."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import leastnoise as ln
from cli.conftest import Run

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


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("kept") / "people"


@pytest.fixture
def released(folder: Path, run: Run, kept: Path) -> Path:
    """A copy of one release."""
    if kept.exists():
        shutil.copytree(kept, folder, dirs_exist_ok=True)
        return folder / "out"
    rows = "".join(f"{i},{'FM'[i % 2]},{17 + i % 74},{i % 1000}\n" for i in range(2000))
    (folder / "people.csv").write_text("id,sex,age,income\n" + rows, encoding="utf-8")
    (folder / "people.toml").write_text(SPEC, encoding="utf-8")
    made = run("release", "people.toml", "--out", "out", "--seed", "3")
    assert made.code == 0, made.err
    assert "Counts are of at most 2 rows of every value of 'id'" in " ".join(made.out.split())
    shutil.copytree(folder, kept)
    return folder / "out"


def answers(run: Run, *arguments: str) -> list[dict[str, Any]]:
    found = run("answer", "out", *arguments, "--json")
    assert found.code == 0, found.err
    return json.loads(found.out)["answers"]


def test_ranges_and_conditions_are_answered_with_their_exact_errors(released: Path, run: Run) -> None:
    ranges = ("--ranges", "age=20..39", "--ranges", "age=40..90")
    both, women = answers(run, *ranges), answers(run, *ranges, "--where", "sex=F")
    assert [row["cell"] for row in both] == ["age=20 .. 39", "age=40 .. 90"]
    truth = [sum(20 <= 17 + i % 74 <= 39 for i in range(2000)), sum(17 + i % 74 >= 40 for i in range(2000))]
    assert all(abs(row["answer"] - exact) < 6 * row["noise_std"] for row, exact in zip(both, truth, strict=True))
    assert all(0 < row["noise_std"] < 10 for row in both)
    assert women[0]["noise_std"] < both[0]["noise_std"]
    table = ln.read_release(released).answer(ln.queries(ln.read_release(released).plan.domain, age=ln.ranges([(20, 39), (40, 90)])))[0]
    assert [row["answer"] for row in both] == pytest.approx(table.answer.tolist())
    assert list(table.frame("polars").columns) == ["query", "age", "age_low", "age_high", "answer", "noise_std", "low", "high"]


def test_a_set_of_many_values_leaves_room_for_its_answer(released: Path, run: Run) -> None:
    ages = [word for age in range(20, 90, 2) for word in ("--where", f"age={age}")]
    (line,) = run("answer", "out", *ages).out.splitlines()[3:4]
    assert line.startswith("age=20 or 22 or 24")
    assert " ... " in line
    assert " or 88 " in line
    assert len(line.split(" or 88 ")[1].split()) == 4
    (row,) = answers(run, *ages)
    assert row["cell"] == "age=" + " or ".join(map(str, range(20, 90, 2)))
    (row,) = answers(run, *[word for age in (20, 21, 22, 30) for word in ("--where", f"age={age}")])
    assert row["cell"] == "age=20 .. 22 or 30"


def test_distribution_functions_quantiles_and_means_are_answered(released: Path, run: Run) -> None:
    band = answers(run, "--cdf", "age", "--where", "sex=F", "--where", "sex=M")
    assert (band[0]["age"], band[-1]["age"], band[-1]["share"]) == (17, 90, 1)
    (median,) = answers(run, "--quantiles", "age=0.5", "--level", "0.9")
    assert median["low"] <= 53 <= median["high"]
    halves = answers(run, "--quantiles", "age=0.5", "--cells", "sex")
    assert [row["cell"] for row in halves] == ["sex=F", "sex=M"]
    assert all(row["low"] <= exact <= row["high"] for row, exact in zip(halves, (53, 54), strict=True))
    bands = answers(run, "--cdf", "age", "--cells", "sex")
    assert [(row["cell"], row["age"], row["share"]) for row in bands[73::74]] == [("sex=F", 90, 1), ("sex=M", 90, 1)]
    means = answers(run, "--means", "pay", "--cells", "sex")
    assert [row["cell"] for row in means] == ["sex=F", "sex=M"]
    assert means[0]["low"] <= 499 <= means[0]["high"]
    (total,) = answers(run, "--sum", "pay", "--where", "sex=F")
    assert total["low"] <= sum(i % 1000 for i in range(0, 2000, 2)) <= total["high"]


def test_what_people_read_has_whole_numbers_and_shares_as_they_are(released: Path, run: Run) -> None:
    rows = [line.split() for line in run("answer", "out", "--quantiles", "age=0.25,0.5").out.splitlines()[3:5]]
    assert [row[0] for row in rows] == ["0.25", "0.5"]
    assert all(number.isdecimal() for row in rows for number in row[1:])
    first = run("answer", "out", "--cdf", "age").out.splitlines()[3].split()
    assert first[0] == "17"
    assert len(first[1].lstrip("0.")) == 4  # a share of which four digits count


def test_means_of_a_release_without_sums_are_refused_with_what_to_ask_for(folder: Path, run: Run) -> None:
    spec = SPEC.replace('[[workload]]\nmeans = { of = "pay", by = ["sex"] }\n', "").replace("[measures.pay]", "").replace("clip", "#")
    (folder / "people.csv").write_text("id,sex,age,income\n", encoding="utf-8")
    (folder / "people.toml").write_text(spec.replace('column = "income"', ""), encoding="utf-8")
    assert run("release", "people.toml", "--out", "out", "--seed", "3").code == 0
    refused = run("answer", "out", "--means", "age")
    assert "--means must be a measure that the release sums, and it sums none; got 'age'" in refused.err


def test_ranges_of_dates_are_asked_for_by_their_periods(folder: Path, run: Run) -> None:
    (folder / "people.csv").write_text("day;pay\n" + "2024-02-03;1.000,5 EUR\n" * 50, encoding="utf-8")
    dates = '[privacy]\nepsilon = 20\n[domain.day]\ndates = { from = "2024-01-01", to = "2024-12-31", by = "month" }\n'
    dates += '[measures.pay]\nclip = [0, 2000]\n[[workload]]\nqueries = { day = "identity" }\nsum = "pay"\n'
    said = '[source]\npath = "people.csv"\ndecimal = ","\nthousands = "."\ncurrency = ["EUR"]\n'
    asked = said + dates + "[[workload]]\nmarginals = { ways = 1 }\n"
    (folder / "people.toml").write_text(asked, encoding="utf-8")
    assert run("release", "people.toml", "--out", "out", "--seed", "3").code == 0
    (found,) = answers(run, "--ranges", "day=2024-01..2024-03")
    assert found["cell"] == "day=2024-01 .. 2024-03"
    (total,) = answers(run, "--ranges", "day=2024-01..2024-03", "--sum", "pay")  # how numbers are written is read again with the plan
    assert total["low"] <= 50_025 <= total["high"]
    assert found["low"] <= 50 <= found["high"]
    for ends in ("2024-01..2024-13", "1..3"):
        refused = run("answer", "out", "--ranges", f"day={ends}")
        assert "a range on day must be two of its cells (2024-01 to 2024-12), the lower first" in refused.err


def test_what_was_not_measured_is_refused_with_the_table_to_ask_for(released: Path, run: Run) -> None:
    for arguments in (("--cells", "income", "--where", "sex=F"), ("--quantiles", "income=0.5", "--where", "sex=F")):
        refused = run("answer", "out", *arguments)
        assert (refused.code, refused.out) == (2, "")
        assert "Ask for the table sex x income in the workload of a release." in refused.err
    refused = run("answer", "out", "--means", "pay", "--cells", "age")
    assert (refused.code, "Ask for the sums of pay by age in the workload" in refused.err) == (2, True)


def test_answers_of_a_rounded_release_are_not_said_to_be_rounded(released: Path, run: Run) -> None:
    (released.parent / "people.toml").write_text(SPEC + "[output]\nround = 5\nbelow = 10\n", encoding="utf-8")
    assert run("release", "people.toml", "--out", "rounded", "--seed", "3").code == 0
    found = json.loads(run("answer", "rounded", "--cells", "age", "--json").out)
    assert any(row["answer"] % 5 for row in found["answers"])
    notes = " ".join(found["notes"])
    assert "Counts are of at most 2 rows of every value of 'id'" in notes
    assert "These answers are not rounded" in notes
    assert "Answers are rounded" not in notes


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "Say what to answer"),
        (("--cdf", "age", "--means", "pay"), "One kind of answer can be asked for at a time"),
        (("--ranges", "age=20-30"), "must be NAME=LOW..HIGH, such as age=20..39"),
        (("--ranges", "ages=20..30"), "with one of sex, age, income"),
        (("--ranges", "age=a..30"), "an end of a range on age must be a finite number"),
        (("--ranges", "age=20..99"), "a range on age must be"),
        (("--ranges", "income=0..0.5"), "two different edges of its bins, the lower first; got [0, '0.5']"),
        (("--where", "sex=X"), "a predicate on sex must be"),
        (("--where", "age=20", "--cells", "age"), "age is asked about twice"),
        (("--quantiles", "age=half"), "with numbers, such as age=0.25,0.5,0.75"),
        (("--quantiles", "age=0"), "a quantile must be a number above 0"),
        (("--cells", "zone"), "zone"),
        (("--means", "pay", "--where", "sex=F"), "Means cannot be restricted with --where"),
        (("--cells", "sex", "--level", "2"), "level must be"),
        (("--cells", "sex", "--sum", "height"), "height"),
    ],
)
def test_bad_questions_are_one_sentence(released: Path, run: Run, arguments: tuple[str, ...], message: str) -> None:
    refused = run("answer", "out", *arguments)
    assert (refused.code, refused.out) == (2, "")
    assert message in refused.err
    assert len(refused.err.splitlines()) == 1


def test_a_set_too_large_to_write_is_written_as_cells_and_prefix_sums_and_answers_ranges(folder: Path, run: Run) -> None:
    size = 2**16
    values = np.random.default_rng(1).integers(0, size, 5000)
    (folder / "people.csv").write_text("x\n" + "\n".join(map(str, values)) + "\n", encoding="utf-8")
    asked = f'[source]\npath = "people.csv"\n[privacy]\nepsilon = "1"\n[domain.x]\nintegers = [0, {size - 1}]\n'
    asked += '[[workload]]\nqueries = { x = "all_ranges" }\n[plan]\nstrategy = "hierarchy"\n[output]\nformats = ["parquet"]\n'
    (folder / "people.toml").write_text(asked, encoding="utf-8")
    made = run("release", "people.toml", "--out", "out", "--seed", "3")
    assert made.code == 0, made.err
    said = (
        "x (every range) asks for 2,147,516,416 answers, too many to write (over 10,000,000 a table). In its place are its cells (q1) and"
    )
    manifest = json.loads((folder / "out" / "manifest.json").read_text(encoding="utf-8"))
    assert said in " ".join(made.out.split())
    assert said in manifest["answers"]["too_large_to_write"][0]
    assert said in (folder / "out" / "report.html").read_text(encoding="utf-8")
    assert manifest["expected_error"]["error_bars_are_as_promised"]
    assert sorted(path.name for path in (folder / "out" / "answers").iterdir()) == ["q1-x.parquet", "q2-x-prefix.parquet"]
    release = ln.read_release(folder / "out")
    cells, prefix = release.tables
    assert (cells.name, prefix.name) == ("x", "x:prefix")
    np.testing.assert_allclose(np.cumsum(cells.answer), prefix.answer, atol=1e-6)
    found = answers(run, "--ranges", "x=1000..50000", "--ranges", "x=7..7")
    exact = int(((values >= 1000) & (values <= 50000)).sum())
    assert found[0]["answer"] == pytest.approx(prefix.answer[50000] - prefix.answer[999])
    assert abs(found[0]["answer"] - exact) < 6 * found[0]["noise_std"]
    assert found[0]["noise_std"] < np.hypot(prefix.noise_std[50000], prefix.noise_std[999])
    assert found[1]["noise_std"] == pytest.approx(cells.noise_std[7])


def test_a_release_is_shown_in_the_terminal_whole_or_one_table_of_it(released: Path, run: Run) -> None:
    found = run("show", "out")
    assert found.code == 0, found.err
    for words in ("162 answers in 4 tables", "epsilon = 20", "NOT PRIVATE", "Counts are of at most 2 rows", "sum of pay by sex", "█"):
        assert words in " ".join(found.out.split())
    one = run("show", "out", "sex x age")
    assert "sex=F, age=17" in one.out
    assert "The first 60 of 148 answers" in one.out
    assert run("show", "out", "zip").code == 2
    for command in (("show", "nowhere"), ("answer", "nowhere", "--cells", "sex")):
        refused = run(*command)
        assert (refused.code, "There is no release in 'nowhere'" in refused.err) == (2, True)


def test_covariances_of_a_table_are_told(released: Path, run: Run) -> None:
    rows = answers(run, "--covariances", "q2")
    release = ln.read_release(released)
    matrix = release.covariance("q2")
    assert [row["covariance"] for row in rows] == [matrix[0, 0], matrix[0, 1], matrix[1, 1]]
    assert (rows[1]["cell"], rows[1]["other_cell"]) == ("sex=F", "sex=M")


def test_levels_stand_wherever_attributes_do(folder: Path, run: Run) -> None:
    random = np.random.default_rng(5)
    store, age = random.integers(0, 6, 3000), random.integers(0, 10, 3000)
    rows = "".join(f"s{one},{two},{10 * two + one}\n" for one, two in zip(store, age, strict=True))
    (folder / "sales.csv").write_text("store,age,pay\n" + rows, encoding="utf-8")
    by = '[{ store = { level = "region" } }]'
    spec = '[source]\npath = "sales.csv"\n[privacy]\nepsilon = "least"\n[domain.store]\ncategories = ["s0", "s1", "s2", "s3", "s4", "s5"]\n'
    spec += 'levels.region = { groups = { north = ["s0", "s1"], south = ["s2", "s3", "s4", "s5"] } }\n[domain.age]\nintegers = [0, 9]\n'
    spec += f"[measures.pay]\nclip = [0, 100]\n[[workload]]\nmeans = {{ of = 'pay', by = {by} }}\nsize = 1000\nmargin = 2\n"
    spec += f"[[workload]]\nquantiles = {{ of = 'age', at = ['0.5'], by = {by} }}\n[[workload]]\ncdf = {{ of = 'age', by = {by} }}\n"
    spec += f"[[workload]]\nmarginals = {{ ways = 1, of = {by} }}\nrmse = 20\n"
    spec += "[[workload]]\nqueries = { age = 'identity', store = 'identity' }\nmargin = 40\n[plan]\nstrategy = 'workload'\n"
    spec += "[output]\nformats = ['csv', 'xlsx', 'parquet']\n"
    (folder / "sales.toml").write_text(spec, encoding="utf-8")
    made = run("release", "sales.toml", "--out", "out", "--seed", "3")
    assert made.code == 0, made.err
    shown = run("show", "out", "s1")
    assert "mean of pay by store:region" in shown.out
    assert "north" in shown.out
    report = (folder / "out" / "report.html").read_text(encoding="utf-8")
    assert "mean of pay by store:region" in report
    assert re.search(r"store:region +mean", shown.out)
    heads = {file.name[:2]: file.read_text(encoding="utf-8").splitlines()[0] for file in (folder / "out" / "answers").glob("*.csv")}
    assert {name: head.removeprefix("query,").partition(",")[0] for name, head in heads.items()} == dict.fromkeys(heads, "store:region") | {
        "q5": "store"
    }
    tables = json.loads((folder / "out/manifest.json").read_text())["answers"]["tables"]
    assert [table["key_columns"][0] for table in tables][:2] == ["store:region"] * 2
    north = store < 2
    pay = 10 * age + store
    means = answers(run, "--means", "pay", "--cells", "store:region")
    assert [row["cell"] for row in means] == ["store:region=north", "store:region=south"]
    for row, own in zip(means, (north, ~north), strict=True):
        assert abs(row["mean"] - pay[own].mean()) < 3
    (count,) = answers(run, "--cells", "store:region", "--where", "age=3")[:1]
    assert abs(count["answer"] - (north & (age == 3)).sum()) < 6 * count["noise_std"]
    same = answers(run, "--quantiles", "age=0.5", "--where", "store:region=north")
    assert same == answers(run, "--quantiles", "age=0.5", "--where", "store=s0", "--where", "store=s1")
    assert [row["cell"] for row in answers(run, "--cdf", "age", "--cells", "store:region")[::10]] == [
        "store:region=north",
        "store:region=south",
    ]
    refused = run("answer", "out", "--means", "pay", "--cells", "store:county")
    assert (refused.code, "a level must be one of 'region'; got 'county'" in refused.err) == (2, True)
    refused = run("answer", "out", "--cells", "age", "--where", "store:region=east")
    assert (refused.code, "one of north, south; got 'east'" in refused.err) == (2, True)
