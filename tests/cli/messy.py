"""Messy files: a retail CSV, a health survey in Parquet, and a German CSV in Latin-1.

Each comes with the blanks of its draft filled from public knowledge, and with exact counts by
pandas alone.
"""

import csv
import datetime as dt
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

STORES = {
    "Kiel, Markt": "north",
    'Mainz "Am Rhein"': "south",
    "Worms": "south",
    "Flensburg": "north",
}
QUOTE = '"'
TOWNS = ("München", "Köln", "Saarbrücken")


def retail(folder, rows):
    """Write orders with time stamps, quoted store names, and refunds below zero."""
    rng = np.random.default_rng(1)
    seconds = rng.integers(0, 366 * 86_400, rows).astype("m8[s]")
    frame = pd.DataFrame(
        {"order_id": np.arange(rows), "ordered_at": np.datetime64("2024-01-01T00:00:00") + seconds}
    )
    frame["store"] = rng.choice(list(STORES), rows)
    frame["payment"] = rng.choice(["card", "Card ", "CASH", "cash", ""], rows)
    frame["amount"] = np.round(rng.gamma(2, 30, rows) * rng.choice([1, 1, 1, 1, -1], rows), 2)
    frame.to_csv(folder / "retail.csv", index=False, lineterminator="\r\n")
    return folder / "retail.csv"


def survey(folder, rows):
    """Write people with nullable ages, decimal heights, and a code for missing incomes."""
    rng = np.random.default_rng(2)
    columns = {
        "person": np.arange(rows),
        "sex": pa.array(rng.choice(["F", "M"], rows)).dictionary_encode(),
        "age": pa.array(rng.integers(18, 90, rows), pa.int32(), mask=rng.random(rows) < 0.1),
        "height": [
            None if rng.random() < 0.2 else Decimal(int(number) * 5).scaleb(-1)
            for number in rng.integers(290, 400, rows)
        ],
        "income": np.where(rng.random(rows) < 0.1, -9, rng.integers(0, 5000, rows)),
        "smoker": pa.array(rng.random(rows) < 0.3, mask=rng.random(rows) < 0.05),
        "born": [
            dt.date(1950, 1, 1) + dt.timedelta(days=int(day))
            for day in rng.integers(0, 15_000, rows)
        ],
    }
    pq.write_table(pa.table(columns), folder / "survey.parquet")
    return folder / "survey.parquet"


def german(folder, rows):
    """Write turnover by day and town, with German numbers and a text for missing values."""
    rng = np.random.default_rng(3)
    lines = ["Datum;Ort;Umsatz in €"]
    for row in range(rows):
        day = dt.date(2024, 1, 1) + dt.timedelta(days=int(rng.integers(0, 366)))
        amount = f"{rng.gamma(1, 900):,.2f}".translate(str.maketrans(",.", ".,")) + " €" * (row % 2)
        lines.append(
            f"{day:%d.%m.%Y};{rng.choice(TOWNS)};{'k. A.' if rng.random() < 0.1 else amount}"
        )
    (folder / "umsatz.csv").write_bytes("\n".join([*lines, ""]).encode("cp1252"))
    return folder / "umsatz.csv"


@dataclass(frozen=True, kw_only=True)
class Messy:
    """A file, what `init` is told, how its draft is filled, and the exact answers.

    Args:
        make: writes the file of so many rows into a folder.
        init: further arguments of `init`.
        source: what is said of how texts are written.
        domain: by header of the draft what stands below it.
        workload: what is asked besides one table an attribute.
        tables: the tables asked for, and their exact counts by label from the file's own reading by
            pandas.
    """

    make: Callable[[Path, int], Path]
    init: tuple[str, ...] = ()
    source: str = ""
    domain: Mapping[str, str]
    workload: str = ""
    tables: Callable[[Path], dict[str, dict[str, int]]]

    def filled(self, draft, epsilon):
        """Return the draft with its blanks filled, and a strategy that is planned at once."""
        draft = draft.replace('strategy = "auto"', 'strategy = "marginals"').replace(
            'epsilon = "1"', f'epsilon = "{epsilon}"', 1
        )
        text = re.sub(r"(?m)^unit = .*$", 'unit = "row"', draft)
        text = text.replace("[privacy]", f"{self.source}[privacy]", 1).replace(
            "[plan]", f"{self.workload}[plan]", 1
        )
        for header, block in self.domain.items():
            section = f"[domain.{header.strip(QUOTE).split()[0]}]\n{block}\n"
            text, times = re.subn(
                rf"(?ms)^\[domain\.{re.escape(header)}\]\n.*?\n(?=\n)",
                lambda _, block=section: block,
                text,
            )
            assert times == 1, header
        # In complete columns, a mistake drops every row, and the guard notices this.
        return re.sub(r"(?m)^(\[domain\.[^\]]+\])$", r"\1\ncomplete = true", text)


def _counts(series):
    return {str(label): int(count) for label, count in series.value_counts().items()}


_AMOUNTS = ["[-10000, 0)", "[0, 9.99)", "[9.99, 50)", "[50, 10000]"]


def _count_retail_rows(path):
    """Return the exact counts of each table of the retail file."""
    frame = pd.read_csv(path, keep_default_na=False)
    when = pd.to_datetime(frame["ordered_at"])
    return {
        "store": _counts(frame["store"]),
        "store:region": _counts(frame["store"].map(STORES)),
        "ordered_at": _counts(when.dt.strftime("%Y-%m")),
        "ordered_at:quarter": _counts(when.dt.strftime("%Y-Q") + when.dt.quarter.astype(str)),
        "payment": _counts(frame["payment"].str.strip().str.lower().replace("", "other")),
        "amount": _counts(
            pd.cut(frame["amount"], [-10_000, 0, 9.99, 50, 10_000], right=False, labels=_AMOUNTS)
        ),
    }


def _count_survey_rows(path):
    """Return the exact counts of each table of the health survey."""
    frame = pq.read_table(path).to_pandas()
    frame["income"] = frame["income"].where(frame["income"] >= 0)
    outside_cells = {
        name: {"other": int(frame[name].isna().sum())}
        for name in ("age", "height", "income", "smoker")
    }
    fives = frame["age"].dropna().astype(int) // 5 * 5
    thousands = [f"[{1000 * k}, {1000 * k + 1000}{')' if k < 4 else ']'}" for k in range(5)]
    return {
        "sex": _counts(frame["sex"]),
        "age:five": _counts(fives.map(lambda start: f"{start} .. {start + 4}"))
        | outside_cells["age"],
        "height": _counts(frame["height"].dropna().map(lambda height: f"{height.normalize():f}"))
        | outside_cells["height"],
        "income": _counts((frame["income"].dropna() // 1000).map(lambda k: thousands[int(k)]))
        | outside_cells["income"],
        "smoker": _counts(frame["smoker"].dropna().map({True: "true", False: "false"}))
        | outside_cells["smoker"],
        "born": _counts(pd.to_datetime(frame["born"]).dt.strftime("%Y")),
    }


def _count_german_rows(path):
    """Return the exact counts of each table of the German file."""
    frame = pd.read_csv(path, sep=";", encoding="cp1252", na_values=["k. A."], dtype=str)
    money = (
        frame["Umsatz in €"]
        .str.replace(" €", "")
        .str.replace(".", "")
        .str.replace(",", ".")
        .astype(float)
    )
    bins = pd.cut(
        money,
        [0, 500, 1000, 20_000],
        right=False,
        labels=["[0, 500)", "[500, 1000)", "[1000, 20000]"],
    )
    return {
        "Ort": _counts(frame["Ort"]),
        "Datum": _counts(pd.to_datetime(frame["Datum"], format="%d.%m.%Y").dt.strftime("%A")),
        "Umsatz": _counts(bins.dropna()) | {"other": int(money.isna().sum())},
    }


_REGION = 'levels.region = { file = "stores.csv", key = "name", value = "region" }'
_DAYS = 'dates = { from = "2024-01-01", to = "2024-12-31", by = '
MESSY = {
    "retail": Messy(
        make=retail,
        domain={
            "store": f'categories = {{ file = "stores.csv", column = "name" }}\n{_REGION}',
            "ordered_at": f'{_DAYS}"month" }}',
            "payment": 'categories = ["card", "cash"]\ntrim = true\nignore_case = true\nnull = '
            '"other"',
            "amount": 'edges = ["-10000", "0", "9.99", "50", "10000"]',
        },
        workload="".join(
            f'[[workload]]\nqueries = {{ {name} = {{ level = "{level}" }} }}\n'
            for name, level in (("store", "region"), ("ordered_at", "quarter"))
        ),
        tables=_count_retail_rows,
    ),
    "survey": Messy(
        make=survey,
        domain={
            "sex": 'categories = ["F", "M"]',
            "age": 'integers = [15, 94]\nnull = "other"\nlevels.five = { width = 5 }',
            "height": 'decimals = { low = "140", high = "200", step = "0.5" }\nnull = "other"',
            "income": 'bins = { low = 0, high = 5000, count = 5 }\nnulls = ["-9"]\nnull = "other"',
            "smoker": 'categories = [true, false]\nnull = "other"',
            "born": 'dates = { from = "1950-01-01", to = "1991-12-31", by = "year" }',
        },
        workload='[[workload]]\nqueries = { age = { level = "five" } }\n',
        tables=_count_survey_rows,
    ),
    "german": Messy(
        make=german,
        init=("--encoding", "cp1252", "--delimiter", ";"),
        source='null = ["k. A."]\ndecimal = ","\nthousands = "."\ncurrency = ["€"]\n',
        domain={
            "Datum": f'{_DAYS}"weekday", format = "%d.%m.%Y" }}',
            "Ort": 'categories = ["München", "Köln", "Saarbrücken"]',
            '"Umsatz in €"': 'column = "Umsatz in €"\nedges = [0, 500, 1000, 20000]\nnull = '
            '"other"',
        },
        tables=_count_german_rows,
    ),
}


def stores(folder):
    """Write the public list of stores."""
    with (folder / "stores.csv").open("w", encoding="utf-8", newline="") as opened:
        csv.writer(opened).writerows([("name", "region"), *STORES.items()])
