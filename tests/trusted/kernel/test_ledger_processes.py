"""The ledger with real processes: kills at every point, concurrency, locks and a full disk.

`tests/faults` kills, breaks and interrupts whole commands at every call that writes.
"""

import json
import os
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import textwrap
from fractions import Fraction
from pathlib import Path

import pytest

import leastnoise
from leastnoise._trusted.accounting import GDP, ApproxDP, Charge, GaussianCost, Privacy, PureDP
from leastnoise._trusted.check import BudgetError, LedgerError
from leastnoise._trusted.kernel import Ledger
from trusted.kernel.ledgers import ONE, take
from waiting import HANGS

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the processes are made with fork")


def start_process(work):
    """Start a function in a new process, and return a function that waits for its result.

    The result is None if the process was killed.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.close(reading)
            os.write(writing, json.dumps(work()).encode())
            code = 0
        finally:
            os._exit(code)
    os.close(writing)

    def result():
        with os.fdopen(reading) as pipe:
            text = pipe.read()
        assert os.waitpid(child, 0)[1] in {0, signal.SIGKILL}
        return json.loads(text) if text else None

    return result


def refusal_of(use):
    """Return the message of a call that the ledger refuses; None if it succeeds."""
    try:
        use()
    except (BudgetError, LedgerError) as error:
        return str(error)
    return None


def watch_statements(monkeypatch, watch):
    """Report the statements of every connection before they are executed."""
    connect = sqlite3.connect

    def connected(*arguments, **options):
        connection = connect(*arguments, **options)
        connection.set_trace_callback(watch)
        return connection

    monkeypatch.setattr(sqlite3, "connect", connected)


def states_after_kills(work, look, step=1):
    """Return the state after a kill before each statement, and after a complete run.

    Args:
        work: Function of the number of the run; it is killed before a statement of that number.
        look: Function of the number of the run, which returns the state that the run left.
        step: Kill before every `step`-th statement only.
    """

    def run_until_statement(n):
        statements_left = [n]

        def count(_statement):
            statements_left[0] -= 1
            if statements_left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)

        with pytest.MonkeyPatch.context() as patch:
            watch_statements(patch, count)
            work(n)
        return True

    states = []
    for n in range(1, 200, step):
        is_complete = start_process(lambda n=n: run_until_statement(n))()
        states.append(look(n))
        if is_complete:
            return states
    pytest.fail("more statements than expected")


def hand_out(receipt, file):
    """Write the receipt's identification at once, as a release would show it."""
    line = os.open(file, os.O_CREAT | os.O_APPEND | os.O_WRONLY)
    os.write(line, f"{receipt.id}\n".encode())
    os.close(line)


@pytest.mark.slow
def test_ledger_survives_kills_in_reserve_and_seal(ledger, tmp_path):
    """Whatever was handed out is paid, and only what was handed out is sealed."""
    handed = tmp_path / "handed"
    handed.touch()

    def work(_n):
        hand_out(receipt := take(ledger, "1/100"), handed)
        ledger.seal(receipt)

    def look(_n):
        entries = ledger.entries()
        ids = handed.read_text().split()
        assert {*ids} <= {entry.id for entry in entries}
        assert {entry.id for entry in entries if entry.state == "sealed"} <= {*ids}
        return len(entries), len(ids)

    rounds = states_after_kills(work, look)

    assert len(rounds) > 15
    assert rounds[0] == (0, 0)
    assert 1 < rounds[-1][1] <= rounds[-1][0] < len(rounds)  # some died unpaid, some paid


def test_ledger_survives_kills_in_holder_entries(ledger, tmp_path):
    """An entry is complete or absent."""
    ledger.seal(take(ledger, "1/2"))
    shutil.copy(ledger.path, tmp_path / "old")

    def work(_n):
        shutil.copy(tmp_path / "old", ledger.path)
        ledger.set_budget(PureDP(3), period="month")
        ledger.set_budget(PureDP(2), share="ann")
        ledger.add_spent(PureDP(1))

    rounds = states_after_kills(
        work, lambda _: [[entry.kind for entry in ledger.entries()], ledger.left().epsilon], step=4
    )
    kinds = ["release", "budget", "budget", "spent"]
    left_by_entries = {1: Fraction(1, 2), 2: Fraction(5, 2), 3: Fraction(5, 2), 4: Fraction(3, 2)}
    numbers = [len(entry_kinds) for entry_kinds, _ in rounds]

    assert rounds == [[kinds[:number], left_by_entries[number]] for number in numbers]
    assert numbers == sorted(numbers)
    assert {*numbers} == {1, 2, 3, 4}


def test_killed_while_the_ledger_is_created(tmp_path):
    """The file is complete, with its budget, or absent."""

    def look(n):
        file = tmp_path / str(n)
        return refusal_of(lambda: Ledger.open(file, timeout=0)) or str(
            Ledger.open(file).left().epsilon
        )

    rounds = states_after_kills(lambda n: Ledger.create(tmp_path / str(n), "x", ONE), look)

    assert len(rounds) > 8
    assert all(state == "1" or state.startswith("There is no ledger at") for state in rounds)
    assert rounds[0] != "1"
    assert rounds[-1] == "1"


WHOLE_MU = ApproxDP(1, "1e-6")


def take_mu(ledger, share_of_budget):
    """Pay for a Gaussian release with a share of an (epsilon, delta) budget."""
    share = WHOLE_MU.share(share_of_budget)
    assert isinstance(share, GDP)
    return take(ledger, cost=GaussianCost(share.mu_squared), declared=share)


@pytest.fixture
def mu_ledger(tmp_path):
    return Ledger.create(tmp_path / "mu.ledger", "people", Privacy(WHOLE_MU))


@pytest.mark.slow
def test_mu_ledger_survives_kills_in_its_entries(mu_ledger, tmp_path):
    mu_ledger.seal(take_mu(mu_ledger, "1/4"))
    whole_mu_squared = mu_ledger.limits()[0].spent.mu_squared * 4
    shutil.copy(mu_ledger.path, tmp_path / "old")

    def work(_n):
        shutil.copy(tmp_path / "old", mu_ledger.path)
        mu_ledger.seal(take_mu(mu_ledger, "1/2"))
        mu_ledger.set_budget(WHOLE_MU, period="month")
        mu_ledger.add_spent(WHOLE_MU.share("1/8"))

    rounds = states_after_kills(
        work,
        lambda _: [len(mu_ledger.entries()), mu_ledger.left().mu_squared / whole_mu_squared],
        step=3,
    )
    left_by_entries = {1: Fraction(3, 4), 2: Fraction(1, 4), 3: Fraction(1, 4), 4: Fraction(1, 8)}

    assert rounds == [[number, left_by_entries[number]] for number, _ in rounds]
    assert {number for number, _ in rounds} == {1, 2, 3, 4}


def test_spenders_of_mu_at_once_cannot_overspend(mu_ledger, tmp_path):
    def spend():
        mine = Ledger.open(mu_ledger.path, timeout=HANGS)
        count = 0
        while not refusal_of(lambda: hand_out(take_mu(mine, "1/12"), tmp_path / "handed")):
            count += 1
        return count

    children = [start_process(spend) for _ in range(4)]

    assert sum(child() for child in children) == 12
    assert len(mu_ledger.entries()) == 12
    assert mu_ledger.left() == Charge()


def test_spenders_at_once_cannot_overspend(ledger, tmp_path):
    begin, go = os.pipe()

    def spend():
        os.close(go)
        mine = Ledger.open(ledger.path, timeout=HANGS)
        count = 0
        os.read(begin, 1)  # until the parent has closed its end
        while not refusal_of(lambda: hand_out(take(mine, "1/12"), tmp_path / "handed")):
            count += 1
        return count

    children = [start_process(spend) for _ in range(6)]
    os.close(go)
    counts = [child() for child in children]
    os.close(begin)

    assert sum(counts) == 12
    assert len({entry.id for entry in ledger.entries()}) == 12
    assert len((tmp_path / "handed").read_text().split()) == 12
    assert ledger.left().epsilon == 0


@pytest.mark.parametrize("statement", ["BEGIN IMMEDIATE", "BEGIN EXCLUSIVE"])
def test_lock_held_too_long_is_one_sentence(ledger, statement):
    hasty = Ledger.open(ledger.path, timeout=0.2)
    program = (
        "import sqlite3, sys; held = sqlite3.connect(sys.argv[1], isolation_level=None); "
        "held.execute(sys.argv[2]); print(); input()"
    )
    command = [sys.executable, "-c", program, str(ledger.path), statement]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"\n"  # it holds the lock now
        with pytest.raises(
            LedgerError,
            match=r"was locked by another process for more than 0\.2 seconds\. Try again when",
        ):
            take(hasty)
        holder.communicate(b"\n")

    assert ledger.left().epsilon == 1


@pytest.mark.parametrize(
    ("file_mode", "folder_mode", "expected_left", "expected_message"),
    [
        (0o444, 0o755, "1", "that you may write to it and its folder."),
        (0o666, 0o555, "1", "that you may write to it and its folder."),
        (0, 0o755, "cannot be opened", "cannot be opened. Check that the file is there"),
    ],
)
def test_read_only_ledger_makes_no_release(file_mode, folder_mode, expected_left, expected_message):
    """Run as another user, since root may write anywhere."""
    folder = Path(tempfile.mkdtemp(prefix="ledger-"))

    def use():
        if os.geteuid() == 0:
            os.setresuid(65534, 65534, 65534)
        return [
            refusal_of(lambda: Ledger.open(file)) or str(Ledger.open(file).left().epsilon),
            refusal_of(lambda: take(ledger)),
        ]

    try:
        file = folder / "x"
        ledger = Ledger.create(file, "x", ONE)
        file.chmod(file_mode)
        folder.chmod(folder_mode)
        ledger_text, message = start_process(use)()
        assert expected_left in ledger_text
        assert f"The ledger {file} cannot be" in message
        assert expected_message in message
    finally:
        folder.chmod(0o755)
        shutil.rmtree(folder)


def test_full_disk_makes_no_release(ledger):
    """A limit on file sizes stands for the disk; the journal and the ledger both meet it."""
    size = ledger.path.stat().st_size

    def fill():
        paid = 0
        messages = []
        for limit in (0, 600, size // 2, size):
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
            while not (message := refusal_of(lambda: take(ledger, "1/99", output="o" * 9999))):
                paid += 1
            messages.append(message)
        return paid, messages

    paid, messages = start_process(fill)()

    assert all(
        "The disk of the ledger" in message and "Free space" in message for message in messages
    )
    assert len(ledger.entries()) >= paid
    assert ledger.spent().epsilon == Fraction(len(ledger.entries()), 99)


def test_checks_hold_under_python_o(ledger):
    program = """
        import os, sys
        from leastnoise._trusted.accounting import ApproxDP, Privacy, PureCost, PureDP
        from leastnoise._trusted.accounting import gaussian_is_private
        from leastnoise._trusted.kernel import Ledger
        assert False, "-O is on"
        ledger = Ledger.open(sys.argv[1])

        def print_error(call):
            try:
                call()
            except Exception as error:
                print(type(error).__name__)

        for cost, privacy in (
            ("1.0001", Privacy(PureDP("1.0001"))),
            (1, Privacy(PureDP("1/2"))),
            (1, Privacy(PureDP(1), "replace")),
        ):
            print_error(
                lambda: ledger.reserve(
                    cost=PureCost(cost), privacy=privacy, plan_digest="", output=""
                )
            )
        print_error(lambda: PureDP("nan"))
        print_error(lambda: ApproxDP(1, 1))
        print(gaussian_is_private(10, "4.26", "1e-5"), ledger.left().epsilon)
        os.truncate(sys.argv[1], 5000)
        print_error(ledger.left)
        """
    environment = {**os.environ, "PYTHONPATH": str(Path(leastnoise.__file__).parents[1])}
    command = [sys.executable, "-O", "-c", textwrap.dedent(program), str(ledger.path)]
    run = subprocess.run(
        command, env=environment, text=True, capture_output=True, check=True, timeout=HANGS
    )

    expected = ["BudgetError", *["InputError"] * 4, "False", "1", "LedgerError"]
    assert run.stdout.split() == expected


def test_file_is_flushed_fully(ledger, monkeypatch):
    """Every connection that writes sets the strictest synchronous mode."""
    statements: list[str] = []
    watch_statements(monkeypatch, statements.append)
    ledger.seal(take(ledger))
    commands = [
        statement
        for statement in statements
        if statement.split()[0] in {"BEGIN", "COMMIT", "INSERT", "UPDATE"}
        or "synchronous" in statement
    ]

    assert [command.split()[0] for command in commands] == [
        *["PRAGMA", "BEGIN", "INSERT", "UPDATE", "COMMIT"],  # the entry, and the head of the chain
        *["PRAGMA", "BEGIN", "UPDATE", "COMMIT"],
    ]
    assert {command for command in commands if command.startswith(("PRAGMA", "BEGIN"))} == {
        "PRAGMA synchronous = EXTRA",
        "BEGIN IMMEDIATE",
    }
