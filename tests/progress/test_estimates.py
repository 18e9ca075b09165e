"""Estimates of the time that reading and finishing still take, for the progress line."""

import pandas as pd

import leastnoise as ln
from leastnoise import _progress
from leastnoise._publication import finishing_seconds
from leastnoise._session import (
    _payments,
    count_csv_blocks,
    estimate_reading_seconds,
    list_csv_sizes,
)

DOMAIN = ln.Domain(sex=["F", "M"])


def csv(path, lines):
    path.write_text("id,sex\n" + lines * "1,F\n", encoding="utf-8")
    return path


def test_csv_progress_follows_bytes(tmp_path, monkeypatch):
    # 5 MiB and a little: the sixth block is not full.
    source = csv(tmp_path / "people.csv", 5 * 2**18 + 2)
    line = _progress.Progress("reading")
    lines = []
    say = _progress.Progress.say

    def record(self, *text):
        say(self, *text)
        lines.append((line._text, line._share))

    monkeypatch.setattr(_progress.Progress, "say", record)
    plan = ln.plan(ln.marginals(DOMAIN, ways=1), ln.PureDP(1))
    shown = _progress.RowProgress(line, "reading", "writing", blocks=count_csv_blocks(source))
    ln.release(plan, source, seed=1, progress=shown)
    percents = [100 * place // 6 for place in range(1, 6)]
    reading = [(f"reading: {percent}%", percent / 100) for percent in percents]
    assert lines == [*reading, ("writing", 0.0)]


def test_source_size_is_known_for_files_and_joins(tmp_path):
    folder = tmp_path / "visits"
    (folder / "more").mkdir(parents=True)
    sizes = sorted(
        csv(place, lines).stat().st_size
        for place, lines in ((folder / "a.csv", 3), (folder / "more" / "b.csv", 5))
    )
    assert sorted(list_csv_sizes(folder)) == sizes
    assert (
        list_csv_sizes(str(folder / "*.csv"))
        == sizes[:1]
        == list_csv_sizes(ln.CSV(folder / "a.csv", ","))
    )
    assert (
        list_csv_sizes(ln.Joined(folder / "a.csv", folder / "more" / "b.csv", on="id")) == sizes[:1]
    )
    (folder / "a.csv.gz").write_bytes(b"")
    assert (
        list_csv_sizes(folder / "a.csv.gz")
        == list_csv_sizes(pd.DataFrame({"a": [1]}))
        == list_csv_sizes(None)
        == []
    )
    assert estimate_reading_seconds(folder) == sum(sizes) / _payments._BYTES_PER_SECOND


def test_finishing_estimate_grows_with_work(monkeypatch):
    monkeypatch.delenv("LEASTNOISE_CHARTS")
    domains = (ln.Domain(a=ln.Coded(3), b=ln.Coded(3), c=ln.Coded(size)) for size in (3, 300))
    few_tables, many_tables = (
        ln.plan(ln.marginals(domain, ways=2), ln.PureDP(1), strategy="identity")
        for domain in domains
    )
    usual = ln.Options()
    more_formats = ln.Options(formats=["csv", "parquet", "sdmx"])
    seconds = finishing_seconds(few_tables, usual)
    assert (
        seconds
        < finishing_seconds(many_tables, usual)
        < finishing_seconds(many_tables, more_formats)
    )
    monkeypatch.setenv("LEASTNOISE_CHARTS", "off")
    assert (
        finishing_seconds(few_tables, usual, written=False)
        < finishing_seconds(few_tables, usual)
        < seconds
    )


def test_adaptive_plan_has_no_time_estimate():
    plan = ln.plan(
        ln.queries(ln.Domain(age=ln.Integers(0, 15)), age="prefix"), ln.PureDP(1), strategy="dawa"
    )
    assert finishing_seconds(plan, ln.Options()) == 0


def test_progress_restarts_its_clock_after_last_row(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(_progress.time, "perf_counter", lambda: clock[0])
    line = _progress.Progress("reading, writing")

    def text_and_time(seconds):
        share = line._done_share(seconds)
        return line._text, _progress.describe_time(seconds, share, line._work_start)

    clock[0] = 10.0
    shown = _progress.RowProgress(line, "reading", "writing", about=8.0)
    shown.show(1, 5)
    assert text_and_time(10.0) == ("reading: 20%", "10 s, about 40 s more")
    clock[0] = 50.0
    shown.show(5, 5)
    assert text_and_time(52.0) == ("writing", "52 s, about 6 s more")
    assert text_and_time(60.0) == ("writing", "60 s")
