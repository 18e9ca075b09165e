"""Files of a path, several files as one source, and messages of refusals."""

import datetime as dt
import gzip
from pathlib import Path

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from leastnoise._domain import Coded, Dates, Domain, Integers, Reading
from leastnoise._progress import Progress, RowProgress
from leastnoise._sources import schema
from leastnoise._trusted.check import InputError, InternalError
from leastnoise._trusted.reading import CSV, PeriodFiles, _files, dataset_name, ledger_beside, read
from leastnoise._trusted.reading._column import FileKind
from leastnoise._trusted.reading._files import CSV_FILES, PARQUET_FILES, open_csv
from leastnoise._trusted.table import Columns, open_content
from trusted.reading.encoders import refused
from trusted.reading.small_sources import encoded_rows, write_file

MARK = "SECRETMARK"
CONNECTION = duckdb.connect()
DOMAIN = Domain(sex=["F", "M"])


def test_odd_names_of_files_and_columns(tmp_path):
    file = write_file(tmp_path, b'"a ""b"", c",n\nF,1\n', "x [1]*?.csv")
    write_file(tmp_path, b"n\n0\n", "x 1.csv")
    assert encoded_rows(read(file, Domain({'a "b", c': ["F"], "n": Coded(2)}))) == [(0, 1)]
    frame = pl.DataFrame({'a "b", c': ["F"], "select": [1]})
    frame.write_parquet(tmp_path / "y [1]'.parquet")
    for source in (tmp_path / "y [1]'.parquet", CONNECTION.from_arrow(frame.to_arrow())):
        assert encoded_rows(read(source, Domain({'a "b", c': ["F"], "select": Coded(2)}))) == [
            (0, 1)
        ]


def test_columns_of_csv_depend_only_on_the_header(tmp_path):
    assert schema(str(write_file(tmp_path, b"a,b\n"))) == schema(
        write_file(tmp_path, b"a,b\n" + MARK.encode() + b"\n\xff")
    )


@pytest.mark.slow
def test_damaged_parquet_file_raises_input_error(tmp_path):
    """Dictionary indices are read in another thread than the one that opens the file."""
    path = tmp_path / "x.parquet"
    table = pa.table({"b": pa.array(["x", "y", "z"] * 500).dictionary_encode()})
    pq.write_table(table, path, compression="none")
    intact = path.read_bytes()
    outcomes = set()
    for position in range(4, len(intact)):
        damaged = bytearray(intact)
        damaged[position] = 0xFF
        path.write_bytes(damaged)
        try:
            read(path, Domain(b=["x", "y", "z"]))
            outcomes.add("read")
        except InputError:
            outcomes.add("refused")

    assert outcomes == {"read", "refused"}


def test_source_is_read_where_no_thread_may_start(tmp_path, monkeypatch):
    table = pa.table({"b": ["x", "y", "z"] * 60_000})
    pq.write_table(table, tmp_path / "x.parquet", row_group_size=20_000)

    def refuse(*_):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr("threading.Thread.start", refuse)
    counted = read(tmp_path / "x.parquet", Domain(b=["x", "y", "z"]))
    assert len(encoded_rows(counted)) == 180_000


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("none.csv", None, "the source must be a file that exists; there is no file '"),
        (
            "x.xlsx",
            b"",
            "the source must be a file that ends in .csv, .csv.gz, .tsv, .tsv.gz, .txt",
        ),
        (
            "x.csv",
            b"",
            (
                "must begin with a line of column names; its first line is empty, or the whole "
                "file is. Leave out an empty file; remove the lines before the names; or state "
                "the names: header = [...]"
            ),
        ),
        (
            "x.csv",
            b"sex\rF\rM\r",
            "must begin with a line of column names; its first line has control characters",
        ),
        (
            "x.csv",
            b"sex,n\r\r\nF,1\r\r\n",
            "must begin with a line of column names; its first line has control characters",
        ),
        ("x.csv", b"\n\nsex\n", "must begin with a line of column names"),
        ("x.csv", b"PK\x03\x04\x00\x00", "begins as a ZIP file or an Excel workbook does"),
        ("x.csv", b"\x1f\x8b\x08\x00\n", "begins as a gzip file does. Give it the ending of its"),
        ("x.csv", b"PAR1\x15\x04\n", "begins as a Parquet file does"),
        ("x.csv", b"PAR1\nF\n", "has no column 'sex'; it has 'PAR1'"),
        ("x.csv", b'"sex\nF"\n', "its first line ends within a quoted name"),
        (
            "x.csv",
            b"\xff\xfes\0e\0x\0\n\0",
            (
                "must be text in UTF-8; it begins as text in UTF-16 does. Give it the ending of "
                "its format"
            ),
        ),
        (
            "x.csv",
            b"se\xff\n",
            (
                "must be text in UTF-8; its first line is not. Say its encoding, for example "
                "[source] encodin"
            ),
        ),
        (
            "x.csv",
            b"x" * (2**20 + 5),
            (
                "must begin with a line of column names of at most 1048576 bytes; its first line "
                "is longer."
            ),
        ),
        (
            "x.csv.gz",
            b"sex\nF\n",
            (
                "cannot be read. Check that it is a file that you may read. If its name ends in "
                ".gz, check that gzip compressed it"
            ),
        ),
        (
            "x.csv",
            b"Sex,age\nSECRETMARK,1\n",
            "has no column 'sex'; it has 'Sex', 'age'. Did you mean 'Sex'?",
        ),
        (
            "x.csv",
            b"sex,sex\nSECRETMARK,1\n",
            "must have one column 'sex'; it has 2 of that name. Rename the others.",
        ),
    ],
)
def test_bad_files(tmp_path, name, content, message):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with refused(message):
        read(tmp_path / name, DOMAIN)


@pytest.mark.parametrize(
    "kind", [kind for kind in _files.KINDS if not kind.rows_are_lines], ids=lambda kind: kind.name
)
def test_file_of_another_form_is_refused(tmp_path, kind):
    for ending in kind.endings:
        (tmp_path / f"x{ending}").write_bytes(MARK.encode())
        with refused(f"cannot be read as {kind.name}. Check that the file is whole"):
            read(tmp_path / f"x{ending}", DOMAIN)


def test_a_missing_file_is_guessed(tmp_path):
    (tmp_path / "people.csv").write_bytes(b"sex\n")
    with refused("Did you mean 'people.csv'"):
        read(tmp_path / "peple.csv", DOMAIN)
    with refused("there is no file"):
        read(tmp_path / "no" / "peple.csv", DOMAIN)


def parts(folder):
    """Write a table as one file and in parts with other names, column orders and line ends."""
    single_file = write_file(folder, b"age,sex\n17,F\n18,M\n17,M\n", "whole.csv")
    folder_of_parts = folder / "parts"
    (folder_of_parts / "deeper").mkdir(parents=True)
    write_file(folder_of_parts, b"age,sex\n17,F\n", "b.csv")
    write_file(folder_of_parts, b"sex,age\nM,18\n", "a.csv")
    (folder_of_parts / "deeper" / "c.csv.gz").write_bytes(gzip.compress(b"age,sex\n17,M\n"))
    for name in ("_SUCCESS", ".b.csv.crc"):
        (folder_of_parts / name).write_bytes(MARK.encode())
    return single_file, folder_of_parts


def test_a_folder_and_a_pattern_are_read_as_one_file(tmp_path, monkeypatch):
    single_file, folder_of_parts = parts(tmp_path)
    domain = Domain(sex=["F", "M"], age=Integers(17, 18))
    expected = sorted(encoded_rows(read(single_file, domain)))
    for source in (
        folder_of_parts,
        str(folder_of_parts),
        folder_of_parts / "**" / "*.csv*",
        f"{tmp_path}/par?s/**",
        folder_of_parts / ".." / "parts" / "**",
    ):
        shown_facts = []
        monkeypatch.setattr(
            RowProgress,
            "show",
            lambda _, *facts, shown_facts=shown_facts: shown_facts.append(facts),
        )
        progress = RowProgress(Progress("reading"), "reading", "done")
        assert sorted(encoded_rows(read(source, domain, progress=progress))) == expected
        assert shown_facts[-1] == (3, None)

    assert (
        sorted(encoded_rows(read(folder_of_parts / "[ab].csv", domain)))
        == expected[:1] + expected[2:]
    )
    assert [(field.name, field.type) for field in schema(folder_of_parts)] == [
        ("sex", None),
        ("age", None),
    ]


@pytest.mark.parametrize("link", [Path.symlink_to, Path.hardlink_to], ids=["symbolic", "hard"])
@pytest.mark.parametrize("name", ["a.csv", "b.csv"])
def test_a_file_is_not_read_twice(tmp_path, name, link):
    """A link to it, from its folder or another one, would count each row twice."""
    (tmp_path / "x" / "y").mkdir(parents=True)
    write_file(tmp_path / "x", b"sex\nF\n", "a.csv")
    link(tmp_path / "x" / "y" / name, tmp_path / "x" / "a.csv")

    for path in (tmp_path / "x", tmp_path / "x" / "**" / "*.csv"):
        with pytest.raises(
            InputError,
            match=r"the files of a source must be different ones; .* means one twice, by a link",
        ):
            read(path, Domain(sex=["F"]))


@pytest.mark.parametrize("name", ["x.txt", "x.TXT", "x.txt.gz", "x.tsv.gz"])
def test_text_files_are_csv_files(tmp_path, name):
    content = b"sex;age\nF;1\nM;2\n"
    if name.endswith("gz"):
        content = gzip.compress(content)
    (tmp_path / name).write_bytes(content)
    table = read(tmp_path / name, Domain(sex=["F", "M"], age=Integers(0, 9)))
    assert table.domain.names == ("sex", "age")
    assert sorted(open_content(table, Columns).codes["sex"].tolist()) == [0, 1]


@pytest.mark.parametrize("path", ["mine/a.csv", "mine", "mine/*.csv", "mine/**", "mine/none.csv"])
@pytest.mark.parametrize(
    ("names", "kind"),
    [
        (["other/a.csv"], CSV_FILES),
        (["mine/a.csv", "other/a.csv"], CSV_FILES),
        (["mine/../other/a.csv"], CSV_FILES),
        (["mine/a.parquet"], CSV_FILES),
        (["mine/a.csv", "mine/a.parquet"], CSV_FILES),
        (["mine/a.csv"], PARQUET_FILES),
        (["mine/a.txt"], FileKind(name="CSV", endings=(".txt",), open=open_csv)),
    ],
)
def test_files_that_a_path_does_not_mean_are_refused(tmp_path, path, names, kind, monkeypatch):
    """They are refused in files, folders and patterns of every kind."""
    for folder in ("mine", "other"):
        (tmp_path / folder).mkdir()
        for name in ("a.csv", "a.txt"):
            write_file(tmp_path / folder, b"sex\nF\n", name)
        pq.write_table(pa.table({"sex": ["F"]}), tmp_path / folder / "a.parquet")
    monkeypatch.setattr(
        _files, "find_files", lambda _path, _kinds: [(tmp_path / name, kind) for name in names]
    )

    with pytest.raises(
        InternalError,
        match="the files of a source must be below its path and of the kind that their names say",
    ):
        read(tmp_path / path, DOMAIN)


@pytest.mark.parametrize(
    "names",
    [
        ("a.csv", "a.csv.gz"),
        ("a.csv", "a.tsv"),
        ("b.csv", "A.CSV.GZ", "a.csv"),
        ("x/a.tsv", "x/a.csv.gz"),
    ],
)
def test_one_file_in_two_forms_is_refused(tmp_path, names):
    for name in names:
        content = b"sex\nF\n"
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(
            gzip.compress(content) if name.lower().endswith("gz") else content
        )
    for source in (tmp_path, tmp_path / "**" / "*"):
        with refused("differ only in their endings"):
            read(source, DOMAIN)


def test_equal_names_in_two_folders_are_two_files(tmp_path):
    for name in ("2023/a.csv", "2024/a.tsv"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text("sex\nF\n")
    assert encoded_rows(read(tmp_path, DOMAIN)) == [(0,), (0,)]


def test_units_go_across_files(tmp_path):
    _, folder_of_parts = parts(tmp_path)
    table = read(folder_of_parts, Domain(sex=["F", "M"]), unit_column="age", max_rows=1)
    assert len(encoded_rows(table)) == 2


@pytest.mark.parametrize(
    ("names", "patterns"),
    [
        (["month=2024-01/a", "month=2024-02/a", "month=2024-03/a", "month=x/a"], ()),
        (["v-1", "v-2", "v-3", "other"], ["v-1.*", "v-2.*", "v-3.*"]),
        (["y=4/m=1/a", "y=4/m=2/a", "y=4/m=3/a", "y=4/m=9/a"], ["m=1/*", "y=4/m=2/*", "m=3/*"]),
    ],
)
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_only_files_of_periods_are_read(tmp_path, names, patterns, kind):
    """Periods come from folders or patterns; a file without a period is always read."""
    days = Dates(
        "2024-01-01", "2024-03-31", "month", format="%Y-%m", reading=Reading(column="month")
    )
    if patterns:
        days = Dates("2024-01-01", "2024-03-31", "month", reading=Reading(column="day"))
    domain = Domain(when=days, file=Coded(4))
    for number, name in enumerate(names):
        file = tmp_path / f"{name}.{kind}"
        file.parent.mkdir(parents=True, exist_ok=True)
        rows = pa.table({"day": [f"2024-0{min(number, 2) + 1}-01"], "file": [number]})
        if kind == "csv":
            pyarrow.csv.write_csv(rows, file)
        else:
            pq.write_table(rows, file)
    for first, end in ((0, 3), (0, 1), (1, 2), (1, 3), (2, 2)):
        periods = PeriodFiles(along="when", first=first, end=end, patterns=patterns)
        table = open_content(read(tmp_path, domain, period_files=periods))
        always = [3] if patterns else []
        assert sorted(table.codes["file"].tolist()) == [*range(first, end), *always]


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("none*.csv", "the source must be files that exist. The pattern '"),
        ("empty", "the source must be files that exist. The folder '"),
        ("parts", "the files of a source must have the same columns; the CSV file '"),
        ("mixed/*", "the files of a source must be of one kind. The pattern '"),
        ("odd", "the files of a source must end in .csv, .csv.gz, .tsv, .tsv.gz, .txt"),
    ],
)
def test_several_files_that_are_not_one_source(tmp_path, pattern, message):
    _, folder_of_parts = parts(tmp_path)
    write_file(folder_of_parts, b"sex\n", "z.csv")
    for name in ("empty", "mixed", "odd"):
        (tmp_path / name).mkdir()
    write_file(tmp_path / "mixed", b"sex\n")
    pq.write_table(pa.table({"sex": [MARK]}), tmp_path / "mixed" / "x.parquet")
    write_file(tmp_path / "odd", b"", "x.md")
    with refused(message):
        read(tmp_path / pattern, DOMAIN)


@pytest.mark.parametrize("stray", ["notes.txt", "sub/notes.tsv", "b.TXT.gz"])
def test_headerless_files_of_several_endings_are_refused(tmp_path, stray):
    """Without a header, a line of notes would count as a row."""
    write_file(tmp_path, b"F\nM\n", "a.csv")
    (tmp_path / stray).parent.mkdir(exist_ok=True)
    note = b"F\n"
    (tmp_path / stray).write_bytes(gzip.compress(note) if stray.endswith("gz") else note)
    (tmp_path / "c.csv.gz").write_bytes(gzip.compress(b"F\n"))

    for pattern in ("", "**/*"):
        with refused("files without a line of names must have one ending"):
            read(CSV(tmp_path / pattern, header=["sex"]), DOMAIN)
    for pattern, rows in (("*.csv*", 3), ("*.csv", 2)):
        assert len(encoded_rows(read(CSV(tmp_path / pattern, header=["sex"]), DOMAIN))) == rows


@pytest.mark.parametrize("header", [True, ["sex"]])
def test_files_that_engines_leave_in_folders_are_not_read(tmp_path, header):
    for name in ("a.csv", "_SUCCESS", ".a.csv.crc", ".DS_Store", "._a.csv", "_temporary/0/b.csv"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        write_file(
            (tmp_path / name).parent, b"sex\nF\n" if header is True else b"F\n", Path(name).name
        )
    assert encoded_rows(read(CSV(tmp_path, header=header), DOMAIN)) == [(0,)]


def test_folder_gives_name_and_ledger_of_its_files(tmp_path):
    _, folder_of_parts = parts(tmp_path)
    assert dataset_name(folder_of_parts) == "parts"
    assert ledger_beside(folder_of_parts) == tmp_path / "parts.ledger"
    assert dataset_name(folder_of_parts / "*.csv") == "parts"
    assert ledger_beside(folder_of_parts / "*.csv") == folder_of_parts / "parts.ledger"
    assert ledger_beside(folder_of_parts / "**" / "*.csv") == folder_of_parts / "parts.ledger"


def test_days_of_old_parquet_time_stamps_are_read_beyond_64_bits_of_nanoseconds(tmp_path):
    days = [dt.date(year, 3, 1) for year in (1600, 2026, 2500)]
    instants_in_microseconds = pa.array(days).cast(pa.timestamp("us"))
    pq.write_table(
        pa.table({"day": instants_in_microseconds}),
        tmp_path / "x.parquet",
        use_deprecated_int96_timestamps=True,
    )
    years = Domain(day=Dates("1500-01-01", "2600-01-01", by="year"))
    assert encoded_rows(read(tmp_path / "x.parquet", years)) == [(100,), (526,), (1000,)]


def test_layout_of_csv_files_is_refused_for_other_files(tmp_path):
    pq.write_table(pa.table({"sex": ["F"]}), tmp_path / "x.parquet")
    with pytest.raises(InputError, match=r"delimiter, encoding and header are about CSV files"):
        read(CSV(tmp_path / "x.parquet", delimiter=";"), DOMAIN)


def test_a_file_cut_short(tmp_path):
    packed = gzip.compress(
        b"sex\n" + "".join(f"{MARK}{number}\n" for number in range(300_000)).encode()
    )
    (tmp_path / "x.csv.gz").write_bytes(packed[: len(packed) // 2])
    with refused("cannot be read"):
        read(tmp_path / "x.csv.gz", DOMAIN)

    pq.write_table(
        pa.table({"sex": [f"{MARK}{number}" for number in range(1000)]}), tmp_path / "x.parquet"
    )
    intact = (tmp_path / "x.parquet").read_bytes()
    (tmp_path / "x.parquet").write_bytes(intact[:100] + b"\xff" * 400 + intact[500:])
    with refused("cannot be read to its end"):
        read(tmp_path / "x.parquet", DOMAIN)
