"""Releases of a file work without the extras, and name what the extras would add."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
SPEC = """\
[source]
path = "people.csv"
[privacy]
epsilon = "1"
[domain.sex]
categories = ["F", "M"]
[[workload]]
marginals = { ways = 1 }
"""
WITHOUT_EXTRAS = """
import sys

for name in {names!r}:
    sys.modules[name] = None  # as if it were not installed
{program}
"""
# The modules of the distributions whose names differ.
MODULES = {
    "adbc-driver-postgresql": "adbc_driver_postgresql",
    "ibis-framework": "ibis",
    "pyarrow-hotfix": "pyarrow_hotfix",
    "pyyaml": "yaml",
    "vl-convert-python": "vl_convert",
}
COMMAND = "from leastnoise._cli import main; main()"


def extra_modules():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    names = {
        requirement.split(">=")[0]
        for extra in project["optional-dependencies"].values()
        for requirement in extra
        if not requirement.startswith("leastnoise[")
    }
    return sorted(MODULES.get(name, name) for name in names)


def run_without_extras(folder, program, *arguments):
    text = WITHOUT_EXTRAS.format(names=extra_modules(), program=program)
    return subprocess.run(
        [sys.executable, "-c", text, *arguments],
        cwd=folder,
        env={**os.environ, "LEASTNOISE_CHARTS": "on"},
        check=False,
        capture_output=True,
        text=True,
    )


def write_job(folder):
    (folder / "people.toml").write_text(SPEC, encoding="utf-8")
    (folder / "people.csv").write_text("sex\n" + "F\nM\n" * 200, encoding="utf-8")


def test_release_of_a_file_needs_no_extra(tmp_path):
    write_job(tmp_path)
    result = run_without_extras(tmp_path, COMMAND, "release", "people.toml", "--out", "out")
    assert result.returncode == 0, result.stderr
    assert "The report has no charts: they need the extra 'charts'" in result.stdout
    report = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "<svg" not in report.split("</style>")[-1]
    assert sorted(path.suffix for path in (tmp_path / "out" / "answers").iterdir()) == [
        ".csv",
        ".parquet",
    ]


def test_chart_without_its_extra_is_refused(tmp_path):
    write_job(tmp_path)
    program = (
        "import leastnoise as ln\n"
        'release = ln.read_spec("people.toml").release(None, seed=1)\n'
        "try:\n"
        '    release.tables["sex"].plot()\n'
        "except ln.InputError as error:\n"
        "    print(error)\n"
    )
    result = run_without_extras(tmp_path, program)
    assert result.returncode == 0, result.stderr
    assert result.stdout == "Charts need the extra 'charts': pip install 'leastnoise[charts]'.\n"
