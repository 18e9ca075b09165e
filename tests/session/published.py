"""What releases and ledgers really write, field by field, for the list in docs/promise.md."""

import csv
import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

import leastnoise as ln

FRAME = pd.DataFrame({"sex": ["F", "M", "M", "F"] * 20, "age": list(range(8)) * 10, "pay": list(range(16)) * 5, "id": list(range(40)) * 2})
# Below these a key is a name of the user's (an attribute, a measure, a table) or a parameter of a strategy.
NAMES = {
    *(
        "domain.attributes", "domain.measures", "plan.details", "plan.outcome", "options.labels", "details", "outcome",
        "answers.columns", "post_processing.columns",
    ),
    *(
        "privacy.parameters", "privacy.cost", "privacy.budget", "workload", "questions", "statistics.asked", "factors",
        *(f"measurements.{name}" for name in ("domain", "privacy", "factors", "limits", "blocks")), "limits", "values", "promise",
        "versions",
    ),
}  # fmt: skip


def fields(value: Any, prefix: str = "") -> Iterator[str]:
    """Paths of all keys of a JSON value; lists count as one of their entries."""
    if prefix in NAMES:
        return
    if isinstance(value, dict):
        for name, inner in value.items():
            path = f"{prefix}.{name}" if prefix else name
            yield path
            yield from fields(inner, path)
    elif isinstance(value, list):
        for inner in value:
            yield from fields(inner, prefix)


def releases(folder: Path) -> Iterator[Path]:
    """Releases with everything that can be asked for, of plans that look at the data and others."""
    domain = ln.Domain(
        {"sex": ln.Categories(["F", "M"]), "age": ln.Integers(0, 7), "pay": ln.Integers(0, 15)}, measures={"sum": ln.Measure("pay", 0, 16)}
    )
    wide = ln.marginals(domain, upto=2, of=["sex", "age"]) + ln.queries(domain, sex="identity", sum="sum")
    wide += ln.mean_queries(domain, "sum", by=["sex"], size=40) + ln.quantile_queries(domain, "age", ["0.5"])
    counts = ln.queries(domain, sex="identity", age="identity")
    amounts = ln.queries(domain, pay="prefix", sum="sum")
    options = {"non_negative": True, "integer": True, "nnls": True, "local_non_negative": True, "covariances": ("q1",)}
    options["formats"] = ("csv", "parquet", "xlsx", "sdmx")
    options |= {"title": "People", "source": "A register", "agency": "OFFICE", "labels": {"sex": {"F": "women", "M": "men"}}}
    options["statements"] = ("SELECT sex, age, COUNT(*) FROM people GROUP BY sex, age",)
    bound = ln.PerCell(1, "sex")
    asked = [
        (ln.plan(wide, ln.Privacy(ln.ApproxDP(1, "1e-9"), unit_column="id", max_rows=2, max_per_cell=bound), strategy="identity"), None),
        (ln.plan(counts, ln.PureDP(1), strategy="identity"), ln.Options(**options)),
        (ln.plan(ln.queries(domain, age="prefix"), ln.PureDP(1), strategy="dawa_levels"), None),
        (ln.plan(amounts, ln.PureDP(1), strategy="truncated_sums"), None),  # without a threshold
        (ln.plan(ln.queries(domain, sex="identity", sum="sum"), ln.PureDP(1), strategy="truncated_sums"), None),
    ]
    found = dict.fromkeys(("attribute", "plan", "id", "ledger", "ledger_id", "charge", "number", "head"), "...")
    asked.append((asked[0][0], ln.Options(guard="1/100", searches=[{**found, "dataset": f"people {len(asked)}"}])))
    for number, (plan, chosen) in enumerate(asked):
        ln.release(plan, FRAME, ledger=folder / f"{number}.ledger", dataset=f"people {number}", out=folder / str(number), options=chosen)
        (folder / f"{number}.plan.json").write_text(plan.to_json(), encoding="utf-8")
        yield folder / str(number)
    joined = ln.Joined(FRAME, pd.DataFrame({"id": range(40)}), on="id", public=True)
    ln.release(asked[1][0], joined, ledger=folder / "joined.ledger", dataset="joined people", out=folder / "joined")
    (folder / "joined.plan.json").write_text(asked[1][0].to_json(), encoding="utf-8")
    yield folder / "joined"
    ln.release(asked[1][0], FRAME, seed=1, out=folder / "seeded")
    yield folder / "seeded"


def published(folder: Path) -> set[tuple[str, str]]:
    """Every pair of a kind of file and a field in it."""
    found = set()
    for out in releases(folder):
        for name, kind in (
            ("manifest.json", "manifest"),
            ("measurements/plan.json", "plan"),
            ("measurements/observation.json", "observation"),
        ):
            found |= {(kind, path) for path in fields(json.loads((out / name).read_text(encoding="utf-8")))}
        for name, kind in (("tables.csv", "index"), ("covariances/q1.csv", "covariances")):
            if (out / name).exists():
                with (out / name).open(encoding="utf-8", newline="") as file:
                    found |= {(kind, column) for column in next(csv.reader(file))}
        found |= {("folder", path.name) for path in out.iterdir()}
        if out.name == "seeded":
            continue
        found |= {("plan", path) for path in fields(json.loads(Path(f"{out}.plan.json").read_text(encoding="utf-8")))}
        with sqlite3.connect(f"{out}.ledger") as connection:
            for (table,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
                found |= {("ledger", f"{table}.{row[1]}") for row in connection.execute(f"PRAGMA table_info({table})")}
        connection.close()
    return found
