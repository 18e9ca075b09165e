"""Answers as SDMX-CSV 2.0 data messages (SDMX 3.0): a file a table, each component with its id and name (``labels=both``).

Every table is a data flow ``LEASTNOISE:Q7_SEX(1.0.0)`` of its own: its attributes are the dimensions, the answer is ``OBS_VALUE``,
and attributes of the observation say how exact it is.
"""

import csv
import math
import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from leastnoise._release._release import Release
    from leastnoise._release._tables import Table

AGENCY = "LEASTNOISE"
_TAKEN = ("STRUCTURE", "STRUCTURE_ID", "ACTION", "OBS_VALUE", "NOISE_STD", "LOW", "HIGH", "OBS_STATUS", "UNIT_MEASURE", "CONF_LEVEL")
_NUMBERS = {"OBS_VALUE": "answer", "NOISE_STD": "noise_std", "LOW": "low", "HIGH": "high"}
_NAMES = ("Answer", "Standard error of the noise", "Lower end of the interval", "Upper end of the interval")


def check() -> None:
    """Nothing is needed."""


def codes(names: Iterable[str], taken: Iterable[str] = ()) -> list[str]:
    """Ids as SDMX wants them (letters, digits, ``_`` and ``-``), each unlike the others and unlike those taken.

    >>> codes(["sex", "Age group", "<= 30", "<30", "2024-Q1", "é"])
    ['SEX', 'AGE_GROUP', 'LE_30', 'LT_30', '2024-Q1', 'X']
    """
    found, used = [], set(taken)
    for name in names:
        plain = name.replace("<=", "LE ").replace(">=", "GE ").replace("<", "LT ").replace(">", "GT ").upper()
        stem = re.sub(r"[^A-Z0-9-]+", "_", plain).strip("_") or "X"
        code, number = stem, 2
        while code in used:
            code, number = f"{stem}_{number}", number + 1
        used.add(code)
        found.append(code)
    return found


class Messages:
    """The messages of a release.

    Args:
        release: the release.
        directory: where; an existing directory.
    """

    def __init__(self, release: "Release", directory: Path) -> None:
        self._level = f"{release.level:g}"
        self._directory = directory

    def add(self, table: "Table", stem: str) -> None:
        """Write a table beside its other files."""
        names = [f"D{code}" if code[0].isdigit() or code[0] == "-" else code for code in codes(table.product.attributes, _TAKEN)]
        (flow,) = codes([f"{table.id} {table.name.replace(' x ', ' by ')}"])
        unit = "ROWS" if table.product.measure is None else codes([table.product.measure])[0]
        keys = [[f"{code}: {label}" for code, label in zip(codes(map(str, labels)), labels, strict=True)] for labels in table.labels]
        head = [*_TAKEN[:3], *(f"{one}: {name}" for one, name in zip(names, table.product.attributes, strict=True))]
        head += [f"{one}: {name}" for one, name in zip(_NUMBERS, _NAMES, strict=True)]
        head += ["OBS_STATUS: Observation status", "UNIT_MEASURE: Unit of measure", "CONF_LEVEL: Coverage of the interval"]
        numbers = table.numbers()
        places = np.unravel_index(np.arange(table.cells), table.answer.shape) if table.labels else ()
        columns = [numbers[name].tolist() for name in _NUMBERS.values()]
        path = self._directory / f"{stem}.sdmx.csv"
        with path.open("w", encoding="utf-8", errors="replace", newline="") as file:
            rows = csv.writer(file, lineterminator="\r\n")  # as RFC 4180 has it
            rows.writerow(head)
            begin = ["dataflow", f"{AGENCY}:{flow}(1.0.0): {table.name}", "I"]
            end = [f"{unit}: {table.product.measure or 'rows'}", self._level]
            cells = zip(*places, strict=True) if places else [()] * table.cells
            for own, values in zip(cells, zip(*columns, strict=True), strict=True):
                status = "Q: Missing value; suppressed" if math.isnan(values[0]) else "E: Estimated value"
                known = ("" if math.isnan(value) else value for value in values)
                rows.writerow([*begin, *(keys[axis][place] for axis, place in enumerate(own)), *known, status, *end])

    def close(self) -> None:
        """Every message is whole when its table was added."""
