"""The ledger with real processes: kill -9 at every point, several spenders at once, locks, permissions, a full disk, and `python -O`."""

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
    import json, os, random, signal, sqlite3, sys, time
    from pathlib import Path
    from leastnoise._check import BudgetError, LedgerError
    from leastnoise._accounting import Privacy, PureCost, PureDP
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

    def reserve(ledger, epsilon="1/100", output="out"):
        return ledger.reserve(cost=PureCost(epsilon), privacy=ONE.within(PureDP(epsilon)), plan_digest="ab", output=output)

    def hand_out(receipt):
        line = os.open(folder / "handed", os.O_CREAT | os.O_APPEND | os.O_WRONLY)
        os.write(line, (receipt.id + "\\n").encode())
        os.close(line)

    def handed():
        return (folder / "handed").read_text().split() if (folder / "handed").exists() else []

    def check():
        ledger = Ledger.open(folder / "x")
        entries = {entry.id: entry for entry in ledger.entries()}
        ids = handed()
        unpaid = [one for one in ids if one not in entries]
        early = [entry.id for entry in entries.values() if entry.state == "sealed" and entry.id not in ids]
        over = not ledger.spent().within(ledger.spent() + ledger.left()) or sum(e.charge.epsilon for e in entries.values()) > 1
        return {"paid": len(entries), "handed": len(ids), "unpaid": unpaid, "early": early, "over": over}
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


def test_killed_before_every_statement_of_reserve_and_seal(tmp_path) -> None:
    """The child is killed just before its n-th SQL statement, for every n until it gets through; after each the books are right."""
    Ledger.create(tmp_path / "x", "x", ONE)
    rounds = json.loads(
        run(
            """
            rounds = []
            for n in range(1, 100):
                child = os.fork()
                if child == 0:
                    ledger = Ledger.open(folder / "x")
                    die_at(n)
                    receipt = reserve(ledger)
                    hand_out(receipt)
                    ledger.seal(receipt)
                    os._exit(0)
                _, status = os.waitpid(child, 0)
                rounds.append({"n": n, "killed": os.WIFSIGNALED(status), **check()})
                if not rounds[-1]["killed"]:
                    break
            print(json.dumps(rounds))
            """,
            tmp_path,
        )
    )
    assert len(rounds) > 15
    assert not rounds[-1]["killed"]
    assert all(one["killed"] for one in rounds[:-1])
    assert not any(one["unpaid"] or one["early"] or one["over"] for one in rounds)
    assert rounds[0]["paid"] == 0
    assert 1 < rounds[-1]["handed"] <= rounds[-1]["paid"] < len(rounds)  # some died unpaid, some paid


def test_killed_before_every_statement_of_what_a_data_holder_enters(tmp_path) -> None:
    """What is entered is there whole or not at all."""
    rounds = json.loads(
        run(
            """
            import shutil
            ledger = Ledger.create(folder / "x", "x", ONE)
            ledger.seal(reserve(ledger, "1/2"))
            shutil.copy(folder / "x", folder / "old")
            rounds = []
            for n in range(1, 200, 4):
                shutil.copy(folder / "old", folder / "x")
                child = os.fork()
                if child == 0:
                    die_at(n)
                    ledger = Ledger.open(folder / "x")
                    ledger.set_budget(PureDP(3), period="month")
                    ledger.set_budget(PureDP(2), share="ann")
                    ledger.add_spent(PureDP(1))
                    os._exit(0)
                _, status = os.waitpid(child, 0)
                ledger = Ledger.open(folder / "x")
                rounds.append([os.WIFSIGNALED(status), [one.kind for one in ledger.entries()], str(ledger.left().epsilon)])
                if not rounds[-1][0]:
                    break
            print(json.dumps(rounds))
            """,
            tmp_path,
        )
    )
    kinds = ["release", "budget", "budget", "spent"]
    left = {1: "1/2", 2: "5/2", 3: "5/2", 4: "3/2"}
    assert [one[0] for one in rounds] == [True] * (len(rounds) - 1) + [False]
    assert all(one[1] == kinds[: len(one[1])] and one[2] == left[len(one[1])] for one in rounds)
    assert [len(one[1]) for one in rounds] == sorted(len(one[1]) for one in rounds)
    assert {len(one[1]) for one in rounds} == {1, 2, 3, 4}


def test_killed_at_random_times(tmp_path) -> None:
    """Two dozen children that reserve, hand out and seal in a loop, each killed up to 40 ms later, most of which the disk takes."""
    Ledger.create(tmp_path / "x", "x", ONE)
    rounds = json.loads(
        run(
            """
            random.seed(7)
            rounds = []
            for n in range(24):
                child = os.fork()
                if child == 0:
                    ledger = Ledger.open(folder / "x")
                    while True:
                        receipt = reserve(ledger, "1/100000")
                        hand_out(receipt)
                        ledger.seal(receipt)
                before = len(handed())
                while n % 2 and len(handed()) == before:  # on a slow disk too, every second child gets somewhere
                    time.sleep(0.001)
                time.sleep(random.uniform(0, 0.04))
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
                rounds.append(check())
            print(json.dumps(rounds))
            """,
            tmp_path,
        )
    )
    assert not any(one["unpaid"] or one["early"] or one["over"] for one in rounds)
    assert rounds[-1]["handed"] >= 12
    assert rounds[-1]["paid"] >= rounds[-1]["handed"]


def test_killed_between_the_steps_a_release_is_paid_and_absent_or_paid_and_whole(tmp_path) -> None:
    ends = {
        "before reserve": (0, None),
        "before draw": (1, "absent"),
        "before publish": (1, "absent"),
        "before seal": (1, "sealed"),
        "after seal": (1, "sealed"),
    }
    for point in ends:
        (tmp_path / point).mkdir()
        Ledger.create(tmp_path / point / "x", "x", ONE)
    run(
        f"""
        def release(point):
            def step(name):
                if name == point:
                    os.kill(os.getpid(), signal.SIGKILL)

            ledger = Ledger.open(folder / point / "x")
            step("before reserve")
            receipt = reserve(ledger, "1/2", output=str(folder / point / "answers"))
            step("before draw")
            (folder / point / "answers.part").write_text("noise")
            step("before publish")
            (folder / point / "answers.part").rename(folder / point / "answers")
            step("before seal")
            ledger.seal(receipt)
            step("after seal")

        for point in {list(ends)}:
            child = os.fork()
            if child == 0:
                release(point)
            assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL
        """,
        tmp_path,
    )
    for point, (paid, state) in ends.items():
        ledger = Ledger.open(tmp_path / point / "x")
        assert ledger.left().epsilon == 1 - Fraction(paid, 2)
        ledger.reconcile(lambda entry: Path(entry.output).exists())
        assert [entry.state for entry in ledger.entries()] == [state] * paid
        assert (tmp_path / point / "answers").exists() == (state == "sealed")
        assert ledger.left().epsilon == 1 - Fraction(paid, 2)


def test_killed_while_the_ledger_is_made(tmp_path) -> None:
    """Either there is a whole ledger, or none that opens; never one without its budget."""
    outcomes = json.loads(
        run(
            """
            outcomes = []
            for n in range(1, 30):
                path = folder / str(n)
                child = os.fork()
                if child == 0:
                    die_at(n)
                    Ledger.create(path, "x", ONE)
                    os._exit(0)
                _, status = os.waitpid(child, 0)
                try:
                    outcomes.append(str(Ledger.open(path, timeout=0).left().epsilon))
                except LedgerError as error:
                    outcomes.append(str(error))
                if not os.WIFSIGNALED(status):
                    break
            print(json.dumps(outcomes))
            """,
            tmp_path,
        )
    )
    assert len(outcomes) > 8
    assert outcomes[-1] == "1"
    # Killed before the link there is no ledger, after it a whole one; never half a ledger.
    assert all(one == "1" or one.startswith("There is no ledger at") for one in outcomes)
    assert outcomes[0].startswith("There is no ledger at")


@pytest.mark.parametrize(("spenders", "shares"), [(8, 16)])
def test_spenders_at_once_cannot_overspend(tmp_path, spenders, shares) -> None:
    ledger = Ledger.create(tmp_path / "x", "x", ONE)
    out = run(
        f"""
        begin, go = os.pipe()
        for _ in range({spenders}):
            if os.fork() == 0:
                os.close(go)
                ledger = Ledger.open(folder / "x", timeout={HANGS})
                os.read(begin, 1)  # until the parent has closed its end
                count = 0
                try:
                    while True:
                        hand_out(reserve(ledger, "1/{shares}"))
                        count += 1
                except BudgetError:
                    os.write(1, f"{{count}}\\n".encode())
                os._exit(0)
        os.close(go)
        for _ in range({spenders}):
            os.wait()
        """,
        tmp_path,
    )
    counts = [int(line) for line in out.split()]
    assert len(counts) == spenders
    assert sum(counts) == shares == len(ledger.entries()) == len((tmp_path / "handed").read_text().split())
    assert ledger.left().epsilon == 0
    assert len({entry.id for entry in ledger.entries()}) == shares


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


@pytest.mark.parametrize(("file_mode", "folder_mode"), [(0o444, 0o755), (0o666, 0o555)])
def test_a_ledger_that_cannot_be_written_can_be_read_and_makes_no_release(file_mode, folder_mode) -> None:
    """As another user, since an administrator may write anywhere."""
    folder = Path(tempfile.mkdtemp(prefix="ledger-"))
    try:
        ledger = Ledger.create(folder / "x", "x", ONE)
        ledger.path.chmod(file_mode)
        folder.chmod(folder_mode)
        out = run(
            """
            if os.geteuid() == 0:
                os.setresuid(65534, 65534, 65534)
            ledger = Ledger.open(folder / "x")
            print(ledger.left().epsilon)
            try:
                reserve(ledger)
            except LedgerError as error:
                print(error)
            """,
            folder,
        )
        left, message = out.splitlines()
        assert left == "1"
        assert f"The ledger {folder / 'x'} cannot be" in message
        assert "that you may write to it and its folder." in message
    finally:
        folder.chmod(0o755)
        shutil.rmtree(folder)


def test_a_file_that_may_not_be_read_is_refused() -> None:
    folder = Path(tempfile.mkdtemp(prefix="ledger-"))
    try:
        Ledger.create(folder / "x", "x", ONE).path.chmod(0)
        folder.chmod(0o755)
        out = run(
            """
            if os.geteuid() == 0:
                os.setresuid(65534, 65534, 65534)
            try:
                Ledger.open(folder / "x")
            except LedgerError as error:
                print(error)
            """,
            folder,
        )
        assert "cannot be opened. Check that the file is there" in out
    finally:
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
            try:
                for _ in range(9):
                    ledger.reserve(cost=PureCost("1/99"), privacy=ONE.within(PureDP("1/99")), plan_digest="ab", output="o" * 9999)
                    print("handed")
            except LedgerError as error:
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
        from leastnoise._check import InputError
        from leastnoise._accounting import ApproxDP, GaussianCost, gaussian_is_private
        assert False, "-O is on"
        ledger = Ledger.open(folder / "x")
        def refused(use):
            try:
                use()
            except (BudgetError, InputError, LedgerError) as error:
                print(type(error).__name__)
        refused(lambda: reserve(ledger, "1.0001"))
        refused(lambda: ledger.reserve(cost=PureCost(1), privacy=ONE.within(PureDP("1/2")), plan_digest="", output=""))
        other = Privacy(PureDP(1), "replace")
        refused(lambda: ledger.reserve(cost=PureCost(1), privacy=other, plan_digest="", output=""))
        refused(lambda: PureDP("nan"))
        refused(lambda: ApproxDP(1, 1))
        print(gaussian_is_private(10, "4.26", "1e-5"), ledger.left().epsilon)
        os.truncate(folder / "x", 5000)
        refused(ledger.left)
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
        connection.set_trace_callback(lambda statement: seen.append((statement.split()[0], statement)))
        return connection

    monkeypatch.setattr(sqlite3, "connect", watched)
    receipt = ledger.reserve(cost=PureCost(1), privacy=ONE, plan_digest="", output="")
    ledger.seal(receipt)
    words = [statement for word, statement in seen if word in {"BEGIN", "COMMIT", "INSERT", "UPDATE"} or "synchronous" in statement]
    assert [word.split()[0] for word in words] == [
        *["PRAGMA", "BEGIN", "INSERT", "UPDATE", "COMMIT"],  # the entry, and the head of the chain
        *["PRAGMA", "BEGIN", "UPDATE", "COMMIT"],
    ]
    assert {word for word in words if word.startswith("PRAGMA")} == {"PRAGMA synchronous = EXTRA"}
    assert {word for word in words if word.startswith("BEGIN")} == {"BEGIN IMMEDIATE"}
