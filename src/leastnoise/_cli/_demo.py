"""The commands ``leastnoise demo`` and ``leastnoise experiments``.

``demo`` publishes a generated survey from start to end; ``experiments`` needs a checkout of the
source code.
"""

import importlib
import inspect
import sys
from collections.abc import Iterable, Mapping
from itertools import count
from pathlib import Path

import click

from leastnoise._cli._output import (
    FILE,
    display_path,
    format_number,
    plan_with_progress,
    print_facts,
    print_table,
    write_new_file,
)
from leastnoise._cli._plan import print_plan
from leastnoise._cli._release import CommandObserver, print_run
from leastnoise._progress import Progress
from leastnoise._release import Release
from leastnoise._session import read_spec, require_release, run_spec
from leastnoise._trusted.check import InputError, one_of
from leastnoise._trusted.check.arrays import IntArray
from leastnoise._trusted.linop import apply, apply_along_axis
from leastnoise._workload import Product

PEOPLE = 200_000  # of the survey: the size of a small census
SEED = 20250321  # of the survey, so that all runs of the demo have the same data
SEXES = ("F", "M")
REGIONS = (
    "North", "North East", "East", "South East", "South", "South West",
    "West", "North West", "Centre", "Capital", "Coast", "Islands",
)  # fmt: skip
DEGREES = ("none", "primary", "lower secondary", "upper secondary", "bachelor", "master or more")
LOW_AGE = 18
HIGH_AGE = 97
TOP_INCOME = 250_000
INCOME_BINS = 500
_SURVEY_SECONDS = 0.5  # to generate the survey, on one core of 2026
_TRUTH_SECONDS = 0.3  # to compute its true answers

_SPEC = f"""\
# The survey of `leastnoise demo`: 200,000 generated people, one row each. Every value below is
# public: it was chosen without the data.

[source]
path = "people.parquet"

[privacy]
epsilon = "1"
neighbours = "add_remove"
unit = {{ column = "person_id", max_rows = 1 }}

[domain.sex]
categories = {list(SEXES)}

[domain.age]
integers = [{LOW_AGE}, {HIGH_AGE}]
outside = "clip"

[domain.region]
categories = {list(REGIONS)}

[domain.education]
categories = {list(DEGREES)}

[domain.income]
bins = {{ low = 0, high = {TOP_INCOME}, count = {INCOME_BINS} }}
outside = "clip"

[measures.pay]
column = "income"
clip = [0, {TOP_INCOME}]

[[workload]]                   # all tables of one and of two attributes, and the total
marginals = {{ upto = 2, of = ["sex", "age", "region", "education"] }}

[[workload]]                   # the cumulative distribution of income
queries = {{ income = "prefix" }}

[[workload]]                   # the sum of income, clipped to the bounds above, by region and sex
queries = {{ sex = "identity", region = "identity" }}
sum = "pay"

[plan]
strategy = "auto"
guard = "1/100"

[output]
level = 0.95
""".replace("'", '"')


@click.command()
@click.option(
    "--out",
    type=FILE,
    help="A new directory for all files.  [default: the next number in demo-release]",
)
def demo(out: Path | None) -> None:
    """Plan and release a generated survey of 200,000 people.

    Generates the survey, plans and publishes a release, and compares the actual errors with the
    expected ones.
    """
    folder = _new_folder(out)
    with Progress("generating a survey", about=_SURVEY_SECONDS):
        people = generate_survey()
        write_survey(people, folder / "people.parquet")
    spec_path = folder / "survey.toml"
    write_new_file(spec_path, _SPEC, "Choose another directory.")
    click.echo(
        f"A survey of {PEOPLE:,} generated people is in {display_path(folder)}/people.parquet, its "
        f"spec in {display_path(spec_path)}.\n"
    )
    spec = read_spec(spec_path)
    plan, seconds = plan_with_progress(spec)
    print_plan(plan, seconds, spec.options.level)
    run = run_spec(
        spec,
        folder / "release",
        ledger=folder / "people.ledger",
        plan=plan,
        observer=CommandObserver(),
    )
    click.echo()
    print_run(run, folder / "release")
    release = require_release(run)
    click.echo()
    with Progress("computing the true answers", about=_TRUTH_SECONDS):
        rows = compare_errors(release, people)
    _print_errors(rows, spec.options.level)
    _print_next_commands(folder, spec_path)


def _print_errors(rows: list[list[str]], level: float) -> None:
    """Print a table of the expected and the actual errors."""
    headings = [
        "queries",
        "expected\nrmse",
        "realised\nrmse",
        "realised /\nexpected",
        f"within {level:.0%}\ninterval",
    ]
    print_table(
        "Expected and realised error",
        [("table", "fold"), *((heading, "right") for heading in headings)],
        rows,
    )
    click.echo(
        "The true answers were computed only for this comparison. This is possible because the "
        "survey is generated; a release never computes true answers."
    )
    click.echo(
        "A table of few queries is a small sample of noise, so its realised error can differ from "
        "the expected error.\n"
    )


def _print_next_commands(folder: Path, spec_path: Path) -> None:
    """Print commands that the user can try next with the files of the demo."""
    spec = display_path(spec_path)
    second = display_path(folder / "second")
    print_facts(
        [
            ("read", display_path(folder / "release" / "report.html")),
            ("try", f"leastnoise compare {spec}"),
            ("", f"leastnoise ledger show {display_path(folder / 'people.ledger')}"),
            ("", f"leastnoise release {spec} --out {second}   (refused: the budget is spent)"),
        ]
    )


def _new_folder(out: Path | None) -> Path:
    """Create and return a directory: ``out``, or the next free demo-release/N."""
    candidates: Iterable[Path] = (Path("demo-release") / str(number) for number in count(1))
    if out is not None:
        candidates = [out]
    for folder in candidates:
        try:
            folder.mkdir(parents=True)
        except FileExistsError:
            continue
        except OSError as error:
            reason = (error.strerror or type(error).__name__).lower()
            raise InputError(
                f"The directory {folder} cannot be made: {reason}. Choose one with --out."
            ) from None
        return folder
    raise InputError(
        f"The directory {out} exists already and is not overwritten. Choose another directory "
        "with --out, or omit --out to use the next free directory."
    )


def generate_survey(size: int = PEOPLE, seed: int = SEED) -> dict[str, IntArray]:
    """Generate a synthetic survey of ``size`` people; return its columns.

    Returns:
        For each column an array of shape (size,) with codes or numbers. Equal seeds give equal
        arrays.
    """
    import numpy as np

    random = np.random.default_rng(seed)
    sex = random.integers(0, 2, size)
    age = np.clip(LOW_AGE + 80 * random.beta(1.25, 1.9, size), LOW_AGE, HIGH_AGE).astype(np.int64)
    shares = np.array([8, 6, 9, 7, 5, 6, 10, 9, 7, 18, 8, 3])
    region = random.choice(len(REGIONS), size, p=shares / shares.sum())
    relative_age = (age - LOW_AGE) / (HIGH_AGE - LOW_AGE)
    education_level = (
        3.1
        - 1.3 * relative_age
        + 0.35 * (region == REGIONS.index("Capital"))
        + random.normal(0, 1.15, size)
    )
    education = np.clip(np.rint(education_level), 0, len(DEGREES) - 1).astype(np.int64)
    log_income = (
        9.75
        + 0.17 * education
        + 0.9 * relative_age
        - 0.85 * relative_age**2
        + 0.12 * sex
        + 0.15 * (region == REGIONS.index("Capital"))
    )
    income = np.exp(log_income + random.normal(0, 0.62, size))
    income[random.random(size) < 1 / 12] = 0
    states_round_number = random.random(size) < 0.6
    rounded = np.where(states_round_number, np.rint(income / 500) * 500, np.rint(income))
    return {
        "person_id": random.permutation(size) + 1,
        "sex": sex,
        "age": age,
        "region": region,
        "education": education,
        "income": rounded.astype(np.int64),
    }


def write_survey(survey: Mapping[str, IntArray], path: Path) -> None:
    """Write a survey as a Parquet file that has labels instead of codes."""
    import duckdb

    labels = {"sex": SEXES, "region": REGIONS, "education": DEGREES}
    columns = [
        f"{list(labels[name])}[{name} + 1] AS {name}" if name in labels else name for name in survey
    ]
    with duckdb.connect() as connection:
        connection.register("people", dict(survey))
        # The names of the columns are constants of this file.
        connection.sql(f"SELECT {', '.join(columns)} FROM people").write_parquet(str(path))  # noqa: S608


def true_answers(product: Product, survey: Mapping[str, IntArray]) -> IntArray:
    """Return the exact answers to the queries of a table of the workload.

    Only the demo may compute exact answers, because its people are generated.
    """
    import numpy as np

    income = np.clip(survey["income"], 0, TOP_INCOME)
    codes = {
        **survey,
        "age": np.clip(survey["age"], LOW_AGE, HIGH_AGE) - LOW_AGE,
        "income": np.minimum(income * INCOME_BINS // TOP_INCOME, INCOME_BINS - 1),
    }
    shape = [operator.size for operator in product.operators]
    if shape:
        cell_numbers = np.ravel_multi_index([codes[name] for name in product.attributes], shape)
    else:
        cell_numbers = np.zeros(len(income), dtype=np.int64)
    if product.measure is None:
        weights = None
    else:
        weights = income
    answers = (
        np.bincount(cell_numbers, weights, minlength=int(np.prod(shape, dtype=np.int64)))
        .astype(np.int64)
        .reshape(shape)
    )
    for axis, operator in enumerate(product.operators):
        answers = apply_along_axis(apply, operator, answers, axis)
    return answers


def compare_errors(release: Release, survey: Mapping[str, IntArray]) -> list[list[str]]:
    """Return rows that compare expected with actual errors, the total last."""
    import numpy as np

    rows: list[list[str]] = []
    expected_errors = [rmse for _, rmse, _ in release.plan.expected_error().table_errors()]
    queries = 0
    covered_queries = 0
    relative_squares = 0.0
    for expected, table in zip(expected_errors, release.tables, strict=True):
        exact = true_answers(table.product, survey)
        realised = float(np.sqrt(np.mean((table.answer - exact) ** 2)))
        covered = int(np.sum((table.low <= exact) & (exact <= table.high)))
        queries += table.cells
        covered_queries += covered
        relative_squares += table.cells * (realised / expected) ** 2
        numbers = [
            format_number(expected),
            format_number(realised),
            f"{realised / expected:.2f}",
            f"{covered / table.cells:.1%}",
        ]
        rows.append([table.name, f"{table.cells:,}", *numbers])
    ratio = float(np.sqrt(relative_squares / queries))
    share = covered_queries / queries
    return [*rows, ["all", f"{queries:,}", "", "", f"{ratio:.2f}", f"{share:.1%}"]]


_ROOT = Path(__file__).resolve().parents[3]


def list_experiments(checkout: Path) -> dict[str, str]:
    """Return the modules of the experiments in a checkout, by experiment name."""
    files = sorted((checkout / "experiments").glob("*.py"))
    return {
        file.stem.replace("_", "-"): file.stem
        for file in files
        if "\ndef run(" in file.read_text(encoding="utf-8")
    }


@click.command()
@click.argument("name", required=False)
@click.option(
    "--data",
    type=click.Path(path_type=Path, file_okay=False),
    help="The folder with the real data sets.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    help="The folder for tables and figures.  [default: build/NAME]",
)
@click.option("--quick", is_flag=True, help="Run a small version, which takes about half a minute.")
def experiments(
    name: str | None,
    data: Path | None,
    out: Path | None,
    quick: bool,  # noqa: FBT001 - click passes flags by name
) -> None:
    """Repeat a paper's figures and tables; without NAME, list them.

    This needs a checkout of the source code; the installed package has no experiments. The noise
    comes from a seed, so the results are not private.
    """
    modules = list_experiments(_ROOT)
    if not modules:
        raise InputError(
            "The installed package has no experiments. Run this command in a source checkout."
        )
    if name is None:
        click.echo("\n".join(modules))
        return
    one_of("NAME", name, modules)
    if data is not None and not data.is_dir():
        raise InputError(f"--data must be a folder that exists; got {display_path(data)}.")
    if str(_ROOT) not in sys.path:
        sys.path.insert(0, str(_ROOT))
    # By name, so that the library depends on nothing outside itself.
    run = importlib.import_module(f"experiments.{modules[name]}").run
    if data is None and inspect.signature(run).parameters["data"].annotation is Path:
        raise InputError(f"The experiment {name} needs real data; got no folder. Add --data DIR.")
    run(data, out or Path("build") / name, quick=quick, report=click.echo)
