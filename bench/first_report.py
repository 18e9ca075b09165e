"""From the wheel to a report on a CSV file: seconds of each step in an empty environment, and the size of the report; then of larger ones.

    python bench/first_report.py

The wheel and what it needs come from the network or pip's cache, which rules the first step. A person writes the spec between the commands.
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

ROOT, ROWS = Path(__file__).resolve().parents[1], 20_000
SPEC = """[source]
path = "people.csv"
[privacy]
epsilon = 1
[domain]
"""
CASES = {
    "3 tables": ((2, 5, 80), "[[workload]]\nmarginals = { ways = 2 }\n"),
    "105 tables, 10^4 cells": ((10,) * 15, "[[workload]]\nmarginals = { ways = 2 }\n"),
    "120 tables, 1.2 x 10^5 cells": ((10,) * 10, "[[workload]]\nmarginals = { ways = 3 }\n"),
    "1,035 tables": ((4,) * 46, "[[workload]]\nmarginals = { ways = 2 }\n"),
}


def timed(step: str, *command: object, at: Path) -> None:
    """Run a command and say how long it took."""
    start = time.perf_counter()
    subprocess.run([str(part) for part in command], cwd=at, check=True, stdout=subprocess.DEVNULL)  # noqa: S603 - commands of this file
    print(f"  {step:<38} {time.perf_counter() - start:6.1f} s", flush=True)


def main() -> None:
    """All steps, for each of the cases."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        subprocess.run([sys.executable, "-m", "pip", "wheel", "-qq", "--no-deps", "-w", folder, ROOT], check=True)  # noqa: S603
        subprocess.run([sys.executable, "-m", "venv", folder / "env"], check=True)  # noqa: S603
        (wheel,) = folder.glob("*.whl")
        timed("pip install leastnoise", folder / "env/bin/pip", "install", "-qq", wheel, at=folder)
        for case, (sizes, asked) in CASES.items():
            print(case)
            at = folder / case.split()[0]
            at.mkdir()
            columns = np.random.default_rng(1).integers(0, sizes, (ROWS, len(sizes)))
            names = [f"a{place}" for place in range(len(sizes))]
            np.savetxt(at / "people.csv", columns, "%d", ",", header=",".join(names), comments="")
            domain = "".join(f"{one}.integers = [0, {size - 1}]\n" for one, size in zip(names, sizes, strict=True))
            timed("leastnoise init people.csv", folder / "env/bin/leastnoise", "init", "people.csv", "--out", "draft.toml", at=at)
            (at / "spec.toml").write_text(SPEC + domain + asked, encoding="utf-8")
            timed("leastnoise release spec.toml", folder / "env/bin/leastnoise", "release", "spec.toml", "--out", "release", at=at)
            print(f"  {'report.html':<38} {(at / 'release/report.html').stat().st_size / 1e6:6.1f} MB")


if __name__ == "__main__":
    main()
