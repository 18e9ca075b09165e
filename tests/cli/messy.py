"""Files as people have them, made by a script: a retail CSV, a health survey in Parquet, a German CSV in Latin-1.

Each comes with the blanks of its draft filled from public knowledge, and with exact counts by pandas alone.
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

STORES = {"Kiel, Markt": "north", 'Mainz "Am Rhein"': "south", "Worms": "south", "Flensburg": "north"}
TOWNS = ("München", "Köln", "Saarbrücken")


def retail(folder: Path, rows: int, seed: int = 1) -> Path:
    """Orders with time stamps, quoted store names, and refunds below zero."""
    rng = np.random.default_rng(seed)
    start = np.datetime64("2024-01-01T00:00:00")
    frame = pd.DataFrame(
        {
            "order_id": np.arange(rows),
            "ordered_at": start + rng.integers(0, 366 * 86_400, rows).astype("m8[s]"),
            "store": rng.choice(list(STORES), rows),
            "payment": rng.choice(["card", "Card ", "CASH", "cash", ""], rows),
            "amount": np.round(rng.gamma(2, 30, rows) * rng.choice([1, 1, 1, 1, -1], rows), 2),
        }
    )
    frame.to_csv(folder / "retail.csv", index=False, lineterminator="\r\n")
    return folder / "retail.csv"


def survey(folder: Path, rows: int, seed: int = 2) -> Path:
    """People with nullable ages, heights in half centimetres as decimals, incomes with a code for no answer."""
    rng = np.random.default_rng(seed)
    heights = [Decimal(int(number)).scaleb(-1) for number in rng.integers(290, 400, rows) * 5]
    table = pa.table(
        {
            "person": pa.array(np.arange(rows)),
            "sex": pa.array(rng.choice(["F", "M"], rows)).dictionary_encode(),
            "age": pa.array(rng.integers(18, 90, rows), pa.int32(), mask=rng.random(rows) < 0.1),
            "height": pa.array(heights, pa.decimal128(5, 1), mask=rng.random(rows) < 0.2),
            "income": pa.array(np.where(rng.random(rows) < 0.1, -9, rng.integers(0, 5000, rows))),
            "smoker": pa.array(rng.random(rows) < 0.3, mask=rng.random(rows) < 0.05),
            "born": pa.array([dt.date(1950, 1, 1) + dt.timedelta(days=int(day)) for day in rng.integers(0, 15_000, rows)]),
        }
    )
    pq.write_table(table, folder / "survey.parquet")
    return folder / "survey.parquet"


def german(folder: Path, rows: int, seed: int = 3) -> Path:
    """Turnover by day and town: semicolons, Latin-1, decimal commas, points between thousands, and a text for no answer."""
    rng = np.random.default_rng(seed)
    days = [dt.date(2024, 1, 1) + dt.timedelta(days=int(day)) for day in rng.integers(0, 366, rows)]
    amounts = np.round(rng.gamma(1, 900, rows), 2)
    written = [f"{amount:,.2f}".translate(str.maketrans(",.", ".,")) + " €"[: 2 * (place % 2)] for place, amount in enumerate(amounts)]
    lines = [
        f"{day:%d.%m.%Y};{town};{'k. A.' if missing else text}"
        for day, town, text, missing in zip(days, rng.choice(TOWNS, rows), written, rng.random(rows) < 0.1, strict=True)
    ]
    (folder / "umsatz.csv").write_bytes("\n".join(["Datum;Ort;Umsatz in €", *lines, ""]).encode("cp1252"))
    return folder / "umsatz.csv"


@dataclass(frozen=True, kw_only=True)
class Messy:
    """A file, what `init` is told, how its draft is filled, and the exact answers.

    Args:
        make: writes the file of so many rows into a folder.
        init: further arguments of `init`.
        source: what is said of how texts are written.
        domain: by header of the draft what stands in its place; an empty text for what is not published.
        workload: what is asked besides one table an attribute.
        tables: the tables asked for, and their exact counts by label from the file's own reading by pandas.
    """

    make: Callable[[Path, int], Path]
    init: tuple[str, ...] = ()
    source: str = ""
    domain: Mapping[str, str]
    workload: str = ""
    tables: Callable[[Path], dict[str, dict[str, int]]]

    def filled(self, draft: str, epsilon: str) -> str:
        """The draft with its blanks filled."""
        # the same way from rows to counts, planned in no time
        draft = draft.replace('strategy = "auto"', 'strategy = "marginals"')
        text = re.sub(r"(?m)^unit = .*$", 'unit = "row"', draft.replace('epsilon = "1"', f'epsilon = "{epsilon}"', 1))
        text = text.replace("[privacy]", f"{self.source}[privacy]", 1).replace("[plan]", f"{self.workload}[plan]", 1)
        for header, block in self.domain.items():
            text, times = re.subn(rf"(?ms)^\[domain\.{re.escape(header)}\]\n.*?\n(?=\n)", lambda _, put=block: put, text)
            if times != 1:
                raise ValueError(header)
        return text


def _counts(series: pd.Series) -> dict[str, int]:
    return {str(label): int(count) for label, count in series.value_counts().items()}


_AMOUNTS = ["[-10000, 0)", "[0, 9.99)", "[9.99, 50)", "[50, 10000]"]


def _of_retail(path: Path) -> dict[str, dict[str, int]]:
    frame = pd.read_csv(path, keep_default_na=False)
    when = pd.to_datetime(frame["ordered_at"])
    return {
        "store": _counts(frame["store"]),
        "store:region": _counts(frame["store"].map(STORES)),
        "ordered_at": _counts(when.dt.strftime("%Y-%m")),
        "ordered_at:quarter": _counts(when.dt.strftime("%Y-Q") + when.dt.quarter.astype(str)),
        "payment": _counts(frame["payment"].str.strip().str.lower().replace("", "other")),
        "amount": _counts(pd.cut(frame["amount"], [-10_000, 0, 9.99, 50, 10_000], right=False, labels=_AMOUNTS)),
    }


def _of_survey(path: Path) -> dict[str, dict[str, int]]:
    frame = pq.read_table(path).to_pandas()
    fives = frame["age"].dropna().astype(int) // 5 * 5
    income = frame["income"].where(frame["income"] >= 0)
    return {
        "sex": _counts(frame["sex"]),
        "age:five": _counts(fives.map(lambda start: f"{start} .. {start + 4}")) | {"other": int(frame["age"].isna().sum())},
        "height": _counts(frame["height"].dropna().map(lambda one: f"{one.normalize():f}")) | {"other": int(frame["height"].isna().sum())},
        "income": {f"[{1000 * k}, {1000 * k + 1000}{')' if k < 4 else ']'}": int((income // 1000 == k).sum()) for k in range(5)}
        | {"other": int(income.isna().sum())},
        "smoker": _counts(frame["smoker"].dropna().map({True: "true", False: "false"})) | {"other": int(frame["smoker"].isna().sum())},
        "born": _counts(pd.to_datetime(frame["born"]).dt.strftime("%Y")),
    }


def _of_german(path: Path) -> dict[str, dict[str, int]]:
    frame = pd.read_csv(path, sep=";", encoding="cp1252", na_values=["k. A."], dtype=str)
    money = frame["Umsatz in €"].str.replace(" €", "").str.replace(".", "").str.replace(",", ".").astype(float)
    bins = pd.cut(money, [0, 500, 1000, 20_000], right=False, labels=["[0, 500)", "[500, 1000)", "[1000, 20000]"])
    return {
        "Ort": _counts(frame["Ort"]),
        "Datum": _counts(pd.to_datetime(frame["Datum"], format="%d.%m.%Y").dt.strftime("%A")),
        "Umsatz": _counts(bins.dropna()) | {"other": int(money.isna().sum())},
    }


MESSY = {
    "retail": Messy(
        make=retail,
        domain={
            "store": """[domain.store]
categories = { file = "stores.csv", column = "name" }
levels.region = { file = "stores.csv", key = "name", value = "region" }
""",
            "ordered_at": """[domain.ordered_at]
dates = { from = "2024-01-01", to = "2024-12-31", by = "month" }
""",
            "payment": """[domain.payment]
categories = ["card", "cash"]
trim = true
ignore_case = true
null = "other"
""",
            "amount": """[domain.amount]
edges = ["-10000", "0", "9.99", "50", "10000"]
""",
        },
        workload="""[[workload]]
queries = { store = { level = "region" } }
[[workload]]
queries = { ordered_at = { level = "quarter" } }
""",
        tables=_of_retail,
    ),
    "survey": Messy(
        make=survey,
        domain={
            "sex": """[domain.sex]
categories = ["F", "M"]
""",
            "age": """[domain.age]
integers = [15, 94]
null = "other"
levels.five = { width = 5 }
""",
            "height": """[domain.height]
decimals = { low = "140", high = "200", step = "0.5" }
null = "other"
""",
            "income": """[domain.income]
bins = { low = 0, high = 5000, count = 5 }
nulls = ["-9"]
null = "other"
""",
            "smoker": """[domain.smoker]
categories = [true, false]
null = "other"
""",
            "born": """[domain.born]
dates = { from = "1950-01-01", to = "1991-12-31", by = "year" }
""",
        },
        workload="""[[workload]]
queries = { age = { level = "five" } }
""",
        tables=_of_survey,
    ),
    "german": Messy(
        make=german,
        init=("--encoding", "cp1252", "--delimiter", ";"),
        source="""null = ["k. A."]
decimal = ","
thousands = "."
currency = ["€"]
""",
        domain={
            "Datum": """[domain.Datum]
dates = { from = "2024-01-01", to = "2024-12-31", by = "weekday", format = "%d.%m.%Y" }
""",
            "Ort": """[domain.Ort]
categories = ["München", "Köln", "Saarbrücken"]
""",
            '"Umsatz in €"': """[domain.Umsatz]
column = "Umsatz in €"
edges = [0, 500, 1000, 20000]
null = "other"
""",
        },
        tables=_of_german,
    ),
}


def stores(folder: Path) -> None:
    """The public list of stores."""
    with (folder / "stores.csv").open("w", encoding="utf-8", newline="") as opened:
        csv.writer(opened).writerows([("name", "region"), *STORES.items()])
