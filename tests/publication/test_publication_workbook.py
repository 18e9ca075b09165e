"""Publication workbooks as an office prints them: complete rows, whole titles, own notes."""

import openpyxl
import pandas as pd
import pytest

import leastnoise as ln

NAMES = {
    "rows": {"en": "persons", "de": "Personen"},
    "attributes": {
        "place": {"en": "municipality", "de": "Gemeinde"},
        "sex": {"en": "sex", "de": "Geschlecht"},
        "age": {"en": "age", "de": "Alter"},
    },
    "measures": {
        "pay": {
            "name": {"en": "net income of private households", "de": "Nettoeinkommen"},
            "sum": {"en": "total net income of private households", "de": "Nettoeinkommen"},
            "unit": {"en": "EUR per year", "de": "EUR je Jahr"},
        }
    },
}
LAST_NOTE_COLUMN = "F"


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """Write the workbooks of a small survey in two languages, and return their folder."""
    domain = ln.Domain(
        {"place": ["A", "B", "C"], "sex": ["f", "m"], "age": ln.Integers(0, 19, outside="clip")},
        measures={"pay": ln.Measure("pay", 0, 100_000, unit="100")},
    ).as_complete()
    workload = ln.queries(domain, place="identity", sex="identity", age="identity")
    workload += ln.queries(domain, place="identity", sum="pay")
    workload += ln.queries(domain, sex="identity")
    workload += ln.quantile_queries(domain, of="age", at=["1/4", "1/2"])
    rows = pd.DataFrame(
        {
            "place": ["A", "B", "C"] * 200,
            "sex": ["f", "m"] * 300,
            "age": [number % 20 for number in range(600)],
            "pay": [20_000 + 100 * number for number in range(600)],
        }
    )
    options = ln.Options(
        formats=["xlsx"],
        language="en",
        names=NAMES,
        non_negative=True,
        round={"pay": 1000},
        survey={"tables": {"q3": {"cv": "0.05"}}},
    )
    out = tmp_path_factory.mktemp("publication") / "out"
    plan = ln.plan(workload, ln.ZCDP("1/2"), strategy="identity")
    ln.release(plan, rows, seed=3, out=out, options=options)
    return out


@pytest.fixture(scope="module")
def book(published):
    return openpyxl.load_workbook(published / "publication.xlsx")


def texts_of(sheet):
    """Return all texts of a sheet."""
    cells = [cell.value for row in sheet.iter_rows() for cell in row]
    return [text for text in cells if isinstance(text, str)]


def number_rows(sheet):
    """Return the rows of a sheet that have numbers."""
    rows = [[cell.value for cell in row] for row in sheet.iter_rows()]
    return [row for row in rows if any(isinstance(value, float | int) for value in row)]


def test_every_row_has_all_its_labels(book):
    rows = number_rows(book["q1"])
    assert len(rows) == 3 * 20
    assert all(row[0] in {"A", "B", "C"} and row[1] for row in rows)


def test_titles_are_merged_cells_that_wrap(book):
    for table in ("q1", "q2", "s1"):
        sheet = book[table]
        ranges = [str(merged) for merged in sheet.merged_cells.ranges]
        assert any(merged.startswith("A1:") for merged in ranges)
        assert sheet["A1"].alignment.wrap_text
    sheet = book["q2"]
    assert f"A1:{LAST_NOTE_COLUMN}1" in [str(merged) for merged in sheet.merged_cells.ranges]
    assert sheet.row_dimensions[1].height > 20  # the title has two lines


def test_contents_fit_on_a_page_without_scaling(book):
    contents = book.worksheets[0]
    widths = [contents.column_dimensions[column].width for column in "ABC"]
    limit = 135 if contents.page_setup.orientation == "landscape" else 95
    assert sum(widths) < limit


def test_notes_state_only_what_holds_for_their_table(book):
    rounding = "rounded to multiples of 1,000"
    noise_only = "The sampling error of these numbers is not stated"
    sampling = "The intervals include the sampling error that the publisher states."
    counts, sums, flagged, quantiles = (
        " ".join(texts_of(book[name])) for name in ("q1", "q2", "q3", "s1")
    )
    assert "Total net income of private households: " + rounding in sums
    assert not any(rounding in text for text in (counts, flagged, quantiles))
    assert sampling in flagged
    assert not any(sampling in text for text in (counts, sums, quantiles))
    assert all(noise_only in text for text in (counts, sums, quantiles))
    assert "within the margin (±)" in counts
    assert "between the lower and the upper end" in quantiles


def test_adjusted_numbers_are_published_next_to_the_margins(book):
    sheet = book["q3"]
    texts = texts_of(sheet)
    assert texts.index("± 95%") < texts.index("Not negative")
    assert any("not negative" in text and "are adjusted" in text for text in texts)
    assert all(row[3] >= 0 for row in number_rows(sheet))


def test_margins_have_three_digits(book):
    margins = [row[2] for row in number_rows(book["q2"])]
    assert all(margin > 1000 for margin in margins)
    assert margins == [float(f"{margin:.3g}") for margin in margins]


def test_shares_have_the_notation_of_the_language(published):
    german = openpyxl.load_workbook(published / "publication.de.xlsx")
    assert "0,25" in texts_of(german["s1"])
    english = openpyxl.load_workbook(published / "publication.xlsx")
    assert "0.25" in texts_of(english["s1"])


def test_notes_sheet_says_what_low_and_high_are(book):
    notes = " ".join(texts_of(book.worksheets[-1]))
    assert "The ends of an interval (low and high) are the answer" in notes


def test_contents_list_parts_of_statistics_last(tmp_path):
    domain = ln.Domain(
        {"place": ["A", "B"], "sex": ["f", "m"]}, measures={"pay": ln.Measure("pay", 0, 9)}
    ).as_complete()
    workload = ln.mean_queries(domain, of="pay", by=["sex"]) + ln.queries(domain, place="identity")
    rows = pd.DataFrame({"place": ["A", "B"] * 50, "sex": ["f", "m"] * 50, "pay": 5})
    options = ln.Options(formats=["xlsx"])
    out = tmp_path / "out"
    ln.release(ln.plan(workload, ln.ZCDP(1)), rows, seed=3, out=out, options=options)
    contents = openpyxl.load_workbook(out / "publication.xlsx").worksheets[0]
    ids = [cell.value for cell in contents["A"]]
    heading = "Numbers from which means, quantiles and other statistics are computed"
    position = [cell.value for cell in contents["B"]].index(heading)
    assert [text for text in ids[position:] if text] == ["q1", "q2"]
    assert [text for text in ids[:position] if text][-2:] == ["q3", "s1"]
