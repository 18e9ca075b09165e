"""Time each step from the wheel to a report on a CSV file.

Each case starts in an empty environment. The program also prints the size of the report.

    python bench/first_report.py [--only TEXT] [--rows 20000] [--here]

The wheel and its dependencies come from the network or pip's cache, which dominates the first step.
With --here the program of the current environment is used instead. A person writes the spec between
the commands.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
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
    """Run a command and print its seconds."""
    start = time.perf_counter()
    # Only this file calls it.
    subprocess.run([str(part) for part in command], cwd=at, check=True, stdout=subprocess.DEVNULL)  # noqa: S603
    print(f"  {step:<38} {time.perf_counter() - start:6.1f} s", flush=True)


def installed(folder: Path) -> Path:
    """Install the wheel in an empty environment and return the program."""
    subprocess.run(  # noqa: S603
        [sys.executable, "-m", "pip", "wheel", "-qq", "--no-deps", "-w", folder, ROOT], check=True
    )  # noqa: RUF100, S603
    subprocess.run([sys.executable, "-m", "venv", folder / "env"], check=True)  # noqa: S603
    (wheel,) = folder.glob("*.whl")
    timed("pip install leastnoise", folder / "env/bin/pip", "install", "-qq", wheel, at=folder)
    return folder / "env/bin/leastnoise"


def main() -> None:
    """Run all steps for each case."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="", help="only cases with this text in their name")
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument(
        "--here",
        action="store_true",
        help="use the program of this environment; nothing is installed",
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if options.here:
            program = Path(sys.executable).with_name("leastnoise")
        else:
            program = installed(folder)
        for case, (sizes, workload) in CASES.items():
            if options.only not in case:
                continue
            print(case)
            at = folder / case.split()[0]
            at.mkdir()
            columns = np.random.default_rng(1).integers(0, sizes, (options.rows, len(sizes)))
            names = [f"a{number}" for number in range(len(sizes))]
            np.savetxt(at / "people.csv", columns, "%d", ",", header=",".join(names), comments="")
            domain = "".join(
                f"{attribute}.integers = [0, {size - 1}]\n"
                for attribute, size in zip(names, sizes, strict=True)
            )
            timed(
                "leastnoise init people.csv",
                program,
                "init",
                "people.csv",
                "--out",
                "draft.toml",
                at=at,
            )
            (at / "spec.toml").write_text(SPEC + domain + workload, encoding="utf-8")
            timed(
                "leastnoise release spec.toml",
                program,
                "release",
                "spec.toml",
                "--out",
                "release",
                at=at,
            )
            print(
                f"  {'report.html':<38} {(at / 'release/report.html').stat().st_size / 1e6:6.1f} MB"
            )


if __name__ == "__main__":
    main()
