"""Compare samples per CPU second of our exact noise with OpenDP's integer samplers.

Both use one thread in the same run.

    python bench/noise.py [--draws 1000000] [--reference-draws 100000] [--repeats 3]

OpenDP's cost per draw does not depend on the length of a vector, so fewer draws are enough for it.
The goal is for the ratio, not for the times. The program writes nothing to disk. Without OpenDP it
prints only our own speed.
"""

import argparse
import os
import time
from collections.abc import Callable
from functools import partial

for _threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS"):
    os.environ[_threads] = "1"

import numpy as np  # noqa: E402  # after the number of threads is set

from leastnoise._trusted.kernel._entropy import SystemEntropy  # noqa: E402
from leastnoise._trusted.kernel._noise import (  # noqa: E402
    discrete_gaussian,
    discrete_laplace,
    rounded_gaussian,
)

SCALES = [
    (1, 8),
    (3, 10),
    (1, 1),
    (3, 2),
    (3, 1),
    (10, 1),
    (1000, 1),
    (2_500_000_001, 1000),
    (2**40, 1),
]
SAMPLERS = {
    "discrete_laplace": discrete_laplace,
    "discrete_gaussian": discrete_gaussian,
    "rounded_gaussian": rounded_gaussian,
}
GOAL = 20  # times the speed of OpenDP


def cpu_seconds(run: Callable[[], object]) -> float:
    """Return the CPU seconds of one call."""
    start = time.process_time()
    run()
    return time.process_time() - start


def reference(name: str, scale: float, draws: int) -> Callable[[], object] | None:
    """Return a call that draws from OpenDP's integer sampler, or None without OpenDP."""
    try:
        import opendp.prelude as dp
    except ImportError:
        return None
    dp.enable_features("contrib")
    if name == "discrete_laplace":
        make = dp.m.make_laplace
        distance = dp.l1_distance(T="i64")
    else:
        make = dp.m.make_gaussian
        distance = dp.l2_distance(T=float)
    vectors = dp.vector_domain(dp.atom_domain(T="i64"))
    measurement = make(vectors, distance, scale=scale)
    zeros = [0] * draws
    return lambda: measurement(zeros)


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--draws", type=int, default=1_000_000, help="length of our vectors")
    parser.add_argument(
        "--reference-draws", type=int, default=100_000, help="length of OpenDP's vectors"
    )
    parser.add_argument(
        "--repeats", type=int, default=3, help="interleaved runs; the quickest one counts"
    )
    options = parser.parse_args()
    entropy = SystemEntropy()
    mixed = (
        np.array([p for p, _ in SCALES], dtype=np.int64),
        np.array([q for _, q in SCALES], dtype=np.int64),
    )
    print(f"{'sampler':18} {'scale':>16} {'ours M/s':>9} {'OpenDP M/s':>11} {'ratio':>7}")
    smallest_ratios: dict[str, float] = {}
    for name, sampler in SAMPLERS.items():
        for p, q in SCALES:
            draw_reference = reference(name, p / q, options.reference_draws)
            ours_seconds = []
            reference_seconds = []
            for _ in range(options.repeats):
                ours_seconds.append(cpu_seconds(partial(sampler, p, q, options.draws, entropy)))
                if draw_reference:
                    reference_seconds.append(cpu_seconds(draw_reference))
            speed = options.draws / min(ours_seconds) / 1e6
            label = f"{p}/{q}" if q > 1 else f"{p}"
            if not draw_reference:
                print(f"{name:18} {label:>16} {speed:9.2f} {'-':>11} {'-':>7}")
                continue
            reference_speed = options.reference_draws / min(reference_seconds) / 1e6
            ratio = speed / reference_speed
            smallest_ratios[name] = min(smallest_ratios.get(name, np.inf), ratio)
            print(f"{name:18} {label:>16} {speed:9.2f} {reference_speed:11.4f} {ratio:7.0f}")
        numerators, denominators = (np.resize(part, options.draws) for part in mixed)
        seconds = min(
            cpu_seconds(partial(sampler, numerators, denominators, options.draws, entropy))
            for _ in range(options.repeats)
        )
        print(f"{name:18} {'one scale a draw':>16} {options.draws / seconds / 1e6:9.2f}")
    for name, ratio in smallest_ratios.items():
        missed = "" if ratio >= GOAL else ": MISSED"
        print(f"{name}: at least {ratio:.0f} times OpenDP (goal {GOAL}){missed}")


if __name__ == "__main__":
    main()
