"""The page of a comparison in real browsers: widths, a clean console and accessibility."""

import pandas as pd
import pytest

import leastnoise as ln
from browser.conftest import BROWSERS, is_sound

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return the pages of a comparison of two years, in English and German."""
    labels = {"shop": {"a": {"en": "harbour", "de": "Hafen"}, "b": "Nord"}}
    domain = ln.Domain(shop=["a", "b", "c"], sex=["F", "M"])
    plan = ln.plan(ln.marginals(domain, ways=2), ln.PureDP(1), strategy="identity")
    releases = []
    for year, rows in ((2025, 900), (2024, 600)):
        title = {"en": f"Visits {year}", "de": f"Besuche {year}"}
        options = ln.Options(title=title, labels=labels)
        visits = {"shop": [*"abc"] * (rows // 3), "sex": [*"FM"] * (rows // 2)}
        releases.append(ln.release(plan, pd.DataFrame(visits), seed=year, options=options))
    out = tmp_path_factory.mktemp("page") / "change"
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("LEASTNOISE_CHARTS")
        ln.write_comparison(ln.compare_releases(*releases, by=["shop", "sex"]), out)
    return out


@pytest.mark.parametrize("kind", BROWSERS)
@pytest.mark.parametrize("name", ["comparison.html", "comparison.de.html"])
def test_comparison_page_is_sound_in_a_browser(folder, kind, name, run_in_browser):
    page = folder / name
    findings = run_in_browser(kind, "page.mjs", page)
    assert is_sound(findings, page.as_uri())
    assert findings["cut"] == []
    assert findings["rows"] == 6
    assert (findings["read"] > 40) == (kind == "chrome")
