"""What the package promised, wrote, charged and said before its parts were moved: records to compare the code with.

    python -m contracts.golden                  compares all but the long plans: some minutes
    python -m contracts.golden plans ledger     compares some: plans, auto, long, release, ledger
    python -m contracts.golden --renew plans    writes a record anew

plans     every strategy by name, on small shapes, under Laplace and Gaussian noise: total squared error, error of every table
auto      what ``auto`` plans in the cases of bench/auto.py that take under two CPU seconds; long has the others
release   digests of the files of two seeded releases of the demo's survey, by ``auto`` and by ``workload``
ledger    entries, receipts and refusals of a fixed sequence of payments

A change of form keeps every record: errors to 1e-9, the rest exactly. Another machine, or other
versions of NumPy and SciPy, may differ in the last digits of what is searched; compare a change
with its parent on one machine then. A record that is renewed hides what it was made to show. So
whoever renews one says in a decision (docs/decisions), or in the commit where it is small, what
changed, by how much and why.
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
# relative; CPU seconds, with the import
TOLERANCE = 1e-9
QUICK = 2.0
_SECONDS = "cpu"  # of what is planned: recorded to compare in all, not one by one


def _numbers(expected_error: Any) -> dict[str, Any]:
    return {
        "total": _digits(expected_error.total_squared_error),
        "rmse": [_digits(table.rmse) for table in expected_error.tables],
    }


def _digits(value: float) -> float:
    return float(f"{value:.12g}")


def _shapes(ln: Any) -> dict[str, Any]:
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
    """Every strategy by name."""
    import leastnoise as ln
    from leastnoise._strategies import PLANNERS

    budgets: dict[str, Any] = {"pure": ln.PureDP("1/1000"), "gaussian": ln.ZCDP("1/2000000")}
    for shape, workload in _shapes(ln).items():
        for kind, budget in budgets.items():
            for name in PLANNERS:
                if shape.startswith("long") and name == "tilted":
                    # tables are what it is made for; along one attribute it takes half a minute
                    continue
                start = time.process_time()
                try:
                    expected_error = ln.plan(workload, budget, strategy=name).expected_error()
                except ln.InputError as error:
                    yield f"{shape}, {kind}, {name}", {"refused": str(error)}
                else:
                    yield (
                        f"{shape}, {kind}, {name}",
                        _numbers(expected_error)
                        | {_SECONDS: round(time.process_time() - start, 3)},
                    )


def auto(name: str) -> Any:
    """One case of bench/auto.py, in this process."""
    sys.path.insert(0, str(ROOT / "bench"))
    import leastnoise as ln

    cases = __import__("auto")
    kind, size, budget, _ = cases.CASES[name]
    spent = ln.PureDP("1/1000") if budget == "pure" else ln.ZCDP("1/2000000")
    # Enough seconds, so that no plan depends on how fast the machine is.
    plan = ln.plan(cases.ASKED[kind](ln, size), spent, seconds=600)
    return _numbers(plan.expected_error()) | {
        "strategy": plan.strategy,
        _SECONDS: round(time.process_time(), 3),
    }


def _autos(*, long: bool) -> Iterator[tuple[str, Any]]:
    sys.path.insert(0, str(ROOT / "bench"))
    known = {name for part in ("auto", "long") for name in _read(part)}
    for name in __import__("auto").CASES:
        if name in known and (name in _read("long")) is not long:
            continue
        run = [sys.executable, "-m", "contracts.golden", "--case", name]
        # The command runs this file.
        made = json.loads(subprocess.run(run, check=True, capture_output=True, cwd=ROOT).stdout)  # noqa: S603
        if name in known or (made[_SECONDS] > QUICK) is long:
            yield name, made


def release() -> Iterator[tuple[str, Any]]:
    """Digests of the files of two seeded releases, with the day taken out."""
    from leastnoise._cli._demo import _SPEC, generate_survey, write_survey
    from leastnoise._cli._main import program

    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
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
    return re.sub(rb"20\d\d-\d\d-\d\d|\d{1,2}:\d\d UTC", b"(day)", content)


def ledger() -> Iterator[tuple[str, Any]]:
    """Entries, receipts and refusals of a fixed sequence of payments."""
    import pandas as pd

    import leastnoise as ln
    from leastnoise._release import write_record

    domain = ln.Domain(a=ln.Coded(3), b=ln.Integers(0, 7)).as_complete()
    rows = pd.DataFrame({"a": [0, 1, 2, 2] * 5, "b": [0, 1, 6, 7] * 5})
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
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
                    yield f"{kind}, refused {number}", str(error).replace(made, "(folder)")
                else:
                    yield f"{kind}, receipt {number}", _fixed(write_record(receipt), made)
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
                    _fixed({name: getattr(entry, name) for name in fields}, made),
                )
            yield f"{kind}, left", str(account.left())


def _fixed(values: Mapping[str, Any], folder: str) -> dict[str, str]:
    """Values as text, without what is drawn anew every time."""
    drawn = ("id", "ledger_id", "head", "run", "reserved_on")
    return {
        name: str(value).replace(folder, "(folder)")
        for name, value in values.items()
        if name not in drawn
    }


PARTS: dict[str, Callable[[], Iterator[tuple[str, Any]]]] = {
    "plans": plans,
    "auto": lambda: _autos(long=False),
    "long": lambda: _autos(long=True),
    "release": release,
    "ledger": ledger,
}


def _read(part: str) -> dict[str, Any]:
    path = RECORDS / f"{part}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def _write(part: str, made: dict[str, Any]) -> None:
    RECORDS.mkdir(exist_ok=True)
    lines = [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in made.items()]
    (RECORDS / f"{part}.json").write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def differences(recorded: Any, made: Any, name: str) -> Iterator[str]:
    """Where two records differ, as sentences; CPU seconds are not compared."""
    if isinstance(recorded, dict) and isinstance(made, dict):
        for key in {**recorded, **made}:
            if key not in made or key not in recorded:
                yield f"{name}: {key!r} is {'gone' if key in recorded else 'new'}"
            elif key != _SECONDS:
                yield from differences(recorded[key], made[key], f"{name}: {key}")
    elif isinstance(recorded, list) and isinstance(made, list) and len(recorded) == len(made):
        for place, pair in enumerate(zip(recorded, made, strict=True)):
            yield from differences(*pair, f"{name} {place}")
    elif not (recorded == made or _near(recorded, made)):
        yield f"{name}: {recorded!r} was recorded, now {made!r}"


def _near(recorded: Any, made: Any) -> bool:
    return (
        isinstance(recorded, float)
        and isinstance(made, float)
        and math.isclose(recorded, made, rel_tol=TOLERANCE)
    )


def main(arguments: list[str]) -> int:
    """Compare or renew; 0 if nothing differs."""
    renew = "--renew" in arguments
    parts = [part for part in arguments if not part.startswith("--")] or [
        part for part in PARTS if part != "long"
    ]
    differing = 0
    for part in parts:
        made = dict(PARTS[part]())
        before = _read(part)
        if renew:
            texts = []
        else:
            texts = list(differences(before, made, part))
        if renew:
            _write(part, made)
        differing += len(texts)
        print(
            "\n".join(
                [
                    *texts,
                    f"{part}: {len(made)} records, {len(texts)} differ{_seconds(before, made)}",
                ]
            ),
            flush=True,
        )
    return min(differing, 1)


def _seconds(before: dict[str, Any], made: dict[str, Any]) -> str:
    sums = [
        sum(value.get(_SECONDS, 0.0) for value in values.values() if isinstance(value, dict))
        for values in (before, made)
    ]
    if sums[1]:
        return f"; CPU seconds {sums[1]:.1f}, recorded {sums[0]:.1f}"
    return ""


if __name__ == "__main__":
    if sys.argv[1:2] == ["--case"]:
        print(json.dumps(auto(sys.argv[2])))
    else:
        sys.exit(main(sys.argv[1:]))
