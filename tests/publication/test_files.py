"""Tests of the files of a release: complete, durable, and written whole or not at all."""

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

from example_releases import example_release, write
from leastnoise._plan import versions
from leastnoise._publication import _directory, _manifest_of_release, _writing, check_target
from leastnoise._release import Options, Payment, ReceiptFacts, build_release
from leastnoise._session import read_release as read
from leastnoise._trusted.accounting import cost_from_json
from leastnoise._trusted.check import InputError

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
def full_release(observation):
    """Return a release with all optional columns."""
    return build_release(observation, Options(non_negative=True, integer=True), receipt=RECEIPT)


@pytest.fixture(scope="module")
def release_folder(full_release, tmp_path_factory):
    """Return the files of this release, for tests that only read them."""
    return write(full_release, tmp_path_factory.mktemp("written") / "out")


def rows_of(path):
    """Return the column names and rows of a file, as a new connection of DuckDB reads them."""
    reader = "read_csv_auto" if path.suffix == ".csv" else "read_parquet"
    result = duckdb.connect().execute(f"SELECT * FROM {reader}('{path}')")
    return [column[0] for column in result.description], result.fetchall()


def csv_rows(path):
    """Return the rows of a CSV file as dictionaries of texts."""
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def read_manifest(folder):
    return json.loads((folder / "manifest.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_tables_read_back_equal(full_release, release_folder, kind):
    for table in full_release.tables:
        names, rows = rows_of(min((release_folder / "answers").glob(f"{table.id}-*.{kind}")))
        columns = {name: values.tolist() for name, values in table.columns().items()}
        assert names == list(columns)
        assert rows == list(zip(*columns.values(), strict=True))


def test_written_rows_do_not_depend_on_batch_size(
    full_release, release_folder, tmp_path, monkeypatch
):
    monkeypatch.setattr(_writing, "_ROW_GROUP_ROWS", 4)
    folder = write(full_release, tmp_path / "out")
    for path in sorted((release_folder / "answers").iterdir()):
        other = folder / path.relative_to(release_folder)
        if path.suffix == ".csv":
            assert path.read_bytes() == other.read_bytes()
        else:
            assert rows_of(path) == rows_of(other)
            assert read_metadata(other).num_row_groups == -(-read_metadata(path).num_rows // 4)


def test_index_names_every_table(release_folder):
    rows = csv_rows(release_folder / "tables.csv")
    assert [row["query"] for row in rows] == [f"q{number}" for number in range(1, 10)]
    errors = [float(rows[7].pop(name)) for name in ("rmse", "promised_rmse", "largest_std")]
    assert errors == pytest.approx(errors[:1] * 3)
    assert rows[7] == {
        "query": "q8", "name": "sum of pay by sex", "files": "answers/q8-sum-of-pay-by-sex",
        "attributes": "sex", "answers": "2", "measure": "pay",
        "quantity": "sum of pay, in the unit of the column 'income'", "unit": "1/4", "weight": "1",
        "leaves_out": "sex x age x Answer", "of": "",
    }  # fmt: skip


def test_release_is_read_back(full_release, release_folder):
    stored_release = read(release_folder)
    assert stored_release.plan.digest() == full_release.plan.digest()
    assert stored_release.level == full_release.level
    assert stored_release.options == full_release.options
    assert stored_release.receipt == full_release.receipt
    for table, stored_table in zip(full_release.tables, stored_release.tables, strict=True):
        columns = table.columns().values()
        stored_columns = stored_table.columns().values()
        for column, stored_column in zip(columns, stored_columns, strict=True):
            assert np.array_equal(column, stored_column)


@pytest.fixture
def shared_files(tmp_path, monkeypatch):
    """Return a release with more tables than files, and its directory."""
    monkeypatch.setattr(_writing, "MOST_TABLE_FILES", 3)
    monkeypatch.setattr(_writing, "BATCH_CELLS", 12)
    release = example_release(seed=2, options=Options(non_negative=True))
    return release, write(release, tmp_path / "out")


def test_many_tables_share_files(shared_files):
    _, target = shared_files
    parts = ["0-way/part-00001", "1-way/part-00001", "1-way/part-00002", "2-way/part-00001"]
    paths = sorted(
        path.relative_to(target / "answers").as_posix() for path in target.glob("answers/*/*")
    )
    assert paths == [f"{part}.{kind}" for part in parts for kind in ("csv", "parquet")]


def expected_rows(table):
    """Return the rows of a table in a shared file: its id, attributes, values and numbers."""
    numbers = [values.tolist() for values in table.numbers().values()]
    # Differences may be negative, so they are not projected.
    numbers += [[None] * table.cells] * (5 - len(numbers))
    rows = []
    for labels, cell_numbers in zip(
        product(*table.labels), zip(*numbers, strict=True), strict=True
    ):
        keys = chain.from_iterable(zip(table.product.attributes, labels, strict=True))
        rows.append((table.id, *keys, *cell_numbers))
    return rows


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_shared_files_have_the_rows_of_each_table(shared_files, kind):
    release, target = shared_files
    file_of_table = {row["query"]: row["files"] for row in csv_rows(target / "tables.csv")}
    for table in release.tables:
        names, rows = rows_of(target / f"{file_of_table[table.id]}.{kind}")
        keys = []
        for number in range(1, len(table.labels) + 1):
            keys += [f"attribute_{number}", f"value_{number}"]
        numbers = ["answer", "noise_std", "low", "high", "answer_non_negative"]
        assert names == ["query", *keys, *numbers]
        assert [row for row in rows if row[0] == table.id] == expected_rows(table)


def test_manifest_and_measured_tables_of_many(tmp_path, monkeypatch):
    monkeypatch.setattr(_writing, "MOST_TABLE_FILES", 2)
    for module in (_writing, _manifest_of_release):
        monkeypatch.setattr(module, "MOST_LISTED_TABLES", 2)
    release = example_release()
    target = write(release, tmp_path / "out")
    value = read_manifest(target)
    assert value["answers"]["tables"] == "listed in tables.csv"
    assert value["measurements"]["tables"] == "listed in measurements/tables.csv"
    assert value["workload"].startswith("listed in measurements/plan.json")
    rows = csv_rows(target / "measurements/tables.csv")
    assert [row["scale"] for row in rows] == [
        str(block.scale) for block in release.measurements.blocks
    ]


@pytest.fixture(scope="module")
def manifest(release_folder):
    return read_manifest(release_folder)


def test_manifest_states_versions_and_receipt(manifest):
    assert list(manifest)[:4] == ["format", "warning", "private", "written"]
    assert manifest["private"] is False
    assert manifest["warning"].startswith("NOT PRIVATE")
    # The date has no time of day.
    days_ago = (datetime.now(UTC).date() - date.fromisoformat(manifest["written"])).days
    assert 0 <= days_ago <= 1
    assert manifest["versions"] == versions()
    assert manifest["receipt"] == {"id": "", **PAYMENT}


def test_manifest_states_protection_and_rows(full_release, manifest):
    privacy = manifest["privacy"]
    assert privacy["definition"] == "pure differential privacy"
    assert privacy["parameters"] == {"epsilon": "1/4"}
    assert "exp(epsilon) = 1.28 times" in privacy["promise"]
    assert privacy["neighbours"] == "add_remove"
    assert privacy["unit"] == {
        "column": None,
        "max_rows": 1,
        "in_words": "one row is added or removed",
    }
    cost = privacy["cost"]
    stated_cost = cost_from_json({name: cost[name] for name in ("kind", "epsilon")})
    assert stated_cost == full_release.plan.cost()
    assert cost["within_budget"] is True


def test_manifest_states_domain_and_its_rules(full_release, manifest):
    domain = manifest["domain"]
    assert domain["attributes"] == full_release.plan.domain.to_json()["attributes"]
    rule = (
        "Answer: 2 categories; rows with other values are counted in the cell 'other'; rows with "
        "a null are dropped."
    )
    assert rule in domain["rules"]
    assert "How many there were was not measured" in domain["rows_outside"]


def test_manifest_states_plan_and_measurements(full_release, manifest):
    plan = full_release.plan
    assert manifest["workload"] == plan.workload.to_json()
    assert manifest["plan"]["digest"] == plan.digest()
    assert manifest["plan"]["strategy"] == "for tests"
    assert manifest["plan"]["mechanism"] == "discrete_laplace"
    tables = manifest["measurements"]["tables"]
    measured = [(Fraction(table["scale"]), table["queries"]) for table in tables]
    assert measured == [(block.scale, block.rows) for block in full_release.measurements.blocks]


def test_manifest_states_measurements_and_exactness(full_release, manifest):
    expected_error = manifest["expected_error"]
    error = full_release.plan.data_independent_error
    assert expected_error["total_squared_error"] == error.total_squared_error
    assert expected_error["lower_bound"] == error.lower_bound
    ratio = error.total_squared_error / error.lower_bound
    assert expected_error["times_the_least_possible"] ** 2 == pytest.approx(ratio)
    assert expected_error["error_bars_are_as_promised"] is True

    intervals = manifest["intervals"]
    assert intervals["level"] == 0.95
    assert intervals["half_width_in_noise_std"] == full_release.interval.multiplier
    excluded = " ".join(intervals["does_not_cover"])
    for phrase in (
        "not measured",
        "sampling error",
        "values beyond the bounds",
        "biased",
        "Coverage is per interval",
    ):
        assert phrase in excluded


def test_manifest_states_columns_and_tables(full_release, manifest):
    columns = manifest["post_processing"]["columns"]
    assert list(columns) == ["answer_non_negative", "answer_integer"]
    assert set(columns["answer_non_negative"]) == {"marginal", "prefix", "clip", "none"}
    answers = manifest["answers"]
    assert answers["number_of_tables"] == 9
    assert answers["number_of_answers"] == sum(table.cells for table in full_release.tables)
    assert answers["tables"][2]["key_columns"] == ["sex", "Answer_2"]
    assert answers["tables"][6]["answer_non_negative"] == "none"


def test_manifest_lists_files_with_digests(release_folder, manifest):
    files = {}
    for path in release_folder.rglob("*"):
        if path.is_file() and path.name != "manifest.json":
            content = path.read_bytes()
            digest = hashlib.sha256(content).hexdigest()
            files[path.relative_to(release_folder).as_posix()] = (len(content), digest)
    listed_files = {entry["path"]: (entry["bytes"], entry["sha256"]) for entry in manifest["files"]}
    assert listed_files == files


def test_broken_promise_is_reported(full_release, tmp_path):
    error = full_release.plan.data_independent_error
    halved_tables = tuple(replace(table, rmse=table.rmse / 2) for table in error.tables)
    too_good = replace(error, tables=halved_tables)
    plan = replace(full_release.plan, data_independent_error=too_good)
    release = build_release(replace(full_release.outcome, plan=plan))
    manifest = read_manifest(write(release, tmp_path / "out"))
    assert manifest["expected_error"]["error_bars_are_as_promised"] is False


def test_existing_target_is_refused_before_and_after(full_release, tmp_path):
    target = tmp_path / "out"
    link = tmp_path / "link"
    assert check_target(target) == target
    target.mkdir()
    link.symlink_to(tmp_path / "nowhere")
    message = (
        r"The output directory must not exist yet; got '.*', which exists\. Choose another name"
    )
    for attempt in (
        lambda: check_target(target),
        lambda: write(full_release, target),
        lambda: check_target(link),
    ):
        with pytest.raises(InputError, match=message):
            attempt()
    assert list(target.iterdir()) == []


def test_target_must_be_a_directory(tmp_path):
    (tmp_path / "file").write_text("")
    message = (
        r"must be in a directory that you can write to; got '.*/file/a/out', but you cannot write "
        r"to '.*/file'"
    )
    with pytest.raises(InputError, match=message):
        check_target(tmp_path / "file" / "a" / "out")


def test_parent_directories_are_created_readable(full_release, tmp_path):
    target = write(full_release, tmp_path / "a" / "b" / "out")
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE(target.stat().st_mode) == 0o777 & ~mask
    assert [path.name for path in target.parent.iterdir()] == ["out"]


def test_files_are_synced_before_the_rename(full_release, tmp_path, monkeypatch):
    calls = []
    sync_to_disk = _directory.sync_to_disk
    rename_draft = _directory._rename_draft

    def record_sync(path):
        calls.append(path)
        sync_to_disk(path)

    def record_rename(partial, target):
        calls.append(partial)
        rename_draft(partial, target)

    monkeypatch.setattr(_directory, "sync_to_disk", record_sync)
    monkeypatch.setattr(_directory, "_rename_draft", record_rename)
    target = write(full_release, tmp_path / "out")
    *synced, partial, parent = calls
    synced_paths = {path.relative_to(partial) for path in synced}
    assert {path.relative_to(target) for path in target.rglob("*")} <= synced_paths
    assert parent == tmp_path  # synced after the rename


@pytest.mark.parametrize("step", ["render_report", "_write_column_files", "_make_entry"])
def test_error_leaves_nothing(full_release, tmp_path, monkeypatch, step):
    """The steps are at the end, on the thread that writes a table, and on the main thread."""

    def full(*_):
        raise OSError("no space left on device")

    monkeypatch.setattr(_writing, step, full)
    with pytest.raises(OSError, match="no space"):
        write(full_release, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_target_created_meanwhile_is_not_replaced(full_release, tmp_path, monkeypatch):
    render_report = _writing.render_report

    def create_target_and_render(*arguments):
        (tmp_path / "out").mkdir()
        return render_report(*arguments)

    monkeypatch.setattr(_writing, "render_report", create_target_and_render)
    with pytest.raises(InputError, match="was created while the release ran"):
        write(full_release, tmp_path / "out")
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


def test_draft_of_dead_process_is_replaced_for_its_target(full_release, tmp_path):
    leave_draft(tmp_path / "out")
    target = write(full_release, check_target(tmp_path / "out"), "csv")
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


def test_directory_in_use_is_refused_and_kept(full_release, tmp_path):
    with _directory.open_draft(tmp_path / "out") as living:
        (living.path / "answers.csv").write_text("1")
        with pytest.raises(InputError, match="is being written by another process"):
            write(full_release, tmp_path / "out", "csv")
        other = write(full_release, tmp_path / "other", "csv")
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


def test_directory_without_release_is_refused(tmp_path):
    message = r"There is no release in '.*nothing', or it cannot be read\. Name the directory"
    with pytest.raises(InputError, match=message):
        read(tmp_path / "nothing")


def test_damaged_manifest_is_refused(full_release, tmp_path):
    target = write(full_release, tmp_path / "out", "csv")
    manifest = read_manifest(target)
    incomplete = {
        name: entry for name, entry in manifest.items() if name not in ("options", "intervals")
    }
    for text in ("{", "[]", json.dumps({**manifest, "files": None}), json.dumps(incomplete)):
        (target / "manifest.json").write_text(text)
        with pytest.raises(InputError, match=r"is damaged\. In its manifest: "):
            read(target)


def test_manifest_of_a_newer_format_is_refused(full_release, tmp_path):
    target = write(full_release, tmp_path / "out", "csv")
    manifest = read_manifest(target)
    (target / "manifest.json").write_text(json.dumps({**manifest, "format": 99}))
    message = (
        r"the format of a release must be 1; got 99. It was written by leastnoise "
        r"'\d+\.\d+\.\d+"
    )
    with pytest.raises(InputError, match=message):
        read(target)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("observation", lambda text: text.replace("false", "true")),
        ("plan", lambda text: f"{text}\n"),
    ],
)
def test_changed_measurements_are_refused(full_release, tmp_path, name, change):
    target = write(full_release, tmp_path / "out", "csv")
    file = target / f"measurements/{name}.json"
    file.write_text(change(file.read_text()))
    message = rf"was changed: measurements/{name}\.json is not the file that its manifest describes"
    with pytest.raises(InputError, match=message):
        read(target)
