"""The code of the page about R, run in R where R is installed."""

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import leastnoise as ln
from waiting import HANGS

PAGE = (Path(__file__).parents[2] / "docs" / "r.md").read_text(encoding="utf-8")
ONE, MANY = (
    "\n".join(re.findall(r"^```r\n(.*?)^```", part, flags=re.DOTALL | re.MULTILINE))
    for part in PAGE.split("## Many tables")
)


def run_in_r(code, folder):
    """Return the printed last value of the page's lines, run in the folder of a release."""
    if shutil.which("Rscript") is None:
        pytest.skip("R is not installed (make machine, as root)")
    (folder / "page.R").write_text(code)
    done = subprocess.run(
        ["Rscript", "--vanilla", "page.R"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=HANGS,
        check=False,
    )
    if "there is no package called" in done.stderr:
        pytest.skip("R lacks jsonlite or ggplot2 (make machine, as root)")
    assert done.returncode == 0, done.stderr
    return done.stdout


def write_release(folder, attributes, **options):
    """Write a release of a few people whose attributes are all F or M."""
    domain = ln.Domain({name: ["F", "M"] for name in attributes})
    plan = ln.plan(
        ln.marginals(domain, upto=min(len(attributes), 2)), ln.PureDP(1), strategy="workload"
    )
    rows = pd.DataFrame({name: ["F", "M", "M"] for name in attributes})
    return ln.release(plan, rows, seed=1, out=folder / "release", options=ln.Options(**options))


@pytest.mark.slow
def test_page_runs_on_a_release(tmp_path):
    release = write_release(tmp_path, ["sex"], covariances=["q2"])
    tables = pd.read_csv(tmp_path / "release" / "tables.csv")
    assert set(tables.columns) == set(
        re.findall(r"`(\w+)`", PAGE.split("Its columns are ")[1].split("Each table")[0])
    )
    # The first table is the total.
    code = ONE.replace("tables$files[1]", "tables$files[2]").replace('"q1.csv"', '"q2.csv"')
    printed = run_in_r(
        code + '\ncat("names", names(first), "\\n")\ncat("sum", sum(first$answer), "\\n")', tmp_path
    )
    assert "names query sex answer noise_std low high" in printed
    answers = release.tables["sex"].answer
    printed_sum = re.search(r"^sum (\S+)", printed, flags=re.MULTILINE)
    assert float(printed_sum[1]) == pytest.approx(np.sum(answers), rel=1e-6)
    # The last lines of the page print these numbers.
    total, std = map(float, re.findall(r"\[1\] +(\S+) +(\S+)$", printed, flags=re.MULTILINE)[-1])
    assert total == pytest.approx(np.sum(answers), abs=1e-4)
    assert std == pytest.approx(release.sum("sex").noise_std.item(), rel=1e-5)
    assert (tmp_path / "Rplots.pdf").exists()  # the chart was drawn


def test_page_reads_many_tables(tmp_path):
    release = write_release(tmp_path, [f"a{i}" for i in range(21)])
    printed = run_in_r(f'library(jsonlite)\nrelease <- "release"\n{MANY}', tmp_path)
    shown = re.findall(r"^\d +([FM]) +([FM]) +(\S+) +(\S+)$", printed, flags=re.MULTILINE)
    assert ["".join(row[:2]) for row in shown] == ["FF", "FM", "MF", "MM"]
    assert [float(row[2]) for row in shown] == pytest.approx(
        np.ravel(release.tables["a0 x a1"].answer), abs=1e-5
    )
