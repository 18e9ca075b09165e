"""Files of a release: read back equal, complete, durable, and there as a whole or not at all."""

import csv
import hashlib
import json
import os
import signal
import stat
import subprocess
import sys
import textwrap
from dataclasses import replace
from datetime import UTC, date, datetime
from fractions import Fraction
from pathlib import Path

import duckdb
import numpy as np
import pytest
from pyarrow.parquet import read_metadata

from leastnoise._accounting import cost_from_json
from leastnoise._check import InputError
from leastnoise._plan import versions
from leastnoise._release import Options, _directory, _writing, build, check_target
from leastnoise._session import read_release as read
from release.conftest import write
from waiting import HANGS


@pytest.fixture(scope="module")
def rich(observation):
    """A release with all optional columns."""
    return build(observation, Options(non_negative=True, integer=True), receipt={"ledger": "people.ledger"})


@pytest.fixture(scope="module")
def written(rich, tmp_path_factory):
    """Its files, for tests that read them only."""
    return write(rich, tmp_path_factory.mktemp("written") / "out")


def rows_of(path, kind):
    """Column names and rows, by DuckDB, which did not make them in this connection."""
    reader = "read_csv_auto" if kind == "csv" else "read_parquet"
    found = duckdb.connect().execute(f"SELECT * FROM {reader}('{path}')")
    return [column[0] for column in found.description], found.fetchall()


def records(path):
    """The rows of a CSV file as dictionaries of texts."""
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_tables_read_back_equal(rich, written, kind):
    for table in rich.tables:
        columns = table.columns()
        names, rows = rows_of(min((written / "answers").glob(f"{table.id}-*.{kind}")), kind)
        assert names == list(columns)
        expected = [
            tuple(value.item() if isinstance(value, np.generic) else value for value in row) for row in zip(*columns.values(), strict=True)
        ]
        assert rows == expected


def test_rows_are_the_same_however_many_are_written_at_once(rich, written, tmp_path, monkeypatch):
    monkeypatch.setattr(_writing, "_ROW_GROUP", 4)
    again = write(rich, tmp_path / "out")
    for path in sorted((written / "answers").iterdir()):
        other = again / path.relative_to(written)
        assert path.suffix == ".parquet" or path.read_bytes() == other.read_bytes()
        if path.suffix == ".parquet":
            assert rows_of(path, "parquet") == rows_of(other, "parquet")
            assert read_metadata(other).num_row_groups == -(-read_metadata(path).num_rows // 4)


def test_csv_is_what_the_csv_module_reads(rich, written):
    rows = records(written / "answers/q3-sex-by-answer.csv")
    table = rich.tables["q3"]
    assert [row["Answer_2"] for row in rows] == ["<b>a & b</b>", 'say "x"', "other"] * 2
    assert [float(row["answer"]) for row in rows] == table.answer.reshape(-1).tolist()
    assert [row["answer_integer"] for row in rows] == [str(value) for value in table.integer.reshape(-1)]


def test_the_index_names_every_table(written):
    rows = records(written / "tables.csv")
    assert [row["query"] for row in rows] == [f"q{place}" for place in range(1, 10)]
    assert rows[7] | {"rmse": "", "largest_std": "", "promised_rmse": ""} == {
        "query": "q8",
        "name": "sum of pay by sex",
        "files": "answers/q8-sum-of-pay-by-sex",
        "attributes": "sex",
        "answers": "2",
        "measure": "pay",
        "unit": "1/4",
        "weight": "1",
        "rmse": "",
        "largest_std": "",
        "promised_rmse": "",
        "of": "",
    }
    assert float(rows[7]["rmse"]) == pytest.approx(float(rows[7]["promised_rmse"]))


def test_a_release_is_read_back(rich, written):
    again = read(written)
    assert again.plan.digest() == rich.plan.digest()
    assert (again.level, again.options, again.receipt) == (rich.level, rich.options, rich.receipt)
    for one, other in zip(rich.tables, again.tables, strict=True):
        assert all(np.array_equal(a, b) for a, b in zip(one.columns().values(), other.columns().values(), strict=True))


def test_many_tables_share_files(making, tmp_path, monkeypatch):
    monkeypatch.setattr(_writing, "MOST_TABLE_FILES", 3)
    monkeypatch.setattr(_writing, "BATCH_CELLS", 12)
    release = build(making.observe(making.plan(), making.cells(), np.random.default_rng(2)), Options(non_negative=True))
    target = write(release, tmp_path / "out")
    parts = ["0-way/part-00001", "1-way/part-00001", "1-way/part-00002", "2-way/part-00001"]
    found = sorted(path.relative_to(target / "answers").as_posix() for path in target.glob("answers/*/*"))
    assert found == [f"{part}.{kind}" for part in parts for kind in ("csv", "parquet")]
    for kind in ("csv", "parquet"):
        names, rows = [], []
        for path in sorted((target / "answers/2-way").glob(f"*.{kind}")):
            names, part = rows_of(path, kind)
            rows += part
        assert names == [
            *("query", "attribute_1", "value_1", "attribute_2", "value_2"),
            *("answer", "noise_std", "low", "high", "answer_non_negative"),
        ]
        table = release.tables["q5"]
        own = [row for row in rows if row[0] == "q5"]
        assert [row[1:5] for row in own] == [("sex", sex, "age", f"<= {age}") for sex in "FM" for age in range(17, 22)]
        assert [row[5:10] for row in own] == list(zip(*(values.tolist() for values in table.numbers().values()), strict=True))
    index = {row["query"]: row["files"] for row in records(target / "tables.csv")}
    for table in release.tables:
        _, rows = rows_of(target / f"{index[table.id]}.parquet", "parquet")
        own = [row for row in rows if row[0] == table.id]
        assert len(own) == table.cells
        assert [row[1 + 2 * len(table.labels)] for row in own] == table.answer.reshape(-1).tolist()
    without = rows_of(target / f"{index['q7']}.parquet", "parquet")[1]
    assert [row[-1] for row in without if row[0] == "q7"] == [None]  # a difference may be negative, so it is not projected


def test_manifest_and_measured_tables_of_many(making, tmp_path, monkeypatch):
    monkeypatch.setattr(_writing, "MOST_TABLE_FILES", 2)
    monkeypatch.setattr(_writing, "MOST_LISTED", 2)
    plan = making.plan()
    target = write(build(making.observe(plan, making.cells(), np.random.default_rng(2))), tmp_path / "out")
    value = json.loads((target / "manifest.json").read_text())
    assert value["answers"]["tables"] == "listed in tables.csv"
    assert value["measurements"]["tables"] == "listed in measurements/tables.csv"
    assert value["workload"].startswith("listed in measurements/plan.json")
    rows = records(target / "measurements/tables.csv")
    assert [row["scale"] for row in rows] == [str(block.scale) for block in plan.measured().blocks]


def test_formats(rich, written, tmp_path):
    assert {path.suffix for path in (written / "answers").iterdir()} == {".csv", ".parquet"}
    for kind in ("csv", "parquet"):
        assert [path.suffix for path in (write(rich, tmp_path / kind, kind) / "answers").iterdir()] == [f".{kind}"] * 9


# ------------------------------------------------------------------------------------------------------------------- the manifest


def test_the_manifest_says_everything(rich, written):
    value = json.loads((written / "manifest.json").read_text(encoding="utf-8"))
    assert list(value)[:4] == ["format", "warning", "private", "written"]
    assert value["private"] is False
    assert value["warning"].startswith("NOT PRIVATE")
    assert 0 <= (datetime.now(UTC).date() - date.fromisoformat(value["written"])).days <= 1  # no time of day
    assert value["versions"] == versions()
    privacy = value["privacy"]
    assert privacy["definition"] == "pure differential privacy"
    assert privacy["parameters"] == {"epsilon": "1/4"}
    assert "exp(epsilon) = 1.28 times" in privacy["promise"]
    assert privacy["neighbours"] == "add_remove"
    assert privacy["unit"] == {"column": None, "max_rows": 1, "in_words": "one row is added or removed"}
    spent = {name: privacy["cost"][name] for name in ("kind", "epsilon")}
    assert cost_from_json(spent) == rich.plan.cost()
    assert privacy["cost"]["within_budget"] is True
    assert value["receipt"] == {"ledger": "people.ledger", "id": ""}
    assert value["domain"]["attributes"] == rich.plan.domain.to_json()["attributes"]
    assert (
        "Answer: 2 categories; rows with other values are counted in the cell 'other'; rows with a null are dropped."
        in value["domain"]["rules"]
    )
    assert "How many there were was not measured" in value["domain"]["rows_outside"]
    assert value["workload"] == rich.plan.workload.to_json()
    assert value["plan"]["digest"] == rich.plan.digest()
    assert (value["plan"]["strategy"], value["plan"]["mechanism"]) == ("for tests", "discrete_laplace")
    measured = value["measurements"]["tables"]
    assert [Fraction(table["scale"]) for table in measured] == [block.scale for block in rich.measurements.blocks]
    assert [table["queries"] for table in measured] == [block.rows for block in rich.measurements.blocks]
    expected = value["expected_error"]
    assert expected["total_squared_error"] == rich.plan.promise.total_squared_error
    assert expected["lower_bound"] == rich.plan.promise.lower_bound
    assert expected["times_the_least_possible"] ** 2 == pytest.approx(expected["total_squared_error"] / expected["lower_bound"])
    assert expected["error_bars_are_as_promised"] is True
    intervals = value["intervals"]
    assert (intervals["level"], intervals["half_width_in_noise_std"]) == (0.95, rich.interval.multiplier)
    covered = " ".join(intervals["does_not_cover"])
    for words in ("not measured", "sampling error", "values beyond the bounds", "biased", "Coverage is per interval"):
        assert words in covered
    assert list(value["post_processing"]["columns"]) == ["answer_non_negative", "answer_integer"]
    assert set(value["post_processing"]["columns"]["answer_non_negative"]) == {"marginal", "prefix", "clip", "none"}
    answers = value["answers"]
    assert answers["number_of_tables"] == 9
    assert answers["number_of_answers"] == sum(table.cells for table in rich.tables)
    assert answers["tables"][2]["key_columns"] == ["sex", "Answer_2"]
    assert [table["answer_non_negative"] for table in answers["tables"]][6] == "none"


def test_the_manifest_lists_every_other_file_with_its_digest(written):
    value = json.loads((written / "manifest.json").read_text(encoding="utf-8"))
    files = {path.relative_to(written).as_posix(): path for path in written.rglob("*") if path.is_file()}
    assert {entry["path"] for entry in value["files"]} == set(files) - {"manifest.json"}
    for entry in value["files"]:
        content = files[entry["path"]].read_bytes()
        assert (entry["bytes"], entry["sha256"]) == (len(content), hashlib.sha256(content).hexdigest())


def test_a_promise_that_is_not_kept_is_said(rich, tmp_path):
    promise = rich.plan.promise
    better = replace(promise, tables=tuple(replace(table, rmse=table.rmse / 2) for table in promise.tables))
    observation = replace(rich.outcome, plan=replace(rich.plan, promise=better))
    value = json.loads((write(build(observation), tmp_path / "out") / "manifest.json").read_text())
    assert value["expected_error"]["error_bars_are_as_promised"] is False


# -------------------------------------------------------------------------------------------------------- whole or not at all


def test_a_target_that_exists_is_refused_before_and_after(rich, tmp_path):
    target = tmp_path / "out"
    assert check_target(target) == target
    target.mkdir()
    for attempt in (lambda: check_target(target), lambda: write(rich, target)):
        with pytest.raises(InputError, match=r"The output directory must not exist yet; got '.*out', which does\. Choose another name"):
            attempt()
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    with pytest.raises(InputError, match="must not exist yet"):
        check_target(tmp_path / "link")
    assert list(target.iterdir()) == []


def test_a_place_that_is_no_directory_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"must be in a directory that you can write to; got '.*/file/a/out', and '.*/file' is not one"):
        check_target(tmp_path / "file" / "a" / "out")


def test_directories_above_are_made_and_the_release_can_be_read_by_others(rich, tmp_path):
    target = write(rich, tmp_path / "a" / "b" / "out")
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE(target.stat().st_mode) == 0o777 & ~mask
    assert [path.name for path in target.parent.iterdir()] == ["out"]


def test_everything_is_on_the_disk_before_it_gets_its_name(rich, tmp_path, monkeypatch):
    synced, order = set(), []
    real_sync, real_rename = _directory._sync, _directory._rename
    monkeypatch.setattr(_directory, "_sync", lambda path: (synced.add(Path(path)), order.append("sync"), real_sync(path)))
    monkeypatch.setattr(_directory, "_rename", lambda partial, target: (order.append("rename"), real_rename(partial, target)))
    target = write(rich, tmp_path / "out")
    relative = {
        path.relative_to(next(iter(p for p in path.parents if p.name.startswith(".leastnoise-"))))
        for path in synced
        if ".leastnoise-" in str(path.parent)
    }
    assert {path.relative_to(target) for path in target.rglob("*")} <= relative
    assert order.index("rename") == len(order) - 2
    assert tmp_path in synced  # the parent, after the rename


@pytest.mark.parametrize("step", ["report", "_copy", "_entry"])
def test_an_error_leaves_nothing(rich, tmp_path, monkeypatch, step):
    """At the end, on the thread that writes a table, and beside it."""

    def full(*_):
        raise OSError("no space left on device")

    monkeypatch.setattr(_writing, step, full)
    with pytest.raises(OSError, match="no space"):
        write(rich, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_a_target_that_appears_meanwhile_is_not_replaced(rich, tmp_path, monkeypatch):
    real = _writing.report
    monkeypatch.setattr(_writing, "report", lambda *args: ((tmp_path / "out").mkdir(), real(*args))[1])
    with pytest.raises(InputError, match="came into being while the release was made"):
        write(rich, tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


KILLED = """
    import os, sys
    from pathlib import Path
    from leastnoise._release import _directory
    from leastnoise._release._directory import draft

    if sys.argv[2] == "kill":
        _directory._rename = lambda *_: os._exit(9)
    with draft(Path(sys.argv[1])) as place:
        (place.path / "answers.csv").write_text("1")
        if sys.argv[2] == "wait":
            print("ready", flush=True)
            sys.stdin.read()
        place.publish()
"""


def start(target, how, **options):
    """A real process that writes to ``target`` and dies, or waits, before the rename."""
    source = Path(_directory.__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": str(source)}
    return subprocess.Popen([sys.executable, "-c", textwrap.dedent(KILLED), str(target), how], env=environment, text=True, **options)


def test_a_process_killed_before_the_rename_leaves_a_draft_that_the_next_one_takes(rich, tmp_path):
    process = start(tmp_path / "out", "kill")
    assert process.wait(timeout=HANGS) == 9
    (left,) = tmp_path.iterdir()
    assert left.name.startswith(".leastnoise-")
    assert [path.name for path in left.iterdir()] == ["answers.csv"]
    assert check_target(tmp_path / "out") == tmp_path / "out"
    write(rich, tmp_path / "out", "csv")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_what_dead_processes_left_for_other_targets_is_removed(tmp_path):
    left, new, link = (tmp_path / f".leastnoise-{name}" for name in ("left", "new", "link"))
    (left / "answers").mkdir(parents=True)
    (left / "answers" / "q1.csv").write_text("x")
    new.mkdir()
    link.symlink_to(tmp_path)
    with _directory.draft(tmp_path / "living"):
        living = {path.name for path in tmp_path.iterdir()} - {left.name, new.name, link.name}
        for path in tmp_path.iterdir():
            if path != new:
                os.utime(path, (0, 0), follow_symlinks=False)
        with _directory.draft(tmp_path / "out") as made:
            assert {path.name for path in tmp_path.iterdir()} == {new.name, link.name, made.partial.name, *living}


def test_a_directory_that_a_living_process_writes_is_refused_and_its_draft_left_alone(rich, tmp_path):
    process = start(tmp_path / "out", "wait", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert process.stdout.readline() == "ready\n"
        with pytest.raises(InputError, match="is being written by another process"):
            write(rich, tmp_path / "out", "csv")
        write(rich, tmp_path / "other", "csv")
        (draft, other) = sorted(tmp_path.iterdir())
        assert draft.name.startswith(".leastnoise-")
        assert [path.name for path in draft.iterdir()] == ["answers.csv"]
        assert other.name == "other"
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait(timeout=HANGS)
        process.stdin.close()
        process.stdout.close()


# ------------------------------------------------------------------------------------------------------------------- reading back


def test_what_is_no_release_is_refused(rich, tmp_path):
    with pytest.raises(InputError, match=r"There is no release in '.*nothing', or it cannot be read\. Name the directory"):
        read(tmp_path / "nothing")
    target = write(rich, tmp_path / "out", "csv")
    path = target / "manifest.json"
    value = json.loads(path.read_text())
    for text in (
        "{",
        "[]",
        json.dumps({**value, "files": None}),
        json.dumps({k: v for k, v in value.items() if k not in ("options", "intervals")}),
    ):
        path.write_text(text)
        with pytest.raises(InputError, match="is damaged: its manifest cannot be understood"):
            read(target)
    path.write_text(json.dumps({**value, "format": 99}))
    with pytest.raises(InputError, match=r"the format of a release must be 1; got 99. It was written by leastnoise '\d+\.\d+\.\d+"):
        read(target)


def test_measurements_that_were_changed_are_refused(rich, tmp_path):
    target = write(rich, tmp_path / "out", "csv")
    path = target / "measurements/observation.json"
    path.write_text(path.read_text().replace("false", "true"))
    with pytest.raises(InputError, match=r"was changed: measurements/observation\.json is not the file that its manifest describes"):
        read(target)
