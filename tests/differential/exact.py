"""Exact answers of statement columns, from the encoders and operators of leastnoise.

What a plan and its noise add is tested elsewhere; without them a statement takes milliseconds.
"""

import numpy as np
import pandas as pd
import pyarrow as pa

from behind_the_wall import amount_encoder, cell_encoder, to_column
from leastnoise._domain import CompleteCount, DeviationProduct, UnitCount, ValueCount, Weighted
from leastnoise._trusted.linop import dense

Answers = tuple[np.ndarray, np.ndarray, np.ndarray]


class ExactNumbers:
    """Answers workloads of single columns of statements from rows."""

    def __init__(self, rows, unit):
        self._columns = {name: _column(rows[name]) for name in rows}
        self._count = len(rows)
        self._unit = None if unit is None else rows[unit].to_numpy()

    def __call__(self, workload, column=""):
        """Return the exact answers, which are also the ends of their intervals."""
        if workload.statistics and workload.statistics[0].form.of_several:
            answers = self._of_two_measures(workload, column)
        elif workload.statistics:
            counts, sums = (self._product(product) for product in workload.products)
            with np.errstate(invalid="ignore"):
                answers = np.where(counts > 0, sums / counts, np.nan)
        else:
            (answers,) = (self._product(product) for product in workload.products)
        return answers, answers, answers

    def _of_two_measures(self, workload, column):
        """Return a correlation, a covariance or the coefficients of a line."""
        (statistic,) = workload.statistics
        sums = dict(zip(statistic.sum_factors, map(self._product, workload.products), strict=True))
        of, on = statistic.variables
        centre = {}
        for name in (of, on):
            measure = workload.domain.measure(name)
            centre[name] = (measure.low_units + measure.high_units) // 2
        with np.errstate(invalid="ignore", divide="ignore"):
            mean_of, mean_on = (sums[(name,)] / sums[()] for name in (of, on))
            products = sums.get((of, on), sums.get((on, of)))
            covariance = products / sums[()] - mean_of * mean_on
            variance = sums[on, on] / sums[()] - mean_on**2
            if statistic.kind == "regression":
                slope = covariance / np.where(variance > 1e-9, variance, np.nan)
                intercept = mean_of + centre[of] - slope * (mean_on + centre[on])
                return np.stack([intercept, slope], axis=-1)
            if column == "covariance":
                return covariance[..., None]
            other_variance = sums[of, of] / sums[()] - mean_of**2
            spread = np.sqrt(variance * other_variance)
            return (covariance / np.where(spread > 1e-9, spread, np.nan))[..., None]

    def _product(self, product):
        """Return the sums over the rows that every attribute of a product counts."""
        measure = None if product.measure is None else product.domain.measure(product.measure)
        is_counted = np.ones(self._count, dtype=bool)
        cells = {}
        for name in product.attributes:
            cells[name] = cell_encoder(product.domain.rule(name))(self._columns[name])
            is_counted &= cells[name] >= 0
        shape = [product.domain.cells(name) for name in product.attributes]
        # The first axis has one cell, so that there is an axis even without attributes.
        places = np.stack(
            [np.zeros(is_counted.sum(), dtype=int), *(cells[name][is_counted] for name in cells)]
        )
        if isinstance(measure, UnitCount):
            units = pd.factorize(self._unit[is_counted])[0]
            if measure.has_groups:
                places, units = _places_of_groups(measure, product.attributes, places, units)
            places = np.unique(np.stack([*places, units]), axis=1)[:-1]
            amounts = np.ones(places.shape[1])
        else:
            amounts = self._amounts(measure)[is_counted]
        counts = np.zeros([1, *shape])
        np.add.at(counts, tuple(places), amounts)
        counts = counts[0]
        for axis, operator in enumerate(product.operators):
            matrix = np.asarray(dense(operator), dtype=float)
            counts = np.moveaxis(np.tensordot(matrix, counts, axes=(1, axis)), 0, axis)
        return counts

    def _amounts(self, measure):
        if measure is None:
            return np.ones(self._count)
        if isinstance(measure, Weighted):
            return self._amounts(measure.of) * self._amounts(measure.weight)
        if isinstance(measure, (CompleteCount, DeviationProduct)):
            amounts = np.ones(self._count)
            for present in measure.present:
                amounts *= self._amounts(ValueCount(present))
            if isinstance(measure, DeviationProduct):
                for factor, centre in zip(measure.factors, measure.centres, strict=True):
                    amounts *= self._amounts(factor) - centre
            return amounts
        return amount_encoder(measure)(self._columns[measure.column]).astype(float)


def _places_of_groups(measure, names, places, units):
    """Return a column for each group that a row is in, with the group's place for its cell."""
    for name, groups, places_of_groups in zip(
        measure.attributes, measure.groups, measure.places, strict=True
    ):
        if groups is None:
            continue
        axis = names.index(name) + 1
        copies = []
        for group, place in zip(groups, places_of_groups, strict=True):
            inside = np.isin(places[axis], group)
            moved = places[:, inside]
            moved[axis] = place
            copies.append((moved, units[inside]))
        places = np.concatenate([moved for moved, _ in copies], axis=1)
        units = np.concatenate([of_copy for _, of_copy in copies])
    return places, units


def _column(values):
    return to_column(pa.array(values, from_pandas=True))
