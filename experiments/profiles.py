"""Compare drafts of profiles with the data: covered counts and values beyond the bounds.

    python -m experiments.profiles FOLDER...

Each folder has FILE.csv or FILE.parquet, FILE-profile with the draft, and FILE-release, the result
of `leastnoise release` with the unchanged draft. pandas counts the true values.
"""

import sys
import tomllib
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import leastnoise as ln


def count_cells(values: pd.Series, kind: Any, labels: tuple[Any, ...]) -> list[int]:
    """Count the rows of each published cell of a drafted attribute by pandas.

    Args:
        values: the column of the file.
        kind: the attribute of the drafted spec, as a table of TOML.
        labels: the labels of its cells in the release.
    """
    is_missing = values.isna() | (values.astype(str) == "")
    present = values[~is_missing]
    counts = dict.fromkeys(map(str, labels), 0)
    outside = kind.get("outside", "drop")
    if "bins" in kind or "integers" in kind or "edges" in kind:
        cells = _number_cells(pd.to_numeric(present, errors="coerce"), kind)
        regular = list(map(str, labels))[: _regular(kind)]
        for cell, count in cells.items():
            counts[regular[int(cell)]] += int(count)
    elif "dates" in kind:
        moments = pd.to_datetime(present, errors="coerce", format="mixed")
        days = moments.clip(
            pd.Timestamp(kind["dates"]["from"]),
            pd.Timestamp(kind["dates"]["to"]) + pd.Timedelta("23h59min"),
        )
        periods = days.dt.strftime({"year": "%Y", "month": "%Y-%m"}.get(kind["dates"]["by"], "%F"))
        if kind["dates"]["by"] == "quarter":
            periods = days.dt.year.astype(str) + "-Q" + days.dt.quarter.astype(str)
        for label, count in periods.value_counts().items():
            counts[str(label)] = counts.get(str(label), 0) + int(count)
    else:
        texts = present.map(_text)
        spellings = {
            spelling: str(name)
            for name, spellings_of in kind.get("spellings", {}).items()
            for spelling in spellings_of
        }
        texts = texts.map(lambda text: spellings.get(text, text))
        is_known = texts.isin([_text(label) for label in kind["categories"]])
        for label, count in texts[is_known].value_counts().items():
            counts[str(label)] += int(count)
        if outside in ("other", "cell"):
            counts["other" if outside == "other" else "(outside)"] += int((~is_known).sum())
    if kind.get("null") == "cell":
        counts["(null)"] += int(is_missing.sum())
    elif kind.get("null") == "other":
        counts["other"] += int(is_missing.sum())
    return list(counts.values())


def _text(value: Any) -> str:
    """Return a value as the program reads it: whole numbers without a point."""
    if isinstance(value, (bool, np.bool_)):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def _regular(kind: Any) -> int:
    """Return the number of cells of an attribute of numbers."""
    if "bins" in kind:
        return int(kind["bins"]["count"])
    if "edges" in kind:
        return len(kind["edges"]) - 1
    low, high = kind["integers"]
    return int(high - low + 1)


def _number_cells(numbers: pd.Series, kind: Any) -> pd.Series:
    """Return the number of values in each cell of an attribute of numbers."""
    if "integers" not in kind:
        if "bins" in kind:
            low, high = (Fraction(str(kind["bins"][end])) for end in ("low", "high"))
            width = (high - low) / _regular(kind)
            # The float of an exact edge equals the float of the same number in the file.
            edges = np.array([float(low + i * width) for i in range(_regular(kind) + 1)])
        else:
            edges = np.array([float(edge) for edge in kind["edges"]])
        cells = np.searchsorted(edges, numbers.clip(edges[0], edges[-1]), side="right") - 1
    else:
        low, high = kind["integers"]
        cells = numbers.round().clip(low, high).to_numpy() - low
    cells = np.minimum(cells[~np.isnan(cells)].astype(int), _regular(kind) - 1)
    return pd.Series(cells).value_counts()


def beyond_bounds(values: pd.Series, kind: Any) -> float | None:
    """Return the share of the values beyond the bounds of numbers; None for others."""
    if "bins" in kind:
        low = float(kind["bins"]["low"])
        high = float(kind["bins"]["high"])
    elif "integers" in kind:
        low, high = kind["integers"]
    elif "edges" in kind:
        low = float(kind["edges"][0])
        high = float(kind["edges"][-1])
    else:
        return None
    numbers = pd.to_numeric(values, errors="coerce").dropna()
    return float(((numbers < low) | (numbers > high)).mean())


def describe(folder: Path) -> str:
    """Return the line of the table of docs/results/profile.md for one file."""
    (data,) = [*folder.glob("*.csv"), *folder.glob("*.parquet")]
    name = data.stem
    frame = pd.read_csv(data, low_memory=False) if data.suffix == ".csv" else pd.read_parquet(data)
    spec = tomllib.loads((folder / f"{name}-profile" / "spec.toml").read_text(encoding="utf-8"))
    release = ln.read_release(folder / f"{name}-release")
    covered = []
    beyond = []
    for table in release.tables:
        (attribute,) = table.product.attributes
        kind = spec["domain"][attribute]
        values = frame[kind.get("column", attribute)]
        truth = np.array(count_cells(values, kind, table.labels[0]))
        covered += ((table.low <= truth) & (truth <= table.high)).tolist()
        share = beyond_bounds(values, kind)
        if share is not None:
            beyond.append(share)
    used_columns = {spec["domain"][name_of].get("column", name_of) for name_of in spec["domain"]}
    return (
        f"| `{name}` | {data.suffix[1:].upper()} | {len(frame):,} | {frame.shape[1]} "
        f"| {len(covered)} | {np.mean(covered):.1%} | {np.mean(beyond or [0]):.1%} "
        f"| {max(beyond or [0]):.1%} | {frame.shape[1] - len(used_columns)} |"
    )


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        print(describe(Path(argument)))
