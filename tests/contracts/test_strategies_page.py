"""The tables of docs/strategies.md agree with the registry of planners."""

from contracts.strategies import HEAD, PAGE, outdated_rows, page
from leastnoise._strategies import PLANNERS


def test_strategies_page_has_no_outdated_row():
    text = PAGE.read_text(encoding="utf-8")
    assert outdated_rows(text) == []
    assert text.count(HEAD) == 2


def test_written_page_describes_every_strategy():
    text = page(PAGE.read_text(encoding="utf-8"))
    assert [name for name in PLANNERS if f"\n| `{name}` |" not in text] == []
    assert page(text) == text


def test_outdated_row_of_strategies_page_is_detected():
    text = page(PAGE.read_text(encoding="utf-8"))
    assert outdated_rows(text.replace("| every query of the workload", "| every question")) != []
