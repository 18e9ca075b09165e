"""Results beside the unbiased answers, asked for in the spec: written, warned about, and refused before anything is paid."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from cli.conftest import SPEC, Run
from leastnoise._session import read_release as read

OPTIONS = """
[output]
nnls = true
local_non_negative = true
covariances = ["sex", "q4"]
"""
SMALL = SPEC.replace("integers = [17, 90]", "integers = [17, 40]\noutside = 'clip'").replace('epsilon = "1"', 'epsilon = "1/10"')


def numbers(path: Path) -> dict[str, np.ndarray]:
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    keys = {"query", "sex", "age", "income", "income_low", "income_high"}
    return {name: np.array([float(row[name] or "nan") for row in rows]) for name in rows[0] if name not in keys}


def test_everything_beside_the_unbiased_answers(folder: Path, run: Run) -> None:
    Path("people.toml").write_text(SMALL + OPTIONS, encoding="utf-8")
    done = run("release", "people.toml", "--out", "out", "--seed", 3)
    assert done.code == 0, done.err
    assert "nnls = true adds answer_nnls, which is biased" in done.err
    assert "The total is fixed, nnls_rmse is simulated and no promise" in done.err
    assert "local_non_negative = true adds answer_local, which is biased" in done.err
    tables = {path.name.partition("-")[0]: numbers(path) for path in sorted((folder / "out/answers").glob("q*.csv"))}
    assert list(tables) == ["q1", "q2", "q3", "q4", "q5"]
    for table in tables.values():
        assert list(table) == ["answer", "noise_std", "low", "high", "answer_nnls", "nnls_rmse", "answer_local"]
        assert min(table["answer_nnls"].min(), table["answer_local"].min()) >= 0
    assert tables["q4"]["answer"].min() < 0
    cells = {name: tables["q4"][name].reshape(2, 24) for name in ("answer", "answer_nnls", "answer_local")}
    for name, both in cells.items():  # tables agree, and all have the unbiased total
        np.testing.assert_allclose(both.sum(axis=1), tables["q2"][name], atol=1e-6)
        np.testing.assert_allclose(both.sum(), tables["q1"]["answer"], atol=1e-6)
    for name in ("answer_nnls", "answer_local"):
        assert (np.diff(tables["q5"][name]) >= -1e-9).all()  # prefix sums of cells without negative ones
    said = json.loads((folder / "out/manifest.json").read_text(encoding="utf-8"))
    assert list(said["post_processing"]["columns"]) == ["answer_nnls", "nnls_rmse", "answer_local"]
    assert "no errors are known for them" in said["post_processing"]["columns"]["answer_local"]
    report = (folder / "out/report.html").read_text(encoding="utf-8")
    for words in ("what is cut off below 0 is added to other cells", "no known errors", "<code>covariances/</code>", "q2, q4"):
        assert words in report
    again = read(folder / "out")
    np.testing.assert_allclose(again.tables["q4"].local.reshape(-1), tables["q4"]["answer_local"])
    assert again.options.covariances == ("q2", "q4")
    # covariances are those of the error bars
    assert said["covariances"]["tables"] == [{"query": name, "files": f"covariances/{name}"} for name in ("q2", "q4")]
    with (folder / "out/covariances/q4.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    count = 2 * 24
    matrix = np.zeros((count, count))
    for row in rows:
        first, second = int(row["answer"]) - 1, int(row["other_answer"]) - 1
        matrix[first, second] = matrix[second, first] = float(row["covariance"])
    assert len(rows) == count * (count + 1) // 2
    np.testing.assert_allclose(np.sqrt(np.diag(matrix)), tables["q4"]["noise_std"])
    # The table of sex is a sum of its cells, so its errors follow.
    sums = np.kron(np.eye(2), np.ones(24))
    np.testing.assert_allclose(np.sqrt(np.diag(sums @ matrix @ sums.T)), tables["q2"]["noise_std"])


LOCAL = "The tables of the local projection must be of at most 4194304 cells; got 6000225. Leave out local_non_negative"
LOWEST = "can be asked for counts and for measures whose lowest value is at least 0"


@pytest.mark.parametrize(
    ("change", "output", "message"),
    [
        ({}, 'covariances = ["zone"]', "A table must be called by its id or name; got 'zone'"),
        ({"count = 10": "count = 3000"}, 'covariances = ["q5"]', "must be of at most 2048 answers; got 3000"),
        ({"count = 10": "count = 600"}, "nnls = true", "must be of at most 65536 cells; got 88800. Leave out nnls"),
        ({"count = 10": "count = 6000000", '"prefix" }': '"identity" }'}, "local_non_negative = true", LOCAL),
        ({'"prefix" }\n': "{ ranges = [[0, 400]] } }\n", '"marginals"\n': '"workload"\n'}, "local_non_negative = true", "do not determine"),
        (
            {"[0, 1000]": "[-1, 1000]", "marginals = {": 'sum = "pay"\nmarginals = {', "weight": 'sum = "pay"\nweight'},
            "nnls = true",
            LOWEST,
        ),
    ],
)
def test_what_cannot_be_given_is_refused_before_anything_is_paid(
    folder: Path, run: Run, change: dict[str, str], output: str, message: str
) -> None:
    text = SPEC
    for old, new in change.items():
        assert old in text
        text = text.replace(old, new)
    Path("people.toml").write_text(f"{text}\n[output]\n{output}\n", encoding="utf-8")
    for command in (["release", "people.toml", "--out", "out"], *([] if change else [["plan", "people.toml"]])):
        done = run(*command)
        assert done.code == 2
        assert message.lower() in " ".join(done.err.split()).lower()
    assert not Path("out").exists()
    assert not Path("people.ledger").exists()
