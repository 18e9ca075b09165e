"""Which columns a plan is about: only these are read."""

from collections.abc import Iterator, Mapping
from typing import Any

from leastnoise._check import InputError
from leastnoise._plan._data_aware import DataAwarePlan
from leastnoise._plan._plan import Plan


def used(plan: Plan | DataAwarePlan) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The attributes and measures that a plan's questions or measurements are about, in the order of the domain.

    Public: they follow from the plan alone. Nothing else is read, so an attribute that nobody asks about drops no row.

    Args:
        plan: the plan.

    Raises:
        InputError: questions that cannot be read.

    >>> questions = ({"queries": {"age": {"kind": "prefix", "arguments": []}}, "measure": None},)
    >>> used(DataAwarePlan(domain=Domain(sex=["F"], age=[1, 2]), privacy=Privacy(PureDP(1)), strategy="dawa", questions=questions))
    (('age',), ())
    """
    try:
        pairs = {pair for entry in plan.questions for pair in _asked(entry)}
    except (KeyError, TypeError, AttributeError):
        raise InputError("The questions of the plan cannot be read. Make the plan again; nothing was spent.") from None
    if isinstance(plan, Plan):
        pairs |= {(name, block.measure) for block in plan.blocks for name in (*block.attributes, None)}
        pairs |= {(block.limits.attribute, None) for block in plan.blocks if block.limits is not None}
    attributes, measures = ({pair[place] for pair in pairs} for place in (0, 1))
    return tuple(name for name in plan.domain.names if name in attributes), tuple(name for name in plan.domain.measures if name in measures)


def _asked(entry: Mapping[str, Any]) -> Iterator[tuple[str | None, str | None]]:
    yield None, entry.get("measure")
    yield from ((name, None) for name, asked in entry.get("queries", {}).items() if asked["kind"] != "total")
