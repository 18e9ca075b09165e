"""Every table of every page of the program fits a phone: no column is cut in a real browser."""

import numpy as np
import pandas as pd
import pytest

import leastnoise as ln
from browser.conftest import BROWSERS

pytestmark = pytest.mark.slow

_EARLIER = {"1976", "1977", "1978"}  # their reports look like the newest one
REGIONS = ["Northern Uplands", "Southern Lowlands", "Western Isles", "Eastern Borders"]
SPEC = """
[source]
path = "wages.csv"
[privacy]
rho = "8"
unit = { column = "id", max_rows = 2 }
[domain.year]
dates = { column = "year", from = "1976-01-01", to = "1979-12-31", by = "year", format = "%Y" }
[domain.region]
categories = ["Northern Uplands", "Southern Lowlands", "Western Isles", "Eastern Borders"]
[domain.contract]
categories = ["covered by a union contract", "not covered"]
[measures.wage]
clip = [0, 2000000]
[[workload]]
queries = { year = "identity", contract = "identity" }
[[workload]]
means = { of = "wage", by = ["year", "region"] }
[[workload]]
means = { of = "wage", by = ["year", "region", "contract"] }
[[workload]]
queries = { year = "identity" }
sum = "wage"
[series]
along = "year"
[survey]
design_effect = "1.6"
sample = 595
population = 40000000
[survey.tables.s1]
cv = "0.05"
[survey.tables.s2]
cv = "0.05"
[names]
rows = { en = "employees", de = "Beschäftigte" }
units = { en = "persons", de = "Personen" }
unit = { en = "person", de = "Person" }
[names.attributes]
year = { en = "year", de = "Jahr" }
region = { en = "region of the main job", de = "Region des hauptsächlichen Arbeitsortes" }
contract = { en = "union contract", de = "Tarifbindung" }
[names.measures.wage]
name = { en = "annual wage", de = "Jahreslohn" }
mean = { en = "mean annual wage", de = "mittlerer Jahreslohn" }
unit = { en = "USD per year", de = "USD je Jahr" }
[output]
formats = ["csv"]
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with the pages of a series of a survey, its reports, and a profile."""
    folder = tmp_path_factory.mktemp("pages")
    random = np.random.default_rng(1)
    rows = 4 * 500
    wages = pd.DataFrame(
        {
            "id": np.arange(rows) % 500,
            "year": 1976 + np.arange(rows) // 500,
            "region": random.choice(REGIONS, rows),
            "contract": random.choice(["covered by a union contract", "not covered"], rows),
            "wage": random.integers(1, 2_000_000, rows),
        }
    )
    wages.to_csv(folder / "wages.csv", index=False)
    (folder / "wages.toml").write_text(SPEC, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("LEASTNOISE_CHARTS")
        ln.read_spec(folder / "wages.toml").release(folder / "series")
        ln.profile(
            folder / "wages.csv",
            epsilon=1,
            max_rows=2,
            unit="id",
            seed=1,
            out=folder / "profile",
        )
    return folder


@pytest.mark.parametrize("kind", BROWSERS)
def test_no_table_of_a_page_is_cut_on_a_phone(folder, kind, run_in_browser):
    pages = [page for page in sorted(folder.rglob("*.html")) if page.parent.name not in _EARLIER]
    assert {page.name for page in pages} >= {"index.html", "index.de.html", "report.html"}
    faults = {}
    for page in pages:
        findings = run_in_browser(kind, "page.mjs", page)
        too_wide = [width for width, over in findings["overflow"].items() if over > 0]
        if findings["cut"] or findings["axe"] or findings["said"] or too_wide:
            faults[str(page.relative_to(folder))] = (
                findings["cut"],
                findings["axe"],
                findings["said"],
                too_wide,
            )
    assert faults == {}
