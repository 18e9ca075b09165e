"""The Fourier coefficients of the asked marginals, in the binary coding of the paper: whole numbers +1 and -1, any size of attribute.

An attribute of n cells is coded on m = ceil(log2 n) bits, and its coefficients are the sums of its cells with the 2^m - 1 non-constant
signs (Walsh functions). The coefficients on a set tau of attributes are the products of such signs along tau, summed over all others. All
of them have the same part in the asked tables, so they share a weight; for every set it is in closed form.

Source: the strategies F and F+ of Cormode et al. (arXiv 1207.6096), section 4.
"""

import math
from fractions import Fraction
from functools import partial

import numpy as np

from leastnoise._accuracy import apply_gram, subsets
from leastnoise._check.arrays import IntArray
from leastnoise._linop import Dense, Operator
from leastnoise._measurements import MOST_TABLE_CELLS, Block, Factor
from leastnoise._planner._strategy import NotApplicable, Planner, Strategy, Task
from leastnoise._planner.tables._marginal_weights import grouped_budgets
from leastnoise._workload import Workload

Names = tuple[str, ...]
_MOST_CELLS = 1024


def bits_of(size: int) -> int:
    """The bits that a number of cells is coded on."""
    return (size - 1).bit_length()


def signs(size: int) -> IntArray:
    """The non-constant Walsh functions of the binary coding, on the cells that exist: shape (2^m - 1, size)."""
    common = np.arange(1, 1 << bits_of(size))[:, None] & np.arange(size)
    return np.asarray(1 - 2 * (np.bitwise_count(common).astype(np.int64) & 1))


def fourier(task: Task, *, even: bool = False) -> Strategy:
    """Measure the Fourier coefficients of the asked tables, the budget split in closed form.

    Source: the strategies F (``even``) and F+ of Cormode et al. (arXiv 1207.6096); recovery by least squares comes on top.
    """
    workload, norm = task.workload, task.norm
    domain = workload.domain
    added = coefficient_errors(workload)
    sizes = {domain.kind(one).size for _, tau in added for one in tau}
    along = {size: Dense(signs(size)) for size in sizes}
    blocks, errors, norms = [], [], []
    for (measure, tau), each in added.items():
        block = Block(tuple(Factor((one,), along[domain.kind(one).size]) for one in tau), Fraction(1), measure)
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
            term = math.prod(each if one in tau else constant for one, (constant, each) in zip(product.attributes, parts, strict=True))
            if term > 0:
                added[product.measure, tau] = added.get((product.measure, tau), 0.0) + product.importance * term
    return added


def _parts(operator: Operator) -> tuple[float, float]:
    """What a unit of noise on the constant coefficient adds to the error of all queries along an attribute, and on one of the others.

    A table is 2^-m times the sum of its coefficients with their signs; the others' mean stands for each.
    """
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
