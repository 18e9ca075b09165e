"""Compare plans, releases and payments with results that were recorded earlier.

    python -m contracts.golden                  compare all records but the long plans (minutes)
    python -m contracts.golden plans ledger     compare some: plans, auto, long, release, ledger
    python -m contracts.golden --renew plans    write a record again

plans     total squared error and error of every table, for every strategy by name, on small
          workloads, with Laplace and Gaussian noise
auto      the same for the automatic plans of those cases of bench/auto.py that take less than two
          CPU seconds; long has the other cases
release   digests of the files of two seeded releases of the demo's survey, one planned with
          strategy "auto" and one with strategy "workload"
ledger    entries, receipts and refusals of a fixed sequence of payments

A refactoring keeps every record: errors to 1e-9, everything else exactly. On another machine, or
with other versions of NumPy and SciPy, the last digits of numerical searches may differ; then
compare a change with its parent commit on one machine. A renewed record hides the difference that
it should show, so explain each renewal in a decision (docs/decisions), or in the commit message if
the difference is small: what changed, by how much, and why.
"""

import contextlib
import hashlib
import json
import math
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

os.environ["LEASTNOISE_CACHE"] = "off"
for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(threads, "1")
ROOT = Path(__file__).parents[1]
RECORDS = Path(__file__).parent / "golden"
TOLERANCE = 1e-9  # relative difference of errors
QUICK = 2.0  # CPU seconds of a case, including the import
_SECONDS = "cpu"  # CPU seconds of planning: only their sum is compared


def _error_record(expected_error: Any) -> dict[str, Any]:
    """Return the total squared error and the RMSE of each table, with 12 digits."""
    return {
        "total": _rounded(expected_error.total_squared_error),
        "rmse": [_rounded(table.rmse) for table in expected_error.tables],
    }


def _rounded(value: float) -> float:
    """Round a number to 12 significant digits."""
    return float(f"{value:.12g}")


def _small_workloads(ln: Any) -> dict[str, Any]:
    """Return workloads on small domains, by name."""
    small = ln.Domain(
        a=ln.Coded(3), b=ln.Integers(0, 7), measures={"pay": ln.Measure("pay", 0, 9)}
    ).as_complete()
    line = ln.Domain(x=ln.Integers(0, 63)).as_complete()
    long = ln.Domain(x=ln.Integers(0, 599)).as_complete()
    plane = ln.Domain(x=ln.Integers(0, 15), y=ln.Integers(0, 11), z=ln.Coded(4)).as_complete()
    several = ln.Domain(
        **{f"a{number}": ln.Coded(size) for number, size in enumerate((2, 3, 4, 5, 6))}
    ).as_complete()
    ends = [[low * 7 % 40, low * 7 % 40 + 3 + low * 5 % 20] for low in range(17)]
    return {
        "tables": ln.marginals(small, upto=2),
        "prefix": ln.queries(small, b="prefix"),
        "mixed": ln.marginals(small, ways=1)
        + ln.queries(small, a="identity", b="all_ranges", weight=2),
        "sums": ln.marginals(small, upto=2) + ln.marginals(small, ways=1, sum="pay"),
        "line": ln.queries(line, x="prefix"),
        "ranges": ln.queries(line, x={"ranges": ends}) + ln.queries(line, x="identity"),
        "widths": ln.queries(line, x={"ranges": [[low, low + 7] for low in range(57)]}),
        "long": ln.queries(long, x="all_ranges"),
        "long ranges": ln.queries(
            long, x={"ranges": [[9 * low, 9 * high + 20] for low, high in ends]}
        ),
        "plane": ln.queries(plane, x="prefix", y="all_ranges")
        + ln.queries(plane, x="identity", z="identity", weight=3),
        "several": ln.marginals(several, ways=2),
        "several up to 3": ln.marginals(several, upto=3),
    }


def plans() -> Iterator[tuple[str, Any]]:
    """Yield the errors of every strategy on every small workload."""
    import leastnoise as ln
    from leastnoise._strategies import PLANNERS

    budgets: dict[str, Any] = {"pure": ln.PureDP("1/1000"), "gaussian": ln.ZCDP("1/2000000")}
    for shape, workload in _small_workloads(ln).items():
        for kind, budget in budgets.items():
            for name in PLANNERS:
                if shape.startswith("long") and name == "tilted":
                    # It is designed for tables, and takes half a minute for one attribute.
                    continue
                start = time.process_time()
                try:
                    expected_error = ln.plan(workload, budget, strategy=name).expected_error()
                except ln.InputError as error:
                    yield f"{shape}, {kind}, {name}", {"refused": str(error)}
                else:
                    yield (
                        f"{shape}, {kind}, {name}",
                        _error_record(expected_error)
                        | {_SECONDS: round(time.process_time() - start, 3)},
                    )


def auto(name: str) -> Any:
    """Plan one case of bench/auto.py in this process."""
    sys.path.insert(0, str(ROOT / "bench"))
    import leastnoise as ln

    cases = __import__("auto")
    kind, size, budget, _ = cases.CASES[name]
    spent = ln.PureDP("1/1000") if budget == "pure" else ln.ZCDP("1/2000000")
    # Enough seconds, so that no plan depends on how fast the machine is.
    plan = ln.plan(cases.WORKLOADS[kind](ln, size), spent, seconds=600)
    return _error_record(plan.expected_error()) | {
        "strategy": plan.strategy,
        _SECONDS: round(time.process_time(), 3),
    }


def _automatic_plans(*, long: bool) -> Iterator[tuple[str, Any]]:
    """Plan the quick or the long cases of bench/auto.py, each in its own process."""
    sys.path.insert(0, str(ROOT / "bench"))
    known = {name for part in ("auto", "long") for name in _read(part)}
    for name in __import__("auto").CASES:
        if name in known and (name in _read("long")) is not long:
            continue
        run = [sys.executable, "-m", "contracts.golden", "--case", name]
        # The command runs this file.
        result = json.loads(subprocess.run(run, check=True, capture_output=True, cwd=ROOT).stdout)  # noqa: S603
        if name in known or (result[_SECONDS] > QUICK) is long:
            yield name, result


def release() -> Iterator[tuple[str, Any]]:
    """Yield the digests of the files of two seeded releases, without the date."""
    from leastnoise._cli._demo import _SPEC, generate_survey, write_survey
    from leastnoise._cli._main import program

    with tempfile.TemporaryDirectory() as folder_name:
        folder = Path(folder_name)
        before = Path.cwd()
        write_survey(generate_survey(20_000), folder / "people.parquet")
        os.chdir(folder)
        try:
            for name in ("auto", "workload"):
                # Enough seconds, so that the plan does not depend on how fast the machine is.
                spec = _SPEC.replace('strategy = "auto"', f'strategy = "{name}"\nseconds = 600')
                (folder / f"{name}.toml").write_text(spec, encoding="utf-8")
                with contextlib.redirect_stdout(None), contextlib.redirect_stderr(None):
                    program(
                        ["release", f"{name}.toml", "--out", name, "--seed", "7"],
                        standalone_mode=False,
                    )
                for path in sorted((folder / name).rglob("*")):
                    if path.is_file():
                        yield (
                            path.relative_to(folder).as_posix(),
                            hashlib.sha256(_without_day(path.read_bytes())).hexdigest()[:16],
                        )
        finally:
            os.chdir(before)


def _without_day(content: bytes) -> bytes:
    """Replace the dates and times in the content of a file."""
    return re.sub(rb"20\d\d-\d\d-\d\d|\d{1,2}:\d\d UTC", b"(day)", content)


def ledger() -> Iterator[tuple[str, Any]]:
    """Yield the entries, receipts and refusals of a fixed sequence of payments."""
    import pandas as pd

    import leastnoise as ln
    from leastnoise._release import write_record

    domain = ln.Domain(a=ln.Coded(3), b=ln.Integers(0, 7)).as_complete()
    rows = pd.DataFrame({"a": [0, 1, 2, 2] * 5, "b": [0, 1, 6, 7] * 5})
    with tempfile.TemporaryDirectory() as folder_name:
        folder = Path(folder_name)
        accounts: dict[str, tuple[Any, list[Any]]] = {
            "pure": (ln.PureDP(1), [ln.PureDP("1/3"), ln.PureDP("1/2"), ln.PureDP("1/4")]),
            "gaussian": (ln.ZCDP("1/2"), [ln.ZCDP("1/8"), ln.PureDP("1/2"), ln.ZCDP("1/2")]),
            "approximate": (
                ln.ApproxDP(1, "1/1000000"),
                [ln.ApproxDP("1/2", "1/4000000"), ln.PureDP(1)],
            ),
        }
        for kind, (whole, budgets) in accounts.items():
            account = ln.Ledger.create(folder / f"{kind}.ledger", "people", ln.Privacy(whole))
            for number, budget in enumerate(budgets):
                try:
                    plan = ln.plan(ln.marginals(domain, upto=1), budget, strategy="workload")
                    receipt = ln.release(
                        plan, rows, ledger=account, out=folder / f"{kind}{number}"
                    ).receipt
                except ln.LeastNoiseError as error:
                    yield f"{kind}, refused {number}", str(error).replace(folder_name, "(folder)")
                else:
                    yield (
                        f"{kind}, receipt {number}",
                        _reproducible(write_record(receipt), folder_name),
                    )
            fields = (
                "number",
                "state",
                "charge",
                "cost",
                "declared",
                "plan_digest",
                "output",
                "description",
                "resumable",
                "kind",
                "share",
            )
            for entry in account.entries():
                yield (
                    f"{kind}, entry {entry.number}",
                    _reproducible({name: getattr(entry, name) for name in fields}, folder_name),
                )
            yield f"{kind}, left", str(account.left())


def _reproducible(values: Mapping[str, Any], folder: str) -> dict[str, str]:
    """Convert values to text; leave out those that are random."""
    random_names = ("id", "ledger_id", "head", "run", "reserved_on")
    return {
        name: str(value).replace(folder, "(folder)")
        for name, value in values.items()
        if name not in random_names
    }


PARTS: dict[str, Callable[[], Iterator[tuple[str, Any]]]] = {
    "plans": plans,
    "auto": lambda: _automatic_plans(long=False),
    "long": lambda: _automatic_plans(long=True),
    "release": release,
    "ledger": ledger,
}


def _read(part: str) -> dict[str, Any]:
    """Read a record; it is empty if there is none."""
    path = RECORDS / f"{part}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def _write(part: str, results: dict[str, Any]) -> None:
    """Write a record with one line per result."""
    RECORDS.mkdir(exist_ok=True)
    lines = [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in results.items()]
    (RECORDS / f"{part}.json").write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def differences(recorded: Any, computed: Any, name: str) -> Iterator[str]:
    """Yield a sentence for each difference of two records, except CPU seconds."""
    if isinstance(recorded, dict) and isinstance(computed, dict):
        for key in {**recorded, **computed}:
            if key not in computed or key not in recorded:
                yield f"{name}: {key!r} is {'gone' if key in recorded else 'new'}"
            elif key != _SECONDS:
                yield from differences(recorded[key], computed[key], f"{name}: {key}")
    elif (
        isinstance(recorded, list) and isinstance(computed, list) and len(recorded) == len(computed)
    ):
        for index, pair in enumerate(zip(recorded, computed, strict=True)):
            yield from differences(*pair, f"{name} {index}")
    elif not (recorded == computed or _nearly_equal(recorded, computed)):
        yield f"{name}: {recorded!r} was recorded, now {computed!r}"


def _nearly_equal(recorded: Any, computed: Any) -> bool:
    """Return whether both are floats that differ by at most the tolerance."""
    return (
        isinstance(recorded, float)
        and isinstance(computed, float)
        and math.isclose(recorded, computed, rel_tol=TOLERANCE)
    )


def main(arguments: list[str]) -> int:
    """Compare or renew records; return 0 if nothing differs."""
    renew = "--renew" in arguments
    parts = [part for part in arguments if not part.startswith("--")] or [
        part for part in PARTS if part != "long"
    ]
    differing = 0
    for part in parts:
        computed = dict(PARTS[part]())
        recorded = _read(part)
        sentences: list[str] = []
        if renew:
            _write(part, computed)
        else:
            sentences = list(differences(recorded, computed, part))
        differing += len(sentences)
        for sentence in sentences:
            print(sentence)
        seconds = _describe_seconds(recorded, computed)
        print(f"{part}: {len(computed)} records, {len(sentences)} differ{seconds}", flush=True)
    return min(differing, 1)


def _describe_seconds(recorded: dict[str, Any], computed: dict[str, Any]) -> str:
    """Compare the CPU seconds of all results in one sentence; empty without any."""
    seconds = _total_seconds(computed)
    if seconds:
        return f"; CPU seconds {seconds:.1f}, recorded {_total_seconds(recorded):.1f}"
    return ""


def _total_seconds(results: dict[str, Any]) -> float:
    """Return the CPU seconds of all results together."""
    return float(
        sum(value.get(_SECONDS, 0.0) for value in results.values() if isinstance(value, dict))
    )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--case"]:
        print(json.dumps(auto(sys.argv[2])))
    else:
        sys.exit(main(sys.argv[1:]))
