"""Files of a release: read back, complete, durable, and written whole or not at all."""

import csv
import hashlib
import json
import os
import stat
import threading
from dataclasses import replace
from datetime import UTC, date, datetime
from fractions import Fraction
from itertools import chain, product

import duckdb
import numpy as np
import pytest
from pyarrow.parquet import read_metadata

from leastnoise._plan import versions
from leastnoise._release import (
    Options,
    Payment,
    ReceiptFacts,
    _directory,
    _manifest_of_release,
    _writing,
    build_release,
    check_target,
)
from leastnoise._session import read_release as read
from leastnoise._trusted.accounting import cost_from_json
from leastnoise._trusted.check import InputError
from release.conftest import made, write

PAYMENT = {
    "dataset": "people",
    "ledger": "people.ledger",
    "ledger_id": "l1",
    "charge": "epsilon = 1",
    "number": 1,
    "head": "h1",
    "steps": 1,
}
RECEIPT = ReceiptFacts(id="", payment=Payment(**PAYMENT))


@pytest.fixture(scope="module")
def rich(observation):
    """A release with all optional columns."""
    return build_release(observation, Options(non_negative=True, integer=True), receipt=RECEIPT)


@pytest.fixture(scope="module")
def written(rich, tmp_path_factory):
    """Its files, for tests that read them only."""
    return write(rich, tmp_path_factory.mktemp("written") / "out")


def rows_of(path):
    """Column names and rows, by DuckDB, which did not make them in this connection."""
    reader = "read_csv_auto" if path.suffix == ".csv" else "read_parquet"
    result = duckdb.connect().execute(f"SELECT * FROM {reader}('{path}')")
    return [column[0] for column in result.description], result.fetchall()


def records(path):
    """The rows of a CSV file as dictionaries of texts."""
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def manifest_of(folder):
    return json.loads((folder / "manifest.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_tables_read_back_equal(rich, written, kind):
    for table in rich.tables:
        names, rows = rows_of(min((written / "answers").glob(f"{table.id}-*.{kind}")))
        columns = {name: values.tolist() for name, values in table.columns().items()}
        assert names == list(columns)
        assert rows == list(zip(*columns.values(), strict=True))


def test_written_rows_do_not_depend_on_batch_size(rich, written, tmp_path, monkeypatch):
    monkeypatch.setattr(_writing, "_ROW_GROUP_ROWS", 4)
    folder = write(rich, tmp_path / "out")
    for path in sorted((written / "answers").iterdir()):
        other = folder / path.relative_to(written)
        if path.suffix == ".csv":
            assert path.read_bytes() == other.read_bytes()
        else:
            assert rows_of(path) == rows_of(other)
            assert read_metadata(other).num_row_groups == -(-read_metadata(path).num_rows // 4)


def test_index_names_every_table(written):
    rows = records(written / "tables.csv")
    assert [row["query"] for row in rows] == [f"q{place}" for place in range(1, 10)]
    errors = [float(rows[7].pop(name)) for name in ("rmse", "promised_rmse", "largest_std")]
    assert errors == pytest.approx(errors[:1] * 3)
    assert rows[7] == {
        "query": "q8", "name": "sum of pay by sex", "files": "answers/q8-sum-of-pay-by-sex",
        "attributes": "sex", "answers": "2", "measure": "pay",
        "quantity": "sum of pay, in the unit of the column 'income'", "unit": "1/4", "weight": "1",
        "leaves_out": "sex x age x Answer", "of": "",
    }  # fmt: skip


def test_release_is_read_back(rich, written):
    stored_release = read(written)
    assert stored_release.plan.digest() == rich.plan.digest()
    assert (stored_release.level, stored_release.options, stored_release.receipt) == (
        rich.level,
        rich.options,
        rich.receipt,
    )
    for table, other in zip(rich.tables, stored_release.tables, strict=True):
        assert all(
            np.array_equal(a, b)
            for a, b in zip(table.columns().values(), other.columns().values(), strict=True)
        )


def test_many_tables_share_files(tmp_path, monkeypatch):
    monkeypatch.setattr(_writing, "MOST_TABLE_FILES", 3)
    monkeypatch.setattr(_writing, "BATCH_CELLS", 12)
    release = made(seed=2, options=Options(non_negative=True))
    target = write(release, tmp_path / "out")
    parts = ["0-way/part-00001", "1-way/part-00001", "1-way/part-00002", "2-way/part-00001"]
    paths = sorted(
        path.relative_to(target / "answers").as_posix() for path in target.glob("answers/*/*")
    )
    assert paths == [f"{part}.{kind}" for part in parts for kind in ("csv", "parquet")]
    index = {row["query"]: row["files"] for row in records(target / "tables.csv")}
    for table, kind in product(release.tables, ("csv", "parquet")):
        names, rows = rows_of(target / f"{index[table.id]}.{kind}")
        keys = [
            f"{word}_{place + 1}"
            for place in range(len(table.labels))
            for word in ("attribute", "value")
        ]
        assert names == [
            "query",
            *keys,
            "answer",
            "noise_std",
            "low",
            "high",
            "answer_non_negative",
        ]
        numbers = [values.tolist() for values in table.numbers().values()]
        # Differences may be negative, so they are not projected.
        numbers += [[None] * table.cells] * (5 - len(numbers))
        cells = [
            chain.from_iterable(zip(table.product.attributes, labels, strict=True))
            for labels in product(*table.labels)
        ]
        table_rows = [row for row in rows if row[0] == table.id]
        assert table_rows == [
            (table.id, *cell, *each)
            for cell, each in zip(cells, zip(*numbers, strict=True), strict=True)
        ]


def test_manifest_and_measured_tables_of_many(tmp_path, monkeypatch):
    monkeypatch.setattr(_writing, "MOST_TABLE_FILES", 2)
    for module in (_writing, _manifest_of_release):
        monkeypatch.setattr(module, "MOST_LISTED_TABLES", 2)
    release = made()
    target = write(release, tmp_path / "out")
    value = manifest_of(target)
    assert value["answers"]["tables"] == "listed in tables.csv"
    assert value["measurements"]["tables"] == "listed in measurements/tables.csv"
    assert value["workload"].startswith("listed in measurements/plan.json")
    rows = records(target / "measurements/tables.csv")
    assert [row["scale"] for row in rows] == [
        str(block.scale) for block in release.measurements.blocks
    ]


# ------------------------------------------------------------------------------------- the manifest


def test_manifest_states_protection_and_rows(rich, written):
    value = manifest_of(written)
    assert list(value)[:4] == ["format", "warning", "private", "written"]
    assert (value["private"], value["warning"][:11]) == (False, "NOT PRIVATE")
    # The date has no time of day.
    assert 0 <= (datetime.now(UTC).date() - date.fromisoformat(value["written"])).days <= 1
    assert value["versions"] == versions()
    assert value["receipt"] == {"id": "", **PAYMENT}
    privacy, cost = value["privacy"], value["privacy"]["cost"]
    assert (privacy["definition"], privacy["parameters"]) == (
        "pure differential privacy",
        {"epsilon": "1/4"},
    )
    assert "exp(epsilon) = 1.28 times" in privacy["promise"]
    assert privacy["neighbours"] == "add_remove"
    assert privacy["unit"] == {
        "column": None,
        "max_rows": 1,
        "in_words": "one row is added or removed",
    }
    assert cost_from_json({name: cost[name] for name in ("kind", "epsilon")}) == rich.plan.cost()
    assert cost["within_budget"] is True
    domain = value["domain"]
    assert domain["attributes"] == rich.plan.domain.to_json()["attributes"]
    rule = (
        "Answer: 2 categories; rows with other values are counted in the cell 'other'; rows with "
        "a null are dropped."
    )
    assert rule in domain["rules"]
    assert "How many there were was not measured" in domain["rows_outside"]


def test_manifest_states_measurements_and_exactness(rich, written):
    value, plan = manifest_of(written), rich.plan
    assert value["workload"] == plan.workload.to_json()
    stated = [value["plan"][name] for name in ("digest", "strategy", "mechanism")]
    assert stated == [plan.digest(), "for tests", "discrete_laplace"]
    measured = [
        (Fraction(table["scale"]), table["queries"]) for table in value["measurements"]["tables"]
    ]
    assert measured == [(block.scale, block.rows) for block in rich.measurements.blocks]
    expected = value["expected_error"]
    assert [expected["total_squared_error"], expected["lower_bound"]] == [
        plan.data_independent_error.total_squared_error,
        plan.data_independent_error.lower_bound,
    ]
    assert expected["times_the_least_possible"] ** 2 == pytest.approx(
        expected["total_squared_error"] / expected["lower_bound"]
    )
    assert expected["error_bars_are_as_promised"] is True
    intervals = value["intervals"]
    assert (intervals["level"], intervals["half_width_in_noise_std"]) == (
        0.95,
        rich.interval.multiplier,
    )
    for phrase in (
        "not measured",
        "sampling error",
        "values beyond the bounds",
        "biased",
        "Coverage is per interval",
    ):
        assert phrase in " ".join(intervals["does_not_cover"])
    columns, answers = value["post_processing"]["columns"], value["answers"]
    assert list(columns) == ["answer_non_negative", "answer_integer"]
    assert set(columns["answer_non_negative"]) == {"marginal", "prefix", "clip", "none"}
    assert (answers["number_of_tables"], answers["number_of_answers"]) == (
        9,
        sum(table.cells for table in rich.tables),
    )
    assert answers["tables"][2]["key_columns"] == ["sex", "Answer_2"]
    assert answers["tables"][6]["answer_non_negative"] == "none"


def test_manifest_lists_files_with_digests(written):
    listed = {
        entry["path"]: (entry["bytes"], entry["sha256"]) for entry in manifest_of(written)["files"]
    }
    contents = {
        path.relative_to(written).as_posix(): path.read_bytes()
        for path in written.rglob("*")
        if path.is_file()
    }
    del contents["manifest.json"]
    assert listed == {
        name: (len(content), hashlib.sha256(content).hexdigest())
        for name, content in contents.items()
    }


def test_broken_promise_is_reported(rich, tmp_path):
    expected_error = rich.plan.data_independent_error
    better = replace(
        expected_error,
        tables=tuple(replace(table, rmse=table.rmse / 2) for table in expected_error.tables),
    )
    release = build_release(
        replace(rich.outcome, plan=replace(rich.plan, data_independent_error=better))
    )
    assert (
        manifest_of(write(release, tmp_path / "out"))["expected_error"][
            "error_bars_are_as_promised"
        ]
        is False
    )


# ------------------------------------------------------------------------------ whole or not at all


def test_existing_target_is_refused_before_and_after(rich, tmp_path):
    target, link = tmp_path / "out", tmp_path / "link"
    assert check_target(target) == target
    target.mkdir()
    link.symlink_to(tmp_path / "nowhere")
    for attempt in (
        lambda: check_target(target),
        lambda: write(rich, target),
        lambda: check_target(link),
    ):
        with pytest.raises(
            InputError,
            match=(
                r"The output directory must not exist yet; got '.*', which does\. Choose another "
                r"name"
            ),
        ):
            attempt()
    assert list(target.iterdir()) == []


def test_target_that_is_no_directory_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(
        InputError,
        match=(
            r"must be in a directory that you can write to; got '.*/file/a/out', and '.*/file' is "
            r"not one"
        ),
    ):
        check_target(tmp_path / "file" / "a" / "out")


def test_parent_directories_are_created_readable(rich, tmp_path):
    target = write(rich, tmp_path / "a" / "b" / "out")
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE(target.stat().st_mode) == 0o777 & ~mask
    assert [path.name for path in target.parent.iterdir()] == ["out"]


def test_files_are_synced_before_the_rename(rich, tmp_path, monkeypatch):
    order, real_sync, real_rename = [], _directory.sync_to_disk, _directory._rename_draft
    monkeypatch.setattr(
        _directory, "sync_to_disk", lambda path: (order.append(path), real_sync(path))
    )
    monkeypatch.setattr(
        _directory,
        "_rename_draft",
        lambda partial, target: (order.append(partial), real_rename(partial, target)),
    )
    target = write(rich, tmp_path / "out")
    *synced, partial, last = order
    assert {path.relative_to(target) for path in target.rglob("*")} <= {
        path.relative_to(partial) for path in synced
    }
    assert last == tmp_path  # the parent, after the rename


@pytest.mark.parametrize("step", ["render_report", "_write_column_files", "_make_entry"])
def test_error_leaves_nothing(rich, tmp_path, monkeypatch, step):
    """At the end, on the thread that writes a table, and beside it."""

    def full(*_):
        raise OSError("no space left on device")

    monkeypatch.setattr(_writing, step, full)
    with pytest.raises(OSError, match="no space"):
        write(rich, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_target_created_meanwhile_is_not_replaced(rich, tmp_path, monkeypatch):
    real = _writing.render_report
    monkeypatch.setattr(
        _writing, "render_report", lambda *args: ((tmp_path / "out").mkdir(), real(*args))[1]
    )
    with pytest.raises(InputError, match="was created while the release ran"):
        write(rich, tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def leave_draft(target):
    """Leave the lock file and the draft of a target as a killed process does."""
    with _directory.open_draft(target) as draft:
        partial = draft.partial
    lock_file = partial.with_name(f"{partial.name}.lock")
    lock_file.touch()
    (partial / "answers").mkdir(parents=True)
    (partial / "answers" / "q1.csv").write_text("x")
    return partial, lock_file


def test_draft_of_dead_process_is_replaced_for_its_target(rich, tmp_path):
    leave_draft(tmp_path / "out")
    target = write(rich, check_target(tmp_path / "out"), "csv")
    assert list(tmp_path.iterdir()) == [target]
    assert not (target / "answers" / "q1.csv").exists()


def test_drafts_of_dead_processes_are_removed_at_once(tmp_path):
    leave_draft(tmp_path / "left")
    link = tmp_path / ".leastnoise-link"
    link.symlink_to(tmp_path)
    link.with_name(".leastnoise-link.lock").symlink_to(tmp_path / "secret")
    (tmp_path / "secret").touch()
    with _directory.open_draft(tmp_path / "living") as living:
        (living.path / "answers.csv").touch()
        lock_files = {path for path in tmp_path.iterdir() if path.name.endswith(".lock")}
        with _directory.open_draft(tmp_path / "out") as draft:
            assert living.path.is_dir()
            assert not draft.partial.exists()
            assert len(lock_files & {*tmp_path.iterdir()}) == 2  # the living one, and the link
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        ".leastnoise-link",
        ".leastnoise-link.lock",
        "secret",
    ]


def test_draft_waits_for_a_cleaning_process(tmp_path):
    _, lock_file = leave_draft(tmp_path / "out")
    handle = os.open(lock_file, os.O_RDWR)
    assert _directory.try_lock(handle)
    cleaner = threading.Timer(0.2, lambda: (lock_file.unlink(), os.close(handle)))
    cleaner.start()
    with _directory.open_draft(tmp_path / "out") as draft:
        assert not draft.partial.exists()
    cleaner.join()
    assert list(tmp_path.iterdir()) == []


def test_directory_in_use_is_refused_and_kept(rich, tmp_path):
    with _directory.open_draft(tmp_path / "out") as living:
        (living.path / "answers.csv").write_text("1")
        with pytest.raises(InputError, match="is being written by another process"):
            write(rich, tmp_path / "out", "csv")
        other = write(rich, tmp_path / "other", "csv")
        lock_file = living.partial.with_name(f"{living.partial.name}.lock")
        assert sorted(tmp_path.iterdir()) == [living.partial, lock_file, other]
        assert [path.name for path in living.partial.iterdir()] == ["answers.csv"]


def test_lock_file_that_cannot_be_created_is_refused(tmp_path):
    lock = _directory.lock_output(tmp_path / "out", tmp_path / "missing")
    with pytest.raises(InputError, match=r"needs a lock file in .*: no such file"), lock:
        pass


@pytest.mark.parametrize("path", ["folder/../out", "link/out"])
def test_all_paths_of_a_directory_have_one_lock(tmp_path, monkeypatch, path):
    monkeypatch.setattr(_directory, "_CLEANING_SECONDS", 0.0)
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(tmp_path)
    with _directory.lock_output(tmp_path / "out", tmp_path):
        lock = _directory.lock_output(tmp_path / path, tmp_path)
        with pytest.raises(InputError, match="is being written by another process"), lock:
            pass
        with _directory.lock_output(tmp_path / "other", tmp_path):
            pass
    with _directory.lock_output(tmp_path / path, tmp_path):
        pass


# ------------------------------------------------------------------------------------- reading back


def test_directory_without_release_is_refused(rich, tmp_path):
    with pytest.raises(
        InputError,
        match=r"There is no release in '.*nothing', or it cannot be read\. Name the directory",
    ):
        read(tmp_path / "nothing")
    target = write(rich, tmp_path / "out", "csv")
    value = manifest_of(target)
    without = {name: entry for name, entry in value.items() if name not in ("options", "intervals")}
    for text in ("{", "[]", json.dumps({**value, "files": None}), json.dumps(without)):
        (target / "manifest.json").write_text(text)
        with pytest.raises(InputError, match=r"is damaged\. In its manifest: "):
            read(target)
    (target / "manifest.json").write_text(json.dumps({**value, "format": 99}))
    with pytest.raises(
        InputError,
        match=(
            r"the format of a release must be 1; got 99. It was written by leastnoise "
            r"'\d+\.\d+\.\d+"
        ),
    ):
        read(target)
    (target / "manifest.json").write_text(json.dumps(value))
    for name in ("observation", "plan"):
        file, whole = (
            target / f"measurements/{name}.json",
            (target / f"measurements/{name}.json").read_text(),
        )
        file.write_text(whole.replace("false", "true") if name == "observation" else f"{whole}\n")
        with pytest.raises(
            InputError,
            match=(
                rf"was changed: measurements/{name}\.json is not the file that its manifest "
                r"describes"
            ),
        ):
            read(target)
        file.write_text(whole)
