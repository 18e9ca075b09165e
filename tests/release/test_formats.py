"""Excel workbooks and SDMX-CSV messages that other programs read back."""

import csv
import datetime as dt
import re
import sys
from itertools import chain, product
from xml.etree import ElementTree as ET

import numpy as np
import openpyxl
import pandas as pd
import pytest
from pysdmx import io as pysdmx

import leastnoise as ln
from leastnoise._release import FORMATS, MOST_TABLES, WRITERS, check_options
from leastnoise._trusted.check import InputError

MEAN = ["=1+1", "-2", "<= 5", "a\x07b", "x: y", "\u00fc"]
"""Labels that programs take for something else."""


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """Write a release with hostile labels, similar names, months and all statistics."""
    month = ln.Dates("2024-01-01", "2024-03-31", by="month")
    domain = ln.Domain(
        {
            "sex": ["F", "<b>M & \x01"],
            "Sex": MEAN,
            "Answer": ln.Integers(0, 4, outside="clip"),
            "month": month,
        },
        measures={"pay": ln.Measure("pay", 0, 10, unit="0.5"), "Pay": ln.Measure("pay", 0, 10)},
    ).as_complete()
    workload = (
        ln.marginals(domain, upto=2)
        + ln.queries(domain, Answer="prefix")
        + ln.queries(domain, sex="identity", sum="Pay")
    )
    workload += ln.mean_queries(domain, of="pay", by=["sex"]) + ln.mean_queries(domain, of="pay")
    workload += ln.cdf_queries(domain, of="Answer", by=["Sex"]) + ln.quantile_queries(
        domain, of="Answer", at=["1/4", "1/2"]
    )
    rows = pd.DataFrame(
        {
            "sex": ["F", "x"] * 40,
            "Sex": "ü",
            "Answer": np.arange(80) % 5,
            "month": "2024-02-01",
            "pay": 4,
        }
    )
    out = tmp_path_factory.mktemp("formats") / "out"
    options = ln.Options(formats=FORMATS, below=10, non_negative=True)
    return out, ln.release(
        ln.plan(workload, ln.PureDP(4), strategy="identity"), rows, seed=3, out=out, options=options
    )


def without_nan(values):
    return [None if value != value else value for value in values.tolist()]  # noqa: PLR0124 - NaN


# --- Excel ----------------------------------------------------------------------------------------


def test_workbook_has_a_sheet_for_each_table(published):
    out, release = published
    book = openpyxl.load_workbook(out / "answers.xlsx")
    # No sheet has a formula.
    assert {cell.data_type for sheet in book for row in sheet.iter_rows() for cell in row} <= {
        "s",
        "n",
        "inlineStr",
    }
    units = {None: "rows", "count of pay": "rows with a value of pay"}
    units |= {measure: f"sum of {measure}" for measure in ("pay", "Pay")}
    listed = list(book["tables"].iter_rows(min_row=2, values_only=True))
    *sheets, columns = book.sheetnames
    assert columns == "columns"
    assert len(sheets) == 1 + len(release.tables) + len(release.statistics)
    for table, (query, name, sheet, answers, unit, margin, leaves_out) in zip(
        release.tables, listed, strict=True
    ):
        assert (query, name, answers) == (table.id, table.name, table.cells)
        assert leaves_out == "sex, Sex, Answer, month"
        assert unit == units.get(table.product.measure, table.product.measure)
        assert margin == pytest.approx(without_nan(np.array([table.typical_margin]))[0])
        head, *rows = list(book[sheet].iter_rows(min_row=5, values_only=True))
        columns = {
            name: list(values) for name, values in zip(head, zip(*rows, strict=True), strict=True)
        }
        expected = table.columns()
        assert list(columns)[list(columns).index("answer") + 1] == "margin"
        assert columns.pop("margin") == pytest.approx(
            without_nan(expected["high"] - expected["answer"])
        )
        assert list(columns) == list(expected)
        for column, values in expected.items():
            if values.dtype.kind == "O":  # the file's standard has control characters as texts
                assert columns[column] == [
                    re.sub("[\x01\x07]", lambda one: f"_x{ord(one[0]):04}_", value)
                    for value in values
                ]
            else:
                assert columns[column] == pytest.approx(without_nan(values))


def test_workbook_is_labelled_and_has_no_time_of_day(published):
    out, _ = published
    book = openpyxl.load_workbook(out / "answers.xlsx")
    assert book.properties.created.time() == dt.time()
    assert "NOT PRIVATE" in book.worksheets[1]["A3"].value
    assert "in 95% of releases" in book.worksheets[1]["A2"].value
    files = {"answers.xlsx", "manifest.json", "publication.xlsx", "report.html"}
    files |= {"structure.sdmx.xml", "tables.csv"}
    assert {path.name for path in out.iterdir()} == {"answers", "measurements", *files}


def test_publication_workbook_has_inert_texts_and_dashes(published):
    out, release = published
    book = openpyxl.load_workbook(out / "publication.xlsx")
    cells = [cell for sheet in book for row in sheet.iter_rows() for cell in row]
    assert {cell.data_type for cell in cells} <= {"s", "n", "inlineStr"}  # no formula
    assert book.properties.created.time() == dt.time()
    by_sex = next(table for table in release.tables if table.name == "Sex")
    sheet = book[by_sex.id]
    assert "NOT PRIVATE" in sheet["A4"].value
    shown = [sheet.cell(row, 2).value for row in range(7, 7 + len(MEAN))]
    assert shown == ["\u2013" if value is None else value for value in without_nan(by_sex.answer)]
    assert "\u2013: not published." in [cell.value for cell in sheet["A"]]
    assert sheet["A7"].value == "=1+1"


# --- SDMX-CSV -------------------------------------------------------------------------------------

ID = re.compile(r"[A-Za-z0-9_@$-]+")
COMPONENT = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")


def path_of(out, of):
    """The message of a table or statistic."""
    (path,) = (
        path
        for path in (out / "answers").glob("*.sdmx.csv")
        if re.match(f"{of.id[0]}0?{of.id[1:]}-", path.name)
    )
    return path


def message_of(out, of):
    """Its head and its rows."""
    with path_of(out, of).open(encoding="utf-8", newline="") as file:
        head, *rows = list(csv.reader(file))
    return head, rows


def named_in(reference):
    """The id of what a reference such as `...=LEASTNOISE:CL1(1.0.0)` is to."""
    return re.search(r"LEASTNOISE:([^(]+)\(1\.0\.0\)", reference).group(1)


def read_domain_parts(entries):
    """Ids and labels of entries such as `SEX: sex`; a period is its own label."""
    parts = [entry.split(": ", 1) for entry in entries]
    return list(zip(*((part[0], part[-1]) for part in parts), strict=True))


def test_sdmx_messages_have_standard_columns_and_ids(published):
    out, release = published
    for of in (*release.tables, *release.statistics):
        head, rows = message_of(out, of)
        assert head[:3] == ["STRUCTURE", "STRUCTURE_ID", "ACTION"]
        assert {tuple(row[:3]) for row in rows} == {("dataflow", rows[0][1], "I")}
        assert re.fullmatch(r"LEASTNOISE:[A-Z0-9_-]+\(1\.0\.0\): .+", rows[0][1])
        components = [entry.split(": ")[0] for entry in head[3:]]
        assert all(COMPONENT.fullmatch(component) for component in components)
        assert len(set(components)) == len(components)
        columns = dict(zip(components, list(zip(*rows, strict=True))[3:], strict=True))
        numbers, kind = of.numbers(), of.statistic.kind if of in [*release.statistics] else "tables"
        value = "answer" if kind == "tables" else of.value_name
        error = {"tables": {"NOISE_STD": "noise_std"}, "means": {"STD_ERROR": "std_error"}}.get(
            kind, {}
        )
        for name, column in {"OBS_VALUE": value, "LOW": "low", "HIGH": "high", **error}.items():
            assert columns[name] == tuple(
                "" if np.isnan(number) else str(number) for number in numbers[column].tolist()
            ), name
        assert ("STD_ERROR" in columns) == (kind == "means")
        assert [status[0] for status in columns["OBS_STATUS"]] == [
            "Q" if np.isnan(number) else "E" for number in numbers[value]
        ]
        assert set(columns["CONF_LEVEL"]) == {"0.95"}


def test_sdmx_messages_carry_table_labels(published):
    out, release = published
    for table in release.tables:
        head, rows = message_of(out, table)
        end = next(place for place, entry in enumerate(head) if entry.startswith("OBS_VALUE"))
        attributes = table.product.attributes
        has_codes = {*attributes} > {"month"} or "month" not in attributes
        if not has_codes or not attributes:
            attributes = ("all rows", *attributes)  # the standard wants a dimension with codes
        assert {*read_domain_parts(head[3:end])[1]} == {*attributes}
        assert ("TIME_PERIOD: month" in head) == ("month" in attributes)
        codes, labels = zip(*(read_domain_parts(row[3:end]) for row in rows), strict=True)
        assert len(set(codes)) == len(rows)
        extra = [("total",)] * (attributes[:1] == ("all rows",))
        axes = [*extra, *(tuple(map(str, axis)) for axis in table.labels)]
        assert list(labels) == list(product(*axes))
        for code, label in zip(chain(*codes), chain(*labels), strict=True):
            assert ID.fullmatch(code)
            assert code in {label.upper(), "_T"} or not ID.fullmatch(label), (
                "a code is a label where it can be"
            )


def test_level_groups_are_a_dimension(tmp_path):
    place, land = (
        ln.Categories(["a", "b", "c"], levels={"land": {"a": "N", "b": "N", "c": "S"}}),
        {"place": ln.level("land")},
    )
    domain = ln.Domain(
        {"place": place, "age": ln.Integers(0, 4, outside="clip")},
        measures={"years": ln.Measure("age", 0, 4)},
    ).as_complete()
    workload = ln.queries(domain, place="identity") + ln.queries(domain, **land, age="identity")
    workload += ln.mean_queries(domain, "years", by=[land]) + ln.cdf_queries(
        domain, "age", by=[land]
    )
    rows = pd.DataFrame({"place": ["a", "b", "c"] * 9, "age": [0, 1, 2] * 9})
    ln.release(
        ln.plan(workload, ln.PureDP(1), strategy="identity"),
        rows,
        seed=4,
        out=tmp_path / "out",
        options=ln.Options(formats=["sdmx"]),
    )
    heads = {
        file.name[:2]: file.read_text(encoding="utf-8").split(",OBS_VALUE")[0]
        for file in (tmp_path / "out/answers").glob("*.csv")
    }
    of_land, by_age = "PLACE_LAND: place:land", "PLACE_LAND: place:land,AGE: age"
    dimensions = {
        "q1": "PLACE: place",
        "q2": by_age,
        "q3": of_land,
        "q4": of_land,
        "q5": by_age,
        "s1": of_land,
        "s2": by_age,
    }
    assert {name: head.split("ACTION,")[1] for name, head in heads.items()} == dimensions
    structure = (tmp_path / "out/structure.sdmx.xml").read_text(encoding="utf-8")
    assert all(code in structure for code in ('id="CL1_PLACE"', "PLACE_LAND", '<str:Code id="N">'))


STR, COM = (
    "{http://www.sdmx.org/resources/sdmxml/schemas/v3_0/structure}",
    "{http://www.sdmx.org/resources/sdmxml/schemas/v3_0/common}",
)


def test_sdmx_structures_define_all_codes(published):
    out, release = published
    tree = ET.parse(out / "structure.sdmx.xml").getroot()  # noqa: S314 - our own
    lists, structures, flows = (
        {element.get("id"): element for element in tree.iter(STR + kind)}
        for kind in ("Codelist", "DataStructure", "Dataflow")
    )
    lists = {
        key: [code.get("id") for code in codelist.iter(f"{STR}Code")]
        for key, codelist in lists.items()
    }
    assert all(len(set(codelist)) == len(codelist) for codelist in lists.values())
    concepts = {element.get("id") for element in tree.iter(f"{STR}Concept")}
    every = [*release.tables, *release.statistics]
    assert len(list((out / "answers").glob("*.sdmx.csv"))) == len(flows) == len(every)
    for of in every:
        head, rows = message_of(out, of)
        structure = structures[named_in(flows[named_in(rows[0][1])].find(f"{STR}Structure").text)]
        parts = [
            element
            for kind in ("Dimension", "TimeDimension", "Attribute", "Measure")
            for element in structure.iter(STR + kind)
            if element.get("id")
        ]
        places = {entry.split(": ")[0]: place for place, entry in enumerate(head[3:], 3)}
        assert {part.get("id") for part in parts} == set(places)
        for part in parts:
            assert part.find(f"{STR}ConceptIdentity").text.rsplit(".", 1)[1] in concepts
            listed = part.find(f".//{STR}Enumeration")
            if listed is not None:
                assert {row[places[part.get("id")]].split(": ")[0] for row in rows} <= set(
                    lists[named_in(listed.text)]
                )
    names = {element.text for element in tree.iter(f"{COM}Name")}
    assert {"<b>M & \ufffd", "\u00fc", "mean of pay by sex", "<= 3"} <= names


def test_other_program_reads_sdmx_messages(published):
    out, release = published
    pysdmx.read_sdmx(out / "structure.sdmx.xml", validate=True)
    for of in (release.tables[0], release.tables[1], release.statistics[0], release.statistics[2]):
        (data,) = pysdmx.get_datasets(path_of(out, of), out / "structure.sdmx.xml")
        assert len(data.data) == len(message_of(out, of)[1])


OFFICE = {
    "agency": "AT1",
    "flows": "quantity",
    "concepts": {"place": "REF_AREA", "sex": "SEX"},
    "codes": {"sex": {"f": "F", "m": "M"}},
    "units": {"rows": "PS", "pay": "EUR"},
    "status": {"published": "A", "suppressed": "Q"},
}


@pytest.fixture(scope="module")
def office(tmp_path_factory):
    """Tables of counts over time and without, of sums and of prefix sums, as an office has them."""
    place = ln.Categories(["a", "b", "c"], levels={"land": {"a": "N", "b": "N", "c": "a"}})
    month = ln.Dates("2024-01-01", "2024-03-31", by="month")
    domain = ln.Domain(
        {"place": place, "sex": ["f", "m"], "month": month},
        measures={"pay": ln.Measure("pay", 0, 10)},
    ).as_complete()
    land = {"place": ln.level("land")}
    workload = ln.queries(domain, place="identity", sex="identity")
    workload += ln.queries(domain, **land) + ln.queries(domain) + ln.queries(domain, sex="identity")
    workload += ln.queries(domain, month="identity", sex="identity")
    workload += ln.queries(domain, month="identity") + ln.queries(domain, month="prefix")
    workload += ln.queries(domain, sex="identity", sum="pay")
    rows = pd.DataFrame(
        {"place": list("abc") * 9, "sex": list("fmm") * 9, "month": "2024-02-01", "pay": 3}
    )
    out = tmp_path_factory.mktemp("office") / "out"
    options = ln.Options(formats=["csv", "sdmx"], agency="Office", below=5, sdmx=OFFICE)
    plan = ln.plan(workload, ln.PureDP(9), strategy="identity")
    return out, ln.release(plan, rows, seed=3, out=out, options=options)


def test_sdmx_has_one_flow_for_each_quantity(office):
    out, release = office
    files = sorted(path.name for path in (out / "answers").glob("*.sdmx.csv"))
    assert files == [
        "pay.sdmx.csv",
        "q7-month-prefix.sdmx.csv",
        "rows.sdmx.csv",
        "rows_by_time.sdmx.csv",
    ]
    data = pysdmx.get_datasets(out / "answers/rows.sdmx.csv", out / "structure.sdmx.xml")[0].data
    keyed = dict(
        zip(zip(data["REF_AREA"], data["SEX"], strict=True), data["OBS_VALUE"], strict=True)
    )
    tables = release.tables
    assert len(keyed) == 6 + 2 + 1 + 2
    expected = {
        ("A", "F"): tables[0].answer[0, 0],
        ("N", "_T"): tables[1].answer[0],
        ("PLACE_LAND_A", "_T"): tables[1].answer[1],  # the level's code is one of the attribute's
        ("_T", "_T"): tables[2].answer,
        ("_T", "M"): tables[3].answer[1],
    }
    for key, answer in expected.items():
        assert np.isnan(answer) or float(keyed[key]) == pytest.approx(float(answer)), key


def test_sdmx_has_time_periods_and_mapped_ids(office):
    out, _ = office
    structure = pysdmx.read_sdmx(out / "structure.sdmx.xml", validate=True)
    agencies = {
        flow.agency if isinstance(flow.agency, str) else flow.agency.id
        for flow in structure.get_dataflows()
    }
    assert agencies == {"AT1"}
    path = out / "answers/rows_by_time.sdmx.csv"
    data = pysdmx.get_datasets(path, out / "structure.sdmx.xml")[0].data
    assert {*data["TIME_PERIOD"]} == {"2024-01", "2024-02", "2024-03"}
    assert {*data["SEX"]} == {"F", "M", "_T"}
    assert {*data["UNIT_MEASURE"]} == {"PS"}
    assert {*data["OBS_STATUS"]} == {"A", "Q"}
    (column,) = [
        definition
        for definition in structure.get_data_structure_definitions()
        if definition.id == "ROWS_BY_TIME"
    ]
    assert [part.id for part in column.components.dimensions] == ["SEX", "TIME_PERIOD"]
    pay = (out / "answers/pay.sdmx.csv").read_text(encoding="utf-8")
    assert ",EUR: pay," in pay


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ({"agent": "x"}, "a key of sdmx must be one of 'agency'"),
        ({"flows": "all"}, "sdmx flows must be one of 'table', 'quantity'"),
        ({"concepts": {"sex": "1X"}}, "sdmx concepts sex must be an id of letters"),
        ({"concepts": {"sex": "TIME_PERIOD"}}, "an id that is not reserved"),
        ({"concepts": {"age": "AGE"}}, "a key of sdmx concepts must be one of 'sex'"),
        ({"codes": {"sex": {"X": "F"}}}, "a key of sdmx codes sex must be one of 'F', 'M'"),
        ({"codes": {"sex": {"F": "1", "M": "1"}}}, "must differ from each other"),
        ({"units": {"pay": "EUR"}}, "a key of sdmx units must be one of 'rows', 'units'"),
        ({"status": {"published": "Z"}}, "sdmx status published must be one of 'A'"),
        ({"agency": ""}, None),
    ],
)
def test_sdmx_part_is_checked_before_payment(part, message):
    if message is None:
        check_options(SMALL, ln.Options(sdmx=part))
        return
    with pytest.raises(InputError, match=re.escape(message)):
        check_options(SMALL, ln.Options(sdmx=part))


# --- refused before anything is paid --------------------------------------------------------------


@pytest.mark.parametrize("name", WRITERS)
def test_unsupported_format_content_is_refused(name):
    domain = ln.Domain(
        {f"a{number}": ln.Coded(2) for number in range(MOST_TABLES + 1)}
    ).as_complete()
    plan = ln.plan(ln.marginals(domain, ways=1), ln.PureDP(1), strategy="workload")
    with pytest.raises(
        InputError, match=f"'{name}' must be of at most 200 tables; got '201 tables'"
    ):
        check_options(plan, ln.Options(formats=(name,)))
    check_options(plan, ln.Options(formats=("csv",)))
    long = ln.plan(
        ln.queries(ln.Domain(x=ln.Coded(2**20)).as_complete(), x="identity"),
        ln.PureDP(1),
        strategy="identity",
    )
    with pytest.raises(
        InputError, match="must be of at most 1000000 answers; got '1048576 answers'"
    ):
        check_options(long, ln.Options(formats=(name,)))


SMALL = ln.plan(
    ln.queries(ln.Domain(sex=["F", "M"]).as_complete(), sex="identity"),
    ln.PureDP(1),
    strategy="identity",
)


def test_missing_library_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "xlsxwriter", None)
    with pytest.raises(InputError, match=re.escape("pip install 'leastnoise[excel]'")):
        check_options(SMALL, ln.Options(formats=("xlsx",)))
    check_options(SMALL, ln.Options(formats=("sdmx",)))


def test_covariances_and_statements_default_to_csv(tmp_path):
    options = ln.Options(
        formats=("sdmx",),
        covariances=("q1",),
        statements=("SELECT sex, COUNT(*) FROM people GROUP BY sex",),
    )
    ln.release(SMALL, pd.DataFrame({"sex": ["F"]}), seed=1, out=tmp_path / "out", options=options)
    assert [path.name for path in (tmp_path / "out" / "covariances").iterdir()] == ["q1.csv"]
    assert [path.name for path in (tmp_path / "out" / "answers").glob("statement*")] == [
        "statement-1.csv"
    ]
