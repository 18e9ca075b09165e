"""The task with mbi (Private-PGM), which leaves the noise to its user."""

import itertools
import time

from task import TABLES, VALUES, key, say

start = time.perf_counter()
# [page]
import csv
from pathlib import Path

import mbi
import numpy as np

with Path("people.csv").open(encoding="utf-8", newline="") as file:
    rows = list(csv.DictReader(file))
domain = mbi.Domain.fromdict({name: len(values) for name, values in VALUES.items()})
codes = {
    name: np.array([[str(value) for value in values].index(row[name]) for row in rows])
    for name, values in VALUES.items()
}
people, scale, rng = mbi.Dataset(codes, domain), len(TABLES) / 1.0, np.random.default_rng()
measured = []
for names in TABLES:
    counts = np.asarray(people.project(names).datavector())
    # Floating-point noise: for studies, not for publication.
    noisy = counts + rng.laplace(scale=scale, size=counts.size)
    measured.append(mbi.LinearMeasurement(noisy, names, stddev=2**0.5 * scale))
model = mbi.estimation.MirrorDescent().estimate(domain, measured)
released = {names: np.asarray(model.project(names).datavector()) for names in TABLES}
# [/page]
answers = {
    key(names): dict(
        zip(
            map(key, itertools.product(*(VALUES[name] for name in names))),
            map(float, counts),
            strict=True,
        )
    )
    for names, counts in released.items()
}
say(time.perf_counter() - start, answers)
