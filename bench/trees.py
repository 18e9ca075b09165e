"""Compare strategies for counts of places, groups of places and the total.

Counts are also by sex, and by sex and age.

    python bench/trees.py [--shapes even-4096 zipf-4 three] [--budgets rho epsilon] [--strategies
        auto level_tree] [--seconds 20]
    python bench/trees.py --release 3 4 5 [--rows 10000000] [--sources parquet duckdb spark]
    python bench/trees.py --top-down 1000 10000 [--facts]

`even-N`: N places in groups of 16, 256 and 4,096. `zipf-D`: 10,000 places in a tree of D levels,
whose groups have 1 to 2,000 children by a Zipf law. `three`: trees of 300, 500 and 60 leaves, all
pairs of all their levels. A separate process computes each plan on one thread. The total squared
error is at privacy cost 1 (rho 1/2, or epsilon 1). It is divided by the smallest known error: for
Gaussian noise the lower bound, for Laplace noise on equal groups the error of the best weights of
the tables of level and subset.

``--release``: `leastnoise release` counts rows of a Parquet file by codes of DIGITS hexadecimal
digits, with a file of categories and a level for every number of first digits: by all levels, by
sex, and by sex and age. CPU seconds, seconds and memory are of the whole command (planning,
reading, paying, measuring, estimating, writing, report). DuckDB counts the cells of the finest
table that contain rows, without noise, for comparison. The rows can also be a table of a DuckDB
file, or a data frame of Spark in local mode with two cores and a heap of 1 GiB. The CPU seconds and
the memory of its Java process follow a plus sign.

``--top-down``: numbers of places, in counties of about 20 places and states of about 10 counties,
by sex, five groups and twenty ages (200 cells and 200 rows a place), at rho = 1/2. The whole
command writes `answer_integer` and `answer_top_down`; a second table has the mean absolute error of
every table, and the mean error in the smaller half of its answers. ``--facts`` adds public numbers
of rows of all places, and impossible cells.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from pyarrow.parquet import read_metadata, write_table

os.environ["LEASTNOISE_CACHE"] = "off"
# Total squared errors of the best weights of the tables of level and subset.
SMALLEST_ERRORS = {
    ("epsilon", "even-4096"): 2.287e6,
    ("epsilon", "even-65536"): 38.26e6,
    ("epsilon", "even-1048576"): 601.6e6,
}
SHAPES = ["even-4096", "even-65536", "even-1048576", "zipf-2", "zipf-4", "zipf-7", "three"]


def levels(
    leaves: int, depth: int, max_children: int, rng: np.random.Generator
) -> dict[str, dict[int, int]]:
    """Return the group of each leaf at each of some levels.

    The numbers of children of the groups follow a Zipf law.
    """
    groups = np.arange(leaves)
    groups_by_level = {}
    for level in range(1, depth):
        children_count = int(groups[-1]) + 1
        if level == 1:
            sizes = np.minimum(rng.zipf(1.5, children_count), max_children)
        else:
            sizes = 1 + np.minimum(rng.zipf(1.7, children_count), 9)
        groups = np.searchsorted(np.cumsum(sizes), groups, side="right")
        groups_by_level[f"level {level}"] = dict(enumerate(groups.tolist()))
    return groups_by_level


def build_workload(shape: str) -> Any:
    """Build the workload of a shape."""
    import leastnoise as ln

    kind, _, size = shape.partition("-")
    rng = np.random.default_rng(1)
    if kind == "three":
        trees = {
            name: ln.Coded(n, levels=levels(n, 4, 40, rng))
            for name, n in (("place", 300), ("job", 500), ("month", 60))
        }
        domain = ln.Domain(trees).as_complete()
        pairs = [("place", "job"), ("place", "month"), ("job", "month")]
        query_sets = ["identity", *map(ln.level, ("level 1", "level 2", "level 3"))]
        products = [
            ln.queries(domain, {first: along_first, second: along_second})
            for first, second in pairs
            for along_first in query_sets
            for along_second in query_sets
        ]
    else:
        if kind == "even":
            widths = [width for width in (16, 256, 4096) if width < int(size)]
            place: Any = ln.Integers(
                0,
                int(size) - 1,
                levels={f"groups of {width}": {"width": width} for width in widths},
            )
            names = [f"groups of {width}" for width in widths]
        else:
            tree = levels(10_000, int(size), 2_000, rng)
            place = ln.Coded(10_000, levels=tree)
            names = [*tree]
        domain = ln.Domain(place=place, sex=ln.Coded(2), age=ln.Coded(18)).as_complete()
        query_sets = ["total", "identity", *(ln.level(name) for name in names)]
        products = [
            ln.queries(domain, place=query_set, **dict.fromkeys(crossed, "identity"))
            for crossed in ([], ["sex"], ["sex", "age"])
            for query_set in query_sets
        ]
    return sum(products[1:], products[0])


def plan(shape: str, budget: str, strategy: str, seconds: float) -> str:
    """Plan a shape; return a row of the table."""
    import leastnoise as ln

    workload = build_workload(shape)
    privacy = ln.Privacy(ln.ZCDP("1/2") if budget == "rho" else ln.PureDP(1))
    start = time.process_time()
    result = ln.plan(workload, privacy, strategy=strategy, seconds=seconds)
    cpu_seconds = time.process_time() - start
    error = result.expected_error().total_squared_error
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    lower_bound = result.lower_bound()
    if budget == "rho":
        reference: float | None = lower_bound
    else:
        reference = SMALLEST_ERRORS.get((budget, shape))
    ratio = f"{error / reference:.3f}" if reference else ""
    cells = [
        shape,
        budget,
        f"`{result.strategy}`",
        f"{error:,.0f}",
        ratio,
        f"{lower_bound:,.0f}",
        f"{cpu_seconds:.1f}",
        f"{memory:.0f}",
    ]
    return "| " + " | ".join(cells) + " |"


def write_rows(digits: int, rows: int, folder: Path, source: str = "parquet") -> Path:
    """Write a file of rows, the list of its codes, and a spec with all levels.

    Returns the path of the spec.
    """
    rng = np.random.default_rng(1)
    places = 16**digits
    codes = pa.array([f"{place:0{digits}x}" for place in range(places)])
    share = rng.permutation(1 / np.arange(1, places + 1) ** 0.8)
    place = pa.DictionaryArray.from_arrays(
        pa.array(rng.choice(places, rows, p=share / share.sum()).astype(np.int32)), codes
    )
    sex = pa.DictionaryArray.from_arrays(
        pa.array(rng.integers(0, 2, rows).astype(np.int8)), pa.array(["F", "M"])
    )
    age = pa.array(np.minimum(rng.gamma(3, 2.3, rows), 17).astype(np.int8))
    write_table(
        pa.table({"place": place.cast(pa.string()), "sex": sex.cast(pa.string()), "age": age}),
        folder / "people.parquet",
    )
    if source == "duckdb":
        with duckdb.connect(folder / "people.duckdb") as database:
            # The program chooses the folder.
            database.execute(f"CREATE TABLE people AS SELECT * FROM '{folder}/people.parquet'")  # noqa: S608
    (folder / "places.csv").write_text("code\n" + "\n".join(codes.to_pylist()) + "\n")
    levels = [f"d{first}" for first in range(1, digits)]
    along_place = [
        'place = "identity"',
        *(f'place = {{ level = "{level}" }}' for level in levels[::-1]),
        "",
    ]
    along_others = ["", 'sex = "identity"', 'sex = "identity", age = "identity"']
    query_texts = [
        ", ".join(filter(None, (place_text, other_text)))
        for other_text in along_others
        for place_text in along_place
    ]
    if source == "duckdb":
        data = 'table = "people"\nconnection = "env:PEOPLE"'
    else:
        data = 'path = "people.parquet"'
    spec = [
        f"[source]\n{data}",
        (
            '[privacy]\nrho = "1/2"\n[domain.place]\ncategories = { file = "places.csv", column = '
            '"code" }'
        ),
        *(f"levels.{level} = {{ digits = {level[1:]} }}" for level in levels),
        '[domain.sex]\ncategories = ["F", "M"]\n[domain.age]\nintegers = [0, 17]',
    ]
    for text in query_texts:
        if text:
            spec.append(f"[[workload]]\nqueries = {{ {text} }}")
        else:
            spec.append("[[workload]]\nmarginals = { ways = 0 }")
    spec.append('[plan]\nstrategy = "marginals"\n[output]\nformats = ["parquet"]\n')
    (folder / "spec.toml").write_text("\n".join(spec))
    return folder / "spec.toml"


def measure_release(digits: int, rows: int, source: str) -> str:
    """Release a generated file; return a row of the table of releases."""
    with tempfile.TemporaryDirectory() as name:
        spec = write_rows(digits, rows, Path(name), source)
        start = time.time()
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        command = [
            sys.executable,
            "-c",
            "from leastnoise._cli import main; main()",
            "release",
            str(spec),
            "--out",
            f"{name}/out",
        ]
        if source == "spark":
            command = [sys.executable, __file__, "--spark", name]
        else:
            command = [*command, "--ledger", f"{name}/people.ledger"]
        settings = {
            **os.environ,
            "PEOPLE": f"duckdb://{name}/people.duckdb",
            "PYSPARK_PYTHON": sys.executable,
        }
        output = subprocess.run(  # noqa: S603
            command,
            env=settings,
            check=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        ).stdout  # noqa: RUF100, S603
        seconds = time.time() - start
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = usage.ru_utime + usage.ru_stime - before.ru_utime - before.ru_stime
        # The program chooses the folder.
        query = f"SELECT place, sex, age, COUNT(*) FROM '{name}/people.parquet' GROUP BY ALL"  # noqa: S608
        count_start = time.process_time()
        duckdb.sql(f"COPY ({query}) TO '{name}/counts.parquet'")
        counted = time.process_time() - count_start
        answers = sum(
            read_metadata(file).num_rows for file in Path(name, "out/answers").glob("*.parquet")
        )
        files = [file for file in Path(name, "out").rglob("*") if file.is_file()]
        size = sum(file.stat().st_size for file in files) / 2**20
    costs = [
        f"{cpu:.0f}",
        f"{cpu / counted:.1f}",
        f"{seconds:.0f}",
        f"{usage.ru_maxrss / 1024:,.0f}",
    ]
    if source == "spark":
        own_cpu, java_cpu, memory, java_memory = output.split()[-4:]
        costs = [
            f"{own_cpu} + {java_cpu}",
            f"{float(own_cpu) / counted:.1f}",
            f"{seconds:.0f}",
            f"{memory} + {java_memory}",
        ]
    return (
        "| " + " | ".join([f"{16**digits:,}", source, f"{answers:,}", *costs, f"{size:.0f}"]) + " |"
    )


GROUP_SIZES = {"sex": 2, "race": 5, "age": 20}
ROWS_OF_PLACE = 200
IMPOSSIBLE = {"race": 4, "age": 0}
TREE_TABLES = [
    [*along, *others]
    for others in ([], ["sex"], ["sex", "age"], ["sex", "race", "age"])
    for along in ([], ["state"], ["county"], ["place"])
]


def write_tree(places: int, folder: Path, *, has_facts: bool) -> Path:
    """Write rows of people in places, the list of places and the spec; return its path."""
    generator = np.random.default_rng(1)
    rows = places * ROWS_OF_PLACE
    share = generator.permutation(1 / np.arange(1, places + 1) ** 0.8)
    codes = {
        "place": generator.choice(places, rows, p=share / share.sum()),
        "sex": generator.integers(0, 2, rows),
        "race": np.minimum(generator.geometric(0.5, rows) - 1, 4),
        "age": np.minimum(generator.gamma(3, 2.3, rows), 19).astype(np.int64),
    }
    codes["age"][(codes["race"] == IMPOSSIBLE["race"]) & (codes["age"] == IMPOSSIBLE["age"])] = 1
    write_table(pa.table(codes), folder / "people.parquet")
    county = np.unique(generator.integers(0, places // 20, places), return_inverse=True)[1]
    people = np.bincount(codes["place"], minlength=places)
    lines = [
        f"{place},c{county[place]},s{county[place] // 10},{people[place]}"
        for place in range(places)
    ]
    (folder / "places.csv").write_text("place,county,state,people\n" + "\n".join(lines) + "\n")
    parts = [
        '[source]\npath = "people.parquet"\n[privacy]\nrho = "1/2"\n[domain.place]',
        'categories = { file = "places.csv", column = "place" }\ncomplete = true',
        'levels.county = { file = "places.csv", key = "place", value = "county" }',
        'levels.state = { file = "places.csv", key = "place", value = "state" }',
    ]
    for name, size in GROUP_SIZES.items():
        parts.append(f"[domain.{name}]\nintegers = [0, {size - 1}]\ncomplete = true")
    for table in TREE_TABLES:
        queries = []
        for name in table:
            if name in ("county", "state"):
                queries.append(f'place = {{ level = "{name}" }}')
            else:
                queries.append(f'{name} = "identity"')
        parts.append("[[workload]]")
        if queries:
            parts.append(f"queries = {{ {', '.join(queries)} }}")
        else:
            parts.append("marginals = { ways = 0 }")
    if has_facts:
        parts.append('[[public]]\nqueries = { place = "identity" }')
        parts.append('counts = { file = "places.csv", column = "people" }\n[[impossible]]')
        parts += [f"{name} = [{code}, {code}]" for name, code in IMPOSSIBLE.items()]
    parts.append('[plan]\nstrategy = "marginals"\n[output]\nformats = ["parquet"]')
    parts.append("non_negative = true\ninteger = true\ntop_down = true\n")
    (folder / "spec.toml").write_text("\n".join(parts))
    return folder / "spec.toml"


def list_tree_errors(folder: Path) -> list[str]:
    """Return a row for each table with the errors of its columns of answers.

    They are the mean absolute errors of three columns, and the mean errors of two of them in the
    smaller half of the answers.
    """
    people = f"'{folder}/people.parquet' JOIN '{folder}/places.csv' USING (place)"
    rows = []
    for number, table in enumerate(TREE_TABLES, 1):
        (file,) = (folder / "out" / "answers").glob(f"q{number:02d}-*.parquet")
        joined = ["true"]
        for name in table:
            column = f"place:{name}" if name in ("county", "state") else name
            joined.append(f'a."{column}" = t.{name}')
        keys = ", ".join(table)
        truth = f"SELECT {keys or '0'}, COUNT(*) AS n FROM {people} GROUP BY {keys or '1'}"  # noqa: S608
        errors_of = ", ".join(
            f"avg(abs({column} - rows))"
            for column in ("answer", "answer_integer", "answer_top_down")
        )
        biases = ", ".join(
            f"avg({column} - rows) FILTER (rows <= (SELECT median(rows) FROM joined))"  # noqa: S608
            for column in ("answer_integer", "answer_top_down")
        )
        query = (
            f"WITH joined AS (SELECT a.*, coalesce(n, 0) AS rows FROM '{file}' a "  # noqa: S608
            f"LEFT JOIN ({truth}) t ON {' AND '.join(joined)}) "
            f"SELECT count(*), {errors_of}, {biases} FROM joined"
        )
        ((cells, *errors),) = duckdb.execute(query).fetchall()
        listed = " | ".join(f"{error:.2f}" for error in errors)
        rows.append(f"| {' x '.join(table) or 'total'} | {cells:,} | {listed} |")
    return rows


def measure_top_down(places: int, *, has_facts: bool) -> tuple[str, list[str]]:
    """Return a row with seconds and memory of a release, and rows with its errors."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        spec = write_tree(places, folder, has_facts=has_facts)
        command = "from leastnoise._cli import main; main()"
        arguments = ["release", str(spec), "--out", f"{name}/out", "--ledger", f"{name}/l.ledger"]
        start = time.time()
        subprocess.run(  # noqa: S603
            [sys.executable, "-c", command, *arguments],
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        seconds = time.time() - start
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        facts = "public places, impossible cells" if has_facts else "none"
        cpu = usage.ru_utime + usage.ru_stime
        row = (
            f"| {places:,} | {facts} | {cpu:.0f} | {seconds:.0f} | {usage.ru_maxrss / 1024:,.0f} |"
        )
        return row, list_tree_errors(folder)


def release_spark(folder: str) -> None:
    """Release the rows as a Spark data frame; print CPU seconds and memory.

    Both are printed for this process and for Java.
    """
    from pyspark.sql import SparkSession
    from spark import seconds, status

    import leastnoise as ln

    settings: dict[str, Any] = {
        "spark.driver.memory": "1g",
        "spark.ui.enabled": "false",
        "spark.local.dir": folder,
        "spark.driver.bindAddress": "127.0.0.1",
    }
    builder = SparkSession.builder.master("local[2]").config(map=settings)
    spark = builder.config("spark.driver.host", "127.0.0.1").getOrCreate()
    # No public method gives the number of the process.
    java = int(spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid())  # type: ignore[union-attr]  # noqa: SLF001
    spec = ln.read_spec(f"{folder}/spec.toml")
    plan = ln.plan(spec.workload, ln.Privacy(ln.ZCDP("1/2")), strategy="marginals")
    rows = spark.read.parquet(f"{folder}/people.parquet")
    ln.release(
        plan,
        rows,
        ledger=f"{folder}/people.ledger",
        dataset="people",
        out=f"{folder}/out",
        options=spec.options,
    )
    usage = resource.getrusage(resource.RUSAGE_SELF)
    memories = usage.ru_maxrss / 1024, status(java, "VmHWM") / 1024
    print(
        f"{usage.ru_utime + usage.ru_stime:.0f}",
        f"{seconds(java):.0f}",
        *(f"{memory:,.0f}" for memory in memories),
    )


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--shapes", nargs="+", default=SHAPES)
    parser.add_argument("--budgets", nargs="+", default=["rho", "epsilon"])
    parser.add_argument("--strategies", nargs="+", default=["auto"])
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--release", nargs="+", type=int, default=[], metavar="DIGITS")
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument(
        "--sources", nargs="+", default=["parquet"], choices=["parquet", "duckdb", "spark"]
    )
    parser.add_argument("--top-down", nargs="+", type=int, default=[], metavar="PLACES")
    parser.add_argument("--facts", action="store_true")
    parser.add_argument("--spark", metavar="FOLDER", help=argparse.SUPPRESS)
    parser.add_argument("--row", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.top_down:
        print("| places | public facts | CPU s | s | MiB |\n|--:|---|--:|--:|--:|")
        errors: list[str] = []
        for places in options.top_down:
            measured, errors = measure_top_down(places, has_facts=options.facts)
            print(measured, flush=True)
        print(
            "\n| table | cells | unbiased | integer | top_down | integer, smaller half | top_down, "
            "smaller half |\n|---|--:|--:|--:|--:|--:|--:|"
        )
        print("\n".join(errors))
        return
    if options.release:
        print(
            "| places | source | answers | CPU s | over counts by DuckDB | s | MiB | files, MiB "
            "|\n|--:|---|--:|--:|--:|--:|--:|--:|"
        )
        for digits in options.release:
            for source in options.sources:
                print(measure_release(digits, options.rows, source), flush=True)
        return
    if options.spark:
        release_spark(options.spark)
        return
    if options.row:
        shape, budget, strategy = options.row
        print(plan(shape, budget, strategy, options.seconds))
        return
    print(
        "| shape | budget | strategy | total squared error | over the least known | lower bound | "
        "CPU s | MiB |"
    )
    print("|---|---|---|--:|--:|--:|--:|--:|")
    for shape in options.shapes:
        for budget in options.budgets:
            for strategy in options.strategies:
                row = ["--row", shape, budget, strategy, "--seconds", str(options.seconds)]
                threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
                subprocess.run(  # noqa: S603
                    [sys.executable, __file__, *row], env={**os.environ, **threads}, check=False
                )  # noqa: RUF100, S603


if __name__ == "__main__":
    main()
