"""The ledger with real processes: kill -9 at every point, several spenders at once, locks, permissions, a full disk, and `python -O`.

`tests/faults` kills, breaks and interrupts whole commands at every call that writes.
"""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import textwrap
from fractions import Fraction
from pathlib import Path

import pytest

import leastnoise
from leastnoise._accounting import Privacy, PureCost, PureDP
from leastnoise._check import LedgerError
from leastnoise._kernel._ledger import Ledger
from waiting import HANGS

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the processes are made with fork")

SOURCE = Path(leastnoise.__file__).parents[1]
ONE = Privacy(PureDP(1))

# What every child knows: how to make a release. Handing out is a line in a file, written as soon as the receipt is there.
PREAMBLE = """
    import json, os, shutil, signal, sqlite3, sys
    from pathlib import Path
    from leastnoise._check import BudgetError, InputError, LedgerError
    from leastnoise._accounting import ApproxDP, GaussianCost, Privacy, PureCost, PureDP, gaussian_is_private
    from leastnoise._kernel._ledger import Ledger
    ONE = Privacy(PureDP(1))
    folder = Path(sys.argv[1])

    def die_at(n):  # before the n-th statement
        connect, left = sqlite3.connect, [n]
        def count(statement):
            left[0] -= 1
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)
        def watched(*arguments, **more):
            connection = connect(*arguments, **more)
            connection.set_trace_callback(count)
            return connection
        sqlite3.connect = watched

    def killed_at_every_statement(work, look, step=1):  # for each n until the child gets through: whether it was killed, and what is there
        rounds = []
        for n in range(1, 200, step):
            child = os.fork()
            if child == 0:
                die_at(n)
                work(n)
                os._exit(0)
            rounds.append([os.WIFSIGNALED(os.waitpid(child, 0)[1]), look(n)])
            if not rounds[-1][0]:
                break
        print(json.dumps(rounds))

    def reserve(ledger, epsilon="1/100", output="out"):
        return ledger.reserve(cost=PureCost(epsilon), privacy=ONE.within(PureDP(epsilon)), plan_digest="ab", output=output)

    def hand_out(receipt):
        line = os.open(folder / "handed", os.O_CREAT | os.O_APPEND | os.O_WRONLY)
        os.write(line, (receipt.id + "\\n").encode())
        os.close(line)

    def refused(use):
        try:
            use()
        except (BudgetError, InputError, LedgerError) as error:
            return error
"""


def start(program: str, folder: Path, *flags: str, **more) -> subprocess.Popen:
    code = textwrap.dedent(PREAMBLE) + textwrap.dedent(program)
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    return subprocess.Popen([sys.executable, *flags, "-c", code, str(folder)], env=environment, text=True, stdout=subprocess.PIPE, **more)


def run(program: str, folder: Path, *flags: str) -> str:
    process = start(program, folder, *flags)
    out, _ = process.communicate(timeout=HANGS)
    assert process.returncode == 0
    return out


def killed(program: str, folder: Path) -> list[object]:
    """What was there after each child that was killed, and after the last one, which got through."""
    rounds = json.loads(run(program, folder))
    assert [dead for dead, _ in rounds] == [True] * (len(rounds) - 1) + [False]
    return [found for _, found in rounds]


def test_killed_before_every_statement_of_reserve_and_seal(tmp_path) -> None:
    """After each the books are right: what was handed out is paid, and nothing is sealed that was not handed out."""
    Ledger.create(tmp_path / "x", "x", ONE)
    program = """
        def work(n):
            ledger = Ledger.open(folder / "x")
            receipt = reserve(ledger)
            hand_out(receipt)
            ledger.seal(receipt)
        def look(n):
            entries = {entry.id: entry for entry in Ledger.open(folder / "x").entries()}
            ids = (folder / "handed").read_text().split() if (folder / "handed").exists() else []
            wrong = [one for one in ids if one not in entries]
            wrong += [entry.id for entry in entries.values() if entry.state == "sealed" and entry.id not in ids]
            return [len(entries), len(ids), wrong]
        killed_at_every_statement(work, look)
    """
    rounds = killed(program, tmp_path)
    assert len(rounds) > 15
    assert [wrong for _, _, wrong in rounds if wrong] == []
    assert rounds[0][0] == 0
    assert 1 < rounds[-1][1] <= rounds[-1][0] < len(rounds)  # some died unpaid, some paid


def test_killed_before_every_statement_of_what_a_data_holder_enters(tmp_path) -> None:
    """What is entered is there whole or not at all."""
    program = """
        ledger = Ledger.create(folder / "x", "x", ONE)
        ledger.seal(reserve(ledger, "1/2"))
        shutil.copy(folder / "x", folder / "old")
        def work(n):
            shutil.copy(folder / "old", folder / "x")
            ledger = Ledger.open(folder / "x")
            ledger.set_budget(PureDP(3), period="month")
            ledger.set_budget(PureDP(2), share="ann")
            ledger.add_spent(PureDP(1))
        def look(n):
            ledger = Ledger.open(folder / "x")
            return [[one.kind for one in ledger.entries()], str(ledger.left().epsilon)]
        killed_at_every_statement(work, look, 4)
    """
    rounds = killed(program, tmp_path)
    kinds, left = ["release", "budget", "budget", "spent"], {1: "1/2", 2: "5/2", 3: "5/2", 4: "3/2"}
    assert all(found == kinds[: len(found)] and rest == left[len(found)] for found, rest in rounds)
    numbers = [len(found) for found, _ in rounds]
    assert (numbers, {*numbers}) == (sorted(numbers), {1, 2, 3, 4})


def test_killed_while_the_ledger_is_made(tmp_path) -> None:
    """Before the link there is no ledger, after it a whole one; never half a ledger, or one without its budget."""
    program = """
        def look(n):
            found = refused(lambda: Ledger.open(folder / str(n), timeout=0))
            return str(found or Ledger.open(folder / str(n)).left().epsilon)
        killed_at_every_statement(lambda n: Ledger.create(folder / str(n), "x", ONE), look)
    """
    rounds = killed(program, tmp_path)
    assert len(rounds) > 8
    assert all(one == "1" or one.startswith("There is no ledger at") for one in rounds)
    assert rounds[0] != "1" == rounds[-1]


def test_spenders_at_once_cannot_overspend(tmp_path) -> None:
    ledger = Ledger.create(tmp_path / "x", "x", ONE)
    out = run(
        f"""
        begin, go = os.pipe()
        for _ in range(6):
            if os.fork() == 0:
                os.close(go)
                ledger = Ledger.open(folder / "x", timeout={HANGS})
                os.read(begin, 1)  # until the parent has closed its end
                count = 0
                while not isinstance(refused(lambda: hand_out(reserve(ledger, "1/12"))), BudgetError):
                    count += 1
                os.write(1, f"{{count}}\\n".encode())
                os._exit(0)
        os.close(go)
        for _ in range(6):
            os.wait()
        """,
        tmp_path,
    )
    counts = [int(line) for line in out.split()]
    assert len(counts) == 6
    assert sum(counts) == 12 == len({entry.id for entry in ledger.entries()}) == len((tmp_path / "handed").read_text().split())
    assert ledger.left().epsilon == 0


@pytest.mark.parametrize("statement", ["BEGIN IMMEDIATE", "BEGIN EXCLUSIVE"])
def test_a_lock_held_too_long_is_one_sentence(tmp_path, statement) -> None:
    Ledger.create(tmp_path / "x", "x", ONE)
    ledger = Ledger.open(tmp_path / "x", timeout=0.2)
    holder = start(
        f"""
        connection = sqlite3.connect(folder / "x", isolation_level=None)
        connection.execute({statement!r})
        print("held", flush=True)
        sys.stdin.readline()
        """,
        tmp_path,
        stdin=subprocess.PIPE,
    )
    assert holder.stdout.readline() == "held\n"
    with pytest.raises(
        LedgerError, match=r"was locked by another process for more than 0\.2 seconds\. Try again when that process is done\."
    ):
        ledger.reserve(cost=PureCost(1), privacy=ONE, plan_digest="", output="")
    holder.communicate("\n", timeout=HANGS)
    assert ledger.left().epsilon == 1


@pytest.mark.parametrize(
    ("file_mode", "folder_mode", "left", "words"),
    [
        (0o444, 0o755, "1", "that you may write to it and its folder."),
        (0o666, 0o555, "1", "that you may write to it and its folder."),
        (0, 0o755, "cannot be opened", "cannot be opened. Check that the file is there"),
    ],
)
def test_a_ledger_that_cannot_be_written_can_be_read_and_makes_no_release(file_mode, folder_mode, left, words) -> None:
    """As another user, since an administrator may write anywhere."""
    folder = Path(tempfile.mkdtemp(prefix="ledger-"))
    try:
        Ledger.create(folder / "x", "x", ONE).path.chmod(file_mode)
        folder.chmod(folder_mode)
        out = run(
            """
            if os.geteuid() == 0:
                os.setresuid(65534, 65534, 65534)
            print(refused(lambda: Ledger.open(folder / "x")) or Ledger.open(folder / "x").left().epsilon)
            print(refused(lambda: reserve(Ledger.open(folder / "x"))))
            """,
            folder,
        )
        first, message = out.splitlines()
        assert left in first
        assert f"The ledger {folder / 'x'} cannot be" in message
        assert words in message
    finally:
        folder.chmod(0o755)
        shutil.rmtree(folder)


def test_a_full_disk_makes_no_release(tmp_path) -> None:
    """A limit on the size of files stands for the disk; the journal and the file both meet it."""
    ledger = Ledger.create(tmp_path / "x", "x", ONE)
    size = ledger.path.stat().st_size
    out = run(
        f"""
        import resource
        ledger = Ledger.open(folder / "x")
        for limit in (0, 600, {size // 2}, {size}):
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
            while not (error := refused(lambda: reserve(ledger, "1/99", "o" * 9999))):
                print("handed")
            print(error)
        """,
        tmp_path,
    )
    lines = out.splitlines()
    assert sum("The disk of the ledger" in line and "Free space" in line for line in lines) == 4
    assert len(ledger.entries()) >= lines.count("handed")
    assert Ledger.open(ledger.path).spent().epsilon == Fraction(len(ledger.entries()), 99)


def test_checks_hold_under_python_o(tmp_path) -> None:
    Ledger.create(tmp_path / "x", "x", ONE)
    out = run(
        """
        assert False, "-O is on"
        ledger = Ledger.open(folder / "x")
        for use in (
            lambda: reserve(ledger, "1.0001"),
            lambda: ledger.reserve(cost=PureCost(1), privacy=ONE.within(PureDP("1/2")), plan_digest="", output=""),
            lambda: ledger.reserve(cost=PureCost(1), privacy=Privacy(PureDP(1), "replace"), plan_digest="", output=""),
            lambda: PureDP("nan"),
            lambda: ApproxDP(1, 1),
        ):
            print(type(refused(use)).__name__)
        print(gaussian_is_private(10, "4.26", "1e-5"), ledger.left().epsilon)
        os.truncate(folder / "x", 5000)
        print(type(refused(ledger.left)).__name__)
        """,
        tmp_path,
        "-O",
    )
    assert out.split() == ["BudgetError", "InputError", "InputError", "InputError", "InputError", "False", "1", "LedgerError"]


def test_the_file_is_flushed_fully(tmp_path, monkeypatch) -> None:
    """Every connection that writes asks for the strictest flushing."""
    ledger = Ledger.create(tmp_path / "x", "x", ONE)
    seen = []
    connect = sqlite3.connect

    def watched(*arguments, **more):
        connection = connect(*arguments, **more)
        connection.set_trace_callback(seen.append)
        return connection

    monkeypatch.setattr(sqlite3, "connect", watched)
    ledger.seal(ledger.reserve(cost=PureCost(1), privacy=ONE, plan_digest="", output=""))
    words = [one for one in seen if one.split()[0] in {"BEGIN", "COMMIT", "INSERT", "UPDATE"} or "synchronous" in one]
    assert [word.split()[0] for word in words] == [
        *["PRAGMA", "BEGIN", "INSERT", "UPDATE", "COMMIT"],  # the entry, and the head of the chain
        *["PRAGMA", "BEGIN", "UPDATE", "COMMIT"],
    ]
    assert {word for word in words if word.startswith(("PRAGMA", "BEGIN"))} == {"PRAGMA synchronous = EXTRA", "BEGIN IMMEDIATE"}
