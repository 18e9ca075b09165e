"""docs/promise.md lists exactly the fields that are written, each with a reason."""

import csv
import json
import re
import sqlite3
from pathlib import Path

import pandas as pd

import leastnoise as ln
from leastnoise._release import Payment, ReceiptFacts, SearchFacts

FRAME = pd.DataFrame(
    {
        "sex": ["F", "M", "M", "F"] * 20,
        "age": list(range(8)) * 10,
        "pay": list(range(16)) * 5,
        "id": list(range(40)) * 2,
    }
)
# Below these a key is a name of the user's (an attribute, a measure, a table) or a parameter of a
# strategy.
NAMES = {
    "domain.attributes", "domain.measures", "plan.details", "plan.outcome", "options.labels",
    "details", "independent", "outcome", "answers.columns", "options.names", "options.survey",
    "post_processing.columns", "privacy.parameters", "privacy.cost", "privacy.budget", "workload",
    "questions", "statistics.request",
    *(f"measurements.{name}" for name in ("domain", "privacy", "factors", "limits", "blocks")),
    "factors", "limits", "values", "promise", "versions", "after.measurements", "after.values",
}  # fmt: skip
# Only of a release with over ten million answers to intervals.
RARE = {
    # only of a release with a guard and totals of units: tests/session/test_unit_totals.py
    ("manifest", "receipt.guard_amounts"),
    *(
        ("manifest", f"receipt.guard_amounts.{name}")
        for name in ("measure", "kept", "cut", "kept_std", "cut_std")
    ),
    # only after a search for bounds: tests/session/test_found_bounds.py
    *(
        ("manifest", f"options.searches.{name}")
        for name in ("low", "high", "covers", "rank_error", "promise")
    ),
    # tests/session/test_weighted_quantiles.py
    ("plan", "statistics.quantiles.weighted_by"),
    ("manifest", "answers.too_large_to_write"),
    ("manifest", "receipt.guard_reduced_from"),
    # of rounding and SDMX: tests/release/test_whole_rounding.py, test_formats.py
    *(("manifest", f"options.{name}") for name in ("round", "below", "rounding", "sdmx")),
}
PAGE = Path(__file__).parents[2] / "docs" / "promise.md"
JSON = {
    "manifest.json": "manifest",
    "measurements/plan.json": "plan",
    "measurements/observation.json": "observation",
}
TABLES = {"tables.csv": "index", "covariances/q1.csv": "covariances"}


def fields(value, prefix=""):
    """Return the paths of all keys of a JSON value; the entries of a list count as one."""
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


def releases(folder: Path):
    """Make releases with every option; yield their folders with the fields of ledger and plan."""
    domain = ln.Domain(
        {
            "sex": ln.Categories(["F", "M"]),
            "age": ln.Integers(0, 7, outside="clip"),
            "pay": ln.Integers(0, 15),
        },
        measures={"sum": ln.Measure("pay", 0, 16), "low": ln.Measure("pay", 0, 4)},
    )
    wide_workload = ln.marginals(domain, upto=2, of=["sex", "age"]) + ln.queries(
        domain, sex="identity", sum="sum"
    )
    wide_workload += ln.mean_queries(domain, "sum", by=["sex"], size=40) + ln.quantile_queries(
        domain, "age", ["0.5"]
    )
    wide_workload += ln.variance_queries(domain, "sum", by=["sex"], size=40)
    wide_workload += ln.correlation_queries(domain, ["sum", "low"], by=["sex"], size=40)
    wide_workload += ln.regression_queries(domain, "sum", on=["low"], by=["sex"], size=40)
    units = ln.Privacy(
        ln.ApproxDP(100, "1e-9"),
        unit_column="id",
        max_rows=2,
        max_per_cell=ln.PerCellBound(1, "sex"),
    )
    people = ln.plan(wide_workload, units, strategy="identity")
    counts = ln.plan(
        ln.queries(domain, sex="identity", age="identity"), ln.PureDP(1), strategy="identity"
    )
    options = {
        "non_negative": True,
        "integer": True,
        "nnls": True,
        "local_non_negative": True,
        "top_down": True,
        "covariances": ("q1",),
    }
    options |= {
        "formats": ("csv", "parquet", "xlsx", "sdmx"),
        "labels": {"sex": {"F": "women", "M": "men"}},
    }
    options |= {
        "names": {"rows": {"en": "people", "de": "Personen"}},
        "survey": {"cv": "1/20", "suppress": True},
    }
    options |= {"title": "People", "source": "A register", "agency": "OFFICE"}
    options["statements"] = (
        "SELECT sex, age, COUNT(*) FROM people GROUP BY sex, age",
        "SELECT sex, age, COUNT(*) * COUNT(*) AS square FROM people GROUP BY sex, age",
    )
    options |= {"today": "2026-01-31", "joined_on": ("person", "id")}
    payment = Payment(
        dataset="people 5",
        ledger="...",
        ledger_id="...",
        charge="...",
        number=1,
        head="...",
        steps=1,
    )
    search = SearchFacts(
        attribute="...", plan="...", receipt=ReceiptFacts(id="...", payment=payment)
    )
    without_threshold = ln.queries(domain, pay="prefix", sum="sum")
    requests = [
        (people, FRAME, None),
        (counts, FRAME, ln.Options(**options)),
        (
            ln.plan(ln.queries(domain, age="prefix"), ln.PureDP(1), strategy="dawa_levels"),
            FRAME,
            None,
        ),
        (ln.plan(without_threshold, ln.PureDP(1), strategy="truncated_sums"), FRAME, None),
        (
            ln.plan(
                ln.queries(domain, sex="identity", sum="sum"),
                ln.PureDP(1),
                strategy="truncated_sums",
            ),
            FRAME,
            None,
        ),
        (
            people,
            FRAME,
            ln.Options(guard="1/2", rows=len(FRAME), searches=[search], survey={"cv": "0.1"}),
        ),
        (counts, FURTHER_TABLES, None),
    ]
    for number, (plan, rows, chosen) in enumerate(requests):
        out, ledger = folder / str(number), folder / f"{number}.ledger"
        ln.release(plan, rows, ledger=ledger, dataset=f"people {number}", out=out, options=chosen)
        with sqlite3.connect(ledger) as connection:
            tables = [
                name
                for (name,) in connection.execute(
                    "SELECT name FROM sqlite_master WHERE type = 'table'"
                ).fetchall()
            ]
            columns = {
                ("ledger", f"{table}.{row[1]}")
                for table in tables
                for row in connection.execute(f"PRAGMA table_info({table})")
            }
        connection.close()
        yield out, columns | {("plan", path) for path in fields(json.loads(plan.to_json()))}
    seeded = ln.release(counts, FRAME, seed=1, out=folder / "seeded")
    yield folder / "seeded", set()
    following_plan = ln.plan(counts.workload, ln.PureDP(1), strategy="identity", after=[seeded])
    ln.release(following_plan, FRAME, seed=2, out=folder / "after")
    yield folder / "after", set()


FURTHER_TABLES = ln.Joined(
    ln.Joined(FRAME, pd.DataFrame({"id": range(40)}), on="id", public=True),
    pd.DataFrame({"id": range(40), "more": 1}),
    on="id",
    public=True,
)


def published(folder: Path) -> set[tuple[str, str]]:
    """Return every pair of a kind of file and a field in it."""
    fields_of_files = set()
    for out, other_fields in releases(folder):
        fields_of_files |= other_fields | {("folder", path.name) for path in out.iterdir()}
        for name, kind in JSON.items():
            fields_of_files |= {
                (kind, path)
                for path in fields(json.loads((out / name).read_text(encoding="utf-8")))
            }
        for name, kind in TABLES.items():
            if (out / name).exists():
                with (out / name).open(encoding="utf-8", newline="") as file:
                    fields_of_files |= {(kind, column) for column in next(csv.reader(file))}
    return fields_of_files


def listed(text: str) -> set[tuple[str, str]]:
    """Return the pairs of a kind of file and a field that the page lists with a reason."""
    section = text.partition("### Every field")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (\w+) \| (`.*?) \| (\S.*?) \|$", section, flags=re.MULTILINE)
    return {(kind, field) for kind, names, _ in rows for field in re.findall(r"`([^`]+)`", names)}


def test_every_written_field_is_listed_with_reason(tmp_path: Path) -> None:
    written_fields, listed_fields = published(tmp_path), listed(PAGE.read_text(encoding="utf-8"))
    assert sorted(written_fields - listed_fields) == []
    assert sorted(listed_fields - written_fields - RARE) == []


def test_new_published_field_is_detected() -> None:
    assert set(fields({"a": [{"b": 1}, {"c": {"d": 2}}]})) == {"a", "a.b", "a.c", "a.c.d"}
    page = (
        "### Every field\n| ledger | `a`, `b.c` | why |\n| x | d | why |\n## next\n"
        "| ledger | `e` | why |\n"
    )
    assert listed(page) == {("ledger", "a"), ("ledger", "b.c")}
