"""The tables of docs/strategies.md, generated from the registry of planners.

python -m contracts.strategies --write      writes them; without --write compares
"""

import re
import sys
from functools import partial
from pathlib import Path

from leastnoise._strategies import PLANNERS, Planner

PAGE = Path(__file__).parents[1] / "docs" / "strategies.md"
# Each table by the name of its mark on the page, and whether the automatic choice tries its rows.
TABLES = {"automatic": True, "by name": False}
HEAD = "| name | measures | made for | noise | up to | paper |\n|---|---|---|---|---|---|\n"
NOISE = {(1,): "Laplace", (2,): "Gaussian", (1, 2): "both"}


def table_row(planner: Planner) -> str:
    """Return the line of a table that describes one strategy."""
    cells = (
        f"`{planner.name}`",
        planner.measures,
        planner.made_for,
        NOISE[planner.norms],
        planner.limits or "-",
        planner.paper or "-",
    )
    return f"| {' | '.join(cells)} |\n"


def strategies_table(mark: str) -> str:
    """Return one of the tables, in Markdown."""
    planners = [planner for planner in PLANNERS.values() if planner.automatic is TABLES[mark]]
    return HEAD + "".join(table_row(planner) for planner in planners)


def _with_table(mark: str, match: re.Match[str]) -> str:
    return match[1] + strategies_table(mark)


def page(text: str) -> str:
    """Return the text of the page with its tables as the registry has them."""
    for mark in TABLES:
        line = f"<!-- {mark}: made by python -m contracts.strategies --write -->"
        pattern = rf"({re.escape(line)}\n\n)(\|[^\n]*\n)*"
        text, replacements = re.subn(pattern, partial(_with_table, mark), text)
        if replacements != 1:
            raise SystemExit(f"{PAGE.name} must have the line {line} once")
    return text


def outdated_rows(text: str) -> list[str]:
    """List the lines of the page's tables that are not as the registry has them.

    A strategy without a line is not listed: a contribution may come before its line on the page.
    """
    rows = {table_row(planner).rstrip() for planner in PLANNERS.values()} | set(HEAD.splitlines())
    marked = re.compile(r"<!-- [^\n]*contracts\.strategies --write -->\n\n((?:\|[^\n]*\n)*)")
    return [
        line for block in marked.findall(text) for line in block.splitlines() if line not in rows
    ]


if __name__ == "__main__":
    before = PAGE.read_text(encoding="utf-8")
    if "--write" in sys.argv:
        PAGE.write_text(page(before), encoding="utf-8")
    elif page(before) != before:
        raise SystemExit(
            f"{PAGE.name} differs from the registry: python -m contracts.strategies --write"
        )
