"""The page that compares synthetic records with the released tables."""

import re

import numpy as np
import pandas as pd

import leastnoise as ln
from leastnoise._pages import render_utility_page
from leastnoise._release import make_records


def test_sampling_errors_do_not_make_records_look_close(tmp_path):
    """Records come from one sample, so its sampling error is no excuse for their differences."""
    domain = ln.Domain(sex=["f", "m"], age=ln.Integers(0, 3)).as_complete()
    workload = ln.marginals(domain, ways=2)
    rows = pd.DataFrame({"sex": ["f", "m"] * 400, "age": np.arange(800) % 4})
    plan = ln.plan(workload, ln.ZCDP(1))
    names = {"rows": {"en": "persons", "de": "befragte Personen"}}
    plain, survey = (
        ln.release(plan, rows, seed=1, options=ln.Options(names=names, survey=rule))
        for rule in ({}, {"cv": "0.5"})
    )
    (table,) = survey.tables
    assert table.typical_margin > 5 * table.typical_noise_margin
    assert table.typical_noise_margin == plain.tables[0].typical_margin
    pages = []
    for release in (plain, survey):
        records = make_records(release.outcome, None, 0)
        page = render_utility_page(records, release, tmp_path / "page.html", "de")
        pages.append(re.sub(r"<[^>]*>", " ", page))
    without, with_survey = pages
    sentence = "ohne den Stichprobenfehler, denn die Datensätze folgen aus dieser Stichprobe"
    assert sentence in with_survey
    assert sentence not in without
    assert "auf die Zahl der befragten Personen der Veröffentlichung" in without
    margin = f"{table.typical_noise_margin:.3g}".replace(".", ",")
    assert margin in without
    assert margin in with_survey
