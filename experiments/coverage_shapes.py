"""Generate or read histograms and tables of many shapes for the study of coverage."""

from pathlib import Path

import numpy as np

from experiments.common import Wholes


def histograms(size: int, records: int, seed: int) -> dict[str, Wholes]:
    """Draw histograms of several shapes with about ``records`` records, by name.

    Args:
        size: number of cells.
        records: number of records of each histogram except the empty one.
        seed: seed of the shapes and of the records.

    >>> {name: int(x.sum()) for name, x in histograms(64, 100, 1).items()}["empty"]
    0
    """
    r = np.random.default_rng(seed)
    t = np.arange(size) / size
    few = np.zeros(size)
    few[r.integers(0, size, max(3, size // 50))] = r.exponential(1, max(3, size // 50))
    spikes = np.full(size, 0.05)
    spikes[r.integers(0, size, max(2, size // 100))] = size / 10
    borders = np.concatenate([[0], np.sort(r.integers(0, size, 8)), [size]])
    shares = {
        "even": np.ones(size),
        "sparse": few,
        "spikes": spikes,
        "plateaus": np.repeat(r.exponential(1, 16) ** 2, -(-size // 16))[:size],
        "steps": np.repeat(r.exponential(1, 9) * (r.random(9) < 0.6) + 1e-3, np.diff(borders)),
        "bell": np.exp(-(((t - 0.4) / 0.15) ** 2) / 2),
        "two bells": np.exp(-(((t - 0.2) / 0.02) ** 2) / 2)
        + np.exp(-(((t - 0.7) / 0.08) ** 2) / 2) / 2,
        "zipf": 1 / (1 + np.arange(size)),
        "heavy tail": r.permutation(1 / (1 + np.arange(size)) ** 1.2),
        "rough": r.exponential(1, size),
        "comb": np.where(np.arange(size) % 10 == 0, 1, 0.02) * np.exp(-3 * t),
        "daily": 1.1 + np.sin(2 * np.pi * np.arange(size) / 24) + (t > 0.5),
        "one cell": np.where(np.arange(size) == size // 3, 1.0, 1e-4 / size),
    }
    counts = {
        name: r.multinomial(records, share / share.sum()).astype(np.int64)
        for name, share in shares.items()
    }
    return {"empty": np.zeros(size, dtype=np.int64), **counts}


def tables(side: int, records: int, seed: int) -> dict[str, Wholes]:
    """Draw tables of side x side cells by name.

    >>> tables(8, 100, 1)["even"].shape
    (8, 8)
    """
    r = np.random.default_rng(seed)
    t = np.arange(side) / side
    bell = np.exp(-(((t - 0.4) / 0.15) ** 2) / 2)
    few = np.zeros((side, side))
    few[tuple(r.integers(0, side, (2, max(3, side**2 // 100))))] = r.exponential(
        1, max(3, side**2 // 100)
    )
    coarse = r.exponential(1, (4, 4)) ** 2
    shares = {
        "even": np.ones((side, side)),
        "bell": np.outer(bell, bell),
        "sparse": few,
        "blocks": np.kron(coarse, np.ones((-(-side // 4),) * 2))[:side, :side],
        "rough": r.exponential(1, (side, side)),
        "band": np.exp(-(((t[:, None] - t) / 0.05) ** 2)),
        "heavy tail": r.permutation(1 / (1 + np.arange(side**2)) ** 1.2).reshape(side, side),
    }
    counts = {"empty": np.zeros((side, side), dtype=np.int64)}
    for name, share in shares.items():
        cells = r.multinomial(records, (share / share.sum()).reshape(-1))
        counts[name] = cells.reshape(side, side).astype(np.int64)
    return counts


def real_histograms(data: Path, size: int) -> dict[str, Wholes]:
    """Read the histograms of ``hist1d``, with cells joined to ``size`` cells."""
    full = {
        path.name.split(".")[0]: np.load(path).astype(np.int64)
        for path in sorted((data / "hist1d").glob("*.npy"))
    }
    return {name: x.reshape(size, -1).sum(axis=1) for name, x in full.items()}


def real_tables(data: Path, side: int) -> dict[str, Wholes]:
    """Read the tables of ``hist2d``, with cells joined to side x side."""
    full = {
        path.name.split(".")[0]: np.load(path).astype(np.int64)
        for path in sorted((data / "hist2d").glob("*.npy"))
    }
    return {
        name: x.reshape(side, x.shape[0] // side, side, -1).sum(axis=(1, 3))
        for name, x in full.items()
    }
