"""Estimates from a model fitted to noisy tables.

The stated errors include the error of the model.

If cells contain few rows, the model is fitted to tables on bins (`ModelEstimator`). Otherwise the
model is fitted to the least-squares tables of a data-independent plan (`ShrunkToModel`). Each
answer lies between the model and the measurement, at the point where an unbiased estimate of the
squared error is least. On bins, this point is chosen separately for each class of cells of similar
size. For large cells, the measurement is often better than the model; for small cells, it rarely
is. The published errors are based on the same estimates of the squared error. For these estimates,
noise of the same size is added to the tables once more, and the model is refitted to the noisier
tables.

Records that agree with a release are rows of codes, made from a model by systematic rounding. Each
component of the mixture gets a whole number of records, and so does each value of an attribute
within a component. This number differs from the model's number by less than one record. Within a
component, the values of each attribute are shuffled, because the attributes are independent there.
A record equals a real row only by chance.

Source: Stein 1981 (the unbiased estimate of risk), Ramani, Blu and Unser 2008 (its divergence by
    perturbation), Nixon et al. 2201.10545, Madow 1949 (rounding).
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import chain, combinations

import numpy as np

from leastnoise._error import block_variance, subsets
from leastnoise._estimation._expansion import starts_of
from leastnoise._estimation._least_squares import Answer, Estimate, Estimator
from leastnoise._estimation._local_non_negative import (
    ConsistentNonNegativeTables,
    from_residual_parts,
    nearest_tables,
    residual_parts,
    residual_precisions,
)
from leastnoise._estimation._mixture import (
    MORE_ROUNDS,
    ROUNDS,
    Mixture,
    NoisyTable,
    fit_mixture,
    refit_mixture,
    smoothed_shares,
)
from leastnoise._estimation._public_facts import (
    Combination,
    KnownSums,
    Names,
    PublicCounts,
    apply_public_facts,
    possible_cells,
)
from leastnoise._families import apply_along_axes
from leastnoise._threads import BoundedThreadPool
from leastnoise._trusted.check import InputError
from leastnoise._trusted.check.arrays import BoolArray, FloatArray, IntArray
from leastnoise._trusted.measurements import Observation
from leastnoise._workload import Product, identity, table_of_all_cells

_REFITS = 3  # mixtures refitted to simulated noise
_REFIT_ROUNDS = 150  # steps of a refit
_SEED = 20_261_125  # seed of the noise of refits
# Relative standard error of a share that is modelled but not measured; typical of real tables.
_UNMEASURED_SHARE_ERROR = 0.5
# Standard errors by which the count of a value may exceed its measurement, for ranges of cells in
# bins; a normal error exceeds them in 2% of measurements.
_VALUE_ERRORS = 2.0
# For intervals, this fraction of a bin is divided evenly among its cells, the remainder as in the
# model.
_EVEN_BIN_FRACTION = 0.5
_SIZE_CLASS_LIMITS = 4.0 ** np.arange(-1, 12)  # limits of the size classes of cells, in rows
MOST_RECORDS = 2**27  # maximum number of synthetic records
# This is subtracted from the kept fraction of residuals, because smaller fractions add more noise
# than they correct.
_RETENTION_DEDUCTION = 0.1
# Maximum number of cells of a table to which a model is fitted after the release.
_MOST_CELLS = 2**20
_LEAST_STD = 1e-3  # rows; public tables have no noise, but a fit divides by the noise
# The parts of the way from least squares to the model that are tried.
_STEPS_TO_MODEL = (0.0, 0.25, 0.5, 0.7, 0.9)
_MOST_REDRAWS = 100  # attempts to draw records without impossible values
# Public counts are fitted as if they had this part of the noise. This applies to tables of at
# most _MOST_PUBLIC_ATTRIBUTES attributes.
_PUBLIC_NOISE_RATIO = 0.25
_MOST_PUBLIC_ATTRIBUTES = 2
# Least size of a cell, relative to the average cell, when errors are divided among cells.
_LEAST_CELL_RATIO = 0.25


@dataclass(frozen=True, slots=True, eq=False)
class NoisyTables:
    """The noisy tables to which a mixture is fitted, and their total.

    Attributes:
        names: the measured attributes, in the order of the domain.
        tables: the measured tables of bins.
        total: the estimated number of rows.
        total_std: the standard error of ``total``.
        shares: for each attribute, the initial share of each of its cells.
        public: tables of public counts, which the fit meets approximately.
        squared_noise_variance: the variance of squared noise of variance 1; 2 for normal noise.
    """

    names: Names
    tables: tuple[NoisyTable, ...]
    total: float
    total_std: float
    shares: tuple[FloatArray, ...]
    public: tuple[NoisyTable, ...] = ()
    squared_noise_variance: float = 2.0

    @staticmethod
    def of(
        observation: Observation,
        impossible: Sequence[Combination] = (),
        public: Sequence[PublicCounts] = (),
    ) -> "NoisyTables":
        """Return the noisy one-way and binned tables of an observation.

        Bins that contain only impossible cells have a count of 0.
        """
        measurements = observation.measurements
        measured = set(chain.from_iterable(block.attributes for block in measurements.blocks))
        names = tuple(name for name in measurements.domain.names if name in measured)
        tables = []
        for block, value in zip(measurements.blocks, observation.values, strict=True):
            starts = tuple(starts_of(factor.operator) for factor in block.factors)
            counts = (value / measurements.grid).reshape([len(bins) for bins in starts])
            positions = tuple(names.index(factor.attributes[0]) for factor in block.factors)
            attributes = [names[at] for at in positions]
            possible = _sum_bins(
                possible_cells(
                    impossible,
                    attributes,
                    [measurements.domain.kind(name).size for name in attributes],
                ).astype(np.float64),
                starts,
            )
            tables.append(
                NoisyTable(
                    positions,
                    starts,
                    np.where(possible > 0, counts, 0.0),
                    math.sqrt(block_variance(measurements, block)),
                )
            )
        return replace(
            NoisyTables.from_tables(names, tables, public),
            squared_noise_variance=5.0 if measurements.noise.norm == 1 else 2.0,
        )

    @staticmethod
    def from_tables(
        names: Names, tables: Sequence[NoisyTable], public: Sequence[PublicCounts] = ()
    ) -> "NoisyTables":
        """Return noisy tables with their total and smoothed one-way shares.

        Public counts are fitted as noisy counts with little noise.
        """
        precision = np.array([1 / (table.std**2 * table.counts.size) for table in tables])
        total = float(precision @ [table.counts.sum() for table in tables] / precision.sum())
        total_std = 1 / math.sqrt(precision.sum())
        exact = list[NoisyTable]()
        if public:
            least = _PUBLIC_NOISE_RATIO * float(np.median([table.std for table in tables]))
            tables = [replace(table, std=max(table.std, least)) for table in tables]
            total = float(public[0].rows)
            total_std = 0.0
            exact = _interval_tables(public, names, least)
        every = [table for table in [*tables, *exact] if len(table.attributes) == 1]
        # The shares of all cells.
        one_way_tables = {
            table.attributes[0]: table
            for table in every
            if len(table.starts[0]) == int(table.starts[0][-1]) + 1
        }
        shares = tuple(
            smoothed_shares(one_way_tables[attribute].counts, one_way_tables[attribute].std, total)
            for attribute in range(len(names))
        )
        fitted = tuple(table for table in tables if table.attributes)
        return NoisyTables(names, fitted, max(total, 1.0), total_std, shares, tuple(exact))

    def mixture(self, max_rounds: int = MORE_ROUNDS) -> Mixture:
        """Fit a mixture to the tables."""
        return fit_mixture(
            self.total, self.shares, [*self.tables, *self.public], max_rounds=max_rounds
        )

    def refitted(self, mixture: Mixture, noises: Sequence[Sequence[FloatArray]]) -> list[Mixture]:
        """Refit the mixture once for each draw of noise; return the refitted mixtures.

        Each draw is added to the original tables. The refits run on several cores. The results are
        identical for any number of cores.
        """
        refits: dict[int, Mixture] = {}

        def refit(draw: int, noise: Sequence[FloatArray]) -> None:
            """Refit the mixture to the tables with the noise of one draw."""
            tables = [
                replace(table, counts=table.counts + more)
                for table, more in zip(self.tables, noise, strict=True)
            ]
            refits[draw] = refit_mixture(
                mixture, self.total, self.shares, [*tables, *self.public], _REFIT_ROUNDS
            )

        with BoundedThreadPool() as others:
            for draw, noise in enumerate(noises):
                others.submit(refit, draw, noise)
        return [refits[draw] for draw in range(len(noises))]

    def counts(self, mixture: Mixture, names: Names) -> FloatArray:
        """Return the cells of a table under a mixture, in rows."""
        missing = [name for name in names if name not in self.names]
        if missing:
            raise InputError(
                f"The model has the attributes {', '.join(self.names)}; got a query on "
                f"{', '.join(missing)}. Leave it out of the query."
            )
        return self.total * mixture.table([self.names.index(name) for name in names])


def _interval_tables(public: Sequence[PublicCounts], names: Names, std: float) -> list[NoisyTable]:
    """Return public counts of intervals of cells as noisy tables.

    The tables have one or two attributes.
    """
    noisy = []
    for table in public:
        sums = table.sums.marginal(tuple(name for name in table.sums.names if name in names))
        if 0 < len(sums.names) <= _MOST_PUBLIC_ATTRIBUTES and all(
            (np.diff(groups) >= 0).all() for groups in sums.groups
        ):
            starts = tuple(np.flatnonzero(np.diff(groups, prepend=-1)) for groups in sums.groups)
            noisy.append(NoisyTable(tuple(map(names.index, sums.names)), starts, sums.counts, std))
    return noisy


@dataclass(frozen=True, slots=True)
class _ResidualSums:
    """Sums over cells of measured tables, shape (3, size classes).

    The rows are for tables of one, two and three attributes. The columns are for the classes of
    cells that have a similar size in the model.

    Attributes:
        cells: the number of cells.
        squared_gap: the squared difference between the measured count and the model's count.
        covariance: the product of the noise that is added before a refit and the change that the
            refit causes.
        noise: the variance of the measured counts.
        squared_move: the squared change that a refit causes.
    """

    cells: FloatArray
    squared_gap: FloatArray
    covariance: FloatArray
    noise: FloatArray
    squared_move: FloatArray

    @staticmethod
    def zeros(class_count: int) -> "_ResidualSums":
        """Return sums that are all 0, for a number of size classes."""
        return _ResidualSums(*np.zeros((5, 3, class_count)))

    def add(
        self, table_row: int, size_classes: IntArray, sum_name: str, values: FloatArray
    ) -> None:
        """Add the values of a table's cells to one of the sums, in place.

        Args:
            table_row: the number of the table's attributes, less 1.
            size_classes: the class of each cell.
            sum_name: the name of the sum.
            values: the values of the cells.
        """
        sums: FloatArray = getattr(self, sum_name)
        sums[table_row] += np.bincount(size_classes, values.reshape(-1), sums.shape[1])


@dataclass(frozen=True, eq=False)
class ModelEstimator:
    """Answers from a mixture that was fitted to noisy binned tables.

    The estimates are moved towards the tables where this reduces the error.

    ``requested`` has the requested tables that no other requested table contains. The estimates are
    moved only if all of these tables were measured.
    """

    measured: NoisyTables
    requested: tuple[Names, ...] = ()
    impossible: tuple[Combination, ...] = ()
    public: tuple[PublicCounts, ...] = ()

    @cached_property
    def mixture(self) -> Mixture:
        """The mixture fitted to the measured tables."""
        return self.measured.mixture(ROUNDS if self._is_fully_measured else MORE_ROUNDS)

    @cached_property
    def _refits(self) -> list[tuple[Mixture, list[FloatArray]]]:
        """Mixtures refitted to tables with simulated noise, each with its noise."""
        noise = np.random.default_rng(_SEED)
        added = [
            [
                table.std * noise.standard_normal(table.counts.shape)
                for table in self.measured.tables
            ]
            for _ in range(_REFITS)
        ]
        return list(zip(self.measured.refitted(self.mixture, added), added, strict=True))

    @cached_property
    def _residual_sums(self) -> "_ResidualSums":
        """Sums over cells of measured tables, by table width and size class."""
        sums = _ResidualSums.zeros(len(_SIZE_CLASS_LIMITS) + 1)
        total = self.measured.total
        for index, table in enumerate(self.measured.tables):
            fit = total * _bin_shares(self.mixture, table)
            moves = []
            products = []
            for refit, added_noise in self._refits:
                move = total * _bin_shares(refit, table) - fit
                moves.append(move**2)
                products.append(move * added_noise[index])
            size_class = np.searchsorted(_SIZE_CLASS_LIMITS, fit).reshape(-1)
            width = len(table.attributes) - 1
            sums.add(width, size_class, "cells", np.ones(fit.shape))
            sums.add(width, size_class, "squared_gap", (table.counts - fit) ** 2)
            sums.add(width, size_class, "covariance", np.mean(products, axis=0))
            sums.add(width, size_class, "noise", np.full(fit.shape, table.std**2))
            sums.add(width, size_class, "squared_move", np.mean(moves, axis=0))
        return sums

    @cached_property
    def _shrinkage(self) -> FloatArray:
        """The fraction of each measured residual to keep, shape (3, size classes).

        The axes are tables of one to three attributes, and classes of cells by their fitted counts.
        The fraction is 1 minus a ratio. The numerator is the noise that the model does not follow,
        plus two standard errors. The denominator is the squared difference between the measured
        counts and the model's counts.
        """
        sums = self._residual_sums
        unfollowed = np.maximum(sums.noise - sums.covariance, 0)
        # The standard error of a sum of squared noise, relative to it.
        cells = np.maximum(sums.cells, 1)
        noise_error = np.sqrt(self.measured.squared_noise_variance / cells) * sums.noise
        caution = 1 + 2 * noise_error / np.maximum(sums.noise, 1e-9)
        shrinkage = np.clip(1 - unfollowed * caution / np.maximum(sums.squared_gap, 1e-9), 0, 1)
        return np.asarray(
            np.maximum(shrinkage - _RETENTION_DEDUCTION, 0) / (1 - _RETENTION_DEDUCTION)
        )

    @cached_property
    def _mixture_error(self) -> FloatArray:
        """The mean squared error of the mixture's cells, shape (3, size classes)."""
        return self._mean_squared_error(np.zeros(self._residual_sums.cells.shape))

    @cached_property
    def _moved_error(self) -> FloatArray:
        """The mean squared error of cells that are moved to their measured counts."""
        return self._mean_squared_error(self._shrinkage)

    def _mean_squared_error(self, shrinkage: FloatArray) -> FloatArray:
        """Return the model's mean squared errors if fractions of residuals are kept.

        The errors are the estimated risk, minus the part that refits to other noise explain.

        Args:
            shrinkage: the fraction of each measured residual that is kept, shape (3, size classes).
        """
        sums = self._residual_sums
        # Adds more standard errors if there are few cells, because the estimated risk may then be 0
        # by chance.
        above = np.sqrt(5 / np.maximum(sums.cells - 2, 1)) * sums.noise
        risk = (
            (1 - shrinkage) ** 2 * sums.squared_gap
            + (2 * shrinkage - 1) * sums.noise
            + 2 * (1 - shrinkage) * sums.covariance
            + above
        )
        explained = (
            (1 - shrinkage) ** 2 * sums.squared_move
            + shrinkage**2 * sums.noise
            + 2 * shrinkage * (1 - shrinkage) * np.maximum(sums.covariance, 0)
        )
        return np.asarray(np.maximum(risk - explained, 0) / np.maximum(sums.cells, 1))

    def _cells(
        self, names: Names, mixture: Mixture, noise: Sequence[FloatArray] | None = None
    ) -> FloatArray:
        """Return a table of the model whose bins agree with their measured counts.

        All cells of a bin are multiplied by one factor.
        """
        cells = self.measured.counts(mixture, names)
        index = self._indices.get(tuple(self.measured.names.index(name) for name in names))
        if index is None or not self._is_fully_measured:
            return cells
        table = self.measured.tables[index]
        fit = self.measured.total * _bin_shares(mixture, table)
        size = np.searchsorted(
            _SIZE_CLASS_LIMITS, self.measured.total * _bin_shares(self.mixture, table)
        )
        if noise is None:
            residuals = table.counts - fit
        else:
            residuals = table.counts + noise[index] - fit
        return cells * _repeat_for_cells(
            1 + self._shrinkage[len(names) - 1][size] * residuals / np.maximum(fit, 1e-12),
            table,
            cells.shape,
        )

    @cached_property
    def _is_fully_measured(self) -> bool:
        """Whether all tables in ``requested`` were measured.

        Tables of up to two attributes need no check, because every pair of attributes with several
        cells is measured.
        """
        return all(
            len(table) <= 2 or tuple(map(self.measured.names.index, table)) in self._indices
            for table in self.requested
        )

    @cached_property
    def _indices(self) -> dict[tuple[int, ...], int]:
        """The index of each measured table, keyed by attribute positions."""
        return {table.attributes: at for at, table in enumerate(self.measured.tables)}

    @cached_property
    def _tables(self) -> ConsistentNonNegativeTables:
        """The published tables, which are non-negative and consistent."""
        names = self.measured.names
        parts = dict[Names, FloatArray]()
        precision = dict[Names, float]()
        requested = set(chain.from_iterable(self.requested))
        one_way = [(name,) for name in names if name in requested]
        pairs = dict.fromkeys(
            chain.from_iterable(combinations(table, 2) for table in self.requested)
        )
        for table in [*one_way, *pairs, *(table for table in self.requested if len(table) == 3)]:
            for tau, part in residual_parts(self._cells(table, self.mixture), table).items():
                index = self._indices.get(tuple(names.index(name) for name in tau))
                if tau not in parts:
                    parts[tau] = part
                    precision[tau] = (
                        1.0 if index is None else 1 / self.measured.tables[index].std ** 2
                    )
        parts[()] = np.array(self.measured.total)
        return nearest_tables(
            parts, precision, {name: len(parts[name,]) for (name,) in one_way}, list(self.requested)
        )

    def estimate(self, product: Product) -> Answer:
        """Return answers with noise errors from refits and the model error.

        The model error of an answer is estimated from cells of similar size.
        """
        names = product.attributes
        measured = self.measured
        modelled = apply_along_axes(product.operators, self._cells(names, self.mixture))
        moved = [
            apply_along_axes(product.operators, self._cells(names, refit, more)) - modelled
            for refit, more in self._refits
        ]
        within = self._is_fully_measured and any(
            set(names) <= set(table) for table in self.requested
        )
        if within:
            table = self._tables.marginal
        else:
            table = partial(self.measured.counts, self.mixture)
        values = apply_along_axes(
            product.operators, apply_public_facts(table, names, self.impossible, self.public)
        )
        noise = (
            np.mean(np.square(moved), axis=0) + (values / measured.total * measured.total_std) ** 2
        )
        answer = Answer(
            values, np.sqrt(np.maximum(noise, 1e-12)), np.sqrt(self._model_error_variances(product))
        )
        return _apply_public_facts(answer, product, self.impossible, self.public)

    def _model_error_variances(self, product: Product) -> FloatArray:
        """Return the variance that the model's error adds to each answer.

        The variances depend on the size class of a cell. For unmeasured tables, the result has
        typical variances.
        """
        # The variance has three parts: chance; a part of the cell itself; and, for the cells of a
        # bin, a part for the possibility that all rows of the bin are in one cell.
        names = product.attributes
        if not names:
            return np.zeros(product.shape)
        cells = self.measured.counts(self.mixture, names)
        index = self._indices.get(tuple(self.measured.names.index(name) for name in names))
        untold = cells + np.square(_UNMEASURED_SHARE_ERROR * cells)
        if index is None:
            widest = max(len(table.attributes) for table in self.measured.tables)
            missed = self._mixture_error[min(len(names), widest) - 1]
            cells = missed[np.searchsorted(_SIZE_CLASS_LIMITS, cells)] + untold
        else:
            table = self.measured.tables[index]
            fit = self.measured.total * _bin_shares(self.mixture, table)
            if self._is_fully_measured:
                missed = self._moved_error[len(names) - 1]
            else:
                missed = self._mixture_error[len(names) - 1]
            missed_of = missed[np.searchsorted(_SIZE_CLASS_LIMITS, fit)] / np.maximum(
                _sum_bins(cells**2, table.starts), 1e-24
            )
            bins = _sum_bins(np.ones(cells.shape), table.starts), fit, missed_of
            widths, bin_counts, of_bins = (_repeat_for_cells(of, table, cells.shape) for of in bins)
            likely = cells + _EVEN_BIN_FRACTION * (bin_counts / widths - cells)
            # The error of a bin's count is spread over its cells in proportion to their squares, as
            # if the cells had independent errors. The variance of a bin with all rows in one cell
            # is added, unless the measured counts of the cell's values exclude such an error.
            within_bins = np.minimum(
                untold + likely * (bin_counts - likely),
                self._possible_ranges(names, table, bin_counts) ** 2,
            )
            cells = of_bins * cells**2 + np.where(widths == 1, 0.0, within_bins)
        return np.abs(apply_along_axes(product.operators, cells))

    def _possible_ranges(
        self, names: Names, table: NoisyTable, bin_counts: FloatArray
    ) -> FloatArray:
        """Return the largest minus the smallest possible count of each cell.

        A cell has at most as many rows as each value of its attributes. A cell has at least the
        rows of its bin that exceed the largest possible counts of the other cells. The measured
        counts of values are increased by two standard errors, because true counts may be larger.

        Args:
            names: the attributes of the table.
            table: the measured table.
            bin_counts: the count of the bin of each cell.
        """
        most = np.full(bin_counts.shape, np.inf)
        for axis, name in enumerate(names):
            index = self._indices.get((self.measured.names.index(name),))
            if index is None:
                continue
            values = self.measured.tables[index]
            shape = np.ones(most.ndim, dtype=int)
            shape[axis] = -1
            counts = np.maximum(values.counts, 0.0) + _VALUE_ERRORS * values.std
            most = np.minimum(most, counts.reshape(shape))
        most = np.minimum(most, bin_counts)
        others = _repeat_for_cells(_sum_bins(most, table.starts), table, most.shape) - most
        return np.asarray(np.maximum(most - np.maximum(bin_counts - others, 0.0), 0.0))


def _dimension(component: FloatArray) -> int:
    """Return the number of independent entries of a residual component."""
    return math.prod(n - 1 for n in component.shape)


def _repeat_for_cells(values: FloatArray, table: NoisyTable, shape: Sequence[int]) -> FloatArray:
    """Return the value of each bin, repeated for the cells of the bin."""
    for axis, (starts, cells) in enumerate(zip(table.starts, shape, strict=True)):
        values = np.repeat(values, np.diff(starts, append=cells), axis=axis)
    return values


def _bin_shares(mixture: Mixture, table: NoisyTable) -> FloatArray:
    """Return the share of rows in each bin of a table under a mixture."""
    return _sum_bins(mixture.table(table.attributes), table.starts)


def _sum_bins(cells: FloatArray, starts: Sequence[IntArray]) -> FloatArray:
    """Return the sums of cells within bins."""
    for axis, first in enumerate(starts):
        cells = np.add.reduceat(cells, first, axis=axis)
    return cells


def _apply_public_facts(
    answer: Answer,
    product: Product,
    impossible: Sequence[Combination],
    public: Sequence[PublicCounts],
) -> Answer:
    """Set answers that public facts determine to their values, with error 0.

    The public facts are impossible cells, which get the value 0, and public counts.
    """
    if not impossible and not public:
        return answer
    cells = [product.domain.kind(name).size for name in product.attributes]
    never = (
        apply_along_axes(
            product.operators,
            possible_cells(impossible, product.attributes, cells).astype(np.float64),
        )
        == 0
    )
    is_public = never | any(table.determines(product) for table in public)
    if answer.approximation_std is None:
        missed = None
    else:
        missed = np.where(is_public, 0.0, answer.approximation_std)
    return Answer(
        np.where(never, 0.0, answer.values), np.where(is_public, 0.0, answer.noise_std), missed
    )


@dataclass(frozen=True, eq=False)
class ShrunkToModel:
    """Tables between the least-squares tables and a fitted mixture.

    ``tables`` has the requested tables that no other requested table contains.
    """

    least_squares: Estimate
    tables: tuple[Names, ...]
    impossible: tuple[Combination, ...] = ()

    @cached_property
    def _sizes(self) -> dict[str, int]:
        """The number of cells of each attribute in the tables."""
        attributes = {*chain.from_iterable(self.tables)}
        domain = self.least_squares.observation.measurements.domain
        return {name: domain.kind(name).size for name in domain.names if name in attributes}

    @cached_property
    def _parts(self) -> dict[Names, FloatArray]:
        """Residual components of the least-squares tables, by attribute set."""
        return _components(self.least_squares.marginal, self.tables)

    @cached_property
    def _precision(self) -> dict[Names, float]:
        """The precision of each residual component, by attribute set."""
        return residual_precisions(self.least_squares, self._parts, None)

    def _cells_of(self, components: Mapping[Names, FloatArray]) -> dict[Names, FloatArray]:
        """Return the requested and one-way tables with the given components."""
        fitted = [
            *((name,) for name in self._sizes),
            *(names for names in self.tables if len(names) > 1),
        ]
        tables = {}
        for names in fitted:
            shape = [self._sizes[name] for name in names]
            tables[names] = from_residual_parts(components, names, shape)
        return tables

    @cached_property
    def measured(self) -> NoisyTables:
        """The least-squares tables, as independent noisy tables."""
        names_of = tuple(self._sizes)
        tables = []
        for names, counts in self._cells_of(self._parts).items():
            variance = 0.0
            for tau in subsets(names):
                sizes = [self._sizes[name] for name in tau]
                precision = self._precision[tau]
                variance += (
                    math.prod(n - 1 for n in sizes)
                    * (1 / precision if precision > 0 else 0.0)
                    * math.prod(sizes)
                )
            possible = np.where(possible_cells(self.impossible, names, counts.shape), counts, 0.0)
            std = math.sqrt(max(variance / counts.size**2, 1e-9))
            tables.append(
                NoisyTable(
                    tuple(map(names_of.index, names)),
                    tuple(map(np.arange, counts.shape)),
                    possible,
                    std,
                )
            )
        return NoisyTables.from_tables(names_of, tables, self.least_squares.public)

    @cached_property
    def mixture(self) -> Mixture:
        """The mixture fitted to the least-squares tables."""
        return self.measured.mixture(ROUNDS)

    @cached_property
    def _relative_gaps(self) -> dict[Names, float]:
        """The squared distance of each component from the model, over the mean.

        Only sets of several attributes are included. Each ratio is reduced by three standard
        errors, but not below 1.
        """
        # Only the components of these sets are moved. A separate fraction for each component would
        # overfit its noise.
        parts = self._parts
        precision = self._precision
        model = self._model_components(self.mixture)
        several = [tau for tau in parts if len(tau) > 1 and precision[tau] > 0]
        dimensions = np.array([_dimension(parts[tau]) for tau in several])
        gaps = np.array(
            [precision[tau] * float(((parts[tau] - model[tau]) ** 2).sum()) for tau in several]
        )
        over = gaps / np.maximum(
            dimensions * gaps.sum() / max(dimensions.sum(), 1), 1e-9
        ) - 3 * np.sqrt(2 / dimensions)
        return dict(zip(several, np.maximum(over, 1.0).tolist(), strict=True))

    def _interpolate_tables(
        self,
        components: Mapping[Names, FloatArray],
        model_components: Mapping[Names, FloatArray],
        fraction: float,
    ) -> ConsistentNonNegativeTables:
        """Return tables at a fraction of the way from least squares to a model.

        The tables are non-negative and consistent.
        """
        moved = {
            tau: components[tau] + fraction / over * (model_components[tau] - components[tau])
            for tau, over in self._relative_gaps.items()
        }
        return nearest_tables(
            {**components, **moved}, self._precision, self._sizes, list(self.tables)
        )

    @cached_property
    def _published(self) -> tuple[float, ConsistentNonNegativeTables, float]:
        """The fraction with the least estimated risk, its tables, and this risk.

        The risk is an estimate of the tables' squared error, in units of the noise.
        """
        parts = self._parts
        measured = self._scaled(parts)
        model = self._model_components(self.mixture)
        noises = self._simulated_noise()
        refits = map(
            self._model_components,
            self.measured.refitted(
                self.mixture, [list(self._cells_of(noise).values()) for noise in noises]
            ),
        )
        noisier = []
        for noise, refit in zip(noises, refits, strict=True):
            noisier_parts = {tau: part + noise[tau] for tau, part in parts.items()}
            noisier.append((self._scaled(noise), noisier_parts, refit))
        dimension = max(sum(_dimension(parts[tau]) for tau in self._relative_gaps), 1)
        candidates = list[tuple[float, float, ConsistentNonNegativeTables]]()
        for step in _STEPS_TO_MODEL:
            tables = self._interpolate_tables(parts, model, step)
            base = self._scaled(_components(tables.marginal, self.tables))
            squares = float(((base - measured) ** 2).sum())
            for scaled_noise, noisy, refit in noisier:
                noisy_tables = self._interpolate_tables(noisy, refit, step)
                follows = self._scaled(_components(noisy_tables.marginal, self.tables)) - base
                squares += 2 * float(follows @ scaled_noise) / _REFITS
            candidates.append((squares / dimension - 1, step, tables))
        # Stein's estimate is for the published cells: non-negative cells follow less of the noise
        # where cells are empty.
        least, step, tables = min(candidates, key=lambda tried: tried[:2])
        return step, tables, min(max(least + math.sqrt(2 / dimension), (1 - step) ** 2), 1.0)

    def _scaled(self, components: Mapping[Names, FloatArray]) -> FloatArray:
        """Return all moved components in one flat array, in units of their noise."""
        scaled = [
            math.sqrt(self._precision[tau]) * components[tau].reshape(-1)
            for tau in self._relative_gaps
        ]
        return np.concatenate([np.zeros(0), *scaled])

    def _simulated_noise(self) -> list[dict[Names, FloatArray]]:
        """Return several simulations of the noise of each residual component."""
        precision = self._precision
        random = np.random.default_rng(_SEED)
        deviation = {
            tau: math.sqrt(1 / precision[tau]) if precision[tau] > 0 else 0.0 for tau in self._parts
        }
        simulations = []
        for _ in range(_REFITS):
            noise = {}
            for tau, part in self._parts.items():
                unit_noise = residual_parts(random.standard_normal(part.shape), tau)[tau]
                noise[tau] = unit_noise * deviation[tau]
            simulations.append(noise)
        return simulations

    def _model_components(self, mixture: Mixture) -> dict[Names, FloatArray]:
        """Return the residual components of the tables of a mixture."""
        return _components(partial(self.measured.counts, mixture), self.tables)

    def estimate(self, product: Product) -> Answer:
        """Return answers from the published tables, or else from the model.

        The model answers a product if no table contains all its attributes.
        """
        names = product.attributes
        if not any(set(names) <= set(table) for table in self.tables):
            return ModelEstimator(
                self.measured, (), self.impossible, self.least_squares.public
            ).estimate(product)
        _, tables, risk = self._published
        values = apply_along_axes(
            product.operators,
            apply_public_facts(tables.marginal, names, self.impossible, self.least_squares.public),
        )
        noise = self.least_squares.estimate(product).noise_std
        mean_count = self.measured.total / math.prod(self._sizes[name] for name in names)
        # Large cells are moved by more than small ones, in proportion to the rows that they have or
        # leave free. Tables of one attribute are fitted by least squares.
        clipped = np.clip(
            np.minimum(values, self.measured.total - values), _LEAST_CELL_RATIO * mean_count, None
        )
        missed = risk * float((noise**2).mean()) / mean_count * clipped
        answer = Answer(
            values, noise, np.sqrt(missed) if len(names) > 1 else np.zeros(product.shape)
        )
        return _apply_public_facts(answer, product, self.impossible, self.least_squares.public)


def _components(
    cells_of_table: Callable[[Names], FloatArray], tables: Iterable[Names]
) -> dict[Names, FloatArray]:
    """Return the residual components of tables, keyed by attribute set."""
    parts: dict[Names, FloatArray] = {}
    for names in tables:
        for tau, part in residual_parts(cells_of_table(names), names).items():
            parts.setdefault(tau, part)
    return parts


def _published_or_all(estimator: Estimator, product: Product) -> tuple[FloatArray, float]:
    """Return a table's cells, including hidden cells, and the RMS error.

    Hidden cells that the release does not determine are set to 0.
    """
    try:
        answer = estimator.estimate(product)
        return answer.values.reshape(product.shape), math.sqrt(float(np.mean(answer.std**2)))
    except InputError:
        if not product.has_hidden:
            raise
    published = replace(product, query_sets=(identity(),) * len(product.attributes))
    answer = estimator.estimate(published)
    cells = np.zeros(product.shape)
    cells[tuple(map(slice, published.shape))] = answer.values.reshape(published.shape)
    return cells, math.sqrt(float(np.mean(answer.std**2)))


def fitted_model(estimator: Estimator, workload: Sequence[Product]) -> tuple[NoisyTables, Mixture]:
    """Return the noisy tables of a release, and a mixture fitted to them.

    If the release has no mixture, one is fitted to the table of every counted attribute and to the
    requested tables whose cells the release determines.
    """
    if isinstance(estimator, ModelEstimator | ShrunkToModel):
        return estimator.measured, estimator.measured.mixture()
    domain = workload[0].domain
    requested = list(
        dict.fromkeys(product.attributes for product in workload if product.measure is None)
    )
    attributes = set(chain.from_iterable(requested))
    names = tuple(name for name in domain.names if name in attributes)
    if not names:
        raise InputError("Records need counts by at least one attribute; this release has none.")
    tables_made = []
    for table in [*((name,) for name in names), *(table for table in requested if len(table) > 1)]:
        product = table_of_all_cells(domain, table)
        try:
            if product.rows > _MOST_CELLS:
                raise InputError(f"more than {_MOST_CELLS} cells")
            cells, std = _published_or_all(estimator, product)
        except InputError as error:
            if len(table) > 1:  # left out: the model has the tables of its single attributes
                continue
            reason = str(error).rstrip(".")
            raise InputError(
                f"Records need the counts of the cells of {table[0]}, which this release does not "
                f"determine: {reason}. Ask for the marginal of {table[0]} in the release."
            ) from None
        positions = tuple(names.index(name) for name in table)
        tables_made.append(
            NoisyTable(
                positions,
                tuple(np.arange(n) for n in product.shape),
                cells,
                max(std, _LEAST_STD),
            )
        )
    measured = NoisyTables.from_tables(names, tables_made)
    return measured, measured.mixture()


def draw_records(
    mixture: Mixture,
    rows: int,
    seed: int,
    impossible: Sequence[Mapping[int, Sequence[int]]] = (),
    public: Sequence[tuple[tuple[int, ...], KnownSums]] = (),
) -> IntArray:
    """Return synthetic records as codes, in random order, shape (rows, n).

    Rows with impossible combinations of codes are replaced by new draws. If a public count is
    exceeded by the records of its group, some of these records get the codes of groups with too few
    records. Only the attributes of the public counts change.
    """
    codes = _draw_rows(mixture, rows, np.random.default_rng(seed))
    for again in range(_MOST_REDRAWS + 1):
        wrong = np.flatnonzero(impossible_rows(codes, impossible))
        if not len(wrong):
            break
        _check_attempts(again, len(wrong))
        codes[wrong] = _draw_rows(mixture, len(wrong), np.random.default_rng([seed, 2, again]))
    for attributes, sums in public:
        _project_to_public_counts(
            codes, list(attributes), sums, impossible, np.random.default_rng([seed, 3, *attributes])
        )
    return codes


def _check_attempts(attempts: int, invalid_records: int) -> None:
    """Raise if records are still impossible after the last attempt."""
    if attempts == _MOST_REDRAWS:
        raise InputError(
            f"{invalid_records} records still have impossible values after {attempts} tries. "
            "State fewer impossible combinations."
        )


def _project_to_public_counts(
    codes: IntArray,
    attributes: list[int],
    sums: KnownSums,
    impossible: Sequence[Mapping[int, Sequence[int]]],
    random: np.random.Generator,
) -> None:
    """Edit as few records as possible, in place, such that public counts hold.

    Afterwards, every group has its public share of the rows.
    """
    shape = sums.counts.shape
    exact = sums.counts.reshape(-1) * (len(codes) / sums.counts.sum())
    targets = np.floor(exact + 1e-9).astype(np.int64)
    targets[np.argsort(targets - exact, kind="stable")[: len(codes) - int(targets.sum())]] += 1
    for again in range(_MOST_REDRAWS + 1):
        coordinates = [
            groups[codes[:, attribute]]
            for attribute, groups in zip(attributes, sums.groups, strict=True)
        ]
        if coordinates:
            groups = np.ravel_multi_index(coordinates, shape)
        else:
            groups = np.zeros(len(codes), dtype=np.int64)
        order = random.permutation(len(codes))
        order = order[np.argsort(groups[order], kind="stable")]
        begins = np.concatenate([[0], np.cumsum(np.bincount(groups, minlength=sums.counts.size))])
        surplus = order[np.arange(len(codes)) - begins[groups[order]] >= targets[groups[order]]]
        if not len(surplus):
            return
        _check_attempts(again, len(surplus))
        moved = codes[surplus]
        for row, group in enumerate(
            random.permutation(
                np.repeat(np.arange(sums.counts.size), np.maximum(targets - np.diff(begins), 0))
            )
        ):
            if begins[group] < begins[group + 1]:  # copy the codes from a row of that group
                moved[row, attributes] = codes[
                    order[random.integers(begins[group], begins[group + 1])], attributes
                ]
            else:
                indices = np.unravel_index(group, shape)
                moved[row, attributes] = [
                    np.flatnonzero(group_of == at)[0]
                    for group_of, at in zip(sums.groups, indices, strict=True)
                ]
        right = ~impossible_rows(moved, impossible)
        codes[surplus[right]] = moved[right]


def impossible_rows(
    codes: IntArray, impossible: Sequence[Mapping[int, Sequence[int]]]
) -> BoolArray:
    """Return whether each record has an impossible combination of codes."""
    is_impossible = np.zeros(len(codes), dtype=bool)
    for combination in impossible:
        is_impossible |= np.logical_and.reduce(
            [np.isin(codes[:, attribute], values) for attribute, values in combination.items()]
        )
    return is_impossible


def _draw_rows(mixture: Mixture, rows: int, random: np.random.Generator) -> IntArray:
    """Return records drawn from a mixture as codes, (rows, attributes)."""
    drawn = np.empty((rows, len(mixture.distributions)), dtype=np.int64)
    begin = 0
    for kind, many in enumerate(round_systematically(mixture.shares, rows, random).tolist()):
        for attribute, shares in enumerate(mixture.distributions):
            codes = np.repeat(
                np.arange(len(shares)), round_systematically(shares[:, kind], many, random)
            )
            drawn[begin : begin + many, attribute] = random.permutation(codes)
        begin += many
    return drawn[random.permutation(rows)]


def round_systematically(shares: FloatArray, total: int, random: np.random.Generator) -> IntArray:
    """Round shares to integers that sum to ``total``, by systematic sampling.

    Each integer differs from its exact share of the total by less than one, and is an unbiased
    estimate of that share.
    """
    ends = np.cumsum(shares)
    steps = np.floor(ends / ends[-1] * total + random.random())
    steps[-1] = total
    return np.diff(np.minimum(steps, total), prepend=0.0).astype(np.int64)
