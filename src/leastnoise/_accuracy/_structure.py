"""The covariance of the least squares estimate from a plan's measurements, in a form that is never larger than the tables themselves.

Product form: along every attribute all blocks use one strategy (or sum over it). Then the information matrix of all measurements is
diagonal in the residual basis of ``_basis``: with tau a set of attributes, p_B one over a block's noise variance and S_B its attributes,

    lambda(tau) = sum over blocks B with S_B containing tau of p_B * prod over i in S_B but not in tau of 1 / kappa_i
    Var(q)      = sum over tau within T of 1 / lambda(tau) * prod_{i in tau} q_i R_i q_i * prod_{i in T but not tau} (q_i mean_i)^2

for a query q, a product of q_i over the attributes T. With identities everywhere this is ResidualPlanner's formula.

Dense form: any blocks, on a joint domain of at most 4096 cells. Beyond, up to 2^24 cells: two tables in a common basis, in ``_pair``; any
blocks by conjugate gradients, in ``_iterative``.

Source: ResidualPlanner (arXiv 2305.08175); the general statement is proved in docs/mathematics.md.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

import numpy as np

from leastnoise._accuracy._basis import Basis, IdentityBasis, Undetermined, basis
from leastnoise._accuracy._determined import Span, UnsupportedQuery, require, split, undetermined
from leastnoise._accuracy._iterative import IterativeStructure
from leastnoise._accuracy._joint import MOST_JOINT, Joint, used
from leastnoise._accuracy._joint_rows import joint_rows, joint_rows_in_parts, joint_variances
from leastnoise._accuracy._largest import MOST_LISTED, Errors
from leastnoise._accuracy._noise import noise_variance
from leastnoise._accuracy._operators import apply_gram
from leastnoise._accuracy._pair import PairStructure, is_pair, pair_structure
from leastnoise._accuracy._row_space import MOST_DENSE, RowSpace, inverted, of_gram
from leastnoise._accuracy._without_total import basis_without_total, contrast_strength, leaves_out_total
from leastnoise._check import InputError
from leastnoise._check.arrays import FloatArray
from leastnoise._domain import Domain
from leastnoise._linop import AllRanges, Contrasts, Identity, Operator, Total, along, apply, dense
from leastnoise._measurements import Block, Factor, Measurements
from leastnoise._workload import Product

Names = tuple[str, ...]
_MOST_LISTED = 10
_MOST_SORTED = 2**20


def subsets(names: Names) -> Iterator[Names]:
    """All subsets of a tuple of names, in its order, smallest first.

    >>> list(subsets(("a", "b")))
    [(), ('a',), ('b',), ('a', 'b')]
    """
    for size in range(len(names) + 1):
        yield from combinations(names, size)


def measured_along(block: Block) -> tuple[Names, Names]:
    """The attributes of a block that it does not sum over, and those of them that it measures across their totals, as contrasts do.

    >>> measured_along(Block((Factor(("a",), Total(2)), Factor(("b",), Contrasts(3))), scale=1))
    (('b',), ('b',))
    """
    names = tuple(factor.attributes[0] for factor in block.factors if used(factor))
    return names, tuple(factor.attributes[0] for factor in block.factors if leaves_out_total(factor))


def explained(names: Names, across: Names) -> Iterator[Names]:
    """The tau that such a block knows something about: all subsets with everything in ``across``.

    >>> list(explained(("a", "b"), ("b",)))
    [('b',), ('a', 'b')]
    """
    for chosen in subsets(tuple(name for name in names if name not in across)):
        yield tuple(name for name in names if name in across or name in chosen)


def block_variance(plan: Measurements, block: Block) -> float:
    """Noise variance of a row of weight 1 of a block.

    Exact where all its rows have one weight. Else the variance of a row of weight w is taken as this divided by w^2: for Laplace with 2
    b^2, which is above the exact one by less than 1 / (12 b^2) of it; along contrasts with sigma^2, which the discrete Gaussian's does
    not exceed.

    >>> domain = Domain(age=["a", "b"])
    >>> blocks = (Block((), scale=10),)
    >>> plan = Measurements(domain=domain, privacy=Privacy(PureDP(1)), noise=Noise.DISCRETE_LAPLACE, blocks=blocks)
    >>> round(block_variance(plan, plan.blocks[0]), 4)
    199.8334
    """
    scale = float(block.scale)
    if not noise_variance(plan.noise, scale, plan.grid) > 0:
        raise InputError(
            f"The budget is so large that the noise of {' x '.join(block.attributes) or 'the total'} vanishes (a scale of {scale:.2g} "
            "rows), which protects nobody. Choose a smaller budget."
        )
    if any(isinstance(factor.operator, Contrasts) for factor in block.factors):
        return scale**2
    if plan.noise.norm == 1 and not all(factor.even for factor in block.factors):
        return 2 * scale**2
    return noise_variance(plan.noise, scale, plan.grid)


@dataclass(frozen=True, slots=True, eq=False)
class ProductStructure:
    """Covariance in product form, for the blocks of one measure.

    Args:
        bases: the basis of every attribute that is measured.
        narrow: lambda(tau) from all tables of at most 10 attributes, listed.
        wide: attributes, those of them measured across their totals, and precision of the other tables, whose subsets are too many to list.
        span: what the tables determine.
    """

    bases: Mapping[str, Basis]
    narrow: Mapping[Names, float]
    wide: tuple[tuple[Names, Names, float], ...]
    span: Span
    _cache: dict[tuple[str, Operator], tuple[FloatArray, FloatArray]] = field(default_factory=dict, repr=False)
    _sums: dict[tuple[str, Operator], tuple[float, float]] = field(default_factory=dict, repr=False)
    _distinct: dict[tuple[str, Operator], FloatArray] = field(default_factory=dict, repr=False)

    def strength(self, tau: Names) -> float:
        """lambda(tau); 0 if no measured table contains tau."""
        known = self.narrow.get(tau, 0.0)
        for names, across, precision in self.wide:
            if set(across) <= set(tau) <= set(names):
                known += precision * math.prod(1 / self.bases[name].kappa for name in names if name not in tau)
        return known

    def require(self, product: Product) -> None:
        """Refuse a product that the measurements do not determine."""
        if not require(self.span, product):
            raise undetermined(product)  # in doubt

    def parts(self, name: str, operator: Operator) -> tuple[FloatArray, FloatArray]:
        """For every row q along an attribute: (q mean)^2 and q R q."""
        key = (name, operator)
        if key not in self._cache:
            own = self.bases[name]
            squares = apply(operator, own.mean) ** 2
            # The difference is at least 0; rounding could leave it just below.
            self._cache[key] = squares, np.maximum(own.variances(operator) - own.kappa * squares, 0.0)
        return self._cache[key]

    def sums(self, name: str, operator: Operator) -> tuple[float, float]:
        """The sums of ``parts`` over the rows, without listing them."""
        key = (name, operator)
        if key not in self._sums:
            own = self.bases[name]
            along = own.mean_squares(operator)
            self._sums[key] = along, max(0.0, own.total_variance(operator) - own.kappa * along)
        return self._sums[key]

    def variances(self, product: Product) -> FloatArray:
        """Variance of every answer of a product, shape ``product.shape``."""
        self.require(product)
        total = np.zeros(product.shape)
        parts = [self.parts(name, operator) for name, operator in zip(product.attributes, product.operators, strict=True)]
        for tau in subsets(product.attributes):
            term = np.ones(())
            for name, (mean, spread) in zip(product.attributes, parts, strict=True):
                term = np.multiply.outer(term, spread if name in tau else mean)
            known = self.strength(tau)
            if known > 0:  # else no query has such a part
                total += term / known
        return total

    def errors(self, product: Product) -> Errors:
        """The sum and the largest of the variances of a product's answers. Of rows that are alike along an attribute one is looked at."""
        summed = self.total(product)
        if len(product.attributes) == 1 and product.rows <= MOST_LISTED:  # takes less than finding those that are alike
            return Errors(summed, float(self.variances(product).max()))
        if sum(product.shape) <= _MOST_SORTED:
            kinds = [self._alike(name, operator) for name, operator in zip(product.attributes, product.operators, strict=True)]
            if all(len(kind) == 1 for kind in kinds):
                return Errors(summed, summed / product.rows)
            if math.prod(len(kind) for kind in kinds) <= MOST_LISTED:
                return Errors(summed, self._largest(product.attributes, kinds))
        return Errors(summed, self._above_all(product), exact=False)

    def _largest(self, names: Names, kinds: Sequence[FloatArray]) -> float:
        """The largest variance, from the distinct rows of ``parts`` along every attribute."""
        total = np.zeros([len(kind) for kind in kinds])
        for tau in subsets(names):
            term = np.ones(())
            for name, kind in zip(names, kinds, strict=True):
                term = np.multiply.outer(term, kind[:, 1 if name in tau else 0])
            known = self.strength(tau)
            total += term / known if known > 0 else 0.0  # what is not determined was refused before
        return float(total.max())

    def _above_all(self, product: Product) -> float:
        """A bound above all variances of a product's answers.

        With a(tau) the terms of a variance, sum of a(tau) prod_{i not in tau} kappa_i = prod_i q_i G_i^-1 q_i. So the variance, the sum
        of a(tau) / lambda(tau), is at most that product times the largest 1 / (lambda(tau) prod_{i not in tau} kappa_i).
        """
        strengths = {tau: self.strength(tau) for tau in subsets(product.attributes)}
        worst = max(
            1 / (known * math.prod(self.bases[name].kappa for name in product.attributes if name not in tau))
            for tau, known in strengths.items()
            if known > 0
        )
        each = zip(product.attributes, product.operators, strict=True)
        return worst * math.prod(self.bases[name].largest_variance(operator) for name, operator in each)

    def _alike(self, name: str, operator: Operator) -> FloatArray:
        """The distinct rows of ``parts``, shape (kinds, 2)."""
        key = (name, operator)
        if key not in self._distinct:
            self._distinct[key] = np.unique(np.column_stack(self.parts(name, operator)), axis=0)
        return self._distinct[key]

    def total(self, product: Product) -> float:
        """Sum of the variances of a product's answers, without listing them."""
        self.require(product)
        sums = [self.sums(name, operator) for name, operator in zip(product.attributes, product.operators, strict=True)]
        answer = 0.0
        for tau in subsets(product.attributes):
            term = math.prod(spread if name in tau else along for name, (along, spread) in zip(product.attributes, sums, strict=True))
            known = self.strength(tau)
            answer += term / known if known > 0 else 0.0
        return answer


@dataclass(frozen=True, slots=True, eq=False)
class DenseStructure:
    """Covariance as one matrix over the product of the measured attributes.

    Args:
        names: the attributes.
        shape: their sizes.
        covariance: of the estimated cells, shape (cells, cells).
        space: the row space of the measurements.
        span: what the tables determine.
    """

    names: Names
    shape: tuple[int, ...]
    covariance: FloatArray
    space: RowSpace
    span: Span | None = None

    def require(self, product: Product) -> None:
        """Refuse a product that the measurements do not determine."""
        if not require(self.span, product) and not self.space.everything:
            # All intervals span what the cells span.
            spanning = [Identity(one.size) if isinstance(one, AllRanges) else one for one in self.operators(split(product, self.names)[0])]
            if not all(self.space.holds_rows(rows) for _, rows in joint_rows_in_parts(spanning)):
                raise undetermined(product)

    def variances(self, product: Product) -> FloatArray:
        """Variance of every answer of a product, shape ``product.shape``."""
        self.require(product)
        inner, shape, times = split(product, self.names)
        return joint_variances(self.covariance, self.operators(inner)).reshape(shape) * times**2

    def errors(self, product: Product) -> Errors:
        """The sum and the largest of the variances of a product's answers."""
        if product.rows <= MOST_LISTED:
            found = self.variances(product)
            return Errors(float(found.sum()), float(found.max()))
        inner, _, times = split(product, self.names)
        top = float(np.linalg.eigvalsh(self.covariance)[-1])  # no variance is above this times the squared norm of its query
        norms = math.prod(IdentityBasis(operator.size).largest_variance(operator) for operator in self.operators(inner))
        return Errors(self.total(product), top * norms * float((times**2).max()), exact=False)

    def total(self, product: Product) -> float:
        """Sum of the variances of a product's answers, without listing them: tr(M C)."""
        self.require(product)
        inner, _, times = split(product, self.names)
        return self._traced(self.covariance, self.operators(inner)) * float((times**2).sum())

    def _traced(self, matrix: FloatArray, operators: Sequence[Operator]) -> float:
        cube = matrix.reshape(*self.shape, -1)
        for axis, operator in enumerate(operators):
            cube = along(apply_gram, operator, cube, axis)
        return float(np.trace(cube.reshape(matrix.shape)))

    def operators(self, product: Product) -> list[Operator]:
        """The queries along every attribute of the joint cells."""
        operators = dict(zip(product.attributes, product.operators, strict=True))
        return [operators.get(name, Total(size)) for name, size in zip(self.names, self.shape, strict=True)]

    def rows(self, product: Product) -> FloatArray:
        """The queries over the joint cells, shape (product.rows, cells)."""
        inner, shape, times = split(product, self.names)
        rows = joint_rows(self.operators(inner)).reshape(*shape, -1) * times[..., None]
        return rows.reshape(product.rows, -1)


Structure = ProductStructure | DenseStructure | PairStructure | IterativeStructure


def block_rows(domain: Domain, names: Names, block: Block) -> FloatArray:
    """A block's queries times their row weights, over the joint cells of ``names``, shape (block.rows, cells).

    >>> domain = Domain(a=["x", "y"], b=["x", "y"])
    >>> block_rows(domain, ("a", "b"), Block((Factor(("b",), Identity(2)),), scale=1)).tolist()
    [[1.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, 1.0]]
    """
    rows: FloatArray = np.ones((1, 1))
    measured: list[str] = []
    for factor in block.factors:
        rows = np.asarray(np.kron(rows, dense(factor.operator).astype(float) * factor.scaling[:, None]), dtype=np.float64)
        measured.extend(factor.attributes)
    rest = [name for name in names if name not in measured]
    rows = np.asarray(np.kron(rows, np.ones((1, math.prod(domain.kind(name).size for name in rest)))), dtype=np.float64)
    order = [*measured, *rest]
    cube = rows.reshape(len(rows), *(domain.kind(name).size for name in order))
    return np.moveaxis(cube, [1 + order.index(name) for name in names], range(1, len(names) + 1)).reshape(len(rows), -1)


def structure(plan: Measurements, measure: str | None) -> Structure:
    """The covariance of least squares from the blocks of one measure.

    Args:
        plan: the plan.
        measure: whose blocks to use; None for counts.

    Raises:
        InputError: the blocks have no product form and their joint domain has more than 2^24 cells, or nothing of the measure is measured.

    >>> domain = Domain(age=["a", "b"])
    >>> plan = Measurements(domain=domain, privacy=Privacy(PureDP(1)), noise=Noise.DISCRETE_LAPLACE,
    ...             blocks=(Block((Factor(("age",), Identity(2)),), scale=1),))
    >>> structure(plan, None).variances(marginals(domain, ways=1).products[0]).round(3)
    array([1.841, 1.841])
    """
    plan.limits(measure)  # refuses sums that are not of the same values
    blocks = [block for block in plan.blocks if block.measure == measure]
    if not blocks:
        raise UnsupportedQuery(f"The plan measures nothing of {measure or 'the counts'}.")
    span = Span.of(plan.domain, blocks)
    factors: dict[str, Factor] = {}
    seen: set[Factor] = set()
    product_form = True
    for block in blocks:
        for factor in filter(used, block.factors):
            if factor not in seen:
                seen.add(factor)
                known = Factor(factor.attributes, Identity(factor.operator.size)) if contrast_strength(factor) is not None else factor
                one = len(factor.attributes) == 1 and factors.setdefault(factor.attributes[0], known) == known
                product_form = product_form and one
    if product_form:
        try:
            bases = {name: basis_without_total(own) if leaves_out_total(own) else basis(own) for name, own in factors.items()}
            # Along an attribute that nothing measures only multiples of the total are known.
            summed = {name: IdentityBasis(plan.domain.kind(name).size) for name in plan.domain.names}
            return _product_structure(plan, blocks, {**summed, **bases}, span)
        except Undetermined:  # a strategy that does not determine every cell may still determine the queries
            pass
    sizes = {name: plan.domain.kind(name).size for name in plan.domain.names if any(name in block.attributes for block in blocks)}
    tables = [(block, block_variance(plan, block)) for block in blocks]
    if math.prod(sizes.values()) > MOST_DENSE and is_pair(sizes, blocks, MOST_JOINT):
        return pair_structure(sizes, tables, span)
    joint = Joint.of(plan.domain, tables)
    return _dense_structure(plan, joint, span) if joint.cells <= MOST_DENSE else IterativeStructure(joint, span)


def _product_structure(plan: Measurements, blocks: Sequence[Block], bases: Mapping[str, Basis], span: Span) -> ProductStructure:
    narrow: dict[Names, float] = {}
    wide = []
    for block in blocks:
        names, across = measured_along(block)
        precision = math.prod((contrast_strength(factor) or 1.0 for factor in block.factors), start=1 / block_variance(plan, block))
        if len(names) - len(across) > _MOST_LISTED:
            wide.append((names, across, precision))
            continue
        shrink = {name: 1 / bases[name].kappa for name in names}
        for tau in explained(names, across):
            narrow[tau] = narrow.get(tau, 0.0) + precision * math.prod(shrink[name] for name in names if name not in tau)
    return ProductStructure(bases, narrow, tuple(wide), span)


def _dense_structure(plan: Measurements, joint: Joint, span: Span | None = None) -> DenseStructure:
    gram, counted = np.zeros((joint.cells, joint.cells)), np.zeros((joint.cells, joint.cells))
    for block, variance in joint.blocks:
        own = replace(block, factors=tuple(filter(used, block.factors)))
        rows = block_rows(plan.domain, joint.names, own)
        gram += rows.T @ rows / variance
        whole = rows / own.scaling()[:, None]
        counted += whole.T @ whole
    space = of_gram(counted)
    inverse = inverted(gram, space)
    if inverse is None:
        raise UnsupportedQuery(f"The noise of the queries measured on {' x '.join(joint.names)} is too unequal. Choose another strategy.")
    return DenseStructure(joint.names, joint.shape, inverse, space, span)
