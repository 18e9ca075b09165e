"""Runs programs in forks of a process that has loaded the package already: each has its own number, signals, streams and end.

python server.py SOCKET    takes one request a connection, answers with the number of the process, and at its end with its exit code

Starting anew costs one to two seconds of loading, which is the same every time.
"""

import json
import os
import pkgutil
import select
import signal
import socket
import sys
from importlib import import_module
from typing import Any

import leastnoise
from leastnoise._release import TEMPLATES, templates

# What a release loads when it comes to it.
LATER = [
    "duckdb", "jinja2", "platformdirs.unix", "pyarrow.compute", "pyarrow.csv", "resource", "rich.console", "rich.progress",
    "rich.table",
]  # fmt: skip
LATER += ["scipy.optimize", "scipy.sparse.csgraph", "scipy.sparse.linalg", "scipy.special", "statistics"]


def load() -> None:
    """Import what the program imports, and nothing that starts a thread."""
    for found in pkgutil.walk_packages(leastnoise.__path__, "leastnoise."):
        if "__main__" not in found.name and "_studio" not in found.name:
            import_module(found.name)
    for name in LATER:
        import_module(name)
    templates(TEMPLATES).get_template("report.html")  # is compiled once, and not in every fork


def watch(connection: socket.socket, child: int) -> None:
    """Tell how the child ended; its number stays its own until the other side has heard it."""
    connection.sendall(f"{child}\n".encode())
    ended = os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    assert ended is not None
    code = ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status
    connection.sendall(f"{code}\n".encode())
    connection.recv(1)


def become(request: dict[str, Any]) -> str:
    """Take the place, environment and streams that were asked for; what is to be run."""
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["environment"])
    for number, path in enumerate((os.devnull, request["out"], request["err"])):
        os.dup2(os.open(path, os.O_RDONLY if number == 0 else os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), number)
    sys.argv = ["-c", *request["arguments"]]
    sys.path[0] = ""
    return str(request["program"])


def serve(listening: socket.socket) -> str | None:
    """What this process, a fork, is to run; None in the server when it is at its end."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those that watch
    while listening in select.select([listening, sys.stdin], [], [])[0]:
        connection, _ = listening.accept()
        if os.fork():
            connection.close()
            continue
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        listening.close()
        request = json.loads(connection.makefile().readline())
        child = os.fork()
        if child:
            watch(connection, child)
            os._exit(0)
        connection.close()
        return become(request)
    return None


if __name__ == "__main__":
    load()
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(sys.argv[1])
        door.listen()
        print("ready", flush=True)
        program = serve(door)
    if program is not None:
        exec(compile(program, "<string>", "exec"), {"__name__": "__main__"})  # noqa: S102 - as `python -c` does
