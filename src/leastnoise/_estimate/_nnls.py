"""Non-negative least squares over the joint table: the cells that explain all measurements best, none of them below 0.

    minimise  f(x) = 1/2 x^T M x - b^T x   subject to  x >= 0, the sum of x fixed to its unbiased estimate

with M and b of ``accuracy.Joint``. Cells get nearer to the truth; sums of cells need not. The total is fixed because, where measurements
hold it weakly, the noise that is cut off below 0 would come back as mass.

Method: projected gradients in the metric of the diagonal of M, with Nesterov's momentum, restarted where it points uphill. Stop rule: a
duality gap. With g the gradient at x, f(x) - f* is at most x^T g - (sum) * min g, the linear bound on the simplex, and every answer q x is
within sqrt(2 (f(x) - f*)) of its unbiased standard error of the exact minimiser's.

Source: Li et al., VLDB Journal 2015 (non-negative inference); Nesterov 1983; O'Donoghue and Candes 2015 for the restart.
"""

import math
from dataclasses import dataclass, field

import numpy as np

from leastnoise._accuracy import Joint, Known, structure, sums_told
from leastnoise._check import InputError, refuse, whole
from leastnoise._check.arrays import FloatArray
from leastnoise._estimate._agreed import onto_simplices
from leastnoise._estimate._answer import Answer
from leastnoise._linop import along, apply
from leastnoise._measurements import Measurements, Observation
from leastnoise._workload import Product

GAP = 1e-4
MOST_CELLS = 2**20
REPETITIONS = 50
"""Simulated releases behind the errors of an answer."""
_MOST_STEPS = 20000
_CHECK_EVERY = 25
_SEED = 20240301


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class NonNegativeCells:
    """Non-negative least squares cells of one measure; biased: sums of small cells tend to be too large."""

    plan: Measurements
    joint: Joint
    cells: FloatArray
    gap: float
    steps: int
    measure: str | None = None
    _simulated: dict[tuple[int, int], list[FloatArray]] = field(default_factory=dict, repr=False)
    _structures: list[Known] = field(default_factory=list, repr=False)

    def estimate(self, product: Product, repetitions: int = REPETITIONS, *, seed: int = _SEED) -> Answer:
        """The answers that these cells give to a product; they agree with each other."""
        # Their errors are those in simulated releases in which these cells are the truth: ``noise_std`` the standard deviation,
        # ``approximation_std`` the size of the bias, ``std`` the root mean square error. The true errors depend on the true cells, which
        # are not known: this is their value at the estimate (a parametric bootstrap), not a promise made before the data were seen. Its own
        # Monte Carlo error is about 1 / sqrt(2 repetitions).
        whole("repetitions", repetitions, 2)
        if product.measure == self.measure:
            if not self._structures:
                self._structures.append(structure(self.plan, self.measure))
            self._structures[0].require(product)
        values, bias, square = self._answered(product, self.cells), np.zeros(product.shape), np.zeros(product.shape)
        for found in self._simulations(repetitions, seed):
            for column in found.T:
                error = self._answered(product, column.reshape(self.joint.shape)) - values
                bias += error / repetitions
                square += error**2 / repetitions
        return Answer(values, np.sqrt(np.maximum(square - bias**2, 0.0)), np.abs(bias))

    def values(self, product: Product) -> FloatArray:
        """The answers alone, shape ``product.shape``, without the simulation that tells their errors."""
        return self._answered(product, self.cells)

    def _answered(self, product: Product, cells: FloatArray) -> FloatArray:
        # An attribute of one cell has nothing to tell, so the joint table may be without it: its axis has one place.
        added = [axis for axis, name in enumerate(product.attributes) if name not in self.joint.names]
        if product.measure != self.measure or any(product.domain.kind(product.attributes[axis]).size > 1 for axis in added):
            raise refuse("product", product.name, f"one of {self.measure or 'counts'} on {', '.join(self.joint.names)}")
        cube = cells.sum(axis=tuple(axis for axis, name in enumerate(self.joint.names) if name not in product.attributes))
        cube = np.expand_dims(cube, tuple(added))
        for axis, operator in enumerate(product.operators):
            cube = along(apply, operator, cube, axis)
        return np.asarray(cube)

    def _simulations(self, repetitions: int, seed: int) -> list[FloatArray]:
        """The cells of simulated releases, in batches of shape (cells, releases); made once for all products."""
        if (repetitions, seed) not in self._simulated:
            generator = np.random.default_rng(seed)
            batches = []
            exact = self.joint.gram(self.cells.reshape(-1, 1))
            step = max(1, min(repetitions, 2**21 // self.joint.cells))
            for start in range(0, repetitions, step):
                columns = min(step, repetitions - start)
                drawn = [one.values(_noise(self.plan, one.place, columns, generator)) for one in sums_told(self.plan, self.measure)]
                noise = self.joint.gather(drawn)
                batches.append(_solved(self.joint, exact + noise, GAP, insist=False)[0])
            self._simulated[repetitions, seed] = batches
        return self._simulated[repetitions, seed]


def nnls(observation: Observation, *, measure: str | None = None, gap: float = GAP, insist: bool = True) -> NonNegativeCells:
    """Non-negative least squares cells from an observation, beside the unbiased estimate and never in its place."""
    plan = observation.measurements
    joint = _joint(plan, measure)
    if measure is not None and plan.domain.measures[measure].low_units < 0:
        raise InputError(f"Non-negative sums of {measure} cannot be asked for, because its lower bound is negative.")
    values = [one.values(observation.values[one.place]).astype(float)[:, None] / plan.grid for one in sums_told(plan, measure)]
    cells, reached, steps = _solved(joint, joint.gather(values), gap, insist=insist)
    return NonNegativeCells(plan=plan, joint=joint, cells=cells.reshape(joint.shape), gap=reached, steps=steps, measure=measure)


def _joint(plan: Measurements, measure: str | None) -> Joint:
    blocks = [(one.block, one.variance) for one in sums_told(plan, measure)]
    if not blocks:
        raise InputError(f"The plan measures nothing of {measure or 'the counts'}.")
    joint = Joint.of(plan.domain, blocks)
    if not joint.cells <= MOST_CELLS:
        raise refuse("the joint table of non-negative least squares", f"{joint.cells} cells", f"at most {MOST_CELLS}")
    return joint


def _noise(plan: Measurements, place: int, columns: int, generator: np.random.Generator) -> FloatArray:
    """Simulated noise of a block's rows, shape (rows, columns): the plan's distribution, from a generator that protects nobody."""
    block = plan.blocks[place]
    scales = (float(block.scale) * plan.grid / block.scaling())[:, None] * np.ones(columns)
    if plan.noise.norm == 1:
        steps = -np.expm1(-1 / scales)
        return (generator.geometric(steps) - generator.geometric(steps)) / plan.grid
    return np.rint(generator.normal(0.0, scales)) / plan.grid


def _solved(joint: Joint, b: FloatArray, gap: float, *, insist: bool = True) -> tuple[FloatArray, float, int]:
    """Minimise for columns b of shape (cells, columns); cells, the largest gap and the number of steps."""
    unbiased = joint.solve(b, "the unbiased estimate")
    sums = np.maximum(unbiased.sum(axis=0), 0.0)
    weights = np.maximum(joint.diagonal(), 1e-12 * float(joint.diagonal().max()))[:, None]
    bound = _largest_eigenvalue(joint, np.sqrt(weights))
    x = onto_simplices(np.maximum(unbiased, 0.0), weights, sums)
    ahead, momentum = x, np.ones(b.shape[1])
    worst = math.inf
    for count in range(1, _MOST_STEPS + 1):
        slope = joint.gram(ahead) - b
        fresh = onto_simplices(ahead - slope / (bound * weights), weights, sums)
        uphill = ((ahead - fresh) * weights * (fresh - x)).sum(axis=0) > 0
        grown = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        ahead = fresh + np.where(uphill, 0.0, (momentum - 1) / grown) * (fresh - x)
        momentum = np.where(uphill, 1.0, grown)
        x = fresh
        if count % _CHECK_EVERY == 0:
            slope = joint.gram(x) - b
            worst = float(((x * slope).sum(axis=0) - sums * slope.min(axis=0)).max())
            if worst <= gap:
                return x, worst, count
    if not insist:
        return x, worst, _MOST_STEPS
    raise InputError(
        f"Non-negative least squares did not converge: after {_MOST_STEPS} steps the duality gap is {worst:.1e}, asked for is {gap:.0e}. "
        "Ask for a larger gap, or use the unbiased estimate."
    )


def _largest_eigenvalue(joint: Joint, scale: FloatArray) -> float:
    """A little more than the largest eigenvalue of D^-1/2 M D^-1/2, by power iteration from a positive start."""
    v = scale / np.linalg.norm(scale)
    value = 1.0
    for _ in range(60):
        turned = joint.gram(v / scale) / scale
        value = float(np.linalg.norm(turned))
        v = turned / value
    return 1.05 * value
