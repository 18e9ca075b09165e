"""Tests of the first page, whose form turns column names and types into a spec."""

import ast
import math
import re
import tomllib
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from babel.messages.pofile import read_po
from docs.scripts import site

import leastnoise as ln
from leastnoise._pages import guessing_chance, list_sum_contributions
from leastnoise._spec import parse_spec, read_spec, spec_warnings
from leastnoise._studio import ASSETS, list_commands, read_columns, spec_from_form
from leastnoise._texts import LOCALES, list_sentences, load_catalogue
from leastnoise._trusted.check import InputError, message
from studio.answers import is_empty_refusal
from studio.conftest import serving
from trusted.reading.postgres import fill, server

PEOPLE = {
    "customer_id": [1, 2],
    "sex": ["SECRET", "M"],
    "age": [30, 40],
    "pay": [1.5, 2.5],
    "store": ["s1", "s2"],
    "bought": pa.array([0, 1], pa.timestamp("ms")),
    "gone": [True, False],
    "tags": [[1], [2]],
}


def fields(text):
    """Parse words such as c1.kind=list to form fields; _ is a space, ; ends a line."""
    form = {}
    for word in text.split():
        name, _, value = word.partition("=")
        form[name] = value.replace("_", " ").replace(";", "\n")
    return form


FORM = fields("""
    c1.kind=list c1.list=F;_M_; c2.kind=whole c2.low=0 c2.high=99 c2.edges=0,_18,_65 c2.other=on
    c3.kind=number c3.low=0 c3.high=1000 c3.step=12.5 c3.unit=EUR
    c4.kind=file c4.file=stores.csv c4.file_column=name c4.l0.name=region c4.l0.file=stores.csv
    c4.l0.key=name c4.l0.value=region
    c5.kind=dates c5.from=2024-01-01 c5.to=2024-12-31 c5.by=month c6.kind=truth
    unit=0 max_rows=20 epsilon=0.5 title=A_survey
    a0.what=counts a0.by.1.cells=on a0.by.2.group=on a1.what=means a1.of=3 a1.by.4.l0=on a1.size=500
    a3.what=quartiles a3.of=3 a3.by.1.cells=on a4.what=top a4.by.5.cells=on a5.what=cdf a5.of=2
    a6.what=sums a6.of=3 a7.what=median a7.of=2 a8.what=counts a8.by.6.cells=on
""")

WITHIN_MARGIN = {"how": "within", "margin": "500"}


@pytest.fixture
def data(tmp_path, monkeypatch):
    """Return a Parquet file of which every page of values is destroyed."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "people.parquet"
    pq.write_table(pa.table(PEOPLE), path, compression="none", write_statistics=False)
    content = path.read_bytes()
    footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    path.write_bytes(b"PAR1" + b"\xff" * (footer - 4) + content[footer:])
    (tmp_path / "stores.csv").write_text("name,region\ns1,north\ns2,south\n")
    return read_columns(Path("people.parquet"), {})


def test_begin_page_suggests_forms_and_unit(data):
    assert {column.name: column.kind for column in data.columns} == {
        "customer_id": "whole",
        "sex": "text",
        "age": "whole",
        "pay": "number",
        "store": "text",
        "bought": "date",
        "gone": "truth",
        "tags": "",
    }
    assert [column.name for column in data.columns if column.names_person] == ["customer_id"]


@pytest.fixture
def spec_with_levels(data):
    """Return the spec of a form with levels, labels and names."""
    (data.folder / "titles.csv").write_text("name,region,title\ns1,north,One\ns2,south,Two\n")
    form = {**FORM, **fields("""
        c2.l0.name=width5 c2.l0.way=width c2.l0.width=5 c2.l1.name=old c2.l1.way=edges
        c2.l1.edges=0,65 c2.name=age_in_years c2.rounding=down c3.name=income c3.decimals=2
        c4.labels_value=title c4.file=titles.csv c4.l1.name=first c4.l1.way=digits c4.l1.digits=1
        c1.l0.name=both c1.l0.way=groups c1.labels=F_=_women;M=men rows_name=visits
        units_name=people a9.what=counts a9.by.2.l0=on a9.by.1.l0=on
        a10.what=counts a10.by.2.l1=on a10.by.4.l1=on
    """), "c1.l0.groups": "people = F, M"}  # fmt: skip
    return parse_spec(spec_from_form(data, form, "en"), data.folder)


def test_begin_page_states_levels(spec_with_levels):
    domain = spec_with_levels.domain
    levels = {
        name: [level.name for level in domain.kind(name).levels] for name in ("age", "store", "sex")
    }
    assert levels == {
        "age": ["group", "width5", "old"],
        "store": ["region", "first"],
        "sex": ["both"],
    }
    assert domain.kind("age").levels[1].labels[:2] == ("0 .. 4", "5 .. 9")
    assert domain.kind("age").rounding == "down"
    tables = {product.name for product in spec_with_levels.workload.products}
    assert {"sex:both x age:width5", "age:old x store:first"} <= tables


def test_begin_page_states_labels_and_names(spec_with_levels):
    labels = spec_with_levels.options.labels
    assert labels["sex"] == {"F": "women", "M": "men"}
    assert labels["store"]["s2"] == "Two"

    names = spec_with_levels.options.catalogue().names
    assert names.rows == "visits"
    assert names.units == "people"
    assert names.attribute("age").name == "age in years"
    assert names.measure("pay").name == "income"
    assert names.measure("pay").unit == "EUR"
    assert names.measure("pay").number_format.decimals == 2


def test_begin_page_states_totals_and_people(data):
    form = {**FORM, **fields("""
        a2.what=totals a2.of=3 a2.low=0 a2.high=2500 a2.by.1.cells=on a2.by.2.group=on
        a9.what=people a9.by.1.cells=on
    """)}  # fmt: skip
    text = spec_from_form(data, form, "en")
    total = parse_spec(text, data.folder).domain.measure("pay total 3")
    assert total.column == "pay"
    assert (total.low, total.high) == (0, 2500)
    assert total.attributes == ("sex", "age")
    assert 'count = "units"' in text
    form_of_totals = fields(
        "c3.kind=number c3.low=0 c3.high=9 c3.step=1 unit=0 max_rows=2 epsilon=1 a0.what=totals "
        "a0.of=3 a0.low=0 a0.high=5"
    )
    assert "by = []" in spec_from_form(data, form_of_totals, "en")


def test_begin_page_states_series_and_outputs(data):
    form = fields("""
        c1.kind=list c1.list=F;M c5.kind=dates c5.from=2024-01-01 c5.to=2024-12-31 c5.by=month
        epsilon=1 a0.what=counts a0.by.1.cells=on a0.by.5.cells=on series=5 late=arrival
        formats.csv=on formats.sdmx=on languages.en=on languages.de=on level=0.9 round=2,5 below=10
        rounding=controlled integer=on agency=Office contact=a@b.example source=Survey
    """)  # fmt: skip
    spec = parse_spec(spec_from_form(data, form, "de"), data.folder)
    assert spec.series.along == "bought"
    assert spec.series.late == "arrival"
    options = spec.options
    assert options.formats == ("csv", "sdmx")
    assert options.languages == ("de", "en")
    assert options.level == 0.9
    assert options.rounding == "controlled"
    assert options.integer
    assert options.agency == "Office"
    assert float(options.round) == 2.5
    assert float(options.below) == 10

    # The defaults are not written.
    form |= fields("formats.parquet=on formats.sdmx= languages.de= level=0.95 late=")
    form |= fields("unit=0 max_rows=2 series_rows=9 round=2.5")
    text = spec_from_form(data, form, "en")
    assert parse_spec(text, data.folder).series.max_rows == 9
    for default in ("formats", "languages", "level =", "late"):
        assert default not in text


TOTALS_AND_IDS = fields("""
    c1.kind=list c1.list=F;M c1.complete=on c1.labels_file=titles.csv c1.labels_key=code
    c1.labels_value=title c1.concept=SEX c1.codes=F_=_W;M_=_M c2.kind=whole c2.low=0 c2.high=99
    c2.edges=0,18,65 c2.group_concept=AGE c3.kind=number c3.low=0 c3.high=9 c3.step=1
    c3.unit_code=EUR c4.kind=file c4.file=stores.csv c4.file_column=name c4.l0.name=region
    c4.l0.key=name c4.l0.value=region c4.l0.concept=AREA a0.what=counts a0.by.1.cells=on
    a1.what=counts a1.by.2.group=on a2.what=sums a2.of=3 a2.by.4.l0=on budget=rho rho=0.5
    p0.counts= p0.file=register.csv p0.column=people p0.by.4.l0=on p2.counts=90 formats.csv=on
    p3.counts=20,_30;40 p3.by.2.group=on
    formats.sdmx=on sdmx.agency=AT1 sdmx.flows=quantity sdmx.period=2025 sdmx.rows=PS
    sdmx.published=A sdmx.suppressed=Q sdmx.unreliable=U
""")


@pytest.fixture
def register(data):
    """Write the public files of labels and totals into the folder of the data."""
    (data.folder / "titles.csv").write_text("code,title\nF,women\nM,men\n")
    (data.folder / "register.csv").write_text("store:region,people\nnorth,40\nsouth,50\n")


@pytest.mark.usefixtures("register")
def test_begin_page_states_public_totals_and_labels_of_a_file(data):
    text = spec_from_form(data, TOTALS_AND_IDS, "en")
    table = tomllib.loads(text)
    assert table["domain"]["sex"]["complete"] is True
    assert table["domain"]["sex"]["labels"] == {
        "file": "titles.csv",
        "key": "code",
        "value": "title",
    }
    counts = {"file": "register.csv", "column": "people"}
    assert table["public"] == [
        {"queries": {"store": {"level": "region"}}, "counts": counts},
        {"counts": 90},
        {"queries": {"age": {"level": "group"}}, "counts": [20, 30, 40]},
    ]
    spec = parse_spec(text, data.folder)
    assert spec.options.labels["sex"] == {"F": "women", "M": "men"}
    assert [entry["counts"] for entry in spec.public] == [[40, 50], [90], [20, 30, 40]]

    german = {**TOTALS_AND_IDS, "languages.en": "on", "languages.de": "on", "rho": "0,5"}
    german["c1.labels_value"] = "titel | title"
    (data.folder / "titles.csv").write_text("code,title,titel\nF,women,Frauen\nM,men,Männer\n")
    options = parse_spec(spec_from_form(data, german, "de"), data.folder).options
    assert options.labels["sex"]["F"] == {"de": "Frauen", "en": "women"}


@pytest.mark.usefixtures("register")
def test_begin_page_states_ids_of_sdmx(data):
    text = spec_from_form(data, TOTALS_AND_IDS, "en")
    assert "[output.sdmx]" in text
    assert tomllib.loads(text)["output"]["sdmx"] == {
        "agency": "AT1",
        "flows": "quantity",
        "concepts": {"sex": "SEX", "age:group": "AGE", "store:region": "AREA"},
        "codes": {"sex": {"F": "W", "M": "M"}},
        "units": {"rows": "PS", "pay": "EUR"},
        "status": {"published": "A"},
        "period": "2025",
    }
    without_sdmx = {**TOTALS_AND_IDS, "formats.sdmx": ""}
    assert "sdmx" not in spec_from_form(data, without_sdmx, "en")


@pytest.mark.usefixtures("register")
@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"p2.counts": ""}, "got neither"),
        ({"p2.counts": "1.200"}, "whole numbers without separators"),
        ({"p2.counts": "90 91"}, "must be one number; got 2"),
        ({"p3.counts": "20 30 41"}, "agree"),
        ({"c1.codes": "F"}, "one line for each code"),
        ({"sdmx.agency": "1 1"}, "An id in SDMX files"),
        ({"c1.concept": "_SEX"}, "An id in SDMX files"),
        ({"sdmx.period": "summer"}, "such as 2025"),
        ({"sdmx.unreliable": "X"}, "a status code"),
        ({"sdmx.flows": "all"}, "the data flows"),
        ({"c1.labels_key": "x"}, "titles.csv"),
    ],
)
def test_begin_page_refuses_wrong_totals_and_ids(data, change, fault):
    with pytest.raises(InputError, match=fault) as refusal:
        spec_from_form(data, {**TOTALS_AND_IDS, **change}, "en")
    in_german = load_catalogue("de").translate(refusal.value.args[0])
    is_of_spec = "p3.counts" in change or "c1.labels_key" in change
    assert in_german.startswith("(Auf Englisch") is is_of_spec


def test_begin_page_reads_database_column_names(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with duckdb.connect("shop.duckdb") as connection:
        connection.execute("CREATE TABLE visits (kunde_id BIGINT, age INTEGER)")
    monkeypatch.setenv("SHOP", f"duckdb://{tmp_path}/shop.duckdb")
    columns = read_columns(ln.DatabaseTable("visits", "env:SHOP"), {})
    text = spec_from_form(
        columns,
        fields("c1.kind=whole c1.low=0 c1.high=99 epsilon=1 a0.what=counts a0.by.1.cells=on"),
        "en",
    )
    assert [column.names_person for column in columns.columns] == [True, False]
    assert 'table = "visits"\nconnection = "env:SHOP"' in text
    assert columns.folder == tmp_path


@pytest.mark.slow
def test_begin_page_reads_server_names_and_types_only(tmp_path, monkeypatch):
    """The database role may see the columns of the table, but select none of its rows."""
    monkeypatch.chdir(tmp_path)
    with server() as url:
        columns = (
            '"Kunden-Nr" integer, "Ort" text, "Betrag €" numeric(10, 2), "Kaufdatum" date, '
            '"per Karte?" boolean'
        )
        table = '"Läden"."Umsätze 2025"'
        fill(
            url,
            [
                'CREATE SCHEMA "Läden"',
                f"CREATE TABLE {table} ({columns})",
                f"REVOKE ALL ON {table} FROM PUBLIC",
            ],
        )
        fill(url, ["CREATE ROLE guest LOGIN", 'GRANT USAGE ON SCHEMA "Läden" TO guest'])
        monkeypatch.setenv("SHOP", re.sub("//[^/@]*@", "//guest@", url))
        with serving(None) as client:
            client.enter()
            form = {"table": "Läden.Umsätze 2025", "connection": "env:SHOP"}
            assert client.json("/choose", {"form": form}) == {}
            assert "Umsätze 2025" in client.ask("/")[2].decode()
        server_columns = read_columns(ln.DatabaseTable("Läden.Umsätze 2025", "env:SHOP"), {})
    assert {column.name: column.kind for column in server_columns.columns} == {
        "Kunden-Nr": "whole",
        "Ort": "text",
        "Betrag €": "number",
        "Kaufdatum": "date",
        "per Karte?": "truth",
    }
    assert server_columns.columns[0].names_person


@pytest.fixture
def spec_of_form(data, tmp_path):
    """Return the spec that the form FORM writes in German."""
    path = tmp_path / "people.toml"
    path.write_text(spec_from_form(data, FORM, "de"))
    return read_spec(path)


def test_begin_page_states_source_privacy_and_title(spec_of_form, tmp_path):
    assert spec_of_form.source == tmp_path / "people.parquet"
    privacy = spec_of_form.privacy
    assert privacy.unit_column == "customer_id"
    assert privacy.max_rows == 20
    assert privacy.budget == ln.PureDP("1/2")
    options = spec_of_form.options
    assert options.title == "A survey"
    assert options.language == "de"
    assert options.guard == ln.PureDP("1/100").epsilon


def test_begin_page_inputs_all_reach_the_spec(spec_of_form):
    domain = spec_of_form.domain
    assert domain.names == ("sex", "age", "pay", "store", "bought", "gone")
    assert domain.kind("sex").values == ("F", "M")
    assert domain.kind("age").has_other
    assert [level.labels for level in domain.kind("age").levels] == [("0-17", "18-64", "65+")]
    assert domain.kind("pay").regular == 80  # 1000 / 12.5
    assert spec_of_form.options.catalogue().names.attribute("pay").unit == "EUR"
    assert domain.kind("bought").regular == 12  # months
    assert domain.measure("pay").column == "pay"
    assert domain.measure("pay").high == 1000


def test_begin_page_states_tables_and_statistics(spec_of_form):
    workload = spec_of_form.workload
    assert [statistic.name for statistic in workload.statistics] == [
        "mean of pay by store:region",
        "quantiles of pay by sex",
        "distribution of age",
        "quantiles of age",
    ]
    tables = {product.name for product in workload.products}
    assert {"sex x age:group", "bought", "gone", "sum of pay"} <= tables


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"c1.list": ""}, "domain.sex"),
        ({"c2.high": ""}, "domain.age"),
        ({"c3.step": "0.7"}, "into whole steps"),
        ({"c3.low": "nan"}, "finite number"),
        ({"c4.file": "people.parquet"}, "must come from a public file; got the data themselves"),
        ({"c4.file": "nowhere.csv"}, "does not exist"),
        ({"c1.kind": "anything"}, "the kind of sex must be one of"),
        ({"a0.what": "everything"}, "the kind of table must be one of"),
        ({"a0.by.2.cells": "on"}, "the values of age or their groups, not both"),
        ({"a1.of": "0"}, "of a published column of numbers"),
        ({"a4.by.1.cells": "on"}, "needs exactly one column"),
        ({"unit": "99"}, "each value of a column"),
        ({"max_rows": ""}, "max_rows"),
        ({"epsilon": "0"}, "epsilon"),
        ({"how": "within", "margin": ""}, "State how far"),
        ({"how": "within", "margin": "0"}, "margin must be a number above 0"),
        (
            {"c0.kind": "list", "c0.list": "F\nother", "c0.other": "on", "a8.by.0.cells": "on"},
            "must not contain 'other'",
        ),
        ({"c2.low": "99"}, "low must be below high; got low 99 and high 99"),
        (
            {"c2.high": "2000000"},
            "age would have 2000000 values here, and at most 1000000 are allowed",
        ),
        ({"c3.step": "0.0001"}, "pay would have 10000000 values here"),
        ({"c3.high": "1e30", "c3.step": "1e30"}, "between -(2^53 - 1) and 2^53 - 1"),
        ({"c3.unit": "a\tb"}, "has no control characters"),
        ({"c3.decimals": "13"}, "decimals of means and sums must be a whole number from 0"),
        ({"c1.labels": "F women"}, "Labels of sex must have one line for each code"),
        (
            {"c2.l0.name": "a", "c2.l0.way": "width", "c2.l0.width": "0"},
            "the size of the groups a must",
        ),
        ({"c2.l0.name": "group", "c2.l0.way": "width"}, "Two groups have the name group"),
        ({"c1.l0.name": "a", "c1.l0.way": "groups", "c1.l0.groups": "x"}, "each group, such as"),
        ({"c1.l0.name": "a", "c1.l0.way": "groups", "c1.l0.groups": "x = F"}, "1 have none"),
        (
            {"c1.l0.name": "a", "c1.l0.way": "digits", "c1.l0.digits": "x"},
            "the size of the groups a must",
        ),
        ({"a0.what": "totals", "a0.of": "3"}, "low must be"),
        ({"a0.what": "totals"}, "of a published column of numbers"),
        ({"a0.what": "people", "unit": ""}, "need a column that identifies"),
        ({"series": "1"}, "A series must be along a column of dates"),
        ({"series": "5", "late": "never"}, "late rows of a series must be one of"),
        ({"round": "0"}, "the multiples to publish must be"),
        ({"below": "x"}, "the lowest number to publish must be"),
        ({"rounding": "odd"}, "the rounding of answers must be one of"),
        ({"level": "1"}, "the probability of intervals must be one of"),
        ({"c2.edges": "5, 18"}, "a list of increasing numbers, the first of them at most 0"),
        ({"c3.edges": "0, 13"}, "edges between cells"),
        ({"c4.file_column": "nam"}, "which has name, region; got 'nam'. Did you mean 'name'?"),
        (
            {"c4.file_column": "region"},
            "the level 'region' must give every cell a group; 2 have none: 'north', 'south'",
        ),
        ({"c4.l0.name": "identity"}, "the name of a level must be none of identity"),
        (
            {"c4.l0.key": "region", "c4.l0.value": "name", "c4.l0.file": "twice.csv"},
            "must give every key one value",
        ),
        ({"c4.l0.file": "binary.csv"}, "cannot be read as CSV: UnicodeDecodeError"),
        ({"c5.from": "2025-13-01"}, "the first day of dates must be a day"),
        ({"c5.to": "2023-01-01"}, "must not be after the last"),
        ({"c5.by": ""}, "by must be one of 'year'"),
        ({"a1.of": "1"}, "[measures.sex]: low must be"),
        ({"a1.size": "-1"}, "[[workload]] number 2: size must be a number above 0"),
        ({"a5.of": "1"}, "whose cells are numbers (age, pay); got 'sex'"),
        ({"a5.by.2.cells": "on"}, "age cannot be both of and in by"),
        (
            {"c4.kind": "unknown", "c4.most": "0", "c4.l0.name": ""},
            "most must be a whole number from 1 to 1000000",
        ),
        (
            {
                "c4.kind": "unknown",
                "c4.most": "9",
                "c4.l0.name": "",
                "a1.by.4.l0": "",
                "a1.by.4.cells": "on",
                "delta": "1",
            },
            "delta must be",
        ),
    ],
)
def test_begin_page_faults_are_sentences_in_both_languages(data, change, message):
    (data.folder / "twice.csv").write_text("name,region\ns1,north\ns2,north\n")
    (data.folder / "binary.csv").write_bytes(b"\xff\xfename")
    with pytest.raises(InputError, match=re.escape(message)) as refusal:
        spec_from_form(data, {**FORM, **change}, "en")
    english = refusal.value.args[0]
    german = load_catalogue("de").translate(english)
    assert load_catalogue("en").translate(english) == english
    assert not german.startswith(load_catalogue("de").say("st_english", text=""))
    assert not re.search(r"\b(must|the|and|got|have)\b", german.replace(str(data.folder), ""))


@pytest.mark.parametrize(
    "file_name", ["no.csv", "a.md", "dir", "*.gz", "bad.parquet", "utf16.csv", "empty.csv"]
)
def test_unreadable_data_fail_in_the_page_language(tmp_path, monkeypatch, file_name):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "dir").mkdir()
    (tmp_path / "a.md").write_bytes(b"a")
    (tmp_path / "bad.parquet").write_bytes(b"no")
    (tmp_path / "utf16.csv").write_bytes("a,b".encode("utf-16"))
    (tmp_path / "empty.csv").write_bytes(b"")
    with pytest.raises(InputError) as refusal:
        read_columns(Path(file_name), {})
    german = load_catalogue("de").translate(refusal.value.args[0])
    assert not re.search(r"\b(must|the|and|is|not|of|has|that)\b", german)


def test_fault_templates_are_messages_of_the_code():
    constants: set[str] = set()
    for path in Path(ln.__file__).parent.rglob("*.py"):
        text = path.read_text("utf-8")
        # Only files with messages are parsed, to save time.
        if re.search(r"{\w+(!r)?}|Error|refuse\(", text):
            for node in ast.walk(ast.parse(text)):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    constants.add(node.value)
    with (LOCALES / "faults.pot").open("rb") as file:
        templates = {message.id.removesuffix(" {advice}") for message in read_po(file)} - {""}
    assert templates - constants == set()


def test_spec_only_faults_stay_english_and_say_so():
    translate = load_catalogue("de").translate
    prefix = "(Auf Englisch, aus der Spezifikation:)"
    of_the_spec = "[series] late must be one."
    assert translate(of_the_spec) == f"{prefix} {of_the_spec}"
    partly_translated = message(
        "{what} must be {allowed}; got {got}.", what="late", allowed="a number above 0", got="1"
    )
    assert translate(partly_translated) == f"{prefix} late must be a number above 0; got 1."


def test_text_files_take_reading_settings(tmp_path):
    (tmp_path / "sales.csv").write_bytes(
        "id;town;day;paid\n1;K\xf6ln;31.12.2025;1.234,50\n".encode("latin-1")
    )
    data = read_columns(tmp_path / "sales.csv", {})
    assert not any(column.declares_type for column in data.columns)
    form = fields(
        "encoding=latin-1 numbers=1.234,56 days=31.12.2025 epsilon=1 a0.what=sums a0.of=3 "
        "a0.by.2.cells=on"
    )
    form |= fields(
        "c2.kind=dates c2.from=2025-01-01 c2.to=2025-12-31 c2.by=month c3.kind=number c3.low=0 "
        "c3.high=2000 c3.step=1"
    )
    text = spec_from_form(data, form, "en")
    for line in ('encoding = "latin-1"', 'decimal = ","', 'thousands = "."', 'format = "%d.%m.%Y"'):
        assert line in text
    with pytest.raises(InputError, match="the format of numbers must be one of"):
        spec_from_form(data, {**form, "numbers": "1'234"}, "en")


def test_sql_needs_no_question_on_the_page(data):
    """The spec describes all columns, and numbers also as measures."""
    form = {key: text for key, text in FORM.items() if not key.startswith("a")}
    text = spec_from_form(data, form, "en", allow_no_question=True)
    assert "[[workload]]" not in text
    for part in ("[domain.sex]", "[domain.age]", "[domain.pay]", "[measures.pay]"):
        assert part in text
    for settings, in_sql in (({}, False), ({"how": "within", "margin": "9"}, True)):
        with pytest.raises(InputError, match="No table is chosen yet"):
            spec_from_form(data, {**form, **settings}, "en", allow_no_question=in_sql)

    # The levels come from the code file.
    form |= fields("c1.kind=file c1.file=codes.csv c1.file_column=code c1.l0.name=region")
    (data.folder / "codes.csv").write_text("code,region\nF,n\nM,s\n")
    text = spec_from_form(data, form, "en", allow_no_question=True)
    assert 'levels = {region = {file = "codes.csv", key = "code", value = "region"}}' in text


def test_commands_use_the_studio_working_folder(data, tmp_path):
    _, release_command, *_ = list_commands(tmp_path / "my spec.toml")
    assert release_command == "leastnoise release 'my spec.toml' --out 'my spec'-release"

    elsewhere = Path("/elsewhere/a.toml")
    plan_command = list_commands(elsewhere, with_sql_file=False)[0]
    assert plan_command == "leastnoise plan /elsewhere/a.toml"
    sql_plan_command = list_commands(elsewhere, with_sql_file=True)[0]
    assert sql_plan_command == "leastnoise plan questions.sql --spec /elsewhere/a.toml"


def target_margins(workload):
    """Return the margin that each table must keep, or None, by the name of the table."""
    return {
        product.name: product.target and int(product.target.most) for product in workload.products
    }


def test_distance_sets_targets_and_budget(data):
    text = spec_from_form(data, {**FORM, **WITHIN_MARGIN}, "en")
    assert 'epsilon = "least"' in text
    assert target_margins(parse_spec(text, data.folder).workload) == {
        "sex x age:group": 500,
        "bought": 500,
        "gone": 500,
        "sum of pay": 500,
        "age:prefix": 500,
        "sex x pay:prefix": 500,
        "count of pay by store:region": 500,
        # 500 times the upper bound of pay, 1000.
        "sum of pay by store:region": 500_000,
    }


def test_survey_weights_have_bounds_unit_and_cost(data):
    form = {
        **FORM,
        **fields(
            "c2.kind=number c2.low=0 c2.high=500 c2.step=0.25 c2.edges= a0.by.2.group= "
            "a0.weight=2 a1.weight=2 a3.weight=2"
        ),
    }
    form |= fields("a5.of=3 a6.weight=2 a7.of=3 a1.size=")
    spec = parse_spec(spec_from_form(data, form, "en"), data.folder)
    age = spec.domain.measure("age")
    assert age.high == 500
    assert age.unit == ln.Measure("age", 0, 500, unit="0.25").unit
    contributions = " ".join(list_sum_contributions(spec.workload))
    assert "changes a sum of age by at most 500" in contributions

    weights = "sum of age of rows with pay by store:region"
    weighted_pay = "sum of pay weighted by age by store:region"
    tables = {product.name for product in spec.workload.products}
    assert {"sum of age by sex", weights, weighted_pay, "sum of pay weighted by age"} <= tables

    with_margin = spec_from_form(data, {**form, **WITHIN_MARGIN}, "en")
    targets = target_margins(parse_spec(with_margin, data.folder).workload)
    assert targets["sum of age by sex"] == 500
    assert targets[weights] == 500
    assert targets[weighted_pay] == 500_000

    for change, sentence in (
        ({"a0.weight": "99"}, "Weights must be of a published column"),
        ({"c2.low": "-1", "c2.step": "1"}, "bounds are not negative"),
    ):
        with pytest.raises(InputError, match=sentence):
            spec_from_form(data, {**form, **change}, "en")


def test_averaged_column_is_not_an_attribute(data):
    form = fields(
        "c1.kind=list c1.list=F;M c3.kind=number c3.low=0 c3.high=9 c3.step=1 epsilon=1 "
        "a0.what=means a0.of=3"
    )
    without_sex = parse_spec(spec_from_form(data, form, "en"), data.folder)
    assert without_sex.domain.names == ("pay",)
    form["a0.by.1.cells"] = "on"
    by_sex = parse_spec(spec_from_form(data, form, "en"), data.folder)
    assert by_sex.domain.names == ("sex",)
    assert by_sex.domain.measure("pay").high == 9
    assert spec_warnings(by_sex) == ()


def test_unlistable_texts_are_found_under_delta(data):
    text = spec_from_form(
        data,
        fields("c4.kind=unknown c4.most=100 a0.what=top a0.by.4.cells=on epsilon=1 delta=1e-9"),
        "en",
    )
    assert 'delta = "1e-9"' in text
    # Rows with other texts still count in the tables without this column.
    assert 'unknown = {most = 100}\noutside = "other"\nnull = "other"' in text


def test_german_numbers_have_a_comma(data):
    form = fields(
        "c3.kind=number c3.low=0 c3.high=10 c3.step=2,5 a0.what=counts a0.by.3.cells=on epsilon=0,5"
    )
    assert "count = 4" in spec_from_form(data, form, "de")
    with pytest.raises(InputError, match="without separators of thousands"):
        spec_from_form(data, {**form, "c3.high": "1.000"}, "de")


SMALL_FORM = fields("c1.kind=list c1.list=F;M a0.what=counts a0.by.1.cells=on epsilon=1")


def refusal(client, path, **body):
    """Return the message with which the studio refuses a request."""
    return client.json(path, body or None)["refused"]


@pytest.fixture
def begin_client(data):
    """Yield a client of a studio that has opened the file of people."""
    with serving(None) as client:
        client.enter()
        assert client.json("/choose", {"form": {"path": "people.parquet"}}) == {}
        yield client


def test_begin_page_asks_for_a_file(data):
    with serving(None) as client:
        assert load_catalogue("en").say("be_title_choose") in client.enter()
        assert "no file" in refusal(client, "/choose", form={"path": "nowhere.csv"})
        assert "Name a file" in refusal(client, "/choose", form={})

        client.json("/language", {"language": "de"})
        assert load_catalogue("de").say("be_title_choose") in client.ask("/")[2].decode()
        assert client.json("/choose", {"form": {"path": "people.parquet"}}) == {}
        page = client.ask("/")[2].decode()
        assert "Eine Spezifikation für people.parquet" in page
        assert "SECRET" not in page


def test_begin_page_shows_an_invented_example(begin_client, data, plan_in_process):
    assert "Nothing is planned yet" in refusal(begin_client, "/view")
    assert "must be an object of texts" in refusal(begin_client, "/plan", form={"a": 1})

    begin_client.json("/plan", {"form": SMALL_FORM})
    view = begin_client.view_when(lambda view: view["ended"])
    (chart,) = view["charts"]
    assert view["names"] == ["sex"]
    assert chart["alt"].startswith("INVENTED: sex")
    assert sum(row["answer"] for row in chart["chart"]["data"]["values"]) == 10_000
    assert view["text"] in spec_from_form(data, SMALL_FORM, "en")


def test_begin_page_saves_spec_and_goes_to_targets(begin_client, tmp_path, plan_in_process):
    saved = begin_client.json("/save", {"form": SMALL_FORM, "name": "people.toml"})
    assert saved["commands"][1] == "leastnoise release people.toml --out people-release"
    assert "already" in refusal(begin_client, "/save", form=SMALL_FORM, name="people.toml")
    assert "name of a file" in refusal(
        begin_client, "/save", form=SMALL_FORM, name="../people.toml"
    )
    assert "Save the spec first" in refusal(begin_client, "/further", name="other.toml")

    assert begin_client.json("/further", {"name": "people.toml"}) == {}
    assert "Plan people.toml" in begin_client.ask("/")[2].decode()
    assert [path.name for path in tmp_path.glob("*.toml")] == ["people.toml"]


def test_spec_without_queries_is_saved_for_sql(begin_client, tmp_path):
    form = fields("c1.kind=list c1.list=F;M epsilon=1")
    saved = begin_client.json("/save", {"form": form, "name": "sql.toml"})
    assert saved["asked"] is False
    assert saved["commands"][0] == "leastnoise plan questions.sql --spec sql.toml"
    assert [path.name for path in tmp_path.glob("*.toml")] == ["sql.toml"]


@pytest.mark.parametrize("file_name", [None, "people.parquet"])
def test_pages_to_begin_with_are_guarded_as_all_others(data, file_name):
    with serving(file_name and Path(file_name)) as client:
        paths = ("/plan", "/save", "/further", "/language", "/choose")
        assert all(is_empty_refusal(client.ask(path, {})) for path in paths)
        assert is_empty_refusal(client.ask("/"))
        client.enter()
        assert all(
            is_empty_refusal(client.ask(path, {}, origin="http://evil.example")) for path in paths
        )
        assert is_empty_refusal(client.ask("/", host="evil.example"))


# For each page: the sentence that explains each word of the glossary that the page uses. The words
# of a shown spec or release are explained by `lead`.
EXPLAINING_SENTENCE = {
    "beginning": {
        "epsilon": "be_epsilon",
        "rho": "be_rho",
        "delta": "be_delta",
        "budget": "be_epsilon",
        "margin": "be_size",
    },
    "planning": dict.fromkeys(
        ("epsilon", "rho", "budget", "prefix", "strategy", "rmse"), "st_words"
    )
    | {"margin": "st_lead"},
    "exploring": {"margin": "st_explore"},
    "choosing": {},
}


@pytest.mark.parametrize("page", EXPLAINING_SENTENCE)
def test_page_explains_its_glossary_words(page):
    template = (ASSETS / f"{page}.html").read_text("utf-8")
    english = list_sentences("en")
    keys = {key for key in re.findall(r"\"(\w+)\"", template) if key in english}
    sentences = "\n".join(english[key] for key in keys)
    used_words = {
        word for word in site.glossary() if re.search(rf"\b{word}s?\b", sentences, re.IGNORECASE)
    }
    assert used_words == set(EXPLAINING_SENTENCE[page])
    assert all(
        key in keys or "{{ lead }}" in template for key in EXPLAINING_SENTENCE[page].values()
    )


def test_person_must_be_chosen_without_a_matching_name(tmp_path, monkeypatch):
    """The page lists possible columns of persons; `init` leaves the same place blank."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "visits.csv").write_text("encounter_id,ward_id,age\n")
    data = read_columns(tmp_path / "visits.csv", {})
    assert data.suggested.person is None
    with serving(None) as client:
        client.enter()
        assert client.json("/choose", {"form": {"path": "visits.csv"}}) == {}
        page = client.ask("/")[2].decode()
    assert "columns that may identify a person: ward_id and encounter_id" in page
    form = fields("c2.kind=whole c2.low=0 c2.high=99 epsilon=1 a0.what=counts a0.by.2.cells=on")
    with pytest.raises(InputError, match="The protected unit must be each row, or each value"):
        spec_from_form(data, {**form, "unit": "choose"}, "en")
    assert 'unit = "row"' in spec_from_form(data, form, "en")
    spec_text = spec_from_form(data, {**form, "unit": "0", "max_rows": "3"}, "en")
    assert 'unit = {column = "encounter_id", max_rows = 3}' in spec_text


def test_zone_of_the_schema_is_offered_and_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    zoned = pa.schema({"when": pa.timestamp("us", "America/New_York")})
    pq.write_table(zoned.empty_table(), "trips.parquet")
    data = read_columns(tmp_path / "trips.parquet", {})
    with serving(None) as client:
        client.enter()
        assert client.json("/choose", {"form": {"path": "trips.parquet"}}) == {}
        page = client.ask("/")[2].decode()
    assert 'name="c0.zone" value="America/New_York"' in page
    form = fields("c0.kind=dates c0.from=2024-01-01 c0.to=2024-12-31 c0.by=month epsilon=1")
    form |= fields("a0.what=counts a0.by.0.cells=on") | {"c0.zone": "America/New_York"}
    assert parse_spec(spec_from_form(data, form, "en"), tmp_path).domain.kind("when").zone == (
        "America/New_York"
    )


def test_hint_states_the_best_guess_under_each_budget():
    text = load_catalogue("en").say("be_epsilon_hint")
    for epsilon, percent in (("0.1", 53), ("1", 74), ("4", 99)):
        chance = 1 / (1 + math.exp(-float(epsilon)))
        assert math.ceil(100 * chance) == percent
        assert re.search(rf"{percent}% (sure with a budget of|with) {re.escape(epsilon)}\b", text)


def test_texts_of_two_languages_are_written_for_each(data):
    form = fields(
        "c1.kind=list c1.list=F;M c1.labels=F=Frauen|women;M=Männer|men c1.name=Geschlecht|sex "
        "c2.kind=whole c2.low=0 c2.high=99 c2.edges=0,18,65 c2.group_name=Altersgruppe|age_group "
        "a0.what=counts a0.by.1.cells=on a0.by.2.group=on budget=rho rho=0,5 "
        "title=Erhebung|survey agency=Amt languages.en=on languages.de=on"
    )
    table = tomllib.loads(spec_from_form(data, form, "de"))
    sex, age = (column.attribute for column in data.columns[1:3])
    assert table["privacy"]["rho"] == "0.5"
    assert table["domain"][sex]["labels"]["F"] == {"de": "Frauen", "en": "women"}
    assert table["names"]["attributes"][sex]["name"] == {"de": "Geschlecht", "en": "sex"}
    group_name = table["names"]["levels"][f"{age}:group"]
    assert {*group_name} == {"de", "en"}
    assert group_name["de"] == "Altersgruppe"
    assert table["output"]["title"] == {"de": "Erhebung", "en": "survey"}
    assert table["output"]["agency"] == "Amt"
    with pytest.raises(InputError, match="one part for each of them"):
        spec_from_form(data, {**form, "title": "a | b | c"}, "de")
    only_german = {key: text for key, text in form.items() if key != "languages.en"}
    assert tomllib.loads(spec_from_form(data, only_german, "de"))["output"]["title"] == (
        "Erhebung|survey"
    )


def test_levels_have_names_in_two_languages(data):
    (data.folder / "stores.csv").write_text("name,region\ns1,north\n")
    form = fields(
        "c4.kind=file c4.file=stores.csv c4.file_column=name c4.l0.name=Region|area "
        "c4.l0.way=file c4.l0.key=name c4.l0.value=region a0.what=counts a0.by.4.l0=on epsilon=1 "
        "languages.en=on languages.de=on"
    )
    table = tomllib.loads(spec_from_form(data, form, "de"))
    store = data.columns[4].attribute
    assert [*table["domain"][store]["levels"]] == ["Region"]
    assert table["names"]["levels"] == {f"{store}:Region": {"de": "Region", "en": "area"}}
    assert table["workload"][0]["queries"] == {store: {"level": "Region"}}


def test_a_search_needs_epsilon(data):
    form = fields(
        "c4.kind=unknown c4.most=100 a0.what=top a0.by.4.cells=on budget=rho rho=1 delta=1e-9"
    )
    with pytest.raises(InputError, match="choose epsilon"):
        spec_from_form(data, form, "en")


def test_hint_states_the_best_guess_under_each_rho():
    text = load_catalogue("en").say("be_rho_hint")
    for rho, percent in (("0.1", 61), ("0.5", 74), ("2", 92)):
        assert round(100 * guessing_chance(ln.Privacy(ln.ZCDP(rho)))) == percent
        assert f"{percent}% with" in text
        assert re.search(rf"\b{re.escape(rho)}\b", text)
