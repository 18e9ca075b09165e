"""Many simulations of one plan in one draw, and their errors, for the tests that compare errors with what was promised."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import numpy as np

from accuracy.plans import dense_product, dense_strategy
from leastnoise._estimate import Estimate
from leastnoise._kernel import SeededEntropy, UnpaidSeries, _measure, simulate
from leastnoise._kernel._measure import verify
from leastnoise._measurements import Measurements, Observation
from leastnoise._mechanisms import mechanism_of, terms_of
from leastnoise._plan import Plan
from leastnoise._release import Options, Release, build
from leastnoise._session._finish import read_table
from leastnoise._table import Table
from leastnoise._workload import Workload


class _Listed(list[np.ndarray]):
    """What is set at any place, in the order in which it was set."""

    def __setitem__(self, place: object, value: np.ndarray) -> None:
        self.append(value)


def simulations(measurements: Measurements, table: Table, count: int, seed: int) -> list[Observation]:
    """Independent observations as `simulate` makes them: noise is added to the same answers again and again.

    Plan and table are checked, the table is counted, and the scales are computed once.
    """
    verify(measurements, table)
    blocks = measurements.blocks
    exact = sorted(_measure.exact_answers(measurements, table), key=itemgetter(0))
    values = _Listed()
    _measure._add_noise(measurements, exact * count, _measure._kinds(measurements), values, SeededEntropy(seed))
    return [
        Observation(measurements, tuple(values[start : start + len(blocks)]), "", private=False)
        for start in range(0, len(values), len(blocks))
    ]


def releases(plan: Plan, rows: Any, seeds: Iterable[int], options: Options | None = None) -> Iterator[Release]:
    """What `release` makes of each seed: the plan is checked, and the rows are read and encoded, once."""
    run, terms, table = mechanism_of(plan).ready(plan), terms_of(plan), read_table(plan, rows)
    for seed in seeds:
        yield build(run(UnpaidSeries(terms, table, SeededEntropy(seed))), options or Options())


def numbers(observation: Observation, measure: str | None) -> np.ndarray:
    """All values of a measure, in rows or units."""
    made = observation.measurements
    found = [value for block, value in zip(made.blocks, observation.values, strict=True) if block.measure == measure]
    return np.concatenate(found) / made.grid


@dataclass(frozen=True)
class Realised:
    """What least squares make of a plan: total squared errors weighted by importance, of every simulation and expected exactly."""

    errors: np.ndarray
    expected: float

    @property
    def spread(self) -> float:
        """Standard error of the mean of the simulations."""
        return float(np.std(self.errors) / np.sqrt(len(self.errors)))


def realised(
    workload: Workload, made: Measurements, table: Table, cells: Mapping[str | None, np.ndarray], count: int, seed: int = 0
) -> Realised:
    """Simulate a plan, and estimate by explicit matrices, after a look that the estimates of the package are the same.

    Args:
        workload: what is asked, of a small domain.
        made: the plan's measurements.
        table: the rows.
        cells: by hand, what is in each cell: rows, and units of every measure.
        count: of simulations.
        seed: of the noise.
    """
    first, runs = Estimate(simulate(made, table, SeededEntropy(seed))), simulations(made, table, count, seed + 1)
    looked = [first, first.like(runs[0])]
    values, solved = {}, {}
    for measure in workload.measures:
        rows, variances = dense_strategy(made, measure)
        spread = np.sqrt(variances)
        solved[measure] = np.linalg.pinv(rows / spread[:, None], rcond=1e-12) / spread, spread
        values[measure] = np.stack([numbers(run, measure) for run in runs], axis=1)
    errors, expected = np.zeros(count), 0.0
    for product in workload:
        measure, asked, (inverse, spread) = product.measure, dense_product(product), solved[product.measure]
        estimator, truth = asked @ inverse, asked @ cells[measure].reshape(-1)
        for one in looked:
            dense_values = estimator @ numbers(one.observation, measure)
            np.testing.assert_allclose(one.values(product).reshape(-1), dense_values, rtol=1e-6, atol=1e-6)
        errors += float(product.importance) * ((estimator @ values[measure] - truth[:, None]) ** 2).sum(axis=0)
        expected += float(product.importance) * float(((estimator * spread) ** 2).sum())
    return Realised(errors, expected)
