"""``leastnoise experiments dawa-plane``: the data of the study of ``dawa`` on two attributes, and the study over them."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from experiments.dawa_rectangles import QUICK, Size, compare
from leastnoise._check import InputError

Wholes = NDArray[np.int64]
Shape = tuple[int, int]


def read_data(folder: Path) -> dict[str, Wholes]:
    """Histograms of 128 x 128 cells, and tables of two attributes of microdata, of sides that are no powers of two."""
    data = {}
    for path in sorted((folder / "hist2d").glob("*.256x256.npy")):
        data[path.name.split(".")[0]] = np.load(path).reshape(128, 2, 128, 2).sum(axis=(1, 3)).astype(np.int64)
    folder = folder / "microdata"
    cps, adult, blood = (read_columns(folder / name) for name in ("cps.csv", "adult14_pgm.csv", "transfusion.csv"))
    data["CPS income x age"] = tabulate(cps["income"] // 2000, cps["age"] - 15, (250, 76))
    data["ADULT age x hours"] = tabulate(adult["age"], adult["hours-per-week"], (85, 99))
    data["ADULT age x fnlwgt"] = tabulate(adult["age"], adult["fnlwgt"], (85, 100))
    data["ADULT gain x loss"] = tabulate(adult["capital-gain"], adult["capital-loss"], (100, 100))
    data["ADULT school x country"] = tabulate(adult["education-num"], adult["native-country"], (16, 42))
    recency, _, _, since, _ = blood.values()
    data["BLOOD recency x time"] = tabulate(recency, since, (75, 99))
    return data


def read_columns(path: Path) -> dict[str, Wholes]:
    """Columns of whole numbers by name."""
    names = path.read_text("utf-8").split("\n", 1)[0].strip().split(",")
    return dict(zip(names, np.loadtxt(path, delimiter=",", skiprows=1, dtype=np.int64, unpack=True), strict=True))


def tabulate(row: Wholes, column: Wholes, shape: Shape) -> Wholes:
    """Counts of pairs; values beyond the last go there."""
    place = np.minimum(row, shape[0] - 1) * shape[1] + np.minimum(column, shape[1] - 1)
    return np.bincount(place, minlength=shape[0] * shape[1]).reshape(shape).astype(np.int64)


def run(data: Path, out: Path, *, quick: bool = False, seed: int = 0, report: Callable[[str], None] = print) -> None:
    """``leastnoise experiments dawa-plane``: the mechanism as built against published ones; see ``dawa_rectangles``.

    Args:
        data: the folder with ``hist2d`` and ``microdata``.
        out: where tables and figures go.
        quick: two tables, one budget, two trials.
        seed: of noise and random rectangles.
        report: called with every line to be shown.
    """
    if not (data / "hist2d").is_dir():
        raise InputError(f"The experiment needs histograms in {data / 'hist2d'}; got none. Say where they are: --data DIR.")
    compare(read_data(data), out, QUICK if quick else Size(), seed, report)
