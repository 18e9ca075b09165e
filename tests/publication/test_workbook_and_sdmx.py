"""Tests of Excel workbooks and SDMX-CSV messages, which other programs read back."""

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
from leastnoise._publication import WRITERS
from leastnoise._release import FORMATS, MOST_TABLES, check_options
from leastnoise._trusted.check import InputError

# Labels that programs may take for formulas, numbers or separators.
HOSTILE_LABELS = ["=1+1", "-2", "<= 5", "a\x07b", "x: y", "\u00fc"]
SMALL = ln.plan(
    ln.queries(ln.Domain(sex=["F", "M"]).as_complete(), sex="identity"),
    ln.PureDP(1),
    strategy="identity",
)


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """Write a release with hostile labels, similar names, months and all statistics."""
    domain = ln.Domain(
        {
            "sex": ["F", "<b>M & \x01"],
            "Sex": HOSTILE_LABELS,
            "Answer": ln.Integers(0, 4, outside="clip"),
            "month": ln.Dates("2024-01-01", "2024-03-31", by="month"),
        },
        measures={"pay": ln.Measure("pay", 0, 10, unit="0.5"), "Pay": ln.Measure("pay", 0, 10)},
    ).as_complete()
    workload = ln.marginals(domain, upto=2)
    workload += ln.queries(domain, Answer="prefix")
    workload += ln.queries(domain, sex="identity", sum="Pay")
    workload += ln.mean_queries(domain, of="pay", by=["sex"]) + ln.mean_queries(domain, of="pay")
    workload += ln.cdf_queries(domain, of="Answer", by=["Sex"])
    workload += ln.quantile_queries(domain, of="Answer", at=["1/4", "1/2"])
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
    plan = ln.plan(workload, ln.PureDP(4), strategy="identity")
    return out, ln.release(plan, rows, seed=3, out=out, options=options)


def none_for_nan(values):
    """Return the values as a list with None instead of NaN."""
    return [None if np.isnan(value) else value for value in values.tolist()]


# --- Excel workbooks ------------------------------------------------------------------------------


def test_workbook_lists_every_table(published):
    out, release = published
    book = openpyxl.load_workbook(out / "answers.xlsx")
    # No sheet has a formula.
    cells = [cell for sheet in book for row in sheet.iter_rows() for cell in row]
    assert {cell.data_type for cell in cells} <= {"s", "n", "inlineStr"}
    *sheets, columns = book.sheetnames
    assert columns == "columns"
    assert len(sheets) == 1 + len(release.tables) + len(release.statistics)

    units = {
        None: "rows",
        "count of pay": "rows with a value of pay",
        "pay": "sum of pay",
        "Pay": "sum of Pay",
    }
    rows = list(book["tables"].iter_rows(min_row=2, values_only=True))
    for table, row in zip(release.tables, rows, strict=True):
        query, name, _, answers, unit, margin, leaves_out = row
        assert query == table.id
        assert name == table.name
        assert answers == table.cells
        assert leaves_out == "sex, Sex, Answer, month"
        assert unit == units.get(table.product.measure, table.product.measure)
        assert margin == pytest.approx(none_for_nan(np.array([table.typical_margin]))[0])


def test_workbook_has_a_sheet_for_each_table(published):
    out, release = published
    book = openpyxl.load_workbook(out / "answers.xlsx")
    sheets = [row[2] for row in book["tables"].iter_rows(min_row=2, values_only=True)]
    for table, sheet in zip(release.tables, sheets, strict=True):
        head, *rows = list(book[sheet].iter_rows(min_row=5, values_only=True))
        columns = {
            name: list(values) for name, values in zip(head, zip(*rows, strict=True), strict=True)
        }
        expected = table.columns()
        assert list(columns)[list(columns).index("answer") + 1] == "margin"
        margins = none_for_nan(expected["high"] - expected["answer"])
        assert columns.pop("margin") == pytest.approx(margins)
        assert list(columns) == list(expected)
        for column, values in expected.items():
            if values.dtype.kind == "O":
                assert columns[column] == [escape_control_characters(text) for text in values]
            else:
                assert columns[column] == pytest.approx(none_for_nan(values))


def escape_control_characters(text):
    """Return a text as the standard of the file writes control characters: _x0007_."""
    return re.sub("[\x01\x07]", lambda match: f"_x{ord(match[0]):04}_", text)


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
    shown = [sheet.cell(row, 2).value for row in range(7, 7 + len(HOSTILE_LABELS))]
    assert shown == ["\u2013" if value is None else value for value in none_for_nan(by_sex.answer)]
    assert "\u2013: not published." in [cell.value for cell in sheet["A"]]
    assert sheet["A7"].value == "=1+1"


# --- messages in SDMX-CSV -------------------------------------------------------------------------

ID = re.compile(r"[A-Za-z0-9_@$-]+")
COMPONENT = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")


def message_path(out, table):
    """Return the file with the message of a table or statistic."""
    pattern = f"{table.id[0]}0?{table.id[1:]}-"
    files = (out / "answers").glob("*.sdmx.csv")
    (path,) = (path for path in files if re.match(pattern, path.name))
    return path


def read_message(out, table):
    """Return the head and the rows of the message of a table or statistic."""
    with message_path(out, table).open(encoding="utf-8", newline="") as file:
        head, *rows = list(csv.reader(file))
    return head, rows


def referenced_id(reference):
    """Return the id in a reference such as `...=LEASTNOISE:CL1(1.0.0)`."""
    return re.search(r"LEASTNOISE:([^(]+)\(1\.0\.0\)", reference).group(1)


def split_entries(entries):
    """Return the ids and labels of entries such as `SEX: sex`; a period is its own label."""
    parts = [entry.split(": ", 1) for entry in entries]
    return [tuple(part[0] for part in parts), tuple(part[-1] for part in parts)]


def component_columns(message):
    """Return the columns of a message behind the first three, by the id of the component."""
    head, rows = message
    components = [entry.split(": ")[0] for entry in head[3:]]
    return dict(zip(components, list(zip(*rows, strict=True))[3:], strict=True))


def test_sdmx_messages_have_standard_columns_and_ids(published):
    out, release = published
    for table in (*release.tables, *release.statistics):
        head, rows = read_message(out, table)
        assert head[:3] == ["STRUCTURE", "STRUCTURE_ID", "ACTION"]
        assert {tuple(row[:3]) for row in rows} == {("dataflow", rows[0][1], "I")}
        assert re.fullmatch(r"LEASTNOISE:[A-Z0-9_-]+\(1\.0\.0\): .+", rows[0][1])
        components = [entry.split(": ")[0] for entry in head[3:]]
        assert all(COMPONENT.fullmatch(component) for component in components)
        assert len(set(components)) == len(components)


def test_sdmx_messages_have_the_numbers_of_their_table(published):
    out, release = published
    sources = {
        table.id: {"OBS_VALUE": "answer", "NOISE_STD": "noise_std"} for table in release.tables
    }
    for statistic in release.statistics:
        sources[statistic.id] = {"OBS_VALUE": statistic.value_name}
        if statistic.statistic.kind == "means":
            sources[statistic.id]["STD_ERROR"] = "std_error"
    for table in (*release.tables, *release.statistics):
        columns = component_columns(read_message(out, table))
        numbers = table.numbers()
        source = {**sources[table.id], "LOW": "low", "HIGH": "high"}
        for name, column in source.items():
            texts = ["" if np.isnan(number) else str(number) for number in numbers[column].tolist()]
            assert list(columns[name]) == texts, name
        assert ("STD_ERROR" in columns) == ("STD_ERROR" in source)
        statuses = ["Q" if np.isnan(number) else "E" for number in numbers[source["OBS_VALUE"]]]
        assert [status[0] for status in columns["OBS_STATUS"]] == statuses
        assert set(columns["CONF_LEVEL"]) == {"0.95"}


def test_sdmx_messages_carry_table_labels(published):
    out, release = published
    for table in release.tables:
        head, rows = read_message(out, table)
        end = next(index for index, entry in enumerate(head) if entry.startswith("OBS_VALUE"))
        attributes = table.product.attributes
        axes = [tuple(map(str, axis)) for axis in table.labels]
        # The standard wants a dimension with codes besides the period.
        if attributes in ((), ("month",)):
            attributes = ("all rows", *attributes)
            axes.insert(0, ("Total",))
        assert set(split_entries(head[3:end])[1]) == set(attributes)
        assert ("TIME_PERIOD: month" in head) == ("month" in attributes)

        codes, labels = zip(*(split_entries(row[3:end]) for row in rows), strict=True)
        assert len(set(codes)) == len(rows)
        assert list(labels) == list(product(*axes))
        for code, label in zip(chain(*codes), chain(*labels), strict=True):
            assert ID.fullmatch(code)
            # The code is the label wherever the label is a valid id.
            assert code in {label.upper(), "_T"} or not ID.fullmatch(label)


def test_level_groups_are_a_dimension(tmp_path):
    place = ln.Categories(["a", "b", "c"], levels={"land": {"a": "N", "b": "N", "c": "S"}})
    domain = ln.Domain(
        {"place": place, "age": ln.Integers(0, 4, outside="clip")},
        measures={"years": ln.Measure("age", 0, 4)},
    ).as_complete()
    by_land = {"place": ln.level("land")}
    workload = ln.queries(domain, place="identity") + ln.queries(domain, **by_land, age="identity")
    workload += ln.mean_queries(domain, "years", by=[by_land])
    workload += ln.cdf_queries(domain, "age", by=[by_land])
    plan = ln.plan(workload, ln.PureDP(1), strategy="identity")
    rows = pd.DataFrame({"place": ["a", "b", "c"] * 9, "age": [0, 1, 2] * 9})
    out = tmp_path / "out"
    ln.release(plan, rows, seed=4, out=out, options=ln.Options(formats=["sdmx"]))

    dimensions = {}
    for file in (out / "answers").glob("*.csv"):
        head = file.read_text(encoding="utf-8").split(",OBS_VALUE")[0]
        dimensions[file.name[:2]] = head.split("ACTION,")[1]
    land = "PLACE_LAND: place:land"
    assert dimensions == {
        "q1": "PLACE: place",
        "q2": f"{land},AGE: age",
        "q3": land,
        "q4": land,
        "q5": f"{land},AGE: age",
        "s1": land,
        "s2": f"{land},AGE: age",
    }
    structure = (out / "structure.sdmx.xml").read_text(encoding="utf-8")
    for code in ('id="CL1_PLACE"', "PLACE_LAND", '<str:Code id="N">'):
        assert code in structure


# Name spaces of SDMX-ML.
STRUCTURE = "{http://www.sdmx.org/resources/sdmxml/schemas/v3_0/structure}"
COMMON = "{http://www.sdmx.org/resources/sdmxml/schemas/v3_0/common}"


def elements_by_id(tree, kind):
    return {element.get("id"): element for element in tree.iter(STRUCTURE + kind)}


def components_of(structure):
    """Return the elements of the dimensions, attributes and measures of a structure."""
    components = []
    for kind in ("Dimension", "TimeDimension", "Attribute", "Measure"):
        components += [part for part in structure.iter(STRUCTURE + kind) if part.get("id")]
    return components


def test_sdmx_structures_define_all_codes(published):
    out, release = published
    tree = ET.parse(out / "structure.sdmx.xml").getroot()  # noqa: S314 - our own
    structures = elements_by_id(tree, "DataStructure")
    flows = elements_by_id(tree, "Dataflow")
    concepts = elements_by_id(tree, "Concept")
    codes = {}
    for name, codelist in elements_by_id(tree, "Codelist").items():
        codes[name] = [code.get("id") for code in codelist.iter(f"{STRUCTURE}Code")]
        assert len(set(codes[name])) == len(codes[name])

    tables = [*release.tables, *release.statistics]
    assert len(list((out / "answers").glob("*.sdmx.csv"))) == len(flows) == len(tables)
    for table in tables:
        message = read_message(out, table)
        columns = component_columns(message)
        _, rows = message
        flow = flows[referenced_id(rows[0][1])]
        structure = structures[referenced_id(flow.find(f"{STRUCTURE}Structure").text)]
        components = components_of(structure)
        assert {component.get("id") for component in components} == set(columns)
        for component in components:
            concept = component.find(f"{STRUCTURE}ConceptIdentity").text.rsplit(".", 1)[1]
            assert concept in concepts
            codelist = component.find(f".//{STRUCTURE}Enumeration")
            if codelist is not None:
                used_codes = {entry.split(": ")[0] for entry in columns[component.get("id")]}
                assert used_codes <= set(codes[referenced_id(codelist.text)])


def test_sdmx_structures_have_names(published):
    out, _ = published
    tree = ET.parse(out / "structure.sdmx.xml").getroot()  # noqa: S314 - our own
    names = {element.text for element in tree.iter(f"{COMMON}Name")}
    assert {"<b>M & \ufffd", "\u00fc", "mean of pay by sex", "<= 3"} <= names


def test_other_program_reads_sdmx_messages(published):
    out, release = published
    structure = out / "structure.sdmx.xml"
    pysdmx.read_sdmx(structure, validate=True)
    tables = (release.tables[0], release.tables[1], release.statistics[0], release.statistics[2])
    for table in tables:
        (dataset,) = pysdmx.get_datasets(message_path(out, table), structure)
        _, rows = read_message(out, table)
        assert len(dataset.data) == len(rows)


OFFICE_SETTINGS = {
    "agency": "AT1",
    "flows": "quantity",
    "concepts": {"place": "REF_AREA", "sex": "SEX"},
    "codes": {"sex": {"f": "F", "m": "M"}},
    "units": {"rows": "PS", "pay": "EUR"},
    "status": {"published": "A", "suppressed": "Q"},
}


@pytest.fixture(scope="module")
def office_release(tmp_path_factory):
    """Write a release with counts over time and without, sums and prefix sums."""
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
    options = ln.Options(formats=["csv", "sdmx"], agency="Office", below=5, sdmx=OFFICE_SETTINGS)
    plan = ln.plan(workload, ln.PureDP(9), strategy="identity")
    return out, ln.release(plan, rows, seed=3, out=out, options=options)


def test_sdmx_has_one_flow_for_each_quantity(office_release):
    out, _ = office_release
    files = sorted(path.name for path in (out / "answers").glob("*.sdmx.csv"))
    assert files == [
        "pay.sdmx.csv",
        "q7-month-prefix.sdmx.csv",
        "rows.sdmx.csv",
        "rows_by_time.sdmx.csv",
    ]


def test_sdmx_flow_joins_the_tables_of_a_quantity(office_release):
    out, release = office_release
    data = pysdmx.get_datasets(out / "answers/rows.sdmx.csv", out / "structure.sdmx.xml")[0].data
    keys = zip(data["REF_AREA"], data["SEX"], strict=True)
    answers = dict(zip(keys, data["OBS_VALUE"], strict=True))
    # Place by sex, land, the total, and sex.
    assert len(answers) == 6 + 2 + 1 + 2
    tables = release.tables
    expected = {
        ("A", "F"): tables[0].answer[0, 0],
        ("N", "_T"): tables[1].answer[0],
        # The code "a" of the level is also a code of the attribute.
        ("PLACE_LAND_A", "_T"): tables[1].answer[1],
        ("_T", "_T"): tables[2].answer,
        ("_T", "M"): tables[3].answer[1],
    }
    for key, answer in expected.items():
        if not np.isnan(answer):
            assert float(answers[key]) == pytest.approx(float(answer)), key


def test_sdmx_has_time_periods_and_mapped_ids(office_release):
    out, _ = office_release
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
    definitions = {
        definition.id: definition for definition in structure.get_data_structure_definitions()
    }
    dimensions = definitions["ROWS_BY_TIME"].components.dimensions
    assert [dimension.id for dimension in dimensions] == ["SEX", "TIME_PERIOD"]
    pay = (out / "answers/pay.sdmx.csv").read_text(encoding="utf-8")
    assert ",EUR: pay," in pay


@pytest.fixture(scope="module")
def census(tmp_path_factory):
    """Write a census in two languages, with a reference period and a year of arrival."""
    place = ln.Categories(["a1", "a2", "b1"], levels={"land": {"a1": "A", "a2": "A", "b1": "B"}})
    arrival = ln.Dates("2023-01-01", "2025-12-31", by="year")
    groups = {0: "young", 1: "young", 2: "80+", 3: "80+"}
    age = ln.Integers(0, 3, levels={"group": groups})
    domain = ln.Domain(
        {"place": place, "age": age, "arrival": arrival}, measures={"pay": ln.Measure("pay", 0, 10)}
    ).as_complete()
    land = {"place": ln.level("land")}
    workload = ln.queries(domain, place="identity", age=ln.level("group"))
    workload += ln.queries(domain, **land, arrival="identity")
    workload += ln.queries(domain, **land, sum="pay") + ln.mean_queries(domain, of="pay", by=[land])
    rows = pd.DataFrame(
        {"place": ["a1", "a2", "b1"] * 9, "age": 1, "arrival": "2024-02-01", "pay": 3}
    )
    names = {
        "rows": {"en": "persons", "de": "Personen"},
        "attributes": {"place": {"en": "municipality", "de": "Gemeinde"}},
        "levels": {"land": {"en": "state", "de": "Land"}},
        "measures": {"pay": {"name": "pay", "unit": {"en": "EUR a year", "de": "EUR je Jahr"}}},
    }
    sdmx = {
        "flows": "quantity",
        "period": "2025",
        "concepts": {"place": "REF_AREA", "arrival": "ARRIVAL"},
        "units": {"rows": "PS", "pay": "EUR"},
    }
    out = tmp_path_factory.mktemp("census") / "out"
    title = {"en": "Census", "de": "Volkszählung"}
    options = ln.Options(formats=["sdmx"], language="de", names=names, sdmx=sdmx, title=title)
    plan = ln.plan(workload, ln.ZCDP(9), strategy="identity")
    return out, ln.release(plan, rows, seed=3, out=out, options=options)


def test_sdmx_flows_of_a_census_can_be_joined(census):
    out, release = census
    structure = out / "structure.sdmx.xml"
    pysdmx.read_sdmx(structure, validate=True)
    files = sorted(path for path in (out / "answers").glob("*.sdmx.csv"))
    for path in files:
        (dataset,) = pysdmx.get_datasets(path, structure)
        assert {"REF_AREA", "TIME_PERIOD"} <= {*dataset.data.columns}
        assert {*dataset.data["TIME_PERIOD"]} == {"2025"}
    rows = pysdmx.get_datasets(out / "answers/rows.sdmx.csv", structure)[0].data
    keys = zip(rows["REF_AREA"], rows["AGE"], rows["ARRIVAL"], strict=True)
    answers = dict(zip(keys, map(float, rows["OBS_VALUE"]), strict=True))
    assert len(answers) == 3 * 2 + 2 * 3
    cells, arrivals = release.tables[:2]
    assert answers["B1", "GE_80", "_T"] == pytest.approx(float(cells.answer[2, 1]))
    assert answers["A", "_T", "2024"] == pytest.approx(float(arrivals.answer[0, 1]))


def test_sdmx_units_are_those_of_the_values(census):
    out, _ = census
    structure = out / "structure.sdmx.xml"
    units = {}
    for path in (out / "answers").glob("*.sdmx.csv"):
        (dataset,) = pysdmx.get_datasets(path, structure)
        units[path.name.split(".")[0]] = {*dataset.data["UNIT_MEASURE"]}
    statistic = next(name for name in units if name.startswith("s1"))
    assert units.pop(statistic) == {"EUR"}
    assert units == {"rows": {"PS"}, "pay": {"EUR"}, "count_of_pay": {"PS"}}


def test_sdmx_names_are_in_all_languages(census):
    out, _ = census
    tree = ET.parse(out / "structure.sdmx.xml").getroot()  # noqa: S314 - our own
    language = "{http://www.w3.org/XML/1998/namespace}lang"
    parents = [parent for parent in tree.iter() if parent.find(f"{COMMON}Name") is not None]
    for parent in parents:
        if not parent.tag.endswith("Sender"):
            names = parent.findall(f"{COMMON}Name")
            assert {name.get(language) for name in names} == {"de", "en"}
    units = elements_by_id(tree, "Codelist")["CL_UNIT_MEASURE"]
    euros = next(code for code in units.iter(f"{STRUCTURE}Code") if code.get("id") == "EUR")
    texts = {name.get(language): name.text for name in euros.findall(f"{COMMON}Name")}
    assert texts == {"de": "EUR je Jahr", "en": "EUR a year"}
    flow = next(tree.iter(f"{STRUCTURE}Dataflow"))
    descriptions = {text.get(language): text.text for text in flow.findall(f"{COMMON}Description")}
    assert descriptions == {"de": "Volkszählung", "en": "Census"}
    header = (out / "answers/rows.sdmx.csv").read_text(encoding="utf-8").splitlines()[0]
    assert "REF_AREA: Gemeinde" in header
    assert "OBS_VALUE: Ergebnis" in header


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
        ({"period": "last year"}, "sdmx period must be a period, such as '2025'"),
        ({"period": 2025}, "sdmx period must be a period, such as '2025'"),
    ],
)
def test_sdmx_part_is_checked_before_payment(part, message):
    with pytest.raises(InputError, match=re.escape(message)):
        check_options(SMALL, ln.Options(sdmx=part))


def test_sdmx_without_an_agency_is_accepted():
    check_options(SMALL, ln.Options(sdmx={"agency": ""}))


# --- formats that are refused before anything is paid ---------------------------------------------


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
