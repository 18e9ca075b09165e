"""The page about R names files and columns that a release has; R itself is not run."""

import json
import re
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq

import leastnoise as ln

PAGE = (Path(__file__).parents[2] / "docs" / "r.md").read_text(encoding="utf-8")
CODE = "\n".join(re.findall(r"^```r\n(.*?)^```", PAGE, flags=re.DOTALL | re.MULTILINE))


def test_the_page_about_r_reads_what_is_there(tmp_path):
    plan = ln.plan(ln.queries(ln.Domain(sex=["F", "M"]), sex="identity"), ln.PureDP(1), strategy="identity")
    out = tmp_path / "release"
    release = ln.release(plan, pd.DataFrame({"sex": ["F", "M"]}), seed=1, out=out, options=ln.Options(covariances=["q1"]))
    tables = pd.read_csv(out / "tables.csv")
    assert set(tables.columns) == set(re.findall(r"`(\w+)`", PAGE.split("`tables` lists what there is: ")[1].split("A table")[0]))
    first = pq.read_table(out / f"{tables.files[0]}.parquet").to_pandas()
    listed = re.search(r"first\[, c\((.*)\)\]", CODE).group(1)
    assert set(re.findall(r'"(\w+)"', listed)) <= set(first.columns)
    assert first.columns[1] == "sex"  # names(first)[2] of R
    pairs = pq.read_table(out / "covariances" / "q1.parquet").to_pandas()
    assert {"answer", "other_answer", "covariance"} <= set(pairs.columns)
    assert set(re.findall(r"pairs\$(\w+)", CODE)) <= set(pairs.columns)
    # the sum of two cells as the page computes it
    both = pairs.covariance.sum() + pairs.covariance[pairs.answer != pairs.other_answer].sum()
    assert abs(both**0.5 - release.sum("sex").noise_std.item()) < 1e-9
    for part in re.findall(r"manifest\$(\w+)\$(\w+)", CODE):
        assert part[1] in json.loads((out / "manifest.json").read_text())[part[0]]
