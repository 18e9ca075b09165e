"""Output of the commands: text for people, JSON for programs, colour on terminals only."""

import math
import os
import pty
import re
import subprocess
import sys
import tomllib
from importlib.metadata import version
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from docs import site

import leastnoise
from cli.conftest import PROGRAM, assert_contains, disk_is_full, edit, ended, files
from leastnoise._cli import _demo as demo_module
from leastnoise._cli import _main, _plan
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


@pytest.fixture
def compared_once(monkeypatch):
    """Compare the strategies once for every spec, however often they are shown."""
    compare, comparisons = _plan.compare_strategies, {}

    def compared(*arguments: Any, **named: Any) -> Any:
        key = Path("people.toml").read_text(encoding="utf-8"), named.get("by_name")
        return comparisons.get(key) or comparisons.setdefault(key, compare(*arguments, **named))

    monkeypatch.setattr(_plan, "compare_strategies", compared)


# --- plan and compare -----------------------------------------------------------------------------


def test_plan_output_needs_no_data(folder, run):
    (folder / "people.csv").unlink()
    planned = run.json("plan", "people.toml")
    assert set(planned) == PLAN_KEYS
    shown = run("plan", "people.toml", "--out", "plan.json")
    assert (shown.err, files(folder)) == ("", ["people.toml", "plan.json"])
    spec = read_spec("people.toml")
    plan_of_python = plan(spec.workload, spec.privacy, strategy=spec.strategy)
    assert (
        Plan.from_json((folder / "plan.json").read_text(encoding="utf-8")).digest()
        == plan_of_python.digest()
    )
    expected_error = plan_of_python.expected_error()
    assert planned["expected_total_squared_error"] == pytest.approx(
        expected_error.total_squared_error
    )
    assert planned["lower_bound"] == pytest.approx(expected_error.lower_bound)
    assert planned["error_over_least_possible"] == pytest.approx(
        math.sqrt(expected_error.total_squared_error / expected_error.lower_bound)
    )
    assert list(planned["rmse"]) == ["total", "sex", "age", "sex x age", "income:prefix"]
    assert (
        planned["queries"]
        == 1 + 2 + 74 + 148 + 10
        == sum(table["queries"] for table in planned["tables"])
    )
    facts = {
        "name": "income:prefix",
        "queries": 10,
        "rmse": planned["rmse"]["income:prefix"],
        "weight": 2.0,
        "measure": None,
        "leaves_out": ["income"],
    }
    assert planned["tables"][4] == facts | {
        "largest_std": expected_error.tables[4].largest_std,
        "largest_is_bound": False,
    }
    # the total is the sum over the queries of weight squared times variance
    total = sum(
        table["queries"] * (table["weight"] * table["rmse"]) ** 2 for table in planned["tables"]
    )
    assert planned["expected_total_squared_error"] == pytest.approx(total)
    assert (planned["mechanism"], planned["cost"]["kind"]) == ("discrete_laplace", "pure")
    assert planned["seconds"] >= 0
    parts = (
        "Expected error",
        "income:prefix",
        "148",
        "total squared error",
        "lower bound",
        "error / least possible",
        "strategy",
    )
    assert_contains(shown.out, *parts, "The plan is in plan.json.")
    assert re.search(r"^protects +one row \(add_remove\)$", shown.out, flags=re.MULTILINE)
    assert "\x1b" not in shown.out
    assert [line for line in shown.out.split("\n") if line != line.rstrip()] == []


def test_plan_summarises_many_tables_and_same_names(folder, run):
    spec_of_many_tables = (
        "[privacy]\nrho = 1\n[[workload]]\nmarginals = { ways = 2 }\n[plan]\n"
        "strategy = 'marginals'\n"
    )
    (folder / "many.toml").write_text(
        spec_of_many_tables + "".join(f"[domain.a{number}]\nsize = 2\n" for number in range(10))
    )
    output = run("plan", "many.toml").out
    assert "and 5 more tables, 20 queries, rmse " in output
    assert output.count(" x ") == 40
    assert len(run.json("plan", "many.toml")["tables"]) == 45
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
        # tables that every row is in: Gaussian noise is better than Laplace noise, unless delta is
        # tiny
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


def test_compare_sorts_by_error_with_reasons(folder, run, compared_once):
    zips = (
        "weight = 2.0\n[[workload]]\nmarginals = { ways = 1, of = ['zip'] }\n[domain.zip]\n"
        "size = 200000"
    )
    edit(folder, ("weight = 2.0", zips), ("[plan]", "[plan]\nseconds = 1"))
    candidates = run.json("compare", "people.toml")["candidates"]
    usable, unusable = (
        [candidate for candidate in candidates if candidate["usable"] is is_usable]
        for is_usable in (True, False)
    )
    errors = [candidate["expected_total_squared_error"] for candidate in usable]
    assert errors == sorted(errors)
    assert errors[0] <= run.json("plan", "people.toml")["expected_total_squared_error"]
    assert "identity" in {candidate["strategy"] for candidate in unusable}
    assert all(
        (candidate["reason"] or candidate["more_seconds"])
        and candidate["expected_total_squared_error"] is None
        for candidate in unusable
    )
    assert all(candidate["error_over_least_possible"] >= 1 for candidate in usable)
    output = run("compare", "people.toml").out
    assert "200,235 queries, epsilon = 1" in output
    assert re.search(r"^identity +discrete Laplace +.*cells", output, flags=re.MULTILINE)
    assert (
        output.index(usable[0]["strategy"])
        < output.index("cannot be used")
        < output.index("\nidentity")
    )
    # What there is no time for is listed with the time that it needs.
    needed = min(
        (
            (candidate["more_seconds"], candidate["strategy"])
            for candidate in unusable
            if candidate["more_seconds"]
        ),
        key=itemgetter(1),
    )[1]
    assert re.search(rf"^{needed} +discrete Laplace +left out +\d", output, flags=re.MULTILINE)
    edit(folder, ("seconds = 1", "seconds = 0"))
    run.is_refused("seconds must be a number above 0, such as 5; got 0", "compare", "people.toml")


def test_compare_all_adds_named_strategies(folder, run, compared_once, monkeypatch):
    edit(
        folder,
        ('[[workload]]\nqueries = { income = "prefix" }\nweight = 2.0\n', ""),
        ("integers = [17, 90]", "integers = [17, 40]"),
    )
    default_candidates, all_candidates = (
        run.json("compare", "people.toml", *options)["candidates"] for options in ((), ("--all",))
    )
    added = {
        candidate["strategy"]: candidate
        for candidate in all_candidates
        if candidate["strategy"] not in {candidate["strategy"] for candidate in default_candidates}
    }
    assert set(added) == {name for name, planner in PLANNERS.items() if not planner.automatic}
    assert added["fourier"]["usable"]
    # The budget is pure.
    assert "Laplace noise is not spent evenly" in added["residual_max"]["reason"]
    errors = [
        candidate["expected_total_squared_error"]
        for candidate in all_candidates
        if candidate["usable"]
    ]
    assert errors == sorted(errors)
    assert errors[0] == default_candidates[0]["expected_total_squared_error"]
    output = run("compare", "people.toml", "--all").out
    assert output.index("fourier") < output.index("cannot be used") < output.index("residual_max")
    (folder / "people.csv").write_text("sex,age,income\nF,20,1\n")
    run.succeeds(
        "release",
        "people.toml",
        "--out",
        "a-directory-with-quite-a-long-name/and-another-one-within/out",
    )
    for width in (80, 120):
        monkeypatch.setenv("COLUMNS", str(width))
        for command in (
            ["plan", "people.toml"],
            ["compare", "people.toml"],
            ["ledger", "show", "people.ledger"],
        ):
            lines = run(*command).out.splitlines()
            assert max(map(len, lines)) <= width
            assert not any(line.endswith("…") for line in lines)


def test_ledger_show_prints_spent_and_left(folder, run):
    assert (
        "left      epsilon = 2 and delta = 1e-9"
        in run("ledger", "set", "people.ledger", "--epsilon", "2", "--delta", "1e-9").out
    )
    output_before = run("ledger", "show", "people.ledger").out
    assert ("No release yet." in output_before, "implies" in output_before) == (True, False)
    edit(folder, ('epsilon = "1"', 'epsilon = "1/2"\ndelta = "1e-10"'))
    run.succeeds("release", "people.toml", "--out", "out")
    output = run("ledger", "show", "people.ledger").out
    parts = (
        "data set people",
        "protects one row (add_remove)",
        "budget epsilon = 2 and delta = 1e-9",
        "published",
        "out",
        "5 tables",
    )
    left_line = "left mu squared = 0 for Gaussian noise, or epsilon = 1.5 for a pure release"
    assert_contains(output, *parts, "epsilon delta mu squared state", left_line)
    shown = run.json("ledger", "show", "people.ledger")
    assert set(shown) == {
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
    assert shown["dataset"] == "people"
    implied = {"delta": "1/1000000000", "budget": "2.0000", "spent": "0.5000"}
    assert shown["implied_epsilon"] == implied
    assert [(entry["number"], entry["state"], entry["output"]) for entry in shown["releases"]] == [
        (1, "sealed", str(folder / "out"))
    ]


def test_errors_of_sums_are_in_amounts(folder, run):
    edit(folder, ("weight = 2.0", 'weight = 2.0\n[[workload]]\nqueries = {}\nsum = "pay"'))
    planned = run.json("plan", "people.toml")
    edit(folder, ("clip = [0, 1000]", 'clip = [0, 1000]\nunit = "0.01"'))
    assert planned["tables"][5]["measure"] == "pay"
    assert run.json("plan", "people.toml")["rmse"]["sum of pay"] == pytest.approx(
        planned["rmse"]["sum of pay"], rel=0.01
    )


# --- release and ledger ---------------------------------------------------------------------------


def test_release_prints_paths_and_remaining_budget(folder, run):
    run.succeeds("ledger", "set", "people.ledger", "--epsilon", "3")
    result = run.succeeds("release", "people.toml", "--out", "out")
    assert result.err == ""
    lines = dict(re.split(r" {2,}", line, maxsplit=1) for line in result.out.splitlines())
    assert lines["answers"] == "out/answers, listed in out/tables.csv"
    assert all(
        (folder / place).exists()
        for place in ("out/answers", "out/tables.csv", lines["manifest"], lines["report"])
    )
    assert lines["spent"] == "epsilon = 1, release 1 of the data set 'people'"
    assert lines["left"] == "epsilon = 2, of epsilon = 3"
    assert lines["ledger"] == "people.ledger"
    edit(folder, ("[plan]", '[plan]\nguard = "1/4"'))
    result = run("release", "people.toml", "--out", "guarded")
    assert "epsilon = 0.75, release 3 of the data set 'people' (its guard is 2)" in result.out


def test_seeded_release_warns_and_costs_nothing(folder, run):
    first_result, _ = (
        run.succeeds("release", "people.toml", "--out", out, "--seed", "7")
        for out in ("first", "second")
    )
    assert first_result.err.count("NOT PRIVATE") == 1
    assert "NOT PRIVATE" in first_result.out
    assert (folder / "first/answers/q2-sex.csv").read_text() == (
        folder / "second/answers/q2-sex.csv"
    ).read_text()
    assert "NOT PRIVATE" in (folder / "first/report.html").read_text(encoding="utf-8").upper()
    assert not (folder / "people.ledger").exists()


def test_source_ledger_and_dataset_come_from_options(folder, run):
    edit(folder, ('[source]\npath = "people.csv"', ""))
    (folder / "people.csv").rename(folder / "data.csv")
    run.succeeds(
        "release",
        "people.toml",
        "--out",
        "out",
        "--source",
        "data.csv",
        "--ledger",
        "survey.ledger",
        "--dataset",
        "survey",
    )
    assert Ledger.open(folder / "survey.ledger").dataset == "survey"


def test_ledger_show_converts_rho_at_stated_delta(folder, run):
    run(
        "ledger",
        "set",
        "people.ledger",
        "--rho",
        "1/2",
        "--unit-column",
        "id",
        "--neighbours",
        "replace",
    )
    output = run("ledger", "show", "people.ledger", "--delta", "1e-6").out
    implied = run.json("ledger", "show", "people.ledger", "--delta", "1e-6")["implied_epsilon"]
    assert_contains(
        output,
        "all rows of one value of the column 'id' (replace)",
        f"epsilon <= {implied['budget']}",
    )
    assert (implied["delta"], implied["spent"]) == ("1e-6", "0")
    # sqrt(4 rho log(1 / delta)) + rho is the classic bound; the tight one is below, and above rho
    assert 0.5 < float(implied["budget"]) < 0.5 + (4 * 0.5 * 13.8156) ** 0.5


# --- init: drafts; the way from there to a report is that of test_messy.py ------------------------


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


def test_demo_runs_and_refuses_to_overwrite(folder, run, monkeypatch, estimates):
    """One strategy is quicker than all of them; `make wheel` runs the full demo."""
    assert 'strategy = "auto"' in demo_module._SPEC
    monkeypatch.setattr(demo_module, "_SPEC", demo_module._SPEC.replace('"auto"', '"hierarchy"'))
    small, repeated = demo_module.generate_survey(5_000), demo_module.generate_survey(5_000)
    assert all((small[name] == repeated[name]).all() for name in small)
    assert (small["income"] == 0).mean() > 0.04
    monkeypatch.setattr(demo_module, "generate_survey", lambda: small)
    output = run.succeeds("demo").out
    assert all(
        "more" in estimates[step] for step in ("generating a survey", "computing the true answers")
    )
    parts = (
        "Expected error",
        "Expected and realised error",
        "sum of pay by",
        "income:prefix",
        "a release never computes them",
    )
    assert_contains(output, *parts)
    share, within = re.search(r"(?m)^all +[\d,]+ +([\d.]+) +([\d.]+)%$", output).groups()
    assert 0.7 < float(share) < 1.4
    assert 85 < float(within) <= 100
    assert files(folder / "demo-release" / "1") == [
        "people.ledger",
        "people.parquet",
        "release",
        "survey.toml",
    ]
    run.is_refused(
        "Nothing was spent",
        "release",
        "demo-release/1/survey.toml",
        "--out",
        "demo-release/1/second",
    )
    assert demo_module._new_folder(None) == Path("demo-release/2")


def test_version_and_bare_command_print_help(run):
    assert run("--version").out.split() == ["leastnoise", leastnoise.__version__]
    shown = run.succeeds()
    assert shown.err == ""
    assert shown.out.count("\n") > 10
    assert "Publish tables from private data" in shown.out


@pytest.mark.parametrize(("no_color", "colours"), [("", True), ("1", False)])
def test_colours_on_a_terminal_alone(folder, start, no_color, colours):
    # a real terminal, 80 columns wide
    main_end, child_end = pty.openpty()
    terminal = (
        f"import os; os.dup2(os.open({os.ttyname(child_end)!r}, os.O_WRONLY | os.O_NOCTTY), "
        f"1)\n{PROGRAM}"
    )
    environment = {
        "TERM": "xterm-256color",
        "COLUMNS": "80",
        **({"NO_COLOR": no_color} if no_color else {}),
    }
    assert start("plan", "people.toml", program=terminal, **environment).wait(timeout=HANGS) == 0
    output = os.read(main_end, 100_000).decode()
    os.close(child_end)
    os.close(main_end)
    assert "income:prefix" in output
    assert (re.search(r"\x1b\[[0-9;]*3[0-9]m", output) is None) or colours
    assert ("\x1b[1m" in output) or not colours


def test_unprintable_attribute_name_does_not_fail(folder, start):
    edit(
        folder,
        ("[domain.income]", '[domain."東京"]\nsize = 3\n[domain.income]'),
        ('of = ["sex", "age"]', 'of = ["sex", "age", "東京"]'),
    )
    result = ended(
        start(
            "plan",
            "people.toml",
            program=f"import sys; sys.stdout.reconfigure(encoding='latin-1')\n{PROGRAM}",
        )
    )
    assert (result.code, result.err) == (0, "")
    assert "sex x ??" in result.out


def test_closed_pipe_ends_without_a_fault(folder, start):
    result = ended(
        start(
            "plan",
            "people.toml",
            "--json",
            program=f"import os; os.close(1); os.dup2(os.pipe()[1], 1)\n{PROGRAM}",
        )
    )
    assert "Traceback" not in result.err
    assert "fault" not in result.err
    assert result.code in (0, 141)


def fresh(program, *arguments, **environment):
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


def test_progress_shows_share_not_row_count(folder):
    # reading ends when the line of progress has been seen, however long that takes
    slow = """
import atexit, sys, threading
from leastnoise._trusted import reading
read, seen, write = reading.read, threading.Event(), sys.stderr.write
def told(text):
    write(text)
    if '12%' in text: seen.set()
def slowly(*a, progress, **k):
    progress.show(123457, 987654); seen.wait()
    return read(*a, progress=progress, **k)
sys.stderr.write, reading.read = told, slowly
atexit.register(lambda: print(sorted({'altair', 'narwhals', 'pandas', 'polars'} & {*sys.modules})))
"""
    result = fresh(
        slow + PROGRAM, "release", "people.toml", "--out", "out", LEASTNOISE_PROGRESS="on"
    )
    assert re.search(
        r"^reading people\.csv: 12% \(\d+ s(, about \d+ s more)?\)$", result.stderr, re.MULTILINE
    ), result.stderr
    assert "123457" not in result.stderr
    assert "987654" not in result.stderr
    # A release of a file loads none of the libraries that it can do without. DuckDB before 2.0
    # loads pandas where it is installed.
    loaded = ["[]", "['pandas']"] if version("duckdb").startswith("1.") else ["[]"]
    assert result.stdout.splitlines()[-1] in loaded


@pytest.mark.parametrize(("setting", "used"), [("", "1"), ("2", "2")])
def test_planning_uses_threads_only_on_request(setting, used):
    program = (
        "import atexit, os, sys\n"
        "from leastnoise._cli import main\n"
        "early = 'numpy' in sys.modules\n"  # numpy reads the number when it is loaded
        "atexit.register(lambda: print(os.environ['OPENBLAS_NUM_THREADS'], early, "
        "file=sys.stderr))\n"
        "main()"
    )
    assert fresh(
        program, "--help", **({"OPENBLAS_NUM_THREADS": setting} if setting else {})
    ).stderr.split() == [used, "False"]


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


def test_help_explains_glossary_words():
    glossary = site.glossary()
    assert glossary == tomllib.loads(
        Path(_main.__file__).with_name("words.toml").read_text("utf-8")
    )
    explained = set()
    below = [
        [name, subcommand]
        for name in _main._COMMANDS
        for subcommand in getattr(_main.load_command(name), "commands", {})
    ]
    for arguments in ([], *([name] for name in _main._COMMANDS), *below):
        output = (
            CliRunner().invoke(_main.program, [*arguments, "--help"], prog_name="leastnoise").output
        )
        assert output.startswith(f"Usage: leastnoise {' '.join(arguments)}".rstrip())
        assert max(map(len, output.splitlines())) <= 100
        text, _, explanation = output.partition("In plain words:")
        used_words = {word for word in glossary if re.search(rf"\b{word}s?\b", text, re.IGNORECASE)}
        assert [
            word
            for word in used_words
            if f"{word} {glossary[word]}" not in " ".join(explanation.split())
        ] == [], arguments
        explained |= used_words
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
    } <= explained
