"""Sums over all subsets of very many sets of attributes, a size of sets at a time."""

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from leastnoise._check.arrays import FloatArray, IntArray

_MOST_BITS = 62


class Terms(NamedTuple):
    """Sets of one size, with a number for each of their subsets: weight times the product of what is inside and what is outside of it."""

    sets: IntArray
    inside: FloatArray
    outside: FloatArray
    weights: FloatArray


def subset_sums(terms: Iterable[Terms], count: int) -> list[tuple[IntArray, FloatArray]]:
    """For every subset of a set the sum of its numbers in all sets."""
    parts: dict[int, list[tuple[IntArray, FloatArray]]] = {}
    for one in terms:
        chosen: list[tuple[tuple[int, ...], FloatArray]] = [((), one.weights)]
        for column in range(one.sets.shape[1]):
            out, in_ = one.outside[:, column], one.inside[:, column]
            chosen = [(more, own * factor) for columns, own in chosen for more, factor in ((columns, out), ((*columns, column), in_))]
        for columns, own in chosen:
            parts.setdefault(len(columns), []).append((one.sets[:, list(columns)], own))
    found = []
    for size in sorted(parts):
        sets, sums = zip(*parts[size], strict=True)
        found.append(_summed(np.concatenate(sets), np.concatenate(sums), count))
    return found


def _summed(sets: IntArray, values: FloatArray, count: int) -> tuple[IntArray, FloatArray]:
    size = sets.shape[1]
    if size * math.log2(max(2, count)) < _MOST_BITS:
        keys = np.zeros(len(sets), dtype=np.int64)
        for column in sets.T:
            keys = keys * count + column
        _, first, place = np.unique(keys, return_index=True, return_inverse=True)
        distinct = sets[first]
    else:
        distinct, place = np.unique(sets, axis=0, return_inverse=True)
    return distinct, np.asarray(np.bincount(place.reshape(-1), values, len(distinct)), dtype=np.float64)
