"""Strategies from papers, which are used only if the user names them.

``cuboids`` measures greedily chosen tables from which all requested tables can be summed.
``cuboids_even`` and ``cuboids`` are the strategies C and C+ of Cormode et al. (arXiv 1207.6096).

``fourier`` measures the Fourier coefficients of the requested marginals. ``fourier`` uses the
binary coding of the same paper (its strategies F and F+, section 4). An attribute of n cells is
coded on m = ceil(log2 n) bits. The coefficients of the attribute are the sums of its cells
multiplied by the 2^m
- 1 non-constant sign patterns (Walsh functions) of +1 and -1. For a set tau of attributes, each
count is multiplied by a product of such signs along tau. The coefficients on tau are the sums of
the results over all cells. All coefficients on the same set tau contribute equally to the requested
tables, so they have a common weight. The best value of this weight has a closed form for every set.

``residual_max`` measures the same spaces as ``residual``. ``residual_max`` minimises the largest
variance of a cell instead of the sum of variances (ResidualPlanner, arXiv 2305.08175).
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial

import numpy as np

from leastnoise._error import subsets
from leastnoise._families import NotApplicable, apply_gram, dual_ascent, gram_diagonal
from leastnoise._plan import PlanDetails
from leastnoise._strategies._covering import cover_errors, greedy_cover
from leastnoise._strategies._planning_problem import Planner, PlanningProblem, Strategy, block_norm
from leastnoise._strategies._residual_algebra import (
    AttributeSet,
    DownwardClosure,
    attribute_sets,
    dimensions,
    downward_closure,
    grouped_budgets,
    incidence,
    table_sizes,
)
from leastnoise._strategies._table_weights import Names, check_table_size, contrasts, factor_along
from leastnoise._trusted.check import InputError
from leastnoise._trusted.check.arrays import FloatArray, IntArray
from leastnoise._trusted.linop import Dense, Operator
from leastnoise._trusted.measurements import MOST_TABLE_CELLS, Block, Factor
from leastnoise._workload import Workload

_MOST_CELLS = 1024  # maximum number of cells of an attribute that is coded in bits
# The relative gap of the largest variance over its bound.
_RELATIVE_GAP = 1e-6
_MOST_ASCENT_STEPS = 5000  # maximum number of steps of the dual ascent


def cuboids(problem: PlanningProblem, *, has_equal_noise: bool = False) -> Strategy:
    """Return greedily chosen tables; a closed form splits the budget.

    The tables are chosen for a small maximum variance of requested cells.

    Source: Ding et al. (SIGMOD 2011), problem BMAX; the strategies C (for ``has_equal_noise``) and
        C+ of Cormode et al. (arXiv 1207.6096), here with recovery by least squares.
    """
    workload = problem.workload
    norm = problem.norm
    domain = problem.workload.domain
    positions = {name: at for at, name in enumerate(domain.names)}
    blocks: list[Block] = []
    errors: list[float] = []
    for measure in workload.measures:
        targets: dict[AttributeSet, float] = {}
        for product in workload.of(measure):
            # The squared error that unit noise on each cell of the table adds to the queries
            # answered from it, divided by the table's number of cells.
            share = np.prod([gram_diagonal(operator).mean() for operator in product.operators])
            key = tuple(positions[name] for name in product.attributes)
            targets[key] = targets.get(key, 0.0) + product.importance * float(share)
        try:
            cover = greedy_cover(domain.shape, list(targets), norm=norm)
        except InputError as error:
            raise NotApplicable(str(error).rstrip(".")) from None
        for table in cover.tables:
            factors = (factor_along(domain, domain.names[at], {}) for at in table)
            blocks.append(check_table_size(Block(tuple(factors), Fraction(1), measure)))
        errors += cover_errors(domain.shape, targets, cover).tolist()
    return _split_budget(
        "cuboids",
        blocks,
        errors,
        [block_norm(domain, block, norm) for block in blocks],
        norm,
        has_equal_noise=has_equal_noise,
    )


def _split_budget(
    strategy_name: str,
    blocks: Sequence[Block],
    errors: Sequence[float],
    column_norms: Sequence[float],
    norm: int,
    *,
    has_equal_noise: bool,
) -> Strategy:
    """Return blocks with the budget split that is best without least squares.

    The answers are still recovered by least squares, although the split does not account for it.
    With ``has_equal_noise``, all tables have equal noise.
    """
    if has_equal_noise:
        weights = [1.0] * len(blocks)
    else:
        weights = grouped_budgets(errors, column_norms, norm).theta.tolist()
    return Strategy(
        f"{strategy_name}_even" if has_equal_noise else strategy_name,
        tuple(zip(blocks, weights, strict=True)),
    )


CUBOIDS = Planner(
    name="cuboids",
    propose=cuboids,
    measures="greedily chosen tables whose sums give all tables of the workload, each with the "
    "best share of the budget",
    made_for="a small largest variance",
    limits="tables of 2^28 cells",
    paper="Ding et al., SIGMOD 2011; C+ in Cormode et al., arXiv 1207.6096",
    automatic=False,
)
CUBOIDS_EVEN = replace(
    CUBOIDS,
    name="cuboids_even",
    propose=partial(cuboids, has_equal_noise=True),
    measures="the same tables, all with the same noise",
    paper="C in Cormode et al., arXiv 1207.6096",
)


def bits_of(size: int) -> int:
    """Return the number of bits in the binary code for ``size`` cells."""
    return (size - 1).bit_length()


def walsh_functions(size: int) -> IntArray:
    """Return the non-constant Walsh functions on cells, (2^m - 1, size).

    Each function is evaluated only at the cells that exist.
    """
    common = np.arange(1, 1 << bits_of(size))[:, None] & np.arange(size)
    return np.asarray(1 - 2 * (np.bitwise_count(common).astype(np.int64) & 1))


def fourier(problem: PlanningProblem, *, has_equal_noise: bool = False) -> Strategy:
    """Return a strategy that measures Fourier coefficients of requested tables.

    A closed form splits the budget.
    """
    workload = problem.workload
    norm = problem.norm
    domain = workload.domain
    added = coefficient_errors(workload)
    sizes: set[int] = set()
    for _, tau in added:
        sizes.update(domain.kind(name).size for name in tau)
    along = {size: Dense(walsh_functions(size)) for size in sizes}
    blocks = []
    errors = []
    norms = []
    for (measure, tau), each in added.items():
        block = Block(
            tuple(Factor((name,), along[domain.kind(name).size]) for name in tau),
            Fraction(1),
            measure,
        )
        if block.rows > MOST_TABLE_CELLS:
            raise NotApplicable(
                f"the table of {' x '.join(tau)} has {block.rows} coefficients; at most "
                f"{MOST_TABLE_CELLS} are allowed"
            )
        blocks.append(block)
        errors.append(block.rows * each)
        norms.append(domain.largest_value(measure) * block.rows ** (1 / norm))
    return _split_budget("fourier", blocks, errors, norms, norm, has_equal_noise=has_equal_noise)


def coefficient_errors(workload: Workload) -> dict[tuple[str | None, Names], float]:
    """Return the squared error from unit variance, by Fourier coefficients.

    The keys are pairs of a measure and a set of attributes.
    """
    distinct_operators = dict.fromkeys(operator for _, _, operator in workload.along)
    parts_by_operator = {
        operator: _coefficient_noise_errors(operator) for operator in distinct_operators
    }
    added: dict[tuple[str | None, Names], float] = {}
    for product in workload:
        parts = {
            name: parts_by_operator[operator]
            for name, operator in zip(product.attributes, product.operators, strict=True)
        }
        for tau in subsets(product.attributes):
            term = math.prod(
                each if name in tau else constant for name, (constant, each) in parts.items()
            )
            if term > 0:
                added[product.measure, tau] = (
                    added.get((product.measure, tau), 0.0) + product.importance * term
                )
    return added


def _coefficient_noise_errors(operator: Operator) -> tuple[float, float]:
    """Return squared errors from unit noise in constant and other coefficients.

    The first error is for the constant coefficient along an attribute, and the second is the mean
    over all other coefficients. A table is 2^-m times the sum of its coefficients with their signs.
    """
    if operator.size > _MOST_CELLS:
        raise NotApplicable(
            f"an attribute has {operator.size} cells, but an attribute that is coded in bits may "
            f"have at most {_MOST_CELLS}"
        )
    ones = np.ones(operator.size)
    scale = 4.0 ** -bits_of(operator.size)
    constant = float(ones @ apply_gram(operator, ones)) * scale
    rows = walsh_functions(operator.size).astype(float)
    return constant, float(np.einsum("ij,ji->", rows, apply_gram(operator, rows.T))) / max(
        1, len(rows)
    ) * scale


FOURIER = Planner(
    name="fourier",
    propose=fourier,
    measures="the Fourier coefficients of the workload's tables, each with the best share of the "
    "budget; an attribute of n cells is coded in ceil(log2 n) bits",
    made_for="marginals",
    limits="attributes of 1024 cells",
    paper="F+ in Cormode et al., arXiv 1207.6096",
    automatic=False,
)
FOURIER_EVEN = replace(
    FOURIER,
    name="fourier_even",
    propose=partial(fourier, has_equal_noise=True),
    measures="the same coefficients, all with the same noise",
    paper="F in Cormode et al., arXiv 1207.6096",
)


def residual_max(problem: PlanningProblem) -> Strategy:
    """Return residual spaces with the least maximum variance of a cell.

    The variance of a requested cell is multiplied by its squared weight.
    """
    workload = problem.workload
    domain = problem.workload.domain
    if any(product.measure is not None or not product.adds_up for product in workload):
        raise NotApplicable(
            "the largest variance is minimised only for cells of tables of counts; choose residual"
        )
    positions = {name: at for at, name in enumerate(domain.names)}
    scales: dict[AttributeSet, float] = {}
    for product in workload:
        table = tuple(positions[name] for name in product.attributes)
        scales[table] = max(scales.get(table, 0.0), product.importance)
    closure = downward_closure(domain.shape, scales)
    noise, largest, bound = residual_noise_max(closure, list(scales), list(scales.values()))
    taus = attribute_sets(closure)
    measured = np.isfinite(noise) & [all(domain.shape[at] > 1 for at in tau) for tau in taus]
    blocks = contrasts(
        domain, [tau for tau, keep in zip(taus, measured.tolist(), strict=True) if keep], None
    )
    weighted = tuple(zip(blocks, (1 / np.sqrt(noise[measured])).tolist(), strict=True))
    return Strategy(
        "residual_max", weighted, PlanDetails(largest_variance_over_least=largest / bound)
    )


def residual_noise_max(
    closure: DownwardClosure, sets: Sequence[AttributeSet], scales: Sequence[float]
) -> tuple[FloatArray, float, float]:
    """Return noise variances with the least maximum, this maximum, and a bound.

    The maximum is over the variances of cells of the tables ``sets``. The bound is a lower bound on
    this maximum.

    The dual over convex combinations of the cell variances is concave. The gradient of the dual is
    the vector of variances at the noise that is optimal for the combination (ResidualPlanner). The
    result is for Gaussian budgets at privacy cost 1.
    """
    # `incidence` already includes 1 / size, and a cell variance needs 1 / size^2.
    matrix = incidence(closure, sets)
    sizes = table_sizes(closure.shape, sets)
    per_cell = np.asarray(scales, dtype=np.float64) / sizes
    dims = dimensions(closure)
    bounds = [0.0]

    def step(shares: FloatArray) -> tuple[FloatArray, float, FloatArray]:
        """Return scaled cell variances, dual value and noise variances."""
        c = dims * np.asarray(matrix @ (shares * per_cell))
        total = float(np.sqrt(c * dims).sum())
        bounds.append(total**2)
        # This is 1 / lambda.
        inverse = np.sqrt(np.divide(dims, c, out=np.full(len(c), np.inf), where=c > 0)) * total
        variances = np.asarray(matrix.T @ (np.where(c > 0, inverse, 0.0) * dims)) * per_cell
        return variances / total**2, total**2, inverse

    over, _, value, inverse = dual_ascent(
        step, np.full(len(sets), 1 / len(sets)), _RELATIVE_GAP, _MOST_ASCENT_STEPS
    )
    return inverse / table_sizes(closure.shape, attribute_sets(closure)), over * value, max(bounds)


RESIDUAL_MAX = Planner(
    name="residual_max",
    propose=residual_max,
    measures="the contrasts of `residual`, with the least maximum variance of a cell (times its "
    "table's weight squared) instead of the least sum",
    made_for="marginals of counts under Gaussian noise",
    norms=(2,),
    advice_for_other_noise=(
        "residual spaces are measured by contrasts, on which Laplace noise is not spent evenly;"
        " choose cuboids"
    ),
    paper="arXiv 2305.08175",
    automatic=False,
)
