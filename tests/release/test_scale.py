"""Long sums in thousands or millions, for readers; files of answers keep the values."""

import re

import numpy as np
import openpyxl
import pandas as pd
import pytest
from pysdmx import io as pysdmx

import leastnoise as ln

MILLION = 10**6
EUROS = {"en": "EUR per year", "de": "EUR je Jahr"}


@pytest.fixture(scope="module")
def scaled(tmp_path_factory):
    """Write a release of incomes whose sums readers see in millions."""
    domain = ln.Domain(
        {"region": ["north", "south"]}, measures={"pay": ln.Measure("pay", 0, 200_000, unit="100")}
    ).as_complete()
    workload = ln.mean_queries(domain, of="pay", by=["region"])
    rows = pd.DataFrame({"region": ["north", "south"] * 500, "pay": np.arange(1000) * 100})
    pay = {"name": {"en": "pay", "de": "Lohn"}, "unit": EUROS, "decimals": 0, "scale": MILLION}
    options = ln.Options(
        formats=["csv", "xlsx", "sdmx"],
        language="en",
        names={"measures": {"pay": pay}, "rows": {"en": "persons", "de": "Personen"}},
    )
    out = tmp_path_factory.mktemp("scaled") / "out"
    plan = ln.plan(workload, ln.ZCDP(2), strategy="identity")
    release = ln.release(plan, rows, seed=3, out=out, options=options)
    return out, next(table for table in release.tables if table.product.of_values), release


def test_files_of_answers_keep_the_values(scaled):
    out, sums, _ = scaled
    paths = (out / "answers").glob(f"{sums.id}-*.csv")
    (path,) = [path for path in paths if not path.name.endswith(".sdmx.csv")]
    assert pd.read_csv(path)["answer"].to_numpy() == pytest.approx(sums.answer)


@pytest.mark.parametrize(
    ("file", "unit"),
    [("report.html", "million EUR per year"), ("report.de.html", "Mio. EUR je Jahr")],
)
def test_reports_show_sums_in_millions(scaled, file, unit):
    out, sums, _ = scaled
    page = (out / file).read_text(encoding="utf-8")
    text = re.sub(r"<[^>]*>", " ", page)
    assert unit in text
    shown = f"{sums.answer[0] / MILLION:.1f}"
    if file == "report.de.html":
        shown = shown.replace(".", ",")
    assert re.search(rf"\b{re.escape(shown)}", text)
    assert f"{sums.answer[0]:,.0f}" not in text
    assert f"{sums.answer[0]:,.0f}".replace(",", ".") not in text
    # The mean has the unit of the values.
    assert f"mean of pay by region, {EUROS['en']}".lower() in text.lower() or file != "report.html"


def test_publication_workbook_has_sums_in_millions(scaled):
    out, sums, _ = scaled
    sheet = openpyxl.load_workbook(out / "publication.xlsx")[sums.id]
    assert sheet["A1"].value.endswith("million EUR per year")
    numbers = [
        [cell.value for cell in row if isinstance(cell.value, float | int)]
        for row in sheet.iter_rows()
    ]
    answers = [row[0] for row in numbers if row]
    assert answers == pytest.approx((sums.answer / MILLION).tolist())
    long_form = openpyxl.load_workbook(out / "answers.xlsx")
    texts = [cell.value for sheet in long_form for row in sheet.iter_rows() for cell in row]
    assert not any("million" in text for text in texts if isinstance(text, str))


def test_sdmx_states_the_multiplier(scaled):
    out, sums, release = scaled
    structure = out / "structure.sdmx.xml"
    pysdmx.read_sdmx(structure, validate=True)
    (path,) = (out / "answers").glob(f"{sums.id}-*.sdmx.csv")
    (dataset,) = pysdmx.get_datasets(path, structure)
    data = dataset.data
    assert {*data["UNIT_MULT"].astype(int)} == {6}
    for column, values in (("OBS_VALUE", sums.answer), ("LOW", sums.low), ("HIGH", sums.high)):
        assert data[column].astype(float).to_numpy() * MILLION == pytest.approx(values)
    (statistic,) = release.statistics
    (path,) = (out / "answers").glob(f"{statistic.id}-*.sdmx.csv")
    (dataset,) = pysdmx.get_datasets(path, structure)
    assert {*dataset.data["UNIT_MULT"].astype(int)} == {0}
    assert {*dataset.data["DECIMALS"].astype(int)} == {0}
    assert "DECIMALS" not in data.columns  # the noise decides the decimals of sums in millions


@pytest.mark.parametrize("flows", ["table", "quantity"])
def test_sdmx_states_decimals_where_the_names_do(tmp_path, flows):
    """A share of 12.3% is the value 0.123, which has three decimals."""
    domain = ln.Domain(
        {"region": ["north", "south"], "sex": ["F", "M"]},
        measures={"pay": ln.Measure("pay", 0, 1000), "poor": ln.Measure("poor", 0, 1)},
    ).as_complete()
    workload = ln.mean_queries(domain, of="poor", by=["region"])
    workload += ln.queries(domain, region="identity", sum="pay")
    workload += ln.queries(domain, sex="identity", sum="pay")
    names = {
        "measures": {"pay": {"decimals": 2}, "poor": {"percent": True, "decimals": 1}},
        "tables": {"sum of pay by sex": {"decimals": 0}},
    }
    options = ln.Options(formats=["csv", "sdmx"], names=names, sdmx={"flows": flows})
    rows = pd.DataFrame(
        {"region": ["north", "south"] * 300, "sex": ["F", "M"] * 300, "pay": 500, "poor": 1}
    )
    out = tmp_path / "out"
    release = ln.release(ln.plan(workload, ln.ZCDP(2)), rows, seed=3, out=out, options=options)
    structure = out / "structure.sdmx.xml"
    pysdmx.read_sdmx(structure, validate=True)
    decimals = {}
    for path in (out / "answers").glob("*.sdmx.csv"):
        (dataset,) = pysdmx.get_datasets(path, structure)
        if "DECIMALS" in dataset.data.columns:
            assert {*dataset.data["UNIT_MULT"].astype(int)} == {0}
            decimals[path.name] = sorted({*dataset.data["DECIMALS"].astype(int)})
    (statistic,) = release.statistics
    of_means = [values for name, values in decimals.items() if name.startswith(statistic.id)]
    assert of_means == [[3]]
    of_sums = [values for name, values in decimals.items() if not name.startswith(statistic.id)]
    assert sorted(of_sums) == ([[0, 2]] if flows == "quantity" else [[0], [2]])


def test_scale_of_a_quantity_without_unit(tmp_path):
    domain = ln.Domain({"region": ["north"]}, measures={"pay": ln.Measure("pay", 0, 100)})
    workload = ln.queries(domain.as_complete(), region="identity", sum="pay")
    options = ln.Options(names={"measures": {"pay": {"name": "pay", "scale": 1000}}})
    rows = pd.DataFrame({"region": ["north"] * 900, "pay": 50})
    out = tmp_path / "out"
    ln.release(ln.plan(workload, ln.ZCDP(1)), rows, seed=1, out=out, options=options)
    assert "Sum of pay by region, in thousands" in (out / "report.html").read_text("utf-8")


@pytest.mark.parametrize("scale", [10, 0, "1000", True, 1.5])
def test_other_scales_are_refused(scale):
    with pytest.raises(ln.InputError, match="names measures pay scale must be one of 1000"):
        ln.Options(names={"measures": {"pay": {"scale": scale}}})


def test_prefix_sums_have_labels_in_the_notation_of_the_language(tmp_path):
    """A label such as "< 20000" has no separators and no words."""
    domain = ln.Domain({"pay": ln.Bins(0, 30_000, 3, outside="clip")}).as_complete()
    names = {"attributes": {"pay": {"name": {"en": "pay", "de": "Lohn"}, "unit": "EUR"}}}
    options = ln.Options(names=names, language="en", formats=["csv", "xlsx"])
    rows = pd.DataFrame({"pay": [5_000, 15_000, 25_000] * 90})
    out = tmp_path / "out"
    plan = ln.plan(ln.queries(domain, pay="prefix"), ln.ZCDP(1))
    ln.release(plan, rows, seed=1, out=out, options=options)
    for file, first, last in (
        ("publication.xlsx", "under 10,000", "up to 30,000"),
        ("publication.de.xlsx", "unter 10.000", "bis 30.000"),
    ):
        labels = [cell.value for cell in openpyxl.load_workbook(out / file)["q1"]["A"]]
        assert {first, last} <= {*labels}
    (path,) = (out / "answers").glob("*.csv")
    assert "< 10000" in path.read_text(encoding="utf-8")
