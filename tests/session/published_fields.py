"""The fields that releases and ledgers have, and their list in docs/published-fields.md.

PYTHONPATH=tests:. python -m session.published_fields     writes the list
"""

import csv
import json
import re
import sqlite3
from contextlib import closing
from dataclasses import fields
from pathlib import Path
from tempfile import TemporaryDirectory

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
JOINED = ln.Joined(
    ln.Joined(FRAME, pd.DataFrame({"id": range(40)}), on="id", public=True),
    pd.DataFrame({"id": range(40), "more": 1}),
    on="id",
    public=True,
)
# Below these fields a key is a name that the user chose, such as an attribute, or a parameter of a
# strategy.
KEYS_OF_THE_USER = {
    "domain.attributes", "domain.measures", "plan.details", "plan.outcome", "options.labels",
    "details", "independent", "outcome", "answers.columns", "options.names", "options.survey",
    "post_processing.columns", "privacy.parameters", "privacy.cost", "privacy.budget", "workload",
    "questions", "statistics.request",
    *(f"measurements.{name}" for name in ("domain", "privacy", "factors", "limits", "blocks")),
    "factors", "limits", "values", "promise", "versions", "after.measurements", "after.values",
}  # fmt: skip
# The options that a user states. They have one row in the list, because the same reason holds for
# all of them, and tests/release/test_options.py checks that a manifest has no other keys. The facts
# about searches are results, and have their own rows.
STATED_OPTIONS = {f"options.{option.name}" for option in fields(ln.Options)} - {"options.searches"}
# Fields that no release here has.
RARE = {
    # Only of a release with a guard and totals of units: test_unit_totals.py.
    ("manifest", "receipt.guard_amounts"),
    ("manifest", "receipt.guard_amounts.measure"),
    ("manifest", "receipt.guard_amounts.kept"),
    ("manifest", "receipt.guard_amounts.cut"),
    ("manifest", "receipt.guard_amounts.kept_std"),
    ("manifest", "receipt.guard_amounts.cut_std"),
    # Only after a search for bounds: test_found_bounds.py.
    ("manifest", "options.searches.low"),
    ("manifest", "options.searches.high"),
    ("manifest", "options.searches.covers"),
    ("manifest", "options.searches.rank_error"),
    ("manifest", "options.searches.promise"),
    # test_weighted_quantiles.py.
    ("plan", "statistics.quantiles.weighted_by"),
    # Only of a release with over ten million answers to intervals.
    ("manifest", "answers.too_large_to_write"),
    ("manifest", "receipt.guard_reduced_from"),
}
DOCS = Path(__file__).parents[2] / "docs"
LIST = DOCS / "published-fields.md"
MARK = "<!-- fields: made by PYTHONPATH=tests:. python -m session.published_fields -->\n"
JSON_FILES = {
    "manifest.json": "manifest",
    "measurements/plan.json": "plan",
    "measurements/observation.json": "observation",
}
CSV_FILES = {"tables.csv": "index", "covariances/q1.csv": "covariances"}


def key_paths(value, prefix=""):
    """Return the paths of all keys of a JSON value; the entries of a list count as one."""
    if prefix in KEYS_OF_THE_USER:
        return
    if isinstance(value, dict):
        for name, inner in value.items():
            path = f"{prefix}.{name}" if prefix else name
            yield path
            yield from key_paths(inner, path)
    elif isinstance(value, list):
        for inner in value:
            yield from key_paths(inner, prefix)


def row_of_field(kind, field):
    """Return the kind of file and the row of the list that a field has."""
    if kind == "manifest" and field in STATED_OPTIONS:
        return kind, "options.*"
    return kind, field


DOMAIN = ln.Domain(
    {
        "sex": ln.Categories(["F", "M"]),
        "age": ln.Integers(0, 7, outside="clip"),
        "pay": ln.Integers(0, 15),
    },
    measures={"sum": ln.Measure("pay", 0, 16), "low": ln.Measure("pay", 0, 4)},
)
ALL_OPTIONS = {
    "non_negative": True,
    "integer": True,
    "nnls": True,
    "local_non_negative": True,
    "top_down": True,
    "covariances": ("q1",),
    "formats": ("csv", "parquet", "xlsx", "sdmx"),
    "labels": {"sex": {"F": "women", "M": "men"}},
    "names": {"rows": {"en": "people", "de": "Personen"}},
    "survey": {"cv": "1/20", "suppress": True},
    "title": "People",
    "source": "A register",
    "agency": "OFFICE",
    "contact": "office@example.org",
    "statements": (
        "SELECT sex, age, COUNT(*) FROM people GROUP BY sex, age",
        "SELECT sex, age, COUNT(*) * COUNT(*) AS square FROM people GROUP BY sex, age",
    ),
    "today": "2026-01-31",
    "joined_on": ("person", "id"),
}
PAYMENT = Payment(
    dataset="people 5", ledger="...", ledger_id="...", charge="...", number=1, head="...", steps=1
)
SEARCH = SearchFacts(attribute="...", plan="...", receipt=ReceiptFacts(id="...", payment=PAYMENT))


def plan_all_statistics():
    """Return a plan of tables and of statistics of every kind, for units with a limit per cell."""
    workload = ln.marginals(DOMAIN, upto=2, of=["sex", "age"])
    workload += ln.queries(DOMAIN, sex="identity", sum="sum")
    workload += ln.mean_queries(DOMAIN, "sum", by=["sex"], size=40)
    workload += ln.quantile_queries(DOMAIN, "age", ["0.5"])
    workload += ln.variance_queries(DOMAIN, "sum", by=["sex"], size=40)
    workload += ln.correlation_queries(DOMAIN, ["sum", "low"], by=["sex"], size=40)
    workload += ln.regression_queries(DOMAIN, "sum", on=["low"], by=["sex"], size=40)
    workload += ln.r_squared_queries(DOMAIN, "sum", on=["low"], by=["sex"], size=40)
    privacy = ln.Privacy(
        ln.ApproxDP(100, "1e-9"),
        unit_column="id",
        max_rows=2,
        max_per_cell=ln.PerCellBound(1, "sex"),
    )
    return ln.plan(workload, privacy, strategy="identity")


def plan_queries(strategy, **queries):
    return ln.plan(ln.queries(DOMAIN, **queries), ln.PureDP(1), strategy=strategy)


def ledger_columns(ledger):
    """Return the columns of all tables of a ledger."""
    columns = set()
    with closing(sqlite3.connect(ledger)) as connection:
        tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        for (table,) in tables.fetchall():
            rows = connection.execute(f"PRAGMA table_info({table})")
            columns |= {("ledger", f"{table}.{row[1]}") for row in rows}
    return columns


def releases(folder):
    """Make releases with every option; yield their folders with the fields of ledger and plan."""
    statistics = plan_all_statistics()
    counts = plan_queries("identity", sex="identity", age="identity")
    guarded = ln.Options(guard="1/2", rows=len(FRAME), searches=[SEARCH], survey={"cv": "0.1"})
    paid_releases = [
        (statistics, FRAME, None),
        (counts, FRAME, ln.Options(**ALL_OPTIONS)),
        (plan_queries("dawa_levels", age="prefix"), FRAME, None),
        (plan_queries("truncated_sums", sum="sum", pay="prefix"), FRAME, None),
        (plan_queries("truncated_sums", sum="sum", sex="identity"), FRAME, None),
        (statistics, FRAME, guarded),
        (counts, JOINED, None),
    ]
    for number, (plan, rows, options) in enumerate(paid_releases):
        out = folder / str(number)
        ledger = folder / f"{number}.ledger"
        ln.release(plan, rows, ledger=ledger, dataset=f"people {number}", out=out, options=options)
        plan_fields = {("plan", path) for path in key_paths(json.loads(plan.to_json()))}
        yield out, ledger_columns(ledger) | plan_fields

    seeded = ln.release(counts, FRAME, seed=1, out=folder / "seeded")
    yield folder / "seeded", set()
    following_plan = ln.plan(counts.workload, ln.PureDP(1), strategy="identity", after=[seeded])
    ln.release(following_plan, FRAME, seed=2, out=folder / "after")
    yield folder / "after", set()


def written_fields(folder):
    """Return every pair of a kind of file and a row of the list for a field in it."""
    written = set()
    for out, other_fields in releases(folder):
        written |= other_fields | {("folder", path.name) for path in out.iterdir()}
        for name, kind in JSON_FILES.items():
            content = json.loads((out / name).read_text(encoding="utf-8"))
            written |= {(kind, path) for path in key_paths(content)}
        for name, kind in CSV_FILES.items():
            if (out / name).exists():
                with (out / name).open(encoding="utf-8", newline="") as file:
                    written |= {(kind, column) for column in next(csv.reader(file))}
    return {row_of_field(*pair) for pair in written}


def entries_with_reasons(text):
    """Return the pairs of a kind of file and an entry, from the table of reasons.

    An entry is a field, or ``field.*`` for a field and all fields inside it.
    """
    section = text.partition("## Why each field is public")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (\w+) \| (`.*?) \| (\S.*?) \|$", section, flags=re.MULTILINE)
    return [(kind, entry) for kind, names, _ in rows for entry in re.findall(r"`([^`]+)`", names)]


def entry_of_field(kind, field, entries):
    """Return the entry that gives the reason for a field: the field, or the longest pattern."""
    if (kind, field) in entries:
        return field
    parts = field.split(".")
    for length in range(len(parts), 0, -1):
        pattern = ".".join(parts[:length]) + ".*"
        if (kind, pattern) in entries:
            return pattern
    return None


def list_fields(fields, entries):
    """Return the table of all fields with their entries, in Markdown."""
    lines = ["| file | field | row with the reason |", "|---|---|---|"]
    for kind, field in sorted(fields):
        entry = entry_of_field(kind, field, entries)
        if entry is None:
            raise SystemExit(f"{LIST.name} gives no reason for {field} of the {kind}")
        lines.append(f"| {kind} | `{field}` | `{entry}` |")
    return "\n".join(lines) + "\n"


def listed_fields(text):
    """Return the entry of each kind of file and field in the list."""
    rows = re.findall(r"^\| (\w+) \| `([^`]+)` \| `([^`]+)` \|$", text, flags=re.MULTILINE)
    return {(kind, field): entry for kind, field, entry in rows}


if __name__ == "__main__":
    with TemporaryDirectory() as name:
        all_fields = written_fields(Path(name)) | RARE
    text_of_page = LIST.read_text(encoding="utf-8")
    table = list_fields(all_fields, entries_with_reasons(text_of_page))
    head = text_of_page.partition(MARK)[0]
    LIST.write_text(f"{head}{MARK}\n{table}", encoding="utf-8")
