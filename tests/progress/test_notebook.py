"""Progress in a notebook appears below the cell by default, and nowhere else."""

import sys
from types import ModuleType, SimpleNamespace

import pandas as pd
import pyarrow as pa
import pytest

import leastnoise as ln
from leastnoise import _progress
from leastnoise._trusted.reading import read
from simulated import read_table

DOMAIN = ln.Domain(age=ln.Integers(0, 15))
ASKED = ln.queries(DOMAIN, age="prefix")


@pytest.fixture
def cell(monkeypatch):
    """Return the lines that a kernel would show below a cell, with stubs of IPython."""
    lines = []

    def display(data, *, raw, display_id):
        """Record the first line; later lines must be able to replace it."""
        assert raw
        assert display_id
        lines.append(("new", data["text/plain"]))
        return SimpleNamespace(update=lambda data, raw: lines.append(("again", data["text/plain"])))

    python = ModuleType("IPython")
    shown = ModuleType("IPython.display")
    python.get_ipython = lambda: SimpleNamespace(kernel="of a notebook")
    shown.display = display
    monkeypatch.setitem(sys.modules, "IPython", python)
    monkeypatch.setitem(sys.modules, "IPython.display", shown)
    monkeypatch.setattr(_progress, "_SECONDS_BEFORE_LINE", 0.0)
    return lines


def make_release(**options):
    plan = ln.plan(ASKED, ln.PureDP(1), strategy="identity", progress=lambda _: None)
    return ln.release(plan, pd.DataFrame({"age": [1, 2, 2]}), seed=1, **options)


def test_planning_shows_one_line_and_clears_it(cell):
    ln.plan(ASKED, ln.PureDP(1), seconds=4)
    ((first_line, line), *_, last) = cell
    assert first_line == "new"
    assert last == ("again", "")
    assert line.startswith("planning")
    assert all(kind == "again" for kind, _ in cell[1:])


def test_comparing_and_reading_show_one_too(cell):
    ln.compare(ASKED, ln.PureDP(1), seconds=1)
    compared = len(cell)
    make_release()
    assert cell[0][1].startswith("planning")
    assert cell[compared][1].startswith("reading, measuring, estimating and writing (0 s")
    assert cell[-1] == ("again", "")


def test_caller_progress_is_not_shown_twice(cell):
    calls = []
    ln.plan(ASKED, ln.PureDP(1), strategy="identity", progress=calls.append)
    make_release(progress=False)
    assert calls == ["identity"]
    assert cell == []


def test_progress_is_shown_on_request(cell, monkeypatch, capsys):
    monkeypatch.setattr(sys.modules["IPython"], "get_ipython", lambda: None)
    make_release(progress=True)
    assert cell == []
    assert "reading, measuring" in capsys.readouterr().err


@pytest.mark.parametrize("progress", [print, lambda value, among: None, "yes", SimpleNamespace()])
def test_row_numbers_reach_no_other_object(progress):
    """Neither functions nor objects that imitate a line of progress get them."""
    with pytest.raises(ln.InputError, match="progress must be True, False or None"):
        make_release(progress=progress)
    frame = pd.DataFrame({"age": [1, 2, 2]})
    plan = ln.plan(ASKED, ln.PureDP(1), strategy="identity")
    with pytest.raises(ln.InputError, match="progress must be True, False or None"):
        read_table(plan, frame, progress)
    with pytest.raises(ln.InputError, match="line must be"):
        _progress.RowProgress(SimpleNamespace(say=print), "reading", "writing")
    with pytest.raises(TypeError, match="cannot have subclasses"):
        type("Told", (_progress.RowProgress,), {})


def test_row_progress_holds_percents_only():
    line = _progress.Progress("reading")
    shown = _progress.RowProgress(line, "reading", "writing", about=2.0)
    shown.show(123_457, 987_654)
    values = [getattr(shown, name) for name in shown.__slots__] + [*vars(line).values()]
    assert (line._text, line._share) == ("reading: 12%", 0.12)
    assert not {123_457, 987_654, 123_457 / 987_654} & {
        value for value in values if isinstance(value, (int, float))
    }


def test_row_progress_does_not_count_chunks_of_rows():
    """With one row a chunk, the number of calls would reveal the number of rows."""
    rows = pa.concat_tables([pa.table({"age": [1]})] * 37)
    shown = _progress.RowProgress(_progress.Progress("reading"), "reading", "writing")
    read(rows, DOMAIN, progress=shown)
    shown.show(5, None)
    assert shown._calls == 0


@pytest.mark.parametrize("shell", [None, SimpleNamespace()])
def test_programs_and_terminals_show_no_progress(cell, monkeypatch, capsys, shell):
    monkeypatch.setattr(sys.modules["IPython"], "get_ipython", lambda: shell)
    ln.plan(ASKED, ln.PureDP(1), strategy="identity")
    make_release()
    assert cell == []
    assert capsys.readouterr() == ("", "")


def test_long_steps_show_time_left(monkeypatch):
    lines = []
    monkeypatch.setattr(_progress, "_SECONDS_BEFORE_LINE", 0.0)
    monkeypatch.setattr(_progress.time, "perf_counter", iter([0.0, 4.0, 4.0]).__next__)
    with _progress.Progress("planning", _progress.Display(60.0, lines.append), about=16.0):
        pass
    assert lines == ["planning (4 s, about 12 s more)", ""]


def test_time_left_follows_completed_steps():
    line = _progress.Progress("pricing", _progress.Display(0.0, print), about=50.0)
    assert line._done_share(5.0) == 0.1  # nothing is counted yet: by the estimate
    for place in range(4):
        line.step(f"pricing {place}", 4)
    assert line._done_share(5.0) == 0.75
    assert _progress.describe_time(30.0, line._done_share(30.0)) == "30 s, about 10 s more"
