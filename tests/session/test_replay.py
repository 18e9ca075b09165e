"""A release replayed on neighbouring tables with the same kernel outcomes is identical.

The outcomes of the kernel (noisy values, private choices) are public; everything else of a
release must follow from them. The test returns the outcomes of the first run in the second, while
the kernel runs on the neighbour: its calls, their order, scales and shapes must be equal, and so
must every file to the byte, the order of writes, the output, the exit code and the ledger.
"""

import gzip
import hashlib
import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import cache, partial
from itertools import count, cycle
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import leastnoise as ln
from leastnoise._cli import main
from leastnoise._mechanisms import _dawa
from leastnoise._pages import _report
from leastnoise._publication import _writing
from leastnoise._trusted.accounting import Noise
from leastnoise._trusted.kernel import (
    SeededEntropy,
    _key_search,
    _ledger,
    _ledger_file,
    _measurement,
    _plane,
    _series,
)
from leastnoise._trusted.measurements import measurements_digest

Rows = list[tuple[int, str | None, int | None, int | None]]
COLUMNS = ("person", "sex", "age", "pay")
KINDS = {
    "sex": ln.Categories(("F", "M"), outside="other"),
    "age": ln.Integers(0, 15),
    "pay": ln.Bins(0, 1000, 8),
}
DOMAIN = ln.Domain(KINDS, measures={"wages": ln.Measure("pay", 0, 1000)})
RELATIONS = ["add_remove", "replace"]
PEOPLE: Rows = [
    (place // 2, "FM"[place % 2], place * 7 % 16, place * 37 % 1000) for place in range(120)
]
ODD: dict[str, Rows] = {
    "a row": [(900, "F", 3, 10)],
    "nulls": [(901, None, None, None)],
    "outside the domain": [(902, "x", 99, -5)],
    "beyond max_rows": [(903, "M", 4, 20)] * 5,
}


def neighbours(kind, first, count=2):
    """Return ``count`` tables that differ from ``PEOPLE`` in one unit, from ``first`` on."""
    tables = {name: [*PEOPLE, *rows] for name, rows in ODD.items()}
    if kind == "replace":
        tables = {name: rows[2:] for name, rows in tables.items()}
    else:
        tables["a unit fewer"] = PEOPLE[2:]
    names = [*tables, *tables]
    return {name: tables[name] for name in names[first % len(tables) :][:count]}


# --- one run, seen from outside -------------------------------------------------------------------


class Tape:
    """Records the kernel's calls and outcomes, and returns them again in later runs."""

    def __init__(self):
        self.outcomes = []
        self.calls = []
        self.outcomes_returned = 0

    def rewind(self):
        """Return the calls so far, and start the next run."""
        calls = self.calls
        self.calls = []
        self.outcomes_returned = 0
        return calls

    def frozen(self, call, outcome):
        """Return the outcome of the first run at this place."""
        self.calls.append(call)
        if self.outcomes_returned == len(self.outcomes):
            self.outcomes.append(outcome)
        self.outcomes_returned += 1
        return self.outcomes[self.outcomes_returned - 1]


WATCHED: dict[str, Any] = {"root": None, "writes": []}


def record_writes(event, arguments):
    """Record the files that the release touches, as an audit hook."""
    if not (WATCHED and WATCHED["root"]) or event not in (
        "open",
        "os.rename",
        "os.mkdir",
        "os.remove",
        "os.link",
        "os.truncate",
    ):
        return
    if event == "open" and not (arguments[2] or 0) & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
        return
    names = [
        str(argument) for argument in arguments[:2] if isinstance(argument, (str, os.PathLike))
    ]
    if event == "open" or any(WATCHED["root"] in name for name in names):
        WATCHED["writes"].append(
            (event, *[name for name in names if name not in ("r", "w", "wb", "x", "xb")])
        )


sys.addaudithook(record_writes)


class StoppedClock(datetime):
    """A clock that stands still."""

    @classmethod
    def now(cls, tz=None):
        return datetime(2026, 1, 2, 3, 4, 5, tzinfo=tz)


@dataclass
class Replay:
    """Runs in empty folders; later runs get the kernel outcomes of the first."""

    root: Path
    tape: Tape
    patch: pytest.MonkeyPatch
    streams: pytest.CaptureFixture[str]

    def run(self, go):
        """Run and return everything that an observer can see."""
        shutil.rmtree(self.root, ignore_errors=True)
        self.root.mkdir()
        self.patch.chdir(self.root)
        numbers = count()
        self.patch.setattr("secrets.token_hex", lambda size=16: f"{next(numbers):0{2 * size}x}")
        self.streams.readouterr()
        WATCHED.update(root=str(self.root), writes=[])
        try:
            code = go()
        finally:
            WATCHED["root"] = None
        output = self.streams.readouterr()
        files = {
            str(path.relative_to(self.root)): hashlib.sha256(path.read_bytes()).hexdigest()
            if path.is_file()
            else None
            for path in sorted(self.root.rglob("*"))
            if not path.name.startswith("people.") or path.suffix == ".ledger"
        }
        calls = self.tape.rewind()
        return {
            "calls": calls,
            "code": code,
            "out": output.out,
            "err": output.err,
            "files": files,
            "writes": list(WATCHED["writes"]),
        }

    def release(self, plan, source, leak=int):
        """Release from Python, and return what an observer can see."""

        def go():
            leak()
            return len(
                ln.release(plan, source, ledger="data.ledger", out="out", dataset="d").tables
            )

        return self.run(go)

    def check(self, run, other_tables):
        """Release, then replay on the neighbours."""
        first_run = run(PEOPLE)
        assert first_run["calls"]
        assert "out" in first_run["files"], first_run["err"]
        assert len(first_run["writes"]) > 3
        for name, rows in other_tables.items():
            assert not differences(first_run, run(rows)), name


@pytest.fixture
def replay(monkeypatch, tmp_path, capfd):
    """Patch the kernel's draws, the clock and the names of temporary files."""
    tape = Tape()
    # Otherwise the second run would find the bytecode of the first.
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    for module in (_ledger, _ledger_file, _writing, _report):
        if hasattr(module, "datetime"):
            monkeypatch.setattr(module, "datetime", StoppedClock)
    _spy_on_samplers(tape, monkeypatch)
    measure = _measurement.draw_answers
    choose = _plane.LeastCost.draw

    def measured(measurements, table, entropy):
        return tape.frozen(
            ("measure", measurements_digest(measurements), type(entropy).__name__),
            measure(measurements, table, entropy),
        )

    def chosen(self, cells, distance, entropy):
        call = repr(self), cells.shape, str(cells.dtype), distance, type(entropy).__name__
        return tape.frozen(call, choose(self, cells, distance, entropy))

    for module in (_measurement, _series):
        monkeypatch.setattr(module, "draw_answers", measured)
    monkeypatch.setattr(_plane.LeastCost, "draw", chosen)
    yield Replay(tmp_path / "run", tape, monkeypatch, capfd)
    WATCHED.update(root=None, writes=[])


def _spy_on_samplers(tape, monkeypatch):
    """Record the arguments of every sampler call."""

    def spied(name, real):
        def sample(numerator, denominator, size, entropy):
            scales = hashlib.sha256(
                np.asarray(numerator).tobytes() + b"/" + np.asarray(denominator).tobytes()
            ).hexdigest()
            tape.calls.append((name, scales, size, type(entropy).__name__))
            return real(numerator, denominator, size, entropy)

        return sample

    monkeypatch.setattr(
        _measurement,
        "SAMPLERS",
        {name: spied(name, real) for name, real in _measurement.SAMPLERS.items()},
    )
    for module in (_key_search, _plane):
        monkeypatch.setattr(
            module,
            "discrete_laplace",
            spied(f"{module.__name__}.discrete_laplace", module.discrete_laplace),
        )


def differences(run, other_run):
    """Return the differences between two runs."""
    return {name: (run[name], other_run[name]) for name in run if run[name] != other_run[name]}


# --- sources --------------------------------------------------------------------------------------


def frame(rows):
    """Return the rows as a pandas frame, with nulls in columns of whole numbers."""
    return pd.DataFrame(dict(zip(COLUMNS, zip(*rows, strict=True), strict=True))).astype(
        {"age": "Int64", "pay": "Int64"}
    )


def _text(rows):
    """Return rows as CSV."""
    texts = [["" if value is None else str(value) for value in row] for row in rows]
    lines = [",".join(row) for row in [COLUMNS, *texts]]
    return "\n".join([*lines, ""])


IN_MEMORY: dict[str, Callable[[Rows], Any]] = {
    "pandas": frame,
    "polars": lambda rows: pl.DataFrame(
        rows, schema=dict.fromkeys(COLUMNS, pl.Int64) | {"sex": pl.String}, orient="row"
    ),
    "pyarrow": lambda rows: pa.Table.from_pandas(frame(rows)),
    "duckdb": lambda rows: duckdb.connect().from_arrow(pa.Table.from_pandas(frame(rows))),
}
FILES: dict[str, Callable[[Rows, Path], object]] = {
    "people.csv": lambda rows, path: path.write_text(_text(rows), encoding="utf-8"),
    "people.csv.gz": lambda rows, path: path.write_bytes(gzip.compress(_text(rows).encode())),
    "people.parquet": lambda rows, path: pq.write_table(pa.Table.from_pandas(frame(rows)), path),
}
SPEC = """
[source]
path = "{path}"
[privacy]
epsilon = "1"
neighbours = "{neighbours}"
unit = {{ column = "person", max_rows = 2 }}
[domain.sex]
categories = ["F", "M"]
outside = "other"
[domain.age]
integers = [0, 15]
[[workload]]
queries = {{ sex = "identity", age = "prefix" }}
[plan]
strategy = "{strategy}"
"""


@pytest.mark.parametrize(("name", "kind"), [*zip(FILES, cycle(RELATIONS))])
def test_command_behaves_alike_on_neighbouring_files(replay, name, kind):
    # Progress is shown to the data holder; it never reaches a file.
    replay.patch.setenv("LEASTNOISE_PROGRESS", "off")
    replay.patch.setenv("COLUMNS", "100")

    def run(rows):
        def go():
            FILES[name](rows, Path(name))
            Path("people.toml").write_text(
                SPEC.format(path=name, neighbours=kind, strategy="hierarchy"), encoding="utf-8"
            )
            replay.patch.setattr(
                sys, "argv", ["leastnoise", "release", "people.toml", "--out", "out"]
            )
            with pytest.raises(SystemExit) as stop:
                main()
            return int(stop.value.code or 0)

        return replay.run(go)

    replay.check(run, neighbours(kind, 2 * list(FILES).index(name)))


@pytest.mark.parametrize(("name", "kind"), [*zip(IN_MEMORY, cycle(RELATIONS))])
def test_release_behaves_alike_on_neighbouring_frames(replay, name, kind):
    plan = plan_for_mechanism("linear", kind)
    replay.check(
        lambda rows: replay.release(plan, IN_MEMORY[name](rows)),
        neighbours(kind, 2 * list(IN_MEMORY).index(name)),
    )


# --- mechanisms -----------------------------------------------------------------------------------

SUMS_OF_GROUPS = ln.queries(DOMAIN, sex="identity", sum="wages")
LINEAR = (
    ln.marginals(DOMAIN, ways=2, of=["sex", "age"])
    + ln.queries(DOMAIN, pay="prefix")
    + SUMS_OF_GROUPS
)
AGES = ln.queries(DOMAIN, age="prefix") + ln.queries(DOMAIN, age="identity")
PLANE = ln.queries(DOMAIN, age="prefix", pay="prefix")
SUMS = ln.queries(DOMAIN, pay="prefix", sum="wages")
SUMS_BY_GROUP = ln.queries(DOMAIN, sex="identity", pay="prefix", sum="wages")
MECHANISMS: dict[str, tuple[Any, Any, str]] = {
    "linear": (LINEAR, ln.PureDP(1), "marginals"),
    "linear, rho": (LINEAR, ln.ZCDP("1/3"), "marginals"),
    "linear, delta": (LINEAR, ln.ApproxDP(1, "1/1000000"), "marginals"),
    **{name: (AGES, ln.PureDP(1), name) for name in _dawa.STRATEGIES},
    **{f"dawa, {regime}": (AGES, ln.PureDP(1), "dawa") for regime in ("smoothed", "adaptive")},
    "dawa, rho": (AGES, ln.ZCDP("1/3"), "dawa"),
    "dawa_levels, delta": (AGES, ln.ApproxDP(1, "1/1000000"), "dawa_levels"),
    **{f"plane, {way}": (PLANE, ln.PureDP(1), "dawa") for way in ("fixed", "blocks")},
    "truncated_sums along the number": (SUMS, ln.PureDP(1), "truncated_sums"),
    "truncated_sums": (SUMS_BY_GROUP, ln.PureDP(1), "truncated_sums"),
    "truncated_sums by group": (SUMS_OF_GROUPS, ln.PureDP(1), "truncated_sums"),
    "truncated_sums, rho": (SUMS_BY_GROUP, ln.ZCDP("1/3"), "truncated_sums"),
}


@cache
def plan_for_mechanism(name, kind):
    workload, budget, strategy = MECHANISMS[name]
    return ln.plan(workload, ln.Privacy(budget, kind, "person", 2), strategy=strategy)


@pytest.mark.parametrize("name", [name for name in MECHANISMS if name != "linear"])
def test_every_mechanism_does_the_same_on_neighbours(replay, name):
    kind = RELATIONS[list(MECHANISMS).index(name) % 2]
    regime = name.partition(", ")[2]
    if name.startswith("dawa, ") and regime != "rho":
        replay.patch.setattr(_dawa, "nearly_empty", lambda *_: regime == "adaptive")
    if name.startswith("plane"):
        replay.patch.setattr(_dawa, "plane_regime", lambda *_, **__: (regime, 4))
    plan = plan_for_mechanism(name, kind)
    source = IN_MEMORY["polars"]
    replay.check(
        lambda rows: replay.release(plan, source(rows)),
        neighbours(kind, list(MECHANISMS).index(name), 1),
    )


# --- the replay sees what it is for ---------------------------------------------------------------


def _print_size(rows):
    sys.stderr.write("many rows\n" if rows > 120 else "few rows\n")


def _write_rows(rows):
    Path("note").write_text(str(rows), encoding="utf-8")


def _sampled(rows):
    _measurement.SAMPLERS[Noise.DISCRETE_LAPLACE](rows, 1, 1, SeededEntropy(1))


@pytest.mark.parametrize(
    ("leak", "where"), [(_print_size, "err"), (_write_rows, "files"), (_sampled, "calls")]
)
def test_replay_detects_a_planted_leak(replay, leak, where):
    plan = plan_for_mechanism("linear", "add_remove")
    first, second = (
        replay.release(plan, frame(rows), partial(leak, len(rows)))
        for rows in (PEOPLE, [*PEOPLE, *ODD["a row"]])
    )
    assert where in differences(first, second)
