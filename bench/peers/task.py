"""Define the task of every library, with the standard library only.

The task is all tables of one and two of three attributes at epsilon 1, one row per person.
"""

import csv
import itertools
import json
import random
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

VALUES: dict[str, list[str] | list[int]] = {
    "sex": ["F", "M"],
    "region": list("ABCDEFGH"),
    "age": list(range(100)),
}
TABLES = [names for size in (1, 2) for names in itertools.combinations(VALUES, size)]
EPSILON = 1.0
FILE = "people.csv"
Counts = Mapping[str, Mapping[str, float]]


def write_people(folder: Path, rows: int = 20_000) -> None:
    """Write the file of people, always with the same content."""
    draw = random.Random(1)
    with (folder / FILE).open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(VALUES)
        for _ in range(rows):
            region = draw.choices("ABCDEFGH", range(8, 0, -1))[0]
            writer.writerow([draw.choice("FM"), region, min(99, int(draw.gammavariate(6, 7)))])


def truth(folder: Path) -> Counts:
    """Return the exact counts, including cells without rows."""
    with (folder / FILE).open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    exact = {}
    for names in TABLES:
        counts = Counter("|".join(row[name] for name in names) for row in rows)
        cells = itertools.product(*(VALUES[name] for name in names))
        exact[key(names)] = {cell: float(counts[cell]) for cell in map(key, cells)}
    return exact


def key(parts: object) -> str:
    """Join the names of a table, or the values of a cell, to one text."""
    return "|".join(str(part) for part in parts) if isinstance(parts, (tuple, list)) else str(parts)


def say(seconds: float, answers: Counts) -> None:
    """Print released counts in the form that `run.py` reads."""
    json.dump({"seconds": seconds, "answers": answers}, sys.stdout)
