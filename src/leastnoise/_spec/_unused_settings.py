"""Find settings of a spec that have no effect on its plan, release or warnings."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from leastnoise._domain import Categories, Dates, Domain, Unknown
from leastnoise._release import quantity_key
from leastnoise._workload import Workload

_NUMBER_KEYS = ("decimal", "thousands", "currency")  # they only change how numbers are read
_DESIGN_KEYS = ("sample", "population", "deviation")  # of [survey], for a design effect
_TARGET_KEYS = ("margin", "relative", "rmse")


@dataclass(frozen=True, slots=True)
class UnusedSetting:
    """A setting that has no effect.

    Attributes:
        part: the part of the spec, such as ``[[workload]] number 1``.
        keys: the keys without effect, such as ``size``.
        reason: the name of the text in the catalogue that says why, and what to do.
        values: the values of this text.
    """

    part: str
    keys: str
    reason: str
    values: Mapping[str, str] = field(default_factory=dict)


def unused_settings(
    parts: Mapping[str, Any],
    entries: object,
    workload: Workload,
    declared: Domain,
) -> Iterator[UnusedSetting]:
    """Yield each setting of a valid spec that has no effect.

    Args:
        parts: the parts of the spec by name, such as "privacy".
        entries: the list of the tables ``[[workload]]``, already checked.
        workload: the workload of all entries.
        declared: the domain of the spec, without levels and measures of statements.
    """
    tables: list[Mapping[str, Any]] = entries if isinstance(entries, list) else []
    has_statements = any("sql" in table for table in tables)
    for number, entry in enumerate(tables, 1):
        yield from _unused_entry_keys(f"[[workload]] number {number}", entry)
    yield from _unused_unit_keys(parts["privacy"], workload, has_statements=has_statements)
    yield from _unused_number_keys(parts["domain"], declared)
    yield from _unused_output_keys(parts.get("output", {}), workload)
    yield from _unused_survey_keys(parts.get("survey", {}))
    yield from _unused_target_keys(parts.get("targets", {}))


def _unused_entry_keys(part: str, entry: Mapping[str, Any]) -> Iterator[UnusedSetting]:
    """Yield the keys without effect of an entry [[workload]]."""
    has_target = any(key in entry for key in _TARGET_KEYS)
    if "target_of" in entry and not has_target:
        yield UnusedSetting(part, "target_of", "st_w_unused_target_of")
    if "scales" in entry and "size" not in entry:
        yield UnusedSetting(part, "scales", "st_w_unused_scales")


def _unused_unit_keys(
    privacy: Mapping[str, Any], workload: Workload, *, has_statements: bool
) -> Iterator[UnusedSetting]:
    """Yield the key of_unit of a unit if no table counts or adds up units."""
    unit = privacy.get("unit", "row")
    if not isinstance(unit, Mapping) or not unit.get("of_unit") or has_statements:
        return
    if not any(product.is_per_unit for product in workload):
        yield UnusedSetting("[privacy] unit", "of_unit", "st_w_unused_of_unit")


def _unused_number_keys(attributes: Mapping[str, Any], declared: Domain) -> Iterator[UnusedSetting]:
    """Yield rules for numbers in attributes that have no numbers."""
    for name, table in attributes.items():
        if isinstance(declared.kind(name), (Categories, Dates, Unknown)):
            keys = [key for key in _NUMBER_KEYS if key in table]
            if keys:
                yield UnusedSetting(f"[domain.{name}]", ", ".join(keys), "st_w_unused_number")


def _unused_output_keys(output: Mapping[str, Any], workload: Workload) -> Iterator[UnusedSetting]:
    """Yield the keys of [output] that concern files or quantities without a table."""
    if "sdmx" in output and "sdmx" not in output.get("formats", ()):
        yield UnusedSetting("[output]", "sdmx", "st_w_unused_sdmx")
    quantities = {quantity_key(product.domain, product.measure) for product in workload}
    for key in ("round", "below"):
        numbers = output.get(key)
        if isinstance(numbers, Mapping):
            unused = [name for name in numbers if name not in quantities]
            if unused:
                values = {"names": ", ".join(unused)}
                yield UnusedSetting("[output]", key, "st_w_unused_quantity", values)


def _unused_survey_keys(survey: Mapping[str, Any]) -> Iterator[UnusedSetting]:
    """Yield the keys of [survey] that only a design effect uses, without one."""
    rules = [survey, *survey.get("tables", {}).values()]
    if any("design_effect" in rule for rule in rules):
        return
    for rule in rules:
        keys = [key for key in _DESIGN_KEYS if key in rule]
        if keys:
            yield UnusedSetting("[survey]", ", ".join(keys), "st_w_unused_design")


def _unused_target_keys(targets: Mapping[str, Any]) -> Iterator[UnusedSetting]:
    """Yield public numbers on which the error of a difference does not depend."""
    entries = targets.get("difference", [])
    if isinstance(entries, Mapping):
        entries = [entries]
    for entry in entries:
        keys = [key for key in ("expected_ratio",) if key in entry]
        if "mean" not in entry and "share" not in entry:
            keys += [key for key in ("size", "value") if key in entry]
        if keys:
            yield UnusedSetting("[targets] difference", ", ".join(keys), "st_w_unused_target")
