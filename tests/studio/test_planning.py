"""Tests of planning in the studio: it saves the shown plan, and reads no data."""

import ast
import os
import queue
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import leastnoise as ln
from leastnoise import _studio
from leastnoise._cli import program as command
from leastnoise._mechanisms import BY_NAME
from leastnoise._planning import joint_price
from leastnoise._session import plan_spec
from leastnoise._spec import read_spec
from leastnoise._strategies import PLANNERS
from leastnoise._studio import BackgroundProcess, Planning, _planning, state_json, table_margins
from leastnoise._texts import LANGUAGES, load_catalogue, name_strategy
from studio.conftest import SERIES, SPEC, Client, is_unread, serving
from waiting import HANGS, wait_until

ENGLISH = load_catalogue("en")
# The names of the session that the studio may import. None of them takes a source.
PUBLIC_NAMES = {
    "LEAST", "Least", "Price", "TargetStatus", "Spec", "plan_for_workload", "parse_spec",
    "period_errors", "plan_warnings", "planned", "joint_price", "read_spec_text", "target_statuses",
    "statistic_target_statuses", "read_release", "read_toml", "spec_from_table",
    "attributes_of_public_counts", "spec_warnings", "stated_privacy", "plan_spec",
}  # fmt: skip
# Names that ask a file or a database only for the names and types of its columns:
# test_beginning.py destroys all values.
SCHEMA_NAMES = {
    "CSV", "DatabaseTable", "SourceColumn", "SourceColumns", "file_endings", "schema",
    "source_columns",
}  # fmt: skip


def typical_margins(view):
    """Return the margins of the tables that a view shows."""
    return [row["typical"] for row in view["rows"] if row["set"][0]]


def promised_margins(plan, level=0.95):
    """Return the margins of the tables of a plan, as texts."""
    return [ENGLISH.format_error(margin.typical) for margin in table_margins(plan, level).values()]


def test_shown_plan_matches_the_opened_spec(client, spec):
    assert "region x kids (up to each value)" in client.enter()
    view = client.planned_view()
    assert typical_margins(view) == promised_margins(plan_spec(read_spec(spec)))
    row = view["rows"][7]
    assert row["verdict"] in {"met", f"missed: {ENGLISH.format_error(0)}"} or row["missed"]


def test_shown_plan_matches_the_saved_spec(client, spec):
    client.enter()
    client.planned_view()
    target = {"weight": "4", "target": "relative", "most": "0.5", "size_of": "300"}
    client.act("/change", changes={"size": "1/2"})
    client.act("/change", changes={"on": False}, rows=[1])
    client.act("/change", changes=target, rows=[2])
    client.act("/change", changes={"level": 0.9})
    view = client.planned_view()
    assert client.act("/save", name="other.toml")["done"] == "Saved: other.toml"

    other_file = spec.with_name("other.toml")
    saved = read_spec(other_file)
    assert saved.workload.products[1].name == "region"
    assert typical_margins(view) == promised_margins(plan_spec(saved), 0.9)
    assert client.ask("/spec")[2].decode() == other_file.read_text()
    assert spec.read_text() == SPEC


def test_change_of_the_budget_scales_margins_exactly(client, spec):
    client.enter()
    client.planned_view()
    halved = client.act("/change", changes={"size": "1/2"})
    assert not halved["ready"]
    assert halved["busy"]
    # Another change and its reversal make the studio plan anew.
    client.act("/change", changes={"on": False, "weight": "4"}, rows=[1, 2])
    client.act("/change", changes={"level": 0.9})
    client.planned_view()
    reset = {"level": 0.95, "on": True, "weight": "1"}
    assert client.act("/change", changes=reset, rows=[1, 2])["level"] == 0.95
    assert typical_margins(client.planned_view()) == typical_margins(halved)

    client.act("/save", name="people.toml")
    assert 'epsilon = "1/2"  # a year' in spec.read_text()
    assert "above 0" in client.act("/change", changes={"size": "0"})["refused"]


@pytest.mark.slow
def test_series_horizon_is_a_spec_setting(spec, plan_in_process):
    spec.write_text(SERIES)
    with serving(spec) as client:
        assert 'id="horizon" type="range" min="2" max="16"' in client.enter()
        assert (
            typical_margins(client.planned_view())[:2]
            == promised_margins(plan_spec(read_spec(spec)))[:2]
        )
        client.act("/change", changes={"periods": 6})
        longer = client.planned_view()
        assert longer["horizon"] == "6, 2024-06-30"
        client.act("/save", name="people.toml")
        assert 'to = "2024-06-30", by = "month" }  # four months' in spec.read_text()
        assert typical_margins(longer)[:2] == promised_margins(plan_spec(read_spec(spec)))[:2]
        for value in (1, 3651, "6", True):
            assert "periods must be" in client.act("/change", changes={"periods": value})["refused"]
        client.act("/change", changes={"on": False}, rows=[0])
        assert len(typical_margins(client.planned_view())) == 2


def test_two_plans_can_be_compared(client):
    client.enter()
    client.json("/view")
    assert "There is no earlier plan" in client.act("/swap")["refused"]
    first_view = client.planned_view()
    assert first_view["kept"] is None
    assert client.act("/keep")["kept"] == first_view["facts"]

    client.act("/change", changes={"size": "2"})
    second_view = client.planned_view()
    assert [row["before"] for row in second_view["rows"]] == typical_margins(first_view)
    assert all(row["change"].startswith("-") for row in second_view["rows"])

    swapped = client.act("/swap")
    assert typical_margins(swapped) == typical_margins(first_view)
    assert swapped["size"] == "1"
    assert swapped["ready"]
    assert [row["before"] for row in swapped["rows"]] == typical_margins(second_view)


def test_two_plans_compare_with_table_prices(client, spec):
    client.enter()
    client.planned_view()
    client.act("/keep")
    client.act("/change", changes={"size": "2"})
    client.planned_view()
    client.act("/swap")

    client.act("/price", rows=[7, 99])
    *other_prices, last_price = [row["price"] for row in client.idle_view()["rows"]]
    opened = read_spec(spec)
    price = joint_price(plan_spec(opened), [7], opened.search())
    separately = ENGLISH.format_percent(price.alone, 2)
    saved = ENGLISH.format_percent(price.saved, 2)
    assert last_price == f"separately {separately}, saves {saved}"
    assert other_prices == [""] * 7

    client.act("/change", changes={"size": "3"})
    refusal = client.act("/price", rows=[1])["refused"]
    assert "Wait until the plan for these tables is finished" in refusal


def test_planning_page_states_how_nulls_count(tmp_path):
    sums = (
        '[measures.pay]\nclip = [0, 9]\n[[workload]]\nmeans = { of = "pay", by = ["sex"] }\n'
        '[output]\nlanguage = "de"\n'
    )
    facts = state_json(Planning(tmp_path / "people.toml", SPEC + sums).state)["facts"]
    values, cost = (text for name, text in facts if name == "Werte")
    assert values.endswith(
        "Zeilen ohne Wert tragen zu einer Summe nichts bei und bleiben bei einem Mittelwert "
        "außer Betracht."
    )
    assert "um höchstens 9." in cost


def test_outdated_page_triggers_no_planning(client, spec):
    client.enter()
    client.planned_view()
    other_page = client.second_page()
    assert other_page.act("/change", changes={"size": "3"})["size"] == "3"
    outdated_version = client.version
    other_page.planned_view()
    view_before = other_page.idle_view()
    requests = [
        ("/save", {"name": "people.toml"}),
        ("/save", {"name": "other.toml"}),
        ("/change", {"changes": {"weight": "7"}, "rows": [1]}),
        ("/price", {"rows": [1]}),
        ("/keep", {}),
        ("/swap", {}),
    ]
    wrong_versions = [
        {"version": outdated_version},
        {},
        {"version": None},
        {"version": str(other_page.version)},
        {"version": -1},
    ]
    for path, body in requests:
        for version in wrong_versions:
            assert "another page" in client.json(path, {**body, **version})["refused"]
        assert client.json("/view") == view_before
    assert sorted(spec.parent.glob("*.toml")) == [spec]
    assert spec.read_text() == SPEC
    # The page shows the changes of the file now.
    assert client.act("/save", name="people.toml")["done"] == "Saved: people.toml"
    assert 'epsilon = "3"' in spec.read_text()


def test_page_reports_settings_without_a_plan(client):
    client.enter()
    client.planned_view()
    client.act("/change", changes={"target": "", "most": ""}, rows=[7])
    status = client.act("/change", changes={"size": "least"})["status"]
    assert status.endswith("Planning for these settings.")
    view = client.idle_view()
    assert "No table has a target" in view["error"]
    assert view["status"] == (
        "The margins are exact for the previous strategy. No plan exists for these settings."
    )


def test_unplannable_settings_are_reported(spec, plan_in_process):
    spec.write_text(SPEC.replace('strategy = "identity"', 'strategy = "gaussian_optimum"'))
    with serving(spec) as client:
        client.enter()
        assert "No strategy can be used" in client.idle_view()["error"]


def test_planning_page_states_data_dependent_error(spec, plan_in_process):
    spec.write_text(
        SPEC[: SPEC.index("# all small")]
        + '[[workload]]\nqueries = { kids = "prefix" }\n[plan]\nstrategy = "dawa"\n'
    )
    with serving(spec) as client:
        client.enter()
        view = client.planned_view()
        assert view["status"] == (
            "The error of this strategy depends on the data, so no margin can be stated "
            "beforehand. Strategy: ranges of similar cells, which are found in noisy data."
        )
        assert typical_margins(view) == ["not computed yet"]


def test_status_describes_strategies_in_words(client):
    client.enter()
    assert client.planned_view()["status"].endswith("Strategy: every cell of the joint table.")
    client.act("/language", language="de")
    status = client.json("/view")["status"]
    assert status.endswith("Strategie: alle Zellen der gemeinsamen Tabelle.")


def test_every_strategy_is_described_in_every_language():
    for strategy in (*PLANNERS, *BY_NAME):
        texts = [name_strategy(strategy, load_catalogue(language)) for language in LANGUAGES]
        assert strategy not in texts
        assert len(set(texts)) == len(LANGUAGES)
    assert name_strategy("own", load_catalogue("de")) == "own"


def test_margins_of_covariances_and_coefficients_are_shown(spec, plan_in_process):
    measures = "[measures.pay]\nclip = [0, 9]\n[measures.age]\nclip = [0, 99]\n"
    parts = (
        '[[workload]]\ncorrelations = { of = ["pay", "age"] }\nsize = 100\n'
        '[[workload]]\nregression = { of = "pay", on = ["age"] }\nsize = 100\n'
    )
    spec.write_text(SPEC[: SPEC.index("# all small")] + measures + parts)
    with serving(spec) as client:
        client.enter()
        pair, line = (row["verdict"] for row in client.planned_view()["rows"][-2:])
    assert pair.startswith("covariance of pay x age: at most ± ")
    assert line.startswith("coefficient of (intercept): ± ")
    assert "; coefficient of age: ± " in line


def test_margins_of_the_tables_of_a_mean_have_units(spec, plan_in_process):
    part = "[measures.pay]\nclip = [0, 9]\n[[workload]]\nmeans = { of = 'pay', by = ['sex'] }\n"
    spec.write_text(SPEC[: SPEC.index("# all small")] + part)
    with serving(spec) as client:
        client.enter()
        row = client.planned_view()["rows"][-1]
        client.act("/language", language="de")
        german = client.json("/view")["rows"][-1]
    for column in ("typical", "largest"):
        assert re.fullmatch(r"[\d.,<= ]+ rows / [\d.,<= ]+ pay", row[column])
        assert re.fullmatch(r"[\d.,<= ]+ Zeilen / [\d.,<= ]+ pay", german[column])


def test_data_that_were_opened_would_be_seen(tmp_path):
    pipe = tmp_path / "people.csv"
    os.mkfifo(pipe)
    assert is_unread(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    assert not is_unread(pipe)
    os.close(reader)


def test_studio_calls_nothing_that_takes_data():
    forbidden_modules = (
        "leastnoise._session.",
        "leastnoise._trusted.table",
        "leastnoise._trusted.kernel",
        "leastnoise._trusted.reading",
    )
    imported_names = set()
    for path in Path(_studio.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            module = node.module if isinstance(node, ast.ImportFrom) else ""
            if module in {"leastnoise._session", "leastnoise._spec", "leastnoise._planning"}:
                imported_names |= {alias.name for alias in node.names}
            assert not module.startswith(forbidden_modules)
            if isinstance(node, ast.Import):
                assert not any(alias.name.startswith("leastnoise") for alias in node.names)
    assert imported_names <= PUBLIC_NAMES | SCHEMA_NAMES


@pytest.fixture
def program(spec):
    """Start the studio in a separate process."""
    command = [
        sys.executable,
        "-c",
        "from leastnoise._cli import main; main()",
        "studio",
        str(spec),
    ]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    yield process
    process.kill()
    process.communicate(timeout=HANGS)


@pytest.mark.slow
def test_studio_command_prints_address_and_stops(program):
    address = program.stdout.readline().split()[-1]
    client = Client(address)
    client.enter()
    client.planned_view()
    program.send_signal(signal.SIGINT)
    assert program.wait(timeout=HANGS) == 0
    assert program.stderr.read() == ""


def planning_processes(studio_id):
    """Return the files of /proc that state what the children of a studio do."""
    children = []
    for task in Path(f"/proc/{studio_id}/task").iterdir():
        children += (task / "children").read_text().split()
    return [Path(f"/proc/{child}/stat") for child in children]


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="processes are looked up in /proc")
def test_planning_process_ends_with_the_studio(program, spec):
    spec.write_text(SPEC)
    Client(program.stdout.readline().split()[-1]).enter()
    wait_until(lambda: planning_processes(program.pid))
    (planner,) = planning_processes(program.pid)
    program.kill()
    wait_until(lambda: not planner.exists() or ") Z " in planner.read_text())


def test_missing_packages_and_missing_specs_are_stated(tmp_path, monkeypatch):
    with pytest.raises(ln.InputError, match="There is no spec file at"):
        command(["studio", str(tmp_path / "a.toml")], standalone_mode=False)
    for name in [name for name in sys.modules if name.startswith("leastnoise._studio")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "starlette.applications", None)
    with pytest.raises(ln.InputError, match=r"pip install 'leastnoise\[studio\]'"):
        command(["studio", str(tmp_path / "a.toml")], standalone_mode=False)


# The lengths are below and above the size of a pipe.
@pytest.mark.parametrize("length", [1, 4_000_000])
@pytest.mark.parametrize(
    "program", ["pass", "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"]
)
def test_process_ending_early_leaves_no_error(monkeypatch, program, length):
    monkeypatch.setattr(_planning, "_COMMAND", ("-c", program))
    messages = queue.Queue()
    worker = BackgroundProcess(lambda number, message: messages.put((number, message)))

    def request():
        worker._process.wait()
        return {"text": "x" * length}

    worker.start(7, request)
    thread = worker._waiting
    thread.join()  # an error in it fails this test
    assert messages.get(block=False) == (7, None)


@pytest.mark.parametrize(
    ("printed", "expected"),
    [("len(sys.stdin.readline())", [4_000_013]), ("sys.stdin.readline()[:7]", [])],
)
def test_process_messages_are_passed_on(monkeypatch, printed, expected):
    monkeypatch.setattr(_planning, "_COMMAND", ("-c", f"import sys; print({printed})"))
    messages = queue.Queue()
    BackgroundProcess(lambda number, message: messages.put((number, message))).start(
        7, lambda: {"text": "x" * 4_000_000}
    )
    received = []
    while (message := messages.get()) != (7, None):
        received.append(message[1])
    assert received == expected
