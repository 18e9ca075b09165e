"""Strategies of papers, by name.

``cuboids``: greedily chosen tables from which all asked ones are added up, strategies C and C+ of Cormode et al. (arXiv 1207.6096).

``fourier``: the Fourier coefficients of the asked marginals, their strategies F and F+ (section 4), in the binary coding of the paper. An
attribute of n cells is coded on m = ceil(log2 n) bits, and its coefficients are the sums of its cells with the 2^m - 1 non-constant signs
(Walsh functions), +1 and -1. The coefficients on a set tau of attributes are the products of such signs along tau, summed over all others.
All of them have the same part in the asked tables, so they share a weight; for every set it is in closed form.

``residual_max``: as ``residual``, with the largest variance of a cell least instead of the sum (ResidualPlanner, arXiv 2305.08175).

``workload_even``: what is asked, as it is asked, all with the same noise, their strategy Q.
"""

import math
from fractions import Fraction
from functools import partial

import numpy as np

from leastnoise._accuracy import subsets
from leastnoise._check import InputError
from leastnoise._check.arrays import IntArray
from leastnoise._families import NotApplicable, apply_gram, gram_diagonal
from leastnoise._linop import Dense, Identity, Operator
from leastnoise._measurements import MOST_TABLE_CELLS, Block, Factor
from leastnoise._planner._covering import cover_errors, greedy_cover
from leastnoise._planner._residual_algebra import AttributeSet, attribute_sets, downward_closure, grouped_budgets, residual_noise_max
from leastnoise._planner._strategy import Planner, Strategy, Task, block_norm
from leastnoise._planner._tables import asked_blocks, contrasts
from leastnoise._workload import Workload

Names = tuple[str, ...]
_MOST_CELLS = 1024


def cuboids(task: Task, *, even: bool = False) -> Strategy:
    """Measure a few tables, chosen greedily so that the largest variance of an asked cell is small; the budget split in closed form."""
    # Source: Ding et al. (SIGMOD 2011), problem BMAX; the strategies C (``even``) and C+ of Cormode et al. (arXiv 1207.6096). Recovery by
    # least squares comes on top.
    workload, norm = task.workload, task.norm
    domain = workload.domain
    positions = {name: at for at, name in enumerate(domain.names)}
    blocks: list[Block] = []
    errors: list[float] = []
    for measure in workload.measures:
        targets: dict[AttributeSet, float] = {}
        for product in workload:
            if product.measure != measure:
                continue
            # A table's noise, per cell of it, in all queries about it.
            share = np.prod([gram_diagonal(operator).mean() for operator in product.operators])
            key = tuple(positions[name] for name in product.attributes)
            targets[key] = targets.get(key, 0.0) + product.importance * float(share)
        try:
            cover = greedy_cover(domain.shape, list(targets), norm=norm)
        except InputError as error:
            raise NotApplicable(str(error).rstrip(".")) from None
        for table, added in zip(cover.tables, cover_errors(domain.shape, targets, cover).tolist(), strict=True):
            names = tuple(domain.names[at] for at in table)
            block = Block(tuple(Factor((name,), Identity(domain.kind(name).size)) for name in names), Fraction(1), measure)
            if not block.rows <= MOST_TABLE_CELLS:
                raise NotApplicable(f"the table of {' x '.join(names)} has over {MOST_TABLE_CELLS} cells")
            blocks.append(block)
            errors.append(added)
    if even:
        return Strategy("cuboids_even", tuple((block, 1.0) for block in blocks))
    best = grouped_budgets(errors, [block_norm(domain, block, norm) for block in blocks], norm)
    return Strategy("cuboids", tuple(zip(blocks, best.theta.tolist(), strict=True)))


CUBOIDS = Planner(
    name="cuboids",
    propose=cuboids,
    measures="greedily chosen tables from which all asked ones are added up (Ding et al., the largest variance kept small), "
    "with the best split",
    made_for="C+",
    limits="tables of 2^28 cells",
    automatic=False,
)
CUBOIDS_EVEN = Planner(
    name="cuboids_even",
    propose=partial(cuboids, even=True),
    measures="the same tables, all with the same noise",
    made_for="C",
    limits="tables of 2^28 cells",
    automatic=False,
)


def bits_of(size: int) -> int:
    """The bits that a number of cells is coded on."""
    return (size - 1).bit_length()


def signs(size: int) -> IntArray:
    """The non-constant Walsh functions of the binary coding, on the cells that exist: shape (2^m - 1, size)."""
    common = np.arange(1, 1 << bits_of(size))[:, None] & np.arange(size)
    return np.asarray(1 - 2 * (np.bitwise_count(common).astype(np.int64) & 1))


def fourier(task: Task, *, even: bool = False) -> Strategy:
    """Measure the Fourier coefficients of the asked tables, the budget split in closed form."""
    workload, norm = task.workload, task.norm
    domain = workload.domain
    added = coefficient_errors(workload)
    sizes = {domain.kind(name).size for _, tau in added for name in tau}
    along = {size: Dense(signs(size)) for size in sizes}
    blocks, errors, norms = [], [], []
    for (measure, tau), each in added.items():
        block = Block(tuple(Factor((name,), along[domain.kind(name).size]) for name in tau), Fraction(1), measure)
        if not block.rows <= MOST_TABLE_CELLS:
            raise NotApplicable(f"the table of {' x '.join(tau)} has {block.rows} coefficients; at most {MOST_TABLE_CELLS} are allowed")
        blocks.append(block)
        errors.append(block.rows * each)
        norms.append(domain.largest_value(measure) * block.rows ** (1 / norm))
    if even:
        return Strategy("fourier_even", tuple((block, 1.0) for block in blocks))
    best = grouped_budgets(errors, norms, norm)
    return Strategy("fourier", tuple(zip(blocks, best.theta.tolist(), strict=True)))


def coefficient_errors(workload: Workload) -> dict[tuple[str | None, Names], float]:
    """What a unit of noise on a Fourier coefficient adds to the total squared error, for every measure and set of attributes."""
    known: dict[Operator, tuple[float, float]] = {}
    added: dict[tuple[str | None, Names], float] = {}
    for product in workload:
        parts = []
        for operator in product.operators:
            if not operator.size <= _MOST_CELLS:
                raise NotApplicable(f"an attribute has {operator.size} cells; coded in bits at most {_MOST_CELLS} are allowed")
            if operator not in known:
                known[operator] = _parts(operator)
            parts.append(known[operator])
        for tau in subsets(product.attributes):
            term = math.prod(each if name in tau else constant for name, (constant, each) in zip(product.attributes, parts, strict=True))
            if term > 0:
                added[product.measure, tau] = added.get((product.measure, tau), 0.0) + product.importance * term
    return added


def _parts(operator: Operator) -> tuple[float, float]:
    """What a unit of noise on the constant coefficient adds to the error of all queries along an attribute, and on one of the others."""
    # A table is 2^-m times the sum of its coefficients with their signs; the others' mean stands for each.
    ones = np.ones(operator.size)
    scale = 4.0 ** -bits_of(operator.size)
    constant = float(ones @ apply_gram(operator, ones)) * scale
    if operator.size == 1:
        return constant, 0.0
    rows = signs(operator.size).astype(float)
    return constant, float(np.einsum("ij,ji->", rows, apply_gram(operator, rows.T))) / len(rows) * scale


FOURIER = Planner(
    name="fourier",
    propose=fourier,
    measures="the Fourier coefficients of the asked tables with the best split of the budget; "
    "an attribute of n cells is coded on ceil(log2 n) bits",
    made_for="F+",
    limits="attributes of 1024 cells",
    automatic=False,
)
FOURIER_EVEN = Planner(
    name="fourier_even",
    propose=partial(fourier, even=True),
    measures="the same coefficients, all with the same noise",
    made_for="F",
    limits="attributes of 1024 cells",
    automatic=False,
)


def residual_max(task: Task) -> Strategy:
    """Measure the residual spaces so that the largest variance of all asked cells, each times its weight squared, is least."""
    workload = task.workload
    if any(product.measure is not None or not product.is_marginal for product in workload):
        raise NotApplicable("the largest variance is made least for cells of tables of counts alone; choose residual")
    domain = workload.domain
    positions = {name: at for at, name in enumerate(domain.names)}
    scales: dict[tuple[int, ...], float] = {}
    for product in workload:
        table = tuple(positions[name] for name in product.attributes)
        scales[table] = max(scales.get(table, 0.0), product.importance)
    closure = downward_closure(domain.shape, scales)
    noise, largest, bound = residual_noise_max(closure, list(scales), list(scales.values()))
    taus = attribute_sets(closure)
    kept = np.isfinite(noise) & [all(domain.shape[at] > 1 for at in tau) for tau in taus]
    blocks = contrasts(domain, [tau for tau, keep in zip(taus, kept.tolist(), strict=True) if keep], None)
    weighted = tuple(zip(blocks, (1 / np.sqrt(noise[kept])).tolist(), strict=True))
    return Strategy("residual_max", weighted, {"largest_variance_over_least": largest / bound})


RESIDUAL_MAX = Planner(
    name="residual_max",
    propose=residual_max,
    measures="as `residual`, with the largest variance of a cell (times its table's weight squared) least instead of the sum",
    made_for="marginals of counts under Gaussian noise",
    norms=(2,),
    instead="residual spaces are measured by contrasts, on which Laplace noise is not spent evenly; choose cuboids",
    automatic=False,
)


def workload_even(task: Task) -> Strategy:
    """Every product of the workload as a measured table, all with the same noise."""
    return Strategy("workload_even", tuple((block, 1.0) for block in asked_blocks(task.workload)))


WORKLOAD_EVEN = Planner(
    name="workload_even",
    propose=workload_even,
    measures="every query that is asked, all with the same noise",
    made_for="Q",
    limits="2^22 queries",
    automatic=False,
)
