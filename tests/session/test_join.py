"""Joined tables in specs and releases: refusals, records, resumption and the guard."""

import shutil

import pandas as pd
import pytest

import leastnoise as ln
from leastnoise._publication import read_categories
from leastnoise._release import SecondTable
from leastnoise._spec import parse_spec, spec_warnings
from leastnoise._trusted.kernel import Series
from session.releasing import manifest, report, stopped

VISITS = pd.DataFrame(
    {
        "patient_id": [number % 300 for number in range(1200)],
        "diagnosis": ["a", "b", "b", "c"] * 300,
    }
)
PATIENTS = pd.DataFrame({"patient_id": range(300), "sex": ["F", "M", "M"] * 100})
DOMAIN = ln.Domain(diagnosis=["a", "b", "c"], sex=["F", "M"])
PRIVACY = ln.Privacy(ln.PureDP(100), unit_column="patient_id", max_rows=4)
PLAN = ln.plan(
    ln.queries(DOMAIN, diagnosis="identity", sex="identity"), PRIVACY, strategy="identity"
)
BY_ROW = ln.plan(ln.queries(DOMAIN, sex="identity"), ln.PureDP(1), strategy="identity")
COUNTS = VISITS.merge(PATIENTS).groupby(["diagnosis", "sex"]).size().tolist()
SPEC = """\
[source]
path = "visits.csv"
[source.join]
path = "patients.csv"
on = "patient_id"
[privacy]
epsilon = "100"
unit = { column = "patient_id", max_rows = 4 }
[domain.diagnosis]
categories = ["a", "b", "c"]
[domain.sex]
categories = ["F", "M"]
[[workload]]
queries = { diagnosis = "identity", sex = "identity" }
"""


@pytest.fixture
def files(tmp_path):
    """Return the join of two CSV files."""
    VISITS.to_csv(tmp_path / "visits.csv", index=False)
    PATIENTS.to_csv(tmp_path / "patients.csv", index=False)
    return ln.Joined(tmp_path / "visits.csv", tmp_path / "patients.csv", on="patient_id")


def test_release_says_whose_the_second_table_was(tmp_path, files):
    release = ln.release(
        PLAN,
        files,
        ledger=tmp_path / "visits.ledger",
        out=tmp_path / "out",
        options=ln.Options(language="de"),
    )
    assert [round(answer) for answer in release.answers["answer"]] == pytest.approx(COUNTS, abs=3)
    record = manifest(tmp_path / "out")
    assert record["receipt"]["joined"] == {
        "table": "patients",
        "on": "patient_id",
        "key": "patient_id",
        "public": False,
    }
    assert record["receipt"]["dataset"] == "visits"
    assert "are protected with the rows of that value" in record["privacy"]["unit"]["second_table"]
    page = report(tmp_path / "out")
    assert "sind mit den Zeilen dieses Wertes geschützt" in page
    assert "joined: " not in page
    assert ln.read_release(tmp_path / "out").receipt.joined == SecondTable(
        **record["receipt"]["joined"]
    )
    for form in ("review", "registry"):
        assert "are protected with the rows of that value" in ln.export(tmp_path / "out", form)


def test_public_table_is_reported_unprotected(tmp_path):
    ln.release(
        BY_ROW,
        ln.Joined(VISITS, PATIENTS, on="patient_id", public=True),
        seed=1,
        out=tmp_path / "out",
    )
    record = manifest(tmp_path / "out")
    assert record["receipt"]["joined"] == {
        "table": "",
        "on": "patient_id",
        "key": "patient_id",
        "public": True,
    }
    assert (
        "was declared to be public: its contents are not protected"
        in record["privacy"]["unit"]["second_table"]
    )
    ln.release(BY_ROW, VISITS.merge(PATIENTS), seed=1, out=tmp_path / "plain")
    plain = manifest(tmp_path / "plain")
    assert "second_table" not in plain["privacy"]["unit"]
    assert not plain["receipt"]


def test_join_refuses_other_units_unpaid(tmp_path, files):
    with pytest.raises(ln.InputError, match="every row is a unit"):
        ln.release(BY_ROW, files, ledger=tmp_path / "visits.ledger", out=tmp_path / "out")
    assert not (tmp_path / "visits.ledger").exists()


def test_stopped_join_is_finished_with_its_second_table(tmp_path, files):
    ledger = tmp_path / "visits.ledger"
    with stopped(Series, "measure") as error:
        ln.release(PLAN, files, ledger=ledger, out=tmp_path / "out")
    assert "can be finished" in str(error.value)
    with pytest.raises(
        ln.InputError,
        match="the same second table, joined on the same columns, with the same `public` setting",
    ):
        ln.resume(ledger, source=ln.Joined(files.data, files.second, on="patient_id", public=True))
    with pytest.raises(ln.InputError, match="the same second table"):
        ln.resume(ledger, source=ln.Joined(files.data, files.data, on="patient_id"))
    drafts = [
        path.name
        for path in tmp_path.iterdir()
        if "run-" in path.name or path.name.startswith(".leastnoise")
    ]
    assert drafts == []
    # The first table was moved; the second is still in its place.
    (release,) = ln.resume(ledger, source=tmp_path / "visits.csv")
    assert [round(answer) for answer in release.answers["answer"]] == pytest.approx(COUNTS, abs=3)
    assert manifest(tmp_path / "out")["receipt"]["joined"]["public"] is False
    assert len(ln.Ledger.open(ledger).entries()) == 1


def test_stopped_join_of_frames_needs_both_again(tmp_path):
    ledger = ln.Ledger.create(tmp_path / "visits.ledger", "visits", PRIVACY)
    joined = ln.Joined(VISITS, PATIENTS, on="patient_id")
    with stopped(Series, "measure"):
        ln.release(PLAN, joined, ledger=ledger)
    with pytest.raises(ln.InputError, match="the same second table"):
        ln.resume(ledger, source=VISITS.merge(PATIENTS))
    (release,) = ln.resume(ledger, source=joined)
    assert release.receipt.joined.on == "patient_id"


def test_category_search_states_its_join(tmp_path, files):
    privacy = ln.Privacy(ln.ApproxDP(1, "1e-7"), unit_column="patient_id", max_rows=1)
    search = ln.plan_categories("sex", ln.Unknown(9), privacy)
    categories = ln.find_categories(
        search,
        files,
        ledger=tmp_path / "visits.ledger",
        out=tmp_path / "sexes",
        total_privacy=privacy,
    )
    assert sorted(categories.texts) == ["F", "M"]
    assert read_categories(tmp_path / "sexes").receipt.joined.table == "patients"


def test_spec_joins_as_python_does(tmp_path, files):
    parsed_spec = parse_spec(SPEC, tmp_path)
    data = parsed_spec.data(parsed_spec.source)
    assert data.data == files.data
    assert data.second == files.second
    assert data.second_key == "patient_id"
    assert data.public is False
    answers_of_frames, answers_of_files = (
        ln.release(PLAN, source, seed=3).answers["answer"].tolist() for source in (data, files)
    )
    assert answers_of_frames == answers_of_files
    assert ln.check(parsed_spec).fit.joins[0].matched == 1200
    laid = SPEC.replace(
        'on = "patient_id"',
        'on = { patient_id = "id" }\ncolumns = ["sex"]\ndelimiter = ";"\nencoding = "latin-1"',
    )
    other_data = parse_spec(laid, tmp_path).data(tmp_path / "visits.csv")
    assert other_data.first_key == "patient_id"
    assert other_data.second_key == "id"
    assert other_data.columns == ("sex",)
    assert other_data.second.delimiter == ";"
    stored = SPEC.replace('path = "visits.csv"', 'table = "visits"\nconnection = "env:DB"')
    assert parse_spec(
        stored.replace('path = "patients.csv"', 'table = "patients"'), tmp_path
    ).joins[0]["second"] == ln.DatabaseTable("patients", "env:DB")
    assert parse_spec(SPEC.replace('[source]\npath = "visits.csv"\n', ""), tmp_path).source is None


CARDS = pd.DataFrame(
    {"holder": range(300), "tier": ["gold", "blue", "blue", "none"] * 75, "shop": [1, 2] * 150}
)
SHOPS = pd.DataFrame({"id": [1, 2], "town": ["A", "B"]})
STAR_SPEC = (
    SPEC.replace("[source.join]", "[[source.join]]")
    .replace(
        "[privacy]",
        """[[source.join]]
path = "cards.csv"
on = { patient_id = "holder" }
[[source.join]]
path = "shops.csv"
on = { shop = "id" }
public = true
[privacy]""",
    )
    .replace(
        "[[workload]]",
        """[domain.tier]
categories = ["gold", "blue", "none"]
[domain.town]
categories = ["A", "B"]
[[workload]]
sql = '''SELECT c.tier, s.town, COUNT(*) AS n FROM visits v JOIN cards c ON v.patient_id = c.holder
JOIN shops s ON c.shop = s.id JOIN patients p ON p.patient_id = v.patient_id
WHERE p.sex = 'M' GROUP BY 1, 2'''
[[workload]]""",
    )
)


@pytest.fixture
def star(tmp_path, files):
    """Return the join of visits with three other tables."""
    CARDS.to_csv(tmp_path / "cards.csv", index=False)
    SHOPS.to_csv(tmp_path / "shops.csv", index=False)
    joined = ln.Joined(files, tmp_path / "cards.csv", on={"patient_id": "holder"})
    return ln.Joined(joined, tmp_path / "shops.csv", on={"shop": "id"}, public=True)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*:UserWarning")
def test_spec_joins_several_tables(tmp_path, star):
    (tmp_path / "star.toml").write_text(STAR_SPEC, encoding="utf-8")
    parsed_spec = parse_spec(STAR_SPEC, tmp_path)
    assert [join.matched for join in ln.check(parsed_spec).fit.joins] == [1200] * 3
    assert [join.table for join in ln.check(parsed_spec).fit.joins] == [
        "patients",
        "cards",
        "shops",
    ]
    assert parsed_spec.options.joined_on == ("patient_id",) * 3 + ("holder", "shop", "id")
    release = ln.read_spec(tmp_path / "star.toml").release(out=tmp_path / "out")
    joined_rows = VISITS.merge(PATIENTS).merge(CARDS, left_on="patient_id", right_on="holder")
    joined_rows = joined_rows.merge(SHOPS, left_on="shop", right_on="id")
    truth = joined_rows[joined_rows["sex"] == "M"].groupby(["tier", "town"]).size()
    answered = pd.DataFrame(release.sql(parsed_spec.options.statements[0])).set_index(
        ["tier", "town"]
    )["n"]
    for cell, answer in answered.items():
        assert answer == pytest.approx(truth.get(cell, 0), abs=4)
    receipt = manifest(tmp_path / "out")["receipt"]
    assert receipt["joined"]["table"] == "patients"
    assert receipt["further_joined"] == [
        {"table": "cards", "on": "patient_id", "key": "holder", "public": False},
        {"table": "shops", "on": "shop", "key": "id", "public": True},
    ]
    sentences = manifest(tmp_path / "out")["privacy"]["unit"]["second_table"]
    assert "(cards), joined by 'patient_id'. Its facts" in sentences
    assert "(shops), joined by 'shop', that was declared to be public" in sentences
    assert ln.read_release(tmp_path / "out").receipt.joined_tables[2].public
    cards = ln.plan(ln.queries(ln.Domain(sex=["F", "M"]), sex="identity"), ln.PureDP(1))
    warning = "[[source.join]] number 3 public removes the protection of all rows"
    assert any(warning in text for text in spec_warnings(parsed_spec))
    with pytest.raises(ln.LedgerError, match=r"was paid for the data set 'cards'"):
        ln.release(cards, tmp_path / "cards.csv", ledger=tmp_path / "cards.ledger")


def test_stopped_star_is_finished_with_all_its_tables(tmp_path, star):
    ledger = tmp_path / "visits.ledger"
    with stopped(Series, "measure"):
        ln.release(PLAN, star, ledger=ledger, out=tmp_path / "out")
    for other_source in (star.data, star.data.data, ln.Joined(star.data, SHOPS, on={"shop": "id"})):
        with pytest.raises(ln.InputError, match="the same second table"):
            ln.resume(ledger, source=other_source)
    (tmp_path / "moved").mkdir()
    shutil.move(tmp_path / "visits.csv", tmp_path / "moved/visits.csv")
    (release,) = ln.resume(ledger, source=tmp_path / "moved/visits.csv")
    assert [round(answer) for answer in release.answers["answer"]] == pytest.approx(COUNTS, abs=3)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            'on = { shop = "id" }\npublic = true',
            'on = { shop = "id" }',
            r"\[\[source\.join\]\] number 3: .* joined on 'shop', and the unit is 'patient_id'",
        ),
        (
            'path = "cards.csv"',
            "",
            (
                r"\[\[source\.join\]\] number 2 must name a table and the columns that both "
                r"tables have"
            ),
        ),
        (
            'on = { patient_id = "holder" }',
            'on = { patient_id = "holder" }\npublic = 1',
            r"\[\[source\.join\]\] number 2: public must be true or false",
        ),
        (
            'path = "shops.csv"',
            'path = "patients.csv"',
            r"\[\[source\.join\]\] number 3: The second table is the data themselves",
        ),
        (
            '["A", "B"]',
            '{ file = "cards.csv", column = "shop" }',
            "must come from a public file; got the data themselves",
        ),
        (
            "JOIN cards c ON v.patient_id = c.holder",
            "JOIN cards c USING (card)",
            "Declare the table",
        ),
    ],
)
def test_spec_with_an_invalid_star_is_refused(tmp_path, star, old, new, message):
    assert old in STAR_SPEC
    with pytest.raises(ln.InputError, match=message):
        parse_spec(STAR_SPEC.replace(old, new), tmp_path)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            'unit = { column = "patient_id", max_rows = 4 }',
            "",
            r"\[source\.join\]: a joined table must have rows of the unit, .* every row is a unit",
        ),
        (
            'column = "patient_id"',
            'column = "doctor"',
            r"\[source\.join\]: .* the unit is 'doctor'",
        ),
        (
            'on = "patient_id"',
            "",
            (
                r"\[source\.join\] must name a table and the columns that both tables have, such "
                r'as path = "patients\.csv" and on ='
            ),
        ),
        (
            'path = "patients.csv"',
            "",
            r"\[source\.join\] must name a table and the columns that both tables have",
        ),
        (
            'path = "patients.csv"',
            'table = "patients"',
            r"\[source\.join\] must have path, or table and connection",
        ),
        (
            'on = "patient_id"',
            'on = ["a", "b"]',
            r"\[source\.join\]: the column that tables are joined on must be text",
        ),
        (
            'on = "patient_id"',
            'on = "patient_id"\ndelimiter = ";;"',
            r"\[source\.join\]: delimiter must be",
        ),
        (
            'on = "patient_id"',
            'on = "patient_id"\nhow = "left"',
            r"\[source\.join\] has no key 'how'",
        ),
        (
            'path = "patients.csv"',
            'path = "visits.csv"\npublic = true',
            r"\[source\.join\]: The second table is the data themselves",
        ),
        (
            '["F", "M"]',
            '{ file = "patients.csv", column = "sex" }',
            "must come from a public file; got the data themselves",
        ),
    ],
)
def test_spec_is_refused_before_there_are_data(tmp_path, files, old, new, message):
    assert old in SPEC
    with pytest.raises(ln.InputError, match=message):
        parse_spec(SPEC.replace(old, new), tmp_path)


def test_public_second_table_may_hold_lists_with_warning(tmp_path, files):
    listed = SPEC.replace('["F", "M"]', '{ file = "patients.csv", column = "sex" }').replace(
        '\non = "', '\npublic = true\non = "'
    )
    assert parse_spec(listed, tmp_path).domain.kind("sex").size == 2
    private = SPEC.replace('epsilon = "100"', 'epsilon = "1"')
    public = private.replace('on = "patient_id"', 'on = "patient_id"\npublic = true')
    (warned,) = spec_warnings(parse_spec(public, tmp_path))
    assert "removes the protection of the second table and gains nothing" in warned
    (warned,) = spec_warnings(
        parse_spec(public.replace('unit = { column = "patient_id", max_rows = 4 }', ""), tmp_path)
    )
    assert "removes the protection of all rows in the second table" in warned
    assert spec_warnings(parse_spec(private, tmp_path)) == ()


def test_second_ledger_is_refused_for_either_table(tmp_path, files):
    patients = ln.plan(ln.queries(ln.Domain(sex=["F", "M"]), sex="identity"), ln.PureDP(1))
    mixed = ln.Joined(files.data, PATIENTS, on="patient_id")
    (tmp_path / "other").mkdir()
    ledger = ln.Ledger.create(tmp_path / "visits.ledger", "visits", PRIVACY)
    for source in (files, mixed):
        with pytest.raises(ln.LedgerError, match=r"knows the data set 'visits'"):
            ln.release(PLAN, source, ledger=tmp_path / "other/x.ledger")
    ln.release(PLAN, files, ledger=ledger, out=tmp_path / "out")
    with pytest.raises(ln.LedgerError, match=r"was paid for the data set 'patients'"):
        ln.release(patients, files.second, ledger=tmp_path / "patients.ledger")
    (tmp_path / "visits.ledger").rename(tmp_path / "visits.away")
    shutil.rmtree(tmp_path / "out")
    ln.Ledger.create(tmp_path / "patients.ledger", "patients", PRIVACY)
    with pytest.raises(ln.LedgerError, match=r"patients.ledger knows the data set 'patients'"):
        ln.release(PLAN, files, ledger=tmp_path / "new.ledger")
    ln.release(
        PLAN,
        ln.Joined(files.data, files.second, on="patient_id", public=True),
        ledger=tmp_path / "new.ledger",
    )


def test_table_cannot_be_public_beside_itself(tmp_path, files):
    (tmp_path / "link.csv").symlink_to(files.data)
    stored = ln.DatabaseTable("visits", "env:VISITS_URL")
    pairs = [
        (files.data, ln.CSV(files.data, ",")),
        (files.data, tmp_path / "x/../visits.csv"),
        (files.data, tmp_path / "link.csv"),
    ]
    for first, second in [
        *pairs,
        (VISITS, VISITS),
        (stored, ln.DatabaseTable("visits", "env:VISITS_URL")),
    ]:
        with pytest.raises(ln.InputError, match="The second table is the data themselves"):
            ln.Joined(first, second, on="patient_id", public=True)


def test_joins_with_other_bounds_share_one_ledger(tmp_path, files):
    ledger = ln.Ledger.create(
        tmp_path / "visits.ledger", "visits", ln.Privacy(ln.PureDP(102), unit_column="patient_id")
    )
    ln.release(PLAN, files, ledger=ledger)
    domain = ln.Domain(diagnosis=["a", "b", "c"])
    for rows, cell in ((2, None), (3, ln.PerCellBound(1, "diagnosis"))):
        privacy = ln.Privacy(
            ln.PureDP(1), unit_column="patient_id", max_rows=rows, max_per_cell=cell
        )
        ln.release(
            ln.plan(ln.marginals(domain, ways=1), privacy, strategy="identity"),
            files.data,
            ledger=ledger,
            dataset="visits",
        )
    assert len(ledger.entries()) == 3
    assert str(ledger.left()) == "nothing"
