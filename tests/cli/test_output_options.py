"""Tests of optional results of a spec: their files, warnings, and refusals before payment."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from cli.conftest import SPEC, assert_contains, edit, files
from leastnoise._session import read_release as read

SMALL = SPEC.replace("integers = [17, 90]", "integers = [17, 40]\noutside = 'clip'").replace(
    'epsilon = "1"', 'epsilon = "1/10"'
)
OPTIONS = '[output]\nnnls = true\nlocal_non_negative = true\ncovariances = ["sex", "q4"]\n'


@pytest.fixture
def release(folder, run, prepare_once):
    """Return a release with all the options from the directory `out`."""

    def write_release():
        Path("people.toml").write_text(SMALL + OPTIONS, encoding="utf-8")
        result = run.succeeds("release", "people.toml", "--out", "out", "--seed", 3)
        Path("warnings.txt").write_text(result.err)

    return read(prepare_once("release", write_release) / "out")


@pytest.fixture
def tables(release):
    """Return the written tables of the release by id."""
    paths = sorted(Path("out/answers").glob("q*.csv"))
    return {path.name.partition("-")[0]: pd.read_csv(path) for path in paths}


def test_biased_columns_are_warned_about(release):
    assert_contains(
        Path("warnings.txt").read_text(),
        "nnls = true adds answer_nnls, which is biased",
        "local_non_negative = true adds answer_local, which is biased",
        "The total is fixed. nnls_rmse is simulated and is not a promise",
    )
    assert_contains(
        Path("out/report.html").read_text(encoding="utf-8"),
        "cut off below 0 are added to other cells",
        "no known errors",
        "<code>covariances/</code>",
        "q2, q4",
    )


def test_output_options_add_to_unbiased_answers(release, tables):
    assert list(tables) == ["q1", "q2", "q3", "q4", "q5"]
    unbiased = ["answer", "noise_std", "low", "high"]
    for table in tables.values():
        assert [*table][-7:] == [*unbiased, "answer_nnls", "nnls_rmse", "answer_local"]
        assert table["answer_nnls"].min() >= 0
        assert table["answer_local"].min() >= 0
    assert tables["q4"]["answer"].min() < 0
    # tests/release/test_extras.py compares the columns with independent projections.
    for name in ("answer_nnls", "answer_local"):
        assert tables["q4"][name].sum() == pytest.approx(tables["q1"]["answer"][0])
    np.testing.assert_allclose(release.tables["q4"].local.reshape(-1), tables["q4"]["answer_local"])


def test_manifest_describes_the_added_columns(release):
    manifest = json.loads(Path("out/manifest.json").read_text(encoding="utf-8"))
    columns = manifest["post_processing"]["columns"]
    assert list(columns) == ["answer_nnls", "nnls_rmse", "answer_local"]
    assert "no errors are known for them" in columns["answer_local"]
    assert manifest["covariances"]["tables"] == [
        {"query": name, "files": f"covariances/{name}"} for name in ("q2", "q4")
    ]


def test_written_covariances_match_the_error_bars(release, tables):
    assert release.options.covariances == ("q2", "q4")
    rows = pd.read_csv("out/covariances/q4.csv")
    assert len(rows) == 48 * (48 + 1) // 2
    answers = rows["answer"] - 1
    other_answers = rows["other_answer"] - 1
    matrix = np.zeros((48, 48))
    matrix[answers, other_answers] = rows["covariance"]
    matrix[other_answers, answers] = rows["covariance"]
    np.testing.assert_allclose(np.sqrt(np.diag(matrix)), tables["q4"]["noise_std"])
    np.testing.assert_allclose(matrix, release.covariance("q4"))


TOO_MANY_CELLS = (
    "the tables that local_non_negative projects must be of at most 4194304 cells; got 6000225. "
    "Leave out local_non_negative"
)
SUMS = {
    "[0, 1000]": "[-1, 1000]",
    "marginals = {": 'sum = "pay"\nmarginals = {',
    "weight": 'sum = "pay"\nweight',
}
LOWEST = "are possible only for counts and for measures whose lowest value is at least 0"


@pytest.mark.parametrize(
    ("change", "output", "message"),
    [
        ({}, 'covariances = ["zone"]', "A table must be called by its id or name; got 'zone'"),
        (
            {"count = 10": "count = 3000"},
            'covariances = ["q5"]',
            "must be of at most 2048 answers; got 3000",
        ),
        (
            {"count = 10": "count = 600"},
            "nnls = true",
            "must be of at most 65536 cells; got 88800. Leave out nnls",
        ),
        (
            {"count = 10": "count = 6000000", '"prefix" }': '"identity" }'},
            "local_non_negative = true",
            TOO_MANY_CELLS,
        ),
        (
            {'"prefix" }\n': "{ ranges = [[0, 400]] } }\n", '"marginals"\n': '"workload"\n'},
            "local_non_negative = true",
            "do not determine",
        ),
        (SUMS, "nnls = true", LOWEST),
    ],
)
def test_invalid_output_options_are_refused_unpaid(folder, run, change, output, message):
    edit(folder, *change.items(), ("[plan]", f"[output]\n{output}\n[plan]"))
    run.is_refused(message, "release", "people.toml", "--out", "out")
    if not change:
        run.is_refused(message, "plan", "people.toml")
    assert files(folder) == ["people.csv", "people.toml"]
