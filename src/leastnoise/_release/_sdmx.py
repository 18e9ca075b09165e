"""Answers as SDMX-CSV 2.0 data messages (SDMX 3.0), a file a table, and the structures that they follow as one SDMX-ML 3.0 message.

Every table is a data flow ``LEASTNOISE:Q7_SEX(1.0.0)`` of its own: its attributes are the dimensions, the answer is ``OBS_VALUE``,
and attributes of the observation say how exact it is. In the files each component has its id and name (``labels=both``).
"""

import csv
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from leastnoise._release._release import Release
from leastnoise._release._tables import Part, Table
from leastnoise._release._texts import filled
from leastnoise._release._words import of_words

USUAL_AGENCY = "LEASTNOISE"
NAME = "structure.sdmx.xml"
_HEAD = ("STRUCTURE", "STRUCTURE_ID", "ACTION")
# of a table only those that it has
_VALUES = {
    "OBS_VALUE": "Answer",
    "NOISE_STD": "Standard error of the noise",
    "STD_ERROR": "Standard error",
    "LOW": "Lower end of the interval",
    "HIGH": "Upper end of the interval",
    "OBS_STATUS": "Observation status",
    "UNIT_MEASURE": "Unit of measure",
    "CONF_LEVEL": "Coverage of the interval",
}
_STATUS = (("E", "Estimated value"), ("Q", "Missing value; suppressed"))
_CONTROL = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def codes(names: Iterable[str], taken: Iterable[str] = ()) -> list[str]:
    """Ids as SDMX wants them (letters, digits, ``_`` and ``-``), each unlike the others and unlike those taken."""
    ids, used = [], set(taken)
    for name in names:
        plain = name.replace("<=", "LE ").replace(">=", "GE ").replace("<", "LT ").replace(">", "GT ").upper()
        stem = re.sub(r"[^A-Z0-9-]+", "_", plain).strip("_") or "X"
        stem = stem if re.fullmatch("-?[0-9_]+", stem) else stem.lstrip("-_") or "X"  # none that a spreadsheet takes for a formula
        code, number = stem, 2
        while code in used:
            code, number = f"{stem}_{number}", number + 1
        used.add(code)
        ids.append(code)
    return ids


@dataclass(frozen=True, slots=True)
class Dimension:
    """A dimension of a data flow."""

    id: str
    name: str
    codes: tuple[str, ...]
    labels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Flow:
    """A data flow: a table, or means, quantiles or a distribution function."""

    id: str
    name: str
    dimensions: tuple[Dimension, ...]
    values: tuple[str, ...]
    unit: tuple[str, str]


def agency_of(release: Release) -> str:
    """The id of the agency that publishes."""
    (code,) = codes([release.options.agency or USUAL_AGENCY])
    return code if code[0].isalpha() else f"A{code}"


def flow_of(part: Part, numbers: Iterable[str]) -> Flow:
    """The data flow of a table: its codes are made of labels, and called by what people read in their place."""
    taken, keys = [*_HEAD, *_VALUES], part.product.keys if isinstance(part, Table) else part.attributes
    ids = [f"D{code}" if code[0].isdigit() or code[0] == "-" else code for code in codes(keys, taken)]
    codes_along = [tuple(codes(map(str, labels))) for labels in part.labels]
    dimensions = [Dimension(*parts) for parts in zip(ids, keys, codes_along, part.shown, strict=True)]
    (flow,) = codes([f"{part.id} {part.name.replace(' x ', ' by ')}"])
    values = tuple(value for value in _VALUES if value in {*numbers, "OBS_STATUS", "UNIT_MEASURE", "CONF_LEVEL"})
    every = Dimension("ALL", "all rows", ("_T",), ("total",))
    unit = (codes([part.of])[0], part.of) if part.of else ("ROWS", "rows")
    return Flow(flow, part.name, tuple(dimensions) or (every,), values, unit)


@dataclass(slots=True)
class Messages:
    """The messages of a release."""

    release: Release
    directory: Path
    flows: list[Flow] = field(default_factory=list)

    def add(self, part: Part, stem: str) -> None:
        """Write a table, or means, quantiles or a distribution function, beside its other files."""
        known = part.numbers()
        columns_of = {**{value: value.lower() for value in _VALUES}, "OBS_VALUE": part.value_name}
        numbers = {value: known[column] for value, column in columns_of.items() if column in known}
        flow = flow_of(part, numbers)
        self.flows.append(flow)
        keys = [[f"{code}: {label}" for code, label in zip(each.codes, each.labels, strict=True)] for each in flow.dimensions]
        cells = np.ndindex(part.low.shape or (1,))
        columns = [numbers[value].tolist() for value in flow.values if value in numbers]
        end = [": ".join(flow.unit), f"{self.release.level:g}"]
        with (self.directory / f"{stem}.sdmx.csv").open("w", encoding="utf-8", errors="replace", newline="") as file:
            rows = csv.writer(file, lineterminator="\r\n")  # as RFC 4180 has it
            heads = [*((each.id, each.name) for each in flow.dimensions), *((value, _VALUES[value]) for value in flow.values)]
            rows.writerow([*_HEAD, *map(": ".join, heads)])
            begin = ["dataflow", f"{agency_of(self.release)}:{flow.id}(1.0.0): {flow.name}", "I"]
            for cell, values in zip(cells, zip(*columns, strict=True), strict=True):
                status = ": ".join(_STATUS[math.isnan(values[0])])
                shown = ("" if math.isnan(value) else value for value in values)
                rows.writerow([*begin, *(keys[axis][label] for axis, label in enumerate(cell)), *shown, status, *end])

    def close(self) -> None:
        """Write the structures of all."""
        (self.directory / NAME).write_text(self._structures(), encoding="utf-8", errors="replace", newline="\n")

    def _structures(self) -> str:
        """Concepts, code lists, structures and flows; every list of labels once."""
        lists: dict[tuple[str, ...], tuple[str, str, list[tuple[str, str]]]] = {}
        dimensions = [dimension for flow in self.flows for dimension in flow.dimensions]
        names = list(dict.fromkeys(dimension.name for dimension in dimensions))
        concepts = dict(zip(names, codes(names, _VALUES), strict=True))
        for each in dimensions:
            code_list = (f"CL{len(lists) + 1}_{concepts[each.name]}", each.name, list(zip(each.codes, each.labels, strict=True)))
            lists.setdefault((each.name, *each.codes, *each.labels), code_list)
        fixed = {"OBS_STATUS": list(_STATUS), "UNIT_MEASURE": list(dict(sorted(flow.unit for flow in self.flows)).items())}
        text = filled(
            NAME,
            agency=agency_of(self.release),
            release=self.release,
            day=datetime.now(UTC).date().isoformat(),
            flows=self.flows,
            about=". ".join(filter(None, (self.release.options.title, self.release.options.source, of_words(self.release)))),
            concepts=[*((code, name) for name, code in concepts.items()), *_VALUES.items()],
            concept_of=concepts,
            lists=[*lists.values(), *((f"CL_{value}", _VALUES[value], listed) for value, listed in fixed.items())],
            list_of={each: lists[each.name, *each.codes, *each.labels][0] for each in dimensions},
            enumerated={value: f"CL_{value}" for value in fixed},
        )
        return _CONTROL.sub("\ufffd", text)
