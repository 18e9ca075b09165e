"""Many simulations and releases of one plan in one draw."""

from operator import itemgetter

import numpy as np

from behind_the_wall import verified_cost
from leastnoise._mechanisms import mechanism_of, release_contract
from leastnoise._release import Options, build_release
from leastnoise._session._release_job import read_table
from leastnoise._trusted.kernel import SeededEntropy, UnpaidSeries, _measurement
from leastnoise._trusted.measurements import Observation


class _Listed(list[np.ndarray]):
    """What is set at any place, in the order in which it was set."""

    def __setitem__(self, place, value):
        self.append(value)


def simulations(measurements, table, count, seed):
    """Return observations as `simulate` makes them, with answers computed only once.

    Plan and table are checked, the table is counted, and the scales are computed once.
    """
    verified_cost(measurements, table)
    blocks = measurements.blocks
    if measurements.k_norm_groups():  # whose noise is not drawn row by row
        entropy = SeededEntropy(seed)
        drawn = (_measurement.draw_answers(measurements, table, entropy) for _ in range(count))
        return [Observation(measurements, each, "", private=False) for each in drawn]
    exact = sorted(_measurement.exact_answers(measurements, table), key=itemgetter(0))
    values = _Listed()
    _measurement._add_noise(
        measurements,
        exact * count,
        _measurement._operator_groups(measurements),
        values,
        SeededEntropy(seed),
    )
    return [
        Observation(measurements, tuple(values[start : start + len(blocks)]), "", private=False)
        for start in range(0, len(values), len(blocks))
    ]


def exact_answers(measurements, table):
    """Return the answers of each block without noise, as flat arrays."""
    answers = dict(_measurement.exact_answers(measurements, table))
    return [answers[at].ravel() for at in range(len(measurements.blocks))]


def releases(plan, rows, seeds, options=None):
    """Yield a release for each seed, after one check of the plan and one reading of rows."""
    run = mechanism_of(plan).prepare(plan)
    contract = release_contract(plan)
    table = read_table(plan, rows)
    for seed in seeds:
        yield build_release(
            run(UnpaidSeries(contract, table, SeededEntropy(seed))), options or Options()
        )
