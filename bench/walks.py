"""Release realistic files, and compare every interval with pandas on all rows.

    python bench/walks.py [--seed 1] [--rows 240000] [--data FOLDER] [--only calls claims survey]

`calls` is a folder of twelve monthly CSV files with changing writers, generated from the seed.
`claims` and `survey` need the tables `VietNamI.csv` (package Ecdat of R) and `SLID.csv` (package
car) in FOLDER, as the Python package pydataset has them; the ids of claims, persons and providers,
and the weights of the survey, are generated. Without FOLDER only `calls` is run.

It prints the rows of docs/results/walks.md: for each table, how many 95% intervals contain the true
value of all rows. Lines that begin with `first screen` are the sentences of the report on rows and
values that are left out.
"""

import argparse
import html
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

STATIONS = [str(number) for number in range(1, 13)]
PRIORITIES = ["A", "B", "C"]
YEAR = 2025
LEVEL = 0.95
LEFT_OUT = re.compile(
    r"left out|not used|beyond|bounds of|cut|unused|counted at the nearest|missing or outside"
)
Truth = Callable[[Mapping[str, Any]], float]
"""The true value of an answer, by the labels of its row."""


def bench_calls(folder: Path, seed: int, rows: int) -> tuple[str, dict[str, Truth]]:
    """Write a folder of monthly files of ambulance calls; return its spec and true values."""
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.linspace(6, 1, len(STATIONS)))
    received = pd.Timestamp(f"{YEAR}-01-01") + pd.to_timedelta(
        rng.integers(0, 365 * 24 * 60, rows), unit="min"
    )
    minutes = np.round(rng.lognormal(2.7, 0.7, rows), 1)
    minutes[rng.random(rows) < 0.01] = 900  # calls that were never closed
    negative = rng.random(rows) < 0.003  # the clock was set back
    minutes[negative] *= -1
    calls = pd.DataFrame(
        {
            "call_id": np.arange(rows),
            "received": received,
            "station": rng.choice(STATIONS, rows, p=shares),
            "priority": rng.choice(PRIORITIES, rows, p=[0.2, 0.5, 0.3]),
            "minutes": minutes,
            "age": rng.integers(0, 100, rows).astype(float),
        }
    )
    calls.loc[rng.random(rows) < 0.03, "minutes"] = np.nan
    calls.loc[rng.random(rows) < 0.08, "priority"] = None
    calls.loc[rng.random(rows) < 0.15, "age"] = np.nan
    (folder / "calls").mkdir()
    for month in range(1, 13):
        _write_month(calls[calls.received.dt.month == month], folder / "calls", month)
    (folder / "calls" / "_SUCCESS").touch()
    spec = """
[source]
path = "calls"
null = ["NA"]
trim = true
[privacy]
epsilon = "1"
[domain.received]
dates = { from = "2025-01-01", to = "2025-12-31", by = "month" }
[domain.station]
categories = ["1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12"]
[domain.priority]
categories = ["A", "B", "C"]
[domain.age]
integers = [0, 99]
levels.group = { edges = [0, 18, 65] }
[domain.minutes]
bins = { low = 0, high = 180, count = 90 }
outside = "clip"
[measures.duration]
column = "minutes"
clip = [0, 180]
unit = "0.1"
[[workload]]
queries = { received = "identity" }
[[workload]]
queries = { station = "identity", priority = "identity" }
[[workload]]
queries = { station = "identity", age = { level = "group" } }
[[workload]]
quantiles = { of = "minutes", at = ["0.5", "0.9"], by = ["priority"] }
[[workload]]
means = { of = "duration", by = ["station"] }
[plan]
guard = "1/100"
seconds = 2
"""
    group = pd.cut(calls.age, [-1, 17, 64, 99], labels=["0 .. 17", "18 .. 64", "65 .. 99"])
    by_month = calls.received.dt.strftime("%Y-%m").value_counts()
    by_station = calls.groupby("station").minutes
    truths: dict[str, Truth] = {
        "received": lambda row: by_month[row["received"]],
        "station x priority": lambda row: (
            (calls.station == row["station"]) & (calls.priority == row["priority"])
        ).sum(),
        "station x age:group": lambda row: (
            (calls.station == row["station"]) & (group == _nearest(row, "age", group))
        ).sum(),
        "priority x minutes:prefix": lambda row: _up_to(
            calls.minutes[calls.priority == row["priority"]], row, "minutes"
        ),
        "quantiles of minutes by priority": lambda row: _quantile(
            calls.minutes[calls.priority == row["priority"]], row["share"]
        ),
        "mean of duration by station": lambda row: by_station.mean()[row["station"]],
        "sum of duration by station": lambda row: by_station.sum()[row["station"]],
        "count of duration by station": lambda row: by_station.count()[row["station"]],
    }
    return spec, truths


def _write_month(calls: pd.DataFrame, folder: Path, month: int) -> None:
    """Write one month in the format of its quarter of the year."""
    name = folder / f"calls-{month:02}.csv"
    if month <= 3:
        calls.to_csv(name, index=False)
    elif month <= 6:  # statistical software: NA, and whole numbers as floats
        calls.assign(station=calls.station + ".0").to_csv(name, index=False, na_rep="NA")
    elif month <= 9:  # an export with semicolons, a byte order mark, quotes and CR LF
        columns = list(reversed(calls.columns))
        calls[columns].to_csv(
            name, index=False, sep=";", quoting=1, lineterminator="\r\n", encoding="utf-8-sig"
        )
    else:  # a database with columns of fixed width
        padded = calls.priority.map(lambda value: f"{value}  ", na_action="ignore")
        calls.assign(priority=padded).to_csv(
            f"{name}.gz", index=False, date_format="%Y-%m-%dT%H:%M"
        )


def bench_claims(folder: Path, seed: int, data: Path) -> tuple[str, dict[str, Truth]]:
    """Write a claims file with several columns of ids; return its spec and true values."""
    rng = np.random.default_rng(seed)
    persons = pd.read_csv(data / "VietNamI.csv")
    visits = np.repeat(np.arange(len(persons)), persons.pharvis)
    claims = pd.DataFrame(
        {
            "claim_no": rng.permutation(len(visits)) + 10**6,
            "member_id": visits + 50_000,
            "household_id": visits // 4,
            "provider_id": persons.commune.to_numpy()[visits] * 10
            + rng.integers(0, 3, len(visits)),
            "commune": persons.commune.to_numpy()[visits],
            "sex": persons.sex.to_numpy()[visits],
            "insurance": persons.insurance.to_numpy()[visits],
            "paid": np.round(
                np.exp(persons.lnhhexp.to_numpy()[visits]) * rng.lognormal(0, 0.5, len(visits)), 2
            ),
            "service_date": pd.Timestamp("1998-01-01")
            + pd.to_timedelta(rng.integers(0, 365, len(visits)), unit="D"),
        }
    )
    claims.loc[rng.random(len(claims)) < 0.02, "paid"] *= -1  # reversals
    claims.loc[rng.random(len(claims)) < 0.05, "sex"] = None
    written = claims.assign(
        paid=[f"({-paid:.2f})" if paid < 0 else f"{paid:.2f}" for paid in claims.paid],
        service_date=claims.service_date.dt.strftime("%d-%b-%y").str.upper(),
    )
    written.to_csv(folder / "claims.csv", index=False, sep="|", na_rep="")
    spec = """
[source]
path = "claims.csv"
[privacy]
rho = "1"
unit = { column = "member_id", max_rows = 30 }
[domain.service_date.dates]
from = "1998-01-01"
to = "1998-12-31"
by = "quarter"
format = "%d-%b-%y"
century = 1950
[domain.sex]
categories = ["male", "female"]
[domain.insurance]
categories = [0, 1]
[measures.paid]
clip = [-100, 200]
unit = "0.01"
[[workload]]
queries = { service_date = "identity", insurance = "identity" }
[[workload]]
queries = { sex = "identity", service_date = "identity" }
count = "units"
[[workload]]
means = { of = "paid", by = ["sex"] }
[[workload]]
means = { of = "paid", by = ["service_date"] }
[plan]
guard = "1/50"
seconds = 2
"""
    quarter = claims.service_date.dt.to_period("Q").astype(str).str.replace("Q", "-Q")
    claims["service_date"] = quarter
    truths: dict[str, Truth] = {
        "service_date x insurance": lambda row: (
            (quarter == row["service_date"]) & (claims.insurance == int(row["insurance"]))
        ).sum(),
        "units by service_date x sex": lambda row: claims.member_id[
            (quarter == row["service_date"]) & (claims.sex == row["sex"])
        ].nunique(),
    }
    for name in ("sex", "service_date"):
        grouped = claims.groupby(name).paid
        truths[f"mean of paid by {name}"] = _by_label(grouped.mean(), name)
        truths[f"sum of paid by {name}"] = _by_label(grouped.sum(), name)
        truths[f"count of paid by {name}"] = _by_label(grouped.count(), name)
    return spec, truths


def bench_survey(folder: Path, seed: int, data: Path) -> tuple[str, dict[str, Truth]]:
    """Write a survey with item nonresponse and weights; return its spec and true values."""
    rng = np.random.default_rng(seed)
    survey = pd.read_csv(data / "SLID.csv").drop(columns="Unnamed: 0", errors="ignore")
    survey["weight"] = np.round(rng.lognormal(3, 0.4, len(survey)), 2)
    survey.to_parquet(folder / "survey.parquet")
    spec = """
[source]
path = "survey.parquet"
[privacy]
rho = "1/2"
[domain.sex]
categories = ["Female", "Male"]
[domain.language]
categories = ["English", "French", "Other"]
[domain.education]
bins = { low = 0, high = 20, count = 10 }
[domain.wages]
bins = { low = 0, high = 50, count = 100 }
outside = "clip"
[measures.wages]
clip = [0, 50]
unit = "0.01"
[measures.weight]
clip = [0, 80]
unit = "0.01"
[[workload]]
queries = { language = "identity", sex = "identity" }
[[workload]]
queries = { education = "identity" }
[[workload]]
queries = { sex = "identity" }
weighted_by = "weight"
[[workload]]
means = { of = "wages", by = ["sex"] }
weighted_by = "weight"
[[workload]]
quantiles = { of = "wages", at = ["0.25", "0.5", "0.75"], by = ["sex"] }
[plan]
guard = "1/50"
seconds = 2
"""
    education = np.minimum(np.floor(survey.education / 2), 9)
    answered = survey[survey.wages.notna()]
    weighted = (answered.wages * answered.weight).groupby(answered.sex).sum()
    weights = answered.weight.groupby(answered.sex).sum()
    truths: dict[str, Truth] = {
        "sex x wages:prefix": lambda row: _up_to(
            survey.wages[survey.sex == row["sex"]], row, "wages"
        ),
        "sex x language": lambda row: (
            (survey.language == row["language"]) & (survey.sex == row["sex"])
        ).sum(),
        "education": lambda row: (education == row["education_low"] // 2).sum(),
        "sum of weight by sex": lambda row: survey.weight[survey.sex == row["sex"]].sum(),
        "mean of wages weighted by weight by sex": lambda row: (
            weighted[row["sex"]] / weights[row["sex"]]
        ),
        "sum of wages weighted by weight by sex": lambda row: weighted[row["sex"]],
        "sum of weight of rows with wages by sex": lambda row: weights[row["sex"]],
        "quantiles of wages by sex": lambda row: _quantile(
            survey.wages[survey.sex == row["sex"]], row["share"]
        ),
    }
    return spec, truths


def _by_label(values: "pd.Series[Any]", name: str) -> Truth:
    """Return the true value of an answer by its label of one attribute."""
    return lambda row: float(values[row[name]])


def _up_to(values: "pd.Series[float]", row: Mapping[str, Any], name: str) -> float:
    """Return the number of values up to the end of a cell; the last cell counts those beyond it."""
    if row[name].startswith("<="):
        return float(values.notna().sum())
    return float((values < row[f"{name}_high"]).sum())


def _quantile(values: "pd.Series[float]", share: str) -> float:
    """Return the smallest value with at least the share of values at or below it."""
    return float(np.quantile(values.dropna(), float(share), method="inverted_cdf"))


def _nearest(row: Mapping[str, Any], name: str, groups: Any) -> str:
    """Return the group of a row whose label begins with the same number."""
    label = next(str(value) for key, value in row.items() if key.startswith(name))
    first = re.split(r"\D+", label)[0]
    return str(next(group for group in groups.cat.categories if group.split(" ")[0] == first))


def count_covered(release: Any, truths: Mapping[str, Truth]) -> Iterator[tuple[str, int, int]]:
    """Yield each table's name, its intervals, and how many contain the true value."""
    for table in (*release.tables, *release.statistics):
        truth = truths.get(table.name)
        if truth is None:
            print(f"  not compared: {table.name}")
            continue
        frame = table.frame()
        covered = 0
        for row in frame.to_dict("records"):
            covered += bool(row["low"] <= truth(row) <= row["high"])
        yield table.name, len(frame), covered


def first_screen(folder: Path) -> list[str]:
    """Return the sentences of the report's first screen about omitted rows and values."""
    page = (folder / "report.html").read_text(encoding="utf-8").split("</header>")[0]
    paragraphs = re.findall(r"<p[^>]*>(.*?)</p>", page, flags=re.DOTALL)
    texts = [html.unescape(re.sub(r"<[^>]+>", "", paragraph)) for paragraph in paragraphs]
    return [text for text in texts if LEFT_OUT.search(text)]


def main() -> None:
    """Run the walks and print a row for each table."""
    import leastnoise as ln

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rows", type=int, default=240_000)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--only", nargs="+", default=["calls", "claims", "survey"])
    options = parser.parse_args()
    print("| file | table | intervals | covered |")
    print("|---|---|--:|--:|")
    for name in options.only:
        if name != "calls" and options.data is None:
            continue
        with tempfile.TemporaryDirectory() as directory:
            folder = Path(directory)
            if name == "calls":
                spec_text, truths = bench_calls(folder, options.seed, options.rows)
            elif name == "claims":
                spec_text, truths = bench_claims(folder, options.seed, options.data)
            else:
                spec_text, truths = bench_survey(folder, options.seed, options.data)
            (folder / "spec.toml").write_text(spec_text, encoding="utf-8")
            spec = ln.read_spec(folder / "spec.toml")
            release = spec.release(folder / "out", seed=options.seed)
            totals = np.zeros(2, dtype=int)
            for table, intervals, covered in count_covered(release, truths):
                print(f"| {name} | {table} | {intervals} | {covered} ({covered / intervals:.0%}) |")
                totals += intervals, covered
            print(f"| {name} | all | {totals[0]} | {totals[1]} ({totals[1] / totals[0]:.0%}) |")
            for sentence in first_screen(folder / "out"):
                print(f"first screen: {sentence}")


if __name__ == "__main__":
    main()
