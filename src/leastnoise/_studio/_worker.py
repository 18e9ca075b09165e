"""The process that plans: what to do as one JSON line on its standard input, what came of it as JSON lines on its standard output.

It plans from the very text that would be saved. It ends when its input does, so that it does not outlive the studio.
"""

import json
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from leastnoise._accuracy import within_memory
from leastnoise._check import InputError
from leastnoise._plan import Plan
from leastnoise._planning import answering, planned, price, stated
from leastnoise._spec import parse_spec
from leastnoise._threads import one_thread

Tell = Callable[[Mapping[str, Any]], None]


def made(text: str, folder: Path, tell: Tell, *, first: bool) -> None:
    r"""Plan a spec; tell of every step, and of the plan."""
    spec = parse_spec(text, folder)
    wanted = first and stated(spec.planned_privacy) is not None

    def found(plan: Plan) -> None:
        nonlocal wanted
        if wanted:
            with suppress(InputError):  # it is of some of the tables alone
                tell({"first": answering(spec.workload, plan).to_json()})
                wanted = False

    search = replace(spec.search(lambda name: tell({"trying": name})), found=found)
    plan = planned(spec.workload, spec.planned_privacy, search, spec.objective, spec.options.level)
    tell({"plan": plan.to_json()})


@one_thread()
def done(asked: Mapping[str, Any], tell: Tell) -> None:
    r"""Plan a spec, or find what some of its rows cost."""
    if "price" not in asked:
        made(asked["text"], Path(asked["folder"]), tell, first=asked["first"])
        return
    plan, search = Plan.from_json(asked["plan"]), parse_spec(asked["text"], Path(asked["folder"])).search()
    known: dict[object, float] = {}
    for row, places in asked["price"]:
        priced = price(plan, places, search, known)
        tell({"price": row, "alone": priced.alone, "saved": priced.saved})


def main() -> None:
    """Do what the first line says."""
    asked = json.loads(sys.stdin.readline())
    threading.Thread(target=_end_with_input, daemon=True).start()
    try:
        with within_memory():
            done(asked, _tell)
    except InputError as error:
        _tell({"error": str(error)})
    except MemoryError:
        _tell({"error": "Planning this needs more memory than there is. Ask for less."})


def _tell(message: Mapping[str, Any]) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def _end_with_input() -> None:
    sys.stdin.read()
    signal.raise_signal(signal.SIGTERM)


if __name__ == "__main__":
    main()
