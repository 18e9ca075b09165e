"""Example releases of a small table of counts, with noise drawn by numpy."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from leastnoise._domain import Categories, Domain, Integers, Measure
from leastnoise._error import block_rows, evaluate_plan
from leastnoise._estimation import Outcome
from leastnoise._fitting import fit_noise_scales
from leastnoise._publication import check_target, fill_draft, open_draft
from leastnoise._release import Options, build_release
from leastnoise._trusted.accounting import ZCDP, Noise, Privacy, PureDP
from leastnoise._trusted.linop import Dense, Identity
from leastnoise._trusted.measurements import Block, Factor, Observation
from leastnoise._workload import Workload, queries

DOMAIN = Domain(
    {
        "sex": ["F", "M"],
        "age": Integers(17, 21),
        "Answer": Categories(["<b>a & b</b>", 'say "x"'], outside="other"),
    },
    measures={"pay": Measure("income", 0, 500, unit="0.25")},
).as_complete()


def write(release, directory, *formats):
    """Write the files of a release, in its formats or in these, and return their directory."""
    if formats:
        release = replace(release, options=replace(release.options, formats=formats))
    with open_draft(check_target(directory)) as draft:
        fill_draft(release, draft)
        draft.publish()
    return draft.target


def observe(plan, cells, seed):
    """Return an observation with numpy's noise of the cells of each measure (None: counts)."""
    values = []
    measured = plan.measured()
    random = np.random.default_rng(seed)
    draw = random.laplace if measured.noise == Noise.DISCRETE_LAPLACE else random.normal
    for block in measured.blocks:
        noise = draw(scale=float(block.scale) * measured.grid, size=block.rows)
        rows = block_rows(plan.domain, plan.domain.names, block)
        exact = rows @ cells[block.measure] * measured.grid
        values.append(np.rint(exact + noise).astype(np.int64))
    return Outcome(plan, Observation(measured, tuple(values), receipt="", private=False))


def example_workload():
    """Return a workload of a total, marginals, prefix sums, ranges, a matrix and sums."""
    parts = [
        queries(DOMAIN),
        queries(DOMAIN, sex="identity"),
        queries(DOMAIN, sex="identity", Answer="identity", weight=3),
        queries(DOMAIN, age="prefix", weight="1/2"),
        queries(DOMAIN, sex="identity", age="prefix"),
        queries(DOMAIN, age={"ranges": [[17, 18], [18, 21]]}),
        queries(DOMAIN, sex={"matrix": [[1, -1]]}),
        queries(DOMAIN, sex="identity", sum="pay"),
        queries(DOMAIN, sex="identity"),
    ]
    # The sum of these workloads would merge the two tables by sex.
    return Workload(DOMAIN, tuple(product for part in parts for product in part))


def example_plan(workload=None, privacy=None, noise=Noise.DISCRETE_LAPLACE, totals=True):
    """Return a plan with a table for every attribute set, with scales far from 1.

    With ``totals`` it also measures the sum over every ordered attribute.
    """
    workload = workload or example_workload()
    domain = workload.domain
    blocks = {}
    for product in workload:
        factors = []
        for name in product.attributes:
            size = domain.kind(name).size
            queries_of_factor = Identity(size)
            if totals and isinstance(domain.kind(name), Integers):
                total_and_cells = np.vstack([np.ones(size), np.eye(size)]).astype(int)
                queries_of_factor = Dense(total_and_cells)
            factors.append(Factor((name,), queries_of_factor))
        # A row adds as much to the norm of a table of sums as to the norm of a table of counts.
        largest = 1 if product.measure is None else domain.measures[product.measure].largest
        block = Block(tuple(factors), Fraction(1), product.measure)
        weight = (1.0 + len(blocks) / 3) / largest
        blocks.setdefault((product.measure, product.attributes), (block, weight))
    if privacy is None and noise == Noise.DISCRETE_LAPLACE:
        privacy = Privacy(PureDP("1/4"))
    elif privacy is None:
        privacy = Privacy(ZCDP("1/50"), "replace")
    measured = fit_noise_scales(domain, privacy, noise, list(blocks.values()))
    return evaluate_plan(workload, measured, "for tests")


def example_cells(domain=DOMAIN, seed=7):
    """Return the flat table of counts (None), and of sums for every measure."""
    rng = np.random.default_rng(seed)
    counts = rng.poisson(30, size=math.prod(domain.shape)).astype(float)
    cells = {None: counts}
    for name, measure in domain.measures.items():
        means = rng.uniform(measure.low_units, measure.high_units, size=len(counts))
        cells[name] = np.round(counts * means)
    return cells


def example_release(plan=None, cells=None, seed=0, options=None):
    """Return a release of a plan, by default of the example's plan and cells."""
    plan = plan or example_plan()
    cells = cells or example_cells(plan.domain)
    return build_release(observe(plan, cells, seed), options or Options())


@pytest.fixture(scope="session")
def observation():
    """Return an observation of the example."""
    return observe(example_plan(), example_cells(), 11)


@pytest.fixture(scope="session")
def release(observation):
    """Return the release of the observation."""
    return build_release(observation)
