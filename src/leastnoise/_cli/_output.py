"""What people and programs read on the standard output stream: tables, facts, JSON, and the plan that a spec asks for."""

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from fractions import Fraction
from math import ceil, floor, log10
from pathlib import Path
from typing import Any

import click
from rich import box
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from leastnoise._accounting import Budget, Charge, charge, charge_text, fraction_from_text, parameters, whole_budget
from leastnoise._accuracy import statistic_errors, within_memory
from leastnoise._check import InputError, readable
from leastnoise._frames import several, visible
from leastnoise._measurements import cost, views
from leastnoise._mechanisms import Explanation, mechanism_of
from leastnoise._plan import Plan, Promise
from leastnoise._planning import Reached, reached, reached_by_means
from leastnoise._progress import Progress
from leastnoise._release import ENGLISH, FoundCategories, stated_words, sums_words
from leastnoise._session import planned_spec, spec_seconds
from leastnoise._spec import Spec, read_spec

_WIDE = 160  # where there is no terminal, nothing is cut to a width


def data_name(spec: Spec) -> str:
    """What a line of progress calls the data of a spec."""
    return spec.source.name if isinstance(spec.source, Path) else "the data"


def number(value: float) -> str:
    """Write a number for people: four digits that count."""
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e9 else f"{value:#.4g}"


def noise(mechanism: str) -> str:
    """The kind of noise in words."""
    kind, name = mechanism.split("_")
    return f"{kind} {name.capitalize()}"


def amount(value: Fraction, *, up: bool) -> str:
    """Write a part of a budget for people: exactly where that is short, else six digits, rounded to the safe side."""
    text = readable(value)
    if not text.startswith("about"):
        return text
    scale = max(6, 5 - floor(log10(value)) if up else 0)
    digits = value * 10**scale
    return readable(Fraction(ceil(digits) if up else floor(digits), 10**scale))


def rounded_charge_text(budget: Budget, charge: Charge, *, up: bool) -> str:
    """Write a charge for people, with the parts that the definition of a budget has."""
    return " and ".join(f"{name} = {amount(getattr(charge, name), up=up)}" for name in parameters(budget))


def rounded_budget_text(budget: Budget, *, up: bool) -> str:
    """Write a whole budget for people, rounded to the safe side."""
    return rounded_charge_text(budget, whole_budget(budget), up=up)


def budget_text(budget: Budget) -> str:
    """Write a budget for people, exactly."""
    return charge_text(budget, whole_budget(budget))


def whole(value: int) -> str:
    """Write a whole number for people."""
    return f"{value:,}"


def share(value: float | None) -> str:
    """Write a ratio for people; None is no ratio."""
    return "-" if value is None else f"{value:.3f}" if value < 1000 else number(value)


def show_table(
    title: str, columns: Sequence[tuple[str, str]], rows: Iterable[Sequence[str | tuple[str, ...]]], bold: int | None = None
) -> None:
    """Print a table and an empty line; a cell of several lines is a tuple of them."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")

    def text(lines: str | tuple[str, ...]) -> Text:
        return Text("\n".join(map(visible, (lines,) if isinstance(lines, str) else lines)))

    for heading, side in columns:  # of our own words, or names, which have no ends of lines
        justify: Any = "right" if side == "right" else "left"
        table.add_column(text(tuple(heading.split("\n"))), justify=justify, no_wrap=side != "fold", overflow="fold")
    for number_of_row, row in enumerate(rows):
        table.add_row(*map(text, row), style="bold" if number_of_row == bold else None)
    if title:
        _print(Text(visible(title), style="bold"))
    _print(table)
    click.echo()


def show_facts(facts: Iterable[tuple[str, str]]) -> None:
    """Print names and values, one a line."""
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True, style="bold")
    table.add_column(overflow="fold")
    for name, value in facts:
        table.add_row(Text(visible(name)), Text(visible(value)))
    _print(table)


def _print(what: RenderableType) -> None:
    """Print in colours on a terminal only, and none under NO_COLOR; elsewhere without spaces at the ends of lines."""
    screen = Console(highlight=False, soft_wrap=False)
    if not (screen.is_terminal or os.environ.get("COLUMNS")):
        screen = Console(highlight=False, width=_WIDE)
    with screen.capture() as captured:
        screen.print(what)
    text = captured.get()
    click.echo(text if screen.is_terminal else "\n".join(line.rstrip() for line in text.split("\n")), nl=False, color=screen.is_terminal)


def show_json(value: Mapping[str, Any]) -> None:
    """Print exactly one JSON object."""
    click.echo(json.dumps(value, indent=2, allow_nan=False))


def shown(path: Path) -> str:
    """The shorter of a path's relative and absolute form."""
    whole_path = Path(os.path.abspath(path))  # noqa: PTH100 - resolve() would follow links, and show another name than was typed
    return str(whole_path.relative_to(Path.cwd())) if whole_path.is_relative_to(Path.cwd()) else str(whole_path)


def check_new(path: Path, advice: str) -> None:
    """Refuse a file that exists already."""
    try:
        path.lstat()
    except OSError as error:
        if not isinstance(error, (FileNotFoundError, NotADirectoryError)):
            raise InputError(f"{shown(path)} cannot be written: {(error.strerror or 'no such place').lower()}. {advice}") from None
        return
    raise InputError(f"{shown(path)} exists already and is not overwritten. {advice}")


@contextmanager
def new_file(path: Path, advice: str) -> Iterator[Path]:
    """Where to write a file that does not exist yet; it gets its name when all is written, and else nothing is left."""
    check_new(path, advice)
    part = path.with_name(f".{os.getpid()}.part.{path.name}")
    try:
        yield part
        part.rename(path)
    except OSError as error:
        reason = (error.strerror or type(error).__name__).lower()
        raise InputError(f"{shown(path)} cannot be written: {reason}. Choose a folder that exists and that you may write to.") from None
    except UnicodeEncodeError:
        raise InputError(f"{shown(path)} cannot be written, because a name in it is not valid text. Rename that file or column.") from None
    finally:
        with suppress(OSError):
            part.unlink()


def write_new(path: Path, text: str, advice: str) -> None:
    """Write a text file that does not exist yet, whole or not at all."""
    with new_file(path, advice) as part:
        part.write_text(text, encoding="utf-8")


def unique(names: list[str]) -> list[str]:
    """Number the repetitions of a name."""
    seen: dict[str, int] = {}
    given = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        given.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return given


_MOST_TABLES = 40
_METHODS = {
    "means": "std_error of a mean in a group of size rows, at most: by the delta method, at the largest mean that the bounds allow",
    "shares": "rows: standard error of the counts up to a cell; std_error is their share of size rows",
}
_STEPS = {
    "test": "ask how much structure the data have (the least cost of any partition)",
    "levels": "measure blocks of several widths, and shrink the differences between them",
    "buckets": "measure the buckets",
    "blocks": "measure a few blocks",
    "parts": "divide each block as its noisy count deserves, and measure the parts and groups of them",
    "total": "count the rows",
    "alone": "measure every attribute alone",
    "pairs": "measure pairs of attributes on bins that hold about half as many rows as their noise, and fit a model",
    "threes": "measure tables of three attributes on bins",
    "independent": "measure the plan that does not look at the data",
    "tail": "count the records in the tail, and choose the threshold of least predicted error",
    "sums": "measure the sums of values cut at the threshold, with a strategy made for it",
    "groups": "measure buckets of the number under the threshold, by group; each group adds up those that are likely worth their noise",
    "number": "measure sums along the number; buckets of it, each up to 1.6 times as high as the last, that hold nothing are left out",
}
_CASES = {
    "independent": "no structure:",
    "adaptive": "much structure:",
    "blocks": "some structure:",
    "model_bins": "cells of few rows:",
    "model_fuller": "cells of rather few rows:",
    "model_tables": "cells of many rows:",
}


without_cache = click.option(
    "--no-cache",
    is_flag=True,
    expose_value=False,
    callback=lambda _, __, wanted: os.environ.update({"LEASTNOISE_CACHE": "off"} if wanted else {}),
    help="Plan anew, and keep no plan in the cache folder.",
)
"""For commands that plan; the same as LEASTNOISE_CACHE=off in the environment."""


of_spec = click.option(
    "--spec",
    "beside",
    type=click.Path(path_type=Path),
    expose_value=False,
    callback=lambda context, _, path: context.meta.update(spec=path),
    help="The spec, where SPEC is a file of SQL statements (.sql), which are asked in place of its [[workload]].",
)
"""For commands that may be given a file of SQL."""


def read_asked(path: Path, categories: Mapping[str, FoundCategories] | None = None) -> Spec:
    """The spec of a command, or that beside its SQL."""
    beside = click.get_current_context().meta.get("spec")
    if (path.suffix == ".sql") != (beside is not None):
        raise InputError(
            f"{path} has SQL statements: say --spec people.toml too, for the domain and the budget."
            if beside is None
            else f"--spec is for a file of SQL statements whose name ends in .sql; got {path}."
        )
    return read_spec(path, categories or {}) if beside is None else read_spec(beside, categories or {}, path)


def planned_shown(spec: Spec) -> tuple[Plan, float]:
    """The plan that a spec asks for, and the seconds that it took, with a line of progress."""
    with within_memory(), Progress("planning", about=spec_seconds(spec)) as progress:
        return planned_spec(spec, progress.trying), progress.seconds


def expected(plan: Plan, level: float = 0.95) -> list[dict[str, Any]]:
    """What is promised for every table, by name; None where the error depends on the data.

    Errors of counts are in rows, those of sums in the measure's own amounts. A table with a target also has it, what the plan makes of it,
    and whether it is kept.
    """
    products = plan.workload.products
    promised = [None] * len(products) if plan.promise is None else plan.promise.tables
    targets = [None] * len(products) if plan.promise is None else reached(plan, level)
    names = unique([product.name for product in products])
    return [
        {
            "name": name,
            "queries": product.rows,
            "rmse": None if table is None else table.rmse * product.unit,
            "largest_std": None if table is None else table.largest_std * product.unit,
            "largest_is_bound": None if table is None else table.largest_is_bound,
            "weight": float(product.weight),
            "measure": product.measure,
            **_target_facts(target),
        }
        for name, table, product, target in zip(names, promised, products, targets, strict=True)
    ]


def expected_statistics(plan: Plan, level: float = 0.95) -> list[dict[str, Any]]:
    """What is promised for every mean, quantile and distribution function: the error of its counts, and what follows at a public size."""
    if plan.promise is None:
        return []
    return [
        {
            "name": error.statistic.name,
            "asked": error.statistic.to_json(),
            "tables": list(error.tables),
            "rows": error.rows,
            "largest_rows": error.largest_rows,
            "size": None if error.statistic.size is None else float(error.statistic.size),
            "std_error": error.std_error,
            "method": _METHODS["means" if error.statistic.form.of_measure else "shares"],
            **_target_facts(target),
        }
        for error, target in zip(statistic_errors(plan), reached_by_means(plan, level), strict=True)
    ]


def _target_facts(target: Reached | None) -> dict[str, Any]:
    return {} if target is None else {"target": {target.kind: target.most}, target.kind: target.error, "kept": target.kept}


def facts(plan: Plan, seconds: float, level: float) -> dict[str, Any]:
    """What is promised, as a JSON object with stable keys; null for what depends on the data."""
    promise, tables, statistics = plan.promise, expected(plan, level), expected_statistics(plan, level)
    explanation = mechanism_of(plan).explain(plan)
    looks: dict[str, Any] = {}
    if explanation.steps:
        reference = None if explanation.reference is None else explanation.reference.facts()
        if reference is not None:
            reference["rmse"] = dict(zip((table["name"] for table in tables), reference["rmse"], strict=True))
        looks = {"data_aware": True, "steps": explanation.steps, "reference": reference}
    cost: dict[str, Any] = {**plan.cost().to_json()}
    cost |= cost.pop("budget", {})
    return {
        "strategy": plan.strategy,
        "mechanism": explanation.mechanism,
        "privacy": plan.privacy.to_json(),
        "cost": cost,
        "queries": sum(table["queries"] for table in tables),
        "expected_total_squared_error": None if promise is None else promise.total_squared_error,
        "lower_bound": None if promise is None else promise.lower_bound,
        "error_over_least_possible": None if promise is None else promise.times_least,
        "rmse": {table["name"]: table["rmse"] for table in tables},
        "tables": tables,
        **({"statistics": statistics} if statistics else {}),
        **({"values": values} if (values := sums_words(plan.workload)) else {}),
        **({"not_protected": dict(said)} if (said := stated_words(plan)) else {}),
        "seconds": round(seconds, 3),
        **looks,
    }


def show_plan(plan: Plan, seconds: float, level: float) -> None:
    """Print the expected error of every table, and of all together; or what will be done, where the error depends on the data."""
    tables, explanation = expected(plan, level), mechanism_of(plan).explain(plan)
    totals = _show_steps(explanation, tables) if plan.promise is None else _show_promise(plan.promise, tables)
    _show_statistics(expected_statistics(plan, level))
    rest = ", all of it" if plan.measurements is None else ""
    show_facts(
        [
            ("queries", whole(sum(table["queries"] for table in tables))),
            *totals,
            ("strategy", plan.strategy),
            ("protects", plan.privacy.unit),
            ("cost", f"{_cost(plan)}{rest}, with {noise(explanation.mechanism)} noise"),
            *_shares(plan),
            *(("values", sentence) for sentence in sums_words(plan.workload)),
            *(("not protected", ENGLISH.say(key, values=values)) for key, values in stated_words(plan).items()),
            ("seconds", f"{seconds:.2f}"),
        ]
    )


def _show_promise(promise: Promise, tables: Sequence[dict[str, Any]]) -> list[tuple[str, str]]:
    columns = [("table", "fold"), ("queries", "right"), ("rmse", "right"), ("largest\nstd error", "right")]
    rows = []
    for table in tables[:_MOST_TABLES]:
        largest = ("<= " if table["largest_is_bound"] else "") + number(table["largest_std"])
        rows.append([table["name"], whole(table["queries"]), number(table["rmse"]), largest])
    if any(table["weight"] != 1 for table in tables):
        columns.append(("weight", "right"))
        rows = [[*row, f"{table['weight']:g}"] for row, table in zip(rows, tables, strict=False)]
    if any("target" in table for table in tables):
        columns.append(("target", "left"))
        rows = [[*row, _target(table)] for row, table in zip(rows, tables, strict=False)]
    show_table("Expected error", columns, rows)
    rest = tables[_MOST_TABLES:]
    if rest:
        errors = [table["rmse"] for table in rest]
        queries = several(sum(table["queries"] for table in rest), "query", "queries")
        click.echo(f"and {several(len(rest), 'more table')}, {queries}, rmse {number(min(errors))} to {number(max(errors))} (--json)\n")
    return [
        ("total squared error", number(promise.total_squared_error)),
        ("lower bound", number(promise.lower_bound)),
        ("error / least possible", share(promise.times_least)),
    ]


def _show_statistics(statistics: Sequence[dict[str, Any]]) -> None:
    """What can be said beforehand of means (at a public size), and of quantiles and distribution functions (the error of their counts)."""
    rows = []
    for asked in statistics:
        if "means" in asked["asked"]:
            known = "depends on the rows of a group; say a public size for the error of a mean"
            if asked["std_error"] is not None:
                known = f"standard error at most {number(asked['std_error'])} in a group of {number(asked['size'])} rows (delta method)"
        else:
            known = f"standard error of the counts up to a cell {number(asked['rows'])} rows"
            if asked["std_error"] is not None:
                known += f", {number(asked['std_error'])} of {number(asked['size'])} rows"
        rows.append([asked["name"], known])
    if rows:
        columns = [("made of the tables", "fold"), ("known beforehand", "fold")]
        if any("target" in asked for asked in statistics):
            columns.append(("target", "left"))
            rows = [[*row, _target(asked)] for row, asked in zip(rows, statistics, strict=True)]
        show_table("", columns, rows)


def _target(table: dict[str, Any]) -> str:
    """What is made of a target: "margin 50: 48.2", with a mark if it is missed."""
    if "target" not in table:
        return ""
    ((kind, most),) = table["target"].items()
    return f"{kind} {number(most)}: {number(table[kind])}{'' if table['kept'] else ', missed'}"


def _show_steps(explanation: Explanation, tables: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """Print what will be done with which part of the budget, and the error of the best plan that does not look at the data."""
    show_table("What will be done", [("step", "left"), ("part of the budget", "left")], _step_lines(explanation.steps))
    click.echo(
        "Which queries are measured is decided on the way, by noisy values that are paid for. So the error depends on the data,\n"
        "and no error is promised. The release says how large it is: the noise exactly, the rest as an estimate.\n"
    )
    reference = explanation.reference
    if reference is None:
        return []
    rows = [[table["name"], whole(table["queries"]), number(rmse)] for table, rmse in zip(tables, reference.rmse, strict=True)]
    title = f"For comparison: expected error of {reference.strategy}, which does not look at the data"
    show_table(title, [("table", "fold"), ("queries", "right"), ("rmse", "right")], rows[:_MOST_TABLES])
    return [
        ("its total squared error", number(reference.expected_total_squared_error)),
        ("its lower bound", number(reference.lower_bound)),
    ]


def _step_lines(steps: Sequence[Mapping[str, Any]], indent: str = "") -> list[tuple[str, str]]:
    """One line a step, alternatives below each other."""
    lines: list[tuple[str, str]] = []
    for step in steps:
        if step["step"] == "one of":
            lines.append((f"{indent}then, by the answer, one of these:", ""))
            for case, inner in step.items():
                if case != "step":
                    lines += [(f"{indent}  {_CASES.get(case, case)}", ""), *_step_lines(inner, indent + "    ")]
        else:
            parts = {"epsilon": step["epsilon"]} if "epsilon" in step else step["budget"]
            pairs = [(name, fraction_from_text("a part of the budget", str(part))) for name, part in parts.items() if name != "definition"]
            lines.append((indent + _STEPS.get(step["step"], step["step"]), ", ".join(f"{name} = {readable(part)}" for name, part in pairs)))
    return lines


def _cost(plan: Plan) -> str:
    """What the plan costs; where scales were rounded and cost a millionth less than the budget, the budget."""
    budget = plan.privacy.budget
    paid, most = charge(budget, budget, plan.cost()), whole_budget(budget)
    pairs = {name: (getattr(paid, name), getattr(most, name)) for name in ("epsilon", "delta", "rho")}
    near = Fraction(10**6 - 1, 10**6)
    return str(Charge(**{name: above if below >= near * above else below for name, (below, above) in pairs.items()}))


def _shares(plan: Plan) -> list[tuple[str, str]]:
    """What share of the cost is for rows and sums, and for each count of units, which add up; nothing where no units are counted."""
    units = {product.measure for product in plan.workload if product.of_units}
    if not units:
        return []
    paid = {view.blocks[0].measure: float(next(iter(parameters(cost(view)).values()))) for view in views(plan.measured())}
    parts = [f"{measure if measure in units else 'rows and sums'} {price / sum(paid.values()):.0%}" for measure, price in paid.items()]
    return [("of which for", ", ".join(parts))]
