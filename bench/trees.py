"""Places in levels: what `auto` and named strategies promise for counts of places, groups of places and all, by sex and by sex and age.

    python bench/trees.py [--places 4096 65536] [--strategies auto level_tree] [--seconds 20]

Each plan is made in a process of its own on one thread. The total squared error is that at privacy cost 1 (rho 1/2, or epsilon 1), beside
the least known: for Gaussian noise the singular value bound in closed form, for Laplace noise the best weights of the fifteen tables of
level and subset.
"""

import argparse
import os
import resource
import subprocess
import sys
import time
from typing import Any

os.environ["LEASTNOISE_CACHE"] = "off"
LEAST: dict[tuple[str, int], float] = {("rho", 2**12): 375_933, ("rho", 2**16): 6_043_957, ("rho", 2**20): 96_379_350}
LEAST |= {("epsilon", 2**12): 2.287e6, ("epsilon", 2**16): 38.26e6, ("epsilon", 2**20): 601.6e6}


def plan(places: int, budget: str, strategy: str, seconds: float) -> str:
    """A row of the table: the workload of places in groups of 16, 256 and 4,096, by nothing, sex, and sex and age."""
    import leastnoise as ln

    widths = [width for width in (16, 256, 4096) if width < places]
    place = ln.Integers(0, places - 1, levels={f"groups of {width}": {"width": width} for width in widths})
    domain = ln.Domain(place=place, sex=ln.Coded(2), age=ln.Coded(18))
    workload: Any = None
    for names in ([], ["sex"], ["sex", "age"]):
        others = dict.fromkeys(names, "identity")
        alone = ln.queries(domain, place="total", **others)
        levels = [
            ln.queries(domain, place=level, **others) for level in ("identity", *(ln.level(f"groups of {width}") for width in widths))
        ]
        workload = sum(levels, alone) if workload is None else sum(levels, workload + alone)
    privacy = ln.Privacy(ln.ZCDP("1/2") if budget == "rho" else ln.PureDP(1))
    start = time.process_time()
    found = ln.plan(workload, privacy, strategy=strategy, seconds=seconds)
    taken, least = time.process_time() - start, LEAST.get((budget, places))
    error = found.expected_error().total_squared_error
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    ratio = f"{error / least:.3f}" if least else ""
    return (
        f"| {places:,} | {budget} | `{found.strategy}` | {error:,.0f} | {ratio} | {found.lower_bound():,.0f} | {taken:.1f} | {memory:.0f} |"
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--places", type=int, nargs="+", default=[2**12, 2**16, 2**20])
    parser.add_argument("--strategies", nargs="+", default=["auto"])
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--row", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.row:
        print(plan(given.places[0], given.row[0], given.row[1], given.seconds))
        return
    print("| places | budget | strategy | total squared error | over the least known | lower bound | CPU s | MiB |")
    print("|--:|---|---|--:|--:|--:|--:|--:|")
    for places in given.places:
        for budget in ("rho", "epsilon"):
            for strategy in given.strategies:
                row = ["--places", str(places), "--row", budget, strategy, "--seconds", str(given.seconds)]
                threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
                subprocess.run([sys.executable, __file__, *row], env={**os.environ, **threads}, check=False)  # noqa: S603


if __name__ == "__main__":
    main()
