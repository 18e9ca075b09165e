"""What ``leastnoise plan`` says of a mechanism that decides on the way what to measure: its steps, and a plan that does not look."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from leastnoise._cli._output import number, show_table, whole

if TYPE_CHECKING:
    from leastnoise._mechanisms import Explanation

_MOST_TABLES = 40
_STEPS = {
    "test": "ask how much structure the data have (the least cost of any partition)",
    "partition": "draw a partition into buckets of alike cells",
    "levels": "measure blocks of several widths, and shrink the differences between them",
    "buckets": "measure the buckets",
    "blocks": "measure a few blocks",
    "parts": "divide each block as its noisy count deserves, and measure the parts and groups of them",
    "total": "count the rows",
    "alone": "measure every attribute alone",
    "pairs": "measure pairs of attributes on bins that hold about as many rows as their noise, and fit a model",
    "independent": "measure the plan that does not look at the data",
    "tail": "count the records in the tail, and choose the threshold of least predicted error",
    "sums": "measure the sums of values cut at the threshold, with a strategy made for it",
    "groups": "measure buckets of the number under the threshold, by group; each group adds up those that are likely worth their noise",
    "number": "measure sums along the number; buckets of it, each up to 1.6 times as high as the last, that hold nothing are left out",
}
_WAYS = {
    "independent": "no structure:",
    "adaptive": "much structure:",
    "blocks": "some structure:",
    "model_bins": "cells of few rows:",
    "model_tables": "cells of many rows:",
}


def explained(found: "Explanation", names: Sequence[str]) -> dict[str, Any]:
    """What a plan's JSON object has besides, where its error depends on the data."""
    if not found.steps:
        return {}
    reference = None if found.reference is None else found.reference.facts()
    if reference is not None:
        reference["rmse"] = dict(zip(names, reference["rmse"], strict=True))
    return {"data_aware": True, "steps": found.steps, "reference": reference}


def show_steps(found: "Explanation", tables: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """Print what will be done with which part of the budget, and the error of the best plan that does not look at the data."""
    show_table("What will be done", [("step", "left"), ("part of the budget", "left")], _told(found.steps))
    click.echo(
        "Which queries are measured is decided on the way, by noisy values that are paid for. So the error depends on the data,\n"
        "and no error is promised. The release says how large it is: the noise exactly, the rest as an estimate.\n"
    )
    reference = found.reference
    if reference is None:
        return []
    rows = [[table["name"], whole(table["queries"]), number(rmse)] for table, rmse in zip(tables, reference.rmse, strict=True)]
    title = f"For comparison: expected error of {reference.strategy}, which does not look at the data"
    show_table(title, [("table", "fold"), ("queries", "right"), ("rmse", "right")], rows[:_MOST_TABLES])
    return [
        ("its total squared error", number(reference.expected_total_squared_error)),
        ("its lower bound", number(reference.lower_bound)),
    ]


def _told(steps: Sequence[Mapping[str, Any]], indent: str = "") -> list[tuple[str, str]]:
    """One line a step, alternatives below each other."""
    told: list[tuple[str, str]] = []
    for step in steps:
        if step["step"] == "one of":
            told.append((f"{indent}then, by the answer, one of these:", ""))
            for way, inner in step.items():
                if way != "step":
                    told += [(f"{indent}  {_WAYS.get(way, way)}", ""), *_told(inner, indent + "    ")]
        else:
            part = f"epsilon = {_short(step['epsilon'])}" if "epsilon" in step else _budget(step["budget"])
            told.append((indent + _STEPS.get(step["step"], step["step"]), part))
    return told


def _budget(value: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} = {_short(str(part))}" for name, part in value.items() if name != "definition")


def _short(text: str) -> str:
    from leastnoise._accounting import fraction_from_text, readable

    return readable(fraction_from_text("a part of the budget", text))
