"""What ``leastnoise plan`` says of a data-aware mechanism: what will be done, and what a plan that does not look would promise."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from leastnoise._cli._output import noise, number, show_facts, show_table, whole

if TYPE_CHECKING:
    from leastnoise._plan import DataAwarePlan
    from leastnoise._workload import Workload

_MOST_TABLES = 40
_STEPS = {
    "test": "ask how much structure the data have (the least cost of any partition)",
    "partition": "draw a partition into buckets of alike cells",
    "levels": "measure blocks of several widths, and shrink the differences between them",
    "buckets": "measure the buckets",
    "blocks": "measure a few blocks",
    "parts": "divide each block as its noisy count deserves, and measure the parts and groups of them",
    "independent": "measure the plan that does not look at the data",
    "tail": "count the records in the tail, and choose the threshold of least predicted error",
    "sums": "measure the sums of values cut at the threshold, with a strategy made for it",
}
_WAYS = {
    "independent": "no structure:",
    "shrunk": "some structure:",
    "adaptive": "much structure:",
    "blocks": "some structure:",
    "quadtree": "hardly anything but structure:",
    "buckets": "hardly anything but structure:",
}


def unique(names: list[str]) -> list[str]:
    """Number the repetitions of a name.

    >>> unique(["age", "sex", "age"])
    ['age', 'sex', 'age (2)']
    """
    seen: dict[str, int] = {}
    given = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        given.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return given


def data_aware_facts(made: "DataAwarePlan", workload: "Workload", seconds: float) -> dict[str, Any]:
    """What is known before the data are seen, as a JSON object: the keys of every plan, with null for what only the data decide.

    Args:
        made: the plan.
        workload: that it answers.
        seconds: how long it took to make.
    """
    names = unique([product.name for product in workload])
    reference = made.details.get("reference")
    return {
        "strategy": made.strategy,
        "mechanism": made.details.get("mechanism"),
        "privacy": made.privacy.to_json(),
        "cost": {"kind": "series", **made.privacy.budget.to_json()},
        "queries": workload.rows,
        "expected_total_squared_error": None,
        "lower_bound": None,
        "error_over_least_possible": None,
        "rmse": dict.fromkeys(names),
        "tables": [
            {
                "name": name,
                "queries": product.rows,
                "rmse": None,
                "largest_std": None,
                "largest_is_bound": None,
                "weight": float(product.weight),
                "measure": product.measure,
            }
            for name, product in zip(names, workload, strict=True)
        ],
        "seconds": round(seconds, 3),
        "data_aware": True,
        "steps": made.details.get("steps"),
        "reference": None if reference is None else {**reference, "rmse": dict(zip(names, reference["rmse"], strict=True))},
    }


def show_data_aware(made: "DataAwarePlan", workload: "Workload", seconds: float) -> None:
    """Print what will be done with which part of the budget, and the error of the best plan that does not look at the data.

    Args:
        made: the plan.
        workload: that it answers.
        seconds: how long it took to make.
    """
    show_table("What will be done", [("step", "left"), ("part of the budget", "left")], _told(made.details.get("steps", ())))
    click.echo(
        "Which queries are measured is decided on the way, by noisy values that are paid for. So the error depends on the data,\n"
        "and no error is promised. The release says how large it is: the noise exactly, the rest as an estimate.\n"
    )
    reference = made.details.get("reference")
    facts = []
    if reference is not None:
        names = unique([product.name for product in workload])
        errors = zip(names, workload, reference["rmse"], strict=True)
        rows = [[name, whole(product.rows), number(rmse)] for name, product, rmse in errors][:_MOST_TABLES]
        title = f"For comparison: expected error of {reference['strategy']}, which does not look at the data"
        show_table(title, [("table", "fold"), ("queries", "right"), ("rmse", "right")], rows)
        facts = [
            ("its total squared error", number(reference["expected_total_squared_error"])),
            ("its lower bound", number(reference["lower_bound"])),
        ]
    show_facts(
        [
            *facts,
            ("queries", whole(workload.rows)),
            ("strategy", made.strategy),
            ("protects", made.privacy.unit),
            ("cost", f"{_budget(made.privacy.budget.to_json())}, all of it, with {noise(made.details['mechanism'])} noise"),
            ("seconds", f"{seconds:.2f}"),
        ]
    )


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
