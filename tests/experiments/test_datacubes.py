"""The data cube experiment: published figures, simulated errors, and a small run."""

import math

import numpy as np
import pytest

from estimation.agreement import disagreement
from experiments import datacube_strategies as cubes
from experiments import datacubes
from leastnoise._strategies import table_sizes
from leastnoise._trusted.check import InputError

SHAPES = {"NLTCS": (2,) * 16, "Adult": (9, 16, 7, 15, 6, 5, 2, 2)}
# Total squared error at epsilon 1: Q, Q+, Q+ with least squares, F+. These are the squares of the
# errors in docs/results/datacubes.md, times the number of cells. The planners' own errors are in
# tests/strategies.
FIGURES = {
    ("NLTCS", "1a"): (176824, 170017, 57228, 39239),
    ("Adult", "2a"): (5.54e7, 2.97e7, 1.60e7, 5.9e9),
}


@pytest.mark.parametrize(("data", "workload"), FIGURES)
def test_total_errors_match_the_results_page(data, workload):
    shape = SHAPES[data]
    targets = cubes.cube_workload(len(shape), workload)
    plain, best, four = (cubes.method(name, shape, targets) for name in ("Q", "Q+", "F+"))
    totals = (
        2 * plain.error,
        2 * best.error,
        2 * cubes.least_squares_error(shape, targets, best),
        2 * four.error,
    )
    for value, figure in zip(totals, FIGURES[data, workload], strict=True):
        assert value == pytest.approx(figure, rel=0.013 if figure > 1e6 else 2e-3)


def test_numbers_of_fourier_coefficients():
    published = {"NLTCS": (17, 77, 32, 137, 417, 242), "Adult": (69, 1223, 864, 1969, 15651, 18544)}
    for data, figures in published.items():
        for workload, figure in zip(datacubes.WORKLOADS, figures, strict=True):
            groups = cubes.fourier_groups(
                SHAPES[data], cubes.cube_workload(len(SHAPES[data]), workload)
            )
            assert sum(count for count, _ in groups.values()) == figure


def test_cell_errors_match_the_results_page():
    targets = cubes.cube_workload(16, "2")
    cells = table_sizes(SHAPES["NLTCS"], targets).sum()
    for name, figure in (("I", 181.0), ("Q", 169.7), ("F", 96.9), ("F+", 68.0)):
        assert math.sqrt(
            2 * cubes.method(name, SHAPES["NLTCS"], targets).error / cells
        ) == pytest.approx(figure, abs=0.05)


@pytest.mark.parametrize("name", cubes.STRATEGIES)
def test_draws_are_consistent_and_as_large_as_expected(name):
    # 400 draws; relative standard error of a mean of squares of sums of Laplace variables below 5
    # per cent: 3 of them, and a scale that is wrong by a fifth is 6 of them away from that.
    # Fourier tables agree over the cells of the binary coding, of which a size that is no power of
    # two has too many.
    shape = (4 if name[0] == "F" else 3, 2, 4, 2)
    targets = cubes.sets_of_sizes(4, 1, 2)
    ready = cubes.method(name, shape, targets)
    rng = np.random.default_rng(3)
    draws = [ready.draw(rng) for _ in range(400)]
    assert disagreement(draws[0]) < 1e-9
    mean = {target: np.mean([draw[target] for draw in draws], axis=0) for target in targets}
    spread = {target: np.std([draw[target] for draw in draws], axis=0) for target in targets}
    assert max(float(np.abs(mean[t] / spread[t]).max()) for t in targets) * math.sqrt(400) < 5
    squares = np.mean([sum(float((error**2).sum()) for error in draw.values()) for draw in draws])
    # Sums of one table are dependent: after consistency there is no closed form.
    if name[0] == "C":
        assert squares <= 2 * ready.error * 1.15
    else:
        expected = cubes.consistent_error(shape, targets, ready) if name[0] == "Q" else ready.error
        assert squares == pytest.approx(2 * expected, rel=0.15)


def test_agreed_tables_match_dense_least_squares():
    rng = np.random.default_rng(3)
    shape = (3, 2, 4)
    tables = [(0, 1), (1, 2), (0, 2), (2,), ()]
    theta = rng.uniform(0.2, 4, len(tables))
    noisy = {table: rng.normal(size=[shape[i] for i in table]) for table in tables}
    cells = np.eye(24).reshape(*shape, 24)
    rows = {
        table: cells.sum(axis=tuple({0, 1, 2} - {*table})).reshape(-1, 24)
        for table in [*tables, (1,)]
    }
    scale = np.concatenate(
        [np.full(noisy[table].size, weight) for table, weight in zip(tables, theta, strict=True)]
    )
    matrix = np.vstack([rows[table] for table in tables])
    target = np.concatenate([noisy[table].reshape(-1) for table in tables])
    fitted = np.linalg.lstsq(matrix * scale[:, None], target * scale, rcond=None)[0]
    agreed = cubes.least_squares(noisy, theta, [*tables, (1,)])  # a table that was not measured too
    assert disagreement(noisy) > 0.5
    assert disagreement(agreed) < 1e-9
    assert all(np.allclose(agreed[table].reshape(-1), rows[table] @ fitted) for table in agreed)


def test_gaussian_residual_optimum_is_least():
    errors = cubes.gaussian_errors(SHAPES["Adult"], cubes.cube_workload(8, "1*"))
    assert min(errors, key=lambda name: errors[name]) == "residual"
    binary = cubes.gaussian_errors((2,) * 6, cubes.sets_of_sizes(6, 2))
    assert binary["residual"] == pytest.approx(binary["F+"])
    assert binary["residual"] == pytest.approx(datacubes.residual_optimum(6, 2))


@pytest.mark.slow
def test_datacubes_run_writes_tables_and_figures(tmp_path, monkeypatch):
    shapes = {"Adult": (3, 2, 2), "NLTCS": (2,) * 3}
    sets = tuple(
        datacubes.DataSet(d.name, d.file, shapes[d.name], d.figure) for d in datacubes.DATA_SETS
    )
    monkeypatch.setattr(datacubes, "DATA_SETS", sets)
    monkeypatch.setattr(datacubes, "GROWTH", {1: (2, 3), 2: (2, 3)})
    monkeypatch.setattr(datacubes, "QUICK", 2)
    monkeypatch.setattr(datacubes, "EPSILONS", (0.1, 1.0))
    rng = np.random.default_rng(5)
    folder = tmp_path / "microdata"
    folder.mkdir()
    for data_set in sets:
        rows = np.column_stack([rng.integers(0, n, 50) for n in data_set.shape])
        text = "\n".join(
            ",".join(map(str, row))
            for row in [[f"x{i}" for i in range(len(data_set.shape))], *rows.tolist()]
        )
        (folder / data_set.file).write_text(text + "\n", encoding="utf-8")
    lines: list[str] = []
    tables = datacubes.run(tmp_path, tmp_path / "out", quick=True, report=lines.append)
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        f"{name}.csv" for name in tables
    } | {
        f"{stem}.{suffix}"
        for stem in ("figure-4-adult", "figure-5-nltcs", "figure-6-seconds", "table-1-growth")
        for suffix in ("png", "svg")
    }
    assert len(tables["relative_error"]) == 2 * 6 * len(cubes.STRATEGIES) * len(datacubes.EPSILONS)
    assert all(row["relative error"] > 0 for row in tables["relative_error"])
    assert any("20-25%" in line for line in lines)


def test_datacubes_report_missing_data(tmp_path):
    with pytest.raises(InputError, match=r"adult8\.csv"):
        datacubes.run(tmp_path, tmp_path / "out")
