"""Answers of a plan that does not look at the data, along one attribute, shrunk as far as they themselves show even stretches.

Least squares give the difference of the halves of every aligned block (`Halving`) and its noise. The hidden tree of `shrink` gives each
a posterior by itself, which is what a normal prior of its own would leave of that noise; each level is checked by Stein's estimate of
its risk. With these priors the cells are estimated once more from all measurements, so that the noise's whole covariance counts and what
queries cancel stays cancelled. On the widest blocks, which are few, differences stay free. Where nothing can be gained this is least
squares. Functions of noisy numbers alone.

Source: docs/decisions/dawa.md; Stein, Ann. Statist. 9 (1981).
"""

from dataclasses import dataclass
from functools import singledispatch

import numpy as np

from leastnoise._accuracy import Joint, conjugate_gradients, quantity_structure, told, used
from leastnoise._check import InputError
from leastnoise._check.arrays import FloatArray, IntArray
from leastnoise._estimate._answer import Answer
from leastnoise._estimate._expansion import answers_of
from leastnoise._estimate._least_squares import Estimate
from leastnoise._estimate._shrinkage import Halving, shrink
from leastnoise._linop import Coarse, Operator, Ranges
from leastnoise._measurements import Measurements, Observation
from leastnoise._workload import Product, queries

_FREE = 4  # blocks of a level: no prior can be learned from so few
_CLEAR = 1e-6  # of the noise: a posterior that is nearer to it changes nothing
_NEAR = 1e-10  # squared standard errors, summed over all differences, at which the equations count as solved


@dataclass(frozen=True, eq=False)
class Runs:
    """Runs of cells that nothing measured tells apart."""

    name: str
    starts: IntArray
    lengths: IntArray

    @staticmethod
    def of(made: Measurements) -> "Runs":
        """Of measurements along one attribute; the runs are the cells where these are not on equal buckets."""
        (name,) = {name for block in made.blocks for name in block.attributes}
        size = made.domain.kind(name).size
        runs = [_runs(factor.operator) for block in made.blocks for factor in block.factors if used(factor)]
        starts = runs[0] if len({starts.tobytes() for starts in runs}) == 1 else np.arange(size)
        return Runs(name, starts, np.diff(starts, append=size))

    @property
    def halving(self) -> Halving:
        """All aligned blocks of runs."""
        return Halving(len(self.starts), self.lengths)

    def blocks(self, made: Measurements) -> Product:
        """The counts of `Halving.blocks`."""
        size = made.domain.kind(self.name).size
        first, last = self.halving.blocks()
        operator = Ranges(size, self.starts[first], np.append(self.starts, size)[last + 1] - 1)
        return queries(made.domain, {self.name: "identity"}).products[0].knowing((operator,))

    def spread(self, counts: FloatArray) -> FloatArray:
        """Counts of the runs, evenly over their cells."""
        return np.repeat(counts / self.lengths, self.lengths)


@singledispatch
def _runs(operator: Operator) -> IntArray:
    """Where the runs of cells begin that queries do not tell apart."""
    return np.arange(operator.size)


@_runs.register
def _(operator: Coarse) -> IntArray:
    return operator.starts


def can_be_smoothed(made: Measurements) -> bool:
    """Whether measurements are along one attribute and determine all that is needed."""
    if len({name for block in made.blocks for name in block.attributes}) != 1:
        return False
    try:
        quantity_structure(made, None).require(Runs.of(made).blocks(made))
    except InputError:
        return False
    return True


@dataclass(frozen=True, eq=False)
class Smoothed:
    """The posterior of the cells of one attribute, with the intervals of least squares."""

    plain: Estimate
    cells: FloatArray

    @staticmethod
    def of(observation: Observation) -> "Smoothed":
        """From the observation of one step along one attribute."""
        made, plain = observation.measurements, Estimate(observation)
        runs, joint = Runs.of(made), Joint.of(made.domain, [(one.block, one.variance) for one in told(made, None)])
        halving, estimated = runs.halving, plain.estimate(runs.blocks(made))
        counts, variances = estimated.values[: len(runs.starts)], estimated.noise_std**2
        total, parts = halving.differences(counts[None])
        noise = halving.noise(variances)
        tail = float(np.sqrt(np.median(variances[: len(runs.starts)]) / 2)) if made.noise.norm == 1 else None
        shrunk = shrink(parts, noise, tail)
        pilots = zip(parts, shrunk.means, shrunk.variances, noise, strict=True)
        priors = [_prior(part[0], mean[0], left[0], noise_of) for part, mean, left, noise_of in pilots]
        precision, pull = (np.concatenate([np.zeros(1), *(one[at] for one in priors)]) for at in range(2))
        start = np.concatenate([total[0], *(one[0] for one in shrunk.means)])
        spread = np.concatenate([variances[-1:], *noise])
        known = spread > 0  # all but padding

        def normal(vectors: FloatArray) -> FloatArray:
            cells = runs.spread(halving.synthesised(vectors.T)[0])
            back = halving.transposed(joint.gram(cells[:, None])[runs.starts].T)[0]
            return (known * (back + precision * vectors[:, 0]))[:, None]

        gathered = joint.gather([values[:, None] / made.grid for values in observation.values])[runs.starts].T
        right = (known * (halving.transposed(gathered)[0] + pull))[:, None]
        diagonal = (1 / np.where(known, spread, 1.0) + precision)[:, None]
        left = right - normal(start[:, None])
        mean = start + conjugate_gradients(normal, lambda residual: residual / diagonal, left, _NEAR)[:, 0]
        parts = np.split(mean[None], np.cumsum([1, *map(len, halving.left)]), axis=1)[1:-1]
        return Smoothed(plain, runs.spread(halving.together(mean[None, :1], parts)[0]))

    def estimate(self, product: Product) -> Answer:
        """Posterior means, with the intervals of least squares: chosen without the data, they hold the truth whatever was shrunk."""
        values, plain = answers_of(product, self.cells), self.plain.estimate(product)
        return Answer(values, plain.noise_std, np.abs(values - plain.values), centre=plain.values)


def _prior(part: FloatArray, mean: FloatArray, left: FloatArray, noise: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Precisions, and precisions times means, of the priors under which a level's noise leaves these posteriors."""
    # If the posteriors are right, measured differences lie as far from their means as the noise that these take away. Where they lie
    # further, all means of the level are moved back by the same part of the way: the factor of least risk by Stein's unbiased estimate.
    seen, own = noise > 0, np.where(noise > 0, noise, 1.0)
    taken, away = (1 - left / own)[seen].sum(), ((part - mean) ** 2 / own)[seen].sum()
    kept = min(1.0, taken / max(away, 1e-9))
    mean, left = part + kept * (mean - part), kept * left + (1 - kept) * noise
    told = (left < (1 - _CLEAR) * noise) & (len(part) > _FREE)
    own = np.where(told, noise, 1.0)
    after = np.where(told, np.maximum(left, _CLEAR * own), 1.0)
    return np.where(told, 1 / after - 1 / own, 0.0), np.where(told, mean / after - part / own, 0.0)
