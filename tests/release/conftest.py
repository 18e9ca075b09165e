"""Observations made without the kernel: numpy noise of the plan's scales on a small table of counts."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from leastnoise._accounting import ZCDP, Noise, Privacy, PureDP
from leastnoise._accuracy import promised
from leastnoise._domain import Categories, Domain, Integers, Measure
from leastnoise._estimate import Outcome
from leastnoise._fitting import fit
from leastnoise._linop import Dense, Identity, dense
from leastnoise._measurements import Block, Factor, Observation
from leastnoise._release import check_target, draft, fill_draft
from leastnoise._workload import Workload, queries

DOMAIN = Domain(
    {"sex": ["F", "M"], "age": Integers(17, 21), "Answer": Categories(["<b>a & b</b>", 'say "x"'], outside="other")},
    measures={"pay": Measure("income", 0, 500, unit="0.25")},
)


def write(release, directory, *formats):
    """A release as files, in all formats or these."""
    with draft(check_target(directory)) as place:
        fill_draft(replace(release, options=replace(release.options, formats=formats)) if formats else release, place)
        place.publish()
    return place.target


def block_matrix(domain, block):
    """The queries of a block over all cells of the domain, row weights included."""
    rows = np.ones((1, 1))
    operators = {factor.attributes[0]: dense(factor.operator) * factor.weights[:, None] for factor in block.factors}
    for name in domain.names:
        rows = np.kron(rows, operators.get(name, np.ones((1, domain.kind(name).size))))
    return rows


def product_matrix(product):
    """The queries of a product over all cells of the domain."""
    rows = np.ones((1, 1))
    operators = {name: dense(operator) for name, operator in zip(product.attributes, product.operators, strict=True)}
    for name in product.domain.names:
        rows = np.kron(rows, operators.get(name, np.ones((1, product.domain.kind(name).size))))
    return rows


def observe(plan, cells, rng, *, private=False, receipt=""):
    """What the kernel would give, with numpy's noise; ``cells`` maps a measure (None for counts) to all cells of the domain, flat."""
    values = []
    measured = plan.measured()
    for block in measured.blocks:
        rows = block_matrix(plan.domain, block)
        scale = float(block.scale) * measured.grid
        noise = (
            rng.laplace(scale=scale, size=len(rows))
            if measured.noise == Noise.DISCRETE_LAPLACE
            else rng.normal(scale=scale, size=len(rows))
        )
        weights = block.row_weights()
        exact = (rows / weights[:, None]) @ cells[block.measure] * measured.grid
        values.append(np.rint(exact + noise / weights).astype(np.int64))
    return Outcome(plan, Observation(measured, tuple(values), receipt=receipt, private=private))


def example_workload():
    """Tables of every sort: a total, marginals, prefix sums, ranges, a matrix with negative entries, sums."""
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
    # Not their sum, in which the two tables by sex would be one.
    return Workload(DOMAIN, tuple(product for part in parts for product in part))


def strategy(workload, *, totals):
    """One table a set of attributes, at uneven weights; with ``totals`` also the sum over every ordered attribute."""
    blocks = {}
    for product in workload:
        factors = []
        for name in product.attributes:
            size = workload.domain.kind(name).size
            cells = np.eye(size, dtype=np.int64)
            ordered = totals and isinstance(workload.domain.kind(name), Integers)
            factors.append(Factor((name,), Dense(np.vstack([np.ones((1, size), dtype=np.int64), cells])) if ordered else Identity(size)))
        # A row adds as much to the norm of a table of sums as to one of counts.
        largest = 1 if product.measure is None else workload.domain.measures[product.measure].largest
        block = Block(tuple(factors), Fraction(1), product.measure)
        blocks.setdefault((product.measure, product.attributes), (block, (1.0 + len(blocks) / 3) / largest))
    return list(blocks.values())


def example_plan(workload=None, privacy=None, noise=Noise.DISCRETE_LAPLACE, totals=True):
    """A fitted plan with its promise, at noise scales far from 1."""
    workload = workload or example_workload()
    privacy = privacy or (Privacy(PureDP("1/4")) if noise == Noise.DISCRETE_LAPLACE else Privacy(ZCDP("1/50"), "replace"))
    return promised(workload, fit(workload.domain, privacy, noise, strategy(workload, totals=totals)), "for tests")


def example_cells(domain=DOMAIN, seed=7):
    """A table of counts, and of sums for every measure."""
    rng = np.random.default_rng(seed)
    cells = {None: rng.poisson(30, size=math.prod(domain.shape)).astype(float)}
    for name, measure in domain.measures.items():
        cells[name] = np.round(cells[None] * rng.uniform(measure.low_units, measure.high_units, size=len(cells[None])))
    return cells


@pytest.fixture(scope="session")
def making():
    """The functions of this file."""

    class Making:
        domain = DOMAIN
        block_matrix = staticmethod(block_matrix)
        product_matrix = staticmethod(product_matrix)
        observe = staticmethod(observe)
        workload = staticmethod(example_workload)
        plan = staticmethod(example_plan)
        cells = staticmethod(example_cells)

    return Making


@pytest.fixture(scope="session")
def observation(making):
    """One observation of the example."""
    return making.observe(making.plan(), making.cells(), np.random.default_rng(11))
