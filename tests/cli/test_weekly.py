"""The scripts of the page on weekly jobs run as the page prints them."""

import ast
import json
import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from leastnoise._session import Ledger

PAGE = (Path(__file__).parents[2] / "docs" / "weekly.md").read_text(encoding="utf-8")
FILES = re.compile(r"^`([\w.]+)`:\n\n```\w+\n(.*?)^```$", flags=re.DOTALL | re.MULTILINE)


@pytest.fixture
def job(tmp_path):
    """Return the folder with the files of the page, and an environment with the program."""
    for name, content in FILES.findall(PAGE):
        (tmp_path / name).write_text(content, encoding="utf-8")
    programs = tmp_path / "programs"
    programs.mkdir()
    program = programs / "leastnoise"
    program.write_text(
        f"#!{sys.executable}\nfrom leastnoise._cli import main\nmain()\n", encoding="utf-8"
    )
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    environment = {**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}

    def run(*command):
        return subprocess.run(
            command, cwd=tmp_path, env=environment, check=False, capture_output=True, text=True
        )

    assert run(sys.executable, "visits.py", "2024-12-29").returncode == 0
    return tmp_path, run


def airflow_command():
    """Return the shell command of the page's DAG."""
    (text,) = (content for name, content in FILES.findall(PAGE) if name == "weekly_dag.py")
    (command,) = (
        keyword.value.value
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call)
        for keyword in node.keywords
        if keyword.arg == "bash_command" and isinstance(keyword.value, ast.Constant)
    )
    return command


@pytest.mark.slow
def test_weekly_script_publishes_once_and_can_be_repeated(job):
    folder, run = job
    first_result = run("sh", "-c", airflow_command())
    assert first_result.returncode == 0, first_result.stderr
    output = json.loads((folder / "weekly.json").read_text(encoding="utf-8"))
    assert output["status"] == "released"
    assert len(output["written"]) == 52
    assert output["ledger"]["paid_now"] is True
    repeated = run("sh", "-c", airflow_command())
    assert repeated.returncode == 0, repeated.stderr
    output = json.loads((folder / "weekly.json").read_text(encoding="utf-8"))
    assert output["status"] == "nothing due"
    assert output["written"] == []
    assert output["ledger"]["paid_now"] is False
    (entry,) = Ledger.open(folder / "visits.ledger").entries()
    assert entry.description.endswith("; cron")


def test_weekly_script_stops_at_a_changed_table(job):
    folder, run = job
    visits = (folder / "visits.csv").read_text(encoding="utf-8")
    (folder / "visits.csv").write_text(visits.replace("branch", "shop", 1), encoding="utf-8")
    result = run("sh", "weekly.sh")
    assert result.returncode == 2
    assert "has no column 'branch'" in result.stderr
    assert not (folder / "visits.ledger").exists()
