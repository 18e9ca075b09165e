"""The study of least budgets: correct truths, and recognition of missed targets."""

from functools import reduce

import numpy as np
import pandas as pd
import pytest

import leastnoise as ln
from experiments.targets import ROWS, draw_tables, reached_target


@pytest.mark.parametrize("seed", [1, 2, 3, 5])
def test_noiseless_release_gives_the_truth(seed):
    generator = np.random.default_rng(seed)
    domain, tables = draw_tables(generator)
    rows = pd.DataFrame(
        {name: generator.integers(0, domain.kind(name).size, ROWS) for name in domain.names}
    )
    rows["pay"] = generator.integers(0, domain.measures["pay"].high + 1, ROWS)
    plan = ln.plan(
        reduce(ln.Workload.__add__, (table.workload(domain) for table in tables)),
        ln.PureDP(16),
        strategy="identity",
    )
    release = ln.release(plan, rows, seed=seed)
    for place, requested_table in enumerate(tables):
        table = release.tables[place]
        assert np.all(
            np.abs(table.answer.reshape(-1) - requested_table.truth(rows, domain))
            <= 8 * table.noise_std.reshape(-1)
        )


@pytest.mark.parametrize(("kind", "limit"), [("margin", 19.6), ("rmse", 10)])
def test_kept_and_missed_targets_are_distinguished(kind, limit):
    errors = np.random.default_rng(1).normal(0, 10, (400, 50))
    for factor, is_met in ((1.0, True), (1.05, False)):
        reached, wanted, spread = reached_target(kind, factor * errors, limit, 0.95)
        assert (
            (reached >= wanted - 3 * spread)
            if kind == "margin"
            else (reached <= wanted + 3 * spread)
        ) is is_met
