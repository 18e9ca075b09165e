"""The mechanism for counts that may be equal in all cells."""

import numpy as np
import pytest

from leastnoise._mechanisms import Search, mechanism_for
from leastnoise._trusted.accounting import Privacy, PureDP
from leastnoise._trusted.check import InputError
from leastnoise._trusted.kernel import SeededEntropy
from leastnoise._trusted.table import Table
from mechanisms.row import LINE, ON_LINE, SUMS
from mechanisms.running import regime, runs

EVEN = Table(LINE, {"age": np.arange(320) % 16}, {}, rows=320)


def plan_flat(workload):
    return mechanism_for("flat", workload).plan(workload, Privacy(PureDP(1)), Search("flat"))


def test_flat_refuses_sums():
    with pytest.raises(InputError, match="counts along one attribute"):
        plan_flat(SUMS)


def test_flat_table_is_answered_by_its_total():
    # Laplace noise with all of epsilon would give each cell an rmse of sqrt(2), and sums have more.
    run = runs(plan_flat(ON_LINE), EVEN)
    (product,) = ON_LINE
    errors = []
    for seed in range(40):
        outcome = run(SeededEntropy(seed))
        if regime(outcome) == "flat":
            answers = outcome.estimator().estimate(product).values
            errors.append(answers - 20 * np.arange(1, 17))
    assert len(errors) > 20
    assert np.sqrt(np.mean(np.square(errors))) < 1.5
