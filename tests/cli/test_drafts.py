"""Drafts of `init`: the protected unit, the blanks to fill in, and plans of the result."""

import datetime as dt
import itertools
import re
import tomllib
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from behind_the_wall import arrow_fields, to_column
from cli.conftest import assert_contains
from leastnoise._cli._draft_text import draft_from_columns
from leastnoise._profile._column_cells import choose_measured_columns
from leastnoise._sources import SchemaField, file_endings, schema
from leastnoise._spec import source_columns
from leastnoise._trusted.reading import _files
from leastnoise._trusted.reading._column import FileKind, Source, by_columns, chunk_batches
from trusted.reading.encoders import refused

# Columns of public files, with the one of the person; or with those that are candidates.
PERSONS = {
    "patient_nbr": "encounter_id patient_nbr race gender",
    "BENE_ID": "CLM_ID BENE_ID CLM_FROM_DT PRVDR_NUM",
    "participant_id": "response_id participant_id q1",
    "nhs_number": "spell_id nhs_number dob",
    "id_patient": "id_sejour id_patient date_entree",
    "id_cliente": "id_pedido id_cliente fecha importe",
    "kunden_nr": "beleg_nr kunden_nr artikel_nr",
    "KundenNr": "BestellNr KundenNr Datum",
    "personnr": "lopnr_besok personnr sjukhus",
    "student_id": "student_id school_id subject_id teacher_id",
    "upn": "urn upn school_id",
    "PassengerId": "PassengerId Survived Pclass Ticket",
    "user_id": "session_id user_id url ip",
    "CustomerID": "InvoiceNo StockCode CustomerID",
    "customer_id": "order_id customer_id employee_id order_date",
    "usubjid": "studyid usubjid visitnum",
    "MRN": "MRN account_id admit_date",
    "klantnummer": "factuurnummer klantnummer bedrag",
    "codice_paziente": "id_ricovero codice_paziente reparto",
    "unique_patient_identifier": "id unique_patient_identifier ward",
    "n° assuré": "n° assuré acte",
    "患者ID": "患者ID 病院",
    "Patienten-ID": "Fallnummer Patienten-ID Station",
    "memberid": "claimid memberid providerid",
    "RespondentID": "CollectorID RespondentID StartDate",
    "users_id": "users_id page",
    "visitorid": "timestamp visitorid event itemid",
    "customer_unique_id": "order_id customer_unique_id order_status",
    "social_security_number": "case_number social_security_number",
    "cod_fiscale": "cod_fiscale sesso",
    "ENCRYPTED_HESID": "ENCRYPTED_HESID EPIKEY",
    "person_id": "person_id visit_occurrence_id condition_concept_id",
    "EmployeeNumber": "EmployeeNumber OfficeNo Salary",
    "customerKey": "customerKey orderKey amount",
    "noClient": "noClient noPolice montant",
    "ClientReference": "ClientReference PolicyNo premium",
}
CANDIDATES = {
    "VendorID PULocationID": "VendorID tpep_pickup_datetime PULocationID fare_amount",
    "encounter_id": "encounter_id age",
    "order_id store_id": "order_id store_id amount",
    "response_id": "response_id q1 q2",
    "household_id": "household_id income",
    "account_no": "account_no balance",
    "patient_id nhs_number": "patient_id nhs_number ward",
    "doctor_id": "doctor_id diagnosis",
    "client_ip session_id": "client_ip session_id user_agent",
    "customer_order_id": "customer_order_id amount",
    "patientunitstayid uniquepid": "patientunitstayid uniquepid gender",
    "subject_id hadm_id": "subject_id hadm_id admittime",
    "phone_number": "phone_number calls",
    "client member": "client member age",
    "panelist username": "panelist username score",
    "PolicyNo AdjusterId claim_nr": "PolicyNo AdjusterId claim_nr Paid",
    "policynumber acctno": "policynumber acctno paid",
    "numPoliza nro_siniestro": "numPoliza nro_siniestro importe",
    "no_police num_sinistre": "no_police num_sinistre montant nb_sinistres",
    "VertragsNr SchadenNr": "VertragsNr SchadenNr Betrag",
    "npi card_reference": "npi card_reference num_claims number_of_rooms",
}


def source_of(header):
    return source_columns([SchemaField(name=name) for name in header.split(" ")])


@pytest.mark.parametrize("person", PERSONS)
def test_draft_takes_person_column_from_its_name(person):
    header = PERSONS[person]
    names = re.split(" (?!assuré)", header)
    columns = source_columns([SchemaField(name=name) for name in names])
    assert columns.person is not None
    assert columns.person.name == person
    assert columns.candidates == ()


@pytest.mark.parametrize("candidates", CANDIDATES)
def test_draft_names_only_person_columns_as_unit(candidates):
    columns = source_of(CANDIDATES[candidates])
    assert columns.person is None
    assert {*columns.candidates} == {*candidates.split()}


IDENTIFIERS = """PolicyNo policynumber AdjusterId AgentNo num_poliza noPolice VertragsNr account_id
    SchadenNr doctor_id npi StoreKey"""


@pytest.mark.parametrize("kind", [pa.int64(), pa.float64()], ids=str)
@pytest.mark.parametrize("name", tuple(IDENTIFIERS.split()))
def test_identifiers_are_not_drafted_as_numbers(name, kind):
    """Whole numbers are floats in files of pandas if some are missing."""
    columns = source_columns(
        [SchemaField(name="paid", type=pa.float64()), SchemaField(name=name, type=kind)]
    )
    assert columns.candidates == (name,)
    assert columns.listed[1].guess == {"categories": ["FILL IN"]}
    draft = draft_from_columns(columns, {}, "claims", Path("claims.toml"))
    assert "# [measures.paid]" in draft
    tables = choose_measured_columns(columns, unit_column=None, has_delta=False)
    assert [table.kind for table in tables] == ["number", "codes"]


ABOUT_PERSONS = """passenger_count num_customers new_customer customer_type is_patient patient_age
    member_since person_weight user_agent customers_total paid_by_client child visitor smoker"""


@pytest.mark.parametrize("name", tuple(ABOUT_PERSONS.split()))
def test_names_about_persons_do_not_identify_one(name):
    columns = source_of(f"{name} age")
    assert columns.person is None
    assert columns.candidates == ()


def test_draft_takes_groups_of_numbers_as_texts():
    groups = ["age_group", "incomeBracket", "hours band", "tranche_age", "fascia_eta"]
    numbers = ["age", "hours_per_week", "income"]
    fields = [SchemaField(name=name) for name in (*groups, *numbers)]
    texts = [column.name for column in source_columns(fields).listed if column.kind == "text"]
    assert texts == groups


def test_draft_takes_no_person_from_days_or_flags():
    types = {"patient": pa.bool_(), "customer": pa.date32(), "age": pa.int64()}
    columns = source_columns(arrow_fields(pa.schema(types)))
    assert columns.person is None


def draft_of(path, run):
    run.succeeds("init", str(path), "--out", "draft.toml")
    return Path("draft.toml").read_text("utf-8")


def test_draft_takes_days_of_events_as_dates():
    """A CSV file has no types, so only a column's name can show that it holds days."""
    days = "hired last_login shift_start valid_until Eintritt date_fin birthday createdAt ended"
    other_names = (
        "is_started weekend trend friend startup_id end_station start_age closed joined_by"
    )
    columns = source_columns(SchemaField(name=name) for name in f"{days} {other_names}".split())
    kinds = {column.name: column.kind for column in columns.listed}
    assert {kinds[name] for name in days.split()} == {"date"}
    assert "date" not in {kinds[name] for name in other_names.split()}


def test_draft_lists_candidates_for_the_person_column(folder, run):
    Path("taxi.csv").write_text("VendorID,PULocationID,fare_amount\n")
    draft = draft_of("taxi.csv", run)
    parts = (
        (
            "No column name tells which person a row belongs to. These columns may name persons: "
            '"VendorID", "PULo'
        ),
        'unit = { column = "FILL IN", max_rows = "FILL IN" }',
    )
    assert_contains(draft, *parts)
    assert "names the person" not in draft
    run.is_refused("to fill in: privacy.unit", "plan", "draft.toml")


# --- blanks to fill in ----------------------------------------------------------------------------

REAL = {
    "titanic": "PassengerId Survived Pclass Name Sex Age SibSp Parch Ticket Fare Cabin Embarked",
    "diabetes": """encounter_id patient_nbr race gender age weight admission_type_id
        time_in_hospital payer_code num_lab_procedures num_medications diag_1 readmitted""",
    "adult": """age workclass fnlwgt education education-num marital-status occupation relationship
        race sex capital-gain capital-loss hours-per-week native-country income""",
}
# Beside 15, 17 and 22 before there were suppositions; one of them is the comment at the top.
MOST_BLANKS = {"titanic": 7, "diabetes": 12, "adult": 16}
TAXIS = {
    "VendorID": pa.int32(),
    "tpep_pickup_datetime": pa.timestamp("us"),
    "tpep_dropoff_datetime": pa.timestamp("us"),
    "passenger_count": pa.int64(),
    "trip_distance": pa.float64(),
    "RatecodeID": pa.int64(),
    "store_and_fwd_flag": pa.string(),
    "PULocationID": pa.int32(),
    "DOLocationID": pa.int32(),
    "payment_type": pa.int64(),
    "fare_amount": pa.float64(),
    "tip_amount": pa.float64(),
}


@pytest.mark.parametrize("name", REAL)
def test_few_places_are_left_to_fill_in(folder, run, name):
    Path(f"{name}.csv").write_text(",".join(REAL[name].split()) + "\n")
    assert draft_of(f"{name}.csv", run).count('"FILL IN"') <= MOST_BLANKS[name]


def test_days_come_from_the_name_of_a_file(folder, run):
    pq.write_table(pa.schema(TAXIS).empty_table(), "yellow_tripdata_2024-02.parquet")
    draft = draft_of("yellow_tripdata_2024-02.parquet", run)
    assert draft.count('dates = { from = "2024-02-01", to = "2024-02-29", by = "day" }') == 2
    assert draft.count('"FILL IN"') <= 9


@pytest.mark.parametrize(
    ("name", "days"),
    [
        ("sales_2019-2023.csv", '{ from = "2019-01-01", to = "2023-12-31", by = "month" }'),
        ("visits2021.csv", '{ from = "2021-01-01", to = "2021-12-31", by = "month" }'),
        ("visits_202112.csv", '{ from = "2021-12-01", to = "2021-12-31", by = "day" }'),
        ("visits.csv", '{ from = "FILL IN", to = "FILL IN", by = "month" }'),
        ("room_20215.csv", '{ from = "FILL IN", to = "FILL IN", by = "month" }'),
    ],
)
def test_draft_takes_years_from_file_name_not_births(folder, run, name, days):
    Path(name).write_text("visit_date,date_of_birth\n")
    draft = draft_of(name, run)
    assert f"[domain.visit_date]\ndates = {days}" in draft
    assert '[domain.date_of_birth]\ndates = { from = "FILL IN"' in draft


@pytest.mark.parametrize(
    ("zone", "drafted"),
    [("America/New_York", "America/New_York"), ("UTC", "UTC"), ("+02:00", "Etc/GMT-2"),
     ("+05:37", "FILL IN")],
)  # fmt: skip
def test_draft_keeps_the_schema_time_zone(folder, run, zone, drafted):
    pq.write_table(pa.schema({"when": pa.timestamp("us", zone)}).empty_table(), "x.parquet")
    assert f'by = "month", zone = "{drafted}" }}' in draft_of("x.parquet", run)


# --- drafts that `plan` takes ---------------------------------------------------------------------

TYPES = [
    *(pa.int8(), pa.int64(), pa.uint8(), pa.uint64(), pa.float16(), pa.float32(), pa.float64()),
    *(pa.decimal128(5, 2), pa.decimal128(9, 0), pa.bool_(), pa.string(), pa.large_string()),
    *(pa.binary(), pa.binary(16), pa.date32(), pa.date64(), pa.timestamp("s"), pa.null()),
    *(pa.timestamp("ns"), pa.timestamp("us", "Europe/Berlin"), pa.timestamp("us", "+05:37")),
    *(pa.dictionary(pa.int8(), pa.string()), pa.list_(pa.int8()), pa.time32("s"), pa.json_()),
    *(pa.uuid(), pa.duration("s"), pa.struct([("a", pa.int8())]), pa.bool8()),
]
NAMES = (
    *("a", "age", "month", "percent", "is_new", "store_and_fwd_flag", "payment_type", "rooms"),
    *("fare_amount", "num_visits", "visit_date", "birth date", "order_id", "patient_id", "user_id"),
    *(
        "VendorID",
        "name",
        " Sex ",
        'we"ird é',
        "latitude",
        "hours-per-week",
        "x\u00ady",
        "",
        "d\u0301",
    ),
)


FILLED = {
    "dates": {'from = "FILL IN"': 'from = "2024-01-01"', 'to = "FILL IN"': 'to = "2024-12-31"',
              'zone = "FILL IN"': 'zone = "UTC"'},
    "unit": {'column = "FILL IN"': 'column = "person"', 'max_rows = "FILL IN"': "max_rows = 5"},
    "bins": {'low = "FILL IN"': "low = 1", 'high = "FILL IN"': "high = 9"},
    "integers": {'["FILL IN", ': "[1, ", ', "FILL IN"]': ", 9]"},
    "": {"FILL IN": "value"},
}  # fmt: skip


def filled(draft):
    """Return the draft with only its blanks filled, by an allowed value each."""
    lines = []
    for line in draft.splitlines():
        key = line.partition(" ")[0]
        replaced = line
        for blank, value in FILLED.get(key, FILLED[""] if key[:1] != "#" else {}).items():
            replaced = replaced.replace(blank, value)
        lines.append(replaced)
    text = "\n".join([*lines, ""])
    return text.replace('strategy = "auto"', 'strategy = "marginals"')


def test_plan_takes_a_draft_of_every_type_and_name(folder, run):
    rng = np.random.default_rng(0)
    pairs = [*itertools.product(NAMES, TYPES)]
    for start in range(0, len(pairs), 60):
        columns = [pairs[number] for number in rng.permutation(len(pairs))[start : start + 12]]
        fields = {
            f"{name}{number}" if number else name: kind
            for number, (name, kind) in enumerate(columns)
        }
        pq.write_table(pa.schema(fields).empty_table(), "x_2024.parquet")
        draft = draft_of("x_2024.parquet", run)
        tomllib.loads(draft)
        Path("draft.toml").write_text(filled(draft), "utf-8")
        run.succeeds("plan", "draft.toml", "--no-cache")
        Path("draft.toml").unlink()


@pytest.mark.parametrize("names", [NAMES, NAMES[::2], NAMES[::3], ("id",), ("name", "comment")])
def test_plan_takes_a_draft_of_every_csv_header(folder, run, names):
    quoted = ('"' + name.replace('"', '""') + '"' for name in names)
    Path("x.csv").write_text(",".join(quoted) + "\n", "utf-8")
    draft = draft_of("x.csv", run)
    Path("draft.toml").write_text(filled(draft), "utf-8")
    run.succeeds("plan", "draft.toml", "--no-cache")


def test_supposed_values_drop_no_row(folder, run):
    """Values outside a wrong guess count in the cell `other` or at the end of a range."""
    rows = {"age": [5, 200], "rooms": [3, 70], "payment_type": [1, 99], "is_new": [1, 7]}
    pq.write_table(pa.table(rows), "x.parquet")
    draft = draft_of("x.parquet", run)
    assert '"FILL IN"' not in draft[draft.index("[domain.age]") :]
    assert "rows used 2 (100.0%)" in re.sub(" +", " ", run("check", "draft.toml").out)


def test_draft_counts_ages_by_completed_years(folder, run):
    Path("x.csv").write_text("age\n", "utf-8")
    assert_contains(draft_of("x.csv", run), "integers = [0, 120]", 'rounding = "down"')
    Path("draft.toml").unlink()
    pq.write_table(pa.table({"age": [0.5]}), "x.parquet")
    assert "bins = { low = 0, high = 120, count = 120 }" in draft_of("x.parquet", run)


# --- kinds of files and headers -------------------------------------------------------------------


def open_feather(path):
    """Open a kind of file that the package does not have."""
    table = pyarrow.feather.read_table(path)
    return Source(
        description=f"the Feather file {str(path)!r}",
        fields=arrow_fields(table.schema),
        total=table.num_rows,
        encoded=by_columns(
            lambda names: chunk_batches(table.to_batches(), [(name, to_column) for name in names])
        ),
    )


def test_file_kind_is_registered_in_one_place(folder, run, monkeypatch):
    kind = FileKind(name="Other", endings=(".other",), open=open_feather)
    monkeypatch.setattr(_files, "KINDS", (*_files.KINDS, kind))
    pyarrow.feather.write_feather(pa.table({"sex": ["F", "M"], "age": [1, 2]}), "people.other")
    assert ".other" in file_endings()
    draft = draft_of("people.other", run).replace('["FILL IN"]', '["F", "M"]')
    # Two rows are too few for a guard.
    draft = re.sub(r"(?m)^guard = .*$", "", draft)
    Path("draft.toml").write_text(draft, "utf-8")
    assert "sex: 2 (100.0%) matched" in run("check", "draft.toml").out
    run.succeeds("release", "draft.toml", "--out", "out")
    with refused(" or .other; got"):
        schema("people.doc")


def test_spec_page_names_every_file_ending():
    page = Path(__file__).parents[2].joinpath("docs", "spec.md").read_text("utf-8")
    missing_endings = [ending for ending in file_endings() if ending not in page]
    assert missing_endings == [], (
        f"describe files that end in {missing_endings} in docs/spec.md, under [source]"
    )


def test_draft_accepts_names_for_headerless_files(folder, run):
    Path("x.csv").write_text("Report\n\n1;F;2024-01-31\n")
    assert "If lines precede the names" in draft_of("x.csv", run)
    Path("draft.toml").unlink()
    run.succeeds(
        "init", "x.csv", "--delimiter", ";", "--header", "id, sex,day", "--out", "draft.toml"
    )
    draft = Path("draft.toml").read_text("utf-8")
    assert_contains(draft, 'header = ["id", "sex", "day"]', "[domain.sex]", "[domain.day]")
    assert "If lines precede the names" not in draft


def test_draft_reads_partition_folders(folder, run):
    below = Path("visits", "year=2024", "region=01")
    below.mkdir(parents=True)
    pq.write_table(pa.table({"sex": ["F"], "day": [dt.date(2024, 1, 31)]}), below / "a.parquet")
    draft = draft_of("visits", run)
    assert_contains(draft, "[domain.year]", "[domain.region]", "[domain.sex]")
    drafted = [line for line in draft.splitlines() if not line.startswith("#")]
    assert not re.search("2024|01", "\n".join(drafted))


def test_draft_takes_provider_numbers_as_codes(folder, run):
    (folder / "claims.csv").write_text("BENE_ID,PRVDR_NUM,CLM_PMT_AMT\n")
    run.succeeds("init", "claims.csv")
    draft = (folder / "claims.toml").read_text(encoding="utf-8")
    assert '[domain.PRVDR_NUM]\ncategories = ["FILL IN"]' in draft
    assert '[domain.CLM_PMT_AMT]\nbins = { low = 0, high = "FILL IN"' in draft
