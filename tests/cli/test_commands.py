"""Tests of what commands print: text, JSON, and colour only on terminals."""

import math
import os
import pty
import re
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest
from click.testing import CliRunner
from docs.scripts import site

import leastnoise
from cli.conftest import PROGRAM, assert_contains, disk_is_full, edit, ended, files
from leastnoise._cli import _compare, _main
from leastnoise._cli import _demo as demo_module
from leastnoise._plan import Plan
from leastnoise._planning import plan
from leastnoise._session import Ledger, _release_job
from leastnoise._spec import read_spec
from leastnoise._strategies import PLANNERS
from waiting import HANGS

PLAN_KEYS = {
    "strategy", "mechanism", "privacy", "risk", "cost", "queries",
    "expected_total_squared_error", "lower_bound", "error_over_least_possible",
    "rmse", "tables", "seconds", "warnings", "left_out",
}  # fmt: skip


@pytest.fixture(scope="module")
def comparisons():
    """Return the comparisons of strategies so far, by the text of the spec and the option."""
    return {}


@pytest.fixture
def cached_comparisons(monkeypatch, comparisons):
    """Compare the strategies of each spec once, however often they are shown."""
    compare_strategies = _compare.compare_strategies

    def compare_or_reuse(*arguments, **options):
        key = (Path("people.toml").read_text(encoding="utf-8"), options.get("by_name"))
        if key not in comparisons:
            comparisons[key] = compare_strategies(*arguments, **options)
        return comparisons[key]

    monkeypatch.setattr(_compare, "compare_strategies", compare_or_reuse)


# --- the commands plan and compare ----------------------------------------------------------------


def test_plan_states_that_no_lower_bound_is_known(folder, run):
    with (folder / "people.toml").open("a", encoding="utf-8") as spec:
        spec.write("\n[[public]]\ncounts = 1000\n")
    output = run.succeeds("plan", "people.toml").out
    assert re.search(r"^lower bound +none known$", output, flags=re.MULTILINE)
    assert "error / least possible" not in output


def test_plan_prints_errors_as_shares_of_a_public_size(folder, run):
    (table,) = run.json("plan", "people.toml")["tables"][-1:]
    assert "public size" not in run.succeeds("plan", "people.toml").out
    edit(folder, ("weight = 2.0", "weight = 2.0\nsize = 1000"))
    output = run.succeeds("plan", "people.toml").out
    assert "public size" in output
    assert f"{table['largest_std'] / 1000:.1%}" in output


def test_plan_explains_the_ratio_to_the_lower_bound(folder, run):
    output = run.succeeds("plan", "people.toml").out
    ratio = run.json("plan", "people.toml")["error_over_least_possible"]
    explanation = "The error divided by its proven lower bound."
    assert (explanation in output) == (ratio > 1.001)
    edit(folder, ("marginals = { upto = 2", "marginals = { ways = 1"))
    assert ratio > 1.001


def test_plan_output_needs_no_data(folder, run):
    (folder / "people.csv").unlink()
    result = run("plan", "people.toml", "--out", "plan.json")
    assert result.err == ""
    assert files(folder) == ["people.toml", "plan.json"]
    assert_contains(
        result.out,
        "Expected error",
        "income:prefix",
        "148",
        "total squared error",
        "lower bound",
        "error / least possible",
        "strategy",
        "The plan is in plan.json.",
    )
    assert re.search(r"^protects +one row \(added or removed\)$", result.out, flags=re.MULTILINE)
    assert "\x1b" not in result.out
    assert [line for line in result.out.split("\n") if line != line.rstrip()] == []


def test_plan_command_writes_the_plan_of_python(folder, run):
    run("plan", "people.toml", "--out", "plan.json")
    written = Plan.from_json((folder / "plan.json").read_text(encoding="utf-8"))
    spec = read_spec("people.toml")
    python_plan = plan(spec.workload, spec.privacy, strategy=spec.strategy)
    assert written.digest() == python_plan.digest()


def test_plan_states_its_error_as_json(folder, run):
    planned = run.json("plan", "people.toml")
    assert set(planned) == PLAN_KEYS
    spec = read_spec("people.toml")
    error = plan(spec.workload, spec.privacy, strategy=spec.strategy).expected_error()
    assert planned["expected_total_squared_error"] == pytest.approx(error.total_squared_error)
    assert planned["lower_bound"] == pytest.approx(error.lower_bound)
    ratio = math.sqrt(error.total_squared_error / error.lower_bound)
    assert planned["error_over_least_possible"] == pytest.approx(ratio)
    assert planned["mechanism"] == "discrete_laplace"
    assert planned["cost"]["kind"] == "pure"
    assert planned["seconds"] >= 0

    prefix_table = planned["tables"][4]
    assert prefix_table == {
        "name": "income:prefix",
        "queries": 10,
        "rmse": planned["rmse"]["income:prefix"],
        "weight": 2.0,
        "measure": None,
        "leaves_out": ["income"],
        "largest_std": error.tables[4].largest_std,
        "largest_is_bound": False,
    }


def test_errors_of_planned_tables_add_up(folder, run):
    planned = run.json("plan", "people.toml")
    assert list(planned["rmse"]) == ["total", "sex", "age", "sex x age", "income:prefix"]
    tables = planned["tables"]
    assert planned["queries"] == 1 + 2 + 74 + 148 + 10
    assert planned["queries"] == sum(table["queries"] for table in tables)
    # The total is the sum over the queries of weight squared times variance.
    total = sum(table["queries"] * (table["weight"] * table["rmse"]) ** 2 for table in tables)
    assert planned["expected_total_squared_error"] == pytest.approx(total)


def test_plan_summarises_many_tables(folder, run):
    spec = (
        "[privacy]\nrho = 1\n[[workload]]\nmarginals = { ways = 2 }\n[plan]\n"
        "strategy = 'marginals'\n"
    )
    domain = "".join(f"[domain.a{number}]\nsize = 2\n" for number in range(10))
    (folder / "many.toml").write_text(spec + domain)
    output = run("plan", "many.toml").out
    assert "and 5 more tables, 20 queries, rmse " in output
    assert output.count(" x ") == 40
    assert len(run.json("plan", "many.toml")["tables"]) == 45  # pairs of 10 attributes


def test_plan_numbers_tables_with_the_same_name(folder, run):
    tables = "".join(
        f"\n[[workload]]\nqueries = {{ age = {{ ranges = [[20, {high}]] }} }}" for high in (30, 40)
    )
    edit(folder, ("weight = 2.0", "weight = 2.0" + tables))
    assert list(run.json("plan", "people.toml")["rmse"])[-2:] == ["age:ranges", "age:ranges (2)"]


@pytest.mark.parametrize(
    ("privacy", "tables", "cost"),
    [
        ('epsilon = "1/3"', 2, "epsilon = 1/3, with discrete Laplace noise"),
        ("rho = 0.125", 2, "rho = 0.125, with discrete Gaussian noise"),
        # Every row is in all tables, so Gaussian noise is better than Laplace noise unless delta is
        # tiny.
        (
            'epsilon = "1"\ndelta = "1e-6"',
            10,
            "epsilon = 1, delta = 0.000001, with rounded Gaussian",
        ),
        ('epsilon = "1"\ndelta = "1e-300"', 10, "epsilon = 1, with discrete Laplace"),
    ],
)
def test_plan_cost_shows_budget_and_noise(folder, run, privacy, tables, cost):
    text = (
        f"[privacy]\n{privacy}\n[[workload]]\nmarginals = {{ ways = 2 }}\n[plan]\n"
        'strategy = "marginals"\n'
    )
    (folder / "ten.toml").write_text(
        text + "".join(f"[domain.a{number}]\nsize = 10\n" for number in range(tables))
    )
    assert_contains(run("plan", "ten.toml").out, cost)


@pytest.fixture
def compared_spec(folder, cached_comparisons):
    """Return a spec with a table of 200,000 cells and little time, which some strategies lack."""
    zips = (
        "weight = 2.0\n[[workload]]\nmarginals = { ways = 1, of = ['zip'] }\n[domain.zip]\n"
        "size = 200000"
    )
    edit(folder, ("weight = 2.0", zips), ("[plan]", "[plan]\nseconds = 1"))
    return "people.toml"


def split_candidates(run, spec):
    """Return the strategies that `compare` can use, and the others."""
    candidates = run.json("compare", spec)["candidates"]
    usable = [candidate for candidate in candidates if candidate["usable"]]
    unusable = [candidate for candidate in candidates if not candidate["usable"]]
    return usable, unusable


def test_compare_sorts_by_error_with_reasons(compared_spec, run):
    usable, unusable = split_candidates(run, compared_spec)
    errors = [candidate["expected_total_squared_error"] for candidate in usable]
    assert errors == sorted(errors)
    assert errors[0] <= run.json("plan", compared_spec)["expected_total_squared_error"]
    for candidate in usable:
        assert candidate["error_over_least_possible"] >= 1

    assert "identity" in {candidate["strategy"] for candidate in unusable}
    for candidate in unusable:
        assert candidate["reason"] or candidate["more_seconds"]
        assert candidate["expected_total_squared_error"] is None


def test_compare_prints_strategies_that_cannot_be_used(compared_spec, run):
    usable, unusable = split_candidates(run, compared_spec)
    output = run("compare", compared_spec).out
    assert "200,235 queries, epsilon = 1" in output
    assert re.search(r"^identity +discrete Laplace +.*cells", output, flags=re.MULTILINE)
    best = output.index(usable[0]["strategy"])
    assert best < output.index("cannot be used") < output.index("\nidentity")
    # A strategy that the time does not suffice for is listed with the time that it needs.
    without_time = sorted(
        candidate["strategy"] for candidate in unusable if candidate["more_seconds"]
    )
    left_out = rf"^{without_time[0]} +discrete Laplace +left out +\d"
    assert re.search(left_out, output, flags=re.MULTILINE)


def test_compare_without_time_is_refused(folder, run):
    edit(folder, ("[plan]", "[plan]\nseconds = 0"))
    run.is_refused("seconds must be a number above 0, such as 5; got 0", "compare", "people.toml")


@pytest.fixture
def small_spec(folder, cached_comparisons):
    """Return a spec of two small attributes."""
    edit(
        folder,
        ('[[workload]]\nqueries = { income = "prefix" }\nweight = 2.0\n', ""),
        ("integers = [17, 90]", "integers = [17, 40]"),
    )
    return "people.toml"


def test_compare_all_adds_named_strategies(small_spec, run):
    default_candidates = run.json("compare", small_spec)["candidates"]
    all_candidates = run.json("compare", small_spec, "--all")["candidates"]
    default_names = {candidate["strategy"] for candidate in default_candidates}
    added = {
        candidate["strategy"]: candidate
        for candidate in all_candidates
        if candidate["strategy"] not in default_names
    }
    assert set(added) == {name for name, planner in PLANNERS.items() if not planner.automatic}
    assert added["fourier"]["usable"]
    # The budget is pure.
    assert "Laplace noise is not spent evenly" in added["residual_max"]["reason"]

    usable = [candidate for candidate in all_candidates if candidate["usable"]]
    errors = [candidate["expected_total_squared_error"] for candidate in usable]
    assert errors == sorted(errors)
    assert errors[0] == default_candidates[0]["expected_total_squared_error"]
    output = run("compare", small_spec, "--all").out
    assert output.index("fourier") < output.index("cannot be used") < output.index("residual_max")


def test_output_fits_the_width_of_the_terminal(folder, small_spec, run, monkeypatch):
    (folder / "people.csv").write_text("sex,age,income\nF,20,1\n")
    out = "a-directory-with-quite-a-long-name/and-another-one-within/out"
    run.succeeds("release", small_spec, "--out", out)
    for width in (80, 120):
        monkeypatch.setenv("COLUMNS", str(width))
        for command in (
            ["plan", small_spec],
            ["compare", small_spec],
            ["ledger", "show", "people.ledger"],
        ):
            lines = run(*command).out.splitlines()
            assert max(map(len, lines)) <= width
            assert not any(line.endswith("…") for line in lines)


@pytest.fixture
def charged_ledger(folder, run):
    """Return a ledger with epsilon and delta, and one release."""
    run.succeeds("ledger", "set", "people.ledger", "--epsilon", "2", "--delta", "1e-9")
    edit(folder, ('epsilon = "1"', 'epsilon = "1/2"\ndelta = "1e-10"'))
    run.succeeds("release", "people.toml", "--out", "out")
    return "people.ledger"


def test_ledger_without_releases_says_so(folder, run):
    result = run("ledger", "set", "people.ledger", "--epsilon", "2", "--delta", "1e-9")
    assert "left      epsilon = 2 and delta = 1e-9" in result.out
    output = run("ledger", "show", "people.ledger").out
    assert "No release yet." in output
    assert "implies" not in output


def test_ledger_show_prints_spent_and_left(charged_ledger, run):
    assert_contains(
        run("ledger", "show", charged_ledger).out,
        "data set people",
        "protects one row (added or removed)",
        "budget epsilon = 2 and delta = 1e-9",
        "published",
        "out",
        "5 tables",
        "epsilon delta mu squared state",
        "left mu squared = 0 for Gaussian noise, or epsilon = 1.5 for a pure release",
    )


def test_ledger_show_has_all_facts_as_json(charged_ledger, folder, run):
    ledger = run.json("ledger", "show", charged_ledger)
    assert set(ledger) == {
        "ledger",
        "id",
        "dataset",
        "privacy",
        "spent",
        "left",
        "implied_epsilon",
        "risk",
        "releases",
    }
    assert ledger["dataset"] == "people"
    implied = {"delta": "1/1000000000", "budget": "2.0000", "spent": "0.5000"}
    assert ledger["implied_epsilon"] == implied
    (entry,) = ledger["releases"]
    assert entry["number"] == 1
    assert entry["state"] == "sealed"
    assert entry["output"] == str(folder / "out")


def test_errors_of_sums_are_in_amounts(folder, run):
    edit(folder, ("weight = 2.0", 'weight = 2.0\n[[workload]]\nqueries = {}\nsum = "pay"'))
    in_whole_units = run.json("plan", "people.toml")
    assert in_whole_units["tables"][5]["measure"] == "pay"
    edit(folder, ("clip = [0, 1000]", 'clip = [0, 1000]\nunit = "0.01"'))
    in_cents = run.json("plan", "people.toml")
    expected = pytest.approx(in_whole_units["rmse"]["sum of pay"], rel=0.01)
    assert in_cents["rmse"]["sum of pay"] == expected


# --- the commands release and ledger --------------------------------------------------------------


def test_release_prints_paths_and_remaining_budget(folder, run):
    run.succeeds("ledger", "set", "people.ledger", "--epsilon", "3")
    result = run.succeeds("release", "people.toml", "--out", "out")
    assert result.err == ""
    lines = dict(re.split(r" {2,}", line, maxsplit=1) for line in result.out.splitlines())
    assert lines["answers"] == "out/answers, listed in out/tables.csv"
    for path in ("out/answers", "out/tables.csv", lines["manifest"], lines["report"]):
        assert (folder / path).exists()
    assert lines["spent"] == "epsilon = 1, release 1 of the data set 'people'"
    assert lines["left"] == "epsilon = 2, of epsilon = 3"
    assert lines["ledger"] == "people.ledger"

    edit(folder, ("[plan]", '[plan]\nguard = "1/4"'))
    result = run("release", "people.toml", "--out", "guarded")
    assert "epsilon = 0.75, release 3 of the data set 'people' (its guard is 2)" in result.out


def test_seeded_release_warns_and_costs_nothing(folder, run):
    first = run.succeeds("release", "people.toml", "--out", "first", "--seed", "7")
    run.succeeds("release", "people.toml", "--out", "second", "--seed", "7")
    assert first.err.count("NOT PRIVATE") == 1
    assert "NOT PRIVATE" in first.out
    first_table = (folder / "first/answers/q2-sex.csv").read_text()
    assert first_table == (folder / "second/answers/q2-sex.csv").read_text()
    assert "NOT PRIVATE" in (folder / "first/report.html").read_text(encoding="utf-8").upper()
    assert not (folder / "people.ledger").exists()


def test_source_ledger_and_dataset_come_from_options(folder, run):
    edit(folder, ('[source]\npath = "people.csv"', ""))
    (folder / "people.csv").rename(folder / "data.csv")
    options = ("--source", "data.csv", "--ledger", "survey.ledger", "--dataset", "survey")
    run.succeeds("release", "people.toml", "--out", "out", *options)
    assert Ledger.open(folder / "survey.ledger").dataset == "survey"


def test_ledger_show_converts_rho_at_stated_delta(folder, run):
    unit = ("--unit-column", "id", "--neighbours", "replace")
    run("ledger", "set", "people.ledger", "--rho", "1/2", *unit)
    output = run("ledger", "show", "people.ledger", "--delta", "1e-6").out
    implied = run.json("ledger", "show", "people.ledger", "--delta", "1e-6")["implied_epsilon"]
    assert_contains(
        output,
        "all rows of one value of the column 'id' (replaced)",
        f"epsilon <= {implied['budget']}",
    )
    assert implied["delta"] == "1e-6"
    assert implied["spent"] == "0"
    # The classic bound is rho + sqrt(4 rho log(1 / delta)); the tight one is between it and rho.
    assert 0.5 < float(implied["budget"]) < 0.5 + (4 * 0.5 * 13.8156) ** 0.5


# --- the command init -----------------------------------------------------------------------------

# The file test_messy.py tests the whole way from a draft to a report.


def test_draft_holds_no_value_of_the_data(folder, run):
    drafts = []
    for name, values in (("one", "Xylophone,77123,88123.5"), ("two", ",,")):
        (folder / f"{name}.csv").write_text(f"sex,age,income\n{values}\n")
        run.succeeds("init", f"{name}.csv")
        drafts.append((folder / f"{name}.toml").read_text(encoding="utf-8"))
    assert drafts[0].replace("one.", "two.") == drafts[1]
    assert "the kinds below are guessed from names" in drafts[0]  # a CSV file has no types


def test_draft_of_a_typed_file_uses_its_types(folder, run):
    import duckdb

    columns = """'x' AS "we""ird é", 3::BIGINT AS person_id, 1.5::DOUBLE AS height, 4::SMALLINT AS
        rooms, true AS employed, DATE '2020-01-01' AS born, [1] AS tags"""
    duckdb.sql(f"SELECT {columns}").write_parquet("typed.parquet")
    run.succeeds("init", "typed.parquet", "--out", "other.toml")
    draft = (folder / "other.toml").read_text(encoding="utf-8")
    parts = (
        '[domain."we\\"ird é"]\ncategories = ["FILL IN"]',
        '[domain.height]\nbins = { low = 0, high = "FILL IN"',
        "[domain.rooms]\nintegers = [0, 9]     # guessed from its name or type",
        "[domain.employed]\ncategories = [true, false]",
        'unit = { column = "person_id", max_rows = "FILL IN" }',
        '[domain.born]\ndates = { from = "FILL IN", to = "FILL IN", by = "month" }',
        '# The column "tags" was left out: of type list<element: int32>',
        '# queries = { height = "prefix" }',
    )
    assert_contains(draft, *parts)
    assert "[domain.person_id]" not in draft
    assert "guessed from names" not in draft
    run.is_refused("4 places to fill in", "plan", "other.toml")


# --- the program as a whole -----------------------------------------------------------------------


def test_demo_survey_is_the_same_every_time():
    survey = demo_module.generate_survey(5_000)
    repeated = demo_module.generate_survey(5_000)
    for name in survey:
        assert (survey[name] == repeated[name]).all()
    assert (survey["income"] == 0).mean() > 0.04


def test_demo_runs_and_refuses_to_overwrite(folder, run, monkeypatch, estimates):
    """One strategy is planned faster than all of them; `make wheel` runs the full demo."""
    assert 'strategy = "auto"' in demo_module._SPEC
    monkeypatch.setattr(demo_module, "_SPEC", demo_module._SPEC.replace('"auto"', '"hierarchy"'))
    survey = demo_module.generate_survey(5_000)
    monkeypatch.setattr(demo_module, "generate_survey", lambda: survey)
    output = run.succeeds("demo").out
    for step in ("generating a survey", "computing the true answers"):
        assert "more" in estimates[step]
    assert_contains(
        output,
        "Expected error",
        "Expected and realised error",
        "sum of pay by",
        "income:prefix",
        "a release never computes true answers",
    )
    ratio, covered = re.search(r"(?m)^all +[\d,]+ +([\d.]+) +([\d.]+)%$", output).groups()
    assert 0.7 < float(ratio) < 1.4
    assert 85 < float(covered) <= 100

    demo_files = ["people.ledger", "people.parquet", "release", "survey.toml"]
    assert files(folder / "demo-release" / "1") == demo_files
    spec = "demo-release/1/survey.toml"
    run.is_refused("Nothing was spent", "release", spec, "--out", "demo-release/1/second")
    assert demo_module._new_folder(None) == Path("demo-release/2")


def test_version_and_bare_command_print_help(run):
    assert run("--version").out.split() == ["leastnoise", leastnoise.__version__]
    shown = run.succeeds()
    assert shown.err == ""
    assert shown.out.count("\n") > 10
    assert "Publish tables from private data" in shown.out


@pytest.mark.parametrize(("no_color", "colours"), [("", True), ("1", False)])
def test_colours_only_on_a_terminal(folder, start, no_color, colours):
    # A real terminal, 80 columns wide.
    main_end, child_end = pty.openpty()
    use_terminal = (
        f"import os; os.dup2(os.open({os.ttyname(child_end)!r}, os.O_WRONLY | os.O_NOCTTY), 1)"
    )
    environment = {"TERM": "xterm-256color", "COLUMNS": "80"}
    if no_color:
        environment["NO_COLOR"] = no_color
    process = start("plan", "people.toml", program=f"{use_terminal}\n{PROGRAM}", **environment)
    assert process.wait(timeout=HANGS) == 0
    output = os.read(main_end, 100_000).decode()
    os.close(child_end)
    os.close(main_end)
    assert "income:prefix" in output
    if colours:
        assert "\x1b[1m" in output
    else:
        assert re.search(r"\x1b\[[0-9;]*3[0-9]m", output) is None


def test_unprintable_attribute_name_does_not_fail(folder, start):
    edit(
        folder,
        ("[domain.income]", '[domain."東京"]\nsize = 3\n[domain.income]'),
        ('of = ["sex", "age"]', 'of = ["sex", "age", "東京"]'),
    )
    use_latin_1 = "import sys; sys.stdout.reconfigure(encoding='latin-1')"
    result = ended(start("plan", "people.toml", program=f"{use_latin_1}\n{PROGRAM}"))
    assert result.code == 0
    assert result.err == ""
    assert "sex x ??" in result.out


def test_closed_pipe_ends_without_a_fault(folder, start):
    close_output = "import os; os.close(1); os.dup2(os.pipe()[1], 1)"
    result = ended(start("plan", "people.toml", "--json", program=f"{close_output}\n{PROGRAM}"))
    assert "Traceback" not in result.err
    assert "fault" not in result.err
    assert result.code in (0, 141)  # 141 is the code of SIGPIPE in a shell


def run_in_new_interpreter(program, *arguments, **environment):
    """Run a program in a new interpreter without any loaded module."""
    variables = {
        name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"
    }
    variables |= {"PYTHONPATH": str(Path(demo_module.__file__).parents[2]), **environment}
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        env=variables,
        capture_output=True,
        text=True,
        check=True,
        timeout=HANGS,
    )


@pytest.mark.slow
def test_progress_shows_share_not_row_count(folder):
    # Reading ends when the line of progress has been seen, however long that takes.
    read_slowly = """
import atexit, sys, threading
from leastnoise._trusted import reading
read, was_shown, write = reading.read, threading.Event(), sys.stderr.write
def write_and_note(text):
    write(text)
    if '12%' in text: was_shown.set()
def read_after_progress(*arguments, progress, **options):
    progress.show(123457, 987654); was_shown.wait()
    return read(*arguments, progress=progress, **options)
sys.stderr.write, reading.read = write_and_note, read_after_progress
atexit.register(lambda: print(sorted({'altair', 'narwhals', 'pandas', 'polars'} & {*sys.modules})))
"""
    arguments = ("release", "people.toml", "--out", "out")
    result = run_in_new_interpreter(read_slowly + PROGRAM, *arguments, LEASTNOISE_PROGRESS="on")
    line = r"^reading people\.csv: 12% \(\d+ s(, about \d+ s more)?\)$"
    assert re.search(line, result.stderr, re.MULTILINE), result.stderr
    assert "123457" not in result.stderr
    assert "987654" not in result.stderr
    # A release of a file loads no optional library. DuckDB before 2.0 loads pandas where it is
    # installed.
    loaded = ["[]", "['pandas']"] if version("duckdb").startswith("1.") else ["[]"]
    assert result.stdout.splitlines()[-1] in loaded


@pytest.mark.parametrize(
    ("environment", "threads"), [({}, "1"), ({"OPENBLAS_NUM_THREADS": "2"}, "2")]
)
def test_planning_uses_threads_only_on_request(environment, threads):
    program = (
        "import atexit, os, sys\n"
        "from leastnoise._cli import main\n"
        "early = 'numpy' in sys.modules\n"  # numpy reads the number when it is loaded
        "atexit.register(lambda: print(os.environ['OPENBLAS_NUM_THREADS'], early, "
        "file=sys.stderr))\n"
        "main()"
    )
    result = run_in_new_interpreter(program, "--help", **environment)
    assert result.stderr.split() == [threads, "False"]


# --- progress -------------------------------------------------------------------------------------


def test_progress_estimates_time_left(folder, run, estimates, monkeypatch):
    # More than one block, so that progress has a share before the end.
    with (folder / "people.csv").open("a", encoding="utf-8") as file:
        file.write("F,30,500\n" * 2**18)
    with monkeypatch.context() as patch:
        patch.setattr(_release_job, "fill_draft", disk_is_full)
        assert run("release", "people.toml", "--out", "out").code == 3
    with monkeypatch.context() as patch:
        # Drawing the pictures would take most of the time.
        patch.setenv("LEASTNOISE_CHARTS", "")
        run.succeeds("check", "people.toml")
    for command in (
        ["resume"],
        ["show", "out"],
        ["answer", "out", "--cells", "sex"],
        ["round", "out", "--to", "5", "--out", "rounded"],
    ):
        run.succeeds(*command)
    for step in (
        "planning",
        "measuring, estimating and writing",
        "reading people.csv",
        "finishing release 1",
        "opening out",
        "rounding",
    ):
        assert "more" in estimates[step], (step, estimates)


def list_commands():
    """Return the arguments of the program, of all its commands and of their subcommands."""
    commands = [[]]
    for name in _main._COMMANDS:
        subcommands = getattr(_main.load_command(name), "commands", {})
        commands += [[name], *([name, subcommand] for subcommand in subcommands)]
    return commands


def test_help_explains_glossary_words():
    glossary = site.glossary()
    words_file = Path(_main.__file__).with_name("words.toml")
    assert glossary == tomllib.loads(words_file.read_text("utf-8"))
    explained_words = set()
    for arguments in list_commands():
        result = CliRunner().invoke(_main.program, [*arguments, "--help"], prog_name="leastnoise")
        assert result.output.startswith(f"Usage: leastnoise {' '.join(arguments)}".rstrip())
        assert max(map(len, result.output.splitlines())) <= 100
        text, _, explanation = result.output.partition("In plain words:")
        explanation = " ".join(explanation.split())
        for word, meaning in glossary.items():
            if re.search(rf"\b{word}s?\b", text, re.IGNORECASE):
                assert f"{word} {meaning}" in explanation, arguments
                explained_words.add(word)
    assert {
        "prefix",
        "identity",
        "rmse",
        "lower bound",
        "epsilon",
        "delta",
        "rho",
        "ledger",
        "neighbours",
        "margin",
    } <= explained_words
