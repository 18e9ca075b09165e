"""Specs in Python do the same as the commands: guard, rounding, share and all options."""

import json
import logging
import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

import leastnoise as ln
from leastnoise._session import Ledger
from leastnoise._trusted.accounting import Privacy, PureDP
from waiting import HANGS

SPEC = """\
[source]
path = "people.csv"
[privacy]
epsilon = "2"
[domain.sex]
categories = ["F", "M"]
[[workload]]
marginals = {{ ways = 1 }}{target}
[plan]
strategy = "identity"
{plan}
[output]
formats = ["csv"]
{output}
{ledger}
"""
SERIES = """\
[source]
path = "visits.csv"
[privacy]
rho = "1/2"
unit = { column = "person", max_rows = 1 }
[domain.month]
dates = { from = "2024-01-01", to = "2024-12-31", by = "month" }
[[workload]]
queries = { month = "identity" }
[output]
formats = ["csv"]
[series]
along = "month"
"""
RICH = """\
[source]
path = "requests.csv"
[privacy]
epsilon = "2"
delta = "1e-9"
unit = { column = "id", max_rows = 2 }
[domain.sex]
categories = ["F", "M"]
labels = { "F" = "women", "M" = "men" }
[domain.agent]
unknown = { most = 10 }
[measures.pay]
clip = [0, 50]
[[workload]]
sql = "SELECT sex, COUNT(*) AS n FROM requests GROUP BY sex"
[[workload]]
means = { of = "pay", by = ["sex"] }
[[workload]]
marginals = { ways = 1 }
[plan]
strategy = "marginals"
guard = "1/4"
[output]
round = 5
below = "10"
covariances = ["sex"]
language = "de"
title = "Requests"
formats = ["csv"]
"""
ROWS = "sex\n" + "F\n" * 300 + "M\n" * 100
PROGRAM = "from leastnoise._cli import main; main()"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Enter a new directory with people.csv."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LEASTNOISE_CHARTS", "off")
    monkeypatch.setenv("LEASTNOISE_CACHE", "off")
    Path("people.csv").write_text(ROWS, encoding="utf-8")
    return tmp_path


def spec(target="", plan="", output="", ledger=""):
    """Write the spec with further settings, and read it."""
    text = SPEC.format(target=target, plan=plan, output=output, ledger=ledger)
    Path("people.toml").write_text(text, encoding="utf-8")
    return ln.read_spec("people.toml")


@pytest.fixture
def command(fork_server):
    """Run the program in a separate process."""

    def run(*arguments):
        process = fork_server.start(PROGRAM, arguments, dict(os.environ))
        output, errors = process.communicate(HANGS)
        return subprocess.CompletedProcess(arguments, process.returncode, output, errors)

    return run


def manifest_of(folder):
    return json.loads(Path(folder, "manifest.json").read_text(encoding="utf-8"))


def test_spec_plan_leaves_the_share_of_the_guard(folder, command):
    plan = spec(plan='guard = "1/4"').plan()
    assert plan.privacy.budget == PureDP("3/2")
    planned = command("plan", "people.toml", "--json")
    assert json.loads(planned.stdout)["privacy"] == plan.privacy.to_json()


def test_spec_release_equals_the_command(folder, command):
    Ledger.create("people.ledger", "people", Privacy(PureDP(4))).set_budget(
        PureDP(4), share="weekly"
    )
    settings = {
        "plan": 'guard = "1/10"',
        "output": "round = 5\nbelow = 10\nlevel = 0.9",
        "ledger": '[ledger]\nshare = "weekly"',
    }
    release = spec(**settings).release("python", note="by hand")
    result = command("release", "people.toml", "--out", "shell", "--note", "by cron")
    assert result.returncode == 0, result.stderr
    assert [answer % 5 for answer in release.tables["sex"].frame("pandas")["answer"]] == [0, 0]
    assert release.level == 0.9
    assert float(release.receipt.guard.used) == pytest.approx(400, abs=300)
    in_python = manifest_of("python")
    in_shell = manifest_of("shell")
    assert in_python.keys() == in_shell.keys()
    assert in_python["options"] == in_shell["options"]
    entries = [entry for entry in Ledger.open("people.ledger").entries() if entry.kind == "release"]
    assert [entry.share for entry in entries] == ["weekly"] * 4
    # Both runs pay for a guard and a release.
    assert [entry.charge.epsilon for entry in entries] == [
        entry.charge.epsilon for entry in entries[:2]
    ] * 2
    assert sum(entry.charge.epsilon for entry in entries) == 4
    notes = [entry.description.partition("; ")[2] for entry in entries]
    assert notes == ["", "by hand", "", "by cron"]


def test_seeded_spec_release_equals_the_command(folder, command):
    release = spec(plan='guard = "1/100"').release(None, seed=3)
    assert command("release", "people.toml", "--out", "out", "--seed", "3").returncode == 0
    assert not Path("people.ledger").exists()
    shell = ln.read_release("out")
    assert release.answers.equals(shell.answers)
    assert release.tables["sex"].frame("pandas").equals(shell.tables["sex"].frame("pandas"))


def test_guard_stops_spec_release_before_payment(folder):
    Path("people.csv").write_text("sex\n" + "unknown\n" * 4000, encoding="utf-8")
    with pytest.raises(ln.GuardError):
        spec(plan='guard = "1/10"').release("out")
    assert Ledger.open("people.ledger").spent().epsilon == PureDP("1/5").epsilon
    assert not Path("out").exists()


def test_spec_release_of_a_frame_needs_a_named_ledger(folder):
    people = pd.DataFrame({"sex": ["F"] * 300 + ["M"] * 100})
    with pytest.raises(ln.InputError, match="needs a ledger"):
        spec().release("out", source=people)
    release = spec().release("out", source=people, ledger="frame.ledger", dataset="people")
    assert Ledger.open("frame.ledger").dataset == "people"
    assert release.receipt.payment.number == 1


def test_finished_job_is_released_once(folder, command):
    release = spec().release("out")
    repeated = spec().release("out")
    assert repeated.observation.receipt == release.observation.receipt
    result = command("release", "people.toml", "--out", "out", "--json")
    assert result.returncode == 0, result.stderr
    output = json.loads(result.stdout)
    assert output["status"] == "already released"
    assert output["written"] == []
    assert output["ledger"]["paid_now"] is False
    plain = command("release", "people.toml", "--out", "out")
    assert plain.stdout.startswith("Already released: out has this release. Nothing was done.\n")
    assert len(Ledger.open("people.ledger").entries()) == 1


def test_finished_job_with_every_kind_of_option_is_recognised(folder):
    rows = "".join(
        f"{i},{'FM'[i % 2]},{'curl' if i % 3 else 'wget'},{i % 50}\n" for i in range(900)
    )
    Path("requests.csv").write_text("id,sex,agent,pay\n" + rows, encoding="utf-8")
    Path("requests.toml").write_text(RICH, encoding="utf-8")
    release = ln.read_spec("requests.toml").release("out")
    repeated = ln.read_spec("requests.toml").release("out")
    assert repeated.observation.receipt == release.observation.receipt
    # The search, the guard and the release have an entry each.
    assert len(Ledger.open("requests.ledger").entries()) == 3


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"output": "level = 0.9"}, "[output]"),
        ({"output": "round = 5"}, "[output]"),
        ({"plan": 'guard = "1/100"'}, "[privacy]"),
        ({"target": "\nweight = 2"}, "[[workload]]"),
    ],
)
def test_directory_of_another_job_is_refused(folder, change, part, command):
    spec().release("out")
    with pytest.raises(ln.InputError) as refused:
        spec(**change).release("out")
    assert part in str(refused.value)
    assert "another job" in str(refused.value)
    assert command("release", "people.toml", "--out", "out").returncode == 2
    assert len(Ledger.open("people.ledger").entries()) == 1


def test_directory_paid_by_another_ledger_is_refused(folder):
    spec().release("out", ledger="first.ledger")
    Ledger.create("second.ledger", "people", Privacy(PureDP(2)))
    with pytest.raises(ln.InputError, match=r"the ledger second\.ledger"):
        spec().release("out", ledger="second.ledger")
    assert Ledger.open("second.ledger").entries() == ()


def test_other_files_in_the_directory_are_refused(folder):
    Path("out").mkdir()
    Path("out/manifest.json").write_text("{}", encoding="utf-8")
    with pytest.raises(ln.InputError):
        spec().release("out")
    assert not Path("people.ledger").exists()


def test_json_of_a_release_names_payment_and_files(folder, command):
    spec()
    result = command("release", "people.toml", "--out", "out", "--json")
    output = json.loads(result.stdout)
    assert (output["status"], output["missed_targets"]) == ("released", [])
    assert output["written"] == [str(folder / "out")]
    payment = output["ledger"]
    assert payment["number"] == 1
    assert payment["dataset"] == "people"
    assert payment["new"] is True
    assert payment["charge"]["epsilon"] == "2"
    assert payment["left"]["epsilon"] == "0"


def test_missed_target_has_a_separate_exit_code(folder, command):
    reachable_margin = "\nmargin = 50"
    missed = "\nmargin = 1"
    spec(target=reachable_margin)
    assert command("plan", "people.toml").returncode == 0
    spec(target=missed)
    planned = command("plan", "people.toml", "--json")
    assert planned.returncode == 5, planned.stderr
    assert json.loads(planned.stdout)["tables"][0]["is_met"] is False
    result = command("release", "people.toml", "--out", "out", "--json")
    assert result.returncode == 5
    assert json.loads(result.stdout)["missed_targets"] == ["sex"]
    assert Path("out/report.html").exists()
    assert command("release", "people.toml", "--out", "out").returncode == 5


def test_note_of_several_lines_is_refused(folder):
    with pytest.raises(ln.InputError, match="note"):
        spec().release("out", note="one\ntwo")
    assert not Path("people.ledger").exists()


def test_plan_of_another_spec_is_refused(folder):
    plan = spec(target="\nweight = 2").plan()
    with pytest.raises(ln.InputError, match=r"another spec: its \[\[workload\]\]"):
        spec().release("out", plan=plan)


def test_spec_release_of_a_series_returns_the_newest_period(folder, command):
    Path("visits.csv").write_text("person,month\n1,2024-01-03\n2,2024-02-04\n", encoding="utf-8")
    Path("visits.toml").write_text(SERIES, encoding="utf-8")
    visits = ln.read_spec("visits.toml")
    release = visits.release("monthly", through="2024-02", note="by hand")
    assert sorted(path.name for path in Path("monthly").glob("2024-*")) == ["2024-01", "2024-02"]
    newest = visits.release("monthly", through="2024-03")
    assert len(release.answers) == 2
    assert len(newest.answers) == 3
    (entry,) = Ledger.open("visits.ledger").entries()
    assert entry.description.endswith("; by hand")
    result = command("release", "visits.toml", "--out", "monthly", "--through", "2024-03", "--json")
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["status"] == "nothing due"


def test_logger_says_what_was_read_paid_and_written(folder, caplog):
    Path("people.csv").write_text(ROWS + "secret-value\n", encoding="utf-8")
    with caplog.at_level(logging.INFO, logger="leastnoise"):
        spec(plan='guard = "1/4"').release("out")
    lines = [record.getMessage() for record in caplog.records if record.name == "leastnoise"]
    assert "reading people: sex" in lines
    assert any(line.startswith("left out: ") and "sex" in line for line in lines)
    assert "paid epsilon = 1.5 from people.ledger, release 2" in lines
    assert f"wrote {folder / 'out'}" in lines
    assert any(line.startswith("guard: ") for line in lines)
    assert "secret-value" not in "\n".join(lines)
    # The exact number of rows; the noisy one of the guard may happen to be the same.
    assert not any("401" in line for line in lines if not line.startswith("guard: "))


def test_library_logs_nothing_by_default(folder):
    program = 'import leastnoise as ln; ln.read_spec("people.toml").release("out")'
    spec()
    result = subprocess.run(
        [sys.executable, "-c", program], check=False, capture_output=True, text=True
    )
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
