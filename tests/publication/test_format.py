"""The stored measurement formats are read today, by the package and by its page."""

import csv
import json
import math
from functools import reduce

import numpy as np
import pytest

import leastnoise as ln
from leastnoise._error import block_variance
from leastnoise._trusted.linop import dense, operator_classes, to_json
from trusted.linop.conformance import CASES


@pytest.mark.parametrize(
    "case",
    [case for case in CASES if case.operator.rows * case.operator.size < 10_000],
    ids=lambda case: case.name,
)
def test_page_knows_every_operator(case, page):
    written = json.loads(json.dumps(to_json(case.operator)))
    assert np.array_equal(page.matrix(written), dense(case.operator))


def test_every_kind_of_operator_is_tried():
    assert {type(case.operator) for case in CASES} == {
        operator_class
        for operator_class in operator_classes()
        if operator_class.__module__.startswith("leastnoise.")
    }


def test_stored_release_is_read_by_the_page(stored, page):
    release = ln.read_release(stored)
    read = list(page.tables(stored))
    assert len(read) == len(release.measurements.blocks)
    for table, block, values in zip(
        read, release.measurements.blocks, release.observation.values, strict=True
    ):
        assert tuple(table["attributes"]) == block.attributes
        assert table["measure"] == block.measure
        assert np.array_equal(table["values"], values / release.measurements.grid)
        expected = [dense(factor.operator) for factor in block.factors]
        assert all(
            np.array_equal(matrix, expected_matrix)
            for matrix, expected_matrix in zip(table["matrices"], expected, strict=True)
        )
        assert table["scales"] == pytest.approx(float(block.scale) / block.scaling())
        # Variances agree up to a sixth of a squared step of the noise.
        variances = [
            page.variance(table["noise"], scale, table["grid"]) for scale in table["scales"]
        ]
        assert variances == pytest.approx(
            block_variance(release.measurements, block) / block.scaling() ** 2,
            rel=1e-6,
            abs=0.17 / table["grid"] ** 2,
        )


def test_stored_release_still_gives_its_answers(stored):
    release = ln.read_release(stored)
    manifest = json.loads((stored / "manifest.json").read_text())
    for entry in manifest["answers"]["tables"]:
        table = release.tables[entry["query"]]
        with (stored / f"{entry['files']}.csv").open(newline="") as file:
            rows = list(csv.DictReader(file))
        for name in ("answer", "noise_std", "low", "high"):
            # This version solves answers on buckets by another matrix, so their last digits differ.
            assert [float(row[name]) for row in rows] == pytest.approx(
                table.numbers()[name].tolist(), rel=1e-9, abs=1e-8
            )


def test_page_is_enough_to_recompute_answers(page, laplace):
    release = ln.read_release(laplace)
    counts = [table for table in page.tables(laplace) if table["measure"] is None]
    names = [
        name
        for name in release.plan.domain.names
        if any(name in table["attributes"] for table in counts)
    ]
    rows = []
    values = []
    for table in counts:
        # Each attribute has a factor of its own here.
        matrices = dict(zip(table["attributes"], table["matrices"], strict=True))
        parts = [
            matrices.get(name, np.ones((1, release.plan.domain.kind(name).size))) for name in names
        ]
        std = np.sqrt(
            [page.variance(table["noise"], scale, table["grid"]) for scale in table["scales"]]
        )
        rows.append(reduce(np.kron, parts) / std[:, None])
        values.append(table["values"] / std)
    cells = np.linalg.lstsq(np.vstack(rows), np.concatenate(values), rcond=None)[0].reshape(
        [release.plan.domain.kind(name).size for name in names]
    )
    by_sex = cells.sum(axis=tuple(axis for axis, name in enumerate(names) if name != "sex"))
    assert by_sex == pytest.approx(release.tables["sex"].answer, abs=1e-6)
    assert math.isclose(by_sex.sum(), release.sum("sex").answer.item(), abs_tol=1e-6)
